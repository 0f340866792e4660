"""What explanations derive, against the simulator on members that serve one read at a time."""

from __future__ import annotations

import pytest

from iodelta.parts.mirrors.catalogue import policies
from iodelta.parts.mirrors.explain import EXPLAINED, Array, Explanation, explain
from iodelta.parts.mirrors.model import GIB, MIB, Curve, Empirical, Layout, Member, Run, Traits, Workload, World
from iodelta.parts.mirrors.simulate import Outcome, simulate

PAIR = (900.0, 300.0)
THREE = (900.0, 410.0, 130.0)


def simulated(
    policy: str,
    rates: tuple[float, ...],
    iodepth: int,
    *,
    rotational: bool = True,
    weighted: bool = False,
    random: bool = True,
    size: int = 256 * GIB,
) -> Outcome:
    """Reads of 64 KiB; ``weighted`` gives each member an operator's weight like its rate."""
    members = tuple(
        Member(
            Traits(devid, rotational, weight=round(rate / 10) if weighted else 1),
            256 * GIB,
            empirical=Empirical(Curve((1,), (1e9 / rate,))),
        )
        for devid, rate in enumerate(rates, 1)
    )
    load = Workload(random, 64 * 1024, iodepth, size, 1, (1000,))
    return simulate([World(1, members, Layout(), (Run(policy, load, 60.0, ramp=5.0, trace=0.01),))])[0][0]


def explained(policy: str, rates: tuple[float, ...], iodepth: int, mechanism: str) -> Explanation:
    array = Array(copies=len(rates), rates=rates, iodepth=iodepth)
    return next(one for one in explain(policy, array) if one.mechanism == mechanism)


def shares(found: Outcome) -> tuple[float, ...]:
    total = sum(member.reads for member in found.members)
    return tuple(member.reads / total for member in found.members)


def in_flight(found: Outcome) -> tuple[float, ...]:
    """Mean of each member."""
    return tuple(sum(member) / len(found.trace) for member in zip(*found.trace, strict=True))


def test_every_policy_of_the_catalogue_is_explained_and_no_other() -> None:
    assert {policy.name for policy in policies()} == set(EXPLAINED)


@pytest.mark.parametrize(
    ("policy", "rates", "iodepth", "mechanism", "number"),
    [
        ("devid", PAIR, 32, "preferred member", "one member"),
        ("devid:2", PAIR, 1, "preferred member", "one member"),
        ("devid:7", PAIR, 1, "preferred member", "one member"),
        ("md-raid10", PAIR[::-1], 1, "first copy", "one member"),
        ("md-raid10", THREE, 32, "nearest head at depth", "sum of all"),
        ("md-raid1", PAIR[::-1], 1, "first copy", "one member"),
        ("md-raid1", THREE, 32, "nearest head at depth", "sum of all"),
        ("hysteresis", PAIR, 32, "margin", "most at this depth"),
        ("md-raid10:far=1", PAIR, 32, "lowest address", "one member"),
        ("zfs", PAIR, 1, "blindness at depth 1", "evenly"),
        ("zfs", THREE, 32, "shortest queue at depth", "sum of all"),
        ("service-time", THREE, 1, "blindness at depth 1", "evenly"),
        ("service-time", THREE, 32, "shortest queue at depth", "sum of all"),
        ("historical-service-time", PAIR, 1, "staleness at depth 1", "serial rate"),
        ("historical-service-time", THREE, 1, "staleness at depth 1", "serial rate"),
        ("historical-service-time", THREE, 32, "service times at depth", "sum of all"),
        ("historical-service-time:threshold=4", PAIR, 1, "blindness at depth 1", "evenly"),
        ("sed", PAIR, 1, "quickest but for exploration", "serial rate"),
        ("sed", (9807.0, 84.0), 1, "quickest but for exploration", "serial rate"),
        ("sed", THREE, 32, "wait counted twice", "most at this depth"),
        ("sed", (78_000.0, 200.0), 32, "exploration", "bound"),
    ],
)
def test_a_rate_that_is_derived_is_the_simulated_one(
    policy: str, rates: tuple[float, ...], iodepth: int, mechanism: str, number: str
) -> None:
    told = explained(policy, rates, iodepth, mechanism).numbers[number]
    assert simulated(policy, rates, iodepth).iops == pytest.approx(told, rel=0.02)


@pytest.mark.parametrize(
    ("policy", "mechanism"),
    [("historical-service-time", "service times at depth"), ("sed", "wait counted twice")],
)
@pytest.mark.parametrize("rates", [PAIR, THREE])
def test_members_have_in_flight_what_is_derived(policy: str, mechanism: str, rates: tuple[float, ...]) -> None:
    numbers = explained(policy, rates, 32, mechanism).numbers
    told = [numbers[f"in flight on rank {rank}"] for rank in range(len(rates))]
    assert in_flight(simulated(policy, rates, 32)) == pytest.approx(told, abs=1.0)


def test_the_shares_of_the_first_to_become_stale_are_the_simulated_ones() -> None:
    numbers = explained("historical-service-time", THREE, 1, "staleness at depth 1").numbers
    told = [numbers[f"share of rank {rank}"] for rank in range(3)]
    assert shares(simulated("historical-service-time", THREE, 1)) == pytest.approx(told, abs=0.01)


def test_a_stale_member_is_probed_even_where_the_quick_one_has_room() -> None:
    least = explained("historical-service-time", PAIR, 2, "probe of the stale").numbers["least of the slowest"]
    assert least == pytest.approx(90)
    assert 900 + least <= simulated("historical-service-time", PAIR, 2).iops <= 900 + 1.15 * least


@pytest.mark.parametrize("policy", ["md-raid1", "md-raid10"])
def test_the_queue_of_md_piles_up_on_the_slowest(policy: str) -> None:
    found = simulated(policy, PAIR, 32)
    assert in_flight(found)[1] > 30
    longest = explained(policy, PAIR, 32, "nearest head at depth").numbers["seconds on the slowest"]
    assert found.read.max / 1e9 == pytest.approx(longest, rel=0.01)


@pytest.mark.parametrize(("rates", "alone"), [(PAIR, 3), (THREE, 9)])
def test_the_lightest_member_is_not_read_up_to_the_depth_that_is_derived(rates: tuple[float, ...], alone: int) -> None:
    told = explained("service-time", rates, alone, "operator's weights").numbers["in flight without the slowest"]
    assert told == alone
    assert shares(simulated("service-time", rates, alone, weighted=True))[-1] == 0
    assert shares(simulated("service-time", rates, alone + 1, weighted=True))[-1] > 0


@pytest.mark.parametrize("rotational", [True, False])
def test_equally_loaded_members_of_zfs_take_turns_by_offset(rotational: bool) -> None:
    unit = round(explained("zfs", PAIR, 1, "ties by offset").numbers["bytes of a turn"])
    assert unit == 2 * MIB
    assert shares(simulated("zfs", PAIR, 1, rotational=rotational, size=unit)) == (1, 0)
    assert shares(simulated("zfs", PAIR, 1, rotational=rotational))[0] == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("rotational", "kind"), [(True, "seek of a spinning member"), (False, "seek of flash")])
def test_a_stream_on_zfs_stays_up_to_the_depth_that_is_derived(rotational: bool, kind: str) -> None:
    seek = round(explained("zfs", PAIR, 1, "streams stay").numbers[kind])
    assert max(shares(simulated("zfs", PAIR, seek, rotational=rotational, random=False))) == 1
    assert max(shares(simulated("zfs", PAIR, seek + 1, rotational=rotational, random=False))) < 1


def test_a_stream_on_md_raid1_is_one_members_at_any_depth() -> None:
    told = explained("md-raid1", PAIR, 32, "streams stay").numbers["one member"]
    assert simulated("md-raid1", PAIR, 32, random=False).iops == pytest.approx(told, rel=0.01)


@pytest.mark.parametrize(("rotational", "kind"), [(True, "depth on spinning members"), (False, "depth on flash")])
def test_the_choice_of_the_pid_is_left_at_the_depth_that_is_derived(rotational: bool, kind: str) -> None:
    depth = round(explained("hysteresis", PAIR, 1, "margin").numbers[kind])
    assert shares(simulated("hysteresis", PAIR, depth - 1, rotational=rotational)) == (1, 0)
    assert shares(simulated("hysteresis", PAIR, depth, rotational=rotational))[1] > 0


@pytest.mark.parametrize(
    "rates", [PAIR, THREE, (9807.0, 84.0), (78_000.0, 200.0, 200.0), (2000.0, 1000.0, 500.0, 250.0)]
)
@pytest.mark.parametrize("iodepth", [2, 3, 8])
def test_the_range_of_sed_at_depth_holds_what_the_simulator_does(rates: tuple[float, ...], iodepth: int) -> None:
    numbers = explained("sed", rates, iodepth, "wait counted twice").numbers
    assert (
        0.98 * numbers["least at this depth"]
        < simulated("sed", rates, iodepth).iops
        < 1.02 * numbers["most at this depth"]
    )
