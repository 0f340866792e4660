"""Take old nights out of a history. Folders stay where they are; the log says what was taken out and why."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from iodelta.history.answers import NightPruned
from iodelta.history.log import Log, Removed
from iodelta.history.store import Store


def chosen(
    store: Store, *, before: float | None, keep: int | None, gone: bool
) -> tuple[NightPruned, ...]:
    """Return what would be removed, oldest first: nights before a time, all but the newest ``keep`` of each machine,
    nights whose folder no longer exists."""
    return tuple(
        NightPruned(row["id"], row["t"], row["machine"], row["folder"], reason)
        for row, reason in _reasons(store.experiments(), before, keep, gone)
    )


def _reasons(
    experiments: list[dict[str, Any]],
    before: float | None,
    keep: int | None,
    gone: bool,
) -> Iterator[tuple[dict[str, Any], str]]:
    left: dict[str, int] = {}
    for row in experiments:
        left[row["machine"]] = left.get(row["machine"], 0) + 1
    for row in experiments:
        reason = ""
        if before is not None and row["t"] < before:
            reason = "older than asked for"
        elif keep is not None and left[row["machine"]] > keep:
            reason = "more nights than asked for"
        elif gone and not Path(row["folder"]).exists():
            reason = "its folder is gone"
        if reason:
            left[row["machine"]] -= 1
            yield row, reason


def prune(nights: tuple[NightPruned, ...], store: Store, log: Log) -> None:
    """Take these out. The decision is in the log before the database changes: what a kill leaves, check names."""
    now = time.time()
    log.append(*(Removed(now, night.experiment, night.reason) for night in nights))
    with log.ahead():
        store.remove([night.experiment for night in nights])
