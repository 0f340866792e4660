"""Explain: a verdict in words, the rule that made it, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iodelta.figures import share
from iodelta.plural import plural
from iodelta.stats.hosts import FEWEST_BLOCKS, Mean
from iodelta.stats.stalls import excluded, trials_needed
from iodelta.trial import Finding
from iodelta.verdict.model import Change, Look, Needed, Stalls, Word
from iodelta.verdict.stalled import Counted

INSIDE = "inside the margin so far"
"""The beginning of every reason why an interval inside the margin is not yet ``equivalent``."""

SWITCH = "switch"
"""Why a word is withheld: the variant's trials right after a change of variant differ from those after its own."""

BEYOND = 1e4
"""No change of a storage device is this large: one side of it did no I/O."""


def percent(change: float | None) -> str:
    """``-2.03 %``, with enough digits to distinguish it from 0; ``unbounded`` for None."""
    if change is None:
        return "unbounded"
    if change >= BEYOND:
        return f">+{100 * BEYOND:.0e} %".replace("e+0", "e")
    size = abs(100.0 * change)
    if 0.0 < size < 0.0005:
        return f"{100.0 * change:+.{math.ceil(-math.log10(size))}f} %"
    return f"{100.0 * change:+.{1 if size >= 10 else 2 if size >= 0.1 or size == 0 else 3}f} %"


def worse(change: float) -> str:
    """``2.03 % worse``, or ``better`` for a change below 0."""
    size = (
        percent(abs(change)).removeprefix("+")
        if abs(change) <= 1.0
        else "more than 100 %"
    )
    return f"{size} {'better' if change < 0 else 'worse'}"


def interval(change: Change) -> str:
    """``[-2.9 %, -1.1 %] at 98.7 %``."""
    return f"[{percent(change.low)}, {percent(change.high)}] at {100.0 * change.level:.4g} %"


def phrase_of(word: Word, low: float, high: float, margin: float) -> str:
    """Return the finer statement behind a word, from the bounds of theta (positive = worse) and the margin as log-
    ratio.
    """
    if word == "regression":
        return "regressed by at least the margin" if low > margin else "regressed"
    if word == "improvement":
        return "improved by at least the margin" if high < -margin else "improved"
    if high < margin:
        return "not regressed; an improvement is not excluded"
    if low > -margin:
        return "not improved; a regression is not excluded"
    return "neither a change nor equivalence is shown"


def equivalent(low: float, high: float, margin: float, stalls: Counted) -> str:
    """Return the statement behind ``equivalent``: the margin, whether a small change is real, and which stalls are not
    excluded."""
    size = f"equivalent within {100.0 * margin:.3g} %"
    if low > 0 or high < 0:
        size += f" ({'worse' if low > 0 else 'better'}, but by less than that)"
    return f"{size}; {not_excluded(stalls.bound, stalls.longest)}"


def open_stalls(bound: float, longest: int) -> str:
    """Return the stalls that trials leave open: ``bound`` is their share of trials, ``longest`` the longest episode
    seen.
    """
    upto = f"in up to {100.0 * bound:.0f} % of trials"
    if not longest:
        return f"single stalls {upto} (runs of n: n times that)"
    return f"stalls {upto}" if longest == 1 else f"stalls in runs of {longest} {upto}"


def not_excluded(bound: float, longest: int) -> str:
    """Return the share of stalls that the trials do not exclude."""
    return f"{open_stalls(bound, longest)} are not excluded"


def left_open(word: Word, stalls: Counted | Stalls | None, share: float) -> str:
    """Return what an improvement after few trials leaves open, as "equivalent" always says; empty for other words,
    where no trials were counted (None), and where they exclude stalls in ``share`` of them."""
    if word != "improvement" or stalls is None:
        return ""
    bound = stalls.not_excluded if isinstance(stalls, Stalls) else stalls.bound
    return not_excluded(bound, stalls.longest) if bound > share else ""


def few_trials(stalls: Counted, share: float) -> str:
    """Return why an interval inside the margin is not yet ``equivalent``."""
    needed = trials_needed(share, stalled=stalls.stalled) * max(1, stalls.longest)
    limit = f"{100.0 * share:.3g} %"
    if not stalls.stalled:
        excluding = f"{plural(needed, 'trial')} are needed to exclude stalls in {limit} of trials"
        return f"{INSIDE}; {excluding}, {stalls.trials} were run"
    what = "stalls" if stalls.longest == 1 else f"runs of up to {stalls.longest} stalls"
    seen = (
        f"{plural(stalls.stalled, 'episode')} of stalls in {plural(stalls.trials, 'trial')}: {what} in up to "
        f"{100.0 * stalls.bound:.0f} % of them"
    )
    more = f"about {plural(needed, 'trial')} in all, without another stall, would exclude {limit}"
    return f"{INSIDE}; {seen} are not excluded; {more}"


def stalls_reach(arm: str, stalled: int, trials: int) -> str:
    """Return why a total inside the margin is not yet ``equivalent``: one arm stalled more often than the other."""
    bound = 100.0 * excluded(stalled, trials)
    seen = (
        f"{stalled} of {plural(trials, 'trial')} of {arm} stalled: stalls in up to {bound:.0f} % "
        "of them are not excluded"
    )
    return f"{INSIDE}; {seen}, and that many would move the total out of it"


def hosts(mean: Mean | None, count: int) -> str:
    """Return why a mean over hosts has no word."""
    if mean is None:
        return f"no mean over {plural(count, 'host')} yet: two of them must have made {FEWEST_BLOCKS} blocks"
    counted = mean.spare + 1
    if mean.error[0] > mean.within[0]:
        return f"{plural(counted, 'host')} changed by different amounts: more hosts would settle it, not more blocks"
    return f"{plural(counted, 'host')} changed alike, but neither a change of their mean nor equivalence is shown"


def withheld(word: Word, why: str, variant: str, conditioning: int = 0) -> str:
    """Return why carry-over withholds a word; in superblocks, that there were too few uncounted trials."""
    if conditioning:
        return (
            f"{word} is withheld: the state of {variant} is not reached in the counted trial; "
            f"measure with {more_conditioning(conditioning)}"
        )
    what = f"what a trial of {variant} leaves to the next trial could produce it"
    if why == SWITCH:
        what = f"the trials of {variant} right after each change of variant could produce it"
    return (
        f'{word} is withheld: {what}; measure with [design] carry-over = "superblocks"'
    )


def more_conditioning(conditioning: int) -> str:
    """Return the setting to reach a state that this many uncounted trials do not reach."""
    return f"[design] conditioning = {2 * conditioning + 1}"


_DID: dict[bool, dict[str, str]] = {
    True: {"regression": "did less", "improvement": "did more"},
    False: {"regression": "was worse", "improvement": "was better"},
}


def by_total(
    word: Word,
    typical: Change,
    total: Change,
    stalls: Stalls | None,
    variant: str,
    trials: int,
    *,
    is_rate: bool,
) -> str:
    """Return a word that rests on all work done, where a typical trial does not show it. Of a rate, more is better."""
    did = _DID[is_rate].get(word)
    what = (
        f"{variant} {did} in total: {percent(total.value)}"
        if did
        else f"in total {percent(total.value)}"
    )
    typical_words = f"a typical trial changed by {percent(typical.value)}"
    if stalls is not None and stalls.variant:
        typical_words += (
            f"; {len(stalls.variant)} of {plural(trials, 'trial')} of {variant} stalled"
        )
    return f"{what}; {typical_words}"


def rule_of(
    word: Word, change: Change, margin: float, look: Look, looks: int, unit: str
) -> str:
    """Return the rule that fired, with its numbers."""
    where = (
        f"after {look.blocks} {unit}{'' if look.planned else ', when the budget ended'}"
    )
    bounds = interval(change)
    limit = f"{100.0 * margin:.3g} %"
    if word == "equivalent":
        return (
            f"the interval {bounds} is inside the margin of {limit} both ways, {where}"
        )
    if word in ("regression", "improvement"):
        side = "worse" if word == "regression" else "better"
        return f"the interval {bounds} is entirely on the {side} side of 0 and reaches the margin of {limit}, {where}"
    low, high = map(math.log1p, _finite_bounds(change))
    if -math.log1p(margin) < low and high < math.log1p(margin):
        return f"the interval {bounds} is inside the margin of {limit}, but that alone gives no verdict, {where}"
    if low > 0.0 or high < 0.0:
        return f"the interval {bounds} excludes 0, but that alone gives no verdict, {where}"
    return f"the interval {bounds} settles neither 0 nor the margin of {limit}, {where}"


def would_change(
    word: Word,
    change: Change | None,
    margin: float,
    needed: Needed | None,
    findings: Sequence[Finding],
) -> str:
    """Return what would have to be different for another word."""
    hard = next((finding for finding in findings if finding.severity == "hard"), None)
    if hard is not None:
        return hard.remedy
    low, high = _bounds(change)
    if word in ("regression", "improvement"):
        nearest, farthest = (low, high) if abs(low) < abs(high) else (high, low)
        return (
            f"an interval that reaches 0 (its nearer end is {percent(nearest)}) "
            f"or stays within the margin (its farther end is {percent(farthest)})"
        )
    if word == "equivalent":
        return f"a margin tighter than {share(max(-low, high))}"
    return "more blocks" if needed is None else _more_blocks(needed)


def _bounds(change: Change | None) -> tuple[float, float]:
    """Return the interval, infinite where an end is not known."""
    low = None if change is None else change.low
    high = None if change is None else change.high
    return -math.inf if low is None else low, math.inf if high is None else high


def _finite_bounds(change: Change) -> tuple[float, float]:
    """Return the interval; an unknown end is as far out as floats reach."""
    low, high = _bounds(change)
    return max(low, -1.0 + 1e-15), high


def _more_blocks(needed: Needed) -> str:
    share = f"in {100 * needed.share:.0f} % of replays"
    if needed.high is None:
        return f"{plural(needed.low, 'block')} in all or more, perhaps more than are planned ({share})"
    return f"about {plural(needed.blocks or 0, 'block')} in all ({needed.low} to {needed.high} {share})"
