"""The result of an attribution: what each patch costs, alone and with others, in a sentence, a table and as data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import msgspec
import numpy as np

from iodelta.bisect.attribution import PatchStalls, is_worse
from iodelta.bisect.driver import Attributed
from iodelta.bisect.log import SearchFolder
from iodelta.bisect.question import Patches, Question
from iodelta.errors import RequestError
from iodelta.stats.attribution import Attribution, Step, Subset, Term
from iodelta.stats.effect import Estimate
from iodelta.study.patches import answer, bundle, inestimable, place, stalls_of
from iodelta.study.search import Changed, changed
from iodelta.study.searched import state_of, values_by_item
from iodelta.study.system import system

TOO_FEW = Attribution(
    terms=(),
    alone=(),
    last=(),
    shares=(),
    whole=None,
    rest=None,
    least=(),
    blocks=0,
)
"""The attribution before there are enough blocks."""

MODEL = (
    "Every figure is a difference between levels of combinations that were run; intervals and p values hold for all "
    "figures at once"
)


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
    """Two-sided, for all figures at once."""
    real: bool
    """Whether it is beyond doubt, as large as the margin, and (of a group) gone without any one of its patches."""


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
    """Two-sided, for all figures at once."""
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
    """Everything that ``iodelta attribute`` reports."""

    folder: str
    question: Question
    state: str
    exit_code: int
    """1: all together are worse; 0: by the margin they are not, and no patch stalls in a tenth of its runs; 3: neither is
    known."""
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
    stalls: tuple[PatchStalls, ...]
    """By patch, the runs that stalled, and the share of stalls that is not excluded."""
    blocks: int
    next: str
    """What would be run next and why; empty when nothing is left."""
    system: tuple[tuple[str, str], ...] = ()
    """Name and value of what matters most of the machine that was measured; empty before the first run."""
    schema: Literal["iodelta.attribution/2"] = "iodelta.attribution/2"


def account(
    folder: SearchFolder, question: Question, replay: Attributed
) -> AttributionAccount:
    """Judge a folder as it is now. Raises RequestError for another kind of question."""
    subject = question.subject
    if not isinstance(subject, Patches):
        raise RequestError(
            "this is a search",
            place=str(folder.path),
            remedy="pass it to `iodelta bisect`",
        )
    judged = replay.outcome if replay.ask is None else replay.search.result()
    attribution = judged or TOO_FEW
    patches = len(subject.names)
    stalls = replay.search.stalls()
    values = values_by_item(folder.answers())
    combinations = []
    for item in replay.search.items:
        measured = values.get(item, [])
        combination = Combination(
            item=item,
            title=replay.kind.title(item),
            runs=len(measured),
            value=float(np.median(measured)) if measured else None,
            reason=replay.search.store.broken.get(item, ""),
        )
        combinations.append(combination)
    return AttributionAccount(
        folder=str(folder.path),
        question=question,
        state=state_of(folder.events(), over=replay.ask is None),
        exit_code=exit_code(attribution, question.rules.margin, stalls),
        answer="; ".join(
            (
                answer(attribution, question),
                *(() if is_worse(attribution) else stalls_of(stalls)),
            )
        )
        if judged
        else "too few blocks for an answer",
        patches=subject.names,
        whole=_changed(question, attribution.whole),
        alone=tuple(_switched(question, step, patches) for step in attribution.alone),
        on_top=tuple(_switched(question, step, patches) for step in attribution.last),
        shares=tuple(map(partial(_changed, question), attribution.shares)),
        parts=tuple(map(partial(_part, question), attribution.terms)),
        inestimable=tuple(inestimable(attribution)),
        model=MODEL if judged else "",
        combinations=tuple(combinations),
        stalls=stalls,
        blocks=len(replay.search.blocks) + len(replay.search.further),
        next=f"{replay.kind.title(replay.ask.item)}: {replay.ask.why}"
        if replay.ask
        else "",
        system=system(folder.environment()),
    )


def exit_code(
    attribution: Attribution, margin: float, stalls: Sequence[PatchStalls]
) -> int:
    """Return whether all patches together are worse; ``margin`` as a logarithm. What intervals cannot show, a patch
    that stalls now and then, keeps it from 0 as it keeps a verdict from ``equivalent``."""
    if is_worse(attribution):
        return 1
    if attribution.whole is None or attribution.whole.high >= margin:
        return 3
    may_stall = any(patch.open for patch in stalls)
    return 3 if may_stall else 0


def _part(question: Question, term: Term) -> Part:
    return Part(
        patches=_numbers(term.patches),
        fresh=_numbers(term.fresh) if term.over is not None else (),
        change=_known(question, term.effect),
        together=_known(question, term.together),
        p=term.p,
        real=term.named,
    )


def _switched(question: Question, step: Step | None, patches: int) -> Switched | None:
    if step is None:
        return None
    name = place(step, patches)
    if len(step.patches) > 1:
        name = f"{bundle(step.patches)} {name}"
    return Switched(
        patches=_numbers(step.patches),
        over=_numbers(step.over),
        name=name,
        change=_known(question, step.effect),
        p=step.p,
        real=step.named,
    )


def _numbers(patches: Subset) -> tuple[int, ...]:
    return tuple(n + 1 for n in patches)


def _known(question: Question, estimate: Estimate) -> Changed:
    return changed(question, estimate.value, estimate.low, estimate.high)


def _changed(question: Question, estimate: Estimate | None) -> Changed | None:
    if estimate is None:
        return None
    return _known(question, estimate)
