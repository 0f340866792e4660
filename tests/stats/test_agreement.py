"""What hosts say together, against closed forms and by simulated fleets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

from iodelta.stats.agreement import agree

VALUES, ERRORS = (0.02, 0.035, -0.01, 0.05), (0.01, 0.012, 0.02, 0.015)


def density(mean: float, tau: float) -> float:
    """Of the mean and of tau together, up to a factor: Jeffreys' prior, and a normal for each host."""
    variances = [error**2 + tau**2 for error in ERRORS]
    prior = math.sqrt(sum((tau / one) ** 2 for one in variances))
    misfit = sum((value - mean) ** 2 / one for value, one in zip(VALUES, variances, strict=True))
    return prior * math.exp(-misfit / 2) / math.sqrt(math.prod(variances))


def mass(at: float) -> float:
    """Below ``at``, by numerical integration over tau and the mean, without a grid or a closed form of the mean."""
    return float(integrate.dblquad(density, 0, 3, -1, at, epsabs=1)[0])


def test_the_mean_has_the_quantiles_of_the_integral() -> None:
    found, whole = agree(VALUES, ERRORS).mean, mass(1)
    for bound, share in ((found.low, 0.025), (found.value, 0.5), (found.high, 0.975)):
        assert mass(bound) / whole == pytest.approx(share, abs=0.001)


def test_one_host_that_differs_shows_as_spread_and_not_as_certainty() -> None:
    alike, apart = agree([0.02] * 6, [0.002] * 6), agree([0.02] * 5 + [-0.10], [0.002] * 6)
    assert alike.next.low > 0
    assert apart.next.low < 0 < apart.next.high
    assert apart.spread.low > 0.01 > alike.spread.high


@pytest.mark.parametrize("hosts", [0, 1, 2])
def test_fewer_than_three_hosts_say_nothing_together(hosts: int) -> None:
    with pytest.raises(ValueError, match="3 hosts"):
        agree([0.01] * hosts, [0.01] * hosts)


@pytest.mark.parametrize(("value", "error"), [(np.nan, 0.01), (np.inf, 0.01), (0.01, 0.0), (0.01, np.nan)])
def test_a_host_without_a_value_or_an_error_is_refused(value: float, error: float) -> None:
    with pytest.raises(ValueError, match="finite value"):
        agree([0.01, 0.02, value], [0.01, 0.01, error])
