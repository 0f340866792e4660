"""Put what is at a path into a history: the log first, then the database."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from iodelta.history.answers import NightAdded
from iodelta.history.log import Added, Given, Log, Removed
from iodelta.history.points import Night
from iodelta.history.reading import nights_of
from iodelta.history.store import Store, url_of


def add(path: Path, given: Given, store: Store, log: Log) -> NightAdded:
    """Return all nights at ``path``. Raises RequestError, MeasureError."""
    nights = nights_of(path, given, log, write=True)
    # Nights of a file of others that says something else now; experiments of our own have identifiers that
    # stay.
    files = {night.folder for night in nights if night.state == "foreign"}
    there = {night.identifier for night in nights}
    gone = sorted(set().union(*map(log.at_place, files)) - there)
    log.append(
        *(
            Removed(time.time(), identifier, "its file has changed")
            for identifier in gone
        )
    )
    with log.ahead():
        store.remove(gone)
    # The log comes first: a folder that only the log knows is found by check, and rebuild adds it.
    log.append(
        *(
            Added(time.time(), night.identifier, night.sha, night.folder, given)
            for night in nights
            if _is_new(night, log)
        )
    )
    with log.ahead():
        outcomes = store.add_all(nights)
    left_out: dict[str, str] = {}
    for night in nights:
        left_out |= night.left_out
    return NightAdded(
        str(path),
        min(outcomes, key=("added", "replaced", "moved", "known").index),
        sum(len(night.points) for night in nights),
        left_out,
    )


def _is_new(night: Night, log: Log) -> bool:
    own = log.entry_of(night.identifier)
    return own is None or (own.sha, own.folder) != (night.sha, night.folder)


def rebuild_file(directory: Path, nights: Iterable[Night]) -> None:
    """Put the database of a history anew: once the new file is whole, it replaces the old one, damaged or not."""
    draft, database = directory / "history.db.new", directory / "history.db"

    def without_draft() -> None:
        for leftover in directory.glob(f"{draft.name}*"):  # with its journals
            leftover.unlink()

    without_draft()
    store = Store(url_of(draft))
    try:
        store.prepare()
        store.replace_all(nights)
    except BaseException:
        store.close()
        without_draft()
        raise
    store.close()
    for journal in ("-wal", "-shm"):
        database.with_name(database.name + journal).unlink(missing_ok=True)
    draft.replace(database)
