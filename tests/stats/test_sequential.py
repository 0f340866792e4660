"""Looking more than once: published bounds, simulated error rates, and what an early end or an extension may spend."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from iodelta.stats.sequential import (
    Schedule,
    nominal_tails,
    schedule,
    sequential_p,
)

LOOKS = (9, 12, 16, 20, 26, 32, 40, 50, 64, 80)


def z_bounds(plan: Schedule, alpha: float) -> list[float]:
    return [float(-ndtri(tail)) for tail in nominal_tails(plan, alpha)]


@pytest.mark.parametrize(
    ("alpha", "looks", "published"),
    [
        (0.025, (1, 2), [2.1570, 2.2010]),
        (0.025, (1, 2, 3), [2.2794, 2.2949, 2.2959]),
        (0.025, (1, 2, 3, 4), [2.3683, 2.3675, 2.3580, 2.3497]),
        (0.025, (1, 2, 3, 4, 5), [2.4380, 2.4268, 2.4101, 2.3966, 2.3859]),
        (0.05, (1, 2, 3, 4, 5), [2.1762, 2.1437, 2.1132, 2.0895, 2.0709]),
    ],
)
def test_bounds_are_the_published_ones(alpha: float, looks: tuple[int, ...], published: list[float]) -> None:
    """Pocock-type Lan-DeMets bounds as tabulated by Reboussin, DeMets, Kim and Lan (2000) and by gsDesign."""
    assert z_bounds(schedule(looks), alpha) == pytest.approx(published, abs=1e-3)


@pytest.mark.parametrize(
    "plan",
    [
        schedule(LOOKS, reserve=0.2),
        schedule(LOOKS, reserve=0.2, ended=(23,)),
        schedule(LOOKS, reserve=0.2, extension=(100, 130)),
        schedule(LOOKS, reserve=0.2, extension=(100,), ended=(23,)),
        schedule((8, 9, 10, 11, 12)),
    ],
)
def test_all_looks_together_spend_what_was_allowed(plan: Schedule) -> None:
    """Simulated Brownian motion crosses the bounds by each look as often as alpha says."""
    rng = np.random.default_rng(17)
    steps = np.diff(np.array([0, *plan.blocks], dtype=float))
    crossed = np.zeros(400_000, dtype=bool)
    position = np.zeros(len(crossed))
    alpha = 0.05
    for n, step, tail, share in zip(plan.blocks, steps, nominal_tails(plan, alpha), plan.shares, strict=True):
        position += math.sqrt(step) * rng.standard_normal(len(crossed))
        crossed |= position / math.sqrt(n) >= -ndtri(tail)
        assert crossed.mean() == pytest.approx(share * alpha, abs=4 * math.sqrt(alpha / len(crossed)))


def test_planned_looks_keep_the_reserve_for_the_extension() -> None:
    planned = schedule(LOOKS, reserve=0.2)
    assert planned.blocks == LOOKS
    assert planned.shares[-1] == pytest.approx(0.8)
    longer = schedule(LOOKS, reserve=0.2, extension=(120,))
    assert longer.blocks == (*LOOKS, 120)
    assert longer.shares == pytest.approx((*planned.shares, 1.0))
    assert nominal_tails(longer, 0.025)[:-1] == pytest.approx(nominal_tails(planned, 0.025))


def test_an_early_end_spends_what_the_planned_looks_had_left() -> None:
    plan = schedule(LOOKS, reserve=0.2, ended=(18,))
    assert plan.blocks == (9, 12, 16, 18)
    assert plan.shares[-1] == pytest.approx(0.8)
    assert plan.shares[:3] == pytest.approx(schedule(LOOKS, reserve=0.2).shares[:3])
    assert schedule(LOOKS, reserve=0.2, ended=(16,)).blocks == (9, 12, 16)
    resumed = schedule(LOOKS, reserve=0.2, ended=(18, 90), extension=(120,))
    assert resumed.blocks == (9, 12, 16, 18, 90)
    assert resumed.shares[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("alpha", [0.0005, 0.02, 0.1])
def test_a_sequence_that_just_reaches_its_bound_has_that_alpha_for_p(alpha: float) -> None:
    plan = schedule(LOOKS, reserve=0.2)
    tails = nominal_tails(plan, alpha)
    for look in range(len(LOOKS)):
        row = np.full((1, len(LOOKS)), np.nan)
        row[0, : look + 1] = 0.5
        row[0, look] = tails[look]
        assert sequential_p(plan, row)[0] == pytest.approx(alpha, rel=2e-3)


def test_sequential_p_values_are_valid_whenever_one_stops() -> None:
    """Under no effect P(p <= a) stays within the share of a that the looks may spend."""
    rng = np.random.default_rng(23)
    plan = schedule(LOOKS, reserve=0.2)
    steps = np.diff(np.array([0, *LOOKS], dtype=float))
    walk = np.cumsum(np.sqrt(steps) * rng.standard_normal((40_000, len(LOOKS))), axis=1)
    p = sequential_p(plan, ndtr(-walk / np.sqrt(LOOKS)))
    for a in (0.01, 0.05, 0.2):
        assert np.mean(p <= a) <= 0.8 * a + 4 * math.sqrt(a / len(p))
        assert np.mean(p <= a) >= 0.8 * a - 4 * math.sqrt(a / len(p))
