"""Two speeds told apart: whether a change altered how often the fast one is reached, or how fast the speeds are."""

from __future__ import annotations

import numpy as np
import pytest

from iodelta.trial import Trial
from iodelta.verdict.modes import mode_change


def trials(
    *, share: float = 0.7, fast: float = 100e3, slow: float = 60e3, blocks: int = 16, seed: int = 1, speeds: int = 2
) -> list[Trial]:
    """A baseline at 100k and 60k IOPS, 70 % of its seconds fast, and a variant of which that was changed."""
    rng = np.random.default_rng(seed)
    made: list[Trial] = []
    for block in range(blocks):
        arms = (("a", 0.7, 100e3, 60e3, 2), ("b", share, fast, slow, speeds))
        for position, (variant, often, high, low, count) in enumerate(arms):
            # Each second is fast or slow for a while: a run of 40 seconds is made of stretches of 4.
            at_high = np.repeat(rng.random(10) < often, 4) if count == 2 else np.ones(40, bool)
            seconds = np.where(at_high, high, low) * np.exp(0.03 * rng.normal(size=40))
            log = {"read.iops": tuple(seconds.tolist())}
            made.append(Trial(len(made), "c", variant, block, position, 1, 0.0, 41.0, (), series=log))
    return made


def test_a_machine_that_falls_into_its_slow_mode_more_often_is_not_called_slower_in_either() -> None:
    found = mode_change(trials(share=0.3), "read", "a", "b", cell="c")
    assert found.share is not None
    assert found.slow is not None
    assert found.fast is not None
    assert found.share.high is not None
    assert found.share.high < 0
    assert found.share.value == pytest.approx(-0.4, abs=0.12)
    assert (found.slow.value, found.fast.value) == pytest.approx((0.0, 0.0), abs=0.01)


def test_a_slower_fast_mode_is_told_from_a_rarer_one() -> None:
    found = mode_change(trials(fast=95e3), "read", "a", "b", cell="c")
    assert found.share is not None
    assert found.fast is not None
    assert found.slow is not None
    assert found.share.low is not None
    assert found.share.high is not None
    assert found.share.low < 0 < found.share.high
    assert found.fast.value == pytest.approx(-0.05, abs=0.01)
    assert found.slow.value == pytest.approx(0.0, abs=0.015)


def test_a_variant_that_has_only_one_speed_left_is_a_finding() -> None:
    found = mode_change(trials(speeds=1), "read", "a", "b", cell="c")
    assert (found.share, found.slow, found.fast) == (None, None, None)
    assert [finding.rule for finding in found.findings] == ["modes.one-sided"]
    assert "a runs at two speeds and b at one" in found.findings[0].explanation


def test_without_logs_or_without_a_variant_nothing_is_said() -> None:
    silent = [Trial(at, "c", "ab"[at % 2], at // 2, at % 2, 1, 0.0, 1.0, ()) for at in range(8)]
    for lacking in ([], silent, [trial for trial in trials() if trial.variant == "a"]):
        found = mode_change(lacking, "read", "a", "b", cell="c")
        assert found.share is None
        assert [finding.rule for finding in found.findings] == ["modes.no-logs"]
