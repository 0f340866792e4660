"""fio's bw, iops, lat, clat and slat logs, streamed: a gigabyte in seconds, in constant memory.

A row is ``time ms, value, direction, block size`` and, by version and option, an offset, a priority, an issue time;
with log_window_value=both (3.37) a maximum follows the value. Rows are single I/Os, or averages over windows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from iodelta.ingest.log_lines import line
from iodelta.ingest.log_names import jobname, number_of, what, without_kind
from iodelta.ingest.log_rows import Side, Totals, chunks
from iodelta.ingest.log_windows import Ints, Windows
from iodelta.ingest.model import Line, Logged, Refusal, Run, unknown
from iodelta.ingest.numbers import Version
from iodelta.ingest.tar import Readable
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

Rows = Literal["single", "averages", "ones", "unclear"]
"""The meaning of the rows of a log: single I/Os; averages over windows; averages of single I/Os, each of which fio
counts as one I/O per second (2.12 and later, in averaged and compressed logs); or unknown."""

_ROW = re.compile(
    rb"\s*\d{1,19}, ?\d{1,20}, ?\d{1,20}, ?\d{1,20}(?:, ?(?:0x)?[0-9a-f]{1,20}){0,4}\s*"
)
_KINDS: tuple[Kind, ...] = ("read", "write", "trim")
_PERCENTS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)

_PER_IO = (2, 10)
"""Since this fio a bw or iops log without log_avg_msec has a row per I/O; before, one per window of bwavgtime."""
_USUAL_WINDOW = 490
"""Milliseconds: bwavgtime is 500 unless given, and a window ends with the first I/O after it."""
_AGREE = 1.5
"""Factor up to which bytes from values and bytes from block sizes agree; then both readings are right."""


def is_log(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` holds the rows of a fio log: time in ms, value, direction, block
    size in bytes, and up to three further columns."""
    if re.search(rb"\r(?!\n)", head[:_LOOK].rstrip()):
        return False  # a bare carriage return would join all rows
    lines = head[:_LOOK].splitlines()[:_ROWS_LOOKED_AT]
    rows = list(filter(bytes.strip, lines))
    # The last row is cut, by _LOOK or by the program that wrote the file.
    is_cut = len(head) >= _LOOK or not head.endswith((b"\n", b"\r"))
    if is_cut and len(rows) > 1:
        rows.pop()
    widths = {row.count(b",") for row in rows}
    return len(widths) == 1 and all(map(_ROW.fullmatch, rows))


_LOOK = 8192
"""Bytes of a log by which it is recognised."""


_ROWS_LOOKED_AT = 20


class Summary:
    """The summary of a log. The unit of its latencies follows from the fio version of the report next to it, the
    meaning of its rows often only from the iops log of the same job."""

    def __init__(
        self,
        place: Place,
        of: Logged,
        sides: dict[Kind, Side],
        totals: Totals,
        columns: int,
        sure: bool,
    ) -> None:
        self.place = place
        self._of = of
        self._sides = sides
        self._damaged = totals.damaged
        self._began = totals.began
        self._clock = totals.clock
        self._columns = columns
        self._per_io = sure
        """Whether the columns after the fourth are those of a fio version that writes a row per I/O."""
        self._sized = any(side.bytes for side in sides.values())

    @property
    def job(self) -> str | None:
        """Return a name that all logs of a job share."""
        return without_kind(self.place.file)

    def rows_seen(self) -> Rows | None:
        """Return the meaning of the rows of this log and of the bw log of the same job; None if this is not an iops
        log.
        """
        if self._of != "iops":
            return None
        low = min(side.low for side in self._sides.values())
        high = max(side.high for side in self._sides.values())
        if self._sized:
            return "single" if high <= 1 else "averages"
        return "ones" if low == high == 1 else "averages"

    def run(
        self,
        version: Version | None,
        fio_version: str | None,
        beside: Rows | None = None,
    ) -> Run:
        """Return the log as a run. ``version`` is that of the fio reports next to it, None without reports; ``beside``
        the meaning of rows that the iops log of the same job shows."""
        rows = self._rows(version, beside)
        is_sure = version is not None or beside is not None
        # Least and most ns in the unit of a log's latencies: fio logs ns since 2.99, us before.
        if version is None:
            scales = 1.0, 1000.0
        else:
            scales = (1.0, 1.0) if version >= (2, 99) else (1000.0, 1000.0)
        series: dict[str, tuple[float, ...]] = {}
        directions = []
        for kind, side in self._sides.items():
            directions.append(self._direction(kind, side, rows, version, scales))
            series |= self._series(kind, side, rows, version, scales[0])
        number = number_of(self.place.file)
        job = {"job": number} if number else {}
        return Run(
            place=self.place,
            format="log",
            jobname=jobname(self.place.file),
            directions=tuple(directions),
            fio_version=fio_version,
            series=series,
            lines=tuple(self._lines(rows, scales[0])),
            labels={"log": self._of, **job},
            findings=tuple(self._findings(rows, version, sure=is_sure)),
        )

    def _rows(self, version: Version | None, beside: Rows | None) -> Rows:
        if self._of.endswith("lat"):
            return "single" if self._sized else "averages"
        if not self._sized:
            return beside or self.rows_seen() or "averages"
        if version is not None:
            return "single" if version >= _PER_IO else "averages"
        return self.rows_seen() or beside or self._rows_by_value()

    def _rows_by_value(self) -> Rows:
        """For a lone bw log with block sizes. Single I/Os have rates far above that of the job, averages do not."""
        sides = list(self._sides.values())
        windows = [side.windows for side in sides if side.windows is not None]
        if self._per_io or len(windows) < len(sides):
            return "single"
        if any(window.close() > 0.05 for window in windows):
            return "single"
        by_value = 1.024 * sum(window.area_by_io() for window in windows)
        by_size = sum(side.bytes for side in sides)
        if by_value <= _AGREE * by_size:
            return "single"
        narrowest = min(window.narrowest() for window in windows)
        # A fifth column may be the offset 0 of averages, or a priority.
        is_clear = self._columns <= 4 and narrowest >= _USUAL_WINDOW
        return "averages" if is_clear else "unclear"

    def _findings(
        self, rows: Rows, version: Version | None, *, sure: bool
    ) -> Iterator[Finding]:
        if self._damaged:
            text = f"{plural(self._damaged, 'row')} left out: cut or damaged"
            yield self._finding("read.damaged", "warning", text)
        yield from self._clock.findings(self.place.file)
        if self._of.endswith("lat") and version is None:
            text = "no file next to this log names the fio that wrote it: its latencies are ns, or us of a fio before 2.99"
            remedy = "put fio's report next to the log"
            yield self._finding("read.unit-unknown", "warning", text, remedy)
        yield from self._findings_of_rows(rows, sure=sure)

    def _findings_of_rows(self, rows: Rows, *, sure: bool) -> Iterator[Finding]:
        """Findings about the meaning of the rows; ``sure``: another file shows it."""
        is_guess = rows == "averages" and self._sized and not sure
        if rows == "unclear" or (is_guess and self._of == "bw"):
            text = "it is unknown whether rows are single I/Os or averages of a fio before 2.10"
            remedy = "put fio's own report or the iops log of the same job next to it"
            yield self._finding("read.log-unclear", "warning", text, remedy)
        if rows == "ones":
            text = "every row of the iops log is 1: fio averaged single I/Os (log_compression), or did one I/O a second"
            remedy = "use fio's own report"
            yield self._finding("read.log-ones", "warning", text, remedy)
        if rows == "averages":
            for kind, side in self._sides.items():
                width = side.windows.width() if side.windows else 0.0
                if self._of.endswith("lat"):
                    text_ = f"{kind}: rows are means over {width:g} ms: no percentiles, and a mean of unweighted means"
                    yield self._finding("read.log-averaged", "note", text_)
                else:
                    text_ = (
                        f"{kind}: fio does not log I/O after the last full {width:g} ms"
                    )
                    yield self._finding("read.log-end", "note", text_)

    def _finding(
        self,
        rule: str,
        severity: Literal["note", "warning"],
        text: str,
        remedy: str = "",
    ) -> Finding:
        return Finding(rule, severity, self.place.file, text, remedy)

    def _direction(
        self,
        kind: Kind,
        side: Side,
        rows: Rows,
        version: Version | None,
        scales: tuple[float, float],
    ) -> Direction:
        iops, bandwidth, ios, size = unknown("1/s"), unknown("B/s"), 0, 0
        if rows == "single":
            ios, size = side.rows, side.bytes
            iops = _over(ios, side.last, "1/s")
            bandwidth = _over(size, side.last, "B/s")
        elif rows == "averages" and self._of == "iops":
            iops = self._mean(side, version, 1, "1/s")
        elif rows == "averages" and self._of == "bw":
            bandwidth = self._mean(side, version, 1024, "B/s")
        lat = self._latency(side, rows, scales) if self._of.endswith("lat") else None
        return Direction(
            kind=kind,
            ios=ios,
            bytes=size,
            runtime_ms=side.last,
            iops=iops,
            bandwidth=bandwidth,
            lat=lat if self._of == "lat" else None,
            clat=lat if self._of == "clat" else None,
            slat=lat if self._of == "slat" else None,
        )

    def _mean(
        self, side: Side, version: Version | None, scale: int, unit: str
    ) -> Quantity:
        """Return the rate over the whole log. fio truncated each value to an integer, or rounded it if it averaged
        several.
        """
        if side.windows is None or not side.last:
            return unknown(unit)
        width, area = side.windows.width(), self._area(side.windows, version)
        span = max(float(side.last), width)
        covered, spare = side.windows.milliseconds() / span, 1 / max(width, 1.0)
        below, above = (0.0, 1.0) if self._sized else (0.5, 1.5)
        low = max(area.low / span * (1 - spare) - below * covered, 0.0)
        high = area.high / span * (1 + spare) + above * covered
        return Quantity(area.value / span * scale, low * scale, high * scale, unit)

    def _area(self, windows: Windows, version: Version | None) -> Quantity:
        """Value times milliseconds. How fio sampled follows from its version, from block sizes of averages (up to 2.9),
        or from a further column (3.18 and later)."""
        by_io, by_clock = windows.area_by_io(), windows.area_by_clock()
        is_old = version is not None and version < _PER_IO
        if self._sized or is_old:
            return Quantity.exact(by_io, "ms")
        if self._columns > 4 or version is not None:
            return Quantity.exact(by_clock, "ms")
        return Quantity(by_clock, min(by_io, by_clock), max(by_io, by_clock), "ms")

    def _latency(self, side: Side, rows: Rows, scales: tuple[float, float]) -> Latency:
        low, high = scales
        # fio before 2.99 cut latencies to whole microseconds.
        spare = 0.0 if high == 1 else high
        mean = side.total / side.rows
        # Rows do not tell how many I/Os they average: one row may contain them all.
        if rows == "averages":
            between = Quantity(mean * low, side.low * low, (side.high + 1) * high, "ns")
            return Latency(0, between, *(unknown("ns"),) * 3)

        def scaled(value: float, spare: float) -> Quantity:
            return Quantity(value * low, value * low, value * high + spare, "ns")

        histogram = None
        if high == 1:
            histogram = Histogram.from_counts(dict(enumerate(side.bins.tolist())))
        edges = [bin_edges(index) for index in range(BINS)]
        return Latency(
            count=side.rows,
            mean=scaled(mean, spare),
            stddev=scaled(_deviation(side, mean), 0.0),
            min=scaled(side.low, spare),
            max=scaled(side.high, spare),
            percentiles=percentiles(side.bins, edges, scales),
            histogram=histogram,
        )

    def _lines(self, rows: Rows, scale: float) -> Iterator[Line]:
        """Yield the lines of a chart; none if the meaning of the rows is unknown."""
        is_single = rows == "single"
        bytes_of_bw = 1 if is_single else 1024
        units = {"bw": ("B/s", bytes_of_bw), "iops": ("1/s", 1)}
        unit, size = units.get(self._of, ("ns", scale))
        for kind, side in self._sides.items():
            level, over = line(side.drawn, self._of, single=is_single)
            if level is None or rows in ("ones", "unclear"):
                continue
            data = level.scaled(size).tobytes()
            yield Line(
                kind, self._of, unit, level.width, side.rows, data, over, self._began
            )

    def _series(
        self, kind: Kind, side: Side, rows: Rows, version: Version | None, scale: float
    ) -> dict[str, tuple[float, ...]]:
        """Values per second: sums of single I/Os, or means of the windows that end in it; zero without rows."""
        seconds = len(side.counts)
        series: dict[str, tuple[float, ...]] = {}
        if rows == "single":
            series[f"{kind}.iops"] = tuple(side.counts.astype(float).tolist())
        if self._of.endswith("lat"):
            gaps = np.full(seconds, np.nan)
            means = np.divide(side.sums, side.counts, out=gaps, where=side.counts > 0)
            series[f"{kind}.{self._of}"] = tuple((means * scale).tolist())
        elif rows == "averages" and side.windows:
            series |= self._rates(kind, side, side.windows, version)
        return series

    def _rates(
        self, kind: Kind, side: Side, windows: Windows, version: Version | None
    ) -> dict[str, tuple[float, ...]]:
        """Return the rate in each second; empty if windows are longer than a second."""
        if not 0 < windows.width() <= 1000 or not side.total:
            return {}
        window = self._area(windows, version).value / side.total
        unit = 1024 if self._of == "bw" else 1
        values = side.sums * (window / 1000) * unit
        return {f"{kind}.{self._of}": tuple(values.tolist())}


def _deviation(side: Side, mean: float) -> float:
    """Return the standard deviation of the rows, in the log's unit."""
    variance = max(side.squares / side.rows - mean * mean, 0.0)
    return math.sqrt(variance * side.rows / max(side.rows - 1, 1))


def _over(amount: float, span: int, unit: str) -> Quantity:
    """``amount`` per second over ``span`` ms, which is exact to 1 ms."""
    if span <= 0:
        return unknown(unit)
    least, most = amount * 1000 / (span + 1), amount * 1000 / max(span - 1, 1)
    return Quantity(amount * 1000 / span, least, most, unit)


def percentiles(
    counts: Ints, edges: Sequence[tuple[int, int]], scales: tuple[float, float]
) -> dict[float, Quantity]:
    """Percentile (in %) to latency in ns, from ``counts`` in bins with ``edges``, both of shape (bins,). Empty without
    counts.

    fio's own rule (``calc_clat_percentiles`` in stat.c): the first bin at which the cumulated count reaches the share.
    ``scales`` convert the units of the edges to ns, at least and at most. The last bin has no upper end.
    """
    total = np.cumsum(counts)
    if not len(total) or not total[-1]:
        return {}
    quantiles = {}
    for percent in _PERCENTS:
        index = int(np.searchsorted(total, percent / 100 * float(total[-1])))
        low, high = edges[index]
        # The last bin has no upper end.
        most = high * scales[1] if index < len(edges) - 1 else math.inf
        quantiles[float(percent)] = Quantity(
            (low + high) / 2 * scales[0], low * scales[0], most, "ns"
        )
    return quantiles


def summarise(name: str, head: bytes, rest: Readable) -> Summary | Refusal:
    """Return the summary of a bw, iops, lat, clat or slat log (``name`` says which), or a Refusal where the name or
    the rows do not fit.

    ``head`` is the beginning of the file, ``rest`` the stream after it; errors that ``rest`` raises are passed on.
    Memory does not grow with the length.
    """
    of = what(name)
    if of is None:
        reason = "a fio log whose name does not show what it contains: it should end in _bw, _iops, _lat, _clat or _slat"
        return Refusal(Place(name), reason)
    totals = Totals(latencies=of.endswith("lat"))
    # 1 when the third column is a maximum and the fourth the direction (log_window_value=both).
    rows = _split_rows(head)
    whole = rows[:-1] or rows
    thirds, fourths = _integers(whole, 2), _integers(whole, 3)
    is_direction = max(thirds, default=0) <= 2
    shift = 0 if is_direction or max(fourths, default=9) > 2 else 1
    for chunk in chunks(head, rest, shift):
        totals.add(chunk)
    sides = {_KINDS[number]: side for number, side in totals.sides().items()}
    if not sides:
        return Refusal(Place(name), "a fio log without a valid row")
    columns = head[:8192].lstrip().partition(b"\n")[0].count(b",") + 1 - shift
    return Summary(
        Place(name, 1),
        of,
        sides,
        totals,
        columns,
        columns > 5 or _has_offsets(head, 4 + shift),
    )


def _has_offsets(head: bytes, column: int) -> bool:
    """Return whether a column contains more than the 0 and 1 of priorities; the offset of an average is 0."""
    rows = _split_rows(head)[:-1]
    values = {row[column].strip() for row in rows if len(row) > column}
    return not values <= {b"0", b"1"}


def _split_rows(head: bytes) -> list[list[bytes]]:
    """Return the values of the first rows; the last may be cut."""
    return [row.split(b",") for row in head[:_LOOK].splitlines()[:_ROWS_LOOKED_AT]]


def _integers(rows: Sequence[Sequence[bytes]], column: int) -> list[int]:
    """Return the integers in a column, from rows with at least five columns."""
    texts = (row[column].strip() for row in rows if len(row) > 4)
    return list(map(int, filter(bytes.isdigit, texts)))
