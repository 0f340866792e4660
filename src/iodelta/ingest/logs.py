"""fio's bw, iops, lat, clat and slat logs, streamed: a gigabyte in seconds, in constant memory.

A row is ``time ms, value, direction, block size`` and, by version and option, an offset, a priority, an issue time;
with log_window_value=both (3.37) a maximum follows the value. Rows are single I/Os, or averages over windows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

from iodelta.ingest.log_rows import Ints, Side, Totals, chunks
from iodelta.ingest.model import Refusal, Run, unknown
from iodelta.ingest.numbers import Version
from iodelta.ingest.tar import Readable
from iodelta.ingest.wording import clean
from iodelta.trial import BINS, Direction, Finding, Histogram, Kind, Latency, Place, Quantity, bin_edges

Of = Literal["bw", "iops", "lat", "clat", "slat"]

_ROW = re.compile(rb"\s*\d{1,19}, ?\d{1,20}, ?\d{1,20}, ?\d{1,20}(?:, ?(?:0x)?[0-9a-f]{1,20}){0,4}\s*")
_NAME = re.compile(r"(?:^|[_./!-])(bw|iops|slat|clat|lat)(?=\.|_|$)(?!.*_hist)")
_NUMBER = re.compile(r"\.(\d{1,6})\.log")
_KINDS: tuple[Kind, ...] = ("read", "write", "trim")
_PERCENTS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)


def is_log(head: bytes) -> bool:
    """Whether a file that begins with ``head`` holds the rows of a fio log."""
    rows = [row for row in head[:8192].splitlines()[:20] if row.strip()]
    if len(head) >= 8192 and len(rows) > 1:
        rows.pop()  # it may be cut by the look
    return bool(rows) and all(_ROW.fullmatch(row) for row in rows) and len({row.count(b",") for row in rows}) == 1


def what(name: str) -> Of | None:
    """What a log of this name holds: fio says it nowhere else."""
    found = _NAME.findall(name.rpartition("/")[2])
    return found[-1] if found else None


class Summary:
    """What a log holds. Which unit its latencies have only its companion's version tells."""

    def __init__(self, place: Place, of: Of, sides: dict[Kind, Side], damaged: int) -> None:
        self.place = place
        self._of = of
        self._sides = sides
        self._damaged = damaged

    def run(self, version: Version | None, fio_version: str | None) -> Run:
        """As a run; ``version`` of the fio that wrote the files beside it, None when there are none."""
        findings: list[Finding] = []
        if self._damaged:
            text = f"{self._damaged} rows are cut or damaged and were left out"
            findings.append(self._finding("read.damaged", "warning", text))
        scales = (1.0, 1000.0) if version is None else ((1.0, 1.0) if version >= (2, 99) else (1000.0, 1000.0))
        if self._of.endswith("lat") and version is None:
            text = "nothing beside this log says which fio wrote it: its latencies are ns, or us of a fio before 2.99"
            findings.append(self._finding("read.unit-unknown", "warning", text, "put fio's own report beside the log"))
        series: dict[str, tuple[float, ...]] = {}
        directions = []
        for kind, side in self._sides.items():
            width = side.window()
            directions.append(self._direction(kind, side, width, scales))
            series |= self._series(kind, side, width, scales[0])
            if width and self._of.endswith("lat"):
                text = f"{kind}: rows are means over {width:g} ms: no percentiles, and a mean of unweighted means"
                findings.append(self._finding("read.log-averaged", "note", text))
            elif width:
                text = f"{kind}: fio does not log what came after the last whole {width:g} ms"
                findings.append(self._finding("read.log-end", "note", text))
        number = _NUMBER.search(self.place.file)
        name = self.place.file.rpartition("/")[2].rpartition("!")[2]
        return Run(
            place=self.place,
            format="log",
            jobname=clean(re.sub(r"_(?:bw|iops|slat|clat|lat)(?:\.\d{1,6})?\.log.{0,20}$", "", name)),
            directions=tuple(directions),
            fio_version=fio_version,
            series=series,
            labels={"log": self._of} | ({"job": number[1]} if number else {}),
            findings=tuple(findings),
        )

    def _finding(self, rule: str, severity: Literal["note", "warning"], text: str, remedy: str = "") -> Finding:
        return Finding(rule, severity, self.place.file, text, remedy)

    def _direction(self, kind: Kind, side: Side, width: float, scales: tuple[float, float]) -> Direction:
        span = side.last
        iops, bandwidth, ios, size = unknown("1/s"), unknown("B/s"), 0, 0
        if not width:
            ios, size = side.rows, side.bytes
            if span > 0:
                iops = Quantity(ios * 1000 / span, ios * 1000 / (span + 1), ios * 1000 / max(span - 1, 1), "1/s")
                bandwidth = Quantity(
                    size * 1000 / span, size * 1000 / (span + 1), size * 1000 / max(span - 1, 1), "B/s"
                )
        elif span > 0 and self._of in ("bw", "iops"):
            mean, spare = side.total * width / max(span, width), 1 / width
            mean_rate = Quantity(mean, mean * (1 - spare), (mean + 1) * (1 + spare), "1/s")
            if self._of == "iops":
                iops = mean_rate
            else:
                bandwidth = Quantity(mean * 1024, mean_rate.low * 1024, mean_rate.high * 1024, "B/s")
        lat = self._latency(side, width, scales) if self._of.endswith("lat") else None
        return Direction(
            kind=kind,
            ios=ios,
            bytes=size,
            runtime_ms=span,
            iops=iops,
            bandwidth=bandwidth,
            lat=lat if self._of == "lat" else None,
            clat=lat if self._of == "clat" else None,
            slat=lat if self._of == "slat" else None,
        )

    def _latency(self, side: Side, width: float, scales: tuple[float, float]) -> Latency:
        low, high = scales
        spare = 0.0 if high == 1 else high
        mean = side.total / side.rows
        if width:  # how many I/Os are behind each row is not said: all may be behind one
            between = Quantity(mean * low, side.low * low, (side.high + 1) * high, "ns")
            return Latency(0, between, *(unknown("ns"),) * 3)
        variance = max(side.squares / side.rows - mean * mean, 0.0) * side.rows / max(side.rows - 1, 1)
        return Latency(
            count=side.rows,
            mean=Quantity(mean * low, mean * low, mean * high + spare, "ns"),
            stddev=Quantity(math.sqrt(variance) * low, math.sqrt(variance) * low, math.sqrt(variance) * high, "ns"),
            min=Quantity(side.low * low, side.low * low, side.low * high + spare, "ns"),
            max=Quantity(side.high * low, side.high * low, side.high * high + spare, "ns"),
            percentiles=percentiles(side.bins, [bin_edges(index) for index in range(BINS)], scales),
            histogram=Histogram.from_counts(dict(enumerate(side.bins.tolist()))) if high == 1 else None,
        )

    def _series(self, kind: Kind, side: Side, width: float, scale: float) -> dict[str, tuple[float, ...]]:
        """Per second: sums of single I/Os, or means of the windows that end in it, nothing counted as zero."""
        seconds = len(side.counts)
        found: dict[str, tuple[float, ...]] = {}
        if not width:
            found[f"{kind}.iops"] = tuple(side.counts.astype(float).tolist())
        if self._of.endswith("lat"):
            means = np.divide(side.sums, side.counts, out=np.full(seconds, np.nan), where=side.counts > 0)
            found[f"{kind}.{self._of}"] = tuple((means * scale).tolist())
        elif width and width <= 1000:
            values = side.sums * (width / 1000) * (1024 if self._of == "bw" else 1)
            found[f"{kind}.{self._of}"] = tuple(values.tolist())
        return found


def percentiles(counts: Ints, edges: Sequence[tuple[int, int]], scales: tuple[float, float]) -> dict[float, Quantity]:
    """fio's own rule over counts of bins with ``edges``: the first at which the cumulated count reaches the share."""
    total = np.cumsum(counts)
    if not len(total) or not total[-1]:
        return {}
    found = {}
    for percent in _PERCENTS:
        index = int(np.searchsorted(total, percent / 100 * float(total[-1])))
        low, high = edges[index]
        most = high * scales[1] if index < len(edges) - 1 else math.inf  # the last bin takes all that is longer
        found[float(percent)] = Quantity((low + high) / 2 * scales[0], low * scales[0], most, "ns")
    return found


def summarise(name: str, head: bytes, rest: Readable) -> Summary | Refusal:
    """Read a log to its end. What ``rest`` raises passes through."""
    of = what(name)
    if of is None:
        reason = "a fio log, but its name does not say of what: it should end in _bw, _iops, _lat, _clat or _slat"
        return Refusal(Place(name), reason)
    totals = Totals(latencies=of.endswith("lat"))
    for chunk in chunks(head, rest, _extra_column(head)):
        totals.add(chunk)
    sides = {_KINDS[number]: side for number, side in totals.sides().items()}
    if not sides:
        return Refusal(Place(name), "a fio log without a sound row")
    return Summary(Place(name, 1), of, sides, totals.damaged)


def _extra_column(head: bytes) -> int:
    """1 when the third column is a maximum and the fourth the direction (log_window_value=both)."""
    rows = [row.split(b",") for row in head[:8192].splitlines()[:20]]
    thirds = [int(row[2]) for row in rows[:-1] or rows if len(row) > 4 and row[2].strip().isdigit()]
    fourths = [int(row[3]) for row in rows[:-1] or rows if len(row) > 4 and row[3].strip().isdigit()]
    return 1 if thirds and max(thirds) > 2 and max(fourths, default=9) <= 2 else 0
