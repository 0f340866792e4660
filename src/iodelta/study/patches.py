"""The result of an attribution in sentences: what each patch costs, alone and with others, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeGuard

from iodelta.bisect.attribution import PatchStalls, blocks_for
from iodelta.bisect.question import Question
from iodelta.bisect.rises import STALLS
from iodelta.plural import plural
from iodelta.stats.attribution import Attribution, Step, Subset, Term
from iodelta.stats.effect import Estimate
from iodelta.study.search import changed
from iodelta.study.words import digits


def answer(attribution: Attribution, question: Question) -> str:
    """Return the decomposition: "patch 1 costs 20 % by itself; patch 2 together with 3 costs another 22 %"."""
    named = [term for term in attribution.terms if term.named]
    named.sort(key=lambda term: (len(term.patches), term.patches))
    parts = [
        _term(attribution, question, term, named[:n]) for n, term in enumerate(named)
    ]
    # An effect that no group explains yet: of single patches it is certain all the same.
    in_terms = set(chain.from_iterable(term.patches for term in named))
    steps = [
        step
        for step in list(
            {
                step.patches: step for step in attribution.last if step is not None
            }.values()
        )
        if step.named and not in_terms & set(step.patches)
    ]
    if attribution.terms and attribution.open is None:
        steps = []
    parts += [_step(attribution, question, step) for step in steps]
    if not parts:
        # That no effect is certain, of patches or of the groups that could be run.
        apart = all((_is_single(step) and not step.over) for step in attribution.alone)
        which = (
            "patch, alone or together,"
            if apart
            else "patch or group of them that was run"
        )
        text = (
            f"no effect of any {which} is both beyond doubt and as large as the margin"
        )
        whole = attribution.whole
        if whole is None or whole.low <= 0:
            nothing = text
        else:
            nothing = f"all patches together cost {size(question, whole.value, whole)}, but {text}"
        parts.append(nothing)
    parts += _rest(attribution, question)
    parts += _idle(attribution, question, named)
    return "; ".join(parts)


def stalls_of(patches: Sequence[PatchStalls]) -> Iterator[str]:
    """Yield which patches stalled, and which stalls their runs do not exclude."""
    for number, patch in enumerate(patches, 1):
        # Stalls that come as often without the patch say nothing about it.
        if patch.stalled * patch.others > 2 * patch.others_stalled * patch.runs:
            runs = plural(patch.runs, "run")
            yield (
                f"{patch.stalled} of {runs} with patch {number} on stalled, and "
                f"{patch.others_stalled} of {patch.others} with it off"
            )
    open_ = [patch for patch in patches if patch.open]
    if not open_:
        return
    most = max(patch.not_excluded for patch in open_)
    most_stalled = max(patch.stalled for patch in open_)
    needed = blocks_for(len(patches), most_stalled)
    yield (
        f"stalls in up to {100 * most:.0f} % of the runs with a patch on are not excluded: "
        f"about {plural(needed, 'block')} without another stall would exclude {100 * STALLS:.0f} %"
    )


def inestimable(attribution: Attribution) -> Iterator[str]:
    """Yield the effects that cannot be estimated from the combinations that could be run."""
    bundles: dict[Subset, None] = {}
    for number, step in enumerate(attribution.alone, 1):
        if step is None:
            yield f"patch {number}, which is on or off in all of them"
        elif len(step.patches) > 1:
            bundles[step.patches] = None
        elif step.over:
            yield f"patch {number} without {listed(step.over)}"
    for patches in bundles:
        yield f"which of patch {listed(patches)} it is"


def group(patches: Subset) -> str:
    """``patch 2 together with 3 and 4``: what they do beyond fewer of them."""
    return _joined(patches, "together with")


def bundle(patches: Subset) -> str:
    """``patch 2 with 3``: switched as one."""
    return _joined(patches, "with")


def _joined(patches: Subset, how: str) -> str:
    first, *others = patches
    if not others:
        return f"patch {first + 1}"
    return f"patch {first + 1} {how} {listed(tuple(others))}"


def listed(patches: Subset) -> str:
    """``1, 2 and 3``."""
    *others, last = (str(patch + 1) for patch in patches)
    if not others:
        return last
    return f"{', '.join(others)} and {last}"


def place(step: Step, patches: int) -> str:
    """Return the patches that were on already when it was switched; ``patches`` is the number of all patches."""
    if not step.over:
        return "alone"
    switched = len(step.over) + len(step.patches)
    if switched == patches:
        return "on top of the others"
    return f"on top of {listed(step.over)}"


def _term(
    attribution: Attribution, question: Question, term: Term, before: list[Term]
) -> str:
    """Return a named term in words; ``before`` are the terms that the sentence has named already."""
    another = "another " if before else ""
    if term.fresh and term.over is not None:
        return _on_top(attribution, question, term, another)
    patches = set(term.patches)
    inside = [earlier for earlier in before if set(earlier.patches) < patches]
    together = term.together
    same_sign = together.value * term.effect.value > 0
    if not inside and same_sign and together.excludes_zero:
        return f"{group(term.patches)} {_sized(question, together, another)}"
    largest = max((len(earlier.patches) for earlier in inside), default=1)
    beyond = "they do alone" if largest == 1 else "fewer of them do"
    sized = _sized(question, term.effect, another)
    return f"{group(term.patches)} {sized} beyond what {beyond}"


def _on_top(
    attribution: Attribution, question: Question, term: Term, another: str
) -> str:
    several = len(term.fresh) > 1
    apart = "; they are indistinguishable" if several else ""
    sized = _sized(question, term.effect, another if several else "")
    by_itself = not several and len(attribution.shares) > 1
    where = ""
    if term.over:
        needed = ", without which it was not run" if term.needed else ""
        where = f" on top of {listed(term.over)}{needed}"
    elif by_itself:
        where = " by itself"
    return f"{bundle(term.fresh)} {sized}{where}{apart}"


def _step(attribution: Attribution, question: Question, step: Step) -> str:
    where = place(step, len(attribution.shares))
    return f"{bundle(step.patches)} {_sized(question, step.effect)} {where}"


def _sized(question: Question, effect: Estimate, another: str = "") -> str:
    """``costs another 20 %``."""
    verb = "costs" if effect.value > 0 else "gains"
    return f"{verb} {another}{size(question, effect.value, effect)}"


def size(question: Question, value: float, effect: Estimate) -> str:
    """Return the size of an effect or of an end of its interval, without sign, with the digits that the table gives it;
    ``value`` is a log-ratio."""
    change = changed(question, effect.value, effect.low, effect.high)
    half_width = None
    if change.low is not None and change.high is not None:
        half_width = (change.high - change.low) / 2
    share = abs(changed(question, value).value)
    return f"{100 * share:,.{digits(half_width)}f} %"


def _rest(attribution: Attribution, question: Question) -> Iterator[str]:
    """Yield what remains of the whole beyond the named terms, if it is as large as the margin."""
    rest = attribution.rest
    any_named = any(term.named for term in attribution.terms)
    if rest is None or not any_named:
        return
    matters = abs(rest.value) >= question.rules.margin
    if matters and rest.excludes_zero:
        verb = "a cost" if rest.value > 0 else "a gain"
        another = size(question, rest.value, rest)
        yield f"{verb} of another {another} remains, which is not certain for any patch or group"


def _idle(
    attribution: Attribution, question: Question, named: list[Term]
) -> Iterator[str]:
    """Yield what is known of patches in no named term. A patch is harmless only if both its figures exclude the margin."""
    harmless: list[int] = []
    carried: list[int] = []
    open_: list[int] = []
    bundled: list[int] = []
    undecided: list[Estimate] = []
    # The patches in no named term.
    patches = len(attribution.alone)
    in_terms = set(chain.from_iterable(term.patches for term in named))
    for patch in [patch for patch in range(patches) if patch not in in_terms]:
        first, last = attribution.alone[patch], attribution.last[patch]
        if not (_is_single(first) and _is_single(last)):
            bundled.append(patch)
        elif max(_reach(first), _reach(last)) > question.rules.margin:
            open_.append(patch)
            undecided += (first.effect, last.effect)
        elif first.over:
            carried.append(patch)
        else:
            harmless.append(patch)
    if harmless:
        yield f"{_costs(harmless)} nothing that matters, alone or on top of others"
    if carried:
        were = "were" if len(carried) > 1 else "was"
        yield f"{_costs(carried)} nothing that matters on top of others, and {were} never run alone"
    # Without a named term the answer says already that nothing is certain.
    if named:
        # Patches whose cost is not excluded, of which the figures are ``undecided``, and those only run with
        # others.
        if open_:
            worst = max(undecided, key=lambda effect: effect.high)
            most = size(question, max(0.0, worst.high), worst)
            yield f"of patch {listed(tuple(open_))} no cost is shown, and up to {most} is not excluded"
        if bundled:
            yield f"patch {listed(tuple(bundled))} cannot be separated from others"


def _costs(patches: list[int]) -> str:
    """``patch 3 costs``, ``patches 1 and 2 cost``."""
    several = len(patches) > 1
    return f"patch{'es' * several} {listed(tuple(patches))} cost{'s' * (not several)}"


def _is_single(step: Step | None) -> TypeGuard[Step]:
    """Return whether the step is of one patch, so that its figures are those of this patch."""
    return step is not None and len(step.patches) == 1


def _reach(step: Step) -> float:
    """Return the largest effect that the interval of a step does not exclude, in either direction."""
    return max(abs(step.effect.low), abs(step.effect.high))
