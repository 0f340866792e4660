"""Values and percentiles of every cell, the variants below each other, the spread of their trials, and distributions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, product
from operator import attrgetter
from statistics import stdev
from typing import Any

import numpy as np

from iodelta.figures import share
from iodelta.report.formats.charts.cells import (
    NAMES,
    Sheet,
    Variants,
    above_zero,
    axis_title,
    datum,
    metric_title,
    notes,
    numbered,
    sheets,
    sized,
    spans,
    titled,
    variant_names,
    wide_apart,
)
from iodelta.report.formats.charts.model import (
    LONG,
    Figure,
    Source,
    label,
    number,
    some,
)
from iodelta.report.formats.charts.trials import rates, relative
from iodelta.study.units import axis_unit
from iodelta.study.values import Value, Values
from iodelta.study.words import metric_name, quantity
from iodelta.trial import BINS, Direction, Histogram, Kind, Trial, bin_edges

LETTER, GAP = 6.2, 12
"""Pixels of a letter of a number, and those around the number, behind a bar of full length."""

SHOWN = ("mean", "p50", "p99", "p99.9", "p99.99")
"""Points of a line; the table has p90 and p95 too."""

TABLED = ("mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99")

Arms = Mapping[tuple[str, str], Value]
"""Cell and variant -> value."""


def bars(source: Source) -> Iterator[Figure]:
    """Yield IOPS, bandwidth, mean latency and CPU time for each direction; more charts where there are many cells."""
    values = source.values
    if values is None:
        return
    for metric, kind in product(NAMES, values.kinds()):
        title = metric_title(metric, kind, values.kinds())
        by_arm = values.of(kind, metric)
        yield from _barred(source, values, title, by_arm, f"values-{kind}-{metric}")
    # The CPU time of fio's jobs is that of a run, not of a direction.
    by_arm = {(value.cell, value.variant): value for value in values.cpu}
    yield from _barred(source, values, "CPU time of fio's jobs", by_arm, "values-cpu")


def spread(source: Source) -> Iterator[Figure]:
    """Yield how far the trials of each variant lie from each other, for each rate: a result in its own right."""
    for metric in rates(source):
        arms: dict[tuple[str, str], list[float]] = {}
        for _, trial, value in relative(source, metric):
            arms.setdefault((trial.cell, trial.variant), []).append(value)
        sds = {
            arm: Value(
                cell=arm[0],
                variant=arm[1],
                kind="read",
                metric="spread",
                value=100 * stdev(of_arm),
                runs=len(of_arm),
            )
            for arm, of_arm in arms.items()
            if len(of_arm) > 2
        }
        if source.values is None or not sds:
            continue
        widest, least = max(sds, key=_by(sds)), min(sds, key=_by(sds))
        ends = [
            f"{word} in {label(arm[0])}, {label(arm[1])} ({share(sds[arm].value / 100)})"
            for word, arm in (("most", widest), ("least", least))
        ]
        name = metric_name(metric, with_kind=len(rates(source)) > 1)
        yield from _barred(
            source,
            source.values,
            f"spread of {name} from trial to trial",
            sds,
            f"spread-{metric.name}",
            alt=f"Standard deviation: {', '.join(ends)}.",
            about="Standard deviation of the trials of a cell and variant, each against their median.",
            column="standard deviation",
        )


def _by(sds: Arms) -> Any:
    return lambda arm: sds[arm].value


def _barred(
    source: Source,
    values: Values,
    title: str,
    by_arm: Arms,
    name: str,
    *,
    column: str = "median",
    **more: str,
) -> Iterator[Figure]:
    """Yield the charts of one metric: a bar from zero, or a point where only a logarithmic axis shows all of them."""
    variants = Variants(variant_names(values))
    charts = list(sheets(values, (cell for cell, _ in by_arm)))
    for place, sheet in enumerate(charts, 1):
        row_of = _rows_of(sheet)
        arms = [arm for arm in product(row_of, values.variants) if arm in by_arm]
        drawn = [by_arm[arm] for arm in arms]
        log = source.logarithmic(wide_apart(drawn), [value.value for value in drawn])
        size, unit = sized(drawn, log=log)
        rows = []
        for value in drawn:
            lane = variants.lane(row_of[value.cell], value.variant)
            row = datum(value, size, **lane)
            # Its number is written behind the end of a bar.
            text = quantity(value.value / size, "")
            rows.append({**row, "end": row["high"], "text": text})
        shown = above_zero(rows) if log else rows
        longest = max((len(row["text"]) for row in shown), default=0)
        texts = {"alt": _seen(drawn), "about": _about(drawn), **more}
        yield Figure(
            name=numbered(name, place, len(charts)),
            spec="values-log" if log else "values",
            title=titled(title, sheet.panel),
            rows=shown,
            extra={"spans": [row for row in shown if row["low"] != row["high"]]},
            texts={
                "x": axis_title(title, unit),
                "name": title,
                "room": f"width - {LETTER * longest + GAP:.0f}",
                **_axis(shown, unit, variants, log=log),
            },
            head=("cell", "variant", column, "interval", "runs"),
            table=[
                (
                    label(value.cell),
                    variants.names[value.variant],
                    quantity(value.value, value.unit),
                    spans(value),
                    str(value.runs),
                )
                for value in drawn
            ],
            note=notes("", shown, rows),
            wide=max(len(row["row"]) for row in rows) > LONG,
            **texts,
        )


def _rows_of(sheet: Sheet) -> dict[str, str]:
    """Return the name of each cell's row."""
    cells = (place.cell for place in sheet.places)
    return dict(zip(cells, sheet.rows, strict=True))


def _axis(
    rows: Sequence[Mapping[str, Any]],
    unit: str,
    variants: Variants,
    *,
    log: bool,
    beyond: float = 1.0,
) -> dict[str, Any]:
    """Return what all charts of values fill in: ends of the axis (all values with their intervals, and ``beyond`` times
    that length), the format of its ticks, and the variants."""
    top = max((row["high"] for row in rows), default=1.0) or 1.0
    ends = [0.0, top * beyond]
    if log:
        low = min((row["low"] for row in rows if row["low"] > 0), default=top) / 1.5
        ends = [number(low, 4) or low, top * (top / low) ** (beyond - 1)]
    plain = ",~g" if log else ",~f"
    # The first colour is that of text, which is too heavy for the bars of a single variant.
    names = variants.legend
    return {
        "frame": ends,
        "format": "~s" if unit == "IOPS" else plain,
        "variants": names if len(names) > 1 else ["", *names],
        "legend": names,
    }


def _seen(values: Sequence[Value]) -> str:
    """Return the least and the greatest value."""
    low = min(values, key=attrgetter("value"))
    high = max(values, key=attrgetter("value"))
    if low.value == high.value:
        return f"{quantity(high.value, high.unit)} in {label(high.cell)}."
    several = len({value.variant for value in values}) > 1
    ends = []
    for value in (low, high):
        names = [label(value.cell), label(value.variant) * several]
        where = ", ".join(filter(None, names))
        ends.append(f"{quantity(value.value, value.unit)} ({where})")
    return f"From {ends[0]} to {ends[1]}."


def _about(values: Sequence[Value]) -> str:
    """Return what the numbers and the lines at the bars' ends are."""
    bases = list(dict.fromkeys(value.basis for value in values if value.basis))
    if not bases:
        return "One run each: there is no interval."
    return (
        f"Medians over runs; the line at a bar's end is the {' or the '.join(bases)}."
    )


def percentiles(source: Source) -> Iterator[Figure]:
    """Yield the middle and the tail of latency for each direction; more charts where there are many cells."""
    values = source.values
    if values is None:
        return
    variants = Variants(variant_names(values))
    for kind in values.kinds():
        points = {point: values.of(kind, point) for point in TABLED}
        # A mean alone makes no chart.
        known = set(chain.from_iterable(points[point] for point in TABLED[1:]))
        charts = list(sheets(values, (cell for cell, _ in known)))
        for place, sheet in enumerate(charts, 1):
            cells = _rows_of(sheet)
            arms = [arm for arm in product(cells, values.variants) if arm in known]
            drawn = [
                (point, points[point][arm])
                for arm, point in product(arms, SHOWN)
                if arm in points[point] and points[point][arm].value > 0
            ]
            times = [value for _, value in drawn]
            log = source.logarithmic(True, [value.value for value in times])
            # An axis of zeros alone has a unit, too.
            size, unit = sized(times or points["p50"].values(), log=log)
            rows: list[dict[str, Any]] = []
            lines: dict[tuple[str, str], list[float]] = {}
            for point, value in drawn:
                lane = variants.lane(cells[value.cell], value.variant)
                row = datum(value, size, point=point, **lane)
                rows.append(row)
                lines.setdefault((row["row"], row["variant"]), []).append(row["value"])
            table = []
            for arm in arms:
                own = [points[point].get(arm) for point in TABLED]
                texts = [quantity(v.value, v.unit) if v else "-" for v in own]
                table.append((label(arm[0]), variants.names[arm[1]], *texts))
            several = len(values.kinds()) > 1
            yield Figure(
                name=numbered(f"percentiles-{kind}", place, len(charts)),
                spec="percentiles-log" if log else "percentiles",
                title=titled(f"{kind} latency" if several else "Latency", sheet.panel),
                alt=_ranges(drawn),
                about=f"Mean and percentiles of latency{', logarithmic' if log else ''}; a thick line is the interval of a "
                "median over runs. Percentiles are of completion latency if fio gave no others; those with fewer than "
                "100 I/Os beyond them are omitted.",
                rows=rows,
                extra={
                    "reaches": [
                        {
                            "row": row,
                            "variant": variant,
                            "low": min(line),
                            "high": max(line),
                        }
                        for (row, variant), line in lines.items()
                    ]
                },
                texts={
                    "x": f"latency, {unit}",
                    "points": [p for p in SHOWN if p in {point for point, _ in drawn}],
                    **_axis(rows, unit, variants, log=log, beyond=1.05),
                },
                head=("cell", "variant", *TABLED),
                table=table,
                wide=max((len(row["row"]) for row in rows), default=0) > LONG,
            )


def _ranges(drawn: Sequence[tuple[str, Value]]) -> str:
    """Return the range of each percentile over cells and variants."""
    parts = []
    for point in SHOWN:
        times = [value.value for name, value in drawn if name == point]
        if times:
            ends = (quantity(end, "ns") for end in (min(times), max(times)))
            parts.append(f"{point} {' to '.join(dict.fromkeys(ends))}")
    return f"{'; '.join(parts)}." if parts else "Every latency is zero."


PER_OCTAVE = 8
"""Steps of the line for each doubling of latency: fio's own 64 are finer than the eye."""

LEAST = 1e-5
"""The axis of shares begins here: below one I/O in 100 000 the shape of a tail says nothing."""

POINTS = (0.5, 0.9, 0.99, 0.999)


def distributions(source: Source) -> Iterator[Figure]:
    """Yield one for each telling cell and direction whose bins were kept."""
    cells = source.by_cell()
    kinds = {cell: _kinds(trials) for cell, trials in cells.items()}
    known = [cell for cell, own in kinds.items() if own]
    shown = source.telling(among=known)
    note = some("cells", len(shown), len(known), compared=bool(source.effects))
    for cell in shown:
        for kind in kinds[cell]:
            yield _figure(source, cell, kind, cells[cell], note)


def _bins_of(direction: Direction) -> Histogram | None:
    """Return the bins of total latency, else those of completion latency, which are fio's unless it is asked for
    others.
    """
    for latency in (direction.lat, direction.clat):
        histogram = latency.histogram if latency is not None else None
        if histogram is not None and histogram.total:
            return histogram
    return None


def _kinds(trials: Sequence[Trial]) -> list[Kind]:
    """Return the directions with bins."""
    directions = chain.from_iterable(trial.directions for trial in trials)
    return list(dict.fromkeys(each.kind for each in directions if _bins_of(each)))


def _figure(
    source: Source, cell: str, kind: Kind, trials: Sequence[Trial], note: str
) -> Figure:
    known: dict[str, Histogram] = {}
    for variant in source.variants:
        # A merge one by one takes a third of a report's time.
        counts = np.zeros(BINS, dtype=np.int64)
        for trial in trials:
            direction = trial.direction(kind) if trial.variant == variant else None
            bins = _bins_of(direction) if direction is not None else None
            if bins is not None:
                counts[list(bins.indexes)] += np.asarray(bins.counts, dtype=np.int64)
        (held,) = counts.nonzero()
        if len(held):
            indexes, kept = held.tolist(), counts[held].tolist()
            known[variant] = Histogram(tuple(indexes), tuple(kept))
    points = [
        (variant, at, share)
        for variant, bins in known.items()
        for at, share in _steps(bins)
    ]
    ends = [at for _, at, _ in points]
    size, unit = axis_unit("ns", max(ends), min(ends))
    directions = chain.from_iterable(trial.directions for trial in trials)
    several = len({direction.kind for direction in directions}) > 1
    medians, table = [], []
    for variant, bins in known.items():
        texts = [
            quantity(bins.quantile(p), "ns")
            if bins.total * (1 - p) >= 100
            else "too few I/Os"
            for p in POINTS
        ]
        table.append((label(variant), f"{bins.total:,}", *texts))
        medians.append(f"{label(variant)} {quantity(bins.quantile(0.5), 'ns')}")
    return Figure(
        name=f"distribution-{kind}-{source.place(cell)}",
        spec="distribution",
        title=f"{label(cell)}{f', {kind}' if several else ''}",
        alt=f"{'Medians' if len(medians) > 1 else 'Median'}: {', '.join(medians)}.",
        about=f"How many I/Os took how long, all runs together, {PER_OCTAVE} steps to a doubling; both axes are "
        "logarithmic so that the tail is seen.",
        rows=[
            {
                "variant": label(variant),
                "latency": number(at / size, 4),
                "share": number(100 * share, 4),
            }
            for variant, at, share in points
        ],
        texts={
            "x": f"{kind} latency, {unit}",
            "variants": list(map(label, source.variants)),
        },
        head=("variant", "I/Os", *(f"p{100 * p:g}" for p in POINTS)),
        table=table,
        note=note,
    )


def _steps(bins: Histogram) -> Iterator[tuple[float, float]]:
    """(latency in ns where a step begins, share of I/Os in it); the last ends the line."""
    step_of = _step_of_bins()
    counts: dict[int, float] = {}
    for index, count in zip(bins.indexes, bins.counts, strict=True):
        counts[step_of[index]] = counts.get(step_of[index], 0.0) + count
    first, last = min(counts), max(counts)
    for step in range(first, last + 1):
        share = counts.get(step, 0.0) / bins.total
        yield 2 ** (step / PER_OCTAVE), max(share, LEAST)
    yield 2 ** ((last + 1) / PER_OCTAVE), LEAST


@cache
def _step_of_bins() -> tuple[int, ...]:
    """Return the step of the line that each of fio's bins falls into, by its centre."""
    centres = (sum(bin_edges(index)) / 2 for index in range(BINS))
    return tuple(
        math.floor(PER_OCTAVE * math.log2(max(1.0, centre))) for centre in centres
    )
