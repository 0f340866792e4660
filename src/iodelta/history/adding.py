"""Put what is at a path into a history: the log first, then the database."""

from __future__ import annotations

import time
from pathlib import Path

from iodelta.history.answers import NightAdded
from iodelta.history.log import Added, Given, Log, Removed
from iodelta.history.points import Night
from iodelta.history.reading import nights_of
from iodelta.history.store import Outcome, Store


def add(path: Path, given: Given, store: Store, log: Log) -> NightAdded:
    """All nights at ``path``. Raises RequestError, MeasureError."""
    nights = nights_of(path, given, log, write=True)
    outcomes = [_add(night, given, store, log) for night in nights]
    left_out = {series: why for night in nights for series, why in night.left_out.items()}
    return NightAdded(str(path), _together(outcomes), sum(len(night.points) for night in nights), left_out)


def _add(night: Night, given: Given, store: Store, log: Log) -> Outcome:
    known = log.added()
    for old in known.values():
        if night.state == "foreign" and old.folder == night.folder and old.identifier != night.identifier:
            log.append(Removed(time.time(), old.identifier, "its file has changed"))
            store.remove([old.identifier])
    own = known.get(night.identifier)
    # The log comes first: a folder that only the log knows is found by check, and rebuild adds it.
    if own is None or (own.sha, own.folder) != (night.sha, night.folder):
        log.append(Added(time.time(), night.identifier, night.sha, night.folder, given))
    return store.add(night)


def _together(outcomes: list[Outcome]) -> str:
    """One word for the nights of one path: what changed the most."""
    return min(outcomes, key=("added", "replaced", "moved", "known").index)
