"""Bring what scans found up to date with the points: only series that changed are scanned, by a process for each CPU."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import sqlalchemy as sa

from iodelta.errors import MeasureError
from iodelta.experiment.order import in_order
from iodelta.history.alerts import History, alerts_of
from iodelta.history.commits import Order
from iodelta.history.log import Entry, Log
from iodelta.history.placebo import Placebos, Quiet, counted, quiet_of
from iodelta.history.scan import Kept, looked
from iodelta.history.store import Store

AT_ONCE = 25
"""Series that are read and scanned together: enough to keep a process busy, few enough to hold in memory."""

MANY = 200
"""So many series are scanned by a process for each CPU: to start one takes as long as to scan some hundred."""

decoded = msgspec.json.Decoder(Kept).decode

P = TypeVar("P")
R = TypeVar("R")
Scanned = tuple[dict[int, str], list[tuple[int, bytes]]]
"""The version of each series that was scanned, and what was found in it."""


def kept_of(store: Store) -> tuple[list[Kept], int]:
    """Return what the last scans found in every series, in the one order of cells; and how many have had nights since."""
    rows = store.scans()
    kept = [decoded(found) for _, _, _, found in rows if found]
    return _ordered(kept), sum(not is_fresh for _, _, is_fresh, _ in rows)


def _ordered(kept: list[Kept]) -> list[Kept]:
    places = {
        cell: place for place, cell in enumerate(in_order(one.cell for one in kept))
    }
    return sorted(kept, key=lambda one: places[one.cell])


def refresh(
    store: Store, entries: Sequence[Entry]
) -> tuple[list[Kept], MeasureError | None]:
    """Scan what changed: series with other nights, those whose commits follow each other otherwise now, and those of
    machines whose unchanged series say something else of their nights. Returns what is known of all series, and why it
    could not be kept. Raises MeasureError where the history cannot be read."""
    order = Order(entries)
    kept: dict[int, Kept] = {}
    changed: list[int] = []
    quiet: list[int] = []
    for number, is_quiet, is_fresh, found in store.scans():
        known = decoded(found) if found and is_fresh else None
        if known is not None and order.has(known.marks):
            kept[number] = known
            continue
        changed.append(number)
        if is_quiet:
            quiet.append(number)
    placebos = _placebos(store, kept, quiet)
    for one in kept.values():
        known_now = placebos.inflation(one.machine, one.cell, one.metric, one.by)
        if one.known != known_now or one.quiet != placebos.of(one.series):
            changed.append(one.series)
    failed: MeasureError | None = None
    for versions, documents in in_processes(
        partial(_part, store.url, order, placebos),
        list(parts(changed)),
        few=MANY // AT_ONCE,
    ):
        kept |= {number: decoded(text) for number, text in documents}
        try:
            if failed is None:
                store.keep_scans(
                    [
                        (number, versions[number], text.decode())
                        for number, text in documents
                    ]
                )
        except MeasureError as error:
            failed = error
    return _ordered(list(kept.values())), failed


def _placebos(store: Store, kept: dict[int, Kept], changed: Sequence[int]) -> Placebos:
    """Return what all series without a change say, of which these are read again."""
    known: dict[int, Quiet] = {
        one.series: one.quiet for one in kept.values() if one.quiet is not None
    }
    for part in parts(changed):
        known |= {line.key.number: quiet_of(line) for line in store.lines(part)}
    first = Placebos(known.values())
    for part in parts(
        [
            number
            for number in changed
            if number in known and first.is_counted(known[number])
        ]
    ):
        known |= {
            line.key.number: counted(known[line.key.number], line)
            for line in store.lines(part)
        }
    return Placebos(known.values())


def parts(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """So many of these series as are read together."""
    for first in range(0, len(numbers), AT_ONCE):
        yield numbers[first : first + AT_ONCE]


def in_processes(work: Callable[[P], R], wanted: Sequence[P], few: int) -> Iterator[R]:
    """Yield the work on each part, in order: here for a ``few`` parts, else by a process for each CPU."""
    processes = len(os.sched_getaffinity(0))
    if len(wanted) <= few or processes == 1:
        yield from map(work, wanted)
        return
    # Each begins anew: a fork would have the locks of other threads.
    ignore = (signal.SIGINT, signal.SIG_IGN)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, signal.signal, ignore) as pool:
        yield from pool.map(work, wanted)


def _part(
    url: sa.URL, order: Order, placebos: Placebos, numbers: Sequence[int]
) -> Scanned:
    store = Store(url)
    try:
        # Versions first: points that are newer than theirs are scanned once more.
        versions = store.versions(numbers)
        lines = [line for line in store.lines(numbers) if line.key.number in versions]
        return versions, [
            (line.key.number, msgspec.json.encode(looked(line, order, placebos)))
            for line in lines
        ]
    finally:
        store.close()


def told(store: Store, log: Log) -> tuple[History, list[Kept], MeasureError | None]:
    """Return all alerts after a scan of what changed, new ones written to the log and all to the database; and why
    something could not be written."""
    entries = log.entries()[0]
    kept, failed = refresh(store, entries)
    found = alerts_of(kept, entries, store.nights())
    try:
        log.append(*found.opened)
        if failed is None:
            store.keep_alerts(found.alerts)
    except MeasureError as error:
        failed = error
    return found, kept, failed


if (
    __name__ == "__main__"
):  # of a server: the address of the database comes where nobody sees its password
    refresh(Store(sys.stdin.read()), Log(Path(sys.argv[1])).entries()[0])
