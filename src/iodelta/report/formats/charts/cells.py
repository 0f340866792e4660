"""What charts of values share: which cells are in one chart, how their rows are named, and their numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from statistics import median
from typing import Any

import msgspec

from iodelta.plural import plural
from iodelta.report.formats.charts.model import label, labels, number
from iodelta.study.units import axis_unit
from iodelta.study.values import Place, Value, Values
from iodelta.study.words import inert, quantity
from iodelta.trial import Kind
from iodelta.verdict.metrics import LARGE_BLOCK

MOST = 40
"""Rows of one chart; more cells get more charts."""

FEW = 4
"""A panel with fewer cells shares its chart with others: a table says more than dozens of charts with one bar each."""

COLORS = 7
"""Variants with a colour each; more of them are distinguished by the names of their rows."""

ELSEWHERE = "one variant a row"

DECADES = 300.0
"""Values that differ by a larger factor get a logarithmic axis: a linear one would not show the small ones."""

NAMES = {"iops": "IOPS", "bandwidth": "bandwidth", "mean": "mean latency"}

NO_ZEROS = "A logarithmic axis cannot show zeros: they are in the table."


class Variants(msgspec.Struct, frozen=True):
    """How a chart distinguishes its variants: by colour, or by the names of its rows if there are too many."""

    names: Mapping[str, str]
    """Each by another name, as a legend shows it."""

    @property
    def is_crowded(self) -> bool:
        """Return whether there are more variants than colours."""
        return len(self.names) > COLORS

    @property
    def legend(self) -> list[str]:
        """Return the entries of the legend."""
        return [ELSEWHERE] if self.is_crowded else list(self.names.values())

    def lane(self, row: str, variant: str) -> dict[str, str]:
        """Return the row and the legend entry of a mark of ``variant`` in the ``row`` of its cell."""
        name = self.names[variant]
        if self.is_crowded:
            return {"row": f"{row}, {name}", "variant": ELSEWHERE}
        return {"row": row, "variant": name}


class Sheet(msgspec.Struct, frozen=True):
    """Cells that share a chart. ``panel`` is what all of them do; empty where they differ in it."""

    panel: str
    places: tuple[Place, ...]
    rows: tuple[str, ...]
    """The name of each cell's row."""


def metric_title(metric: str, kind: Kind, kinds: Sequence[Kind]) -> str:
    """``IOPS``, ``p99 latency``; the direction before it where there are several."""
    name = NAMES.get(metric, f"{metric} latency")
    if len(kinds) > 1:
        return f"{kind} {name}"
    return name


def sheets(values: Values, names: Iterable[str]) -> Iterator[Sheet]:
    """Yield the cells of these ``names`` in charts of at most 40 rows: one chart where all fit, else at least one for
    each panel."""
    cells = set(names)
    places = [place for place in values.places if place.cell in cells]
    most = max(1, MOST // max(1, len(values.variants)))
    if not places:
        return
    if len(places) <= most:
        yield _sheet(places, places)
        return
    for group in _small_together(_by_panel(values, cells)):
        for part in filter(None, _parts(group, most)):
            yield _sheet(part, group, among_others=True)


def _by_panel(values: Values, cells: set[str]) -> list[list[Place]]:
    """Return the places of ``cells``, panel by panel."""
    panels = [
        [place for place in places if place.cell in cells]
        for places in values.panels().values()
    ]
    return list(filter(None, panels))


def _small_together(panels: Iterable[list[Place]]) -> Iterator[list[Place]]:
    """Panels that follow each other as one group where each of them has few cells, others by themselves."""
    for is_small, alike in groupby(panels, key=lambda panel: len(panel) < FEW):
        if is_small:
            yield list(chain.from_iterable(alike))
        else:
            yield from alike


def _parts(group: Sequence[Place], most: int) -> Iterator[Sequence[Place]]:
    """At most ``most`` cells in each, some with none; cells with the same number of jobs stay together where they
    fit."""
    part: list[Place] = []
    for _, with_same_jobs in groupby(
        group, key=lambda place: (place.panel, place.jobs)
    ):
        alike = list(with_same_jobs)
        if len(part) + len(alike) > most:
            yield part
            part = []
        part += alike
        while len(part) > most:
            yield part[:most]
            part = part[most:]
    yield part


def _sheet(
    places: Sequence[Place], group: Sequence[Place], *, among_others: bool = False
) -> Sheet:
    """Return a chart of ``places``, which are all cells of ``group`` or some of them: then its panel says which."""
    names = [place.cell for place in places]
    panels = {place.panel for place in places}
    if len(panels) > 1:
        rows = labels(names)
        panel = f"{rows[0]} to {rows[-1]}" if among_others else ""
        return Sheet(panel, tuple(places), tuple(rows))
    coordinates = [coordinate(place, places) for place in places]
    if len(set(coordinates)) < len(places):
        coordinates = names
    panel = ", ".join(filter(None, (places[0].panel, *_which(places, group))))
    return Sheet(panel, tuple(places), tuple(labels(coordinates)))


def _which(places: Sequence[Place], group: Sequence[Place]) -> Iterator[str]:
    """``4 jobs``, ``iodepth 8 to 32``: on which part of an axis ``places`` lie, where ``group`` covers more of it."""
    depths, jobs = _depths(places), _jobs(places)
    if depths < _depths(group):
        yield f"iodepth {_range(depths)}"
    if jobs < _jobs(group):
        unit = "job" if max(jobs) == 1 else "jobs"
        yield f"{_range(jobs)} {unit}"


def _depths(places: Iterable[Place]) -> set[int]:
    return {place.depth or 0 for place in places}


def _jobs(places: Iterable[Place]) -> set[int]:
    return {place.jobs or 0 for place in places}


def _range(numbers: Collection[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def coordinate(place: Place, among: Sequence[Place]) -> str:
    """``iodepth 32, 4 jobs``: the axes in which cells of one panel differ; the cell's name where there are none."""
    several_depths = len({other.depth for other in among}) > 1
    several_jobs = len({other.jobs for other in among}) > 1
    parts = []
    if several_depths and place.depth is not None:
        parts.append(f"iodepth {place.depth}")
    if several_jobs and place.jobs is not None:
        parts.append(plural(place.jobs, "job"))
    return ", ".join(parts) or place.cell


def titled(name: str, panel: str) -> str:
    """Return a chart's title, with what all its cells do; a percentile keeps its small p."""
    begun = name if re.match(r"p\d", name) else f"{name[:1].upper()}{name[1:]}"
    if not panel:
        return begun
    return f"{begun}: {label(panel)}"


def numbered(name: str, place: int, of: int) -> str:
    """Return the name of a figure, with its place where there are several."""
    return f"{name}-{place}" if of > 1 else name


def spans(value: Value) -> str:
    """Return a value's interval with what it is; or that it is of one run."""
    if value.low is None or value.high is None:
        return "none: one run" if value.runs == 1 else "none"
    low, high = quantity(value.low, value.unit), quantity(value.high, value.unit)
    return f"{low} .. {high} ({value.basis})"


def datum(value: Value, size: float, **more: Any) -> dict[str, Any]:
    """Return the data of a mark and of its tooltip."""
    low, high = ends(value)
    return {
        "cell": label(value.cell),
        "value": number(value.value / size),
        "low": number(low / size),
        "high": number(high / size),
        "said": quantity(value.value, value.unit),
        "interval": spans(value),
        "runs": str(value.runs),
        **more,
    }


def ends(value: Value) -> tuple[float, float]:
    """Return the ends of a value's interval; the value itself where it has none."""
    if value.low is None or value.high is None:
        return value.value, value.value
    return value.low, value.high


def sized(values: Iterable[Value], *, log: bool = False) -> tuple[float, str]:
    """Return the number to divide values by so that their axis reads well, and the unit that results."""
    shown = list(values)
    highest = max(high for _, high in map(ends, shown))
    least = None
    if log:
        least = min(_positive(value.value for value in shown), default=None)
    return axis_unit(shown[0].unit, highest, least)


def notes(note: str, shown: Sequence[object], rows: Sequence[object]) -> str:
    """``note``, and that zeros are not ``shown`` where these are not all ``rows``."""
    zeros = NO_ZEROS if len(shown) < len(rows) else ""
    return " ".join(filter(None, (note, zeros)))


def above_zero(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that a logarithmic axis can show; an interval that begins at zero begins at its smallest number."""
    shown = [row for row in rows if row["value"]]
    numbers = [row["low"] for row in shown] + [row["value"] for row in shown]
    least = min(_positive(numbers), default=1.0)
    return [{**row, "low": row["low"] or least} for row in shown]


def _positive(numbers: Iterable[float]) -> list[float]:
    return [number for number in numbers if number > 0]


def wide_apart(values: Iterable[Value]) -> bool:
    """Return whether values differ so much that only a logarithmic axis shows all of them."""
    positive = _positive(value.value for value in values)
    return max(positive, default=0.0) > DECADES * min(positive, default=0.0)


def axis_title(name: str, unit: str) -> str:
    """Return a name and its unit; IOPS are their own unit."""
    return name if unit == "IOPS" else f"{name}, {unit}"


def rate_of(values: Values, kind: Kind) -> str:
    """IOPS; bandwidth for I/Os of 64 KiB and more, as storage people read it."""
    rates, bandwidths = values.of(kind, "iops"), values.of(kind, "bandwidth")
    if not bandwidths:
        return "iops"
    sizes = [
        bandwidths[arm].value / rate.value
        for arm, rate in rates.items()
        if arm in bandwidths and rate.value > 0
    ]
    are_large = bool(sizes) and median(sizes) >= LARGE_BLOCK
    return "bandwidth" if are_large or not rates else "iops"


def variant_names(values: Values) -> dict[str, str]:
    """Return the name of each variant in a legend. Names differ, and none is empty."""
    names = labels([inert(name) or "runs" for name in values.variants])
    return dict(zip(values.variants, names, strict=True))
