"""The boot is the unit: how many runs it is worth, and what they are together."""

from __future__ import annotations

import pytest

from iodelta.errors import RequestError
from iodelta.experiment import parse
from iodelta.lab.boots import PILOT, Scatter, look, settings_of, within_boot
from iodelta.lab.plan import BOOT, REBOOT, make_plan
from iodelta.lab.setup import survey
from iodelta.machine import LocalMachine
from iodelta.report.stories.plan import asked as story_of_plan
from iodelta.study.words import duration
from iodelta.trial import Direction, Finding, Histogram, Latency, Quantity
from iodelta.workload.model import FioResult
from iodelta.workload.pooled import pooled


def result(ios: int, seconds: int, latency: float) -> FioResult:
    exact = Quantity.exact
    spread = Histogram.from_counts({700: ios})
    own = Latency(ios, exact(latency, "ns"), exact(10.0, "ns"), exact(1.0, "ns"), exact(9e6, "ns"), {}, spread)
    rate = ios / seconds
    one = Direction("read", ios, 4096 * ios, 1000 * seconds, exact(rate, "1/s"), exact(4096 * rate, "B/s"), lat=own)
    return FioResult(directions=(one,), usr_cpu=10.0, sys_cpu=20.0, series={"read.iops": (rate,) * seconds})


def test_runs_of_a_boot_are_all_their_ios_over_all_their_time() -> None:
    together = pooled([result(1000, 2, 100.0), result(5000, 2, 200.0)])
    (direction,) = together.directions
    assert (direction.ios, direction.runtime_ms) == (6000, 4000)
    assert direction.iops.value == pytest.approx(1500)
    assert direction.bandwidth.value == pytest.approx(1500 * 4096)
    assert direction.lat is not None
    assert direction.lat.mean.value == pytest.approx((1000 * 100 + 5000 * 200) / 6000)
    assert direction.lat.histogram is not None
    assert direction.lat.histogram.total == 6000
    assert together.counters == {"run.1.iops": 500.0, "run.2.iops": 2500.0}
    assert len(together.series["read.iops"]) == 4


def test_one_run_that_failed_spoils_its_boot() -> None:
    failed = FioResult(findings=(Finding("fio.failed", "hard", "x", "y"),))
    assert not pooled([result(1000, 2, 100.0), failed]).usable


def test_the_pilot_makes_two_runs_and_a_choice_holds_from_a_blocks_first_boot_on() -> None:
    scatter = Scatter(["a", "b"])
    for number in range(PILOT):
        assert scatter.runs("cell", first=True) == 2
        for variant in ("a", "b"):
            scatter.add("cell", variant, [1000 + number, 1000.1 + number], 10, 5)
    assert scatter.runs("cell", first=False) == 2
    assert scatter.runs("cell", first=True) == 1
    assert scatter.runs("cell", first=False) == 1
    assert scatter.runs("another cell", first=True) == 2


def test_what_a_boot_sets_is_no_knob_within_it() -> None:
    variants = "[variant.old]\nkernel = '6.1'\n'block.scheduler' = 'none'\n[variant.new]\nkernel = '6.12'\n"
    asked = parse(f"[workload]\nrw = 'randread'\n{variants}")
    assert within_boot(asked).knob_names() == ("block.scheduler",)
    assert settings_of(asked, asked.variant("old")) == {"kernel": "6.1"}
    assert make_plan(asked).trial_seconds > 2 * (asked.design.trial + asked.design.ramp)


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ("vm", f"({duration(BOOT)} of it for the boot of its guest, assumed: the first round measures it)"),
        ("ssh:host", f"({duration(REBOOT)} of it for the reboot of its host, assumed: the first round measures it)"),
    ],
)
def test_a_plan_says_what_it_assumes_of_a_boot(machine: str, said: str) -> None:
    """A run of 3 blocks took 6 minutes, on a busy machine, where the plan said at most 101 s: it is the budget."""
    variants = "[variant.old]\nkernel = '6.1'\n[variant.new]\nkernel = '6.12'\n"
    design = "[design]\nblocks = 6\nbudget = '7h'\n"
    asked = parse(f"machine = '{machine}'\n[workload]\nrw = 'randread'\n{variants}{design}")
    (time,) = [item.text for item in story_of_plan(make_plan(asked)) if item.label == "Time"]
    assert said in time
    assert f"at most {duration(7 * 3600)};" in time


def test_kernels_are_of_guests_and_hosts_and_of_no_search() -> None:
    asked = parse("[workload]\nrw = 'randread'\n[variant.old]\n[variant.new]\nkernel = '6.12'\n")
    with pytest.raises(RequestError, match=r"iodelta cannot reboot the machine.*\n.*--machine ssh:HOST"):
        look(LocalMachine(), asked)
    with pytest.raises(RequestError, match="kernel: applies to a whole boot"):
        survey(LocalMachine(), asked)


def test_a_boot_that_serves_several_cells_is_paid_once() -> None:
    scatter = Scatter(["a", "b"])
    for number in range(PILOT):
        for variant in ("a", "b"):
            for cell, cost in (("one", 60.0), ("two", 0.0)):
                rates = [1000 + 7 * number, 1011 + 3 * number]
                scatter.add(cell, variant, rates, cost, 5)
    dear = Scatter(["a", "b"])
    for number in range(PILOT):
        for variant in ("a", "b"):
            dear.add("one", variant, [1000 + 7 * number, 1011 + 3 * number], 60.0, 5)
    assert scatter.runs("one", first=True) <= dear.runs("one", first=True)
    assert scatter.runs("one", first=True) == scatter.runs("two", first=True)
