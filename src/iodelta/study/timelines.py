"""fio's logs over time, grouped into charts: several runs, or the sides of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from iodelta.grouping import grouped
from iodelta.ingest import Run
from iodelta.ingest.log_names import number_of, without_kind
from iodelta.ingest.model import Line, Logged
from iodelta.stats.pyramid import Level
from iodelta.study.runs import shared_folder
from iodelta.trial import Kind

TOGETHER = 7
"""Lines in one chart: as many as there are colours."""

SIDES = 14
"""Lines in one chart of a comparison, where a side may have several."""

WHOLE = 1 << 20
"""More buckets than any line has."""

KINDS: tuple[Did, ...] = ("read", "write", "trim", "total")
ORDER: tuple[Logged, ...] = ("bw", "iops", "lat", "clat", "slat")
UNITS = {"1/s": "IOPS"}

Axis = Literal["time", "written"]
"""What a line runs over: seconds, or bytes written."""

Did = Kind | Literal["total"]
"""What the lines of a chart did; in total: reads and writes together."""


class Point(NamedTuple):
    """One bucket of a line; values are nan where nothing was logged, or nothing is known."""

    x: float
    """Middle of the bucket: seconds, or bytes written."""
    mean: float
    low: float
    high: float


class Track(NamedTuple):
    """One log in a chart: its name, whose colour it has, and where its time begins among the others' (seconds)."""

    name: str
    side: str
    line: Line
    offset: float = 0.0

    def level(self, most: int) -> Level:
        """In at most ``most`` buckets."""
        return _level(self.line).within(most)

    def points(self, most: int, axis: Axis = "time") -> list[Point]:
        """At most ``most``, in order."""
        level = self.level(most)
        if axis == "written":
            done = level.area / 1000
            places = np.cumsum(done) - done / 2
        else:
            places = (
                self.offset + (np.arange(len(level.weight)) + 0.5) * level.width / 1000
            )
        mean, low, high, _ = level.scaled(1.0)
        return [
            Point(*map(float, each))
            for each in zip(places, mean, low, high, strict=True)
        ]

    def whole(self) -> Point:
        """Return all of it: the mean over time (of latencies, over I/Os or time), least and greatest; ``x`` is its
        length.
        """
        level = self.level(WHOLE)
        weight = float(level.weight.sum())
        mean = float(level.area.sum()) / weight if weight else math.nan
        seconds = len(level.weight) * level.width / 1000
        known = np.isfinite(level.low)
        if not known.any():
            return Point(seconds, mean, math.nan, math.nan)
        low, high = level.low[known].min(), level.high[known].max()
        return Point(seconds, mean, float(low), float(high))

    def weighs_time(self) -> bool:
        """Return whether its means are over time, as of windows that do not say how many I/Os they hold; else over
        rows.
        """
        return float(self.level(WHOLE).weight.sum()) != self.line.rows

    def idle(self) -> float:
        """Seconds of buckets in which nothing at all was done."""
        level = self.level(WHOLE)
        return float(level.weight[(level.weight > 0) & (level.high == 0)].sum()) / 1000


class Timeline(NamedTuple):
    """What one chart shows. ``part`` says which of several: the job's name, or which of too many lines."""

    kind: Did
    of: Logged
    unit: str
    part: str
    tracks: tuple[Track, ...]
    axis: Axis = "time"
    aligned: bool = True
    """Whether every line begins at 0 for itself; else they stand as the clock says."""


class _Log(NamedTuple):
    """A log with its name below its side's folder, apart into job and number."""

    side: str
    job: str
    number: str
    run: Run

    @property
    def name(self) -> str:
        return f"{self.job} {self.number}".strip()


def timelines(sides: Mapping[str, Iterable[Run]]) -> tuple[Timeline, ...]:
    """Return the charts of fio's logs.

    Of one side, logs of one job share a chart; if each job has only one log, all logs do. Of several sides, logs with
    the same name share a chart; if no name is the same, all logs do.
    """
    logs = list(chain.from_iterable(_named(side, runs) for side, runs in sides.items()))
    several = len(sides) > 1
    by_job = _shared(logs) if several else _clones(logs)
    charts: list[Timeline] = []
    for of in ORDER:
        of_kind = [log for log in logs if log.run.lines[0].of == of]
        for job, group in _grouped(of_kind, by_job=by_job):
            for kind in KINDS:
                tracks = _tracks(_lines_of(group, kind), several)
                most = SIDES if several else TOGETHER
                charts += _charts(job, kind, tracks, most)
    return tuple(charts)


def _lines_of(logs: Iterable[_Log], kind: Did) -> list[tuple[_Log, Line]]:
    """Return the lines of one kind, each with its log."""
    lines: list[tuple[_Log, Line]] = []
    for log in logs:
        lines += [(log, line) for line in _lines(log.run, kind)]
    return lines


def _lines(run: Run, kind: Did) -> Iterator[Line]:
    """Yield the lines of one kind; in total the sum of a log's reads and writes, of rates only."""
    by_kind = {line.kind: line for line in run.lines}
    if kind != "total":
        yield from (line for line in run.lines if line.kind == kind)
        return
    read, write = by_kind.get("read"), by_kind.get("write")
    if read is None or write is None:
        return
    # Latencies do not add up.
    if read.of in ("bw", "iops"):
        # Two lines of one log added up. The least of the sum is at least the sum of the least values, and the
        # greatest at most that of the greatest: which rows fell together inside a bucket is not known.
        width = max(read.width, write.width)
        levels = [_level(line).coarser(width) for line in (read, write)]
        count = max(len(level.weight) for level in levels)
        rows = np.zeros((4, count))
        for level in levels:
            held = slice(0, len(level.weight))
            rows[0, held] += level.area
            rows[1, held] += np.where(np.isfinite(level.low), level.low, 0.0)
            rows[2, held] += np.where(np.isfinite(level.high), level.high, 0.0)
            rows[3, held] = np.maximum(rows[3, held], level.weight)
        rows[0] = np.divide(rows[0], rows[3], out=np.zeros(count), where=rows[3] > 0)
        yield (
            msgspec.structs.replace(
                read, width=width, rows=read.rows + write.rows, data=rows.tobytes()
            )
        )


def _level(line: Line) -> Level:
    """Return a line as buckets that can be joined."""
    mean, low, high, weight = np.frombuffer(line.data).reshape(4, -1)
    area = np.where(weight > 0, mean * weight, 0.0)
    low, high = (
        np.where(np.isnan(low), np.inf, low),
        np.where(np.isnan(high), -np.inf, high),
    )
    return Level(
        width=line.width,
        weight=weight,
        area=area,
        low=low,
        high=high,
        amount=np.zeros(len(mean)),
    )


def _charts(
    job: str, kind: Did, tracks: Sequence[Track], most: int
) -> Iterator[Timeline]:
    """At most ``most`` lines in each. Writes are drawn over what had been written too."""
    for first in range(0, len(tracks), most):
        shown = tuple(tracks[first : first + most])
        parts = [job]
        if len(tracks) > most:
            parts.append(f"{first + 1} to {first + len(shown)} of {len(tracks)}")
        line = shown[0].line
        chart = Timeline(
            kind=kind,
            of=line.of,
            unit=UNITS.get(line.unit, line.unit),
            part=": ".join(filter(None, parts)),
            tracks=shown,
            aligned=not any(track.offset for track in shown),
        )
        yield chart
        if line.of == "bw" and kind == "write":
            yield chart._replace(axis="written")


def _named(side: str, runs: Iterable[Run]) -> Iterator[_Log]:
    logged = [run for run in runs if run.lines]
    common = shared_folder(run.place.file for run in logged)
    for run in logged:
        job, number = job_and_number(run.place.file.removeprefix(common))
        yield _Log(side=side, job=job, number=number, run=run)


def _clones(logs: Iterable[_Log]) -> bool:
    """Return whether a job has several logs of the same thing."""
    seen = [(log.job, log.run.lines[0].of) for log in logs]
    return len(set(seen)) < len(seen)


def _shared(logs: Sequence[_Log]) -> bool:
    """Return whether sides have jobs of the same name."""
    sides: dict[str, set[str]] = {}
    for log in logs:
        sides.setdefault(log.job, set()).add(log.side)
    return any(len(names) > 1 for names in sides.values())


def _grouped(logs: Iterable[_Log], *, by_job: bool) -> Iterator[tuple[str, list[_Log]]]:
    """Yield the logs of each job in first-seen order, or all of them under an empty name."""
    yield from grouped(logs, lambda log: log.job if by_job else "").items()


def job_and_number(name: str) -> tuple[str, str]:
    """Return the job that wrote a log, and which of its logs it is: ``writer_bw.2.log`` is ("writer", "2")."""
    number = number_of(name)
    job = without_kind(name) or name
    return job.removesuffix(".log").removesuffix(f".{number}"), number


def _tracks(lines: Sequence[tuple[_Log, Line]], several: bool) -> list[Track]:
    """The lines of one side are placed by the clock if all logs have one and overlap; else each begins at 0."""
    clock = not several and _overlap([line for _, line in lines])
    starts = [line.started or 0.0 for _, line in lines]
    first = min(starts, default=0.0)
    tracks = []
    for (log, line), start in zip(lines, starts, strict=True):
        name = f"{log.side}: {log.name}" if several else log.name
        track = Track(
            name=name,
            side=log.side if several else name,
            line=line,
            offset=start - first if clock else 0.0,
        )
        tracks.append(track)
    return tracks


def _overlap(lines: Sequence[Line]) -> bool:
    """Return whether there are several lines, and all of them were written at one time by the clock."""
    if len(lines) < 2:
        return False
    latest_start, first_end = -math.inf, math.inf
    for line in lines:
        if line.started is None:
            return False
        latest_start = max(latest_start, line.started)
        first_end = min(
            first_end, line.started + (len(line.data) / 32 * line.width / 1000)
        )
    return latest_start < first_end
