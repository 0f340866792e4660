"""From a path to the nights in it, whoever measured them."""

from __future__ import annotations

from pathlib import Path

from iodelta.bundle.packed import is_own, opened
from iodelta.errors import RequestError
from iodelta.history import counts, foreign, importing, points
from iodelta.history.log import Given, Log
from iodelta.history.machines import named
from iodelta.history.points import Night
from iodelta.lab.folder import CountFolder, kind_of


def nights_of(path: Path, given: Given, log: Log, *, write: bool = False) -> tuple[Night, ...]:
    """The nights at ``path``, under the names that their machines have in this history; with ``write`` a new machine
    is noted there. Raises RequestError, MeasureError."""
    found: tuple[Night, ...]
    if given.format:
        found = importing.nights_of(path, given)
    elif not (is_own(path) or (path / "experiment.toml").is_file()):
        found = (foreign.night_of(path, given),)
    else:
        folder = opened(path)
        found = counts.nights_of(folder) if kind_of(folder) is CountFolder else (points.night_of(path, given.machine),)
    return tuple(named(night, log, write=write) for night in found)


def logged(log: Log) -> list[Night]:
    """Every night that the log names, read again, in the order in which they were added. Raises RequestError for a
    folder that is missing or is not what it was."""
    wanted = log.added()
    found: dict[str, Night] = {}
    for entry in wanted.values():
        if entry.identifier not in found:
            nights = nights_of(Path(entry.folder), entry.given, log)
            found |= {night.identifier: night for night in nights}
        if entry.identifier not in found:
            raise RequestError(
                "this has changed since it was added", place=entry.folder, remedy=f"add it again, or {_PRUNE}"
            )
    return [found[identifier] for identifier in wanted]


_PRUNE = "`iodelta history prune --gone` takes it out of the history"
