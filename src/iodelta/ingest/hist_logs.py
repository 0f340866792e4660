"""fio's clat_hist logs: one row of bin counts per interval and direction, the difference from the row before.

Bins are those of ``trial.bin_edges``, in ns since 2.99 and in us before (1216 of them); coarseness c joins 2^c.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from iodelta.ingest.log_rows import LONGEST, Clock, matrix, origin, whole_rows
from iodelta.ingest.log_windows import Ints
from iodelta.ingest.logs import percentiles
from iodelta.ingest.model import Refusal, Run, unknown
from iodelta.ingest.tar import Readable
from iodelta.ingest.wording import clean
from iodelta.plural import plural
from iodelta.trial import (
    BINS,
    Direction,
    Finding,
    Histogram,
    Kind,
    Latency,
    Place,
    Quantity,
    bin_edges,
)
from iodelta.workload.fio_schema import US_BINS

_WIDTHS = {
    count >> coarse: (count, coarse)
    for count, coarse in product((BINS, US_BINS), range(7))
}
_FASTEST = 1e9
"""I/Os per second above which a row is garbage: fio 3.6 to 3.16 wrote garbage into the upper half of the bins."""
_MOST = 2**53
"""Counts and times of fio are below this."""
_LONGEST_ROW = 1 << 16
CHUNK = 1 << 20
"""Bytes that are parsed at once: fewer than for other logs, because a row has kilobytes."""
_HEAD = re.compile(rb"\d{1,19}, \d, \d{1,19},")
_FIRST_ZEROS, _LAST_ZEROS = re.compile(rb"(?: 0,)*+"), re.compile(rb"(?:0 ,)*+")
_KINDS: tuple[Kind, ...] = ("read", "write", "trim")


def is_hist_log(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` holds rows of fio's histogram counts: three numbers, and as many
    counts as one of fio's layouts has bins (1216 or 1856, divided by 2^log_hist_coarseness)."""
    if not head[:64].lstrip()[:1].isdigit():
        return False
    row = head[:_LONGEST_ROW].partition(b"\n")[0]
    return row.count(b",") - 2 in _WIDTHS and not row[:2000].translate(
        None, b"0123456789, \r\t"
    )


def summarise(name: str, head: bytes, rest: Readable) -> Run | Refusal:
    """Return the sum of a histogram log as a run with completion latency in ns, or a Refusal where no row is valid.

    ``head`` is the beginning of the file, ``rest`` the stream after it; errors that ``rest`` raises are passed on.
    Damaged rows and rows with impossible counts (fio 3.6 to 3.16) are omitted and counted in findings. Memory does not
    grow with the length. Format: ``write_hist_log`` in fio's HOWTO, and iolog.c.
    """
    place = Place(name, 1)
    width = head.partition(b"\n")[0].count(b",") - 2
    totals: dict[Kind, Ints] = {}
    ends: dict[Kind, int] = {}
    damaged = garbage = 0
    began: int | None = None
    clock = Clock()
    for block in whole_rows(head, rest, CHUNK):
        rows, before, lost = _rows(block, width)
        damaged += lost
        if began is None and len(rows):
            began = origin(rows[:, 0])
        if len(rows):
            clock.add(rows[:, 0])
        for number in np.unique(rows[:, 1]).tolist():
            kind, of_kind = _KINDS[number], rows[rows[:, 1] == number]
            times, counts = of_kind[:, 0] - (began or 0), of_kind[:, 3:]
            seconds = np.clip(
                np.diff(times, prepend=ends.get(kind, 0)) / 1000, 0.001, LONGEST
            )
            sound = counts.sum(axis=1, dtype=np.float64) <= _FASTEST * seconds
            garbage += int((~sound).sum())
            ends[kind] = int(times[-1])
            total = totals.setdefault(kind, np.zeros(width, dtype=np.int64))
            total[before : before + counts.shape[1]] += counts[sound].sum(axis=0)
            garbage += bool(total.max() > _MOST)
    if garbage:
        reason = (
            f"{plural(garbage, 'row')} of this histogram log with impossibly high counts: fio "
            "3.6 to 3.16 writes garbage "
            "into the upper half of the bins; use the percentiles of its JSON"
        )
        return Refusal(place, reason)
    if not totals:
        return Refusal(place, "a histogram log without a valid row")
    bins, coarse = _WIDTHS[width]
    findings = [
        Finding(
            "read.hist-end",
            "note",
            name,
            "fio does not log I/O after the last full interval",
        )
    ]
    findings += clock.findings(name)
    if damaged:
        findings.append(
            Finding(
                "read.damaged",
                "warning",
                name,
                f"{plural(damaged, 'row')} left out: cut or damaged",
            )
        )
    return Run(
        place=place,
        format="hist-log",
        jobname=clean(
            name.rpartition("/")[2].rpartition("!")[2].partition("_clat_hist")[0]
        ),
        directions=tuple(
            _direction(kind, totals[kind], ends[kind], bins, coarse)
            for kind in _KINDS
            if kind in totals
        ),
        labels={"log": "clat_hist"},
        findings=tuple(findings),
    )


def _rows(block: bytes, width: int) -> tuple[Ints, int, int]:
    """Return the valid rows of ``block``, shape (rows, 3 + bins); the number of bins omitted before these, which are
    zero in all rows; and the number of invalid rows."""
    rows = [row for row in block.replace(b"\r\n", b"\n").split(b"\n") if row.strip()]
    before, after = _zeros(rows, width)
    table, lost = (
        matrix(b"\n".join(_without(rows, before, after)), 3 + width - before - after),
        0,
    )
    if table is None:
        parts = [part for row in rows if (part := matrix(row, width + 3)) is not None]
        table, lost = (
            np.concatenate([np.zeros((0, width + 3), dtype=np.int64), *parts]),
            len(rows) - len(parts),
        )
        before = 0
    sound = table[(table[:, 1] < len(_KINDS)) & (table[:, 0] < _MOST)]
    return sound, before, lost + len(table) - len(sound)


def _zeros(rows: Sequence[bytes], width: int) -> tuple[int, int]:
    """Return how many of the first and of the last of ``width`` counts are zero in all ``rows``: most of them."""
    before = after = width - 1
    for row in rows:
        head = _HEAD.match(row)
        if head is None:
            return 0, 0
        # Fast if the row before had as many.
        if not row.startswith(b" 0," * before, head.end()):
            before = _count(_FIRST_ZEROS, row, head.end())
        after = min(after, width - 1 - before)
        if not row.endswith(b", 0" * after):
            after = _count(_LAST_ZEROS, row[::-1], 0)
    return before, after


def _count(zeros: re.Pattern[bytes], text: bytes, at: int) -> int:
    run = zeros.match(text, at)
    if not run:
        return 0
    return len(run[0]) // 3


def _without(rows: Sequence[bytes], before: int, after: int) -> Iterator[bytes]:
    """``rows`` without the given numbers of zeros before and after the counts."""
    for row in rows:
        head = _HEAD.match(row)
        at = head.end() if head else 0
        yield row[:at] + row[at + 3 * before : len(row) - 3 * after]


def _direction(kind: Kind, counts: Ints, end: int, bins: int, coarse: int) -> Direction:
    scale = 1.0 if bins == BINS else 1000.0
    fine = np.zeros(BINS, dtype=np.int64)
    fine[np.arange(len(counts)) << coarse] = counts
    ios = int(fine.sum())
    edges = [
        (bin_edges(low << coarse)[0], bin_edges(((low + 1) << coarse) - 1)[1])
        for low in range(len(counts))
    ]
    low = sum(
        count * edge for count, (edge, _) in zip(counts.tolist(), edges, strict=True)
    )
    high = sum(
        count * edge for count, (_, edge) in zip(counts.tolist(), edges, strict=True)
    )
    mean = Quantity(math.nan, 0.0, math.inf, "ns")
    if ios:
        mean = Quantity(
            (low + high) / 2 / ios * scale, low / ios * scale, high / ios * scale, "ns"
        )
    iops, histogram = unknown("1/s"), None
    if end:
        most = ios * 1000 / max(end - 1, 1)
        iops = Quantity(ios * 1000 / end, ios * 1000 / (end + 1), most, "1/s")
    is_exact = scale == 1 and not coarse
    if is_exact:
        histogram = Histogram.from_counts(dict(enumerate(fine.tolist())))
    return Direction(
        kind=kind,
        ios=ios,
        bytes=0,
        runtime_ms=end,
        iops=iops,
        bandwidth=unknown("B/s"),
        clat=Latency(
            count=ios,
            mean=mean,
            stddev=unknown("ns"),
            min=unknown("ns"),
            max=unknown("ns"),
            percentiles=percentiles(counts, edges, (scale, scale)),
            histogram=histogram,
        ),
    )
