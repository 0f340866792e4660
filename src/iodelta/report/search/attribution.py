"""What an attribution amounts to: which patch costs what, alone and together, in a sentence, a table and as data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Literal

import msgspec
import numpy as np
from rich.console import Console
from rich.text import Text

from iodelta.bisect.driver import Attributed
from iodelta.bisect.log import Ended, SearchFolder, Session
from iodelta.bisect.question import Patches, Question
from iodelta.errors import RequestError
from iodelta.report.search.answer import Changed, changed
from iodelta.report.words import inert, interval, percent, quantity
from iodelta.stats.attribution import FULL, Attribution, Subset, Term
from iodelta.stats.effect import Estimate

WIDTH = 80
SURE = 0.05
"""Family-wise level of the terms that the answer names."""


class Part(msgspec.Struct, frozen=True):
    """What a group of patches (numbers from 1) does together beyond its parts; alone for a single one. ``change`` is
    None where ``lacking`` combinations make it inestimable."""

    patches: tuple[int, ...]
    """Their numbers, from 1."""
    aliases: tuple[tuple[int, ...], ...]
    """Other groups that the design cannot tell from it."""
    change: Changed | None
    p: float | None
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
    shares: tuple[Changed | None, ...]
    """Shapley's; as factors they multiply to the whole."""
    parts: tuple[Part, ...]
    """What groups of patches do beyond their parts; empty before there is an answer."""
    inestimable: tuple[str, ...]
    """Groups of patches that lack combinations; empty when all can be told."""
    combinations: tuple[Combination, ...]
    """Every combination of the design."""
    blocks: int
    next: str
    """What would be run next and why; empty when nothing is left."""
    schema: Literal["iodelta.attribution/1"] = "iodelta.attribution/1"


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
    lacking = tuple(_name(term.patches) for term in found.terms if term.effect is None) if found else ()
    return AttributionAccount(
        folder=str(folder.path),
        question=question,
        state="complete" if at.ask is None else state,
        exit_code=1 if worse else 0 if found is not None and found.whole is not None else 3,
        answer=answer(found, question) if found else "too few blocks for an answer",
        patches=subject.names,
        whole=_changed(question, found.whole) if found else None,
        shares=tuple(_changed(question, share) for share in found.shares) if found else (),
        parts=tuple(_part(question, term) for term in found.terms) if found else (),
        inestimable=lacking,
        combinations=combinations,
        blocks=len(at.search.blocks),
        next=f"{at.kind.title(at.ask.item)}: {at.ask.why}" if at.ask else "",
    )


def answer(found: Attribution, question: Question) -> str:
    """The decomposition in a sentence: "patch 1 costs 20 % by itself; patch 2 together with 3 costs another 22 %"."""
    if found.whole is None and not any(found.shares):
        return "the combinations that could be run do not tell the patches apart"
    real = sorted((term for term in found.terms if _real(question, term)), key=lambda term: len(term.patches))
    if not real:
        return "no effect of any patch, alone or together, is both beyond doubt and as large as the margin"
    parts = []
    for n, term in enumerate(real):
        assert term.effect is not None
        change = changed(question, term.effect.value)
        verb = "costs" if term.effect.value > 0 else "gains"
        size = f"{abs(100 * change.value):.{0 if abs(change.value) >= 0.05 else 1}f} %"
        if len(term.patches) == 1:
            parts.append(f"patch {term.patches[0] + 1} {verb} {size}{' by itself' if len(found.shares) > 1 else ''}")
        else:
            names = _name(term.patches)
            beyond = " beyond what they do alone" if any(set(o.patches) < set(term.patches) for o in real) else ""
            parts.append(f"{names} {verb} {'another ' if n else ''}{size}{beyond}")
        if term.aliases:
            parts[-1] += " (or " + ", or ".join(_name(alias) for alias in term.aliases) + ")"
    idle = [n + 1 for n in range(len(found.shares)) if not any(n in term.patches for term in real)]
    if idle:
        parts.append(f"patch {', '.join(map(str, idle))} nothing that matters")
    return "; ".join(parts)


def _real(question: Question, term: Term) -> bool:
    """Whether the answer names it: beyond doubt, and large enough to matter."""
    if term.effect is None or term.p is None:
        return False
    return term.p <= SURE and abs(term.effect.value) >= question.rules.margin


def _part(question: Question, term: Term) -> Part:
    return Part(
        tuple(n + 1 for n in term.patches),
        tuple(tuple(n + 1 for n in alias) for alias in term.aliases),
        _changed(question, term.effect),
        term.p,
        _real(question, term),
    )


def _changed(question: Question, estimate: Estimate | None) -> Changed | None:
    return changed(question, estimate.value, estimate.low, estimate.high) if estimate else None


def _name(patches: Subset) -> str:
    numbers = [str(n + 1) for n in patches]
    if len(numbers) == 1:
        return f"patch {numbers[0]} alone"
    return f"patch {numbers[0]} together with {' and '.join(numbers[1:])}"


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
    yield Text(f"{'patch':<44}{'share':>9}  interval", style="dim")
    for n, name in enumerate(found.patches):
        share = found.shares[n] if found.shares else None
        told = f"{percent(share.value, _half(share)):>9}  {interval(share.low, share.high)}" if share else f"{'-':>9}"
        yield Text(f"{_cut(f'{n + 1}. {inert(name)}', 43):<44}{told}")
    yield Text()
    yield Text(f"{'alone and together':<44}{'change':>9}  interval", style="dim")
    for part in found.parts:
        label = _name(tuple(n - 1 for n in part.patches))
        for alias in part.aliases:
            label += f" or {' + '.join(map(str, alias))}"
        told = "inestimable"
        if part.change and part.p is not None:
            told = f"{percent(part.change.value, _half(part.change)):>9}  "
            told += f"{interval(part.change.low, part.change.high):<20}p {part.p:.2g}"
        yield Text(f"{_cut(label, 43):<44}{told}", style="" if part.real else "dim")
    yield Text()
    for one in found.combinations:
        told = quantity(one.value, unit) if one.value is not None else inert(one.reason) or "not run"
        yield from _wrapped(f"{inert(one.title):<40}{one.runs:>4} runs  {told}")
    yield Text()
    if found.inestimable:
        yield from _wrapped(
            f"Inestimable, since combinations do not apply, build or run: {'; '.join(found.inestimable)}."
        )
    design = "all combinations" if len(found.patches) <= FULL else "a fraction of resolution IV"
    yield from _wrapped(
        f"{found.blocks} blocks of {design}, in random order inside each (seed {found.question.rules.seed}); p after "
        f"Holm over all terms. Shares are Shapley's: as factors they multiply to the whole."
    )
    if found.state != "complete":
        yield from _wrapped(f"Not finished ({inert(found.state)}). Next: {inert(found.next)}.")
    yield from _wrapped(f"Folder: {inert(found.folder)}")


def _told(change: Changed) -> str:
    return f"{percent(change.value, _half(change))} ({interval(change.low, change.high)})"


def _half(change: Changed) -> float | None:
    return None if change.low is None or change.high is None else (change.high - change.low) / 2


def _wrapped(text: str, style: str = "") -> Iterator[Text]:
    for line in textwrap.wrap(text, WIDTH, subsequent_indent="   ", break_on_hyphens=False):
        yield Text(line, style=style)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "~"
