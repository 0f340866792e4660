"""A comparison as a story: what two sets of runs allow to be said, and on what it rests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from iodelta.errors import pasted
from iodelta.plural import plural
from iodelta.report.stories.environment import differing
from iodelta.report.stories.sources import findings, not_read, system_of_sides
from iodelta.report.stories.story import (
    PLAIN,
    Cell,
    Detail,
    Row,
    Section,
    Story,
    Table,
    section,
)
from iodelta.report.stories.visible import Interval, visible
from iodelta.study.cell import Compared
from iodelta.study.comparison import Comparison
from iodelta.study.rows import Number
from iodelta.study.words import (
    inert,
    interval,
    measured,
    metric_name,
    percent,
    quantity,
    scatter,
)
from iodelta.verdict.metrics import COMMAND, Metric

ONE_SIDED = 12
"""Cells of one side only that are named."""


def of_comparison(comparison: Comparison, detail: Detail = PLAIN) -> Story:
    """Results from anywhere, compared: differences, what they are based on, what else differs."""
    differences = {
        name: tuple(differing(own)) or ("no known difference",)
        for name, own in comparison.differences.items()
    }
    alike = len(set(differences.values())) == 1
    what_else: list[Section] = []
    for name, items in list(differences.items())[: 1 if alike else None]:
        what_else += section(
            "What else differs" if alike else f"What else differs: {inert(name)}", items
        )
    words = " ".join(map(quoted, comparison.paths))
    return Story(
        question="",
        answer=answer(comparison),
        tables=tuple(_comparison_tables(comparison)),
        sections=(
            *what_else,
            *section("On one side only", _one_sided(comparison.unmatched)),
            *section("Method", method(comparison)),
            *section(
                "Findings",
                findings(comparison.findings) if comparison.findings else ("none",),
            ),
            *section("Not read", not_read(comparison.refusals)),
            *system_of_sides(comparison.systems),
            *section(
                "To do it again",
                (f"iodelta compare {words} --margin {100 * comparison.margin:g}%",),
                commands=True,
            ),
        ),
    )


def _one_sided(cells: Sequence[str]) -> Iterator[str]:
    yield from map(inert, cells[:ONE_SIDED])
    if len(cells) > ONE_SIDED:
        yield f"and {len(cells) - ONE_SIDED} more; --format json lists them"


def quoted(path: str) -> str:
    """A path as a shell takes it, without control characters."""
    return pasted(inert(path))


def _comparison_tables(comparison: Comparison) -> Iterator[Table]:
    if len(comparison.variants) > 1:
        yield from map(
            partial(_side_by_side, comparison),
            dict.fromkeys(row.metric for row in comparison.compared),
        )
    for variant in comparison.variants:
        yield from _of_variant(comparison, variant)


def _of_variant(comparison: Comparison, variant: str) -> Iterator[Table]:
    """A table for each metric; of several variants without single runs, which stand side by side already."""
    own = [row for row in comparison.compared if row.variant == variant]
    several = len({row.metric.partition(".")[0] for row in own}) > 1
    against = (
        f": {inert(variant)} against {inert(comparison.baseline)}"
        if len(comparison.variants) > 1
        else ""
    )
    for metric in dict.fromkeys(row.metric for row in own):
        rows = [row for row in own if row.metric == metric]
        if against:
            rows = [row for row in rows if row.basis != "single runs"]
        if not rows:
            continue
        title = f"{name_of(rows[0], several)} ({rows[0].better} is better){against}"
        spread = set(chain.from_iterable(row.spread for row in rows)) != {None}
        heads = (
            "n",
            inert(comparison.baseline),
            *(["+-"] * spread),
            inert(variant),
            *(["+-"] * spread),
        )
        lines = tuple(_compared(row, spread) for row in rows)
        yield Table(title, "cell", (*heads, "change", "interval", "verdict"), lines)


def _side_by_side(comparison: Comparison, metric: str) -> Table:
    """All variants' values of one metric; nothing is marked best, since no two variants were compared but by these."""
    own = [row for row in comparison.compared if row.metric == metric]
    by_cell: dict[str, dict[str, Compared]] = {}
    for row in own:
        by_cell.setdefault(row.cell, {})[row.variant] = row
    rows = []
    for cell, arms in by_cell.items():
        head = next(iter(arms.values()))
        values = [
            head.values[0],
            *(
                arms[name].values[1] if name in arms else None
                for name in comparison.variants
            ),
        ]
        notes = dict.fromkeys(row.says for row in arms.values() if row.unsound)
        rows.append(Row(inert(cell), _quantities(values, head.unit), "; ".join(notes)))
    several = len({row.metric.partition(".")[0] for row in comparison.compared}) > 1
    title = f"{name_of(own[0], several)} ({own[0].better} is better)"
    return Table(
        title,
        "cell",
        (inert(comparison.baseline), *map(inert, comparison.variants)),
        tuple(rows),
        words=False,
    )


def _quantities(values: Sequence[float | None], unit: str) -> tuple[Cell, ...]:
    return tuple([Cell(quantity(value, unit)) for value in values])


def _compared(row: Compared, spread: bool) -> Row:
    counts = (
        str(row.runs[0])
        if row.runs[0] == row.runs[1]
        else f"{row.runs[0]}, {row.runs[1]}"
    )
    change, bounds = change_of(row.change)[0], bounds_of(row)
    marked = {"regression": (0,), "improvement": (1,), "equivalent": (0, 1)}.get(
        row.word, ()
    )
    cells = [Cell(counts)]
    for side, (value, share) in enumerate(zip(row.values, row.spread, strict=True)):
        cells.append(Cell(quantity(value, row.unit), side in marked))
        if spread:
            cells.append(Cell(scatter(share)))
    return Row(
        inert(row.cell),
        (*cells, Cell(change), Cell(bounds or "-"), Cell(row.word)),
        inert(says_of(row)),
    )


def answer(comparison: Comparison) -> str:
    """The answers for all variants, those that are the same in one sentence."""
    alike: dict[str, list[str]] = {}
    for variant in comparison.variants:
        said_ = _said(
            comparison,
            variant,
            [row for row in comparison.compared if row.variant == variant],
        )
        alike.setdefault(said_, []).append(inert(variant))
    return " ".join(
        f"{', '.join(names)} against {inert(comparison.baseline)}: {text}"
        for text, names in alike.items()
    )


def headline(comparison: Comparison, variant: str, own: Sequence[Compared]) -> str:
    """The answer in a sentence, no stronger than what is below it."""
    return f"{inert(variant)} against {inert(comparison.baseline)}: {_said(comparison, variant, own)}"


def _said(comparison: Comparison, variant: str, own: Sequence[Compared]) -> str:
    lacking = comparison.lacking.get(variant, ())
    lack = (
        f"no number that all runs have in {plural(len(lacking), 'cell')}"
        if lacking
        else ""
    )
    if not own:
        if not lack:
            return "no cell in common."
        return f"no verdict: {lack}."
    own = [row for row in own if row.resolved] or list(own)
    words = [row.word for row in own]
    verdicts = [
        f"{word} in {words.count(word)} of {len(words)}"
        for word in ("regression", "improvement", "equivalent", "inconclusive")
        if word in words
    ]
    reasons = dict.fromkeys(row.why for row in own if row.word == "no verdict")
    if not reasons:
        return f"{', '.join(verdicts)} numbers{f'; {lack}' if lack else ''}."
    verdict = (
        f"{', '.join(verdicts)}; no verdict on the others" if verdicts else "no verdict"
    )
    return f"{verdict}: {'; '.join((*reasons, *([lack] if lack else ())))}."


def bounds_of(row: Compared) -> str:
    """The interval over the runs; a single run on each side has none."""
    if row.basis == "single runs":
        return ""
    return change_of(row.change)[1]


def says_of(row: Compared) -> str:
    """What stands below a number: how it came to its word, and of single runs how finely their sources tell it."""
    low, high = (
        (row.change.low, row.change.high) if row.change else (math.nan, math.nan)
    )
    rounded = (
        change_of(row.change)[1] if row.basis == "single runs" and low < high else ""
    )
    return f"{row.says}; the digits given leave {rounded}" if rounded else row.says


def name_of(row: Compared, several: bool) -> str:
    """``p99 clat``: in fio's own words, since it matters which latency it is."""
    kind, _, what = row.metric.partition(".")
    if kind == COMMAND:
        return metric_name(Metric(row.metric, "lower", row.unit), with_kind=False)
    family, _, point = what.partition(".")
    name = (
        f"{point} {family}"
        if point
        else {"iops": "IOPS", "bandwidth": "bandwidth"}[what]
    )
    if several or kind == "sync":
        return f"{kind} {name}"
    return name


def change_of(change: Number | None) -> tuple[str, str]:
    """The change and its interval."""
    if change is None:
        return "-", ""
    if not (math.isfinite(change.low) and math.isfinite(change.high)):
        return percent(change.value), ""
    return measured(change.value, change.low, change.high), interval(
        change.low, change.high
    )


def method(comparison: Comparison) -> Iterator[str]:
    """What the words of a comparison rest on."""
    by_basis: dict[str, list[Compared]] = {}
    for row in comparison.compared:
        by_basis.setdefault(row.basis, []).append(row)
    yield (
        f"Margin {100 * comparison.margin:g} %. iodelta decided nothing in advance: these runs were made before the "
        "question was asked, and all of them were looked at once."
    )
    yield from _bases(by_basis, len(comparison.compared))
    seen = visible(_intervals(comparison.compared))
    if seen:
        yield f"Smallest change this could have seen: {seen}."
    yield "These runs have no calibration, so the rate of false alarms on this machine is not known."


def _intervals(compared: Sequence[Compared]) -> Iterator[Interval]:
    """The changes whose interval comes from several runs."""
    several = len({row.metric.partition(".")[0] for row in compared}) > 1
    for row in compared:
        if row.change is not None and row.basis in ("blocks", "replicates"):
            name = inert(name_of(row, several))
            yield Interval(
                name, row.better, row.change.value, row.change.low, row.change.high
            )


def _bases(by_basis: Mapping[str, Sequence[Compared]], every: int) -> Iterator[str]:
    """What was compared with what, and how."""
    blocks = by_basis.get("blocks", ())
    if blocks:
        level = 100 * max(
            row.verdict.change.level
            for row in blocks
            if row.verdict and row.verdict.change
        )
        yield (
            f"{len(blocks)} of {every} numbers: runs of both sides were interleaved in time and are "
            f"compared pair by pair; Hodges-Lehmann estimate, signed-rank interval, level {level:.4g} %."
        )
    replicates = by_basis.get("replicates", ())
    if replicates:
        reasons = "; ".join(dict.fromkeys(row.why for row in replicates))
        yield (
            f"{len(replicates)} of {every} numbers: several runs, but no verdict ({reasons}); the "
            "interval (95 %) takes them as independent draws."
        )
    alone = by_basis.get("single runs", ())
    if alone:
        yield (
            f"{len(alone)} of {every} numbers: one run on each side; no interval, since the "
            "scatter between runs is not known, so no verdict is given."
        )
