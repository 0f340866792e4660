"""A comparison as a story: what two sets of runs allow to be said, and on what it rests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from iodelta.errors import pasted
from iodelta.plural import plural
from iodelta.report.stories.environment import differing
from iodelta.report.stories.evidence import Interval, visible
from iodelta.report.stories.sources import (
    findings,
    findings_or_none,
    not_read,
    system_of_sides,
)
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
    """Results from anywhere, compared: differences, what they are based on, what else differs.

    Of single runs one screen holds a line for each number: they allow no verdict, so the rest is for who asks for it.
    """
    words = " ".join(map(quoted, comparison.paths))
    again = f"iodelta compare {words} --margin {100 * comparison.margin:g}%"
    single = _are_single(comparison)
    return Story(
        question="",
        answer=_SINGLE if single else answer(comparison),
        tables=(_differences(comparison),)
        if single
        else tuple(_comparison_tables(comparison)),
        sections=(
            *_what_else_differs(comparison, rest=single),
            *section("On one side only", _one_sided(comparison.unmatched)),
            *section("Method", method(comparison), rest=single),
            *(
                section("Findings", findings(comparison.findings))
                if single
                else findings_or_none(comparison.findings)
            ),
            *section("Not read", not_read(comparison.refusals)),
            *section(
                "System", system_of_sides(comparison.systems)[0].items, rest=single
            ),
            *section("To do it again", (again,), commands=True, rest=single),
        ),
        details=f"{again} --verbose" if single else "",
    )


_SINGLE = "One run per side: the noise is unknown, so no verdict. Six or more per side, interleaved, can decide."


def _are_single(comparison: Comparison) -> bool:
    """Return whether one run on each side of one variant is all there is."""
    bases = {row.basis for row in comparison.compared}
    return (
        bases == {"single runs"}
        and len(comparison.variants) == 1
        and not any(comparison.lacking.values())
    )


def _differences(comparison: Comparison) -> Table:
    """Every number of single runs on a line: its name, old and new value, and the change."""
    cells = list(dict.fromkeys(row.cell for row in comparison.compared))
    several = len({row.metric.partition(".")[0] for row in comparison.compared}) > 1
    rows = []
    for row in sorted(comparison.compared, key=lambda row: cells.index(row.cell)):
        change, _ = change_of(row.change)
        if row.unsound or not row.resolved:
            change += " not credible" if row.unsound else " not resolved"
        name = name_of(row, several)
        values = (
            quantity(row.values[0], row.unit),
            quantity(row.values[1], row.unit),
            change,
        )
        rows.append(
            Row(
                inert(f"{row.cell}: {name}" if len(cells) > 1 else name),
                tuple(map(Cell, values)),
            )
        )
    (cell, *others) = cells
    names = map(_short, map(inert, (comparison.baseline, *comparison.variants)))
    return Table(
        title="",
        first="number" if others else inert(cell),
        heads=(*names, "change"),
        rows=tuple(rows),
        words=False,
    )


def _short(name: str) -> str:
    """Return the end of a name, which differs from that of the other side more often than its beginning does."""
    return name if len(name) <= _NAME else f"~{name[1 - _NAME :]}"


_NONE = "no known difference"
_BRIEF = 60
"""Characters of the differences that one screen shows."""
_NAME = 16
"""Characters of a side's name above its column."""


def _what_else_differs(comparison: Comparison, *, rest: bool) -> Iterator[Section]:
    """Yield the differences of each variant's environment; once where they are the same for all."""
    differences = {
        variant: tuple(differing(facts)) or (_NONE,)
        for variant, facts in comparison.differences.items()
    }
    title = "What else differs"
    if len(set(differences.values())) == 1:
        items = next(iter(differences.values()))
        known = "; ".join(item.partition("): ")[2] or item for item in items)
        short = known if len(known) <= _BRIEF else f"{known[: _BRIEF - 4]} ..."
        yield from section(
            title, items, brief=short if rest else "", rest=rest and items == (_NONE,)
        )
        return
    for variant, items in differences.items():
        yield from section(f"{title}: {inert(variant)}", items)


def _one_sided(cells: Sequence[str]) -> Iterator[str]:
    yield from map(inert, cells[:ONE_SIDED])
    if len(cells) > ONE_SIDED:
        yield f"and {len(cells) - ONE_SIDED} more; --format json lists them"


def quoted(path: str) -> str:
    """Return a path as a shell takes it, without control characters."""
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
    """Yield a table for each metric; of several variants without single runs, which stand side by side already."""
    compared = [row for row in comparison.compared if row.variant == variant]
    several_kinds = len({row.metric.partition(".")[0] for row in compared}) > 1
    several_variants = len(comparison.variants) > 1
    for metric in dict.fromkeys(row.metric for row in compared):
        rows = [row for row in compared if row.metric == metric]
        if several_variants:
            rows = [row for row in rows if row.basis != "single runs"]
        if rows:
            yield _of_metric(comparison, variant, rows, several_kinds)


def _of_metric(
    comparison: Comparison, variant: str, rows: Sequence[Compared], several_kinds: bool
) -> Table:
    """Return one metric of a variant, a row for each cell."""
    baseline = inert(comparison.baseline)
    title = f"{name_of(rows[0], several_kinds)} ({rows[0].better} is better)"
    if len(comparison.variants) > 1:
        title += f": {inert(variant)} against {baseline}"
    has_spread = set(chain.from_iterable(row.spread for row in rows)) != {None}
    spread = ["+-"] * has_spread
    values = (baseline, *spread, inert(variant), *spread)
    return Table(
        title=title,
        first="cell",
        heads=("n", *values, "change", "interval", "verdict"),
        rows=tuple(_compared(row, has_spread) for row in rows),
    )


def _side_by_side(comparison: Comparison, metric: str) -> Table:
    """Return all variants' values of one metric; nothing is marked best, since no two variants were compared but by
    these.
    """
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
        title=title,
        first="cell",
        heads=(inert(comparison.baseline), *map(inert, comparison.variants)),
        rows=tuple(rows),
        words=False,
    )


def _quantities(values: Sequence[float | None], unit: str) -> tuple[Cell, ...]:
    return tuple([Cell(quantity(value, unit)) for value in values])


def _compared(row: Compared, spread: bool) -> Row:
    """Return a cell's values, its change and its word; the values that the word calls best are marked."""
    old, new = row.runs
    counts = str(old) if old == new else f"{old}, {new}"
    best = BEST.get(row.word, ())
    cells = [Cell(counts)]
    for side, (value, share) in enumerate(zip(row.values, row.spread, strict=True)):
        cells.append(Cell(quantity(value, row.unit), side in best))
        if spread:
            cells.append(Cell(scatter(share)))
    change, _ = change_of(row.change)
    cells += [Cell(change), Cell(bounds_of(row) or "-"), Cell(row.word)]
    return Row(inert(row.cell), tuple(cells), inert(says_of(row)))


BEST = {"regression": (0,), "improvement": (1,), "equivalent": (0, 1)}
"""Which sides a word calls best: 0 the baseline, 1 the variant."""


def answer(comparison: Comparison) -> str:
    """Return the answers for all variants, those that are the same in one sentence."""
    alike: dict[str, list[str]] = {}
    for variant in comparison.variants:
        rows = [row for row in comparison.compared if row.variant == variant]
        said = _said(comparison, variant, rows)
        alike.setdefault(said, []).append(inert(variant))
    baseline = inert(comparison.baseline)
    sentences = [
        f"{', '.join(names)} against {baseline}: {said}"
        for said, names in alike.items()
    ]
    return " ".join(sentences)


def headline(comparison: Comparison, variant: str, rows: Sequence[Compared]) -> str:
    """Return the answer in a sentence, no stronger than the ``rows`` of the variant."""
    return f"{inert(variant)} against {inert(comparison.baseline)}: {_said(comparison, variant, rows)}"


def _said(comparison: Comparison, variant: str, rows: Sequence[Compared]) -> str:
    """``regression in 1 of 2 numbers.``; or why there is no verdict."""
    lacking = comparison.lacking.get(variant, ())
    lack = []
    if lacking:
        cells = plural(len(lacking), "cell")
        lack.append(f"no number that all runs have in {cells}")
    if not rows:
        return f"no verdict: {lack[0]}." if lack else "no cell in common."
    # A percentile that its source cannot resolve counts only where nothing else does.
    counting = [row for row in rows if row.resolved] or list(rows)
    verdicts = ", ".join(_verdicts(counting))
    reasons = dict.fromkeys(row.why for row in counting if row.word == "no verdict")
    if not reasons:
        return f"{'; '.join((f'{verdicts} numbers', *lack))}."
    none = f"{verdicts}; no verdict on the others" if verdicts else "no verdict"
    return f"{none}: {'; '.join((*reasons, *lack))}."


def _verdicts(rows: Sequence[Compared]) -> Iterator[str]:
    """``regression in 1 of 2``, for each word that a row has."""
    words = [row.word for row in rows]
    for word in ("regression", "improvement", "equivalent", "inconclusive"):
        if word in words:
            yield f"{word} in {words.count(word)} of {len(words)}"


def bounds_of(row: Compared) -> str:
    """The interval over the runs; a single run on each side has none."""
    if row.basis == "single runs":
        return ""
    return change_of(row.change)[1]


def says_of(row: Compared) -> str:
    """Return the note below a number: why it has its word, and of single runs which changes the digits of their sources
    leave open."""
    rounded = _rounded(row)
    return f"{row.says}; the digits given leave {rounded}" if rounded else row.says


def _rounded(row: Compared) -> str:
    """Return the changes that the digits of single runs leave open; nothing where they leave none."""
    change = row.change
    if row.basis != "single runs" or change is None or not change.low < change.high:
        return ""
    return change_of(change)[1]


def name_of(row: Compared, several: bool) -> str:
    """``p99 clat``: in fio's own words, since it matters which latency it is."""
    kind, _, what = row.metric.partition(".")
    if kind == COMMAND:
        return metric_name(Metric(row.metric, "lower", row.unit), with_kind=False)
    family, _, point = what.partition(".")
    rates = {"iops": "IOPS", "bandwidth": "bandwidth"}
    name = f"{point} {family}" if point else rates[what]
    if several or kind == "sync":
        return f"{kind} {name}"
    return name


def change_of(change: Number | None) -> tuple[str, str]:
    """Return the change and its interval."""
    if change is None:
        return "-", ""
    if not (math.isfinite(change.low) and math.isfinite(change.high)):
        return percent(change.value), ""
    return measured(change.value, change.low, change.high), interval(
        change.low, change.high
    )


def method(comparison: Comparison) -> Iterator[str]:
    """Yield what the words of a comparison rest on."""
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
    """Yield the changes whose interval comes from several runs."""
    several = len({row.metric.partition(".")[0] for row in compared}) > 1
    for row in compared:
        if row.change is not None and row.basis in ("blocks", "replicates"):
            name = inert(name_of(row, several))
            yield Interval(
                metric=name,
                better=row.better,
                value=row.change.value,
                low=row.change.low,
                high=row.change.high,
            )


def _bases(by_basis: Mapping[str, Sequence[Compared]], every: int) -> Iterator[str]:
    """Yield what was compared with what, and how."""
    blocks = by_basis.get("blocks", ())
    if blocks:
        changes = [row.verdict.change for row in blocks if row.verdict]
        level = 100 * max(change.level for change in changes if change)
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
        yield from _digits(alone)


def _digits(alone: Sequence[Compared]) -> Iterator[str]:
    """Yield which changes the digits of single runs leave open, where these are coarser than what is printed."""
    several = len({row.metric.partition(".")[0] for row in alone}) > 1
    cells = len({row.cell for row in alone})
    coarse = []
    for row in alone:
        rounded = _rounded(row)
        if rounded:
            name = name_of(row, several)
            coarse.append(
                inert(
                    f"{row.cell}: {name} {rounded}"
                    if cells > 1
                    else f"{name} {rounded}"
                )
            )
    if coarse:
        more = f" and {len(coarse) - ONE_SIDED} more" if len(coarse) > ONE_SIDED else ""
        yield f"The digits given leave {'; '.join(coarse[:ONE_SIDED])}{more}."
