"""The measured values by cell and variant, with numeric axes: the numbers behind every chart of values."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from statistics import median

import msgspec

from iodelta.audit.numbers import known, latency
from iodelta.experiment import Cell, Experiment
from iodelta.experiment.values import size_bytes
from iodelta.experiment.work import kind_and_size
from iodelta.grouping import grouped
from iodelta.ingest import Run
from iodelta.ingest.layouts import Entry
from iodelta.ingest.layouts.content import run_name, workload_name
from iodelta.ingest.model import Workload
from iodelta.study.rows import BEYOND, percentiles_of
from iodelta.trial import Direction, Kind, Latency, Quantity, Trial

PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)

UNITS = {"iops": "IOPS", "bandwidth": "B/s", "cpu": "%", "spread": "%"}
"""Of rates and shares; everything else is a time in ns."""

CONFIDENCE = 0.95


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a cell lies: ``panel`` is its work without the two axes, which are None where they are not known."""

    cell: str
    panel: str
    depth: int | None = None
    """I/Os that each job keeps in flight (fio's iodepth)."""
    jobs: int | None = None


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """One number of a cell under a variant: the median over its runs. ``metric`` is iops, bandwidth, mean or p99 ..."""

    cell: str
    variant: str
    kind: Kind
    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    runs: int = 1
    """Of how many runs ``value`` is the median."""

    @property
    def unit(self) -> str:
        """IOPS, B/s or ns."""
        return UNITS.get(self.metric, "ns")

    @property
    def basis(self) -> str:
        """Return what ``low`` and ``high`` are; empty where there is no interval."""
        if self.low is None:
            return ""
        if order_statistic(self.runs):
            return "95 % interval of the median"
        return "range of the runs"


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that charts of values show; ``places`` in numeric order."""

    variants: tuple[str, ...]
    places: tuple[Place, ...]
    values: tuple[Value, ...]
    cpu: tuple[Value, ...] = ()
    """User and system time of fio's jobs in percent of their run time: of the whole run, all directions together."""

    def panels(self) -> dict[str, tuple[Place, ...]]:
        """Return the cells of each panel, in order."""
        panels = grouped(self.places, lambda place: place.panel)
        return {panel: tuple(places) for panel, places in panels.items()}

    def of(self, kind: Kind, metric: str) -> dict[tuple[str, str], Value]:
        """Return the values of one metric by cell and variant."""
        asked = (kind, metric)
        return {
            (value.cell, value.variant): value
            for value in self.values
            if (value.kind, value.metric) == asked
        }

    def kinds(self) -> tuple[Kind, ...]:
        """Directions that did anything, in first-seen order."""
        return tuple(dict.fromkeys(value.kind for value in self.values))


Sample = tuple[str, str, Sequence[Direction]]
"""Cell, variant, and what one run did."""


def of_samples(places: Iterable[Place], samples: Iterable[Sample]) -> Values:
    """Runs put together by cell and variant."""
    samples_of: dict[tuple[str, str, Kind, str], list[float]] = {}
    variants: dict[str, None] = {}
    for cell, variant, directions in samples:
        variants[variant] = None
        for direction in directions:
            for metric, number in numbers(direction):
                key = (cell, variant, direction.kind, metric)
                samples_of.setdefault(key, []).append(number)
    values = [_value(*key, numbers=of_runs) for key, of_runs in samples_of.items()]
    with_values = {value.cell for value in values}
    return Values(
        variants=tuple(variants),
        places=tuple(place for place in ordered(places) if place.cell in with_values),
        values=tuple(values),
    )


def numbers(direction: Direction) -> Iterator[tuple[str, float]]:
    """Yield every number of a run's direction that is known. A percentile needs 100 I/Os beyond it where they are
    counted.
    """
    total = latency(direction)
    known_quantities = (
        ("iops", direction.iops),
        ("bandwidth", direction.bandwidth),
        ("mean", total.mean if total is not None else None),
    )
    for metric, quantity in known_quantities:
        if quantity is not None and usable(quantity):
            yield metric, quantity.value
    pointed = percentiles_of(direction)
    if pointed is None:
        return
    for percent in PERCENTS:
        number = pointed.quantile(percent / 100)
        if _borne(pointed, percent) and 0 <= number < math.inf:
            yield f"p{percent:g}", number


def usable(quantity: Quantity) -> bool:
    """Return whether a number can be drawn: known, finite and not negative."""
    return known(quantity) and 0 <= quantity.value < math.inf


def _borne(latency: Latency, percent: float) -> bool:
    """Return whether enough I/Os lie beyond a percentile; assumed if they were not counted."""
    if not latency.count:
        return True
    beyond = latency.count * (100 - percent) / 100
    return beyond >= BEYOND * (1 - 1e-9)


def _value(
    cell: str, variant: str, kind: Kind, metric: str, *, numbers: Sequence[float]
) -> Value:
    low, high = spread(numbers)
    middle = median(numbers)
    return Value(
        cell=cell,
        variant=variant,
        kind=kind,
        metric=metric,
        value=middle,
        low=low,
        high=high,
        runs=len(numbers),
    )


def spread(numbers: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the 95 % interval of the median by order statistics, which needs no assumption about the distribution.

    The range of the numbers if they are too few for that; (None, None) for a single one.
    """
    if len(numbers) < 2:
        return None, None
    in_order = sorted(numbers)
    outer = max(order_statistic(len(in_order)), 1) - 1
    return in_order[outer], in_order[-1 - outer]


def order_statistic(count: int) -> int:
    """Return the rank from either end, among ``count`` numbers, that bounds the median with 95 % confidence; 0 for
    fewer than 6.

    The median lies outside (x[k], x[n+1-k]) with probability 2 P(Binomial(n, 1/2) < k).
    """
    outside, k = 0.0, 0
    while k < count // 2:
        outside += 2 * math.comb(count, k) / 2**count
        if outside > 1 - CONFIDENCE:
            break
        k += 1
    return k


# Where cells lie


_AXES = re.compile(r"(?:iodepth|qd|numjobs|jobs)[ =]?\d+|\b\d+ jobs?\b", re.IGNORECASE)
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_SIZES = re.compile(r"(?<![\w.])(\d+)([kmgt])i?b?\b", re.IGNORECASE)
_FACTORS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def entry_places(cells: Iterable[tuple[str, Entry]]) -> list[Place]:
    """The places of foreign runs' cells, each given with one of its runs."""
    places = []
    for cell, entry in cells:
        run = entry.run
        work = msgspec.structs.replace(run.workload, iodepth=None, numjobs=None)
        name = run_name(msgspec.structs.replace(run, workload=work))
        place = Place(
            cell=cell,
            panel=", ".join(filter(None, (name, entry.condition))),
            depth=run.workload.iodepth,
            jobs=run.workload.numjobs or run.jobs,
        )
        places.append(place)
    return _distinct(places)


def cell_places(experiment: Experiment) -> list[Place]:
    """Return the places of an experiment's cells."""
    several = len({cell.condition for cell in experiment.cells}) > 1
    places = []
    for cell in experiment.cells:
        kind, size = kind_and_size(cell.options, experiment.variants)
        parts = [workload_name(Workload(rw=kind, bs=_bytes(size)), sizes=size)]
        if several:
            parts.append(cell.condition)
        place = Place(
            cell=cell.name,
            panel=", ".join(filter(None, parts)),
            depth=_count(experiment, cell, "iodepth"),
            jobs=_count(experiment, cell, "numjobs"),
        )
        places.append(place)
    return _distinct(places)


def _count(experiment: Experiment, cell: Cell, option: str) -> int | None:
    """Return the value of an option that all variants have in a cell; None where they differ in it."""
    differing = chain.from_iterable(variant.options for variant in experiment.variants)
    if option in dict(differing):
        return None
    text = cell.option(option) or "1"
    if not text.isdigit():
        return None
    return int(text)


def _bytes(text: str) -> int | None:
    try:
        return size_bytes(text) if text else None
    except ValueError:
        return None


def _distinct(places: Sequence[Place]) -> list[Place]:
    """Return the places; if two cells of a panel lie in one place, its panels also have the rest of the cells' names."""
    counts = Counter((place.panel, place.depth, place.jobs) for place in places)
    crowded = {panel for (panel, _, _), count in counts.items() if count > 1}
    apart = []
    for place in places:
        panel = (
            " ".join(_AXES.sub("", place.cell).replace(" ,", ",").split()).strip(" ,:")
            if place.panel in crowded
            else place.panel
        )
        apart.append(msgspec.structs.replace(place, panel=panel))
    return apart


def ordered(places: Iterable[Place]) -> list[Place]:
    """By panel, jobs and depth; panels that differ in numbers alone by these, others in first-seen order."""
    own = list(dict.fromkeys(places))
    shapes = _first_seen(_shape(place.panel) for place in own)
    cells = _first_seen(_shape(place.cell) for place in own)

    def key(place: Place) -> tuple[object, ...]:
        panel = (shapes[_shape(place.panel)], _numbers(place.panel))
        return (
            *panel,
            place.jobs or 0,
            place.depth or 0,
            cells[_shape(place.cell)],
            _numbers(place.cell),
        )

    return sorted(own, key=key)


def _first_seen(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def _shape(name: str) -> str:
    return _NUMBERS.sub("#", _sized(name))


def _numbers(name: str) -> tuple[float, ...]:
    return tuple(map(float, _NUMBERS.findall(_sized(name))))


def _sized(name: str) -> str:
    """Return a name with its sizes in bytes: 4k before 64k before 1m."""
    return _SIZES.sub(_in_bytes, name)


def _in_bytes(size: re.Match[str]) -> str:
    return str(int(size[1]) * _FACTORS[size[2].lower()])


# From results


def of_entries(entries: Sequence[tuple[str, str, Entry]]) -> Values:
    """Foreign runs, each with its cell and variant."""
    first = {cell: (cell, entry) for cell, _, entry in reversed(entries)}
    seen = dict.fromkeys(cell for cell, _, _ in entries)
    places = entry_places(first[cell] for cell in seen)
    values = of_samples(
        places,
        ((cell, variant, entry.run.directions) for cell, variant, entry in entries),
    )
    return msgspec.structs.replace(values, cpu=tuple(_cpu(entries)))


def _cpu(entries: Sequence[tuple[str, str, Entry]]) -> Iterator[Value]:
    """Yield one for each cell and variant; a run that did nothing has none."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for cell, variant, entry in entries:
        run = entry.run
        if run.directions and usable(run.usr_cpu) and usable(run.sys_cpu):
            groups.setdefault((cell, variant), []).append(run)
    for (cell, variant), runs in groups.items():
        shares = [run.usr_cpu.value + run.sys_cpu.value for run in runs]
        yield _value(cell, variant, runs[0].directions[0].kind, "cpu", numbers=shares)


def of_trials(
    experiment: Experiment, trials: Iterable[Trial], variants: Sequence[str]
) -> Values:
    """Return an experiment's trials that count."""
    samples = ((trial.cell, trial.variant, trial.directions) for trial in trials)
    values = of_samples(cell_places(experiment), samples)
    return msgspec.structs.replace(
        values, variants=tuple(name for name in variants if name in values.variants)
    )
