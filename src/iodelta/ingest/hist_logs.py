"""fio's clat_hist logs: a row of bin counts per interval and direction, each the difference to the row before.

Bins are those of ``trial.bin_edges``, in ns since 2.99 and in us before (1216 of them); coarseness c joins 2^c.
"""

from __future__ import annotations

import math

import numpy as np

from iodelta.ingest.log_rows import LONGEST, Ints, matrix, whole_rows
from iodelta.ingest.logs import percentiles
from iodelta.ingest.model import Refusal, Run, unknown
from iodelta.ingest.tar import Readable
from iodelta.ingest.wording import clean
from iodelta.trial import BINS, Direction, Finding, Histogram, Kind, Latency, Place, Quantity, bin_edges
from iodelta.workload.fio_schema import US_BINS

_WIDTHS = {count >> coarse: (count, coarse) for count in (BINS, US_BINS) for coarse in range(7)}
_FASTEST = 1e9
"""I/Os per second beyond which a row is garbage. fio 3.6 to 3.16 wrote some into the upper half of the bins."""
_MOST = 2**53
"""No bin's count and no time of fio reaches this."""
_LONGEST_ROW = 1 << 16
_KINDS: tuple[Kind, ...] = ("read", "write", "trim")


def is_hist_log(head: bytes) -> bool:
    """Whether a file that begins with ``head`` holds rows of histogram counts."""
    if not head[:64].lstrip()[:1].isdigit():
        return False
    row = head[:_LONGEST_ROW].partition(b"\n")[0]
    return row.count(b",") - 2 in _WIDTHS and not row[:2000].translate(None, b"0123456789, \r\t")


def summarise(name: str, head: bytes, rest: Readable) -> Run | Refusal:
    """Add up a log to its end. What ``rest`` raises passes through; a damaged row is left out and counted."""
    place = Place(name, 1)
    width = head.partition(b"\n")[0].count(b",") - 2
    totals: dict[Kind, Ints] = {}
    ends: dict[Kind, int] = {}
    damaged = garbage = 0
    for block in whole_rows(head, rest):
        rows, lost = _rows(block, width)
        damaged += lost
        for number in np.unique(rows[:, 1]).tolist():
            kind, own = _KINDS[number], rows[rows[:, 1] == number]
            times, counts = own[:, 0], own[:, 3:]
            seconds = np.clip(np.diff(times, prepend=ends.get(kind, 0)) / 1000, 0.001, LONGEST)
            sound = counts.sum(axis=1, dtype=np.float64) <= _FASTEST * seconds
            garbage += int((~sound).sum())
            ends[kind] = int(times[-1])
            totals[kind] = totals.get(kind, np.zeros(width, dtype=np.int64)) + counts[sound].sum(axis=0)
            garbage += bool(totals[kind].max() > _MOST)
    if garbage:
        reason = (
            f"{garbage} rows of this histogram log hold counts that no device reaches: fio 3.6 to 3.16 writes garbage "
            "into the upper half of the bins; use the percentiles of its JSON"
        )
        return Refusal(place, reason)
    if not totals:
        return Refusal(place, "a histogram log without a sound row")
    bins, coarse = _WIDTHS[width]
    findings = [Finding("read.hist-end", "note", name, "fio does not log what came after the last full interval")]
    if damaged:
        findings.append(Finding("read.damaged", "warning", name, f"{damaged} rows are cut or damaged and left out"))
    return Run(
        place=place,
        format="hist-log",
        jobname=clean(name.rpartition("/")[2].rpartition("!")[2].partition("_clat_hist")[0]),
        directions=tuple(_direction(kind, totals[kind], ends[kind], bins, coarse) for kind in _KINDS if kind in totals),
        labels={"log": "clat_hist"},
        findings=tuple(findings),
    )


def _rows(block: bytes, width: int) -> tuple[Ints, int]:
    """The sound rows of ``block``, shape (rows, width + 3), and how many others there are."""
    found, lost = matrix(block, width + 3), 0
    if found is None:
        rows = [row for row in block.split(b"\n") if row.strip()]
        parts = [part for row in rows if (part := matrix(row, width + 3)) is not None]
        found, lost = np.concatenate([np.zeros((0, width + 3), dtype=np.int64), *parts]), len(rows) - len(parts)
    sound = found[(found[:, 1] < len(_KINDS)) & (found[:, 0] < _MOST)]
    return sound, lost + len(found) - len(sound)


def _direction(kind: Kind, counts: Ints, end: int, bins: int, coarse: int) -> Direction:
    scale = 1.0 if bins == BINS else 1000.0
    fine = np.zeros(BINS, dtype=np.int64)
    fine[np.arange(len(counts)) << coarse] = counts
    ios = int(fine.sum())
    edges = [(bin_edges(low << coarse)[0], bin_edges(((low + 1) << coarse) - 1)[1]) for low in range(len(counts))]
    low = sum(count * edge for count, (edge, _) in zip(counts.tolist(), edges, strict=True))
    high = sum(count * edge for count, (_, edge) in zip(counts.tolist(), edges, strict=True))
    mean = Quantity(math.nan, 0.0, math.inf, "ns")
    if ios:
        mean = Quantity((low + high) / 2 / ios * scale, low / ios * scale, high / ios * scale, "ns")
    exact = scale == 1 and not coarse
    return Direction(
        kind=kind,
        ios=ios,
        bytes=0,
        runtime_ms=end,
        iops=Quantity(ios * 1000 / end, ios * 1000 / (end + 1), ios * 1000 / max(end - 1, 1), "1/s")
        if end
        else unknown("1/s"),
        bandwidth=unknown("B/s"),
        clat=Latency(
            count=ios,
            mean=mean,
            stddev=unknown("ns"),
            min=unknown("ns"),
            max=unknown("ns"),
            percentiles=percentiles(counts, edges, (scale, scale)),
            histogram=Histogram.from_counts(dict(enumerate(fine.tolist()))) if exact else None,
        ),
    )
