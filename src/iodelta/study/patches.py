"""What an attribution found, in sentences: which patch costs what, alone, with others, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeGuard

from iodelta.bisect.attribution import PatchStalls, blocks_for
from iodelta.bisect.question import Question
from iodelta.bisect.rises import STALLS
from iodelta.plural import plural
from iodelta.stats.attribution import (
    FULL,
    MISFIT,
    PAIRS,
    Attribution,
    Step,
    Subset,
    Term,
)
from iodelta.stats.effect import Estimate
from iodelta.study.search import changed


def answer(attribution: Attribution, question: Question) -> str:
    """The decomposition: "patch 1 costs 20 % by itself; patch 2 together with 3 costs another 22 %"."""
    named = sorted(
        (term for term in attribution.terms if term.named),
        key=lambda term: (len(term.patches), term.patches),
    )
    parts = [
        _term(attribution, question, term, named[:n]) for n, term in enumerate(named)
    ]
    if not attribution.terms:
        parts += [
            _step(attribution, question, step)
            for step in _distinct(attribution.last)
            if step.named
        ]
    if not parts:
        parts.append(_nothing(attribution, question))
    parts += _rest(attribution, question)
    parts += _idle(attribution, question, named)
    return "; ".join(parts)


def stalls_of(patches: Sequence[PatchStalls]) -> Iterator[str]:
    """Which patches stalled, and which stalls their runs do not exclude."""
    for n, patch in enumerate(patches):
        if patch.stalled:
            yield (
                f"{patch.stalled} of {plural(patch.runs, 'run')} with patch {n + 1} on stalled, and "
                f"{patch.others_stalled} of {patch.others} with it off"
            )
    open_ = [patch for patch in patches if patch.open]
    if open_:
        most = max(patch.not_excluded for patch in open_)
        needed = blocks_for(len(patches), max(patch.stalled for patch in open_))
        yield (
            f"stalls in up to {100 * most:.0f} % of the runs with a patch on are not excluded: "
            f"about {plural(needed, 'block')} without another stall would exclude {100 * STALLS:.0f} %"
        )


def inestimable(attribution: Attribution) -> Iterator[str]:
    """Effects that the combinations that could be run do not determine."""
    bundles: dict[Subset, None] = {}
    for i, step in enumerate(attribution.alone):
        if step is None:
            yield f"patch {i + 1}, which is on or off in all of them"
        elif len(step.patches) > 1:
            bundles[step.patches] = None
        elif step.over:
            yield f"patch {i + 1} without {listed(step.over)}"
    for bundle in bundles:
        yield f"which of patch {listed(bundle)} it is"


def model(attribution: Attribution) -> str:
    """What the figures rest on."""
    patches = len(attribution.shares)
    if patches <= FULL:
        return "Every figure is a difference between combinations as they were measured"
    kind = "single effects and pairs" if patches <= PAIRS else "single effects"
    if attribution.smoothed and attribution.misfit is not None:
        how = (
            f" (p {attribution.misfit:.2g})"
            if attribution.misfit >= MISFIT
            else " by as much as matters"
        )
        return f"Figures are those of a model of {kind}, which the spare combinations do not contradict{how}"
    if attribution.misfit is not None:
        more = "Three or more patches" if patches <= PAIRS else "Patches"
        few = f"at most {FULL if patches <= PAIRS else PAIRS}"
        return (
            f"{more} act together: a model of {kind} does not fit (p {attribution.misfit:.2g}), so every figure is a "
            f"difference between combinations as they were measured; attribute {few} of them to see which"
        )
    return (
        f"No spare combination can check a model of {kind}, so every figure is a difference between "
        "combinations as they were measured"
    )


def group(patches: Subset) -> str:
    """``patch 2 together with 3 and 4``: what they do beyond fewer of them."""
    first, *others = patches
    return f"patch {first + 1}" + (
        f" together with {listed(tuple(others))}" if others else ""
    )


def bundle(patches: Subset) -> str:
    """``patch 2 with 3``: switched as one."""
    first, *others = patches
    return f"patch {first + 1}" + (f" with {listed(tuple(others))}" if others else "")


def listed(patches: Subset) -> str:
    """``1, 2 and 3``."""
    numbers = [str(n + 1) for n in patches]
    if len(numbers) > 1:
        return " and ".join([", ".join(numbers[:-1]), numbers[-1]])
    return numbers[0]


def place(step: Step, patches: int) -> str:
    """On top of what it was switched, of so many patches in all."""
    if not step.over:
        return "alone"
    everything = len(step.over) + len(step.patches) == patches
    if everything:
        return "on top of the others"
    return f"on top of {listed(step.over)}"


def _term(
    attribution: Attribution, question: Question, term: Term, before: list[Term]
) -> str:
    """A named term; ``before``: those that the sentence has named already."""
    another = "another " if before else ""
    if term.fresh and term.over is not None:
        return _on_top(attribution, question, term, another)
    inside = [
        term_before
        for term_before in before
        if set(term_before.patches) < set(term.patches)
    ]
    together = term.together
    same = together.value * term.effect.value > 0 and (
        together.low > 0 or together.high < 0
    )
    if not inside and same:
        return f"{group(term.patches)} {_sized(question, together, another)}"
    beyond = (
        "they do alone"
        if all(len(term_before.patches) == 1 for term_before in inside)
        else "fewer of them do"
    )
    return f"{group(term.patches)} {_sized(question, term.effect, another)} beyond what {beyond}"


def _on_top(
    attribution: Attribution, question: Question, term: Term, another: str
) -> str:
    several = len(term.fresh) > 1
    where = ""
    if term.over:
        where = f" on top of {listed(term.over)}{', without which it was not run' if term.needed else ''}"
    if not term.over and not several and len(attribution.shares) > 1:
        where = " by itself"
    apart = "; they are indistinguishable" if several else ""
    return f"{bundle(term.fresh)} {_sized(question, term.effect, another if several else '')}{where}{apart}"


def _step(attribution: Attribution, question: Question, step: Step) -> str:
    return f"{bundle(step.patches)} {_sized(question, step.effect)} {place(step, len(attribution.shares))}"


def _sized(question: Question, effect: Estimate, another: str = "") -> str:
    """``costs another 20 %``."""
    return f"{'costs' if effect.value > 0 else 'gains'} {another}{size(question, effect.value)}"


def size(question: Question, value: float) -> str:
    """A change without its sign."""
    share = abs(changed(question, value).value)
    return f"{100 * share:.{0 if share >= 0.05 else 1}f} %"


def _nothing(attribution: Attribution, question: Question) -> str:
    apart = all(
        step is not None and len(step.patches) == 1 and not step.over
        for step in attribution.alone
    )
    which = (
        "patch, alone or together," if apart else "patch or group of them that was run"
    )
    text = f"no effect of any {which} is both beyond doubt and as large as the margin"
    if attribution.whole is not None and attribution.whole.low > 0:
        return f"all patches together cost {size(question, attribution.whole.value)}, but {text}"
    return text


def _rest(attribution: Attribution, question: Question) -> Iterator[str]:
    """What the named terms leave of the whole, where it matters."""
    rest = attribution.rest
    if rest is None or not any(term.named for term in attribution.terms):
        return
    if abs(rest.value) >= question.rules.margin and (rest.low > 0 or rest.high < 0):
        verb = "a cost" if rest.value > 0 else "a gain"
        yield f"{verb} of another {size(question, rest.value)} remains, which is not certain for any patch or group"


def _idle(
    attribution: Attribution, question: Question, named: list[Term]
) -> Iterator[str]:
    """Patches in no named term: nothing that matters only where both their figures exclude it."""
    harmless, carried, open_, bundled = (
        list[int](),
        list[int](),
        list[int](),
        list[int](),
    )
    bound = 0.0
    for patch in _unnamed(len(attribution.alone), named):
        first, last = attribution.alone[patch], attribution.last[patch]
        if not (_is_single(first) and _is_single(last)):
            bundled.append(patch)
        elif max(_reach(first), _reach(last)) > question.rules.margin:
            open_.append(patch)
            bound = max(bound, first.effect.high, last.effect.high)
        elif first.over:
            carried.append(patch)
        else:
            harmless.append(patch)
    if harmless:
        yield f"patch {listed(tuple(harmless))} nothing that matters, alone or on top of others"
    if carried:
        were = "were" if len(carried) > 1 else "was"
        yield f"patch {listed(tuple(carried))} nothing that matters on top of others, and {were} never run alone"
    if open_ and named:
        yield f"of patch {listed(tuple(open_))} no cost is shown, and up to {size(question, bound)} is not excluded"
    if bundled and named:
        yield f"patch {listed(tuple(bundled))} cannot be separated from others"


def _unnamed(patches: int, named: list[Term]) -> list[int]:
    """The patches in no named term."""
    in_terms = set(chain.from_iterable(term.patches for term in named))
    return [patch for patch in range(patches) if patch not in in_terms]


def _is_single(step: Step | None) -> TypeGuard[Step]:
    """Whether the step is of one patch, so that its figures are those of this patch."""
    return step is not None and len(step.patches) == 1


def _reach(step: Step) -> float:
    """The largest effect that the interval of a step does not exclude, in either direction."""
    return max(abs(step.effect.low), abs(step.effect.high))


def _distinct(steps: tuple[Step | None, ...]) -> list[Step]:
    return list({step.patches: step for step in steps if step is not None}.values())
