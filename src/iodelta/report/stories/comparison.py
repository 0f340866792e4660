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


def of_comparison(found: Comparison, detail: Detail = PLAIN) -> Story:
    """Results from anywhere, compared: differences, what they are based on, what else differs."""
    differences = {
        name: tuple(differing(own)) or ("no known difference",)
        for name, own in found.differences.items()
    }
    alike = len(set(differences.values())) == 1
    what_else: list[Section] = []
    for name, items in list(differences.items())[: 1 if alike else None]:
        what_else += section(
            "What else differs" if alike else f"What else differs: {inert(name)}", items
        )
    words = " ".join(map(quoted, found.paths))
    return Story(
        question="",
        answer=answer(found),
        tables=tuple(_comparison_tables(found)),
        sections=(
            *what_else,
            *section("On one side only", _one_sided(found.unmatched)),
            *section("Method", method(found)),
            *section(
                "Findings", findings(found.findings) if found.findings else ("none",)
            ),
            *section("Not read", not_read(found.refusals)),
            *system_of_sides(found.systems),
            *section(
                "To do it again",
                (f"iodelta compare {words} --margin {100 * found.margin:g}%",),
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


def _comparison_tables(found: Comparison) -> Iterator[Table]:
    if len(found.variants) > 1:
        yield from map(
            partial(_side_by_side, found),
            dict.fromkeys(one.metric for one in found.compared),
        )
    for variant in found.variants:
        yield from _of_variant(found, variant)


def _of_variant(found: Comparison, variant: str) -> Iterator[Table]:
    """A table for each metric; of several variants without single runs, which stand side by side already."""
    own = [one for one in found.compared if one.variant == variant]
    several = len({one.metric.partition(".")[0] for one in own}) > 1
    against = (
        f": {inert(variant)} against {inert(found.baseline)}"
        if len(found.variants) > 1
        else ""
    )
    for metric in dict.fromkeys(one.metric for one in own):
        rows = [one for one in own if one.metric == metric]
        if against:
            rows = [one for one in rows if one.basis != "single runs"]
        if not rows:
            continue
        title = f"{name_of(rows[0], several)} ({rows[0].better} is better){against}"
        spread = set(chain.from_iterable(one.spread for one in rows)) != {None}
        heads = (
            "n",
            inert(found.baseline),
            *(["+-"] * spread),
            inert(variant),
            *(["+-"] * spread),
        )
        lines = tuple(_compared(one, spread) for one in rows)
        yield Table(title, "cell", (*heads, "change", "interval", "verdict"), lines)


def _side_by_side(found: Comparison, metric: str) -> Table:
    """All variants' values of one metric; nothing is marked best, since no two variants were compared but by these."""
    own = [one for one in found.compared if one.metric == metric]
    by_cell: dict[str, dict[str, Compared]] = {}
    for one in own:
        by_cell.setdefault(one.cell, {})[one.variant] = one
    rows = []
    for cell, arms in by_cell.items():
        head = next(iter(arms.values()))
        values = [
            head.values[0],
            *(
                arms[name].values[1] if name in arms else None
                for name in found.variants
            ),
        ]
        notes = dict.fromkeys(one.says for one in arms.values() if one.unsound)
        rows.append(Row(inert(cell), _quantities(values, head.unit), "; ".join(notes)))
    several = len({one.metric.partition(".")[0] for one in found.compared}) > 1
    title = f"{name_of(own[0], several)} ({own[0].better} is better)"
    return Table(
        title,
        "cell",
        (inert(found.baseline), *map(inert, found.variants)),
        tuple(rows),
        words=False,
    )


def _quantities(values: Sequence[float | None], unit: str) -> tuple[Cell, ...]:
    return tuple([Cell(quantity(value, unit)) for value in values])


def _compared(one: Compared, spread: bool) -> Row:
    counts = (
        str(one.runs[0])
        if one.runs[0] == one.runs[1]
        else f"{one.runs[0]}, {one.runs[1]}"
    )
    change, bounds = change_of(one.change)[0], bounds_of(one)
    marked = {"regression": (0,), "improvement": (1,), "equivalent": (0, 1)}.get(
        one.word, ()
    )
    cells = [Cell(counts)]
    for side, (value, share) in enumerate(zip(one.values, one.spread, strict=True)):
        cells.append(Cell(quantity(value, one.unit), side in marked))
        if spread:
            cells.append(Cell(scatter(share)))
    return Row(
        inert(one.cell),
        (*cells, Cell(change), Cell(bounds or "-"), Cell(one.word)),
        inert(says_of(one)),
    )


def answer(found: Comparison) -> str:
    """The answers for all variants, those that are the same in one sentence."""
    alike: dict[str, list[str]] = {}
    for variant in found.variants:
        said_ = _said(
            found, variant, [one for one in found.compared if one.variant == variant]
        )
        alike.setdefault(said_, []).append(inert(variant))
    return " ".join(
        f"{', '.join(names)} against {inert(found.baseline)}: {text}"
        for text, names in alike.items()
    )


def headline(found: Comparison, variant: str, own: Sequence[Compared]) -> str:
    """The answer in a sentence, no stronger than what is below it."""
    return f"{inert(variant)} against {inert(found.baseline)}: {_said(found, variant, own)}"


def _said(found: Comparison, variant: str, own: Sequence[Compared]) -> str:
    lacking = found.lacking.get(variant, ())
    lack = (
        f"no number that all runs have in {plural(len(lacking), 'cell')}"
        if lacking
        else ""
    )
    if not own:
        return f"no verdict: {lack}." if lack else "no cell in common."
    own = [one for one in own if one.resolved] or list(own)
    words = [one.word for one in own]
    verdicts = [
        f"{word} in {words.count(word)} of {len(words)}"
        for word in ("regression", "improvement", "equivalent", "inconclusive")
        if word in words
    ]
    reasons = dict.fromkeys(one.why for one in own if one.word == "no verdict")
    if not reasons:
        return f"{', '.join(verdicts)} numbers{f'; {lack}' if lack else ''}."
    verdict = (
        f"{', '.join(verdicts)}; no verdict on the others" if verdicts else "no verdict"
    )
    return f"{verdict}: {'; '.join((*reasons, *([lack] if lack else ())))}."


def bounds_of(one: Compared) -> str:
    """The interval over the runs; a single run on each side has none."""
    return "" if one.basis == "single runs" else change_of(one.change)[1]


def says_of(one: Compared) -> str:
    """What stands below a number: how it came to its word, and of single runs how finely their sources tell it."""
    low, high = (
        (one.change.low, one.change.high) if one.change else (math.nan, math.nan)
    )
    rounded = (
        change_of(one.change)[1] if one.basis == "single runs" and low < high else ""
    )
    return f"{one.says}; the digits given leave {rounded}" if rounded else one.says


def name_of(one: Compared, several: bool) -> str:
    """``p99 clat``: in fio's own words, since it matters which latency it is."""
    kind, _, what = one.metric.partition(".")
    if kind == COMMAND:
        return metric_name(Metric(one.metric, "lower", one.unit), with_kind=False)
    family, _, point = what.partition(".")
    name = (
        f"{point} {family}"
        if point
        else {"iops": "IOPS", "bandwidth": "bandwidth"}[what]
    )
    return f"{kind} {name}" if several or kind == "sync" else name


def change_of(change: Number | None) -> tuple[str, str]:
    """The change and its interval."""
    if change is None:
        return "-", ""
    if not (math.isfinite(change.low) and math.isfinite(change.high)):
        return percent(change.value), ""
    return measured(change.value, change.low, change.high), interval(
        change.low, change.high
    )


def method(found: Comparison) -> Iterator[str]:
    """What the words of a comparison rest on."""
    by_basis: dict[str, list[Compared]] = {}
    for one in found.compared:
        by_basis.setdefault(one.basis, []).append(one)
    yield (
        f"Margin {100 * found.margin:g} %. Nothing was decided in advance by iodelta: these runs were made before the "
        "question was put to it, and one look was taken at all of them."
    )
    yield from _bases(by_basis, len(found.compared))
    if seen := visible(_intervals(found.compared)):
        yield f"Smallest change this could have seen: {seen}."
    yield "No calibration belongs to these runs: how often this machine raises a false alarm is not known."


def _intervals(compared: Sequence[Compared]) -> Iterator[Interval]:
    """The changes whose interval comes from several runs."""
    several = len({one.metric.partition(".")[0] for one in compared}) > 1
    for one in compared:
        if one.change is not None and one.basis in ("blocks", "replicates"):
            name = inert(name_of(one, several))
            yield Interval(
                name, one.better, one.change.value, one.change.low, one.change.high
            )


def _bases(by_basis: Mapping[str, Sequence[Compared]], every: int) -> Iterator[str]:
    """What was compared with what, and how."""
    if blocks := by_basis.get("blocks", ()):
        level = 100 * max(
            one.verdict.change.level
            for one in blocks
            if one.verdict and one.verdict.change
        )
        yield (
            f"{len(blocks)} of {every} numbers: runs of both sides were interleaved in time and are "
            f"compared pair by pair; Hodges-Lehmann estimate, signed-rank interval, level {level:.4g} %."
        )
    if replicates := by_basis.get("replicates", ()):
        reasons = "; ".join(dict.fromkeys(one.why for one in replicates))
        yield (
            f"{len(replicates)} of {every} numbers: several runs, but no verdict ({reasons}); the "
            "interval (95 %) takes them as independent draws."
        )
    if alone := by_basis.get("single runs", ()):
        yield (
            f"{len(alone)} of {every} numbers: one run on each side; no interval, since the "
            "scatter between runs is not known, so no verdict is given."
        )
