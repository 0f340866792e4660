"""From trials to the numbers that are compared: metrics, percentiles that are refused, blocks that are incomplete."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from simulate import latency, run, trial

from iodelta.errors import RequestError
from iodelta.trial import Histogram, bin_index
from iodelta.verdict import Rules, judge_all, metric, metrics_for, series_of, value_of
from iodelta.verdict.metrics import resolution_of, weight_of
from iodelta.verdict.pared import pared


def test_default_metrics_are_rate_mean_latency_and_p99_per_direction() -> None:
    assert [m.name for m in metrics_for(["read"])] == ["read.iops", "read.lat.mean", "read.lat.p99"]
    assert metrics_for(["write"], block_size=65536)[0].name == "write.bandwidth"
    both = metrics_for([trial(0, "old", 0, 1e5), trial(1, "old", 0, 1e5, kind="write")])
    assert [m.name for m in both][3:] == ["write.iops", "write.lat.mean", "write.lat.p99"]
    assert {m.name: m.better for m in both}["write.lat.p99"] == "lower"


@pytest.mark.parametrize("name", ["iops", "read", "read.iop", "flush.iops", "read.lat", "read.lat.p100", "read.lat.px"])
def test_an_unknown_metric_is_a_wrong_request(name: str) -> None:
    with pytest.raises(RequestError, match="unknown metric"):
        metric(name)


def test_values_are_read_from_the_trial() -> None:
    one = trial(0, "old", 0, 1e5)
    found = {name: value_of(one, metric(f"read.{name}"))[0] for name in ("iops", "bandwidth", "lat.mean", "lat.p99")}
    assert found == pytest.approx({"iops": 1e5, "bandwidth": 4.096e8, "lat.mean": 320e3, "lat.p99": 1.28e6})
    assert math.isnan(value_of(one, metric("write.iops"))[0])
    assert math.isnan(value_of(one, metric("read.clat.mean"))[0])


def test_syncs_have_latencies_and_no_rate_of_their_own() -> None:
    one = msgspec.structs.replace(trial(0, "old", 0, 1e4, kind="write"), sync=latency(450e3, 20_000))
    assert [m.name for m in metrics_for([one])][3:] == ["sync.lat.mean", "sync.lat.p99"]
    assert value_of(one, metric("sync.lat.mean"))[0] == 450e3
    assert value_of(one, metric("sync.lat.p99"))[0] == one.sync.percentiles[99.0].value  # type: ignore[union-attr]
    assert weight_of(one, metric("sync.lat.mean")) == 20_000
    for name in ("sync.iops", "sync.bandwidth", "sync.clat.mean", "sync.jitter"):
        with pytest.raises(RequestError, match="unknown metric"):
            metric(name)


def test_a_trial_that_hung_before_its_first_sync_has_the_worst_latency_and_one_without_syncs_none() -> None:
    hung = trial(0, "old", 0, 0.0, kind="write", ios=0)
    assert value_of(hung, metric("sync.lat.mean"))[0] == math.inf
    assert math.isnan(value_of(trial(0, "old", 0, 1e4, kind="write"), metric("sync.lat.mean"))[0])


def test_few_syncs_bear_no_p99_however_many_writes_there_were() -> None:
    base = trial(0, "old", 0, 1e5, kind="write", ios=1_000_000)
    one = msgspec.structs.replace(base, sync=latency(450e3, 9_999))
    value, finding = value_of(one, metric("sync.lat.p99"))
    assert math.isnan(value)
    assert finding is not None


def test_a_slower_sync_is_a_regression_where_writes_are_the_same() -> None:
    rng = np.random.default_rng(3)
    trials = []
    for one in run(blocks=30):
        mean = 1e6 * (1.1 if one.variant == "new" else 1.0) * float(np.exp(rng.normal(0, 0.01)))
        trials.append(msgspec.structs.replace(one, sync=latency(mean, 20_000)))
    metrics = metrics_for(trials)
    judged = judge_all(trials, Rules(metrics=metrics, looks=(30,)), baseline="old").verdicts
    words = {verdict.metric.name: verdict.word for verdict in judged}
    assert words["sync.lat.mean"] == "regression"
    assert words["read.iops"] != "regression"


def test_percentiles_come_from_the_histogram_where_it_was_kept() -> None:
    counts = Histogram.from_counts({bin_index(100_000): 19_800, bin_index(900_000): 200})
    lat = msgspec.structs.replace(latency(1e5, 20_000), histogram=counts)
    base = trial(0, "old", 0, 1e5)
    one = msgspec.structs.replace(base, directions=(msgspec.structs.replace(base.directions[0], lat=lat),))
    assert value_of(one, metric("read.lat.p99"))[0] == pytest.approx(counts.quantile(0.99))


FILLED = some.dictionaries(some.integers(0, 1855), some.integers(1, 10**6), min_size=1, max_size=60)
PERCENTS = some.lists(some.sampled_from((1.0, 50.0, 90.0, 99.0, 99.9, 99.99)), unique=True, max_size=3)


@given(FILLED, FILLED, PERCENTS)
def test_a_pared_trial_has_every_value_that_is_asked_for_to_the_last_bit(
    filled: dict[int, int], sunk: dict[int, int], percents: list[float]
) -> None:
    base = trial(0, "old", 0, 1e5, kind="write", ios=10**7)
    lats = [
        msgspec.structs.replace(latency(1e5, 10**7), histogram=Histogram.from_counts(bins)) for bins in (filled, sunk)
    ]
    write = msgspec.structs.replace(base.directions[0], lat=lats[0], clat=lats[1])
    whole = msgspec.structs.replace(base, directions=(write,), sync=lats[1], sys_cpu=50.0)
    names = [f"{place}.p{percent:g}" for place in ("write.lat", "write.clat", "sync.lat") for percent in percents]
    asked = [metric(name) for name in (*names, "write.iops", "write.lat.mean", "sync.lat.mean", "cpu.system")]
    kept = pared(whole, asked)
    for wanted in asked:
        assert value_of(kept, wanted) == value_of(whole, wanted), wanted.name
        assert resolution_of(kept, wanted) == resolution_of(whole, wanted), wanted.name
        assert weight_of(kept, wanted) == weight_of(whole, wanted), wanted.name
    clat = kept.directions[0].clat
    assert (clat is None) == (not percents)
    for latency_ in filter(None, (kept.directions[0].lat, clat, kept.sync)):
        assert latency_.histogram is not None
        assert len(latency_.histogram.counts) <= 2 * len(percents) + 1


def test_jitter_is_the_spread_of_seconds() -> None:
    steady = trial(0, "old", 0, 1e5, series={"read.iops": (100.0, 110.0, 90.0, 100.0)})
    assert value_of(steady, metric("read.jitter"))[0] == pytest.approx(np.std(np.log([100, 110, 90, 100]), ddof=1))
    stalled = trial(0, "old", 0, 1e5, series={"read.iops": (100.0, 0.0, 90.0, 100.0)})
    value, finding = value_of(stalled, metric("read.jitter"))
    assert math.isnan(value)
    assert finding is not None
    assert value_of(trial(0, "old", 0, 1e5), metric("read.jitter"))[1] is None


def test_blocks_pair_the_two_variants_in_run_order() -> None:
    found = series_of(run(-0.02, blocks=6), metric("read.iops"), "old", "new")
    assert found.blocks == (0, 1, 2, 3, 4, 5)
    assert found.incomplete == 0
    for first, old_at, new_at in zip(found.baseline_first, found.baseline_at, found.variant_at, strict=True):
        assert first == (old_at < new_at)


def test_a_block_without_one_of_the_variants_is_left_out_and_counted() -> None:
    trials = [t for t in run(blocks=10) if not (t.block in (2, 3, 5, 6, 7) and t.variant == "new")]
    found = series_of(trials, metric("read.iops"), "old", "new")
    assert found.blocks == (0, 1, 4, 8, 9)
    assert found.incomplete == 5
    assert [f.rule for f in found.findings] == ["verdict.incomplete-blocks"]
    assert "new fails more often" in found.findings[0].explanation


def test_a_repeated_block_counts_with_its_last_attempt() -> None:
    trials = run(blocks=4)
    again = [trial(100 + i, v, 2, 5e4, position=i, attempt=1) for i, v in enumerate(("new", "old"))]
    found = series_of([*trials, *again], metric("read.iops"), "old", "new")
    assert found.blocks == (0, 1, 3, 2)
    assert found.baseline_values[-1] == 5e4


def test_several_runs_of_a_boot_are_their_geometric_mean() -> None:
    trials = [trial(i, v, 0, iops) for i, (v, iops) in enumerate([("old", 1e5), ("old", 4e5), ("new", 9e5)])]
    found = series_of(trials, metric("read.iops"), "old", "new")
    assert found.baseline_values == pytest.approx((2e5,))
    assert found.baseline_at == (1,)


def test_a_percentile_is_refused_for_all_trials_or_none_because_slow_ones_have_fewer_ios() -> None:
    trials = [
        trial(i, v, b, 1e5, ios=8_000 if b % 3 == 0 else 20_000)
        for b in range(9)
        for i, v in ((2 * b, "old"), (2 * b + 1, "new"))
    ]
    found = series_of(trials, metric("read.lat.p99"), "old", "new")
    assert found.blocks == tuple(range(9))
    assert found.refused is None
