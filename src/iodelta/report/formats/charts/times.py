"""Over time: every trial at its time in the run, the seconds inside trials, fio's logs, the rounds of a preparation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, product
from statistics import median
from typing import Any

from iodelta.grouping import grouped
from iodelta.plural import plural
from iodelta.report.formats.charts.cells import axis_title
from iodelta.report.formats.charts.model import (
    Figure,
    Source,
    label,
    number,
    percent_of,
    some,
    time_step,
)
from iodelta.report.stories.preparation import SOURCE, answer, tables
from iodelta.study.preparation import DiskAccount
from iodelta.study.seconds import Second, Stay, course, kinds, loads, stays
from iodelta.study.timelines import Timeline, Track
from iodelta.study.units import axis_unit
from iodelta.study.words import duration, inert, percent, quantity
from iodelta.trial import Kind

MOST = 1000
"""Trials that are drawn one by one; of more, neighbours of the same variant are joined."""

LINES = 200
"""Rows of the table below a chart of trials."""


def runs(source: Source) -> Iterator[Figure]:
    """Yield every trial from its slowest to its fastest second, for each direction, where the order is known; then the
    seconds inside the trials of cells whose trials last."""
    directions = kinds(source.trials) if source.ordered else ()
    for kind in directions:
        trial_stays = stays(source.trials, kind)
        if len(trial_stays) > 1:
            yield _run(source, kind, trial_stays)
    cells = source.by_cell()
    for kind, (place, cell) in product(directions, enumerate(source.telling(), 1)):
        lines: list[tuple[str, list[Second]]] = []
        for name in source.variants:
            of_variant = [t for t in cells.get(cell, ()) if t.variant == name]
            lines.append((name, list(course(of_variant, kind))))
        lines = [(name, seconds) for name, seconds in lines if seconds]
        if lines:
            yield _inside(source, cell, place, kind, lines)


def _run(source: Source, kind: Kind, trial_stays: Sequence[Stay]) -> Figure:
    step, unit = time_step(max(stay.end for stay in trial_stays))
    rows: list[dict[str, Any]] = []
    table = []
    shown = _thinned(trial_stays, MOST)
    for stay in shown:
        rows.append(
            {
                "t": number((stay.start + stay.end) / 2 / step, 5),
                "value": percent_of(number(stay.mean, 4)),
                "low": percent_of(number(stay.low, 4)),
                "high": percent_of(number(stay.high, 4)),
                "variant": label(stay.variant),
                "cell": label(stay.cell, 40),
                "trial": stay.name,
                "at": f"{stay.start / step:.4g}",
                "said": ", ".join(_changes(stay)),
                "flags": ", ".join(stay.flags) or "none",
            }
        )
    for stay in _thinned(trial_stays, LINES):
        names = (label(stay.variant), label(stay.cell))
        at, flags = f"{stay.start / step:.4g}", ", ".join(stay.flags) or "none"
        table.append((stay.name, at, *names, *_changes(stay), flags))
    first = min(trial.started for trial in source.trials)
    spans = loads(source.trials)
    flagged = sum(bool(stay.flags) for stay in trial_stays)
    trials = plural(len(trial_stays), "trial")
    parts = [trials, f"{flagged or 'none'} flagged"]
    if source.sessions:
        parts.insert(1, plural(len(source.sessions), "session"))
    if spans:
        parts.append("background load shaded")
    joined = len(shown) < len(trial_stays)
    return Figure(
        name=f"seconds-{kind}",
        spec="seconds",
        title=f"Every trial at its time: {kind} IOPS, second by second",
        alt=f"{', '.join(parts)}.",
        about="A point is a trial's mean against the level of its cell and variant, the line through it goes from its "
        "slowest to its fastest second. Rings: flagged trials. Dashed: a session begins. Shaded: background load.",
        rows=rows,
        texts={
            "x": f"time since the first trial, {unit}",
            "y": f"{kind} IOPS against their level, %",
            "variants": list(map(label, source.variants)),
        },
        extra={
            "flagged": [row for row in rows if row["flags"] != "none"],
            "sessions": [
                {"t": number((at - first) / step, 5), "said": f"{place}"}
                for place, at in enumerate(source.sessions[1:], 2)
            ],
            "loads": [
                {
                    "t": number(span.start / step, 5),
                    "t2": number(span.end / step, 5),
                    "said": label(span.what),
                }
                for span in spans
            ],
        },
        head=(
            *("trial", unit, "variant", "cell"),
            *("mean", "slowest second", "fastest second", "flags"),
        ),
        table=table,
        note=f"{trials}; neighbours of one variant are joined." if joined else "",
        wide=True,
    )


def _changes(stay: Stay) -> list[str]:
    """Mean, slowest and fastest second."""
    return [percent(value, 0.002) for value in (stay.mean, stay.low, stay.high)]


def _thinned(trial_stays: Sequence[Stay], most: int) -> list[Stay]:
    """At most about ``most``: neighbours of the same variant as one, with the slowest and fastest second of all."""
    if len(trial_stays) <= most:
        return list(trial_stays)
    each = -(-len(trial_stays) // most)
    thin = []
    for of_variant in grouped(trial_stays, lambda stay: stay.variant).values():
        for at in range(0, len(of_variant), each):
            part = of_variant[at : at + each]
            first, last = part[0], part[-1]
            name = f"{first.name} .. {last.name}" if len(part) > 1 else first.name
            mean = sum(stay.mean for stay in part) / len(part)
            low, high = min(stay.low for stay in part), max(stay.high for stay in part)
            flags = dict.fromkeys(chain.from_iterable(stay.flags for stay in part))
            thin.append(
                Stay(name, *first[1:4], last.end, mean, low, high, tuple(flags))
            )
    return sorted(thin, key=lambda stay: stay.start)


def _inside(
    source: Source,
    cell: str,
    place: int,
    kind: Kind,
    lines: Sequence[tuple[str, Sequence[Second]]],
) -> Figure:
    every = chain.from_iterable(seconds for _, seconds in lines)
    ends = chain.from_iterable((second.low, second.mean) for second in every)
    positive = [end for end in ends if end > 0]
    floor = min(positive) if source.logarithmic(False, positive) else None
    most = LINES // len(lines)
    rows: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    for variant, seconds in lines:
        for at, second in enumerate(seconds):
            values = (second.mean, second.low, second.high)
            texts = [quantity(value, "IOPS") for value in values]
            mean, low, high = texts
            if at < most:
                trials = str(second.trials)
                table.append((label(variant), str(second.at + 1), *texts, trials))
            said = f"{mean} ({low} to {high}, {plural(second.trials, 'trial')})"
            rows.append(
                {
                    "t": second.at + 1,
                    **_ends(values, floor, 6),
                    "name": label(variant),
                    "variant": label(variant),
                    "at": str(second.at + 1),
                    "said": said,
                }
            )
    first_and_last = ", ".join(
        f"{label(variant)} {quantity(seconds[0].mean, 'IOPS')} to {quantity(seconds[-1].mean, 'IOPS')}"
        for variant, seconds in lines
    )
    return Figure(
        name=f"seconds-{kind}-{place}",
        spec="timeline" if floor is None else "timeline-log",
        title=f"Inside a trial: {kind} IOPS of {label(cell)}",
        alt=f"From the first second to the last: {first_and_last}.",
        about="Inside a trial: the line is the mean of all trials at that second, the band goes from the slowest to "
        "the fastest of them.",
        rows=rows,
        texts={
            "x": "second of the trial",
            "y": f"{kind} IOPS",
            "variants": [label(variant) for variant, _ in lines],
        },
        extra={"dots": rows if len(rows) <= FEW else []},
        head=("variant", "second", "mean", "slowest trial", "fastest trial", "trials"),
        table=table,
        note=some("cells", len(source.telling()), len(source.by_cell())),
    )


def _ends(
    values: Sequence[float], floor: float | None, digits: int
) -> dict[str, float | None]:
    """Return the value of a point and the ends of its band; on a logarithmic axis, which has no place for 0, the band
    ends at ``floor`` and the line is interrupted."""
    value, low, high = values
    if floor is not None:
        ends = (value, max(low, floor), high)
        value, low, high = (end if end > 0 else math.nan for end in ends)
    return {
        "value": number(value, digits),
        "low": number(low, digits),
        "high": number(high, digits),
    }


POINTS = 1200
"""Buckets in one chart of logs, shared out among its lines."""

TABLED = 20
"""Rows of the table below such a chart, for each of its lines."""

FEW = 40
"""A line of no more buckets shows each as a dot."""

STEEP = 30.0
"""Greatest over middle value from which on an axis is logarithmic."""

CHARTS = 24
"""Charts of logs on one page."""

NAMES = {
    "bw": "bandwidth",
    "iops": "IOPS",
    "lat": "latency",
    "clat": "completion latency",
    "slat": "submission latency",
}

WRITTEN = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"))
"""Units in which an axis counts what was written, the largest first."""


def logs(source: Source) -> Iterator[Figure]:
    """Yield fio's logs over time, or over what had been written: mean as a line, least to greatest as a band."""
    charts = len(source.timelines)
    for place, timeline in enumerate(source.timelines[:CHARTS], 1):
        note = ""
        if timeline.kind == "total":
            note = (
                "Total is reads and writes together; its band goes from the sum of their minima to the sum of their "
                "maxima. "
            )
        if place == CHARTS < charts:
            note += f"Shown: {CHARTS} of {charts} charts of logs."
        yield _log(source, timeline, place, note.rstrip())


def _log(source: Source, timeline: Timeline, place: int, note: str) -> Figure:
    most = max(100, POINTS // len(timeline.tracks))
    drawn = [(track, track.points(most, timeline.axis)) for track in timeline.tracks]
    every = list(chain.from_iterable(points for _, points in drawn))
    is_latency = timeline.of.endswith("lat")
    means = [point.mean for point in every if point.mean > 0]
    tops = [p.high for p in every if p.high > 0] if is_latency else means
    # A linear axis would show one spike and a flat line.
    steep = bool(means) and max(tops, default=0.0) > STEEP * median(means)
    log = source.logarithmic(steep, means)
    size, unit = axis_unit(
        timeline.unit,
        max((point.high for point in every), default=0.0),
        min(means, default=None) if log else None,
    )
    end = max((point.x for point in every), default=0.0)
    by_written = timeline.axis == "written"
    if by_written:
        step, x = next((unit for unit in WRITTEN if end >= unit[0]), WRITTEN[-1])
        x = f"written by this log's job, {x}"
    else:
        step, x = time_step(end)
        begins = "the start of each log" if timeline.aligned else "the first log began"
        x = f"time since {begins}, {x}"
    floor = None
    if log:
        floor = min((point.low / size for point in every if point.low > 0), default=1.0)
    rows: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    for track, points in drawn:
        for point in points:
            mean, low, high = (quantity(v, timeline.unit) for v in point[1:])
            rows.append(
                {
                    "t": number(point.x / step, 5),
                    **_ends([value / size for value in point[1:]], floor, 5),
                    "name": label(track.name),
                    "variant": label(track.side),
                    "at": f"{point.x / step:.4g}",
                    "said": f"{mean} ({low} to {high})",
                }
            )
        for point in track.points(TABLED, timeline.axis):
            numbers = (quantity(value, timeline.unit) for value in point[1:])
            table.append((label(track.name), f"{point.x / step:.4g}", *numbers))
    few = {label(track.name) for track, points in drawn if len(points) <= FEW}
    over = "over what had been written" if by_written else "over time"
    title = f"{timeline.kind.capitalize()} {NAMES[timeline.of]} {over}"
    sides = dict.fromkeys(label(track.side) for track in timeline.tracks)
    counted = next((track.line.over for track in timeline.tracks if track.line.over), 0)
    how = f" Rates are counted over {counted:g} ms." if counted else ""
    seen = "; ".join(_seen(track, timeline.unit) for track in timeline.tracks)
    return Figure(
        name=f"timeline-{place}-{timeline.of}-{timeline.kind}"
        + "-written" * by_written,
        spec="timeline-log" if log else "timeline",
        title=f"{title}: {label(timeline.part)}" if timeline.part else title,
        alt=f"{seen}.{how}",
        about="A line is the mean of each time bucket, its band the minimum and maximum: a spike of one row is visible "
        "in a log of any length.",
        rows=rows,
        texts={
            "x": x,
            "y": axis_title(f"{timeline.kind} {NAMES[timeline.of]}", unit),
            "variants": list(sides),
        },
        extra={"dots": [row for row in rows if row["name"] in few]},
        head=("log", x, "mean", "least", "greatest"),
        table=table,
        note=note,
        wide=True,
    )


def _seen(track: Track, unit: str) -> str:
    """Return what can be seen of one line."""
    whole, idle = track.whole(), track.idle()
    ends = f"{quantity(whole.low, unit, 3)} to {quantity(whole.high, unit, 3)}"
    mean, without = "mean", ""
    if unit != "ns":
        without = f", {idle:.3g} s without I/O" if idle else ""
    elif track.weighs_time():
        mean = "mean over time"
    return f"{label(track.name)}: {duration(whole.x)}, {mean} {quantity(whole.mean, unit)}, {ends}{without}"


def rounds(source: Source) -> Iterator[Figure]:
    """Yield the preparation of each disk round by round, with the window that decides whether it is steady."""
    for place, disk in enumerate(source.prepared, 1):
        if disk.rounds:
            log = source.logarithmic(False, [seen.iops for seen in disk.rounds])
            yield rounds_of(disk, place, log=log)


def rounds_of(disk: DiskAccount, place: int = 1, *, log: bool = False) -> Figure:
    """Return the rounds of one disk."""
    (table,) = tables(disk)
    rows = [
        {
            "round": seen.round,
            "iops": number(seen.iops) if seen.iops or not log else None,
            **dict(zip(("said", "range", "slope", "written"), row.texts, strict=False)),
        }
        for seen, row in zip(disk.rounds, table.rows, strict=True)
    ]
    window = []
    if disk.window is not None:
        first, last = disk.window.first + 0.5, disk.window.last + 1.5
        level = number(disk.window.average)
        window = [{"first": first, "last": last, "average": level}]
    return Figure(
        name=f"rounds-{place}",
        spec="rounds-log" if log else "rounds",
        title=f"Preparation of {inert(disk.path)}, round by round",
        alt=answer(disk),
        about=f"Shaded: the five most recent rounds that were checked; dashed: their average. {SOURCE}",
        rows=rows,
        texts={},
        extra={"window": window},
        head=("round", *table.heads),
        table=[(row.name, *row.texts) for row in table.rows],
        wide=True,
    )
