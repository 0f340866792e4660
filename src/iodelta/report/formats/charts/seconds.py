"""Seconds: every trial at its time in the run, from its slowest to its fastest second; and trials from their starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import TYPE_CHECKING, Any

from iodelta.grouping import grouped
from iodelta.plural import plural
from iodelta.report.formats.charts.model import (
    Figure,
    Source,
    label,
    number,
    percent_of,
    some,
    time_step,
)
from iodelta.report.formats.charts.timeline import FEW, above
from iodelta.study.seconds import Second, Stay, course, kinds, loads, stays
from iodelta.study.words import percent, quantity
from iodelta.trial import Kind, Trial

if TYPE_CHECKING:
    import altair as alt

MOST = 1000
"""Trials that are drawn one by one; of more, neighbours of the same variant are joined."""

LINES = 200
"""Rows of the table below a chart."""


def chart() -> alt.LayerChart:
    """Return a span and a point for each trial; rings are flags, dashed lines borders of sessions, shades background
    loads.
    """
    import altair as alt

    from iodelta.report.formats.charts import build

    at = build.x("t", grid=False)
    level = build.y("value", "@y")
    tips = build.tips(
        "variant",
        "cell",
        "trial",
        "at=@x",
        "said=mean, slowest and fastest second",
        "flags",
    )
    colors = build.by_variant(gap=build.TALL)
    span = (
        alt.Chart()
        .mark_rule(strokeWidth=1.4, opacity=0.55)
        .encode(x=at, y=build.y("low", "@y"), y2=alt.Y2("high"))
    )
    point = (
        alt.Chart()
        .mark_point(filled=True, size=26)
        .encode(x=at, y=level, tooltip=tips, **colors)
    )
    ring = alt.Chart(build.data("flagged")).mark_point(
        style="trend", size=120, filled=False, strokeWidth=1.2
    )
    border = alt.Chart(build.data("sessions")).mark_rule(
        style="trend", strokeDash=[4, 3], strokeWidth=1.2
    )
    load = alt.Chart(build.data("loads")).mark_rect(style="margin", opacity=0.1)
    return build.layered(
        load.encode(x=at, x2=alt.X2("t2"), tooltip=build.tips("said=background load")),
        build.rule_at(0, "y"),
        border.encode(x=at, tooltip=build.tips("said=session")),
        span.encode(color=colors["color"]),
        point,
        ring.encode(x=at, y=level, tooltip=tips),
        height=250,
    )


def figures(source: Source) -> Iterator[Figure]:
    """Yield the whole run for each direction, where the order is known; and the cells whose trials last."""
    directions = kinds(source.trials) if source.ordered else ()
    for kind in directions:
        trial_stays = stays(source.trials, kind)
        if len(trial_stays) > 1:
            yield _run(source, kind, trial_stays)
    cells = source.by_cell()
    for kind, (place, cell) in product(directions, enumerate(source.telling(), 1)):
        lines = _courses(source.variants, cells.get(cell, ()), kind)
        if lines:
            yield _inside(source, cell, place, kind, lines)


def _courses(
    variants: Sequence[str], trials: Sequence[Trial], kind: Kind
) -> list[tuple[str, list[Second]]]:
    """Return the variants of a cell whose trials last."""
    courses = []
    for name in variants:
        of_variant = [trial for trial in trials if trial.variant == name]
        courses.append((name, list(course(of_variant, kind))))
    return [(name, seconds) for name, seconds in courses if seconds]


def _run(source: Source, kind: Kind, trial_stays: Sequence[Stay]) -> Figure:
    end = max(stay.end for stay in trial_stays)
    step, unit = time_step(end)
    shown = _thinned(trial_stays)
    rows = [_row(stay, step) for stay in shown]
    flagged = [row for row in rows if row["flags"] != "none"]
    first = min(trial.started for trial in source.trials)
    borders = [at - first for at in source.sessions[1:]]
    spans = loads(source.trials)
    flags = sum(bool(stay.flags) for stay in trial_stays)
    parts = [plural(len(trial_stays), "trial")]
    if source.sessions:
        parts.append(plural(len(source.sessions), "session"))
    parts.append(f"{flags or 'none'} flagged")
    if spans:
        parts.append("background load shaded")
    note = ""
    if len(shown) < len(trial_stays):
        note = f"{plural(len(trial_stays), 'trial')}; neighbours of one variant are joined."
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
            "flagged": flagged,
            "sessions": [
                {"t": number(at / step, 5), "said": f"{place}"}
                for place, at in enumerate(borders, 2)
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
            "trial",
            unit,
            "variant",
            "cell",
            "mean",
            "slowest second",
            "fastest second",
            "flags",
        ),
        table=[
            (
                stay.name,
                f"{stay.start / step:.4g}",
                label(stay.variant),
                label(stay.cell),
                *_changes(stay),
                _flags(stay),
            )
            for stay in _thinned(trial_stays, LINES)
        ],
        note=note,
        wide=True,
    )


def _thinned(trial_stays: Sequence[Stay], most: int = MOST) -> list[Stay]:
    """At most about ``most``: neighbours of the same variant as one, with the slowest and fastest second of all."""
    if len(trial_stays) <= most:
        return list(trial_stays)
    each = -(-len(trial_stays) // most)
    thin = []
    for of_variant in grouped(trial_stays, lambda stay: stay.variant).values():
        for first in range(0, len(of_variant), each):
            thin.append(_joined(of_variant[first : first + each]))
    return sorted(thin, key=lambda stay: stay.start)


def _joined(stays: Sequence[Stay]) -> Stay:
    """Neighbours of one variant as one: their mean, and the slowest and fastest second of all."""
    first, last = stays[0], stays[-1]
    name = f"{first.name} .. {last.name}" if len(stays) > 1 else first.name
    mean = sum(stay.mean for stay in stays) / len(stays)
    low, high = min(stay.low for stay in stays), max(stay.high for stay in stays)
    flags = dict.fromkeys(chain.from_iterable(stay.flags for stay in stays))
    return Stay(name, *first[1:4], last.end, mean, low, high, tuple(flags))


def _changes(stay: Stay) -> list[str]:
    """Mean, slowest and fastest second."""
    return [percent(value, 0.002) for value in (stay.mean, stay.low, stay.high)]


def _flags(stay: Stay) -> str:
    return ", ".join(stay.flags) or "none"


def _row(stay: Stay, step: float) -> dict[str, Any]:
    return {
        "t": number((stay.start + stay.end) / 2 / step, 5),
        "value": percent_of(number(stay.mean, 4)),
        "low": percent_of(number(stay.low, 4)),
        "high": percent_of(number(stay.high, 4)),
        "variant": label(stay.variant),
        "cell": label(stay.cell, 40),
        "trial": stay.name,
        "at": f"{stay.start / step:.4g}",
        "said": ", ".join(_changes(stay)),
        "flags": _flags(stay),
    }


def _dots(
    variant: str, seconds: Sequence[Second], floor: float | None
) -> Iterator[dict[str, Any]]:
    for second in seconds:
        mean, low, high = _rates(second)
        ends = (second.mean, second.low, second.high)
        shown = ends if floor is None else above(floor, *ends)
        yield {
            "t": second.at + 1,
            **dict(zip(("value", "low", "high"), map(number, shown), strict=True)),
            "name": label(variant),
            "variant": label(variant),
            "at": str(second.at + 1),
            "said": f"{mean} ({low} to {high}, {plural(second.trials, 'trial')})",
        }


def _lines(variant: str, seconds: Sequence[Second]) -> Iterator[tuple[str, ...]]:
    for second in seconds:
        yield (label(variant), str(second.at + 1), *_rates(second), str(second.trials))


def _rates(second: Second) -> list[str]:
    """Mean, slowest and fastest trial."""
    return [quantity(value, "IOPS") for value in (second.mean, second.low, second.high)]


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
        rows += _dots(variant, seconds, floor)
        table += _lines(variant, seconds[:most])
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
