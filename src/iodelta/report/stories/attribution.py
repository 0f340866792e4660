"""An attribution as a story: which patch costs what, alone and together, and what that rests on."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.plural import plural
from iodelta.report.stories.search import change_of, steps
from iodelta.report.stories.sources import system
from iodelta.report.stories.story import PLAIN, Cell, Detail, Row, Story, Table, section
from iodelta.study.attribution import AttributionAccount, Switched
from iodelta.study.search import Changed
from iodelta.study.words import inert, interval, measured, quantity

SHOWN = 16
"""Groups of patches listed."""

HEADS = ("change", "interval", "p", "shown")


def of_attribution(account: AttributionAccount, detail: Detail = PLAIN) -> Story:
    """Return what each patch costs."""
    answer = f"{account.answer[:1].upper()}{inert(account.answer[1:])}."
    if account.whole:
        answer = f"All patches together: {account.question.metric} {change_of(account.whole)}. {answer}"
    unknown = f"The combinations that could be run do not determine: {'; '.join(account.inestimable)}."
    return Story(
        question="",
        answer=answer,
        tables=(*_patches(account), *_parts(account), *_combinations(account)),
        sections=(
            *section("Not known", (unknown,) if account.inestimable else ()),
            *section("Method", _method(account), rest=True),
            *system(account.system),
            *section(
                "Next",
                (f"Not finished ({inert(account.state)}): {inert(account.next)}.",)
                if account.next
                else (),
            ),
            *section(
                "To do it again",
                (f"iodelta attribute {detail.folder}", *steps(account.question)),
                commands=True,
            ),
        ),
        details=f"iodelta report {detail.folder} --verbose",
    )


def _patches(account: AttributionAccount) -> Iterator[Table]:
    """Yield what each does alone, on top of the others, and on average."""
    rows: list[Row] = []
    for number, name in enumerate(account.patches):
        rows += _patch(account, number, inert(name))
    if rows:
        yield Table(
            title="What each patch does", first="patch", heads=HEADS, rows=tuple(rows)
        )


def _patch(account: AttributionAccount, number: int, name: str) -> Iterator[Row]:
    group = f"{number + 1}. {name}"
    for switched in _switched(account, number):
        yield _row(switched.name, switched.change, switched.p, switched.real, group)
    share = account.shares[number] if account.shares else None
    if share and len(account.patches) > 1:
        yield _row("share (Shapley)", share, None, None, group)


def _switched(account: AttributionAccount, number: int) -> list[Switched]:
    """Return the patch with as few others as could be, and with as many; once where these are the same."""
    steps = [series[number] for series in (account.alone, account.on_top) if series]
    known = [step for step in steps if step is not None]
    if len({step.over for step in known}) == 1:
        return known[:1]
    return known


def _parts(account: AttributionAccount) -> Iterator[Table]:
    """Yield what groups do beyond smaller ones; of many only the largest."""
    groups = [part for part in account.parts if len(part.patches) > 1]
    if not groups:
        return
    title = "What patches do together, beyond what fewer of them do"
    if len(groups) > SHOWN:
        title += f" ({SHOWN} of {len(groups)}; --format csv lists all)"
    rows = (
        _row(" + ".join(map(str, part.patches)), part.change, part.p, part.real)
        for part in groups[:SHOWN]
    )
    yield Table(title=title, first="patches", heads=HEADS, rows=tuple(rows))


def _combinations(account: AttributionAccount) -> Iterator[Table]:
    rows = []
    for combination in account.combinations:
        value = inert(combination.reason) or "not run"
        if combination.value is not None:
            value = quantity(combination.value, account.question.unit)
        rows.append(
            Row(inert(combination.title), (Cell(str(combination.runs)), Cell(value)))
        )
    yield Table(
        title="Every combination",
        first="patches that are on",
        heads=("runs", account.question.metric),
        rows=tuple(rows),
        rest=bool(account.whole),
    )


def _method(account: AttributionAccount) -> Iterator[str]:
    yield (
        f"{plural(account.blocks, 'block')} of {len(account.combinations)} combinations, in random order inside each (seed "
        f"{account.question.rules.seed})."
    )
    if account.model:
        yield f"{account.model}."
    yield (
        "Shown are effects that are beyond doubt and as large as the margin; of a group also only if each of its "
        "patches is needed for it."
    )


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
