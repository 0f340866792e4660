"""A reproduction as a story: what was seen there, what is seen here, whether that is the same, what differs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from iodelta.plural import listed, plural
from iodelta.report.stories.sources import system_of_sides
from iodelta.report.stories.story import (
    PLAIN,
    Cell,
    Detail,
    Item,
    Row,
    Section,
    Story,
    Table,
    section,
)
from iodelta.study.confounders import said
from iodelta.study.reproduction import Effect, Matched, Reproduced, Side, counted
from iodelta.study.words import between, inert, measured, metric_name, percent
from iodelta.verdict import Metric, metric
from iodelta.verdict.metrics import COMMAND
from iodelta.verdict.reproduction import WORK, Estimand

ONE_SIDED = 6
"""Changes of one side only that are named."""


def of_reproduction(reproduced: Reproduced, detail: Detail = PLAIN) -> Story:
    """Both sides of one question, side by side."""
    sides = (
        f"There: {side_line(reproduced.there)}",
        f"Here: {side_line(reproduced.here)}",
    )
    return Story(
        question=inert(reproduced.here.question),
        answer=headline(reproduced),
        lead=section("Both sides", sides),
        tables=_tables(reproduced),
        sections=(
            *section("Measured on one side only", _one_sided(reproduced)),
            *_differences(reproduced),
            *section("Different from the original", map(inert, reproduced.notes)),
            *section(
                "Method",
                (method(sum(match.found.asked for match in reproduced.matched)),),
            ),
            *system_of_sides(
                {"There": reproduced.there.system, "Here": reproduced.here.system}
            ),
            *section("To do it again", map(inert, reproduced.again), commands=True),
        ),
    )


def headline(reproduced: Reproduced) -> str:
    """Return the answer in a sentence, no stronger than the rows below it."""
    if not reproduced.matched:
        return "The two sides have no measurement in common."
    words = _words(counted(reproduced.matched))
    unanswered = len(reproduced.unanswered)
    if not unanswered:
        return words
    return f"{words} Nothing here answers {plural(unanswered, 'change')} shown there."


def _words(words: dict[str, int]) -> str:
    if not words:
        return "The original does not show a change, so there is nothing to reproduce."
    total = sum(words.values())
    if len(words) == 1:
        word = next(iter(words)).capitalize()
        return f"{word}, in all {total} comparisons." if total > 1 else f"{word}."
    parts = "; ".join(f"{word} in {count}" for word, count in words.items())
    return f"{parts}, of {total} comparisons.".capitalize()


def side_line(side: Side) -> str:
    """Its name, digest and question."""
    digest = f", SHA-256 {inert(side.digest[:16])}.." if side.digest else ""
    question = f": {inert(side.question)}" if side.question else ""
    return f"{inert(side.name)}{digest}{question}"


def _tables(reproduced: Reproduced) -> tuple[Table, ...]:
    rows = tuple(
        row_of(match, reproduced.there.baseline) for match in reproduced.matched
    )
    if not rows:
        return ()
    return (
        Table(
            title="Changes",
            first="metric",
            heads=("there", "here", "reproduced?"),
            rows=rows,
        ),
    )


def row_of(match: Matched, baseline: str) -> Row:
    """Both sides of one change, and its word."""
    cell, variant = match.there.cell, match.there.variant
    place = inert(cell)
    name = metric_name(_metric(match.there.metric), with_kind=False)
    texts = (
        _change(match.there, match.found.basis),
        _change(match.here, match.found.basis),
        match.word,
    )
    group = f"{place}: {inert(variant)} against {inert(baseline)}"
    return Row(
        name=inert(name),
        cells=tuple(map(Cell, texts)),
        note=inert(_detail(match)),
        group=group,
    )


def _metric(name: str) -> Metric:
    """Return the metric of an effect, as far as its name says it."""
    if name.startswith(f"{COMMAND}."):
        return Metric(name, "lower", "")
    return metric(name.replace("mixed.", "read.", 1))


def _change(effect: Effect, basis: Estimand) -> str:
    """Return the change of the estimand that the row's word is about."""
    change = effect.total if basis == "total" and effect.total is not None else effect
    if change.low is None or change.high is None:
        return f"{percent(change.value)} (no interval)"
    return f"{measured(change.value, change.low, change.high)} ({between(change.low, change.high)})"


def _detail(match: Matched) -> str:
    """Return what the word rests on."""
    reproduction = match.found
    about_total = reproduction.basis == "total" and reproduction.held is not False
    parts = [
        f"{WORK['total']}: {reproduction.says}" if about_total else reproduction.says
    ]
    there, here = match.there.of(reproduction.basis), match.here.of(reproduction.basis)
    if reproduction.asked and there.value:
        parts.append(f"{100 * here.value / there.value:.0f} % of it, as logarithms")
    ratio = reproduction.difference
    if math.isfinite(ratio.low) and math.isfinite(ratio.high):
        parts.append(
            f"here/there x{math.exp(ratio.value):.3g} (x{math.exp(ratio.low):.3g} .. x{math.exp(ratio.high):.3g}), "
            f"the same size is x{math.exp(-reproduction.tolerance):.3g} .. x{math.exp(reproduction.tolerance):.3g}"
        )
    if not match.scatter_known:
        parts.append("one side is a single run, of unknown spread")
    return "; ".join(parts)


def _one_sided(reproduced: Reproduced) -> Iterator[str]:
    if reproduced.only_there:
        yield f"There: {named(reproduced.only_there)}"
    if reproduced.only_here:
        yield f"Here: {named(reproduced.only_here)}"


def named(changes: Sequence[str]) -> str:
    """Return the first few of them."""
    return f"{listed(list(map(inert, changes)), ONE_SIDED, '; ')}."


def method(count: int) -> str:
    """Return what the words rest on; ``count`` is how many changes of the original are compared."""
    by_chance = ""
    if count > 1:
        by_chance = f" Of {count} comparisons one in twenty may be called not reproduced by chance."
    return (
        "here/there is the ratio of both relative changes, with the interval (95 %) of the difference of their "
        "logarithms. The same size: more than half of the change seen there, and less than half as much again."
        f"{by_chance}"
    )


def _differences(reproduced: Reproduced) -> tuple[Section, ...]:
    """Return what else differs between the two machines, the likely explanations only."""
    title = "What else differs"
    if not (reproduced.there.environment and reproduced.here.environment):
        unknown = "It is not known: one side has no record of its environment."
        return section(title, (unknown,))
    likely = [difference for difference in reproduced.differing if difference.likely]
    if not likely:
        none = "No likely confounder is known to differ between the two environments."
        return section(title, (none,))
    failed = any(match.found.held is False for match in reproduced.matched)
    what = "What could explain it" if failed else "Other differences"
    items = [
        Item(f"{group}: {why}", tuple(lines)) for group, why, lines in said(likely)
    ]
    return section(f"{what}, the likely first (there | here)", items)
