"""Completions of the shell: knobs with their values on this machine, scenarios."""

from __future__ import annotations

from collections.abc import Iterator

import click


def settings(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Knobs and values of a ``NAME:KNOB=VALUE,...`` that is being written, as they are on this machine."""
    name, colon, text = incomplete.partition(":")
    # Another machine would answer too slowly.
    if not colon or context.params.get("machine"):
        return []
    begun, comma, last = text.rpartition(",")
    before = f"{name}:{begun}{comma}"
    target = str(context.params.get("target") or ".")
    try:
        return [before + word for word in _words(last, target) if word.startswith(last)]
    except Exception:  # noqa: BLE001 (the user is writing a line, which an error would break)
        return []


def _words(begun: str, target: str) -> Iterator[str]:
    """``KNOB=`` for every knob that can be set here, or ``KNOB=VALUE`` once the knob is named."""
    from iodelta.knob import catalogue, knob
    from iodelta.machine import LocalMachine
    from iodelta.probe.topology import resolve

    machine = LocalMachine()
    device = resolve(machine, target)
    name, equals, _ = begun.partition("=")
    if not equals:
        yield from (
            _start(info.name) for info in catalogue(machine, device) if not info.reason
        )
        return
    allowed = knob(name, machine, device).allowed()
    if isinstance(allowed, tuple):
        yield from (f"{name}={value}" for value in allowed)


def _start(name: str) -> str:
    """Return a knob's name and its equals sign; for a name with a placeholder (``sysctl.NAME``) only the part before
    it.
    """
    fixed = name.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    if fixed != name:
        return fixed
    return f"{name}="
