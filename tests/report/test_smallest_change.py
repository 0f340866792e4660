"""The smallest change that could have been seen: what it says is what an interval could show."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace
from test_console import account, experiment, judged

from iodelta.report.stories.evidence import Interval, smallest, visible
from iodelta.report.stories.statements import method
from iodelta.verdict import Change, Rules, Series, metric
from iodelta.verdict.judge import judge

BLOCKS = 20


def changed(factor: float, stalled: float) -> Change:
    """The typical change of 20 blocks whose variant does ``factor`` as much, and ``stalled`` of that in one trial."""
    rng = np.random.default_rng(2)
    old, new = 1e5 * np.exp(0.02 * rng.standard_normal((2, BLOCKS)))
    new *= factor
    new[7] *= stalled
    first = rng.integers(0, 2, BLOCKS).astype(bool)
    places = 2 * np.arange(BLOCKS)
    series = Series(
        cell="randread",
        metric=metric("read.iops"),
        baseline="old",
        variant="new",
        blocks=tuple(range(BLOCKS)),
        baseline_values=tuple(old.tolist()),
        variant_values=tuple(new.tolist()),
        baseline_first=tuple(first.tolist()),
        baseline_at=tuple(np.where(first, places, places + 1).tolist()),
        variant_at=tuple(np.where(first, places + 1, places).tolist()),
    )
    # One look at 99.8 %: one block of 20 that is far off reaches into its interval.
    rules = Rules(metrics=(series.metric,), margin=0.001, looks=(BLOCKS,), comparisons=1, alpha=0.002)
    found = judge(series, rules).typical
    assert found is not None
    return found


def interval(change: Change) -> Interval:
    return Interval("IOPS", "higher", change.value, change.low, change.high)


@pytest.mark.parametrize("stalled", [1.0, 0.5, 0.01])
def test_a_larger_change_than_the_one_that_is_named_is_shown_and_a_smaller_one_is_not(stalled: float) -> None:
    """The same noise without a change of its own, then with one: intervals move with what is measured."""
    still = 1 / (1 + changed(1.0, stalled).value)
    found = smallest(interval(changed(still, stalled)))
    assert found is not None
    assert found.size < 0.05, "one trial of 20 says little of what the others could show"
    assert found.way != "better", "a trial of the variant that stalled hides a gain, never a loss"
    for share, shown in ((0.9, False), (1.1, True)):
        loss = changed(still * math.exp(-share * math.log1p(found.size)), stalled)
        assert loss.excludes_zero == shown


def test_each_metric_has_its_own_range_and_what_has_no_width_or_no_end_is_left_out() -> None:
    said = visible(
        (
            Interval("IOPS", "higher", 0.0, -0.006, 0.006),
            Interval("IOPS", "higher", 0.0, -0.11, 0.12),
            Interval("mean latency", "lower", 0.01, -0.03, 1010.0),
            Interval("p99 latency", "lower", 0.0, 0.0, 0.0),
            Interval("p99.9 latency", "lower", 0.0, None, math.inf),
            Interval("bandwidth", "higher", -1.0, -1.0, 0.2),
        )
    )
    assert said == "IOPS 0.6 to 12 %; mean latency 4.1 % for the worse"


def test_a_trial_that_did_nothing_leaves_no_range_up_to_everything() -> None:
    shown = account(experiment(), {})
    first, *others = shown.judgement.verdicts
    stalled = replace(first, change=Change(-0.0096, -0.999, 0.0588, 0.95))
    (said,) = [line for line in method(judged(shown, (stalled, *others))) if line.startswith("Smallest change")]
    assert "6.9 %" in said
    assert "for the worse" in said
    assert "99" not in said.partition(":")[2].replace("p99", "")
    assert "54 %" not in said
