"""Each rule fires on what it is about, and is silent on what only looks like it."""

from __future__ import annotations

import msgspec
import pytest
from fio_runs import asked, direction, disk, latency, run, sampler

from iodelta.audit import RULES, audit
from iodelta.audit.engine import judge
from iodelta.audit.model import Evidence
from iodelta.ingest import Run
from iodelta.ingest.report import read_text
from iodelta.trial import Latency, Quantity

SOUND = direction(mean_us=3200)


def row(iops: str, bandwidth: str = "39.1", mean: str = "3.2", p99: str = "6", name: str = "a") -> list[Run]:
    """One row of a table at 4k, iodepth 32."""
    return table((name, iops, bandwidth, mean, p99))


def table(*rows: tuple[str, ...], title: str = "RandRead 4k QD32") -> list[Run]:
    lines = ["| Policy | IOPS | BW (MiB/s) | Avg Lat (ms) | 99% Lat (ms) |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    found = read_text("\n".join([f"## {title}", "", *lines]).encode(), "table.md")
    return [item for item in found if isinstance(item, Run)]


def posted(title: str, *lines: str) -> list[Run]:
    """The rows below the first of ``lines``, which has the columns' titles."""
    found = read_text("\n".join([f"## {title}", "", lines[0], "---|" * 8, *lines[1:]]).encode(), "table.md")
    return [item for item in found if isinstance(item, Run)]


def plain(*rates: int) -> list[Run]:
    """Rows that differ in their rate alone, in so many decimals that no two are copies."""
    return table(*((name, str(rate), "", "", "") for name, rate in zip("abcdefg", rates, strict=False)))


def loaded(idle: int, busy: int) -> list[Run]:
    return [
        *table(("a", str(idle), "", "", ""), title="RandRead 4k QD32 (Defrag Off)"),
        *table(("a", str(busy), "", "", ""), title="RandRead 4k QD32 (Defrag On)"),
    ]


def lat(mean_us: float, percentiles: dict[float, float], longest_us: float = 0) -> Run:
    return run(direction(10_000, lat=latency(mean_us, 100_000, percentiles, longest_us)), depth=1)


def rounded_mean() -> Latency:
    """Printed as 0.00: one I/O of 1 us among so many makes no more."""
    mean = Quantity(0.0, 0.0, 5.0, "ns")
    return msgspec.structs.replace(latency(0, 100_000, longest_us=1), mean=mean)


def busy(share: float) -> Run:
    return run(usr_cpu=Quantity.exact(30, "%"), sys_cpu=Quantity.exact(share - 30, "%"))


def series(*values: float) -> Run:
    return run(series={"read.iops": values})


def array(read: int) -> Run:
    """An array that read 100,000 blocks, whose members read ``read`` of them."""
    return run(disks=(disk("md0", reads=100_000), disk("sda", reads=read, member=True)))


RUNS: dict[str, tuple[list[Run], list[Run]]] = {
    "little.impossible": ([run(direction(10_000, mean_us=3500))], [run(direction(10_000, mean_us=3300))]),
    "little.mismatch": (row("10000", mean="2.6"), row("10000", mean="3.0")),
    "little.gap": (row("10000", mean="3.110"), row("10000", mean="3.190")),
    "depth.not-reached": ([run(direction(10_000, mean_us=2800))], [run(direction(10_000, mean_us=2900))]),
    "depth.ignored": (
        [run(direction(10_000, mean_us=100), engine="psync", depth=2)],
        [run(direction(10_000, mean_us=100), engine="psync", depth=1)],
    ),
    "cache.page-cache": ([asked(run(), direct=False)], [asked(run(), direct=None)]),
    "cache.not-from-device": ([run(disks=(disk(reads=40_000),))], [run(disks=(disk(reads=99_000),))]),
    "device.other-io": ([run(disks=(disk(reads=140_000),))], [run(disks=(disk(reads=101_000),))]),
    "device.members": ([array(200_000)], [array(101_000)]),
    "run.error": ([run(error=5)], [run(error=0)]),
    "run.no-io": ([run(directions=())], [run(directions=(), error=5)]),
    "run.incomplete-ios": ([run(direction(mean_us=3200, short=1))], [run(direction(mean_us=3200, short=0))]),
    "run.early-end": (
        [run(direction(mean_us=3200, seconds=9.7))],
        [
            run(direction(mean_us=3200, seconds=9.9)),
            run(direction(mean_us=3200, seconds=4), options={"ss": "iops:10%"}),
        ],
    ),
    "run.late-end": (
        [run(direction(mean_us=3200, seconds=10.4))],
        [run(direction(mean_us=3200, seconds=10.2))],
    ),
    "bandwidth.mismatch": (row("10000", "41.0"), row("10000", "39.3")),
    "bandwidth.suffix": (row("10000", "39.1M"), row("10000", "39.1")),
    "number.missing": (row("~0"), row("-")),
    "bytes.not-block-size": ([run(direction(bs=5000, mean_us=3200))], [run(direction(bs=4100, mean_us=3200))]),
    "mean.below-tail": ([lat(100, {50: 90, 99.9: 110_000})], [lat(100, {50: 90, 99.9: 90_000})]),
    "mean.above-percentile": (row("10000", p99="3.0"), row("10000", p99="3.3")),
    "mean.above-maximum": ([lat(75, {50: 60, 99: 70}, 100)], [lat(70, {50: 60, 99: 70}, 100)]),
    "latency.order": ([lat(100, {50: 60, 99: 59})], [lat(100, {50: 60, 99: 59.5})]),
    "mean.zero": ([lat(0, {}, 1.0)], [run(direction(10_000, lat=rounded_mean()), depth=1)]),
    "latency.parts": (
        [run(direction(10_000, lat=latency(90, 100_000), clat=latency(95, 100_000)), depth=1)],
        [run(direction(10_000, lat=latency(90, 100_000), slat=latency(95, 99_000)), depth=1)],
    ),
    "shares.over": (
        [run(shares=((1e5, 60.0), (2e5, 55.0)))],
        [run(shares=((1e5, 60.0), (2e5, 40.2))), run(shares=((1e5, 60.0), (2e5, 47.0)), fio_version="2.1")],
    ),
    "sampler.unit": (
        [run(samplers=sampler(10, 9, 12))],
        [run(samplers=sampler(3000, 1, 12_000)), run(samplers=sampler(1, 1, 1))],
    ),
    "count.mismatch": (
        [run(direction(lat=latency(3200, 90_000)))],
        [run(direction(lat=latency(3200, 99_990)))],
    ),
    "mean.made-by-stalls": ([lat(100, {50: 60, 99: 90})], [lat(100, {50: 60, 99: 101})]),
    "percentile.unit": (row("10000", p99="0.006"), row("10000", p99="3.3")),
    "percentile.capped": ([lat(100, {50: 90, 99: 17_112_760.32})], [lat(100, {50: 90, 99: 9000})]),
    "sampler.stalls": (
        [run(samplers=sampler(11_500, 9000, 12_000))],
        [
            run(samplers=sampler(10_500, 9000, 12_000)),
            run(direction(mean_us=3200, seconds=2), samplers=sampler(11_500, 9000, 12_000)),
        ],
    ),
    "fio.version": (
        [run(samplers=sampler(9000, 8000, 9500), fio_version="3.17")],
        [run(samplers=sampler(9000, 8000, 9500), fio_version="3.18")],
    ),
    "cpu.bound": ([busy(96)], [busy(94)]),
    "steady.not-yet": (
        [series(*(1000.0 + 60 * second for second in range(30)))],
        [series(*(1000.0 + 10 * (-1) ** second for second in range(30)))],
    ),
    "order.trend": (plain(101, 203, 305, 407, 509), plain(101, 203, 305, 509, 407)),
    "load.faster": (loaded(1000, 1060), loaded(1000, 1040)),
    "cells.identical": (
        table(("a", "31389", "", "", ""), ("b", "31389", "", "", "")),
        table(("a", "31389", "", "", ""), ("b", "31388", "", "", "")),
    ),
    "replicates.scatter": (
        [
            *table(("a", "1000", "", "", ""), title="RandRead 4k QD32 SSD"),
            *table(("a", "1100", "", "", ""), title="RandRead 4k QD32 SSD again"),
        ],
        [
            *table(("a", "1000", "", "", ""), title="RandRead 4k QD32 SSD"),
            *table(("b", "1100", "", "", ""), title="RandRead 4k QD32 SSD again"),
        ],
    ),
}
"""A case of each rule, and one that is near it; those that need a machine's counters are below."""

COUNTED: dict[str, tuple[list[dict[str, float]], list[dict[str, float]]]] = {
    "cpu.stolen": ([{"cpu.steal_ms": 20.0, "cpu.idle_ms": 980.0}], [{"cpu.steal_ms": 5.0, "cpu.idle_ms": 995.0}]),
    "cpu.throttled": ([{"cgroup.throttles": 1.0}], [{"cgroup.throttles": 0.0}]),
    "cpu.clock": (
        [{"cpu.mhz_mean": 2000.0}, {"cpu.mhz_mean": 2300.0}],
        [{"cpu.mhz_mean": 2000.0}, {"cpu.mhz_mean": 2100.0}],
    ),
}


def fired(runs: list[Run]) -> set[str]:
    return {hit.finding.rule for hit in audit(runs).hits}


HARD = {
    *("little.impossible", "little.mismatch", "cache.not-from-device", "run.error", "run.no-io", "bandwidth.mismatch"),
    *("bandwidth.suffix", "number.missing", "mean.below-tail", "mean.above-percentile", "mean.above-maximum"),
    *("latency.order", "mean.zero", "latency.parts", "shares.over", "sampler.unit", "count.mismatch"),
    *("percentile.unit",),
}
ALSO = {
    "mean.above-maximum": {"mean.made-by-stalls"},
    "latency.order": {"mean.made-by-stalls"},
    "percentile.unit": {"mean.above-percentile"},
    "percentile.capped": {"mean.below-tail"},
}
"""What else is wrong with a case."""


@pytest.mark.parametrize("rule", RUNS)
def test_a_rule_fires_on_its_case_and_not_near_it(rule: str) -> None:
    hit, near = RUNS[rule]
    assert near
    found = {(one.finding.rule, one.finding.severity == "hard") for one in audit(hit).hits}
    assert found == {(name, name in HARD) for name in {rule} | ALSO.get(rule, set())}
    assert rule not in fired(near)


@pytest.mark.parametrize("rule", COUNTED)
def test_a_rule_about_the_machine_fires_on_its_case_and_not_near_it(rule: str) -> None:
    for counters, expected in zip(COUNTED[rule], (True, False), strict=True):
        runs = tuple(run() for _ in counters)
        evidence = Evidence(runs, tuple(counters), (("cell", "a"),) * len(runs))
        assert (rule in {hit.finding.rule for hit in judge(evidence, RULES)}) is expected


def test_runs_that_all_drift_the_same_way_are_told_from_runs_that_do_not() -> None:
    for sign, expected in ((1, True), (-1, False)):
        drifts = [20.0 * (sign if number % 2 else 1) for number in range(12)]
        runs = tuple(series(*(1000.0 + drift * second for second in range(10))) for drift in drifts)
        found = judge(Evidence(runs, (), (("cell", "a"),) * len(runs)), RULES)
        assert ("steady.slope" in {hit.finding.rule for hit in found}) is expected


def test_columns_of_reads_and_writes_may_be_of_tests_one_after_the_other() -> None:
    head = "Name | Read IOPS | Read lat (us) | Write IOPS | Write lat (us)"
    assert not audit(posted("4k QD32", head, "a | 100000 | 320 | 80000 | 400")).hits
    assert fired(posted("4k QD32", head, "a | 100000 | 320 | 80000 | 500")) == {"little.impossible"}
    assert fired(posted("4k randrw QD32", head, "a | 100000 | 320 | 80000 | 400")) == {"little.impossible"}


def test_a_row_of_a_synchronous_engine_is_of_depth_one() -> None:
    head = "Engine | iodepth | IOPS | Mean lat (us) | p99 (us)"
    assert not audit(posted("randread 4k", head, "psync | 32 | 12000 | 82 | 150")).hits
    assert "little.mismatch" in fired(posted("randread 4k", head, "libaio | 32 | 12000 | 82 | 150"))
    assert "little.mismatch" in fired(posted("randread 4k", head, "patched | 32 | 12000 | 82 | 150"))


def test_on_and_off_are_of_a_load_only_beside_one() -> None:
    head = "Policy | Write cache | IOPS"
    assert "load.faster" not in fired(posted("randread 4k on nvme0n1", head, "a | off | 1000", "a | on | 2000"))
    head = "Policy | Background writes | IOPS"
    assert "load.faster" in fired(posted("randread 4k on nvme0n1", head, "a | off | 1000", "a | on | 2000"))
    head = "Policy | Write cache | Scrub | IOPS"
    assert "load.faster" not in fired(posted("randread 4k", head, "a | off | off | 1000", "a | on | on | 2000"))


def test_every_rule_has_such_a_case() -> None:
    assert {rule.id for rule in RULES} == RUNS.keys() | COUNTED.keys() | {"steady.slope"}
