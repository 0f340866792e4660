"""Counters: what an I/O costs the machine (CPU time, context switches, interrupts), variant against baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from iodelta.report.formats.charts.distribution import place
from iodelta.report.formats.charts.model import Figure, Source, label, percent_of, some
from iodelta.stats.cost import is_resolved, switches_per_io, system_ns_per_io
from iodelta.study.words import percent, quantity
from iodelta.trial import Trial

if TYPE_CHECKING:
    import altair as alt

COUNTED = (
    ("interrupts", "cpu.interrupts", "", 1.0),
    ("block softirqs", "cpu.block_softirqs", "", 1.0),
    ("I/O pressure, some", "pressure.io_some_ms", "ns", 1e6),
    ("CPU pressure, some", "pressure.cpu_some_ms", "ns", 1e6),
    ("stolen CPU time", "cpu.steal_ms", "ns", 1e6),
    ("page faults, major", "vm.pgmajfault", "", 1.0),
)
"""Name, counter of the machine, unit of one I/O's share, and what a counted unit is in it."""

LEAST = 4
"""Trials of each variant below which medians are not compared."""


def chart() -> alt.LayerChart:
    """Return a row per counter; the rule is the middle half of the blocks."""
    import altair as alt

    from iodelta.report.formats.charts import build

    rows = build.names("counter")
    span = (
        alt.Chart()
        .mark_rule(strokeWidth=1.4)
        .encode(
            x=build.x("low", "@x"),
            x2=alt.X2("high"),
            y=rows,
            yOffset=build.offset("@others"),
            color=build.by_variant(names="@others")["color"],
        )
    )
    point = (
        alt.Chart()
        .mark_point(size=52, filled=True)
        .encode(
            x=build.x("change", "@x"),
            y=rows,
            yOffset=build.offset("@others"),
            tooltip=build.tips("variant", "counter", "said=change", "each=per I/O"),
            **build.by_variant(names="@others"),
        )
    )
    return build.layered(build.rule_at(0), span, point, height=alt.Step(16))


def figures(source: Source) -> Iterator[Figure]:
    """Yield one for each telling cell."""
    cells = source.by_cell()
    shown = source.telling(4, list(cells))
    for cell in shown:
        rows = _rows(source, cells[cell])
        if rows:
            yield _figure(source, cell, rows, some("cells", len(shown), len(cells)))


Row = tuple[str, str, str, float, float, float, float, float]
"""Variant, counter, unit, baseline's and variant's medians per I/O, median change of a block and its middle half."""


def _rows(source: Source, trials: Sequence[Trial]) -> list[Row]:
    rows: list[Row] = []
    times = filter(math.isfinite, map(system_ns_per_io, trials))
    resolved = is_resolved(list(times))
    for name, unit, read in _readers():
        # CPU time is counted in ticks: where many trials have none, the median of the others is not their time.
        if read is system_ns_per_io and not resolved:
            continue
        arms: dict[str, dict[int, float]] = {}
        for trial in trials:
            value = read(trial)
            if math.isfinite(value) and value > 0:
                arms.setdefault(trial.variant, {})[trial.block] = value
        old = arms.get(source.baseline, {})
        for variant in source.others:
            new = arms.get(variant, {})
            ratios = sorted(new[block] / old[block] - 1 for block in new.keys() & old)
            if len(ratios) >= LEAST:
                quarter = len(ratios) // 4
                medians = (median(old.values()), median(new.values()), median(ratios))
                middle_half = (ratios[quarter], ratios[-1 - quarter])
                rows.append((variant, name, unit, *medians, *middle_half))
    return rows


def _readers() -> Iterator[tuple[str, str, Callable[[Trial], float]]]:
    yield "kernel time", "ns", system_ns_per_io
    yield "context switches", "", switches_per_io
    for name, counter, unit, size in COUNTED:
        yield name, unit, partial(_per_io, counter=counter, size=size)


def _per_io(trial: Trial, counter: str, size: float) -> float:
    """Return a machine's counter by the I/Os counted: the ramp's are in the one and not in the other, for all alike."""
    ios = sum(direction.ios for direction in trial.directions)
    return trial.counters.get(counter, math.nan) * size / ios if ios else math.nan


def _figure(source: Source, cell: str, rows: list[Row], note: str) -> Figure:
    farthest = max(rows, key=lambda row: abs(row[5]))
    return Figure(
        name=f"counters-{place(source, cell)}",
        spec="counters",
        title=label(cell),
        alt=f"Changed most: {farthest[1]}, {percent(farthest[5], 0.01)} ({label(farthest[0])}).",
        about=f"System cost per I/O, change against {label(source.baseline)}: medians "
        "over blocks; lines show the interquartile range over blocks, not a confidence interval.",
        rows=[
            {
                "variant": label(variant),
                "counter": name,
                "change": percent_of(change),
                "low": percent_of(low),
                "high": percent_of(high),
                "said": percent(change, 0.01),
                "each": f"{quantity(old, unit)} -> {quantity(new, unit)}",
            }
            for variant, name, unit, old, new, change, low, high in rows
        ],
        texts={
            "x": f"per I/O, change against {label(source.baseline, 24)}, %",
            "variants": list(map(label, source.variants)),
            "others": list(map(label, source.others)),
        },
        head=("per I/O", "variant", label(source.baseline), "variant's", "change"),
        table=[
            (
                name,
                label(variant),
                quantity(old, unit),
                quantity(new, unit),
                percent(change, 0.01),
            )
            for variant, name, unit, old, new, change, _, _ in rows
        ],
        note=note,
    )
