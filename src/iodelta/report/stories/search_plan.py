"""The plan of a search: what it is about, and what would be measured first."""

from __future__ import annotations

from iodelta.plural import plural
from iodelta.report.stories.story import PLAIN, Cell, Detail, Row, Story, Table, section
from iodelta.study.search import SearchPlanAnswer
from iodelta.study.words import inert

SHOWN = 12
"""Candidates listed; with Detail.whole all of them."""


def of_search_plan(answer: SearchPlanAnswer, detail: Detail = PLAIN) -> Story:
    """Return what a search would be about, before anything is built or measured."""
    names = list(map(inert, answer.titles or answer.items))
    rows = tuple(Row(str(number), (Cell(name),)) for number, name in enumerate(names))
    if len(rows) > SHOWN and not detail.whole:
        half = SHOWN // 2
        rows = (
            *rows[:half],
            Row("...", (Cell(f"{len(rows) - SHOWN} more"),)),
            *rows[-half:],
        )
    first = (
        f"{inert(answer.next)}: {inert(answer.why)}" if answer.next else "nothing to do"
    )
    return Story(
        question="",
        answer=f"Plan: {plural(len(names) - 1, 'candidate')} between {names[0]} and {names[-1]}. Nothing was built.",
        tables=(
            Table(
                title="Items, good first, bad last",
                first="",
                heads=("item",),
                rows=rows,
            ),
        ),
        sections=section("Measured first", (first,)),
    )
