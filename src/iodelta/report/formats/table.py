"""Verdicts as one table for a terminal: a row for each cell, variant and metric; what rows share heads the table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import msgspec
from rich.cells import cell_len
from rich.text import Text

from iodelta.grouping import grouped
from iodelta.report.formats.columns import columns, cut, differs_from
from iodelta.report.formats.terminal import STYLES
from iodelta.report.stories.evidence import apart, too_thin
from iodelta.study.experiment import Account
from iodelta.study.words import (
    inert,
    interval,
    measured,
    metric_name,
    quantity,
)
from iodelta.verdict import Verdict

VALUES = ">>><<"
"""How baseline, variant, change, interval and verdict are aligned."""

NAMED = 24
"""Columns of a name in a heading."""

CELL, VARIANT, METRIC = range(3)
"""Places of the names of a row."""

CLEARLY = 1.25
"""How many times larger a change is that is shown in place of the first metric's."""

MARK = "*"
"""After a change that is not the ratio of the two values of its row: a line below the table says why."""

FIT = 14
"""Rows that a screen of several cells has room for."""

MOST_ROWS = 12
"""More rows than this are folded to fit one screen."""


class Line(msgspec.Struct, frozen=True):
    """One row: its names, and the verdict that it shows."""

    names: tuple[str, str, str]
    """Of cell, variant and metric."""
    verdict: Verdict
    alike: int = 0
    """Further metrics that this row stands for."""


def lines_of(account: Account, *, whole: bool) -> tuple[Line, ...]:
    """Return all rows in the plan's order; without ``whole`` metrics of a cell that say the same are folded into one
    row where there are too many."""
    verdicts = account.judgement.verdicts
    experiment = account.plan.experiment
    several = len({verdict.metric.kind for verdict in verdicts} - {"cpu"}) > 1
    fold = len(verdicts) > MOST_ROWS and not whole
    rows = []
    for cell, variant in product(experiment.cells, experiment.variants):
        arm = (cell.name, variant.name)
        of_arm = [
            verdict for verdict in verdicts if (verdict.cell, verdict.variant) == arm
        ]
        for shown, alike in _rows(of_arm, fold=fold):
            name = metric_name(shown.metric, with_kind=several)
            if alike:
                name += f" (+{alike})"
            names = (inert(cell.name), inert(variant.name), name)
            rows.append(Line(names, shown, alike))
    if len(rows) <= FIT or whole:
        return tuple(rows)
    # Still too many: a row for each cell and variant, with its most telling word.
    rank = ("regression", "improvement", "inconclusive", "equivalent")
    folded = []
    for own in grouped(rows, lambda line: line.names[:METRIC]).values():
        first = min(own, key=lambda line: rank.index(line.verdict.word))
        alike = sum(1 + line.alike for line in own) - 1
        name = first.names[METRIC].partition(" (+")[0] + (
            f" (+{alike})" if alike else ""
        )
        folded.append(
            Line((first.names[CELL], first.names[VARIANT], name), first.verdict, alike)
        )
    return tuple(folded)


def _rows(verdicts: Sequence[Verdict], *, fold: bool) -> Iterator[tuple[Verdict, int]]:
    """Yield the verdicts to show; with ``fold`` one for each word, and for how many more it stands."""

    def row(verdict: Verdict) -> str:
        return verdict.word if fold else verdict.metric.name

    for alike in grouped(verdicts, row).values():
        rate, largest = alike[0], max(alike, key=_size)
        # The rate stands for its latencies unless one of them changed by clearly more: a worse tail is not hidden.
        shown = largest if _size(largest) > CLEARLY * _size(rate) else rate
        yield shown, len(alike) - 1


def _size(verdict: Verdict) -> float:
    """Return the size of a regression or improvement as a log-ratio, either way; 0 for other words."""
    if verdict.change is None or verdict.word not in ("regression", "improvement"):
        return 0.0
    return abs(math.log1p(max(verdict.change.value, -0.999)))


def table(account: Account, width: int, *, whole: bool) -> Iterator[Text]:
    """Yield the table, none of its lines wider than ``width`` where that can be."""
    rows = lines_of(account, whole=whole)
    if not rows:
        return
    shared, kept = _columns_of(rows)
    title = ", ".join(shared)
    if len(title) > NAMED:
        yield Text(cut(title, width), style="dim")
        title = ""
    heads = _heads(account, rows)
    texts = _texts(title, heads, rows, kept)
    # A cell whose name has no room next to the numbers gets a line of its own above its rows: names are not cut.
    grouped = kept[0] == CELL and len(kept) > 1 and not _fits(texts, width)
    if grouped:
        kept = kept[1:]
        texts = _texts(title, heads, rows, kept)
    made = columns(
        texts,
        "<" * len(kept) + VALUES,
        width,
        indent=2 if grouped else 0,
        fold=len(kept) + 2,
    )
    yield Text(made[0], style="dim")
    yield from _body(rows, made[1:], width, grouped=grouped)
    if any(row.alike for row in rows):
        yield Text(
            "(+n): n more metrics of the cell with the same verdict", style="dim"
        )
    for why, mark in _marks(rows).items():
        yield Text(f"{mark} {why}", style="dim")


def _marks(rows: Sequence[Line]) -> dict[str, str]:
    """Return why changes of the rows are not the ratios of their values, and the mark of each: one more star each."""
    reasons = dict.fromkeys(filter(None, (apart(row.verdict) for row in rows)))
    return {why: MARK * place for place, why in enumerate(reasons, 1)}


def _body(
    rows: Sequence[Line], made: Sequence[str], width: int, *, grouped: bool
) -> Iterator[Text]:
    above = ""
    for row, line in zip(rows, made, strict=True):
        if grouped and row.names[CELL] != above:
            above = row.names[CELL]
            yield Text(cut(above, width))
        word = row.verdict.word
        yield Text(line.removesuffix(word)).append(word, style=STYLES[word])


def _heads(account: Account, rows: Sequence[Line]) -> tuple[str, ...]:
    """Return the headings of the values; the one variant that there is gives its name."""
    variants = {row.names[VARIANT] for row in rows}
    variant = rows[0].names[VARIANT] if len(variants) == 1 else "variant"
    baseline = inert(account.plan.experiment.baseline)
    return (
        cut(baseline, NAMED),
        cut(variant, NAMED),
        "change",
        f"{100 * (1 - account.plan.rules.alpha):g} % interval",
        "verdict",
    )


def _texts(
    title: str, heads: tuple[str, ...], rows: Sequence[Line], kept: Sequence[int]
) -> list[tuple[str, ...]]:
    """Return the heading and all rows as texts; a name that the row above has already is left out."""
    texts = [(title, *("" for _ in kept[1:]), *heads)]
    above: tuple[str, ...] = ()
    marks = _marks(rows)
    for row in rows:
        names = row.names[: kept[-1] + 1]
        same = differs_from(names, above)
        shown = ("" if place < same else names[place] for place in kept)
        texts.append((*shown, *_values(row.verdict, marks)))
        above = names
    return texts


def _fits(texts: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether a table stands side by side without a name being cut."""
    widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    return sum(widths) + len(widths) - 1 <= width


def _columns_of(rows: Sequence[Line]) -> tuple[list[str], list[int]]:
    """Return what all rows have in common, and the names that differ and get a column; there is always one."""
    shared, kept = [], []
    for place in (CELL, VARIANT, METRIC):
        names = {row.names[place] for row in rows}
        if len(names) > 1:
            kept.append(place)
        elif place != VARIANT:  # the one variant heads a column of values
            shared.append(rows[0].names[place])
    return (shared, kept) if kept else (shared[:1], [METRIC])


def _values(verdict: Verdict, marks: Mapping[str, str]) -> tuple[str, ...]:
    change, size, bounds = verdict.change, "-", "-"
    if change is not None:
        size = measured(change.value, change.low, change.high)
        size += marks.get(apart(verdict), "")
        bounds = interval(change.low, change.high)
    elif too_thin(verdict):
        bounds = too_thin(verdict)
    value = quantity(verdict.variant_value, verdict.metric.unit)
    return (_baseline(verdict), value, size, bounds, verdict.word)


def _baseline(verdict: Verdict) -> str:
    return quantity(verdict.baseline_value, verdict.metric.unit)
