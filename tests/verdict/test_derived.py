"""Views derived from an experiment: the knee of its depth sweep, and IOPS and latency as one effect or two."""

from __future__ import annotations

import math

import numpy as np
import pytest

from iodelta.stats.little import Together
from iodelta.trial import Direction, Finding, Histogram, Latency, Quantity, Trial, bin_index
from iodelta.verdict import Rules, metric, series_of
from iodelta.verdict.derived import knee_move, latency_shift, one_effect

IOPS, LATENCY = metric("read.iops"), metric("read.lat.mean")
RULES = Rules(metrics=(IOPS, LATENCY))
DEPTHS = {f"qd{depth}": depth for depth in (1, 2, 4, 8, 16, 32, 64, 128, 256)}
NOTHING = Quantity.exact(0.0, "ns")


def sweep(
    knees: dict[str, float], *, blocks: int = 10, seed: int = 1, latency: float = 1.0, cells: dict[str, int] = DEPTHS
) -> list[Trial]:
    """A depth sweep of devices that saturate at ``knees``; the last variant's latency is off by a factor."""
    rng = np.random.default_rng(seed)
    made: list[Trial] = []
    for block in range(blocks):
        for cell, depth in cells.items():
            for position, (variant, knee) in enumerate(knees.items()):
                iops = 500e3 * depth / (depth + knee) * math.exp(rng.normal(0, 0.015))
                factor = latency if position else 1.0
                mean = Quantity.exact(depth / iops * 1e9 * factor, "ns")
                rate = Quantity.exact(iops, "IOPS")
                lat = Latency(10**6, mean, NOTHING, NOTHING, NOTHING)
                done = Direction("read", 10**6, 4096, 10_000, rate, rate, lat=lat)
                made.append(Trial(len(made), cell, variant, block, position, 1, 0.0, 11.0, (done,)))
    return made


def test_a_kernel_that_saturates_earlier_is_found_by_its_knee() -> None:
    found = knee_move(sweep({"5.14": 24.0, "6.19": 16.0}), DEPTHS, IOPS, "5.14", "6.19", seed=1)
    assert found.before is not None
    assert found.after is not None
    assert found.shift is not None
    assert found.before.depth == pytest.approx(24, rel=0.1)
    assert found.after.depth == pytest.approx(16, rel=0.1)
    assert found.shift.moved
    assert found.shift.ratio == pytest.approx(16 / 24, rel=0.1)
    assert found.findings == ()


def test_blocks_that_lack_a_depth_are_left_out_and_a_sweep_without_whole_blocks_says_so() -> None:
    trials = sweep({"a": 20.0, "b": 20.0})
    ragged = [trial for trial in trials if (trial.block, trial.cell) != (3, "qd8")]
    found = knee_move(ragged, DEPTHS, IOPS, "a", "b", seed=1)
    assert found.shift is not None
    assert found.shift.blocks == 9
    for lacking in ([], [trial for trial in trials if trial.cell != "qd8"], trials[:1]):
        nothing = knee_move(lacking, DEPTHS, IOPS, "a", "b", seed=1)
        assert [finding.rule for finding in nothing.findings] == ["knee.no-blocks"]
    assert knee_move(trials, {}, IOPS, "a", "b", seed=1).shift is None


def told(trials: list[Trial]) -> Together | Finding:
    iops, latency = (series_of(trials, one, "a", "b", cell="qd8") for one in (IOPS, LATENCY))
    return one_effect(iops, latency, RULES)


def test_slower_io_at_a_fixed_depth_is_one_effect_and_a_deeper_queue_is_a_second() -> None:
    one = told(sweep({"a": 20.0, "b": 30.0}, cells={"qd8": 8}))
    two = told(sweep({"a": 20.0, "b": 20.0}, cells={"qd8": 8}, latency=1.1))
    assert isinstance(one, Together)
    assert isinstance(two, Together)
    assert (one.effects, two.effects) == ("one", "two")
    assert two.excess == pytest.approx(math.log(1.1), abs=0.001)


def test_iops_and_latency_that_share_no_usable_block_cannot_be_told_apart() -> None:
    trials = sweep({"a": 20.0, "b": 30.0}, cells={"qd8": 8})
    nothing = told([])
    assert isinstance(nothing, Finding)
    assert nothing.rule == "verdict.no-blocks"
    iops = series_of([trial for trial in trials if trial.block < 5], IOPS, "a", "b", cell="qd8")
    latency = series_of([trial for trial in trials if trial.block >= 5], LATENCY, "a", "b", cell="qd8")
    apart = one_effect(iops, latency, RULES)
    assert isinstance(apart, Finding)
    assert apart.rule == "little.no-blocks"


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
    for nothing in ([], trials[:1], sweep({"a": 20.0, "b": 20.0}, cells={"c": 8})):
        found = latency_shift(nothing, "read", "a", "b", RULES, cell="c")
        assert [finding.rule for finding in found.refused] == ["tails.too-few-blocks"]
