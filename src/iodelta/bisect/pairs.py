"""Compare two items by fresh randomised pairs of runs: the looks, and the test of the differences. No I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from iodelta.bisect.model import Effect, Rules
from iodelta.stats.bisection import Step
from iodelta.stats.effect import hodges_lehmann, tails_rows
from iodelta.stats.sequential import Schedule, nominal_tails, schedule

LOOKS = (7, 9, 11, 14, 17, 20, 25, 32, 40, 50, 64, 80, 100, 128, 160)
"""Numbers of pairs at which two items are compared."""

RESERVE = 0.1


class Pairs:
    """A test by pairs: add differences, positive is worse, until ``done``."""

    def __init__(
        self, rules: Rules, step: Step, *, most: float = math.inf, exact: int = 1
    ) -> None:
        """``step``: the expected step. ``most``: maximum number of pairs. ``exact``: the number of pairs if the measure
        repeats exactly."""
        self._rules = rules
        self.differences: list[float] = []
        plan = schedule((exact,)) if rules.exact else looks(step)
        self._levels = dict(
            zip(plan.blocks, nominal_tails(plan, rules.alpha / 2), strict=True)
        )
        self.most = int(min(plan.blocks[-1], most))
        self.p = 1.0

    def add(self, difference: float) -> bool:
        """Add one pair; return whether there is a look after it."""
        self.differences.append(difference)
        if len(self.differences) not in self._levels:
            return False
        d = np.asarray(self.differences)
        self.p = float(tails_rows(d[None, :], 0.0)[0][0])
        if self._rules.exact:
            self.p = 0.0 if d.min() > 2 * self._rules.exact else 1.0
        return True

    @property
    def shown(self) -> bool:
        """Return whether the last look showed that it is worse."""
        return self.p <= self._levels.get(len(self.differences), -1.0)

    @property
    def done(self) -> bool:
        """Return whether no more pairs are needed."""
        return self.shown or len(self.differences) >= self.most

    def effect(self) -> Effect:
        """Return the effect by the pairs so far."""
        return effect(self.differences, self._rules.exact)


def looks(step: Step) -> Schedule:
    """Return the numbers of pairs at which two items are compared, for an expected step (log-ratio, with the noise of
    a run).

    Up to twice the pairs that a t test at 1 % needs to find the step with a power of 90 %. A tenth of the level is
    reserved for three times as many pairs, because a search overestimates the step that it found.
    """
    ratio = max(step.size / max(step.noise, 1e-12), 0.3)
    most = min(max(12, math.ceil(52 / ratio**2)), LOOKS[-1])
    taken = (*(look for look in LOOKS if look < 0.9 * most), most)
    extension = tuple(math.ceil(part * most) for part in (1.3, 1.7, 2.2, 3.0))
    return schedule(taken, reserve=RESERVE, extension=extension)


def effect(differences: Sequence[float], exact: float) -> Effect:
    """Return the step from one item to the other with its interval, in the units of ``differences`` (log-ratios,
    positive = worse): Hodges-Lehmann (1963) with signed ranks; the first difference ± ``exact`` for a measure that repeats."""
    if exact:
        return Effect(differences[0], differences[0] - exact, differences[0] + exact)
    shift = hodges_lehmann(np.asarray(differences))
    return Effect(shift.value, shift.low, shift.high)
