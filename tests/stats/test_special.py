"""The distributions, against scipy as an oracle; no core module may import it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special as oracle

from iodelta.stats import special

RANDOM = np.random.default_rng(1)
FREEDOM = np.concatenate([np.arange(1.0, 200.0), np.exp(RANDOM.uniform(0, 8, 300))])
P = np.concatenate([10 ** RANDOM.uniform(-12, -0.31, 300), 1 - 10 ** RANDOM.uniform(-6, -0.31, 199)])
T = RANDOM.standard_t(3, 499) * np.exp(RANDOM.uniform(-3, 3, 499))
A, B = np.exp(RANDOM.uniform(-0.7, 7, (2, 499)))
X = np.clip(A / (A + B) * np.exp(RANDOM.normal(0, 0.2, 499)), 0.0, 1.0)
N = np.ceil(A)
K = np.floor(N * RANDOM.uniform(0, 1, 499))
Z = np.concatenate([RANDOM.uniform(-37, 8, 400), [0.0, -200.0, -900.0]])

CASES = {
    "ndtr": (Z[:400],),
    "log_ndtr": (Z,),
    "ndtri": (np.concatenate([P, [0.0, 0.5, 1.0, 1e-300]]),),
    "stdtr": (FREEDOM, T),
    "stdtrit": (FREEDOM, P),
    "betainc": (A, B, X),
    "betaincinv": (np.ceil(A[:60]), np.ceil(B[:60]), RANDOM.uniform(0, 1, 60)),
    "betaln": (A, B),
    "fdtrc": (2 * A, 2 * B, X + 0.5),
    "bdtr": (K, N.astype(int), 0.5),
    "bdtrc": (K, N.astype(int), 0.05),
    "nctdtr": (np.arange(1.0, 60.0), RANDOM.uniform(0, 6, 59), 2.2),
}


@pytest.mark.parametrize("name", CASES)
def test_a_distribution_is_that_of_scipy(name: str) -> None:
    values = np.broadcast_arrays(*CASES[name])
    expected = getattr(oracle, name)(*values)
    ours = [getattr(special, name)(*row) for row in zip(*values, strict=True)]
    # scipy's own noncentral t is no better than 1e-12.
    np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-12 if name == "nctdtr" else 1e-290)


@pytest.mark.parametrize("name", ["ndtr", "log_ndtr", "ndtri", "stdtr", "betaln"])
def test_an_array_is_answered_as_its_elements_are(name: str) -> None:
    values = np.broadcast_arrays(*CASES[name])
    np.testing.assert_allclose(getattr(special, name)(*values), getattr(oracle, name)(*values), rtol=1e-10)


def test_what_has_no_answer_is_not_a_number_and_extremes_are_limits() -> None:
    assert np.isnan(
        [special.stdtr(0, 1.0), special.stdtr(3, np.nan), special.ndtri(-1), special.stdtrit(-1, 0.5)]
    ).all()
    assert (special.stdtr(np.inf, -1.0), special.stdtr(5, -np.inf)) == (special.ndtr(-1.0), 0.0)
    assert special.stdtr(np.array([5.0, 5.0]), np.array([-np.inf, np.inf])).tolist() == [0.0, 1.0]
