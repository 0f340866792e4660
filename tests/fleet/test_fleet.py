"""A fleet as its user meets it: every host measured once, in trouble, killed, gone on with; and each host as it was."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from acceptance.stand import GOOD, Running, Stand, finished, kinds, queue, set_queue, shell
from daskers import dask_cluster
from processes import paused
from ssh.host import COREUTILS
from waiting import until
from workshop import unmount

from iodelta.lab.turns import alone
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

from .stand import PORT, Fleet, Member, Witness, measured, with_own_clock

pytest.importorskip("distributed", reason="iodelta[fleet] is not installed")
pytestmark = [pytest.mark.root, pytest.mark.fio, pytest.mark.beside, pytest.mark.xdist_group("fleet")]


def test_every_host_is_measured_once_on_its_own_disk_and_what_does_not_pass_fails_with_its_remedy(
    stand: Stand,
) -> None:
    """Two hosts, the first of them under a second name and with a second disk; and five that cannot be measured."""
    fleet = Fleet(stand, "a b")
    for member in fleet.members.values():
        set_queue(member.node, "scheduler", "kyber")
    other = fleet.apart()
    tables = _troubled(stand, fleet)
    tables["again"] = f'ssh = "a"\ntargets = {{ disk = "{fleet.members["a"].node}" }}'
    tables["second"] = f'ssh = "a"\ntargets = {{ disk = "{other}" }}'
    fleet.inventory("".join(f"[host.{name}]\n{table}\n" for name, table in tables.items()))
    done = fleet.run()
    assert done.code == 4, done
    found = fleet.status()
    failed = dict.fromkeys(("full", "key", "nodisk", "noclass", "password"), "failed")
    kept, spared = "a", "again"  # the first by name
    measured_ = {kept: "done", spared: "skipped", "second": "done", "b": "done"}
    assert {name: host["state"] for name, host in found.items()} == failed | measured_
    _own_disk_each(fleet, {kept: fleet.members["a"].node, "second": other, "b": fleet.members["b"].node})
    assert found[spared]["reason"] == f"the same host and device as {kept}: one machine is measured once"
    assert not fleet.place(spared).exists()
    (_, first_end), (second, _) = sorted(spans(fleet, kept, "second"))
    assert first_end <= second
    assert "the same host as" in done.err
    said = {name: f"{found[name]['reason']}\n{found[name]['remedy']}" for name in failed}
    assert re.search(r"Host key verification failed.*\n.*ssh-keygen -f", said["key"])
    assert re.search(r"Permission denied.*\n.*without asking", said["password"])
    assert "No space left on device" in said["full"]
    assert "there is nothing at this path" in said["nodisk"]
    assert "no target of class 'disk' for this host" in said["noclass"]
    before = {name: (fleet.place(name) / "journal.jsonl").read_bytes() for name in (kept, "b")}
    assert fleet.run("--hosts", f"{kept},b").code == 0
    assert before == {name: (fleet.place(name) / "journal.jsonl").read_bytes() for name in (kept, "b")}
    fetched(stand, fleet, "b", kept)


def _troubled(stand: Stand, fleet: Fleet) -> dict[str, str]:
    """Hosts that cannot be measured, by the trouble that they have: their tables of the inventory."""
    member, place = fleet.members["a"], fleet.members["a"].host.place
    (place / "known-other").write_text(f"{member.host.far} {(place / 'other.pub').read_text()}")
    full = place / "full"
    full.mkdir()
    shell("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(full))
    stand.undo(lambda: unmount(full))
    with contextlib.suppress(OSError):
        (full / "filling").write_bytes(bytes(1 << 20))
    member.host.alias("key", f"UserKnownHostsFile {place}/known-other", "StrictHostKeyChecking yes", port=PORT)
    member.host.serve(2301, "PasswordAuthentication yes", "KbdInteractiveAuthentication yes")
    member.host.alias("password", port=2301, key="other")
    member.serve(f"SetEnv IODELTA_STATE={full}", port=2302, name="full")
    tables = dict.fromkeys(("key", "password"), 'targets = { disk = "/dev/sdb" }')
    tables["full"] = f'targets = {{ disk = "{fleet.apart()}" }}'
    tables["nodisk"] = 'ssh = "a"\ntargets = { disk = "/dev/nosuchdisk" }'
    tables["noclass"] = 'ssh = "a"\ntargets = { other = "/dev/sdb" }'
    return tables


def _own_disk_each(fleet: Fleet, nodes: dict[str, str]) -> None:
    for name, node in nodes.items():
        (session,) = kinds(fleet.place(name), "session")
        assert session["target"]["path"] == node
        assert session["machine"] == ("ssh:b" if name == "b" else "ssh:a")
    for member in fleet.members.values():
        assert queue(member.node, "scheduler") == "kyber"


def fetched(stand: Stand, fleet: Fleet, source: str, name: str) -> None:
    """A folder that a host measured itself is fetched, and a changed one is not."""
    there = stand.place / "there"
    shutil.copytree(fleet.place(source), there)
    shutil.rmtree(fleet.place(name))
    done = stand.run("fleet", "fetch", "fleet", str(there), "--hosts", name)
    assert f"{name}: fetched from {there}" in done.err
    assert done.code == 0, done
    assert finished(fleet.place(name)) == finished(fleet.place(source))
    shutil.rmtree(fleet.place(name))
    raw = next((there / "raw").iterdir())
    raw.write_bytes(raw.read_bytes()[:-1])
    done = stand.run("fleet", "fetch", "fleet", str(there), "--hosts", name)
    assert "not fetched" in done.err
    assert raw.name in done.err
    assert done.code == 4, done
    assert not fleet.place(name).exists()


def is_begun(fleet: Fleet, name: str, trials: int) -> bool:
    """Whether so many trials are finished on a host and the next one runs."""
    place = fleet.place(name)
    return len(kinds(place, "finished")) >= trials and len(kinds(place, "started")) > trials


def begun(fleet: Fleet, name: str, trials: int) -> None:
    """Wait for it."""
    until(lambda: is_begun(fleet, name, trials))


def spans(fleet: Fleet, *names: str) -> list[tuple[float, float]]:
    """When the experiment of each host began and ended."""
    found = []
    for name in names:
        (session,) = kinds(fleet.place(name), "session")
        (ended,) = kinds(fleet.place(name), "ended")
        found.append((session["at"], ended["at"]))
    return found


@pytest.mark.night
def test_a_host_that_stays_away_is_lost_and_one_that_is_cut_off_is_waited_for_while_others_go_on(stand: Stand) -> None:
    fleet = Fleet(stand, "a b")
    fleet.ask(trial="1500ms", blocks=4)  # the cable is unplugged before the last trial
    b = fleet.members["b"]
    set_queue(b.node, "scheduler", "kyber")
    shell("ip", "route", "add", "unreachable", f"{b.host.far}/32")
    try:
        assert fleet.run("--hosts", "b", "--patience", "1s").code == 4
    finally:
        shell("ip", "route", "delete", "unreachable", f"{b.host.far}/32")
    assert fleet.last("b")["state"] == "lost"
    assert "cannot connect" in fleet.last("b")["reason"]
    with b.host.hurry():
        running = fleet.start()
        begun(fleet, "b", 1)
        kept = kinds(fleet.place("b"), "finished")
        b.host.cable("down")
        until(lambda: "the connection is lost" in fleet.last("b")["reason"])
        assert fleet.last("b")["state"] == "waiting"
        b.host.cable("up")
        done = running.wait()
    assert done.code == 0, done
    assert fleet.states() == {"a": "done", "b": "done"}
    assert len(kinds(fleet.place("a"), "session")) == 1
    assert kinds(fleet.place("b"), "finished")[: len(kept)] == kept
    assert queue(b.node, "scheduler") == "kyber"


@pytest.mark.night
def test_reboots_another_kernel_a_clock_that_jumps_and_a_slow_host_are_named(stand: Stand) -> None:
    """A is rebooted; b reads ten times slower and comes back with another kernel; the clock of c jumps."""
    fleet = Fleet(stand, "a b c")
    set_off = with_own_clock(fleet.members["c"], "jumps")
    _slowed(stand, fleet.members["b"], "slow")
    fleet.inventory()
    file = stand.place / "fleet.toml"
    file.write_text(
        file.read_text().replace("[host.b]", '[host.b]\nssh = "slow"').replace("[host.c]", '[host.c]\nssh = "jumps"')
    )
    fleet.ask(trial="1500ms", blocks=2)

    def rebooted(name: str, kernel: str = "") -> None:
        fleet.members[name].reboot(kernel)
        fleet.members[name].host.cut()

    troubles: dict[str, Callable[[], object]] = {
        "a": lambda: rebooted("a"),
        "b": lambda: rebooted("b", "6.18.1-test"),
        "c": lambda: set_off(7200),
    }

    def all_in_trouble() -> bool:
        for name in [one for one in troubles if is_begun(fleet, one, 1)]:
            troubles.pop(name)()
        return not troubles

    running = fleet.start()
    until(all_in_trouble)
    done = running.wait()
    assert done.code == 4, done
    found = fleet.status()
    assert {name: host["state"] for name, host in found.items()} == {"a": "done", "b": "drained", "c": "done"}
    assert "kernel.release: 6.12.5-test | 6.18.1-test" in found["b"]["reason"]
    assert found["a"]["notes"] == ["rebooted 1 time since its experiment began"]
    (note,) = found["c"]["notes"]
    moved = re.fullmatch(r"its clock moved by \+(\d+) s against this machine's", note)
    assert moved is not None, note
    assert abs(int(moved[1]) - 7200) < 600  # by half of what the question and its answer took
    assert all(one["seconds"] < 3600 for one in kinds(fleet.place("c"), "finished"))
    fleet.members["b"].reboot("6.12.5-test")
    assert fleet.run().code == 0
    found = fleet.status()
    assert {host["state"] for host in found.values()} == {"done"}
    assert re.fullmatch(r"\d+ times slower than the median of the other hosts", found["b"]["notes"][-1])


def _slowed(stand: Stand, member: Member, alias: str) -> None:
    """A second sshd of a host, whose users read a tenth of what the question asks for."""
    group, number = stand.group(member.node)
    _limit(group, number, 40)
    daemon = member.serve(port=2302, name=alias)
    (group / "cgroup.procs").write_text(str(daemon))
    stand.undo(lambda: _emptied(group))  # its daemon ends later


def closed_now() -> str:
    """A window of one minute in twelve hours."""
    clock = time.localtime()
    begin = (60 * clock.tm_hour + clock.tm_min + 720) % 1440
    end = (begin + 1) % 1440
    return f"{begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}"


@pytest.mark.night
def test_a_host_in_use_is_waited_for_or_skipped_with_his_name_and_one_outside_its_window_until_it_opens(
    stand: Stand,
) -> None:
    window = closed_now()
    fleet = Fleet(stand, "a b", b=f'window = "{window}"')
    here = LocalMachine()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IODELTA_STATE", str(fleet.members["a"].host.state))
        with alone(here, [resolve(here, fleet.members["a"].node)], Path("/runs/mine")):
            done = fleet.run("--in-use", "skip")
            assert done.code == 3, done
            found = fleet.status()
            assert {name: host["state"] for name, host in found.items()} == {"a": "skipped", "b": "skipped"}
            assert "in use by /runs/mine" in found["a"]["reason"]
            assert found["b"]["reason"] == f"outside its window ({window})"
            assert not fleet.place("b").exists()
            waiting = fleet.start("--hosts", "a")
            until(lambda: fleet.last("a")["state"] == "waiting" and "/runs/mine" in fleet.last("a")["reason"])
            assert waiting.alive()
    assert waiting.wait().code == 0
    assert fleet.states() == {"a": "done", "b": "skipped"}


def test_cancel_ends_the_runs_and_the_same_command_continues(stand: Stand) -> None:
    fleet = Fleet(stand, "a b")
    fleet.ask(trial="1s", blocks=100)  # it is never measured to its end
    for member in fleet.members.values():
        set_queue(member.node, "scheduler", "kyber")
    running = fleet.start()
    begun(fleet, "a", 1)
    begun(fleet, "b", 1)
    assert stand.run("fleet", "cancel", "fleet", "--hosts", "a").code == 0
    until(lambda: fleet.last("a")["reason"] == "cancelled")
    assert fleet.status()["b"]["state"] == "running"
    assert queue(fleet.members["a"].node, "scheduler") == "kyber"
    running.signal(signal.SIGINT)
    done = running.wait()
    assert done.code == 3, done
    assert fleet.states() == {"a": "waiting", "b": "waiting"}
    assert queue(fleet.members["b"].node, "scheduler") == "kyber"
    kept = {name: len(finished(fleet.place(name))) for name in "ab"}
    assert min(kept.values()) >= 1
    said = stand.run("fleet", "cancel", "fleet")
    assert "nothing to cancel" in said.err
    fleet.ask(trial="1s", blocks=101)
    said = fleet.run()
    assert said.code == 2, said
    assert "about another question" in said.err


def test_check_says_of_every_host_what_stands_against_a_run(stand: Stand) -> None:
    fleet = Fleet(stand, "a")
    bare = fleet.members["a"].host.programs("sh", "flock", *COREUTILS.split())
    fleet.members["a"].serve(f"SetEnv PATH={bare}", port=2301, name="bare")
    fleet.members["a"].host.alias("closed", port=2399)
    nodes = {"bare": stand.loop(), "closed": stand.loop()}
    fleet.inventory("".join(f'[host.{name}]\ntargets = {{ disk = "{node}" }}\n' for name, node in nodes.items()))
    done = stand.run("fleet", "check", "question.toml", "--format", "json", "--placebo", "20s", "--folder", "aa")
    assert done.code == 4, done
    hosts = {host["name"]: {step["step"]: step for step in host["steps"]} for host in json.loads(done.out)["hosts"]}
    placebo = hosts["a"].pop("placebo")
    assert [step for step in hosts["a"].values() if not step["ok"]] == []
    # Up to 5 % of placebos raise an alarm by chance: the step says whichever this one did.
    said = r"no alarm in \d+ trials" if placebo["ok"] else r"its placebo, .* was called \w+ in .*"
    assert re.fullmatch(said, placebo["said"]), placebo
    assert hosts["a"]["environment"]["said"].startswith("Linux 6.12.5-test")
    assert not hosts["bare"]["fio"]["ok"]
    assert "fio not found" in hosts["bare"]["fio"]["said"]
    assert "Connection refused" in hosts["closed"]["reach"]["said"]
    (stand.place / "writes.toml").write_text(
        (stand.place / "question.toml").read_text().replace("randread", "randwrite")
    )
    done = stand.run("fleet", "check", "writes.toml", "--hosts", "a")
    assert done.code == 4, done
    assert f"--destroy a:{fleet.members['a'].node}" in done.out
    allowed = ("--destroy", f"a:{fleet.members['a'].node}")
    assert stand.run("fleet", "check", "writes.toml", "--hosts", "a", *allowed).code == 0
    assert stand.run("fleet", "check", "writes.toml", "--hosts", "bare", *allowed).code == 2


@pytest.mark.night
def test_workers_of_an_own_scheduler_measure_and_one_that_is_killed_costs_no_host(stand: Stand) -> None:
    fleet = Fleet(stand, "a")
    fleet.ask(trial="700ms", blocks=2)
    with dask_cluster(stand.place, 2, stand.env) as (address, workers):
        running = fleet.start("--scheduler", address)
        until(lambda: any(_measures(one.pid) for one in workers))
        (busy,) = [one for one in workers if _measures(one.pid)]
        begun(fleet, "a", 1)
        busy.kill()
        done = running.wait()
        assert done.code == 0, done
        assert fleet.states() == {"a": "done"}


def _measures(worker: int) -> bool:
    """Whether the process that measures a host is one of its own."""
    return (
        subprocess.run(["pgrep", "-f", "-P", str(worker), "fleet_host"], capture_output=True, check=False).returncode
        == 0
    )


def _emptied(group: Path) -> None:
    for process in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(OSError):
            (group.parent / "cgroup.procs").write_text(process)


def _limit(group: Path, number: str, rate: int) -> None:
    if (group / "io.max").exists():
        (group / "io.max").write_text(f"{number} riops={rate}")
    else:
        (group / "blkio.throttle.read_iops_device").write_text(f"{number} {rate}")


@pytest.mark.night
def test_questions_use_no_device_together_and_go_on_with_each_trial_made_once_after_a_kill(stand: Stand) -> None:
    """Two questions to one host at the same time; both fleets are killed, which leaves nothing running or changed."""
    fleet = Fleet(stand, "a")
    fleet.ask(trial="500ms", blocks=2)
    node, places = fleet.members["a"].node, [stand.place / f"fleet{number}/hosts/a" for number in range(2)]
    set_queue(node, "scheduler", "kyber")

    def start(number: int) -> Running:
        return stand.start("fleet", "run", "question.toml", "--folder", f"fleet{number}", "--in-use", "wait")

    with Witness({node: node}) as witness:
        running = [start(number) for number in range(2)]
        until(lambda: any(len(kinds(place, "started")) > 1 for place in places))
        for one in running:
            one.signal(signal.SIGKILL)
            one.wait()
        until(lambda: not stand.processes())
        assert queue(node, "scheduler") == "kyber"
        for one in [start(number) for number in range(2)]:
            done = one.wait()
            assert done.code == 0, done
    assert witness.most == {node: 1}
    assert [measured(place) for place in places] == [{0, 1}, {0, 1}]


@pytest.mark.night
def test_blocks_that_are_spread_over_hosts_go_on_without_one_that_is_lost(stand: Stand) -> None:
    fleet = Fleet(stand, "a b")
    node = fleet.members["a"].node
    fleet.members["b"].node = node  # one experiment has one path
    fleet.inventory()
    fleet.ask(trial="700ms", blocks=6)
    set_queue(node, "scheduler", "kyber")
    with fleet.members["b"].host.hurry():
        running = fleet.start("--spread")
        until(lambda: len(kinds(stand.place / "fleet", "finished")) >= 4)
    with paused(running.pid):  # else it may end before, on a machine that starts programs slowly
        fleet.members["b"].host.cable("down")
    done = running.wait()
    fleet.members["b"].host.cable("up")
    assert done.code == 4, done
    assert "ssh:b is lost, the other hosts continue" in done.err
    blocks = {one["block"] for one in kinds(stand.place / "fleet", "started")}
    assert {4, 5} <= blocks
    done = fleet.run("--spread")
    assert done.code in GOOD, done
    assert len(finished(stand.place / "fleet")) == 12
    assert queue(node, "scheduler") == "kyber"


@pytest.mark.night
def test_a_full_disk_here_ends_the_fleet_with_a_word_and_the_next_call_continues(stand: Stand) -> None:
    fleet = Fleet(stand, "a")
    fleet.ask(trial="700ms", blocks=4)
    place = stand.place / "fleet"
    place.mkdir()
    shell("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place))
    stand.undo(lambda: unmount(place))
    set_queue(fleet.members["a"].node, "scheduler", "kyber")
    running = fleet.start()
    begun(fleet, "a", 1)
    with contextlib.suppress(OSError):
        (place / "logs/filling").write_bytes(bytes(8 << 20))
    done = running.wait()
    assert done.code == 4, done
    assert "No space left on device" in done.err + done.out
    assert queue(fleet.members["a"].node, "scheduler") == "kyber"
    (place / "logs/filling").unlink()
    assert fleet.run().code == 0
    assert measured(fleet.place("a")) == {0, 1, 2, 3}
