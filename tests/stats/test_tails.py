"""What fio's latency bins allow to be said about percentiles, and about how far a change moved each of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from tiers import most, scaled

from iodelta.stats import tails
from iodelta.stats.effect import hodges_lehmann
from iodelta.stats.shift import ShiftFunction, shift_function
from iodelta.stats.simultaneous import simultaneous
from iodelta.trial import BINS, Finding, Histogram, bin_index

Floats = NDArray[np.float64]


def histogram(samples: Floats) -> Histogram:
    found: dict[int, int] = {}
    for value, count in zip(*np.unique(samples.astype(np.int64), return_counts=True), strict=True):
        index = bin_index(int(value))
        found[index] = found.get(index, 0) + int(count)
    return Histogram.from_counts(found)


def latencies(n: int, rng: np.random.Generator, *, tail: float = 1.0) -> Floats:
    """A body around 80 us and 2 % of I/Os that waited: their time is stretched by ``tail``."""
    body, waited = rng.lognormal(math.log(80e3), 0.25, n), tail * rng.lognormal(math.log(120e3), 0.8, n)
    return np.where(rng.random(n) < 0.02, waited, body)


def arms(
    blocks: int, ios: int, seed: int, *, tail: float = 1.0, shift: float = 0.0
) -> tuple[list[Histogram], list[Histogram]]:
    """Histograms of two variants, blocks that differ by 2 % and runs by 1 %."""
    rng = np.random.default_rng(seed)
    both: tuple[list[Histogram], list[Histogram]] = ([], [])
    for _ in range(blocks):
        block = rng.normal(0, 0.02)
        for arm, stretch, move in ((both[0], 1.0, 0.0), (both[1], tail, shift)):
            arm.append(histogram(latencies(ios, rng, tail=stretch) * math.exp(block + rng.normal(0, 0.01) + move)))
    return both


def at(found: ShiftFunction, p: float) -> float:
    return next(shift.change for shift in found.shifts if shift.p == p)


def test_p50_and_p99_of_200000_ios_are_within_a_tenth_of_a_percent_of_the_exact_sample_quantile() -> None:
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(12):
        samples = latencies(200_000, rng)
        binned = histogram(samples)
        errors.append([binned.quantile(p) / float(np.quantile(samples, p)) - 1 for p in (0.5, 0.99)])
    rms = np.sqrt(np.mean(np.square(errors), axis=0))
    assert rms[0] < 0.0003
    assert rms[1] < 0.001


@pytest.mark.parametrize(("p", "ios"), [(0.5, 200), (0.99, 10**4), (0.999, 10**5), (0.9999, 10**6), (0.1, 1000)])
def test_a_percentile_needs_100_ios_beyond_it(p: float, ios: int) -> None:
    assert tails.samples_needed(p) == ios
    enough = tails.percentile(Histogram.from_counts({900: ios}), p)
    short = tails.percentile(Histogram.from_counts({900: ios - 1}), p, place="trial 3")
    assert isinstance(enough, tails.Percentile)
    assert isinstance(short, Finding)
    assert short.rule == "tails.too-few-samples"
    assert str(ios) in short.remedy


def test_an_empty_histogram_and_one_of_io_slower_than_17_seconds_give_reasons_not_numbers() -> None:
    for given_, rule in (({}, "tails.too-few-samples"), ({BINS - 1: 10**6}, "tails.cap-bin")):
        found = tails.percentile(Histogram.from_counts(given_), 0.5)
        assert isinstance(found, Finding)
        assert found.rule == rule


def test_the_stated_sampling_error_is_the_one_that_repeated_runs_show() -> None:
    rng = np.random.default_rng(2)
    for p in (0.5, 0.99):
        known = [tails.percentile(histogram(latencies(20_000, rng)), p) for _ in range(80)]
        values = [one.value for one in known if isinstance(one, tails.Percentile)]
        stated = np.mean([one.sampling for one in known if isinstance(one, tails.Percentile)])
        assert stated == pytest.approx(float(np.std(np.log(values))), rel=0.25)


def test_interpolation_is_trusted_where_counts_are_smooth_and_not_where_a_clock_ticks() -> None:
    smooth = tails.percentile(Histogram.from_counts(dict.fromkeys(range(900, 920), 10**5)), 0.5)
    ticking = tails.percentile(Histogram.from_counts({900: 10, 910: 10**6, 920: 10}), 0.5)
    assert isinstance(smooth, tails.Percentile)
    assert isinstance(ticking, tails.Percentile)
    assert smooth.interpolation == 0.0
    assert ticking.interpolation == pytest.approx(ticking.bin_width / 2)


def test_p99_9_is_refused_for_a_short_run_and_given_for_twenty_of_them_together() -> None:
    runs, _ = arms(20, 10_000, 3)
    assert isinstance(tails.percentile(runs[0], 0.999), Finding)
    together = tails.percentile(Histogram.merged(runs), 0.999)
    assert isinstance(together, tails.Percentile)
    assert together.samples == 200_000


def test_a_change_of_the_tail_alone_is_seen_in_the_tail_alone() -> None:
    found = shift_function(*arms(12, 20_000, 6, tail=1.3), seed=1)
    moved = {shift.p: shift.moved for shift in found.shifts}
    assert not any(moved[p] for p in (0.1, 0.3, 0.5, 0.7, 0.8))
    assert moved[0.99]
    assert moved[0.999]
    assert {shift.p for shift in found.shifts if shift.pooled} == {0.999}


def test_a_slower_device_moves_every_percentile_alike_and_swapping_the_arms_turns_the_sign() -> None:
    base, slow = arms(12, 20_000, 7, shift=0.05)
    found, back = shift_function(base, slow, seed=1), shift_function(slow, base, seed=1)
    for p in (0.1, 0.5, 0.9):
        assert at(found, p) == pytest.approx(0.05, abs=0.015)
    assert [shift.change for shift in back.shifts] == pytest.approx([-shift.change for shift in found.shifts])


def test_a_percentile_never_reports_less_than_its_counts_can_tell() -> None:
    found = shift_function(*arms(12, 20_000, 8), seed=1)
    for shift in found.shifts:
        assert shift.smallest >= 2 * shift.resolution
        assert shift.low is not None
        assert shift.high is not None
        assert shift.smallest >= (shift.high - shift.low) / 2


def test_without_a_change_the_band_misses_anywhere_in_at_most_one_experiment_of_twenty() -> None:
    misses, experiments = 0, scaled(100, 20)
    for seed in range(experiments):
        found = shift_function(*arms(8, 2000, 1000 + seed), grid=(0.1, 0.3, 0.5, 0.7, 0.9), seed=seed)
        misses += any((shift.low or -1) > 0 or (shift.high or 1) < 0 for shift in found.shifts)
    assert misses <= most(0.05, experiments)


@pytest.mark.parametrize("blocks", [8, 12, 30])
def test_one_effect_alone_has_the_signed_rank_interval(blocks: int) -> None:
    d = np.random.default_rng(blocks).normal(size=blocks)
    (found,) = simultaneous(d[None, :], seed=1)
    alone = hodges_lehmann(d)
    assert found.value == alone.value
    tolerance = 0.0 if blocks <= 16 else 0.05
    assert (found.low, found.high) == pytest.approx((alone.low, alone.high), abs=tolerance)


@pytest.mark.parametrize("blocks", [8, 12, 24])
def test_intervals_for_all_pairs_of_four_variants_hold_together(blocks: int) -> None:
    """300 experiments: the 99 % bound of a true 5 % is 24. Of six correlated pairs Bonferroni would use half of it."""
    rng = np.random.default_rng(blocks)
    first, second = np.triu_indices(4, 1)
    misses = 0
    for seed in range(300):
        values = rng.standard_t(4, (4, blocks))
        found = simultaneous(values[second] - values[first], seed=seed)
        misses += any(one.low > 0 or one.high < 0 for one in found)
    assert 4 <= misses <= 24


def test_eight_blocks_show_a_large_effect_among_many_even_at_a_strict_level() -> None:
    rng = np.random.default_rng(1)
    d = rng.normal(0, 0.01, (10, 8))
    d[3] += 0.2
    found = simultaneous(d, level=0.996, seed=1)
    assert [one.low > 0 or one.high < 0 for one in found] == [at == 3 for at in range(10)]


def test_too_few_blocks_bound_nothing() -> None:
    for blocks in (1, 5):
        (one,) = simultaneous(np.ones((1, blocks)) * np.arange(1, blocks + 1), seed=1)
        assert (one.low, one.high) == (-math.inf, math.inf)
    lonely = shift_function(*arms(5, 1000, 11), grid=(0.5,), seed=1).shifts[0]
    assert (lonely.low, lonely.high, lonely.moved) == (None, None, False)
    assert math.isinf(lonely.smallest)
    for broken in (np.empty((0, 4)), np.empty((2, 0)), np.array([[1.0, math.nan]])):
        with pytest.raises(ValueError, match="at least one"):
            simultaneous(broken, seed=1)
