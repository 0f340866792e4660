"""Finish what a kill interrupted: the log is written before the database, so it says what was meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from iodelta.errors import MeasureError, RequestError
from iodelta.history.log import Added, Given, Log
from iodelta.history.points import Night
from iodelta.history.reading import nights_of
from iodelta.history.store import Store


def finish(
    store: Store, log: Log, read: Callable[[Added], Night | None] | None = None
) -> tuple[str, ...]:
    """Add the nights that the log has and the database has not, where their folders can be read (by ``read``), and take
    out those that the log took out. Returns what was done, a sentence each."""
    read = read or _Nights(log)
    added, removed = log.added(), log.removed()
    known = {row["id"]: row for row in store.experiments()}
    stale = [name for name in known if name in removed]
    store.remove(stale)
    done = [f"finished removing: {known[name]['folder']}" for name in stale]
    for name, entry in added.items():
        if name not in known:
            night = read(entry)
            if night is not None:
                store.add(night)
                done.append(f"finished adding: {entry.folder}")
    return tuple(done)


class _Nights:
    """The nights of folders and files, each of which is read once."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._read: dict[tuple[str, Given], dict[str, Night]] = {}

    def __call__(self, entry: Added) -> Night | None:
        place = (entry.folder, entry.given)
        if place not in self._read:
            self._read[place] = self._found(entry)
        return self._read[place].get(entry.identifier)

    def _found(self, entry: Added) -> dict[str, Night]:
        try:
            nights = nights_of(Path(entry.folder), entry.given, self._log)
        except (RequestError, MeasureError):
            return {}  # what is wrong with it is named by check
        return {night.identifier: night for night in nights}
