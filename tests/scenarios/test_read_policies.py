"""The read-policy scenarios: what order alone makes of a ranking, and the benchmark of 2025 as an experiment."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from policy.members import loops
from waiting import LIMIT
from workshop import backing_files

from iodelta.cli.main import cli
from iodelta.experiment import parse
from iodelta.lab.undo import restore_pending
from iodelta.machine import LocalMachine
from iodelta.parts.mirrors.catalogue import POLICIES
from iodelta.parts.mirrors.order import SERIES, requests, simulated
from iodelta.parts.scenarios import btrfs_read_policy, catalogue, read_policy_order
from iodelta.parts.scenarios.slowing import JOIN, LEAVE, Pace, slow
from scenarios.test_stage import enter, killed, left

MIB = 1 << 20

HELD = """
import sys
from iodelta.cli.watching import RunWatcher
from iodelta.machine import LocalMachine
from iodelta.parts.scenarios import btrfs_read_policy
from iodelta.parts.scenarios import read_policy_order
from iodelta.parts.scenarios.stage import staged
read_policy_order.warming = lambda *given: {1: (), 32: ()}
scenario = {"btrfs": btrfs_read_policy, "order": read_policy_order}[sys.argv[2]]
home, never = sys.argv[1], lambda: False
with staged(LocalMachine(), RunWatcher(print), full=False, target=None, home=home, stop=never) as stage:
    scenario.prepare(stage)
    print("made", flush=True)
    sys.stdin.read()
"""


def disks_below(home: Path) -> set[str]:
    """Numbers of the loop devices over files there, and of those over these."""
    backing = dict(backing_files())
    own = {name for name, file in backing.items() if file.startswith(str(home))}
    own |= {name for name, file in backing.items() if file.removeprefix("/dev/") in own}
    return {Path(f"/sys/block/{name}/dev").read_text().strip() for name in own}


def limited() -> set[str]:
    """Numbers of the devices that the older hierarchy limits. Under the unified one a group goes as a whole."""
    files = Path("/sys/fs/cgroup/blkio").glob("blkio.throttle.*_device")
    return {line.split()[0] for file in files for line in file.read_text().splitlines()}


@pytest.mark.root
@pytest.mark.parametrize(("name", "count"), [("btrfs", 2), ("order", 4)])
def test_a_killed_scenario_leaves_no_disk_no_filesystem_and_no_limit(tmp_path: Path, name: str, count: int) -> None:
    with killed(HELD, str(tmp_path), name) as said:
        assert any(line == "made\n" for line in said)
        disks = disks_below(tmp_path)
        assert len(disks) == count
    assert [outcome.done for outcome in restore_pending(LocalMachine())] == [True]
    assert left(tmp_path) == []
    assert disks_below(tmp_path) == set()
    assert not disks & limited()


@pytest.mark.root
def test_a_slowed_disk_is_as_slow_as_it_was_told_to_be_and_free_again_afterwards(tmp_path: Path) -> None:
    with enter(tmp_path) as stage:
        disk = stage.disk("one", 64 * MIB)
        slow(stage, {disk: Pace(100, MIB << 10)})
        words = ["dd", f"if={disk}", "of=/dev/null", "bs=4k", "count=150", "iflag=direct"]
        said = stage.machine.run(words, timeout=LIMIT, env={"LC_ALL": "C"}).stderr.decode()
        took = re.search(r"copied, ([\d.]+) s", said)
        assert took is not None
        assert float(took[1]) > 1.0, "150 reads at 100 a second"


@pytest.mark.root
def test_under_the_unified_hierarchy_all_that_moved_into_the_group_moves_back_and_the_group_goes() -> None:
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if " cgroup2 " in line]
    if not points:
        pytest.skip("no cgroup2 is mounted")
    group = Path(points[0], f"iodelta-scenario-test-{os.getpid()}")
    process = subprocess.Popen(["sleep", "600"])
    try:
        home = unified_group(process.pid)
        subprocess.run(["sh", "-c", JOIN, group, str(process.pid)], check=True)
        assert unified_group(process.pid) == f"/{group.name}"
        for _ in range(2):
            subprocess.run(["sh", "-c", LEAVE, group, f"{points[0]}{home}".rstrip("/")], check=True)
            assert unified_group(process.pid) == home
            assert not group.exists()
    finally:
        process.kill()
        process.wait()


def unified_group(pid: int) -> str:
    """The path of a process's group in the unified hierarchy."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return next(line.removeprefix("0::") for line in lines if line.startswith("0::"))


def test_the_order_alone_ranks_the_slots_and_its_reverse_ranks_them_the_other_way() -> None:
    paces, size = read_policy_order.PACES, read_policy_order.SIZE
    rates = {
        series.name: simulated(requests(series, ("a", "b"), seconds=2.0, seed=4243), paces, size=size)
        for series in SERIES
    }
    posted, placebo, reverse, fresh = (rates[series.name][1] for series in SERIES)
    assert list(placebo) == sorted(placebo), "five times the same random choice"
    assert placebo[-1] > 3 * placebo[0]
    assert posted[-1] > 5 * posted[0]
    assert reverse[0] < posted[-1] / 3, "the same policy in the first slot and in the last"
    assert max(fresh) < 1.05 * max(paces), "no policy beats the quicker disk at depth 1"


@pytest.mark.root
def test_on_a_real_mirror_the_cache_below_serves_what_an_earlier_slot_has_read(tmp_path: Path) -> None:
    with enter(tmp_path) as stage:
        lower = [stage.disk(f"disk{number}", 1 << 30) for number in range(2)]
        upper = [
            stage.make(
                ["losetup", "--find", "--show", "--", disk], ["sh", "-c", read_policy_order.DETACH, disk]
            ).strip()
            for disk in lower
        ]
        slow(stage, {disk: Pace(600, MIB << 10) for disk in lower})
        runs = requests(SERIES[1], upper, seconds=0.2, seed=3)
        before = [served(disk) for disk in (*lower, *upper)]
        read_policy_order.warming(stage, [*upper, *lower], runs, SERIES[1], 0)
        reads = [served(disk) - first for disk, first in zip((*lower, *upper), before, strict=True)]
    assert sum(reads[:2]) < 0.8 * sum(reads[2:]), "the members were asked for more than their disks were"


def served(disk: str) -> int:
    """Reads that a disk has completed."""
    return int(Path(f"/sys/block/{disk.removeprefix('/dev/')}/stat").read_text().split()[0])


@pytest.mark.root
@pytest.mark.fio
def test_an_ended_folder_goes_on_with_the_rates_of_its_text_on_disks_of_other_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = itertools.count(1.0)
    monkeypatch.setattr(read_policy_order, "warming", lambda *given: {1: (next(rates),) * 5, 32: (next(rates),) * 5})
    monkeypatch.setattr(read_policy_order, "POLICIES", ("round-robin", "queue"))
    one = read_policy_order.SCENARIO
    brief = {**one.small, "trial": "200ms", "budget": "10m"}
    template = one.template.replace("[1, 32]", "1").replace("[design]", "[design]\nblocks = 2")
    small = dataclasses.replace(one, template=template, small=brief)
    monkeypatch.setattr(catalogue, "SCENARIOS", (small,))
    done = CliRunner().invoke(cli, ["scenario", "run", one.name, "--folder", "made"])
    assert done.exit_code in (0, 1, 3), done.output
    with loops(tmp_path, 1, mib=1):  # it has the number that the first disk had
        more = CliRunner().invoke(cli, ["run", "made", "--budget", "3s"])
    assert more.exit_code in (0, 1, 3), more.output
    assert next(rates) == 1.0 + 2 * len(SERIES), "nothing was measured again"
    events = [json.loads(line) for line in (tmp_path / "made/journal.jsonl").read_text().splitlines()]
    finished = [event for event in events if event["type"] == "finished"]
    assert {event["problem"] for event in finished} == {""}
    assert finished[-1] in events[[event["type"] for event in events].index("session", 1) :]
    assert left(tmp_path) == []


@pytest.mark.parametrize("offered", [("pid",), ("pid", "round-robin", "devid"), POLICIES])
def test_what_the_kernel_has_is_measured_on_btrfs_and_everything_else_by_the_mirror(offered: tuple[str, ...]) -> None:
    found = btrfs_read_policy.variants_of(offered, ("/dev/a", "/dev/b"))
    on_btrfs = {name for name, knobs in found.items() if "btrfs.read_policy" in knobs}
    assert on_btrfs == set(offered) & set(POLICIES)
    assert {"pid", "pid.mirror", "round-robin", "latency", "latency-rr", "queue", "queue-reads"} == set(found)
    assert found["queue-reads"] == {"mirror.read_policy": "queue-reads /dev/a /dev/b"}


def test_the_experiment_is_the_benchmark_with_the_wishes_of_its_readers() -> None:
    tables = "".join(
        btrfs_read_policy.variant_table(name, knobs)
        for name, knobs in btrfs_read_policy.variants_of(("pid",), ("/dev/a", "/dev/b")).items()
    )
    values = {"target": "/mnt/file", "variants": tables, "defrag": '["defrag"]'}
    for full in (False, True):
        experiment = parse(btrfs_read_policy.SCENARIO.text(values, full=full))
        assert [variant.name for variant in experiment.variants][-1] == "placebo"
        cells = {(c.condition, c.option("rw"), c.option("iodepth"), c.option("numjobs")) for c in experiment.cells}
        tests = (("randread", "1"), ("randread", "32"), ("read", "16"))
        for load in ("idle", "defrag"):
            own = {(rw, depth, jobs) for condition, rw, depth, jobs in cells if condition == load}
            assert own == {(*test, jobs) for test in tests for jobs in ("1", "4")} | {("randrw", "32", None)}


@pytest.mark.root
@pytest.mark.fio
def test_a_small_run_ends_with_the_benchmark_s_own_tables_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = btrfs_read_policy.SCENARIO
    first, _, rest = one.template.partition("[workload.randread-4k-qd1]")
    _, _, end = rest.partition("# Policies of this kernel")
    cell = '[workload.random]\nrw = "randread"\nbs = "4k"\niodepth = 32\n\n# Policies of this kernel'
    brief = {**one.small, "trial": "300ms", "ramp": "0s", "blocks": "1", "budget": "3m"}
    small = dataclasses.replace(one, template=first + cell + end.replace("[condition.idle]\n", ""), small=brief)
    monkeypatch.setattr(catalogue, "SCENARIOS", (small,))
    every = btrfs_read_policy.variants_of

    def three(offered: Sequence[str], members: Sequence[str]) -> dict[str, dict[str, str]]:
        return {
            name: knobs for name, knobs in every(offered, members).items() if name in ("pid", "pid.mirror", "queue")
        }

    monkeypatch.setattr(btrfs_read_policy, "variants_of", three)
    with pytest.raises(SystemExit) as ended:
        cli(["scenario", "run", one.name, "--folder", "folder"])
    assert ended.value.code in (0, 1, 3)
    said = capsys.readouterr().out
    table = said.partition("defrag, medians of 1 trials each")[2].partition("\n\n")[0]
    assert "99.9% Lat (ms)" in table
    policies = re.findall(r"^(?:RandRead 4k QD32)? +1 +([\w.-]+) +[\d,]+", table, re.MULTILINE)
    assert policies == ["pid", "pid.mirror", "queue", "placebo"]
    assert "The background load moved" in said
    assert "Reads that each device served" in said
    assert left(tmp_path) == []
