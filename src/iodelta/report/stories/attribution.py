"""An attribution as a story: which patch costs what, alone and together, and what that rests on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from iodelta.plural import plural
from iodelta.report.stories.search import steps
from iodelta.report.stories.sources import system
from iodelta.report.stories.story import PLAIN, Cell, Detail, Row, Story, Table, section
from iodelta.study.attribution import AttributionAccount, Switched
from iodelta.study.search import Changed
from iodelta.study.words import inert, interval, measured, quantity

SHOWN = 16
"""Groups of patches listed."""

HEADS = ("change", "interval", "p", "shown")


def of_attribution(found: AttributionAccount, detail: Detail = PLAIN) -> Story:
    """What each patch costs."""
    answer = f"{found.answer[:1].upper()}{inert(found.answer[1:])}."
    if found.whole:
        answer = f"All patches together: {found.question.metric} {_change_and_interval(found.whole)}. {answer}"
    unknown = f"The combinations that could be run do not determine: {'; '.join(found.inestimable)}."
    return Story(
        question="",
        answer=answer,
        tables=(*_patches(found), *_parts(found), *_combinations(found)),
        sections=(
            *section("Not known", (unknown,) if found.inestimable else ()),
            *section("Method", _method(found)),
            *system(found.system),
            *section(
                "Next",
                (f"Not finished ({inert(found.state)}): {inert(found.next)}.",)
                if found.next
                else (),
            ),
            *section(
                "To do it again",
                (f"iodelta attribute {detail.folder}", *steps(found.question)),
                commands=True,
            ),
        ),
    )


def _patches(found: AttributionAccount) -> Iterator[Table]:
    """What each does alone, on top of the others, and on average."""
    rows = list(
        chain.from_iterable(
            _patch(found, number, inert(name))
            for number, name in enumerate(found.patches)
        )
    )
    if rows:
        yield Table("What each patch does", "patch", HEADS, tuple(rows))


def _patch(found: AttributionAccount, number: int, name: str) -> Iterator[Row]:
    group = f"{number + 1}. {name}"
    for one in _switched(found, number):
        yield _row(one.name, one.change, one.p, one.real, group)
    if found.shares and (share := found.shares[number]) and len(found.patches) > 1:
        yield _row("share (Shapley)", share, None, None, group)


def _switched(found: AttributionAccount, number: int) -> list[Switched]:
    """The patch with as few others as could be, and with as many; once where these are the same."""
    shown = [one[number] for one in (found.alone, found.on_top) if one]
    known = [one for one in shown if one is not None]
    return known[:1] if len(known) == 2 and known[0].over == known[1].over else known


def _parts(found: AttributionAccount) -> Iterator[Table]:
    """What groups do beyond smaller ones; of many only the largest."""
    groups = [part for part in found.parts if len(part.patches) > 1]
    if not groups:
        return
    title = "What patches do together, beyond what fewer of them do"
    if len(groups) > SHOWN:
        title += f" ({SHOWN} of {len(groups)}; --format csv lists all)"
    rows = (
        _row(" + ".join(map(str, one.patches)), one.change, one.p, one.real)
        for one in groups[:SHOWN]
    )
    yield Table(title, "patches", HEADS, tuple(rows))


def _combinations(found: AttributionAccount) -> Iterator[Table]:
    rows = []
    for one in found.combinations:
        value = (
            quantity(one.value, found.question.unit)
            if one.value is not None
            else inert(one.reason) or "not run"
        )
        rows.append(Row(inert(one.title), (Cell(str(one.runs)), Cell(value))))
    yield Table(
        "Every combination",
        "patches that are on",
        ("runs", found.question.metric),
        tuple(rows),
    )


def _method(found: AttributionAccount) -> Iterator[str]:
    yield (
        f"{plural(found.blocks, 'block')} of {len(found.combinations)} combinations, in random order inside each (seed "
        f"{found.question.rules.seed})."
    )
    if found.model:
        yield f"{found.model}."
    yield "p is after Holm over all of a table. Shown: beyond doubt, and as large as the margin."


def _row(
    name: str, change: Changed, p: float | None, real: bool | None, group: str = ""
) -> Row:
    shown = {True: "yes", False: "no", None: "-"}[real]
    texts = (
        measured(change.value, change.low, change.high),
        interval(change.low, change.high),
        "-" if p is None else f"{p:.2g}",
        shown,
    )
    return Row(name, tuple(map(Cell, texts)), group=group)


def _change_and_interval(change: Changed) -> str:
    return f"{measured(change.value, change.low, change.high)} ({interval(change.low, change.high)})"
