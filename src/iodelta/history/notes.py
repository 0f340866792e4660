"""What people noted: where it stands among the nights, and which steps it may explain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from iodelta.history.answers import HistoryPoint, Note
from iodelta.history.commits import Order
from iodelta.history.log import Annotated, Entry


def placed(
    entries: Iterable[Entry], points: Iterable[HistoryPoint], order: Order
) -> tuple[Note, ...]:
    """Return every note with its time, the oldest first; those at commits that no night measured last."""
    nights = {point.experiment: point for point in points}
    by_time = sorted(nights.values(), key=lambda point: point.t)
    notes = [
        Note(
            entry.text,
            _first(entry.commit, by_time, order) if entry.commit else entry.t,
            entry.commit,
            entry.by,
        )
        for entry in entries
        if isinstance(entry, Annotated)
    ]
    return tuple(sorted(notes, key=lambda note: math.inf if note.t is None else note.t))


def _first(commit: str, nights: Sequence[HistoryPoint], order: Order) -> float | None:
    return next((night.t for night in nights if order.holds(night, commit)), None)


def between(
    notes: Sequence[Note], good: HistoryPoint, bad: HistoryPoint, order: Order
) -> tuple[Note, ...]:
    """Notes after one night up to the other: what was noted there may explain a step between them."""
    return tuple(note for note in notes if _is_between(note, good, bad, order))


def _is_between(
    note: Note, good: HistoryPoint, bad: HistoryPoint, order: Order
) -> bool:
    if note.commit and order.is_known(note.commit, good.repo):
        return order.holds(bad, note.commit) != order.holds(good, note.commit)
    began, ended = sorted((good.t, bad.t))
    return note.t is not None and began < note.t <= ended
