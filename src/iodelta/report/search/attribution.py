"""What an attribution amounts to: which patch costs what, alone and together, in a sentence, a table and as data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from rich.console import Console
from rich.text import Text

from iodelta.bisect.driver import Attributed
from iodelta.bisect.log import Ended, SearchFolder, Session
from iodelta.bisect.question import Patches, Question
from iodelta.errors import RequestError, pasted
from iodelta.report.columns import columns, cut
from iodelta.report.search.answer import Changed, changed
from iodelta.report.search.patches import answer, bundle, model, place, untold
from iodelta.report.words import inert, interval, percent, quantity
from iodelta.stats.attribution import Step, Subset, Term
from iodelta.stats.effect import Estimate

WIDTH = 80
SHOWN = 16
"""Groups listed."""


class Part(msgspec.Struct, frozen=True):
    """What a group of patches (numbers from 1) does beyond all smaller groups of them that were run."""

    patches: tuple[int, ...]
    """Their numbers, from 1."""
    fresh: tuple[int, ...]
    """Those of them that no smaller group has, where the others were run without them: then the change is that of
    switching these on over the others."""
    change: Changed
    together: Changed
    """The whole group against none of the patches, or as few as could be run."""
    p: float
    """Two-sided, after Holm over all groups."""
    real: bool
    """Whether it is beyond doubt and as large as the margin."""


class Switched(msgspec.Struct, frozen=True):
    """What a patch does where others are on already."""

    patches: tuple[int, ...]
    """Numbers of the patches that were switched: of several where it was never switched without the others."""
    over: tuple[int, ...]
    """Numbers of those that were on already."""
    name: str
    """The same in words."""
    change: Changed
    p: float
    """Two-sided, after Holm over all patches."""
    real: bool
    """Whether it is beyond doubt and as large as the margin."""


class Combination(msgspec.Struct, frozen=True):
    """A combination that was run, or why it was not."""

    item: str
    """One digit per patch: 1 where it is on, else 0."""
    title: str
    """The same with the patches' numbers."""
    runs: int
    value: float | None
    """Median of its runs; None without one."""
    reason: str = ""


class AttributionAccount(msgspec.Struct, frozen=True):
    """The whole of it."""

    folder: str
    question: Question
    state: str
    exit_code: int
    """1: all together are worse; 0: that is not shown; 3: not known."""
    answer: str
    """What each patch does, in a sentence."""
    patches: tuple[str, ...]
    """Names of the patches, in order."""
    whole: Changed | None
    """What all patches do together; None when unknown."""
    alone: tuple[Switched | None, ...]
    """Each patch with as few others on as could be run; None where it was never switched."""
    on_top: tuple[Switched | None, ...]
    """Each patch with as many others on as could be run."""
    shares: tuple[Changed | None, ...]
    """Shapley's, averages over all orders of applying the patches; as factors they multiply to the whole."""
    parts: tuple[Part, ...]
    """What groups of patches do beyond smaller ones; empty before there is an answer."""
    inestimable: tuple[str, ...]
    """What the combinations that could be run do not tell; empty when they tell all."""
    model: str
    """What the figures rest on, in a sentence."""
    combinations: tuple[Combination, ...]
    """Every combination of the design."""
    blocks: int
    next: str
    """What would be run next and why; empty when nothing is left."""
    schema: Literal["iodelta.attribution/2"] = "iodelta.attribution/2"


def account(folder: SearchFolder, question: Question, at: Attributed) -> AttributionAccount:
    """Judge a folder as it is now. Raises RequestError for another kind of question."""
    subject = question.subject
    if not isinstance(subject, Patches):
        raise RequestError("this is a search", place=str(folder.path), remedy="give it to `iodelta bisect`")
    found = at.outcome if at.ask is None else at.search.result()
    ended = [event for event in folder.events() if isinstance(event, Ended | Session)]
    state = ended[-1].reason if ended and isinstance(ended[-1], Ended) else "running"
    values: dict[str, list[float]] = {}
    for answered in folder.answers():
        values.setdefault(answered.item, []).extend(answered.values)
    combinations = tuple(
        Combination(
            item,
            at.kind.title(item),
            len(values.get(item, [])),
            float(np.median(values[item])) if values.get(item) else None,
            at.search.store.broken.get(item, ""),
        )
        for item in at.search.items
    )
    worse = found is not None and found.whole is not None and found.whole.low > 0
    patches = len(subject.names)
    return AttributionAccount(
        folder=str(folder.path),
        question=question,
        state="complete" if at.ask is None else state,
        exit_code=1 if worse else 0 if found is not None and found.whole is not None else 3,
        answer=answer(found, question) if found else "too few blocks for an answer",
        patches=subject.names,
        whole=_changed(question, found.whole) if found else None,
        alone=tuple(_switched(question, step, patches) for step in found.alone) if found else (),
        on_top=tuple(_switched(question, step, patches) for step in found.last) if found else (),
        shares=tuple(_changed(question, share) for share in found.shares) if found else (),
        parts=tuple(_part(question, term) for term in found.terms) if found else (),
        inestimable=tuple(untold(found)) if found else (),
        model=model(found) if found else "",
        combinations=combinations,
        blocks=len(at.search.blocks),
        next=f"{at.kind.title(at.ask.item)}: {at.ask.why}" if at.ask else "",
    )


def _part(question: Question, term: Term) -> Part:
    return Part(
        _numbers(term.patches),
        _numbers(term.fresh) if term.over is not None else (),
        _known(question, term.effect),
        _known(question, term.together),
        term.p,
        term.named,
    )


def _switched(question: Question, step: Step | None, patches: int) -> Switched | None:
    if step is None:
        return None
    name = place(step, patches) if len(step.patches) == 1 else f"{bundle(step.patches)} {place(step, patches)}"
    return Switched(
        _numbers(step.patches), _numbers(step.over), name, _known(question, step.effect), step.p, step.named
    )


def _numbers(patches: Subset) -> tuple[int, ...]:
    return tuple(n + 1 for n in patches)


def _known(question: Question, estimate: Estimate) -> Changed:
    return changed(question, estimate.value, estimate.low, estimate.high)


def _changed(question: Question, estimate: Estimate | None) -> Changed | None:
    return changed(question, estimate.value, estimate.low, estimate.high) if estimate else None


def show(console: Console, found: AttributionAccount) -> None:
    """Print all of it."""
    for line in lines(found):
        console.print(line, soft_wrap=True, highlight=False)


def lines(found: AttributionAccount) -> Iterator[Text]:
    """The account, line by line, none wider than 80 columns."""
    metric, unit = found.question.metric, found.question.unit
    if found.whole:
        yield from _wrapped(f"All patches together: {metric} {_told(found.whole)}.", style="bold")
    yield from _wrapped(f"{found.answer[:1].upper()}{inert(found.answer[1:])}.", style="bold")
    yield Text()
    yield from _patches(found)
    yield from _parts(found)
    for one in found.combinations:
        value = quantity(one.value, unit) if one.value is not None else inert(one.reason) or "not run"
        yield from _wrapped(f"{inert(one.title):<40} {one.runs:>3} runs  {value}")
    yield Text()
    if found.inestimable:
        yield from _wrapped(f"The combinations that could be run do not tell: {'; '.join(found.inestimable)}.")
    yield from _wrapped(
        f"{found.blocks} blocks of {len(found.combinations)} combinations, in random order inside each (seed "
        f"{found.question.rules.seed}). {found.model}. p after Holm over all of a table."
    )
    if found.state != "complete":
        yield from _wrapped(f"Not finished ({inert(found.state)}). Next: {inert(found.next)}.")
    yield Text(f"Folder: {inert(pasted(found.folder))}")


def _patches(found: AttributionAccount) -> Iterator[Text]:
    """What each does alone, on top of the others, and on average."""
    names: dict[int, str] = {}  # by the row before which each stands
    rows: list[Row] = []
    for n, name in enumerate(found.patches):
        names[len(rows)] = cut(f"{n + 1}. {inert(name)}", WIDTH)
        shown = [one[n] for one in (found.alone, found.on_top) if one]
        for one in shown:
            if one is not None and (one is shown[0] or one.over != getattr(shown[0], "over", None)):
                rows.append(_row(f"     {one.name}", one.change, one.p, one.real))
        if found.shares and (share := found.shares[n]) and len(found.patches) > 1:
            rows.append(_row("     share (Shapley)", share, None, False))
    yield from _table("patch", rows, names)


def _parts(found: AttributionAccount) -> Iterator[Text]:
    """What groups do beyond smaller ones; of many only the largest."""
    groups = [part for part in found.parts if len(part.patches) > 1]
    if not groups:
        return
    rows = [_row(" + ".join(map(str, part.patches)), part.change, part.p, part.real) for part in groups[:SHOWN]]
    if len(groups) > SHOWN:
        rest = f"  and {len(groups) - SHOWN} smaller ones, in --format json"
        yield from _table("together, beyond what fewer of them do", rows, {len(rows): rest})
        return
    yield from _table("together, beyond what fewer of them do", rows, {})


Row = tuple[tuple[str, str, str, str], bool]
"""Label, change, interval and p, and whether the answer names it."""


def _table(head: str, rows: Sequence[Row], between: Mapping[int, str]) -> Iterator[Text]:
    """Rows below a heading, with lines of text ``between`` them: before the row of that number."""
    top, *made = columns([(head, "change", "interval", ""), *(cells for cells, _ in rows)], "<><<", WIDTH)
    yield Text(top, style="dim")
    for at, (line, (_, real)) in enumerate(zip(made, rows, strict=True)):
        if at in between:
            yield Text(between[at])
        yield Text(line, style="" if real else "dim")
    if len(rows) in between:
        yield Text(between[len(rows)], style="dim")
    yield Text()


def _row(label: str, change: Changed, p: float | None, real: bool) -> Row:
    told = (percent(change.value, _half(change)), interval(change.low, change.high), "" if p is None else f"p {p:.2g}")
    return (cut(label, 44), *told), real


def _told(change: Changed) -> str:
    return f"{percent(change.value, _half(change))} ({interval(change.low, change.high)})"


def _half(change: Changed) -> float | None:
    return None if change.low is None or change.high is None else (change.high - change.low) / 2


def _wrapped(text: str, style: str = "") -> Iterator[Text]:
    for line in textwrap.wrap(text, WIDTH, subsequent_indent="   ", break_on_hyphens=False):
        yield Text(line, style=style)
