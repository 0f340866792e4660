"""What installed packages add by entry points: knobs, audit rules, readers and machines.

A plugin that cannot be used is a sentence that names it; everything else goes on without it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from iodelta.errors import IodeltaError, RequestError

GROUPS = {
    "knob": "iodelta.knobs",
    "rule": "iodelta.rules",
    "reader": "iodelta.readers",
    "machine": "iodelta.machines",
    "part": "iodelta.parts",
}
"""Kind -> group of its entry points."""

Check = Callable[[str, Any], str]
"""Name of an entry point and what it loads in; why that cannot be used out, empty where it can."""


class Plugin(NamedTuple):
    """One entry point, loaded or not."""

    kind: str
    name: str
    package: str
    version: str
    made: Any
    trouble: str
    """Why it cannot be used, in a sentence that names it; empty where it can."""

    @property
    def title(self) -> str:
        """``the knob acme of the package iodelta-acme 1.0``."""
        return (
            f"the {self.kind} {self.name} of the package {self.package} {self.version}"
        )


@functools.cache
def plugins(kind: str, check: Check) -> tuple[Plugin, ...]:
    """The plugins of one kind, by package and name, each checked once."""
    entries = entry_points(group=GROUPS[kind])
    return tuple(
        _loaded(kind, entry, check)
        for entry in sorted(entries, key=lambda entry: (_package(entry), entry.name))
    )


def sound(kind: str, check: Check) -> Iterator[Plugin]:
    """Those that can be used."""
    return (plugin for plugin in plugins(kind, check) if not plugin.trouble)


def troubles(kind: str, check: Check) -> str:
    """Sentences about those that cannot, for the message about something that is not known; empty without any."""
    return "; ".join(
        plugin.trouble for plugin in plugins(kind, check) if plugin.trouble
    )


def failed(title: str, error: Exception) -> RequestError:
    """What a user reads of an exception of a plugin: it is no defect of iodelta."""
    message = f": {error}" if str(error) else ""
    return RequestError(
        f"{title} failed with {type(error).__name__}{message}",
        remedy="tell its author, or uninstall the package",
    )


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def _loaded(kind: str, entry: EntryPoint, check: Check) -> Plugin:
    version = entry.dist.version if entry.dist is not None else ""
    plugin = Plugin(kind, entry.name, _package(entry), version, None, "")
    try:
        made = entry.load()
        trouble = check(entry.name, made)
    except Exception as error:  # noqa: BLE001 (whatever the code of others raises)
        trouble = f"loading it failed with {type(error).__name__}: {error}"
        made = None
    message = f"{plugin.title} cannot be used: {trouble}" if trouble else ""
    return plugin._replace(made=made, trouble=message)


def guarded(title: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """``call``, whose exceptions name the plugin. Errors of iodelta pass: a plugin may raise them."""

    @functools.wraps(call)
    def checked(*args: Any, **options: Any) -> Any:
        try:
            return call(*args, **options)
        except IodeltaError:
            raise
        except Exception as error:
            raise failed(title, error) from error

    return checked
