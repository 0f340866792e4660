"""Does a relative change that was seen there reproduce here, in direction and in size?

Both sides are log-ratios of variant to baseline, each with its interval. The size is judged by the interval of their
difference: a reproduced change is between 0.5 and 1.5 times the change seen there.

The rules are those of a verdict. A change shown in a typical trial or in all work is the change to reproduce; the other
of the two withdraws "reproduced" where it contradicts it. "No change" needs both inside the margin, and on both sides
enough trials of the variant to exclude rare stalls.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from iodelta.plural import plural
from iodelta.stats.difference import difference
from iodelta.stats.effect import Estimate
from iodelta.stats.stalls import excluded, trials_needed

Word = Literal[
    "reproduced",
    "same direction, not the same size",
    "same direction, size inconclusive",
    "other direction",
    "not seen here",
    "seen only here",
    "inconclusive",
]

Estimand = Literal["typical", "total"]

WORK = {"typical": "a typical trial", "total": "all work together"}

STALLS = 0.1
"""Share of stalled trials that "no change" must exclude on both sides."""

OPEN: tuple[Word, ...] = ("inconclusive", "same direction, size inconclusive")

HALF = 0.5

SPARE = 0.8
"""Share of the tolerance that the interval of the difference may fill when blocks are planned: the rest is for a
difference that is not quite zero."""


class Reproduction(msgspec.Struct, frozen=True):
    """The answer for one change. ``difference`` is here - there, in logarithms."""

    word: Word
    says: str
    tolerance: float
    """Differences (of logarithms) up to this are the same size."""
    difference: Estimate
    asked: bool = True
    """False where nothing was shown there, so that there is nothing to reproduce."""
    basis: Estimand = "typical"
    """The change that the word is about: that of a typical trial or of all work done."""

    @property
    def held(self) -> bool | None:
        """Return whether the change seen there holds here; None while that is inconclusive."""
        if self.word == "reproduced":
            return True
        return None if not self.asked or self.word in OPEN else False


class Measured(msgspec.Struct, frozen=True):
    """A change on one side: log-ratios of a typical trial and of all work (None: not known), the trials of the variant
    and how many of them stalled."""

    typical: Estimate
    total: Estimate | None
    trials: int
    stalled: int = 0

    def of(self, basis: Estimand) -> Estimate:
        """Return one of both; the typical one where no total is known."""
        return (
            self.total if basis == "total" and self.total is not None else self.typical
        )


def reproduced(
    there: Measured, here: Measured, margin: float, stalls: float = STALLS
) -> Reproduction:
    """Return the word for a change measured ``there`` and measured again ``here``, by both estimands.

    ``margin`` is a share (0.01 is 1 %). ``stalls``: the share of stalling trials that both sides must exclude before
    "no change there and none here" counts as reproduced. Without a total on both sides the typical change decides
    alone.
    """
    if there.total is None or here.total is None:
        return _if_enough(
            reproduction(there.typical, here.typical, margin), there, here, stalls
        )
    total_only = _shown(there.total) and not _shown(there.typical)
    order: tuple[Estimand, ...] = (
        ("total", "typical") if total_only else ("typical", "total")
    )
    answers = [reproduction(there.of(basis), here.of(basis), margin) for basis in order]
    answers = [
        msgspec.structs.replace(answer, basis=basis)
        for answer, basis in zip(answers, order, strict=True)
    ]
    first, second = answers
    if first.held and second.held is False:
        says = f"{WORK[first.basis]} is the same, {WORK[second.basis]} is not: {second.says}"
        return msgspec.structs.replace(second, says=says)
    if first.held and not _shown(there.of(first.basis)) and not second.held:
        return msgspec.structs.replace(
            second, says=f"{WORK[second.basis]}: {second.says}"
        )
    return _if_enough(first, there, here, stalls)


def _if_enough(
    answer: Reproduction, there: Measured, here: Measured, stalls: float
) -> Reproduction:
    """``answer``, but "no change, as there" only where both sides have enough trials to exclude rare stalls."""
    if not answer.held or _shown(there.of(answer.basis)):
        return answer
    least = max((there, here), key=lambda side: excluded(side.stalled, side.trials))
    needed = trials_needed(stalls, stalled=least.stalled)
    if least.trials >= needed:
        return answer
    seen = f"{plural(least.trials, 'trial')}" + (
        f", {least.stalled} of which stalled," if least.stalled else ""
    )
    says = (
        f"no change there and none here, but {seen} do not exclude stalls in up to "
        f"{100 * excluded(least.stalled, least.trials):.0f} % of them: {needed} are needed on "
        + (
            "both sides"
            if not least.stalled
            else "that side, none of the others stalled"
        )
    )
    return msgspec.structs.replace(answer, word="inconclusive", says=says)


def tolerance(there: Estimate, margin: float) -> float:
    """Return how far, in log-ratio, a change may be from ``there`` and still count as the same size: half of it; the
    ``margin`` (a share) if ``there`` shows no change."""
    return HALF * abs(there.value) if _shown(there) else math.log1p(margin)


def _of_no_change(here: Estimate, delta: float) -> tuple[Word, str]:
    """Where the original excludes a change beyond the margin."""
    if _within(here, delta):
        return "reproduced", "no change beyond the margin there, and none here"
    if _shown(here) and not _within(here, delta):
        return "seen only here", "no change beyond the margin there"
    return "inconclusive", "no change there; a change here cannot be ruled out"


def reproduction(there: Estimate, here: Estimate, margin: float) -> Reproduction:
    """Return the word for a change seen ``there`` and measured again ``here``: log-ratios of variant to baseline.

    Asked in this order, with the interval of the difference: is it within the tolerance (reproduced); does it hold
    zero (open); then what was seen there is not what is here, and the interval of this side says what is instead.
    Where no change was seen there, two intervals within the margin are a reproduction of that.
    """
    delta = math.log1p(margin)
    gap, same = difference(here, there), tolerance(there, margin)

    def made(word: Word, says: str) -> Reproduction:
        return Reproduction(word, says, same, gap)

    if not _shown(there) and not _within(there, delta):
        says = "the original does not show a change: its interval includes both a change and no change"
        return Reproduction("inconclusive", says, same, gap, asked=False)
    if not _shown(there):
        return made(*_of_no_change(here, delta))
    sign = 1.0 if there.value > 0.0 else -1.0
    same_direction = sign * (here.low if sign > 0 else here.high) > 0.0
    if _within(gap, same):
        return made("reproduced", "the difference is within the tolerance")
    if gap.low <= 0.0 <= gap.high:
        if same_direction:
            return made(
                "same direction, size inconclusive",
                "the difference is not known finely enough",
            )
        return made(
            "inconclusive",
            "here both the original change and no change remain possible",
        )
    if same_direction:
        size = "smaller" if sign * gap.value < 0.0 else "larger"
        return made(
            "same direction, not the same size",
            f"{size} here: the interval of the difference excludes zero",
        )
    if sign * (here.high if sign > 0 else here.low) < 0.0 and not _within(here, delta):
        return made("other direction", "the opposite of what was seen there")
    how = (
        "no change beyond the margin here"
        if _within(here, delta)
        else "a change of that size is ruled out here"
    )
    return made("not seen here", how)


def blocks_needed(there: Estimate, margin: float) -> int | None:
    """Blocks needed here to show whether the size is the same, assuming the noise of the original; None if its
    interval is as wide as the tolerance, so that no number of blocks suffices."""
    have, target = (there.high - there.low) / 2, SPARE * tolerance(there, margin)
    if not have < target:
        return None
    return math.ceil(there.n * have**2 / (target**2 - have**2))


def _shown(estimate: Estimate) -> bool:
    """Return whether there is a change: zero is excluded."""
    return estimate.low > 0.0 or estimate.high < 0.0


def _within(estimate: Estimate, bound: float) -> bool:
    return -bound < estimate.low and estimate.high < bound
