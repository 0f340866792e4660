"""The mirror on real members: what it reads from whom, and what it does when a member is not what it should be."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from processes import descriptors
from waiting import until

from iodelta.errors import RequestError
from iodelta.parts.mirrors.calibrate import slice_of
from iodelta.parts.mirrors.mirror import MirrorRun, Request, run
from iodelta.parts.mirrors.model import Curve, Empirical, Layout, Member, Run, Traits, Workload, World
from iodelta.parts.mirrors.simulate import simulate
from iodelta.probe.members import inspect

from .members import MIB, contents, files, loops, throttled

root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices and control groups")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    with loops(tmp_path_factory.mktemp("pair"), 2) as made, throttled({made[0]: 900, made[1]: 300}):
        yield made


MACHINE = frozenset({"mirror.starved", "mirror.stolen", "mirror.cpu-bound"})
"""Rules about the machine that the test runs on, which may be busy."""


def rules(done: MirrorRun) -> list[str]:
    return [finding.rule for finding in done.findings if finding.rule not in MACHINE]


def settled(expected: tuple[float, ...], measure: Callable[[], float], within: float) -> float:
    """A rate that is one of ``expected``: a busy machine may disturb one measurement, not three in a row."""
    found = 0.0
    for _ in range(3):
        found = measure()
        if any(abs(found / one - 1) < within for one in expected):
            break
    return found


def enough(measure: Callable[[], MirrorRun], condition: Callable[[MirrorRun], object]) -> MirrorRun:
    """A run that read enough to judge it by: a disk that others keep busy may answer hardly at all for a second."""
    made: list[MirrorRun] = []

    def suffices() -> object:
        made.append(measure())
        return condition(made[-1])

    until(suffices)
    return made[-1]


@root
@pytest.mark.root
@pytest.mark.parametrize(
    ("policy", "seed", "expected"),
    [
        ("queue", 1, (1200.0,)),
        # In turns of 64 reads the slow member has nothing to do for part of the kernel's slice now and then.
        ("round-robin:64k", 1, (600.0,)),
        ("pid", 1, (900.0, 300.0)),
        ("devid:2", 1, (300.0,)),
        ("latency", 1, (900.0, 300.0)),
    ],
)
def test_members_of_900_and_300_reads_a_second_give_the_closed_forms_at_depth_32_and_the_simulator_agrees(
    pair: tuple[str, ...], policy: str, seed: int, expected: tuple[float, ...]
) -> None:
    # The kernel lets requests through in slices of 0.1 s: whole ones of them.
    request = Request(members=pair, policy=policy, iodepth=32, seed=seed, ramp=0.5, seconds=2.0)
    done: list[MirrorRun] = []

    def measure() -> float:
        done.append(run(request))
        return done[-1].iops

    # latency turns to the other member now and then, while the means of both are young.
    within = 0.10 if policy == "latency" else 0.03
    found = settled(expected, measure, within)
    assert any(abs(found / one - 1) < within for one in expected), f"{policy}: {found}"
    assert rules(done[-1]) == []
    assert done[-1].trace == ()
    limited = tuple(
        Member(Traits(devid, True), MIB << 5, empirical=Empirical(Curve((1,), (1e9 / rate,))))
        for devid, rate in ((1, 900), (2, 300))
    )
    load = Workload(True, 4096, 32, MIB << 5, seed, done[-1].pids)
    predicted = simulate([World(1, limited, Layout(), (Run(policy, load, 20.0, ramp=1.0),))])[0][0].iops
    if policy != "latency":  # which of two values it locks in to is decided by its first samples
        assert abs(found / predicted - 1) < 0.10
    assert any(abs(predicted / one - 1) < within for one in expected)


@root
@pytest.mark.root
def test_the_slice_of_a_throttle_is_measured_and_a_free_member_has_none(pair: tuple[str, ...], tmp_path: Path) -> None:
    burst = Request(members=pair[:1], policy="devid", iodepth=64)
    assert settled((0.1,), lambda: slice_of(burst, 900), 0.1) == pytest.approx(0.1, rel=0.1), "throtl_slice"
    with loops(tmp_path, 1) as free:
        alone = Request(members=free, policy="devid", iodepth=64, ramp=0.0, seconds=0.5)
        assert slice_of(alone, run(alone).iops) == 0


@root
@pytest.mark.root
def test_a_member_that_stalls_is_passed_over_and_said_so(tmp_path: Path) -> None:
    with loops(tmp_path, 2) as members, throttled({members[1]: 1}):
        done = run(Request(members=members, policy="round-robin", iodepth=8, seconds=2.0, stall=0.3))
    assert done.ended == "finished"
    assert "mirror.stalled" in rules(done)
    assert not done.usable
    assert done.members[0].reads > 100 * done.members[1].reads
    assert done.retried > 0, "what the stalled member owed was read from the other"


@root
@pytest.mark.root
def test_a_lone_member_that_stalls_ends_the_run_instead_of_hanging(tmp_path: Path) -> None:
    with loops(tmp_path, 1) as members, throttled({members[0]: 1}):
        done = run(Request(members=members, policy="queue", iodepth=4, seconds=30.0, stall=0.3))
    assert done.ended == "no member"
    assert done.seconds < 29
    assert {"mirror.stalled", "mirror.ended"} <= set(rules(done))


@root
@pytest.mark.root
def test_a_device_that_errs_is_dropped_after_some_errors_and_the_others_serve(tmp_path: Path) -> None:
    with loops(tmp_path, 2) as members:
        os.truncate(tmp_path / "member1", MIB)  # the device keeps its size: reads beyond the file fail
        done = run(Request(members=members, policy="round-robin:4k", iodepth=8, seconds=1.0))
    assert done.ended == "finished"
    assert done.members[1].dropped
    assert done.members[1].errors >= 16
    assert done.retried >= 16
    assert done.unreadable == 0
    assert [finding.severity for finding in done.findings if finding.rule == "mirror.errors"] == ["hard"]
    assert done.read.ios > 100


@root
@pytest.mark.root
def test_a_read_only_device_can_be_read_and_a_write_to_it_is_refused(tmp_path: Path) -> None:
    with loops(tmp_path, 2, 32, "--read-only") as members:
        assert run(Request(members=members, policy="queue", seconds=0.2)).usable
        with pytest.raises(RequestError, match="read-only"):
            run(Request(members=members, policy="queue", seconds=0.2, read_percent=50), destroy=members)


@contextlib.contextmanager
def emptied(*members: str) -> Iterator[None]:
    """The members vanish as soon as the mirror in this process reads them."""

    def empty() -> None:
        until(lambda: {*members, "anon_inode:[io_uring]"} <= descriptors(os.getpid()))
        for member in members:
            os.truncate(member, 0)

    thread = threading.Thread(target=empty)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_a_member_that_shrinks_while_it_is_read_is_dropped_and_the_run_goes_on(tmp_path: Path) -> None:
    members = files(tmp_path, 2)
    with emptied(members[1]):
        done = run(Request(members=members, policy="round-robin:4k", iodepth=4, seconds=4.0))
    assert done.ended == "finished"
    assert [member.dropped for member in done.members] == [False, True]
    assert "mirror.errors" in rules(done)


def test_when_every_member_has_vanished_the_run_ends_with_the_reason(tmp_path: Path) -> None:
    members = files(tmp_path, 2)
    with emptied(*members):
        done = run(Request(members=members, policy="queue", iodepth=4, seconds=30.0))
    assert done.ended == "no member"
    assert done.seconds < 29
    assert not done.usable


@pytest.mark.parametrize("count", [1, 16])
def test_one_member_and_sixteen_are_mirrors_too(tmp_path: Path, count: int) -> None:
    members = files(tmp_path, count, mib=2)
    for policy in ("queue:ties=rotate", "random", "historical-service-time"):
        request = Request(members=members, policy=policy, iodepth=count * 2, seconds=0.6, trace=0.05)
        done = enough(lambda request=request: run(request), lambda done: done.read.ios > 20 * count)  # type: ignore[misc]
        assert done.ended == "finished"
        assert sum(member.reads for member in done.members) == done.read.ios
        assert all(member.reads > 0 for member in done.members), policy
        assert done.read.histogram.total == done.read.ios
        assert all(sum(sample) == count * 2 for sample in done.trace)


def test_little_s_law_holds_for_jobs_and_depth(tmp_path: Path) -> None:
    request = Request(members=files(tmp_path, 2), policy="queue", iodepth=4, jobs=3, seconds=0.5)

    def in_flight() -> float:
        done = run(request)
        assert len(set(done.pids)) == 3
        return done.iops * done.read.mean / 1e9

    assert settled((12.0,), in_flight, 0.25) == pytest.approx(12, rel=0.25)


def test_writes_go_to_every_member_and_leave_them_equal(tmp_path: Path) -> None:
    members = files(tmp_path, 3, mib=2)
    request = Request(members=members, policy="queue", iodepth=16, jobs=2, seconds=0.5, read_percent=30)
    done = enough(lambda: run(request, destroy=members), lambda done: done.read.ios + done.write.ios > 100)
    assert done.usable
    assert done.write.ios > 0
    assert done.read.ios > 0
    written = {Path(member).read_bytes() for member in members}
    assert len(written) == 1
    assert written != {contents(2)}


def test_reads_change_nothing_and_need_no_right_to_write(tmp_path: Path) -> None:
    members = files(tmp_path, 2, mib=2)
    before = [os.stat(member).st_mtime_ns for member in members]
    for member in members:
        os.chmod(member, 0o444)
    done = run(Request(members=members, policy="queue", random=False, length=65536, iodepth=4, seconds=0.3))
    assert done.usable
    assert [os.stat(member).st_mtime_ns for member in members] == before


def test_members_of_unequal_size_are_used_as_far_as_all_have_bytes(tmp_path: Path) -> None:
    members = files(tmp_path, 2, mib=2)
    os.truncate(members[0], MIB)
    size, findings = inspect(members)
    assert size == MIB
    assert [finding.rule for finding in findings] == ["mirror.sizes"]
    assert run(Request(members=members, policy="random", iodepth=8, seconds=0.3)).usable


def test_members_of_unequal_content_are_found_out_on_a_sample_or_on_all(tmp_path: Path) -> None:
    members = files(tmp_path, 3, mib=4)
    with open(members[2], "r+b") as file:
        file.seek(3 * MIB + 17)
        file.write(b"\xff")
    found = [finding for finding in inspect(members, pieces=0)[1] if finding.rule == "mirror.content"]
    assert [finding.place for finding in found] == [members[2]]
    assert f"byte {3 * MIB + 17}" in found[0].explanation
    assert inspect(members[:2], pieces=0)[1] == ()


def test_a_sample_of_large_members_says_how_much_was_compared(tmp_path: Path) -> None:
    members = files(tmp_path, 2, mib=16)
    rules_found = [finding.rule for finding in inspect(members, pieces=3)[1]]
    assert rules_found == ["mirror.sampled"]


def test_what_is_no_mirror_is_refused_with_the_reason(tmp_path: Path) -> None:
    members = files(tmp_path, 2, mib=1)
    link = tmp_path / "link"
    link.symlink_to(members[0])
    empty = tmp_path / "empty"
    empty.touch()
    for bad, words in (
        ((), "needs members"),
        ((members[0], str(link)), "is the same as"),
        ((members[0], str(tmp_path)), "directory"),
        ((members[0], str(tmp_path / "missing")), "missing"),
        ((members[0], str(empty)), "no bytes"),
    ):
        with pytest.raises(RequestError, match=words):
            inspect(bad)
    for request, words in (
        (Request(members=members, policy="fastest"), "no read policy"),
        (Request(members=members, policy="queue", length=777), "multiple of 512"),
        (Request(members=members, policy="queue", length=2 * MIB), "no block"),
        (Request(members=members, policy="queue", iodepth=0), "at least 1"),
        (Request(members=members, policy="queue", iodepth=100_000), "65536"),
    ):
        with pytest.raises(RequestError, match=words):
            run(request)


@root
@pytest.mark.root
def test_a_filesystem_without_direct_io_is_read_through_its_cache_and_that_is_said(tmp_path: Path) -> None:
    point = tmp_path / "ramfs"
    point.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "ramfs", str(point)], check=True)
    try:
        members = files(point, 2, mib=2)
        request = Request(members=members, policy="queue", seconds=0.2)
        done = enough(lambda: run(request), lambda done: done.read.ios)
        assert rules(done) == ["mirror.buffered"] * 2
    finally:
        subprocess.run(["umount", "--lazy", str(point)], check=True)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    members = files(tmp_path, 2, mib=1)
    run(Request(members=members, policy="queue", seconds=0.1))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        run(Request(members=members, policy="queue", seconds=0.1))
    assert len(os.listdir("/proc/self/fd")) <= before
