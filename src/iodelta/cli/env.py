"""``iodelta env``: the machine as iodelta records it, and what differs between two."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from iodelta.cli.contact import contact, on_machine
from iodelta.cli.files import print_document
from iodelta.cli.shared_options import in_console_or_json, named_target
from iodelta.errors import RequestError

EXAMPLES = """
\b
Examples:
  iodelta env
  iodelta env --target /dev/sdb --format json
  iodelta env --machine ssh:storage1 --target /dev/nvme0n1
  iodelta env iodelta-20260102-030405 --diff iodelta-20260203-040506
  iodelta env --diff iodelta-20260102-030405      # that folder's machine against this one, now
"""

WIDTH = 80


@click.command("env", epilog=EXAMPLES)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@on_machine
@click.option(
    "--target",
    callback=named_target,
    default="",
    help="Block device, file or directory (default: the current directory).",
)
@click.option(
    "--diff",
    "other",
    type=click.Path(path_type=Path),
    metavar="OTHER",
    help="Show only what differs from OTHER.",
)
@click.option(
    "--all",
    "whole",
    is_flag=True,
    help="List every difference, even if there are many of one kind.",
)
@in_console_or_json
def command(
    folder: Path | None,
    machine: str,
    target: str,
    other: Path | None,
    whole: bool,
    format_: str,
) -> None:
    """Show the environment of this machine, or the one recorded in FOLDER. With --diff, show only what differs, the
    most likely explanations of a different result first.

    Exit codes: 0 success, 2 the request is wrong.
    """
    if folder is not None and machine:
        raise RequestError(
            "a folder records the environment of its own machine", place=str(folder)
        )
    sections = _environment(
        folder, machine, target or _same_target(folder, machine, other)
    )
    if other is None:
        if format_ == "json":
            from iodelta.report.answers import EnvAnswer

            print_document(EnvAnswer(sections))
            return
        for name, value in _flat(sections):
            _line(name, value)
        return
    from iodelta.study.confounders import differences

    # The folder on the right is the one asked about: FOLDER, or this machine now.
    differing = differences(_environment(other, "", ""), sections)
    names = (str(other), str(folder or machine or "this machine"))
    if format_ == "json":
        from iodelta.report.answers import EnvDiffAnswer

        print_document(EnvDiffAnswer(*names, differing))
        return
    from iodelta.report.stories.environment import lines

    for line in lines(differing, *names, whole=whole):
        click.echo(line)


def _same_target(folder: Path | None, machine: str, other: Path | None) -> str:
    """Return the target of OTHER, so that both environments describe the same; empty if it does not exist here."""
    if folder is not None or machine or other is None:
        return ""
    path = str(_environment(other, "", "").get("target", {}).get("path", ""))
    return path if path and os.path.exists(path) else ""


def _environment(folder: Path | None, name: str, target: str) -> dict[str, Any]:
    if folder is None:
        import msgspec

        from iodelta.probe.environment import environment
        from iodelta.probe.topology import resolve

        with contact(name) as machine:
            here = resolve(machine, target or machine.directory)
            sections: dict[str, Any] = msgspec.to_builtins(environment(machine, here))
        return sections
    from iodelta.bundle.packed import opened
    from iodelta.study.judging import recorded

    opened(folder).check_times()
    recorded_ = recorded(folder)
    if recorded_ is None:
        raise RequestError(
            "has no environment: the run was killed before it recorded one",
            place=str(folder),
        )
    return recorded_


def _line(name: str, value: str) -> None:
    from iodelta.study.words import inert

    head = f"{inert(name)}  "
    text = inert(value)
    if len(head) + len(text) <= WIDTH:
        click.echo(head + text)
        return
    click.echo(head.rstrip())
    for line in textwrap.wrap(text, WIDTH - 4, break_on_hyphens=False):
        click.echo(f"    {line}")


def _flat(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(
        isinstance(inner, dict | list) for inner in value
    ):
        for number, inner in enumerate(value):
            yield from _flat(inner, f"{path}.{number}")
    elif value not in (None, "", []):
        yield (
            path,
            ", ".join(map(str, value)) if isinstance(value, list) else str(value),
        )
