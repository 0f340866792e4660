"""Finish what a kill interrupted: the log is written before the database, so it says what was meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from iodelta.errors import MeasureError, RequestError
from iodelta.history.log import Added, Log
from iodelta.history.points import Night
from iodelta.history.reading import nights_of
from iodelta.history.store import Store


def finish(store: Store, log: Log, read: Callable[[Added], Night | None] | None = None) -> tuple[str, ...]:
    """Add the nights that the log has and the database has not, where their folders can be read (by ``read``), and take
    out those that the log took out. Returns what was done, a sentence each."""
    read = read or (lambda entry: _night(entry, log))
    added, removed = log.added(), log.removed()
    known = {row["id"]: row for row in store.experiments()}
    stale = [name for name in known if name in removed]
    store.remove(stale)
    done = [f"finished taking out: {known[name]['folder']}" for name in stale]
    for name, entry in added.items():
        if name not in known:
            night = read(entry)
            if night is not None:
                store.add(night)
                done.append(f"finished adding: {entry.folder}")
    return tuple(done)


def _night(entry: Added, log: Log) -> Night | None:
    try:
        found = nights_of(Path(entry.folder), entry.given, log)
    except (RequestError, MeasureError):
        return None  # what is wrong with it is named by check
    return next((night for night in found if night.identifier == entry.identifier), None)
