"""What can be said of a policy before anything is measured, against numbers known from elsewhere."""

from __future__ import annotations

import pytest

from iodelta.errors import RequestError
from iodelta.parts.mirrors.explain import EXPLAINED, Array, Explanation, explain, never_switching, shares

KIB = 1024
UNEQUAL = Array(rates=(900.0, 300.0), iodepth=32)


def one(policy: str, array: Array, mechanism: str) -> Explanation:
    (found,) = [one for one in explain(policy, array) if one.mechanism == mechanism]
    return found


def test_round_robin_of_256k_on_two_mirrors_never_switches_for_multiples_of_512k() -> None:
    assert never_switching(256 * KIB, 2) == (512 * KIB, 1024 * KIB, 2048 * KIB, 4096 * KIB)
    assert never_switching(4 * KIB, 2) == tuple(8 * KIB << shift for shift in range(10))
    assert 1024 * KIB not in never_switching(192 * KIB, 2)


def test_a_unit_of_192k_splits_256k_reads_two_to_one_as_a_published_table_shows() -> None:
    parts = shares(256 * KIB, 192 * KIB, 2)
    assert parts == pytest.approx((2 / 3, 1 / 3))
    published = 2532 / (2532 + 1276)
    assert parts[0] == pytest.approx(published, abs=0.003)


def test_small_reads_go_to_one_mirror_64_times_in_a_row() -> None:
    found = one("round-robin", Array(length=4096, iodepth=32), "round-robin aliasing")
    assert found.numbers["reads in a row"] == 64
    assert found.numbers["members at work"] == pytest.approx(64 / 33)
    assert "one mirror works at a time" in one("round-robin", Array(), "round-robin aliasing").prediction


def test_raid10_cuts_large_reads_so_round_robin_does_switch() -> None:
    whole = one("round-robin", Array(length=1 << 20), "round-robin aliasing")
    cut = one("round-robin", Array(length=1 << 20, raid10=True), "round-robin aliasing")
    assert "every read goes to the same mirror" in whole.prediction
    assert cut.numbers["share of rank 0"] == 0.5


def test_the_pid_lottery_of_one_job_is_900_or_300_and_of_two_jobs_also_both() -> None:
    found = one("pid", UNEQUAL, "pid lottery")
    assert (found.numbers["slowest outcome"], found.numbers["quickest outcome"]) == (300, 900)
    two = one("pid", Array(rates=(900.0, 300.0), jobs=2), "pid lottery")
    assert two.numbers["odds of one mirror for jobs started apart"] == 0.5
    assert "1,200/s with 100 %" in two.prediction


def test_lock_in_lasts_10000_decisions_whatever_time_that_is() -> None:
    found = one("latency", Array(rates=(900.0, 300.0), iops=300.0), "latency lock-in")
    assert found.numbers["seconds"] == pytest.approx(33.3, abs=0.1)
    slow = one("latency:age_limit=500", Array(iops=100.0), "latency lock-in")
    assert slow.numbers["seconds"] == 5
    assert "never" in one("latency", Array(), "latency lock-in").prediction
    assert "does 300 to 900/s" in found.prediction
    equal = one("latency", Array(rates=(900.0, 900.0)), "latency lock-in")
    assert "does 900/s" in equal.prediction


def test_the_convoy_is_bound_by_twice_the_slowest() -> None:
    assert one("round-robin", UNEQUAL, "convoy").numbers == {"bound": 600, "most at this depth": 1200}


def test_queue_is_blind_at_depth_one_and_adds_the_rates_at_depth() -> None:
    assert "tie-break decides" in one("queue", Array(), "blindness at depth 1").prediction
    assert one("queue", UNEQUAL, "shortest queue at depth").numbers["sum of all"] == 1200


def test_latency_rr_on_two_mirrors_is_one_of_two_things() -> None:
    assert "mostly latency" in one("latency-rr", UNEQUAL, "two mirrors").prediction
    near = Array(rates=(900.0, 800.0))
    assert "mostly round-robin" in one("latency-rr", near, "two mirrors").prediction


def test_devid_is_one_member_and_without_a_copy_there_the_first() -> None:
    assert one("devid:2", UNEQUAL, "preferred member").numbers == {"one member": 300, "most at this depth": 1200}
    assert one("devid:7", UNEQUAL, "preferred member").numbers["one member"] == 900


def test_md_raid10_reads_the_first_copy_until_it_is_busy() -> None:
    assert one("md-raid10", Array(rates=(300.0, 900.0)), "first copy").numbers["one member"] == 300
    assert "pile up on the slowest" in one("md-raid10", UNEQUAL, "nearest head at depth").prediction
    assert one("md-raid10:far=1", UNEQUAL, "lowest address").numbers["one member"] == 900


def test_the_lottery_of_the_hysteresis_ends_where_the_queues_are_further_apart_than_its_margin() -> None:
    names = [[one.mechanism for one in explain("hysteresis", Array(iodepth=depth))] for depth in (9, 10)]
    assert names == [["pid lottery", "margin"], ["margin"]]


def test_a_stream_on_zfs_is_one_members_until_its_queue_weighs_as_much_as_a_seek() -> None:
    assert "on spinning or flash members" in one("zfs", Array(), "streams stay").prediction
    assert "on spinning members is one" in one("zfs", Array(iodepth=5), "streams stay").prediction
    assert "is one member's" not in one("zfs", Array(iodepth=6), "streams stay").prediction
    assert "is one member's" in one("zfs:rotating_seek=8", Array(iodepth=6), "streams stay").prediction


def test_exploration_takes_sed_on_disk_and_flash_down_to_the_published_rates() -> None:
    alone = one("sed", Array(rates=(9807.0, 84.0)), "quickest but for exploration")
    assert alone.numbers["serial rate"] == pytest.approx(6224, rel=0.01)
    deep = one("sed", Array(rates=(78_000.0, 200.0), iodepth=32), "exploration")
    assert deep.numbers["bound"] == pytest.approx(40_000)
    assert "at depth the queue is there" in deep.prediction
    assert one("sed", Array(iops=100.0), "exploration").numbers["seconds"] == 2
    assert "is idle" in one("sed:explore_permille=0", UNEQUAL, "exploration").confirm


def test_members_whose_service_times_count_as_equal_are_taken_by_their_queues() -> None:
    found = explain("historical-service-time:threshold=3", UNEQUAL)
    assert found[0].mechanism == "shortest queue at depth"
    assert explain("historical-service-time:threshold=2", UNEQUAL)[0].mechanism == "service times at depth"


def test_every_explanation_names_the_observation_that_would_confirm_it() -> None:
    for policy in EXPLAINED:
        for array in (UNEQUAL, Array(), Array(copies=3, jobs=4, iodepth=8)):
            found = explain(policy, array)
            assert found
            assert all(one.prediction and one.confirm for one in found)


@pytest.mark.parametrize(
    ("policy", "array", "words"),
    [
        ("fastest", Array(), "nothing to explain"),
        ("queue", Array(copies=1), "nothing to choose"),
        ("queue", Array(copies=3, rates=(1.0, 2.0)), "2 rates for 3 copies"),
        ("round-robin:5000", Array(), "multiple of the sector"),
        ("round-robin:many", Array(), "not a valid size"),
        ("latency:age_limit=soon", Array(), "not a number"),
        ("sed:explore_permille=2000", Array(), "2000 of 1000"),
    ],
)
def test_what_cannot_be_explained_is_refused(policy: str, array: Array, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        explain(policy, array)


def test_the_shares_of_equal_members_of_bcachefs_are_said_once_and_those_of_others_after_them() -> None:
    (equal,) = explain("bcachefs", Array(copies=3, rates=(100.0,) * 3))
    assert equal.prediction.count("25 % : 25 % : 50 %") == 1
    (other,) = explain("bcachefs", Array(copies=3, rates=(300.0, 100.0, 100.0)))
    assert "Members of these rates are read 56.2 % : 12.5 % : 31.2 %, one at a time" in other.prediction
