"""What makes a run of fio untrustworthy, one rule at a time; and that a sound run passes all of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from fio_runs import asked, direction, disk, latency, run, sampler
from hypothesis import given
from hypothesis import strategies as st

from iodelta.audit import RULES, audit
from iodelta.ingest import Run, Workload, unknown
from iodelta.trial import Latency, Quantity, bin_edges, bin_index


def rules(*runs: Run) -> list[str]:
    """Rules that fire, hard ones marked with an exclamation mark."""
    return [hit.finding.rule + "!" * (hit.finding.severity == "hard") for hit in audit(runs).hits]


DISK = disk(reads=100_000 + 2 * 30_000, read_sectors=None, write_sectors=None)
ARRAY = (disk("md0", reads=100_000), *(disk(name, reads=50_000, member=True) for name in ("sda", "sdb")))
LARGE = asked(run(direction(3_000, bs=256 << 10, mean_us=10_000), disks=(DISK,)), bs=256 << 10)
LATE = latency(30e6, 30, {50.0: 17112760.320, 99.0: 17112760.320}, longest_us=60e6)
STALL = msgspec.structs.replace(latency(4000, 100_000), max=Quantity.exact(2.5e9, "ns"))
CASES: dict[str, tuple[list[Run], str]] = {
    "a sound run": ([run(disks=(disk(reads=100_000),), samplers=sampler(10_050, 9_000, 11_000))], ""),
    # a stall of 2.5 s at the end of the ramp: its 32 I/Os carry 80 s of latency into a window of 10 s
    "I/Os that began in the ramp": ([run(direction(10_000, lat=STALL), options={"ramp_time": "3s"})], ""),
    "no ramp": ([run(direction(10_000, lat=STALL), options={"ramp_time": "0"})], "little.impossible!"),
    "a paced run": ([run(direction(300, mean_us=150), options={"rate_iops": "300"})], ""),
    "fio's default engine": (
        [asked(run(direction(10_000, mean_us=100), options={"iodepth": "16"}), ioengine=None, iodepth=16)],
        "depth.not-reached depth.ignored",
    ),
    "many incomplete I/Os": ([run(direction(mean_us=3200, dropped=3000))], "run.incomplete-ios!"),
    "an engine without I/O": ([run(directions=(), engine="cpuio")], ""),
    "files only": ([run(directions=(), options={"create_only": "1"})], ""),
    "more than files": ([run(directions=(), options={"create_only": "0"})], "run.no-io!"),
    "buffered, from a cache": (
        [asked(run(disks=(disk(reads=20_000),)), direct=False)],
        "cache.page-cache cache.not-from-device",
    ),
    # read-ahead makes large requests
    "fewer requests, without sectors": (
        [asked(run(disks=(disk(reads=2_000, read_sectors=None, write_sectors=None),)), direct=False)],
        "cache.page-cache",
    ),
    "few requests, without sectors": (
        [asked(run(disks=(disk(reads=20, read_sectors=None, write_sectors=None),)), direct=False)],
        "cache.page-cache cache.not-from-device",
    ),
    "somebody's writes": ([run(disks=(disk(reads=100_000, writes=30_000),))], "device.other-io"),
    # counted in requests alone, what a job of 256 KiB makes of one I/O is nobody else's
    "large I/Os beside small ones": ([run(disks=(DISK,)), LARGE], ""),
    "small I/Os alone": ([run(disks=(DISK,))], "device.other-io"),
    # a ramp is in the counters of the device but not in fio's
    "a ramp": ([run(disks=(disk(reads=150_000),), options={"ramp_time": "5s"})], ""),
    # without a CPU while fio counted, the ramp was six times as fast
    "a starved run": ([run(disks=(disk(reads=700_000),), options={"ramp_time": "10s"})], ""),
    "more than a ramp": ([run(disks=(disk(reads=2_000_000),), options={"ramp_time": "10s"})], "device.other-io"),
    # the rate of a ramp that lasted longer than what was counted is anybody's guess
    "a long ramp": ([run(disks=(disk(reads=30_000_000),), options={"ramp_time": "11s"})], ""),
    "members of an array": ([run(disks=ARRAY)], ""),
    "one member too many": ([run(disks=(*ARRAY, disk("sdc", reads=40_000, member=True)))], "device.members"),
    "groups of one fio share its counters": (
        [
            run(disks=(disk(reads=200_000),), group=0),
            run(direction(10_000, mean_us=3199), disks=(disk(reads=200_000),), group=1),
        ],
        "",
    ),
    "unknown numbers": ([run(directions=(direction(),), workload=Workload(), options={}, fio_version=None)], ""),
    "no run": ([], ""),
}


@pytest.mark.parametrize("what", CASES)
def test_which_rules_a_run_breaks(what: str) -> None:
    runs, expected = CASES[what]
    assert " ".join(rules(*runs)) == expected


@pytest.mark.parametrize(
    ("of", "severity"),
    [
        ({"format": "text", "jobs": 1}, "hard"),
        ({"format": "text", "jobs": 2}, "warning"),
        ({"format": "json", "jobs": 1, "concurrency": 1.0}, "hard"),
        ({"format": "json", "jobs": 1}, "warning"),
        ({"format": "json", "jobs": 2, "concurrency": 2.0}, "warning"),
    ],
)
def test_a_group_may_hold_deeper_jobs_of_another_section_unless_it_is_one_job(
    of: dict[str, Any], severity: str
) -> None:
    """Reported as a group, sections of iodepth 1 and 32 have one iodepth, that of one of them."""
    (hit,) = audit([run(direction(10_000, mean_us=3300), depth=1, group=0, **of)]).hits
    assert (hit.finding.rule, hit.finding.severity) == ("little.impossible", severity)
    assert ("several sections" in hit.finding.explanation) == (severity == "warning")


@pytest.mark.parametrize("engine", ["psync", "sync", "mmap", "pvsync2"])
def test_a_synchronous_engine_ignores_iodepth(engine: str) -> None:
    assert rules(run(direction(10_000, mean_us=100), engine=engine)) == ["depth.ignored"]


def test_percentiles_in_the_last_bin_say_only_that_it_took_long() -> None:
    assert "percentile.capped" in rules(run(direction(1, seconds=30, lat=LATE), depth=32))
    bare = latency(30e6, 30, {}, longest_us=60e6)  # fio gives percentiles of clat unless it is told otherwise
    assert "percentile.capped" in rules(run(direction(1, seconds=30, lat=bare, clat=LATE), depth=32))


def test_an_early_end_is_a_warning_unless_the_size_was_done() -> None:
    short = asked(run(direction(mean_us=3200, seconds=4)), size=1 << 40)
    (hit,) = audit([short]).hits
    assert (hit.finding.rule, hit.finding.severity) == ("run.early-end", "warning")
    (hit,) = audit([asked(short, size=40_000 * 4096)]).hits
    assert hit.finding.severity == "note"


def test_every_rule_explains_itself() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.says and rule.needs and rule.remedy for rule in RULES)


def numbers(low: float, mean: float, high: float, count: int = 1000, **percentiles: float) -> Latency:
    """A latency in us; percentiles as p50=..."""
    spread = {float(name[1:]): Quantity.exact(value * 1e3, "ns") for name, value in percentiles.items()}
    exact = [Quantity.exact(value * 1e3, "ns") for value in (low, mean, high)]
    return Latency(count, mean=exact[1], stddev=unknown("ns"), min=exact[0], max=exact[2], percentiles=spread)


IMPOSSIBLE = {
    "min above max": (numbers(90, 60, 50), "minimum 90 us above maximum 50 us"),
    "mean above max": (numbers(10, 60, 50), "mean 60 us above maximum 50 us"),
    "mean below min": (numbers(10, 5, 50), "minimum 10 us above mean 5 us"),
    "percentiles fall": (numbers(10, 20, 50, p50=30, p90=12), "p50 30 us above p90 12 us"),
    "percentile above max": (numbers(10, 20, 50, p50=20, p99=80), "p99 80 us above maximum 50 us"),
    "percentile below min": (numbers(10, 20, 50, p1=4, p99=50), "minimum 10 us above p1 4 us"),
    "mean of 0": (numbers(0, 0, 50), "the mean is 0, but an I/O took 50 us"),
    "mean of 0, number of I/Os not known": (numbers(0, 0, 50, count=0), "the mean is 0, but an I/O took 50 us"),
}


@pytest.mark.parametrize("whose", ["lat", "clat", "slat", "sync"])
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_numbers_that_no_set_of_ios_can_have_are_a_hard_finding(name: str, whose: str) -> None:
    found, says = IMPOSSIBLE[name]
    parts: dict[str, Any] = {whose: found}
    one = run(direction(), sync=found) if whose == "sync" else run(direction(**parts))
    hits = [hit.finding for hit in audit([one]).hits if hit.finding.rule in ("latency.order", "mean.zero")]
    assert [hit.severity for hit in hits] == ["hard"]
    assert says in hits[0].explanation
    assert whose in hits[0].explanation


def test_a_part_is_not_longer_than_the_whole() -> None:
    whole = numbers(20, 40, 90, p50=30.0)
    for name, part in {
        "mean": numbers(10, 60, 80),
        "minimum": numbers(30, 40, 80),
        "maximum": numbers(10, 30, 200),
        "p50": numbers(10, 30, 80, p50=45.0),
    }.items():
        (hit,) = [h.finding for h in audit([run(direction(lat=whole, clat=part))]).hits if "parts" in h.finding.rule]
        assert (hit.severity, name in hit.explanation) == ("hard", True)
    fewer = msgspec.structs.replace(numbers(10, 60, 80), count=900)
    assert "latency.parts!" not in rules(run(direction(lat=whole, slat=fewer)))


@given(
    st.lists(st.integers(1, 10**9), min_size=1, max_size=40),
    st.lists(st.integers(0, 10**6), min_size=40, max_size=40),
)
def test_latencies_that_happened_are_never_out_of_order(completions: list[int], submissions: list[int]) -> None:
    """Any I/Os at all, put into fio's bins and printed as fio prints them."""
    totals = [one + other for one, other in zip(completions, submissions, strict=False)]
    made = {"lat": totals, "clat": completions, "slat": submissions[: len(completions)]}
    shown: dict[str, Any] = {name: printed(values) for name, values in made.items()}
    one = run(direction(**shown))
    assert not {"latency.order!", "latency.parts!", "mean.zero!"} & set(rules(one))


def printed(values: list[int]) -> Latency:
    """Statistics of ``values`` as fio prints them: percentiles are centres of bins."""
    ordered = sorted(values)
    spread = {}
    for percent in (1.0, 50.0, 90.0, 99.0, 99.9):
        low, high = bin_edges(bin_index(ordered[min(len(ordered) - 1, int(percent / 100 * len(ordered)))]))
        spread[percent] = Quantity.exact(float(low + (high - low) // 2), "ns")
    exact = [Quantity.exact(float(value), "ns") for value in (ordered[0], sum(ordered) / len(ordered), ordered[-1])]
    return Latency(len(ordered), mean=exact[1], stddev=unknown("ns"), min=exact[0], max=exact[2], percentiles=spread)
