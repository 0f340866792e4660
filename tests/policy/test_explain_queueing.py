"""Every number and sentence of an explanation, against a second simulator that is written in plain Python."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from iodelta.parts.mirrors.explain import EXPLAINED, Array, Explanation, explain

from .queueing import LENGTH, POLICIES, Result, simulate, zfs

RATES = (
    (900.0, 300.0),
    (500.0, 500.0),
    (900.0, 410.0, 130.0),
    (130.0, 410.0, 900.0),
    (500.0, 500.0, 500.0),
    (900.0, 130.0, 700.0, 410.0),
)
LOADS = ((1, 1), (2, 1), (3, 1), (9, 1), (10, 1), (32, 1), (64, 1), (1, 2), (2, 4), (3, 8))
"""(iodepth, jobs)"""

FLASH_OR_STREAM = frozenset({"streams stay", "operator's weights"})
"""Mechanisms about another load than random reads of alike, spinning members."""


def close(value: float, told: float, within: float = 0.04) -> bool:
    return abs(value / told - 1) <= within


Check = Callable[[float, Result, Array], bool]
CHECKS: dict[str, Check] = {
    "serial rate": lambda told, found, array: close(found.rate, told, 0.06),
    "sum of all": lambda told, found, array: close(found.rate, told),
    "most at this depth": lambda told, found, array: found.rate <= told * 1.02,
    "bound": lambda told, found, array: found.rate <= told * 1.03,
    "one member": lambda told, found, array: close(found.rate, told) and max(found.shares) == 1,
    "first members": lambda told, found, array: close(found.rate, told),
    "least": lambda told, found, array: found.rate >= told * 0.98,
    "in flight on the last": lambda told, found, array: close(found.in_flight[-1], told, 0.12),
    "least of the slowest": lambda told, found, array: slowest_share(found, array) * found.rate >= told * 0.95,
    "quickest": lambda told, found, array: told == max(array.rates),
    "evenly": lambda told, found, array: close(told, array.copies / sum(1 / rate for rate in array.rates)),
    "active on each": lambda told, found, array: min(found.in_flight) >= told * 0.98,
    "members at work": lambda told, found, array: len(set(array.rates)) > 1 or close(found.rate, told * array.rates[0]),
}
"""By the name of a number: whether it holds for what was simulated."""


def slowest_share(found: Result, array: Array) -> float:
    return found.shares[array.rates.index(min(array.rates))]


def wrong(told: Explanation, found: Result, array: Array) -> list[str]:
    """The numbers that do not hold, and sentences that no number stands behind."""
    bad = [name for name, value in told.numbers.items() if name in CHECKS and not CHECKS[name](value, found, array)]
    for rank in range(array.copies):
        part = told.numbers.get(f"share of rank {rank}")
        if part is not None and abs(found.shares[rank] - part) > 0.03:
            bad.append(f"share of rank {rank}")
        flying = told.numbers.get(f"in flight on rank {rank}")
        if flying is not None and flying >= 1 and abs(found.in_flight[rank] - flying) > 1:
            bad.append(f"in flight on rank {rank}")
    if "seconds on the slowest" in told.numbers and len(set(array.rates)) > 1:
        bad += [] if close(found.longest, told.numbers["seconds on the slowest"], 0.15) else ["seconds on the slowest"]
    if "add up" in told.prediction and "sum of all" not in told.numbers and not close(found.rate, sum(array.rates)):
        bad.append("the rates add up")
    if "stand idle" in told.prediction and max(found.shares) < 1:
        bad.append("the others stand idle")
    return bad


def arrays() -> list[Array]:
    return [
        Array(copies=len(rates), rates=rates, length=LENGTH, iodepth=depth, jobs=count)
        for rates in RATES
        for depth, count in LOADS
    ]


def simulated(policy: str, array: Array, first_pid: int = 0) -> Result:
    unsteady = "bcachefs" in policy or policy in ("sed", "random")
    return simulate(
        POLICIES[policy],
        array.rates,
        depth=array.iodepth,
        jobs=array.jobs,
        first_pid=first_pid,
        reads=12_000 if unsteady else 2500,
    )


def test_every_policy_has_a_second_version() -> None:
    assert {policy.partition(":")[0] for policy in POLICIES} == set(EXPLAINED)


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy not in ("pid", "hysteresis", "latency-rr")])
def test_what_is_explained_is_what_a_second_simulator_does(policy: str) -> None:
    for array in arrays():
        found = simulated(policy, array)
        for told in explain(policy, array):
            if told.mechanism not in FLASH_OR_STREAM:
                assert wrong(told, found, array) == [], f"{array}: {told.prediction}; {found}"


@pytest.mark.parametrize("policy", ["pid", "hysteresis"])
def test_jobs_with_pids_in_a_row_do_what_is_explained_whatever_the_first_pid(policy: str) -> None:
    for array in arrays():
        found = [simulated(policy, array, first) for first in range(array.copies)]
        for told in explain(policy, array):
            if told.mechanism == "pid lottery":
                listed = [
                    (float(rate.replace(",", "")), float(odds))
                    for rate, odds in re.findall(r"([\d,]+)/s with ([\d.]+) %", told.prediction)
                ]
                assert sum(odds for _, odds in listed) == pytest.approx(100, abs=0.3)
                for one in found:
                    assert any(close(one.rate, rate) for rate, _ in listed), f"{array}: {told.prediction}; {one}"
                assert close(min(one.rate for one in found), told.numbers["slowest outcome"])
                assert close(max(one.rate for one in found), told.numbers["quickest outcome"])
            else:
                whole = array.flying >= told.numbers["in flight for all spinning members"]
                assert [close(one.rate, sum(array.rates)) for one in found] == [whole] * array.copies, (
                    f"{array}: {found}"
                )


def test_two_jobs_split_two_mirrors_and_only_jobs_started_apart_meet_by_chance() -> None:
    """fio forks its jobs in a row; here the pids are read from fio itself in test_pids_of_fio."""
    (told,) = explain("pid", Array(rates=(900.0, 300.0), jobs=2))
    assert told.numbers["odds of one mirror for all jobs"] == 0
    assert told.numbers["odds of one mirror for jobs started apart"] == 0.5
    assert "1,200/s with 100 %" in told.prediction
    (one,) = explain("pid", Array(rates=(900.0, 300.0)))
    assert "300/s with 50 %, 900/s with 50 %" in one.prediction


def test_of_three_and_four_equal_copies_bcachefs_reads_the_last_half_of_the_time() -> None:
    for copies, parts in ((3, (0.25, 0.25, 0.5)), (4, (0.125, 0.125, 0.25, 0.5))):
        array = Array(copies=copies)
        (told,) = explain("bcachefs", array)
        found = simulate(POLICIES["bcachefs"], [500.0] * copies, reads=20_000)
        for rank, part in enumerate(parts):
            assert told.numbers[f"share of equals, rank {rank}"] == pytest.approx(part, abs=0.01)
            assert found.shares[rank] == pytest.approx(part, abs=0.02)
    (two,) = explain("bcachefs", Array())
    assert two.numbers == {"share of equals, rank 0": 0.5, "share of equals, rank 1": 0.5}


@pytest.mark.parametrize("copies", [2, 3, 4])
@pytest.mark.parametrize("depth", [1, 2, 16, 32, 33, 64, 100])
def test_small_reads_in_turns_of_256k_keep_as_many_members_at_work_as_is_explained(copies: int, depth: int) -> None:
    (told, _) = explain("round-robin", Array(copies=copies, rates=(500.0,) * copies, length=4096, iodepth=depth))
    found = simulate(POLICIES["round-robin"], [500.0] * copies, depth=depth, length=4096, reads=64 * 60 * copies)
    at_work = found.rate / 500
    assert told.numbers["in flight for all members"] == 32 * (copies - 1) + 1
    assert (at_work > copies - 0.05) == (depth >= told.numbers["in flight for all members"])
    if "members at work" in told.numbers:
        assert close(at_work, told.numbers["members at work"])
    else:
        assert at_work > 1.98
    assert "mostly one mirror" not in told.prediction


@pytest.mark.parametrize("depth", [2, 3, 4, 5, 6])
def test_a_stream_on_zfs_has_a_second_stable_state_at_the_depths_that_are_told(depth: int) -> None:
    told = next(
        one for one in explain("zfs", Array(rates=(500.0, 500.0), iodepth=depth)) if one.mechanism == "streams stay"
    )
    far, near = (
        simulate(POLICIES["zfs"], (500.0, 500.0), depth=depth, stream=True, near=near, start=3 << 20)
        for near in (False, True)
    )
    second = max(far.shares) == 1 and max(near.shares) < 1
    assert ("two stable states" in told.prediction) == second == (depth in (4, 5))
    if second:
        assert close(near.rate, 1000)
        assert "1,000/s" in told.prediction


def test_more_in_flight_than_zfs_sends_at_once_piles_up_on_the_slowest() -> None:
    rates = (900.0, 300.0)
    named = {depth: [one.mechanism for one in explain("zfs", Array(rates=rates, iodepth=depth))] for depth in (20, 21)}
    assert "ten active reads" not in named[20]
    assert "ten active reads" in named[21]
    told = next(one for one in explain("zfs", Array(rates=rates, iodepth=64)) if one.mechanism == "ten active reads")
    found, seen = (simulate(zfs(most), rates, depth=64) for most in (10, 1000))
    assert found.in_flight[1] == pytest.approx(told.numbers["on the slowest"], abs=1)
    assert seen.in_flight[1] == pytest.approx(32, abs=1), "without the limit queues would be even"


def test_latency_rr_of_two_mirrors_is_what_is_explained_only_one_at_a_time() -> None:
    for rates, rule in (((900.0, 800.0), "round-robin"), ((900.0, 300.0), "latency")):
        (told,) = [one for one in explain("latency-rr", Array(rates=rates)) if one.mechanism == "two mirrors"]
        found = simulate(POLICIES["latency-rr"], rates, reads=8000)
        assert f"mostly {rule}" in told.prediction
        assert close(found.shares[0], 0.5 if rule == "round-robin" else 1.0, 0.05)
    (deep,) = [
        one for one in explain("latency-rr", Array(rates=(900.0, 700.0), iodepth=8)) if one.mechanism == "two mirrors"
    ]
    found = simulate(POLICIES["latency-rr"], (900.0, 700.0), depth=8, reads=8000)
    assert found.shares[1] > 0.3, "latency alone would leave the second out"
    assert "now one, now the other" in deep.prediction
