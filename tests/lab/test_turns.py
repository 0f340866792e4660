"""One run at a time on a physical device: whoever comes second is refused, or waits, and a kill lets go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from workshop import Workshop, unmount

from iodelta.cli.main import cli
from iodelta.errors import MeasureError
from iodelta.lab.turns import FILE, BusyError, alone, patiently, physical
from iodelta.machine import LocalMachine
from iodelta.machine.vm import VmMachine
from iodelta.probe.topology import resolve

HERE = LocalMachine()
Others = list[subprocess.Popen[str]]

HOLDER = """
import sys
from pathlib import Path
from iodelta.lab.turns import alone
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve
machine = LocalMachine()
with alone(machine, [resolve(machine, path) for path in sys.argv[2:]], Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))


@pytest.fixture
def others() -> Iterator[Others]:
    """Other runs, ended in the end."""
    made: Others = []
    yield made
    for one in made:
        one.communicate()


def other(others: Others, folder: str, *paths: str | Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", HOLDER, folder, *map(str, paths)]
    one = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    others.append(one)
    assert one.stdout is not None
    assert one.stdout.readline() == "held\n"
    return one


def enter(*paths: str | Path, folder: str = "/second") -> str:
    with alone(HERE, [resolve(HERE, str(path)) for path in paths], Path(folder)):
        return "measured"


def names(*paths: str | Path) -> tuple[str, ...]:
    return physical(HERE, [resolve(HERE, str(path)) for path in paths])


def test_the_second_run_on_a_disk_is_refused_and_is_told_of_the_first(tmp_path: Path, others: Others) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.touch()
    second.touch()
    one = other(others, "/runs/first", first)
    with pytest.raises(BusyError) as caught:
        enter(second)
    assert caught.value.exit_code == 2
    assert caught.value.place == "/runs/first"
    assert f"process {one.pid}, since 20" in caught.value.what
    assert "--wait" in caught.value.remedy
    one.communicate()
    assert enter(second) == "measured"
    assert enter(second) == "measured"  # nothing of it is left


def test_a_kill_lets_go_of_the_device(tmp_path: Path, others: Others) -> None:
    one = other(others, "/runs/first", tmp_path)
    with pytest.raises(BusyError):
        enter(tmp_path)
    os.kill(one.pid, signal.SIGKILL)
    one.wait()
    assert enter(tmp_path) == "measured"


def test_who_waits_can_be_stopped(tmp_path: Path, others: Others) -> None:
    other(others, "/runs/first", tmp_path)
    with pytest.raises(BusyError):
        patiently(lambda: enter(tmp_path), wait=True, stop=lambda: True, note=lambda text: None)


@pytest.mark.root
def test_partitions_arrays_and_loop_devices_are_as_their_disks(workshop: Workshop) -> None:
    home = names(workshop.place)
    disk = workshop.loop(48)
    first, second = workshop.partition(disk, parts=2)
    assert names(disk) == names(first) == names(second)
    assert names(disk) == (home if not home[0].startswith("filesystem") else (os.path.basename(disk),))
    above = workshop.loop(first)
    assert names(above) == names(disk)


def test_a_run_within_a_run_of_the_same_folder_keeps_what_it_has(tmp_path: Path, others: Others) -> None:
    target = resolve(HERE, str(tmp_path))
    with alone(HERE, [target], Path("/search")):
        with alone(HERE, [target], Path("/search")):
            pass
        with pytest.raises(BusyError):
            enter(tmp_path)
    other(others, "/runs/first", tmp_path)


@pytest.mark.parametrize("kind", ["link to a file", "link to nothing", "pipe", "directory"])
def test_what_somebody_put_in_the_place_of_a_lock_is_neither_followed_nor_opened(kind: str, tmp_path: Path) -> None:
    [name] = names(tmp_path)
    victim, place = tmp_path / "victim", tmp_path / "state" / "devices" / f"iodelta-{name}"
    place.parent.mkdir(parents=True)
    if kind == "link to a file":
        victim.write_text("all of it")
    if kind.startswith("link"):
        place.symlink_to(victim)
    else:
        (os.mkfifo if kind == "pipe" else os.mkdir)(place)
    before = victim.exists() and victim.read_text()
    with pytest.raises(MeasureError, match="not a plain file"):
        enter(tmp_path)
    assert (victim.exists() and victim.read_text()) == before


ANOTHER = FILE.replace("stat -c '%i %n'", ":") + 'exec 9<"$file"; flock -n 9 && echo held || echo refused; cat'
"""Another user's run, as far as locks go."""


@pytest.mark.root
def test_runs_of_root_and_of_another_user_see_each_other(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IODELTA_STATE")
    monkeypatch.setattr(LocalMachine, "state", str(workshop.place / "of-root"))
    point = workshop.place / "memory"
    point.mkdir()
    workshop.run("mount", "-t", "tmpfs", "none", point)
    workshop.undo(lambda: unmount(point))
    (point / "disk").write_bytes(bytes(1 << 20))
    node = workshop.loop(point / "disk")  # a device that nobody else measures on meanwhile
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", ANOTHER, "sh", "/nowhere"]
    user = [*words, *names(node)]
    with alone(HERE, [resolve(HERE, node)], Path("/runs/first")):
        done = subprocess.run(user, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.stdout == "refused\n", done.stderr
    with subprocess.Popen(user, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == "held\n"
        with pytest.raises(BusyError, match=r"process \d+, of another user"):
            enter(node)
        one.communicate()
    assert enter(node) == "measured"


@pytest.mark.root
def test_a_guest_that_is_given_a_disk_of_this_machine_takes_its_turn_on_it(workshop: Workshop, others: Others) -> None:
    node = workshop.loop(8)
    one = other(others, "/runs/first", node)
    guest = VmMachine(f"disk={node},disk=64m")
    with pytest.raises(BusyError) as caught, alone(guest, [], Path("/second")):
        pass
    assert caught.value.place == "/runs/first"
    one.communicate()
    with alone(guest, [], Path("/second")), pytest.raises(BusyError):
        enter(node, folder="/third")


@pytest.mark.root
def test_devices_in_memory_are_apart_and_a_run_on_both_takes_both(workshop: Workshop, others: Others) -> None:
    point = workshop.place / "memory"
    point.mkdir()
    workshop.run("mount", "-t", "tmpfs", "none", point)
    workshop.undo(lambda: unmount(point))
    nodes = []
    for name in ("a", "b"):
        with open(point / name, "wb") as file:
            file.truncate(1 << 20)
        nodes.append(workshop.loop(point / name))
    one = other(others, "/runs/first", nodes[0])
    assert enter(nodes[1]) == "measured"
    with pytest.raises(BusyError):
        enter(*nodes)
    assert enter(nodes[1]) == "measured"  # a refused run keeps nothing
    one.communicate()
    assert enter(*nodes) == "measured"


@pytest.mark.fio
@pytest.mark.parametrize("command", ["run", "prepare"])
def test_a_plan_is_not_shown_on_a_device_that_is_measured_now(command: str, tmp_path: Path, others: Others) -> None:
    target = tmp_path / "disk.img"
    target.write_bytes(bytes(1 << 20))
    other(others, "/runs/first", target)
    words = {
        "run": [
            *("--target", str(target), "--variant", "a:fio.ioengine=psync", "--variant", "b:fio.ioengine=sync"),
            "--",
            "--rw=randread",
            "--bs=4k",
        ],
        "prepare": [str(target), "--fill", "1", "--purge", "none", "--destroy", str(target)],
    }
    done = CliRunner().invoke(cli, [command, *words[command]])
    assert isinstance(done.exception, BusyError), done.output
    assert done.exception.place == "/runs/first"
    assert done.stdout == ""


COMMAND = """
question = "Which is quicker?"
[target]
path = "none"
[workload]
command = ["echo", "{text}"]
only_reads = true
[variant.a]
"workload.text" = "a"
[variant.b]
"workload.text" = "b"
[design]
blocks = 1
trial = "0.2s"
"""


def test_a_command_that_uses_no_disk_is_not_refused_while_one_is_measured(
    tmp_path: Path, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other(others, "/runs/first", tmp_path)
    (tmp_path / "cpu.toml").write_text(COMMAND)
    done = CliRunner().invoke(cli, ["run", "cpu.toml", "--fail-on", "nothing"])
    assert done.exit_code == 0, done.output
    (tmp_path / "disk.toml").write_text(COMMAND.replace('path = "none"', ""))
    assert isinstance(CliRunner().invoke(cli, ["run", "disk.toml"]).exception, BusyError)
    (tmp_path / "wrong.toml").write_text(COMMAND.replace("{text}", "{target}").replace('"workload.text"', "env.TEXT"))
    refused = CliRunner().invoke(cli, ["run", "wrong.toml"]).exception
    assert "a command with {target}, need a target" in str(refused)
