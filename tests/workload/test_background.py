"""A background load runs while trials run, accounts for itself, and ends surely."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import until

from iodelta.errors import MachineError, MeasureError, RequestError
from iodelta.machine import Machine
from iodelta.trial import Background
from iodelta.workload import background
from iodelta.workload.background import BackgroundLoad, background_findings, background_fio, substitute
from iodelta.workload.leftovers import MARKER, carrying, end_leftovers, marked


def watched(load: BackgroundLoad, seconds: float) -> Background:
    begin = time.time()
    time.sleep(seconds)
    return load.account((begin, time.time()))


def watched_until(load: BackgroundLoad, condition: Callable[[Background], object]) -> Background:
    """What a load did until something was seen of it."""
    begin = time.time()
    until(lambda: condition(load.account((begin, time.time()))))
    return load.account((begin, time.time()))


def test_a_load_that_ends_is_started_again_and_its_ends_are_counted(machine: Machine, tmp_path: Path) -> None:
    with BackgroundLoad(machine, ["sleep", "0.4"], workdir=str(tmp_path)) as load:
        account = watched_until(load, lambda account: account.restarts >= 3)
        until(lambda: watched(load, 1.0).alive > 0.7)  # not in every second of a busy machine
    assert account.restarts - 1 <= len(account.exit_codes) <= account.restarts + 1
    assert set(account.exit_codes) == {0}
    assert 0 < account.alive <= 1.0


def test_a_load_that_fails_now_and_then_goes_on_and_is_a_finding(machine: Machine, tmp_path: Path) -> None:
    with BackgroundLoad(machine, ["sh", "-c", "sleep 1.2; exit 3"], workdir=str(tmp_path)) as load:
        account = watched_until(load, lambda account: account.exit_codes)
    assert set(account.exit_codes) == {3}
    assert "background.failing" in [finding.rule for finding in background_findings(account)]


def test_a_trial_without_its_load_is_a_hard_finding_and_with_part_of_it_a_warning() -> None:
    found = {alive: background_findings(Background(("x",), alive)) for alive in (0.0, 0.4, 0.9, 0.96)}
    severities = {alive: [f.severity for f in findings] for alive, findings in found.items()}
    assert severities == {0.0: ["hard"], 0.4: ["hard"], 0.9: ["warning"], 0.96: []}


def test_a_killed_load_is_missing_from_its_trial_only_as_long_as_it_was_gone(machine: Machine, tmp_path: Path) -> None:
    with BackgroundLoad(machine, ["sleep", "100"], workdir=str(tmp_path), env=marked("killed-load")) as load:
        begin = time.time()
        (pid,) = carrying(machine, MARKER, "killed-load")
        os.kill(pid, signal.SIGKILL)
        until(lambda: load.account((begin, time.time())).restarts)
        account = load.account((begin, time.time()))
        assert carrying(machine, MARKER, "killed-load") not in ((), (pid,))
    assert account.exit_codes == (-9,)
    assert account.restarts == 1


@pytest.mark.parametrize("command", [["false"], ["sh", "-c", "echo no such disk >&2; exit 7"]])
def test_a_load_that_dies_at_once_again_and_again_is_an_error_that_names_it(
    machine: Machine, tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "AT_ONCE", 60.0)  # a busy machine may take a second to start it
    with (
        pytest.raises(MeasureError, match="3 times at once") as caught,
        BackgroundLoad(machine, command, workdir=str(tmp_path)),
    ):
        pass
    assert command[0] in caught.value.place
    assert len(command) == 1 or "no such disk" in caught.value.what


def test_a_command_that_cannot_be_started_again_is_told_with_the_trial(machine: Machine, tmp_path: Path) -> None:
    script = tmp_path / "load"
    script.write_text('#!/bin/sh\nrm -f -- "$0"\nwhile test -e stay; do sleep 0.05; done\n')
    script.chmod(0o755)
    (tmp_path / "stay").touch()
    with BackgroundLoad(machine, [str(script)], workdir=str(tmp_path)) as load:
        begin = time.time()
        assert load.account((begin, time.time() + 1)).restarts == 0
        (tmp_path / "stay").unlink()
        with pytest.raises(MachineError, match="cannot start"):
            until(lambda: load.account((begin, time.time())).restarts > 0)


def test_everything_a_load_started_ends_with_it_also_what_left_its_session(machine: Machine, tmp_path: Path) -> None:
    command = ["sh", "-c", "setsid sleep 100 & sleep 100 & wait"]
    with BackgroundLoad(machine, command, workdir=str(tmp_path), env=marked("session-test")):
        until(lambda: len(carrying(machine, MARKER, "session-test")) == 3)
    assert carrying(machine, MARKER, "session-test") == ()


def test_a_load_ends_when_the_trials_fail(machine: Machine, tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError),
        BackgroundLoad(machine, ["sleep", "100"], workdir=str(tmp_path), env=marked("exception-test")),
    ):
        raise RuntimeError("the trial failed")
    assert carrying(machine, MARKER, "exception-test") == ()


def test_a_load_that_ignores_sigterm_ends_all_the_same(machine: Machine, tmp_path: Path) -> None:
    command = ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
    with BackgroundLoad(machine, command, workdir=str(tmp_path), env=marked("stubborn")):
        assert carrying(machine, MARKER, "stubborn") != ()
    assert carrying(machine, MARKER, "stubborn") == ()


def test_what_a_killed_iodelta_left_behind_is_found_and_ended(machine: Machine, tmp_path: Path) -> None:
    program = (
        "from iodelta.machine import LocalMachine; import os\n"
        "from iodelta.workload.background import BackgroundLoad; from iodelta.workload.leftovers import marked\n"
        f"load = BackgroundLoad(LocalMachine(), ['sleep', '100'], workdir={str(tmp_path)!r}, env=marked('orphans'))\n"
        "load.__enter__(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9
    found = carrying(machine, MARKER, "orphans")
    assert len(found) == 1
    assert carrying(machine, MARKER, "orphan") == ()  # only the whole name counts
    assert end_leftovers(machine, "orphans") == found
    assert carrying(machine, MARKER, "orphans") == ()
    assert end_leftovers(machine, "orphans") == ()


@pytest.mark.fio
def test_the_rate_of_a_fio_load_is_the_one_it_was_given(machine: Machine, tmp_path: Path, data: str) -> None:
    options = (("rw", "randread"), ("bs", "64k"), ("direct", "1"), ("rate_iops", "100"), ("numjobs", "2"))
    rate = pytest.approx(2 * 100 * 65536, rel=0.1)
    with BackgroundLoad(machine, background_fio(options, data), workdir=str(tmp_path)) as load:
        assert watched(load, 2.0).alive == 1.0
        until(lambda: watched(load, 2.0).rate == rate)  # after a stall of the machine fio catches up


def test_the_rate_of_a_command_counts_the_children_it_has_had(machine: Machine, tmp_path: Path, data: str) -> None:
    """dd after dd, each done in a moment: their bytes are those of the shell that waited for them."""
    command = ["sh", "-c", 'while :; do dd if="$1" of=/dev/null bs=1M iflag=direct status=none; sleep 0.2; done', "x"]
    size, begun = os.path.getsize(data), time.monotonic()
    with BackgroundLoad(machine, [*command, data], workdir=str(tmp_path)) as load:
        begin = time.time()
        until(lambda: (load.account((begin, time.time())).rate or 0) * (time.time() - begin) >= 3 * size)
        end = time.time()
        account = load.account((begin, end))
    assert account.rate is not None
    rounds = account.rate * (end - begin) / size
    assert 2 <= rounds <= (time.monotonic() - begun) / 0.2


def test_a_fio_load_uses_the_target() -> None:
    rw = ("rw", "randread")
    assert r"--filename=/dev/a\:b" in background_fio([rw], "/dev/a:b")
    there = background_fio([rw], "/srv", directory=True, files="$jobnum/$filenum")
    assert {"--directory=/srv", "--filename_format=$jobnum/$filenum"} < set(there)


@pytest.mark.parametrize(
    "name", ["filename", "directory", "filename_format", "opendir", "unique_filename", "filenam", "dir", "opend"]
)
def test_a_fio_load_names_no_place_of_its_own_which_no_guard_has_looked_at(name: str) -> None:
    with pytest.raises(RequestError, match=name) as caught:
        background_fio([("rw", "randwrite"), (name, "/dev/sdb")], "/srv/scratch", place="condition x")
    assert caught.value.place == "condition x"
    assert "make the load a command" in caught.value.remedy


@pytest.mark.parametrize(
    "option",
    [
        *(("runtime", "10"), ("exec_prerun", "sync"), ("ioengine", "exec"), ("unlink", "1")),
        *(("mem", "mmap:/srv/x"), ("ioengine", "nbd"), ("ioengin", "external:/x.so"), ("read_iolog", "/x")),
    ],
)
def test_a_fio_load_may_not_end_itself_run_commands_delete_or_write_elsewhere(option: tuple[str, str]) -> None:
    with pytest.raises(RequestError):
        background_fio([("rw", "read"), option], "/dev/x")


@pytest.mark.parametrize(("mode", "reads"), [(None, True), ("randread", True), ("randrw", False), ("write", False)])
def test_a_fio_load_that_reads_can_neither_write_nor_make_files(mode: str | None, reads: bool) -> None:
    words = background_fio([] if mode is None else [("rw", mode)], "/dev/x")
    assert ("--readonly" in words) is reads
    assert "--allow_file_create=0" in words


def test_placeholders_become_part_of_single_words_and_never_of_a_shell() -> None:
    values = {"target.mount": "/mnt/a b; rm -rf /", "target.path": "/dev/x"}
    words = substitute(["btrfs", "defrag", "-r", "{target.mount}", "of={target.path}/y", "{other}", "{}"], values)
    assert words == ("btrfs", "defrag", "-r", "/mnt/a b; rm -rf /", "of=/dev/x/y", "{other}", "{}")


def test_an_unknown_placeholder_is_answered_with_those_there_are() -> None:
    with pytest.raises(RequestError, match=r"\{target.mont\} is not known here") as caught:
        substitute(["ls", "{target.mont}"], {"target.mount": "/mnt"})
    assert "{target.mount}" in caught.value.remedy
