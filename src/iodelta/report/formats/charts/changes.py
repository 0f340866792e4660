"""Interval plots: changes with their intervals against no change and the margin, a row each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from statistics import median
from typing import Any

import msgspec

from iodelta.plural import plural
from iodelta.report.formats.charts.model import (
    LONG,
    Charts,
    Effect,
    Figure,
    Source,
    ends_of,
    frame,
    label,
    labels,
    percent_of,
    some,
)
from iodelta.report.stories.statements import relative
from iodelta.stats.cost import is_resolved, switches_per_io, system_ns_per_io
from iodelta.stats.shift import ShiftFunction
from iodelta.study.fleet import FleetAccount, FleetRow
from iodelta.study.words import inert, interval, metric_name, quantity
from iodelta.trial import Trial
from iodelta.verdict import Change, Metric

MOST = 40
"""Rows of one chart."""


def changes(source: Source) -> Iterator[Figure]:
    """Yield every comparison of each metric: the mark's shape and colour are the word."""
    places = {cell: place for place, cell in enumerate(source.cells)}
    others = source.others
    for metric in dict.fromkeys(effect.metric for effect in source.effects):
        effects = [
            e for e in source.effects if e.metric == metric and e.change is not None
        ]
        effects.sort(key=lambda e: (places.get(e.cell, 0), others.index(e.variant)))
        if effects:
            yield plotted(source, effects, f"change-{metric.name}")


def plotted(
    source: Source,
    effects: Sequence[Effect],
    name: str,
    *,
    whole: bool = True,
    last: str = "verdict",
    **more: Any,
) -> Figure:
    """Return a plot of comparisons of one metric: of too many those with the clearest changes. ``last`` heads the last
    column of the table, which holds their words, or else what they are counted of; ``more`` are other words of the
    figure."""
    shown = list(effects)
    if len(effects) > MOST:
        clearest = sorted(
            effects, key=lambda e: -abs(e.change or 0.0) / (e.half or 1e9)
        )
        kept = set(map(id, clearest[:MOST]))
        shown = [effect for effect in effects if id(effect) in kept]
    several = len(source.others) > 1
    rows = labels([f"{e.cell}, {e.variant}" if several else e.cell for e in shown])
    better = "more" if effects[0].metric.better == "higher" else "less"
    left = some("comparisons", len(shown), len(effects))
    counts = Counter(effect.word for effect in effects)
    counted = ", ".join(f"{count} {word}" for word, count in counts.items())
    ends = list(chain.from_iterable((effect.low, effect.high) for effect in shown))
    low, high = frame([e.change for e in shown], ends, source.margin, whole=whole)
    marks: list[dict[str, Any]] = []
    table = []
    for row, effect in zip(rows, shown, strict=True):
        known = effect.low is not None
        bounds = interval(effect.low, effect.high) if known else "no interval"
        values = [quantity(value, effect.metric.unit) for value in effect.values]
        marks.append(
            {
                "row": row,
                "change": percent_of(effect.change),
                "low": percent_of(effect.low),
                "high": percent_of(effect.high),
                "word": effect.word,
                "said": f"{effect.text} ({bounds})",
                "values": " to ".join(values),
                "counted": inert(effect.counted),
            }
        )
        words = effect.word if last == "verdict" else inert(effect.counted)
        table.append((row, effect.text, bounds if known else "-", words))
    about = f"Change against {label(source.baseline)}"
    if any(effect.low is not None for effect in source.effects or effects):
        about += " with its interval"
        arrow = "; an arrowhead marks an interval that runs off the chart; the table has all of it"
    else:
        about, arrow = f"{about}; no change has an interval", ""
    texts = {
        "title": f"Change of {effects[0].name}",
        "alt": f"{plural(len(effects), 'comparison')}: {counted}; {better} is better. {left}".strip(),
        "about": f"{about}. The shaded band is the margin of {100 * source.margin:g} %{arrow}.",
        **more,
    }
    return Figure(
        name=name,
        spec="forest",
        rows=marks,
        extra={
            "below": [
                {**mark, "at": low} for mark in marks if _under(mark["low"], low)
            ],
            "above": [
                {**mark, "at": high} for mark in marks if _under(high, mark["high"])
            ],
        },
        texts={
            "x": f"change, % ({better} is better)",
            "words": list(dict.fromkeys(effect.word for effect in shown)),
            "frame": [low, high],
            "rows": rows,
            "-margin": -100 * source.margin,
            "+margin": 100 * source.margin,
        },
        head=("comparison", "change", "interval", last),
        table=table,
        wide=max(map(len, rows)) > LONG,
        **texts,
    )


def _under(value: float | None, other: float | None) -> bool:
    return value is not None and other is not None and value < other


def shifts(source: Source) -> Iterator[Figure]:
    """Yield how far each percentile of latency moved in each telling cell, from the middle to the tail."""
    known: dict[str, list[tuple[str, ShiftFunction]]] = {}
    for cell, variant, shift in source.shifts:
        if shift.shifts:
            known.setdefault(cell, []).append((variant, shift))
    shown = source.telling(among=list(known))
    for cell in shown:
        effects, moved = [], []
        for variant, shift in known[cell]:
            for point in shift.shifts:
                name = f"p{100 * point.p:g}"
                if point.moved:
                    moved.append(f"{label(variant)} {name}")
                basis = f"band over {plural(shift.blocks, 'block')}"
                effect = Effect(
                    cell=name,
                    variant=variant,
                    metric=Metric("latency", "lower", "ns"),
                    change=math.expm1(point.change),
                    low=relative(point.low),
                    high=relative(point.high),
                    counted="all blocks together" if point.pooled else basis,
                )
                effects.append(effect)
        level = 100 * known[cell][0][1].level
        yield plotted(
            source,
            effects,
            f"shift-{source.place(cell)}",
            whole=False,
            last="from",
            title=label(cell),
            alt=f"Moved beyond its interval: {', '.join(moved)}."
            if moved
            else "None moved beyond its interval.",
            about=f"How far each percentile of latency moved against {label(source.baseline)}, with a {level:g} % band "
            "that holds for all percentiles of a chart. Intervals that come from the counts of all blocks together each "
            "stand alone. An arrowhead marks an interval that runs off the chart; the table has all of it.",
            note=some("cells", len(shown), len(known)),
        )


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


def costs(source: Source) -> Iterator[Figure]:
    """Yield what an I/O costs the machine (CPU time, context switches, interrupts) in each telling cell."""
    cells = source.by_cell()
    shown = source.telling(4, list(cells))
    for cell in shown:
        effects = list(_costs(source, cells[cell]))
        if effects:
            farthest = max(effects, key=lambda effect: abs(effect.change or 0.0))
            yield plotted(
                source,
                effects,
                f"counters-{source.place(cell)}",
                last="per I/O",
                title=label(cell),
                alt=f"Changed most: {farthest.cell}, {farthest.text} ({label(farthest.variant)}).",
                about=f"System cost per I/O, change against {label(source.baseline)}: medians over blocks; lines show the "
                "interquartile range over blocks, not a confidence interval.",
                note=some("cells", len(shown), len(cells)),
            )


def _costs(source: Source, trials: Sequence[Trial]) -> Iterator[Effect]:
    """Yield each counter of a cell, variant by variant: medians per I/O, the median change of a block, its middle half."""
    readers: list[tuple[str, str, Callable[[Trial], float]]] = [
        ("context switches", "", switches_per_io)
    ]
    # CPU time is counted in ticks: where many trials have none, the median of the others is not their time.
    if is_resolved(list(filter(math.isfinite, map(system_ns_per_io, trials)))):
        readers.insert(0, ("kernel time", "ns", system_ns_per_io))
    for name, counter, unit, size in COUNTED:
        readers.append((name, unit, partial(_per_io, counter=counter, size=size)))
    for name, unit, read in readers:
        arms: dict[str, dict[int, float]] = {}
        for trial in trials:
            value = read(trial)
            if math.isfinite(value) and value > 0:
                arms.setdefault(trial.variant, {})[trial.block] = value
        old = arms.get(source.baseline, {})
        for variant in source.others:
            new = arms.get(variant, {})
            ratios = sorted(new[block] / old[block] - 1 for block in new.keys() & old)
            if len(ratios) < LEAST:
                continue
            quarter = len(ratios) // 4
            both = [quantity(median(side.values()), unit) for side in (old, new)]
            yield Effect(
                cell=name,
                variant=variant,
                metric=Metric("cost", "lower", unit),
                change=median(ratios),
                low=ratios[quarter],
                high=ratios[-1 - quarter],
                counted=" -> ".join(both),
            )


def _per_io(trial: Trial, counter: str, size: float) -> float:
    """Return a machine's counter by the I/Os counted: the ramp's are in the one and not in the other, for all alike."""
    ios = sum(direction.ios for direction in trial.directions)
    return trial.counters.get(counter, math.nan) * size / ios if ios else math.nan


HOSTS = MOST - 2
"""Hosts of one chart; the others are in the table of the report."""

WORDS = ("regression", "improvement", "equivalent", "inconclusive")
"""First parts of joint words that have a mark in every chart; of hosts that differ there is none."""


def charts_of_fleet(account: FleetAccount) -> Charts:
    """Return a chart for each comparison that some host has a change of: each host, their mean, and the next host."""
    made = tuple(_of_hosts(account))
    return (("Change on each host", made),) if made else ()


def _of_hosts(account: FleetAccount) -> Iterator[Figure]:
    several = len({row.variant for row in account.rows}) > 1
    for number, row in enumerate(account.rows, 1):
        effects = list(_effects(row))
        known = [effect for effect in effects if effect.change is not None]
        if not known:
            continue
        source = Source(
            baseline=row.baseline,
            variants=(row.baseline, row.variant),
            cells=tuple(effect.cell for effect in effects),
            margin=account.margin,
            effects=tuple(effects),
        )
        place = inert(row.cell) + f", {inert(row.variant)}" * several
        # As many hosts, by their own words, as the table of the report has.
        words = Counter(host.word for host in row.hosts if host.change is not None)
        counts = ", ".join(f"{count} {word}" for word, count in words.items())
        better = "more" if row.metric.better == "higher" else "less"
        hosts = f"{plural(words.total(), 'host')}: {counts}; {better} is better"
        figure = plotted(
            source,
            known,
            f"hosts-{number}-{row.metric.name}",
            title=f"Change of {known[0].name}, {place}",
            alt=f"{place}: {row.word or 'no joint verdict'}; {hosts}.",
        )
        about = figure.about
        if row.together is not None:
            about += (
                " The last two rows are all hosts: their mean, and the interval in which the next host like them will "
                "lie."
            )
        if len(row.hosts) > HOSTS:
            about += f" Shown are the first {HOSTS} of {len(row.hosts)} hosts."
        yield msgspec.structs.replace(figure, about=about)


def _effects(row: FleetRow) -> Iterator[Effect]:
    """Yield the change of each host, then what they say together."""
    rows: list[tuple[str, Change | None, str, str]] = [
        (
            host.host,
            host.change,
            host.word or "no verdict",
            plural(host.blocks, "block"),
        )
        for host in row.hosts[:HOSTS]
    ]
    if row.together is not None and row.word is not None:
        word = row.word.partition(" ")[0]
        joint = word if word in WORDS else "no verdict"
        counted = plural(len(row.averaged), "host")
        rows.append(("mean of hosts", row.together.mean, joint, counted))
        rows.append(("next host", row.together.next, joint, counted))
    for name, change, word, counted in rows:
        value, low, high = ends_of(change)
        yield Effect(
            cell=name,
            variant=row.variant,
            metric=row.metric,
            name=metric_name(row.metric, with_kind=False),
            change=value,
            low=low,
            high=high,
            word=word,
            counted=counted,
        )
