"""Views derived from an experiment: the knee of its depth sweep, and how far the percentiles of latency moved."""

from __future__ import annotations

import math

import numpy as np
import pytest

from iodelta.trial import Direction, Histogram, Latency, Quantity, Trial, bin_index
from iodelta.verdict import Rules, metric
from iodelta.verdict.derived import knee_move, latency_shift

IOPS = metric("read.iops")
RULES = Rules(metrics=(IOPS,))
DEPTHS = {f"qd{depth}": depth for depth in (1, 2, 4, 8, 16, 32, 64, 128, 256)}
NOTHING = Quantity.exact(0.0, "ns")


def sweep(
    knees: dict[str, float],
    *,
    blocks: int = 10,
    seed: int = 1,
    peak: float = 500e3,
    corner: bool = False,
    sd: float = 0.015,
) -> list[Trial]:
    """A depth sweep of devices that saturate at ``knees``, the last at another ``peak``: a single server behind a fixed
    delay with random arrivals, or with a ``corner`` one that serves so many I/Os at once, each in the same time."""
    rng = np.random.default_rng(seed)
    made: list[Trial] = []
    for block in range(blocks):
        for cell, depth in DEPTHS.items():
            for position, (variant, knee) in enumerate(knees.items()):
                share = min(depth / knee, 1.0) if corner else depth / (depth + knee)
                iops = (peak if position else 500e3) * share * math.exp(rng.normal(0, sd))
                rate = Quantity.exact(iops, "IOPS")
                done = Direction("read", 10**6, 4096, 10_000, rate, rate)
                made.append(Trial(len(made), cell, variant, block, position, 1, 0.0, 11.0, (done,)))
    return made


@pytest.mark.parametrize("corner", [False, True])
@pytest.mark.parametrize("knee", [6.0, 20.0, 50.0])
def test_the_knee_of_a_known_device_is_found(knee: float, corner: bool) -> None:
    found = knee_move(sweep({"a": knee, "b": knee}, corner=corner), DEPTHS, IOPS, "a", "b", seed=1)
    assert found.before is not None
    assert found.before.depth == pytest.approx(knee, rel=0.06)
    assert found.before.low <= found.before.depth <= found.before.high


def test_the_interval_holds_the_knee_in_nineteen_sweeps_of_twenty() -> None:
    hits = 0
    for seed in range(30):
        found = knee_move(sweep({"a": 20.0, "b": 20.0}, seed=seed), DEPTHS, IOPS, "a", "b", seed=seed)
        hits += sum(one is not None and one.low <= 20 <= one.high for one in (found.before, found.after))
    assert hits >= 53


@pytest.mark.parametrize(("knee", "peak", "moved"), [(24.0, 500e3, True), (20.0, 500e3, False), (20.0, 400e3, False)])
def test_a_knee_that_moved_is_told_from_one_that_stayed_and_from_a_lower_plateau(
    knee: float, peak: float, moved: bool
) -> None:
    found = knee_move(sweep({"a": 20.0, "b": knee}, blocks=12, peak=peak), DEPTHS, IOPS, "a", "b", seed=1)
    assert found.shift is not None
    assert found.shift.excludes_zero == moved
    assert found.shift.value == pytest.approx(knee / 20 - 1, abs=0.06)


def test_a_sweep_that_has_no_knee_inside_it_or_too_few_whole_blocks_shows_none() -> None:
    trials = sweep({"a": 20.0, "b": 1e9}, sd=0.0)
    found = knee_move(trials, DEPTHS, IOPS, "a", "b", seed=1)
    assert (found.before is None, found.after, found.shift) == (False, None, None)
    ragged = [trial for trial in trials if (trial.block, trial.cell) != (3, "qd8")]
    assert knee_move(ragged, DEPTHS, IOPS, "a", "b", seed=1).before is not None
    for lacking in ([], [trial for trial in trials if trial.cell != "qd8"], trials[:1]):
        assert knee_move(lacking, DEPTHS, IOPS, "a", "b", seed=1).before is None
    assert knee_move(trials, {}, IOPS, "a", "b", seed=1).before is None


def logged(factor: float, *, blocks: int = 8, family: str = "clat") -> list[Trial]:
    """Trials whose latencies are known in full; those of the second variant are ``factor`` times as long."""
    rng = np.random.default_rng(3)
    made: list[Trial] = []
    for block in range(blocks):
        for position, variant in enumerate("ab"):
            samples = 80e3 * (factor if position else 1.0) * rng.lognormal(0, 0.2, 2000)
            counts: dict[int, int] = {}
            for index in map(bin_index, samples.astype(int).tolist()):
                counts[index] = counts.get(index, 0) + 1
            found = Latency(2000, NOTHING, NOTHING, NOTHING, NOTHING, histogram=Histogram.from_counts(counts))
            rate = Quantity.exact(2e3, "IOPS")
            lat, clat = (found, None) if family == "lat" else (None, found)
            done = Direction("read", 2000, 4096, 1000, rate, rate, lat=lat, clat=clat)
            made.append(Trial(len(made), "c", variant, block, position, 1, 0.0, 1.0, (done,)))
    return made


@pytest.mark.parametrize("family", ["lat", "clat"])
def test_the_shift_of_latency_is_drawn_from_whichever_latency_was_kept(family: str) -> None:
    found = latency_shift(logged(1.1, family=family), "read", "a", "b", RULES, cell="c")
    median = next(shift for shift in found.shifts if shift.p == 0.5)
    assert median.moved
    assert median.change == pytest.approx(math.log(1.1), abs=0.02)
    assert {finding.place for finding in found.refused} == {"cell c, read latency, b"}


def test_blocks_without_both_histograms_are_left_out_of_the_shift() -> None:
    trials = logged(1.0)
    lacking = [trial for trial in trials if (trial.block, trial.variant) != (2, "b")]
    assert latency_shift(lacking, "read", "a", "b", RULES, cell="c").blocks == 7
    for nothing in ([], trials[:1], sweep({"a": 20.0, "b": 20.0})):
        found = latency_shift(nothing, "read", "a", "b", RULES, cell="c")
        assert [finding.rule for finding in found.refused] == ["tails.too-few-blocks"]
