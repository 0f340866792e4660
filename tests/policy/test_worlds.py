"""The simulated array of the published read-policy study: ranking and size of its tables, world by world seeded."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from benchmarks.policy.gist import GROUPS, Column, table, world
from benchmarks.policy.published import PUBLISHED
from iodelta.errors import RequestError
from iodelta.parts.mirrors.catalogue import POLICIES
from iodelta.parts.mirrors.model import (
    GIB,
    MIB,
    Background,
    Cache,
    Curve,
    Empirical,
    Flash,
    Layout,
    Member,
    Run,
    Traits,
    Workload,
    World,
    disk,
    pids_in_a_row,
    ssd,
)
from iodelta.parts.mirrors.simulate import geometric_mean, simulate

RANDOM_GROUPS = tuple(group for group in GROUPS if "seq" not in group)
QUICK = Flash(read=86_700)
"""With the transfer of 4 KiB it takes 102 us: 9 800 reads a second alone, 78 000 on its eight channels."""


@pytest.fixture(scope="module")
def tables() -> dict[Column, dict[str, tuple[float, ...]]]:
    return {"A": table("A"), "F": table("F"), "B": table("B")}


def ranking(row: tuple[float, ...]) -> list[str]:
    """Policies from the quickest to the slowest."""
    return [policy for _, policy in sorted(zip(row, POLICIES, strict=True), reverse=True)]


@pytest.mark.parametrize(
    ("column", "idle", "loaded"),
    [("F", 0.05, 0.12), ("A", 0.10, 0.25), ("B", 0.28, 0.25)],
)
def test_the_published_sizes_are_reproduced(
    tables: dict[Column, dict[str, tuple[float, ...]]], column: Column, idle: float, loaded: float
) -> None:
    for group, published in PUBLISHED.columns[column].items():
        within = loaded if "load" in group else idle
        for policy, ours, theirs in zip(POLICIES, tables[column][group], published, strict=True):
            assert abs(ours / theirs - 1) < within, f"{column}, {group}, {policy}: {ours:.0f} against {theirs}"


def test_the_order_of_runs_alone_makes_the_published_ranking(
    tables: dict[Column, dict[str, tuple[float, ...]]],
) -> None:
    """Column F: five slots of the same random policy, and a cache that warms."""
    for group in RANDOM_GROUPS:
        row = tables["F"][group]
        assert list(row) == sorted(row)
        assert ranking(row) == ["queue", "latency-rr", "latency", "round-robin", "pid"]


def test_policies_behind_the_warming_cache_give_the_published_ranking_in_every_random_group(
    tables: dict[Column, dict[str, tuple[float, ...]]],
) -> None:
    for group in RANDOM_GROUPS:
        assert ranking(tables["B"][group]) == ["queue", "latency-rr", "latency", "round-robin", "pid"], group


def test_without_cache_and_with_fresh_offsets_queue_wins_at_depth_and_not_at_depth_one(
    tables: dict[Column, dict[str, tuple[float, ...]]],
) -> None:
    for group in ("rand 4k QD32", "QD32 + load"):
        assert ranking(tables["A"][group])[:2] == ["queue", "latency-rr"]
    alone = tables["A"]["rand 4k QD1"]
    assert set(ranking(alone)[:2]) == {"latency", "latency-rr"}
    queue, pid = alone[4], alone[0]
    assert abs(queue / pid - 1) < 0.1, "nothing is in flight that queue could look at"


def test_fresh_offsets_take_the_manufactured_gain_away() -> None:
    """The same worlds and cache, but no run repeats another's offsets: 14-fold becomes nothing."""

    def gain(fresh: bool) -> float:
        ratios = []
        for seed in (1, 2, 3):
            one = world(seed, "F", seconds=30.0)
            runs = one.runs[:15]
            if fresh:
                runs = tuple(_reseeded(run, 1000 * seed + index) for index, run in enumerate(runs))
            found = simulate([World(one.seed, one.members, one.layout, runs, one.cache)], 2)[0]
            ratios.append(found[12].iops / found[0].iops)
        return geometric_mean(ratios)

    assert gain(fresh=False) > 10
    assert abs(gain(fresh=True) - 1) < 0.1


def _reseeded(run: Run, seed: int) -> Run:
    return replace(run, workload=replace(run.workload, seed=seed))


def rates(
    members: tuple[Member, ...], iodepth: int, policies: str, *, seconds: float = 20.0, large: bool = False
) -> dict[str, float]:
    """Policy -> geometric mean of IOPS over five worlds of raid1 chunks."""
    found = {}
    for policy in policies.split():
        worlds = []
        for seed in range(1, 6):
            pid = random.Random(seed).randrange(1000, 30000)
            load = Workload(not large, MIB if large else 4096, iodepth, 50 * GIB, seed, (pid,))
            worlds.append(World(seed, members, Layout("raid1"), (Run(policy, load, seconds),)))
        found[policy] = geometric_mean([runs[0].iops for runs in simulate(worlds, 2)])
    return found


MIXED = (disk(1, 7200, 170), ssd(2, QUICK))
STALLING = (ssd(1, Flash(read=86_700, stall_part=0.05)), *(ssd(devid, QUICK) for devid in (2, 3, 4)))


@pytest.mark.parametrize(
    ("members", "iodepth", "published", "within"),
    [
        (
            MIXED,
            1,
            {"pid": 174, "round-robin": 166, "queue": 169, "md-raid1": 166, "latency": 4645, "latency-rr": 6145}
            | {"hysteresis": 9807, "zfs": 9807, "sed": 6224},
            0.15,
        ),
        (MIXED, 32, {"pid": 442, "round-robin": 413, "latency-rr": 38_000, "queue": 78_700, "md-raid1": 78_700}, 0.25),
        (STALLING, 1, {"pid": 4365, "round-robin": 4654, "queue": 4828, "latency": 9656, "latency-rr": 9719}, 0.20),
    ],
    ids=["disk and flash, depth 1", "disk and flash, depth 32", "one of four flash members stalls"],
)
def test_mirrors_of_unlike_members_read_as_fast_as_was_published(
    members: tuple[Member, ...], iodepth: int, published: dict[str, int], within: float
) -> None:
    """At depth 1 as slow as the disk for every policy blind at that depth, deeper as quick as the flash for queues."""
    found = rates(members, iodepth, " ".join(published), seconds=5 if iodepth > 1 else 20)
    for policy, theirs in published.items():
        assert abs(found[policy] / theirs - 1) < within, f"{policy}: {found[policy]:.0f} against {theirs}"


def test_latency_on_disk_and_flash_at_depth_is_between_turns_and_latency_rr() -> None:
    assert 413 < rates(MIXED, 32, "latency", seconds=5)["latency"] < 38_000


def test_locality_nearly_doubles_the_streaming_of_ten_equal_disks() -> None:
    members = tuple(disk(devid, 7200, 241) for devid in range(1, 11))
    found = rates(members, 16, "pid round-robin queue zfs", large=True)
    assert found["zfs"] > 1.5 * found["queue"]
    for policy, theirs in {"pid": 241, "round-robin": 241, "queue": 252, "zfs": 459}.items():
        assert abs(found[policy] / theirs - 1) < 0.15


def test_two_equal_disks_lose_a_third_to_a_policy_that_herds() -> None:
    found = rates((disk(1, 7200, 170), disk(2, 7200, 170)), 32, "pid latency queue", seconds=60)
    assert found["latency"] < 0.7 * found["queue"]
    assert abs(found["pid"] / found["queue"] - 1) < 0.1


def test_a_measured_device_gives_its_own_curve_back_within_ten_percent() -> None:
    """The closure test: shapes narrow, even and with a long tail."""
    depths = (1, 2, 4, 8, 16, 32, 64)
    latency = (105e3, 110e3, 128e3, 190e3, 360e3, 710e3, 1420e3)
    for tail in (0.0, 0.5, 8.0):
        raw = [1 + tail * (max(0.0, part - 0.9) * 10) ** 2 for part in (index / 128 for index in range(129))]
        mean = sum(raw) / len(raw)
        curve = Curve(depths, latency, tuple(tuple(part / mean for part in raw) for _ in depths))
        member = Member(Traits(1, rotational=False), GIB, empirical=Empirical(curve))
        runs = tuple(Run("pid", Workload(True, 4096, depth, GIB, 3, (7,)), 5.0, ramp=0.2) for depth in depths)
        for depth, expected, run in zip(
            depths, latency, simulate([World(1, (member,), Layout(), runs)])[0], strict=True
        ):
            assert abs(run.read.mean / expected - 1) < 0.10, f"tail {tail}, depth {depth}"
            assert abs(run.iops / (depth / expected * 1e9) - 1) < 0.10


def test_worlds_are_the_same_on_any_number_of_threads() -> None:
    worlds = [world(seed, "B", seconds=5.0) for seed in (1, 2, 3)]
    assert simulate(worlds, 1) == simulate(worlds, 3)


@pytest.mark.parametrize(
    ("layout", "copies"),
    [(Layout("raid1", 2), 2), (Layout("raid1", 3), 3), (Layout("raid1", 4), 4), (Layout("raid10", pairs=3), 2)],
)
def test_a_write_goes_to_every_copy_of_its_chunk(layout: Layout, copies: int) -> None:
    members = tuple(ssd(devid) for devid in range(1, 7))
    load = Workload(True, 4096, 8, 50 * GIB, 1, (1,), read_percent=0)
    run = simulate([World(1, members, layout, (Run("queue", load, 1.0),))])[0][0]
    written = sum(member.writes for member in run.members)
    assert abs(written - copies * run.write.ios) <= copies * 8


def test_what_cannot_be_simulated_is_refused_with_the_reason() -> None:
    load = Workload(True, 4096, 1, GIB, 1, (1,))
    member, run, raid1 = ssd(1, capacity=GIB), Run("pid", load, 1.0), Layout("raid1")
    for members, layout, asked, words in (
        ((), Layout(), run, "0 members"),
        ((member,), raid1, run, "2 members are needed"),
        ((member, member), raid1, run, "too small"),
        ((member,), Layout(), replace(run, policy="fastest"), "no read policy"),
        ((member,), Layout(), replace(run, seconds=-1.0), "-1 seconds"),
        ((member,), Layout(), replace(run, workload=replace(load, length=1000)), "multiple of 512"),
        ((member,), Layout(), replace(run, workload=replace(load, size=2 * GIB)), "the array has"),
        ((Member(Traits(1, True), GIB),), Layout(), run, "one of hdd, flash"),
    ):
        with pytest.raises(RequestError, match=words):
            simulate([World(1, members, layout, (asked,))])


def test_a_defragmentation_beside_it_takes_from_the_disks_and_is_counted() -> None:
    members = tuple(disk(devid, 7200, 170) for devid in (1, 2))
    load = Workload(True, 4096, 1, 50 * GIB, 1, (1,))
    one, other = (
        simulate([World(1, members, Layout("raid1"), (Run("queue", load, 60.0, background=background),))])[0][0]
        for background in (None, Background(7))
    )
    assert other.iops < 0.8 * one.iops
    assert (one.background_reads, one.background_writes) == (0, 0)
    assert other.background_writes > 0
    assert sum(member.reads for member in other.members) > other.read.ios


def test_a_cache_that_long_reads_bypass_leaves_them_alone() -> None:
    members = tuple(disk(devid, 7200, 170) for devid in (1, 2))
    load = Workload(False, MIB, 4, GIB, 1, (1,))
    runs = tuple(Run("devid", load, 10.0) for _ in range(2))
    first, again = simulate([World(1, members, Layout("raid1", chunks=2), runs, Cache())])[0]
    assert abs(again.iops / first.iops - 1) < 0.02
    assert all(member.hits == 0 for run in (first, again) for member in run.members)


def open_load(rate: float, *, jobs: int = 1, seed: int = 1) -> Workload:
    pids = pids_in_a_row(random.Random(seed), jobs)
    return Workload(random=True, length=512, iodepth=1, size=GIB, seed=seed, pids=pids, rate=rate)


def servers(channels: int, fixed_ms: float, spread_ms: float) -> Flash:
    """So many at once, each a fixed time and an exponential one."""
    return Flash(channels, round(fixed_ms * 1e6), 1, 1 << 60, spread=round(spread_ms * 1e6))


def erlang(channels: int, rate: float, service: float) -> float:
    """Mean response time of M/M/c, seconds (Erlang's C)."""
    offered = rate * service
    blocked = 1.0
    for number in range(1, channels + 1):
        blocked = offered * blocked / (number + offered * blocked)
    used = offered / channels
    waits = blocked / (1 - used * (1 - blocked))
    return service + waits * service / (channels - offered)


def response(members: tuple[Member, ...], rate: float, policy: str = "devid", seconds: float = 4000.0) -> float:
    """Mean response time, seconds."""
    found = simulate([World(1, members, Layout(), (Run(policy, open_load(rate), seconds, ramp=50.0),))])[0][0]
    assert found.iops == pytest.approx(rate, rel=0.02), "what arrives is served"
    return found.read.mean / 1e9


@pytest.mark.parametrize("used", [0.3, 0.8])
@pytest.mark.parametrize("channels", [1, 4, 16])
def test_an_open_load_on_exponential_servers_waits_as_erlang_says(channels: int, used: float) -> None:
    rate = used * channels * 100
    expected = erlang(channels, rate, 0.01)
    if channels == 1:
        assert expected == pytest.approx(0.01 / (1 - used))
    assert response((ssd(1, servers(channels, 0, 10)),), rate) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("used", [0.3, 0.8])
def test_an_open_load_on_one_server_waits_as_pollaczek_and_khinchine_say(used: float) -> None:
    rate = used * 100
    for fixed, spread in ((10.0, 0.0), (5.0, 5.0)):
        second_moment = (fixed + spread) ** 2 + spread**2
        expected = (10 + rate / 1000 * second_moment / (2 * (1 - used))) / 1000
        assert response((ssd(1, servers(1, fixed, spread)),), rate) == pytest.approx(expected, rel=0.05)


def test_an_open_load_split_at_random_is_two_queues_and_the_shorter_of_two_is_between_that_and_one_queue() -> None:
    pair = (ssd(1, servers(1, 0, 10)), ssd(2, servers(1, 0, 10)))
    apart, shorter = response(pair, 160, "random"), response(pair, 160, "queue")
    assert apart == pytest.approx(erlang(1, 80, 0.01), rel=0.05)
    assert erlang(2, 160, 0.01) < shorter < 0.6 * apart


def test_an_open_load_beyond_what_members_do_is_never_finished() -> None:
    member = (ssd(1, servers(1, 10, 0)),)
    worlds = [
        World(1, member, Layout(), (Run("devid", open_load(rate), seconds),))
        for rate in (50, 150)
        for seconds in (20, 200)
    ]
    waiting = [runs[0].unfinished for runs in simulate(worlds)]
    assert max(waiting[:2]) < 20
    assert waiting[2] == pytest.approx(50 * 20, rel=0.2)
    assert waiting[3] == pytest.approx(50 * 200, rel=0.1)


def test_jobs_of_an_open_load_are_equally_busy_and_their_pids_are_in_a_row() -> None:
    pair = (ssd(1, servers(8, 1, 0)), ssd(2, servers(8, 1, 0)))
    load = open_load(1000, jobs=2)
    assert load.pids[1] - load.pids[0] == 1
    found = simulate([World(1, pair, Layout(), (Run("pid", load, 100.0),))])[0][0]
    assert found.members[0].reads / found.read.ios == pytest.approx(0.5, abs=0.02)


def test_a_small_working_set_has_short_seeks_and_a_large_disk_shorter_ones() -> None:
    load = [Workload(True, 4096, 1, size, 1, (1,)) for size in (GIB, 64 * GIB, 1024 * GIB)]
    disks = [disk(1, 7200, 170)] * 3 + [disk(1, 7200, 170, capacity=1 << 44)]
    rates = [
        simulate([World(1, (one,), Layout(), (Run("devid", work, 60.0),))])[0][0].iops
        for one, work in zip(disks, [*load, load[2]], strict=True)
    ]
    near, middle, whole, larger = rates
    assert near > middle > whole
    assert larger > whole, "the same bytes are a smaller part of it"
    # The mean seek is over the whole disk; half a revolution more, and 1.5 ms of settling whatever the distance.
    assert whole == pytest.approx(1000 / (8.5 + 60_000 / 7200 / 2), rel=0.05)
    assert near == pytest.approx(1000 / (1.5 + 7.0 * (1 / 1024) ** 0.5 + 60_000 / 7200 / 2), rel=0.05)
