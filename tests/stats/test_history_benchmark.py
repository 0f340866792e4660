"""The short form of ``benchmarks/history``: no alert without a step where the reference arm is, every step found."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.history import __main__ as bench
from benchmarks.history import nights, rules


class Never(bench.Confirmations):
    """Experiments of equal builds that all say so."""

    def __init__(self) -> None:
        self.words, self._next = ["equivalent"], 0


class Always(bench.Confirmations):
    """Experiments that all find the change."""

    def __init__(self) -> None:
        self.words, self._next = ["regression"], 0


@pytest.mark.night
@pytest.mark.parametrize("name", list(nights.SESSIONS))
def test_a_reference_arm_cancels_every_kind_of_night(name: str) -> None:
    found = bench.quiet(name, nights.SESSIONS[name], True, 4, 1, 1, Never())
    assert found.points == 2000
    assert found.candidates <= 5.0
    assert found.reports <= 1.0
    assert found.alerts == 0.0


@pytest.mark.night
@pytest.mark.parametrize(("size", "median"), [(0.02, 2.0), (0.01, 6.0)])
def test_a_step_is_found_within_nights_and_its_range_holds_it(size: float, median: float) -> None:
    own, *others = bench.stepped(size, True, 20, 1, Always())
    assert own.within == 1.0
    assert own.median <= median
    assert own.held >= 0.9
    assert {other.name for other in others} >= {"fixed threshold 3 %", "t test over 12 + 12"}


def test_rivals_find_a_large_step_where_it_is() -> None:
    y = 0.001 * np.random.default_rng(1).standard_normal(60)
    y[30:] += 0.05
    for rule in rules.rivals().values():
        ((_, at, size),) = rule(y)
        assert abs(at - 30) <= 12
        assert size > 0.02
