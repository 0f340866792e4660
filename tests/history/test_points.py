"""Points of a night are means of logarithms over blocks; their keys say what is comparable and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from iodelta.experiment import Experiment, parse
from iodelta.history.points import Key, facts_of, key_of, mean_and_error, points_of
from iodelta.lab.plan import make_plan
from iodelta.trial import Direction, Latency, Quantity, Trial
from iodelta.verdict import metric

TEXT = """
[workload]
rw = "randread"
bs = "4k"
iodepth = {depth}
[variant.old]
role = "reference"
kernel = "6.1"
[variant.new]
kernel = "6.12"
[design]
metrics = ["read.iops", "read.lat.mean"]
"""


def experiment(depth: object = 4, more: str = "") -> Experiment:
    """Two kernels, one of them the reference."""
    return parse(TEXT.format(depth=depth) + more)


def trial(number: int, cell: str, variant: str, block: int, rate: float) -> Trial:
    """Random reads at ``rate``, one in flight."""
    mean = Quantity.exact(1e9 / rate, "ns")
    latency = Latency(1000, mean, mean, mean, mean)
    rates = Quantity.exact(rate, "IOPS"), Quantity.exact(4096 * rate, "B/s")
    done = Direction("read", 1000, 4096000, 1000, *rates, lat=latency, clat=latency)
    return Trial(number, cell, variant, block, number % 2, 1, float(number), 1.0, (done,))


def test_a_point_is_the_mean_of_logarithms_and_of_ratios_in_the_same_blocks() -> None:
    plan = make_plan(experiment())
    cell = plan.experiment.cells[0].name
    rng = np.random.default_rng(1)
    session = rng.normal(0.0, 0.1, 12)
    old, new = (1000 * np.exp(session + rng.normal(0.0, 0.01, 12)) for _ in range(2))
    new *= 0.95
    trials = [trial(2 * n, cell, "old", n, old[n]) for n in range(12)]
    trials += [trial(2 * n + 1, cell, "new", n, new[n]) for n in range(12)]
    points, left_out = points_of(plan, trials, "stor3", "block")
    assert left_out == {}
    by = {(point.variant, point.key.metric): point for point in points}
    assert set(by) == {(v, m) for v in ("old", "new") for m in ("read.iops", "read.lat.mean")}
    assert by["new", "read.iops"].y == pytest.approx(np.mean(np.log(new)))
    for name in ("read.iops", "read.lat.mean"):  # fewer IOPS and longer latencies are both worse
        assert by["new", name].r == pytest.approx(np.mean(np.log(old) - np.log(new)))
        assert by["new", name].r_se == pytest.approx(np.std(np.log(old / new), ddof=1) / np.sqrt(12), rel=1e-6)
    assert by["old", "read.iops"].r is None
    assert by["old", "read.iops"].key.role == "reference"


def test_a_cell_without_blocks_or_without_io_has_no_point_and_says_why() -> None:
    plan = make_plan(experiment())
    cell = plan.experiment.cells[0].name
    points, left_out = points_of(plan, [trial(1, cell, "old", 0, 1000.0)], "stor3", "block")
    assert points == ()
    assert set(left_out.values()) == {"fewer than two blocks"}


def test_neighbouring_blocks_that_resemble_each_other_widen_the_error() -> None:
    rng = np.random.default_rng(3)
    slow = np.repeat(rng.normal(0.0, 0.01, 8), 8)
    _, error, lag1 = mean_and_error(slow)
    assert lag1 > 0.5
    assert error > 2.0 * np.std(slow, ddof=1) / 8


def of(one: Experiment, variant: str = "new", machine: str = "stor3") -> Key:
    """The key of its first cell's IOPS."""
    return key_of(one, one.cells[0], one.variant(variant), metric("read.iops"), machine, "block")


def test_names_seeds_lengths_and_the_kernel_are_not_in_a_key() -> None:
    first = of(experiment())
    renamed = parse(TEXT.format(depth=4).replace("variant.new", "variant.tonight").replace("6.12", "6.13"))
    assert of(renamed, "tonight") == first
    assert of(experiment(more='seed = 7\ntrial = "9s"\nblocks = 40\n')) == first
    spelt = parse(TEXT.format(depth=4).replace("rw =", "readwrite =").replace("bs =", "blocksize ="))
    assert of(spelt) == first


def test_what_changes_a_result_is_in_its_key() -> None:
    first = of(experiment())
    depth, knob = experiment(8), experiment(more='[condition.c]\n"block.scheduler" = "none"\n')
    others = [of(depth), of(knob), of(experiment(), "old"), of(experiment(), machine="stor4")]
    assert len({first.number, *(other.number for other in others)}) == 5


def test_a_new_disk_firmware_or_fio_begins_an_epoch_and_a_new_kernel_does_not() -> None:
    kernel = {"release": "6.1", "config.CONFIG_HZ": "250"}
    disk = {"model": "A", "rev": "1"}
    machine = {"host": {"bios": "1"}, "kernel": kernel, "fio": {"version": "3.33"}, "devices": [disk]}
    first = facts_of(machine)
    assert facts_of({**machine, "kernel": {"release": "6.2", "config.CONFIG_HZ": "250"}}) == first
    others: list[dict[str, object]] = [
        {"devices": [{"model": "A", "rev": "2"}]},
        {"host": {"bios": "2"}},
        {"fio": {"version": "3.36"}},
        {"kernel": {"config.CONFIG_HZ": "1000"}},
    ]
    assert all(facts_of({**machine, **other}) != first for other in others)
