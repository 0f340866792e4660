"""How two independent estimates of one thing differ, from their intervals alone.

Source: Zou and Donner 2008, Construction of confidence intervals about effect measures: a general approach,
Statistics in Medicine 27 (MOVER, the method of variance estimates recovery). It needs no raw data, takes skewed
intervals as they are, and does not suppose that both machines are equally noisy, which a rank-sum test would.
"""

from __future__ import annotations

import math

from iodelta.stats.effect import Estimate


def difference(here: Estimate, there: Estimate) -> Estimate:
    """``here - there`` with its interval at the lower of both levels; ``n`` is the smaller of both.

    A bound is infinite where one that it is made of is.
    """
    value = here.value - there.value
    low = math.hypot(here.value - here.low, there.high - there.value)
    high = math.hypot(here.high - here.value, there.value - there.low)
    return Estimate(
        value,
        value - low,
        value + high,
        min(here.level, there.level),
        min(here.n, there.n),
    )
