"""Originals are on disk before anything is changed, come back after a crash, and never from under a live run."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import click
import msgspec
import pytest
from click.testing import CliRunner
from knob.rooted import Rooted, target
from waiting import until

from iodelta.cli import commands as restore_command
from iodelta.cli.main import cli
from iodelta.errors import IodeltaError, MeasureError, RequestError
from iodelta.knob import Saved, knob
from iodelta.knob.registry import restore_script
from iodelta.lab import undo as undo_module
from iodelta.lab import workdir as workdir_module
from iodelta.lab.undo import UndoLog, give_up, lost, restore_pending, undo_log
from iodelta.lab.workdir import sweep, workdir
from iodelta.machine import LocalMachine
from iodelta.workload.leftovers import MARKER, carrying, marked

RATIO, SWAP = "/proc/sys/vm/dirty_expire_centisecs", "/proc/sys/vm/swappiness"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def machine(tmp_path: Path) -> Rooted:
    return Rooted(tmp_path / "root", {RATIO: "3000", SWAP: "60"})


def originals(machine: Rooted, path: str = RATIO) -> Callable[[], list[Saved]]:
    return lambda: [knob(_name(path), machine, target()).save()]


def _name(path: str) -> str:
    return "sysctl." + path.removeprefix("/proc/sys/").replace("/", ".")


def log_of(state: Path) -> Path:
    """Of the run called one."""
    return state / "pending" / "one.jsonl"


def make_busy(machine: Rooted) -> None:
    machine.kernel = lambda path, text: machine.refuse(path, text, "Device or resource busy (EBUSY)")


@contextlib.contextmanager
def run(machine: Rooted, name: str, path: str = RATIO) -> Iterator[UndoLog]:
    """A live run that has changed a setting."""
    with undo_log(machine, name, Path(f"/somewhere/{name}")) as log:
        log.keep(originals(machine, path))
        machine.write(path, "1")
        yield log


def crash(machine: Rooted, state: Path, name: str, path: str = RATIO) -> None:
    """Leave behind what a killed run leaves: its log, held by nobody, and the changed setting."""
    with run(machine, name, path):
        log = (state / "pending" / f"{name}.jsonl").read_bytes()
    (state / "pending" / f"{name}.jsonl").write_bytes(log)
    machine.write(path, "1")


def test_the_original_is_on_disk_before_the_setting_may_be_changed(machine: Rooted, state: Path) -> None:
    with undo_log(machine, "one", Path("/x")) as log:
        log.keep(originals(machine))
        assert '"3000"' in log_of(state).read_text()
        assert machine.writes == []


def test_the_end_of_a_run_puts_everything_back_and_leaves_no_log(machine: Rooted, state: Path) -> None:
    with run(machine, "one"):
        assert machine.read(RATIO).strip() == "1"
    assert machine.read(RATIO).strip() == "3000"
    assert not list((state / "pending").iterdir())


def test_an_error_in_the_middle_puts_everything_back_too(machine: Rooted) -> None:
    with pytest.raises(ZeroDivisionError), run(machine, "one"):
        _ = 1 / 0
    assert machine.read(RATIO).strip() == "3000"


def test_after_a_crash_the_next_start_puts_it_back_once(machine: Rooted, state: Path) -> None:
    crash(machine, state, "one")
    found = restore_pending(machine)
    assert [(outcome.folder, outcome.done) for outcome in found] == [("/somewhere/one", True)]
    assert machine.read(RATIO).strip() == "3000"
    machine.write(RATIO, "500")  # by the administrator, later
    assert restore_pending(machine) == []
    assert machine.read(RATIO).strip() == "500"


def test_a_state_directory_of_any_name_is_found_again(
    machine: Rooted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "st[a]te*"))
    crash(machine, tmp_path / "st[a]te*", "one")
    with pytest.raises(RequestError, match="iodelta restore"), undo_log(machine, "one", Path("/x")):
        pass
    with run(machine, "two", SWAP):
        assert [outcome.done for outcome in restore_pending(machine)] == [True]
        with pytest.raises(RequestError, match="still going on"), run(machine, "three", SWAP):
            pass
    assert machine.read(RATIO).strip() == "3000"


def test_a_live_run_is_left_alone(machine: Rooted) -> None:
    with run(machine, "one"):
        assert restore_pending(machine) == []
        assert machine.read(RATIO).strip() == "1"


def test_a_second_run_that_would_set_what_a_live_one_has_set_is_refused_and_changes_nothing(
    machine: Rooted, state: Path
) -> None:
    with run(machine, "one"):
        with pytest.raises(RequestError, match=r"/somewhere/one.*also sets sysctl\.vm\.dirty"), run(machine, "two"):
            pass
        assert machine.read(RATIO).strip() == "1", "the refused run did not put back what it never changed"
        assert {path.name for path in (state / "pending").iterdir()} == {"one.jsonl", "one.sh"}
    assert machine.read(RATIO).strip() == "3000"


def test_a_run_that_reboots_the_machine_is_refused_beside_another_and_another_beside_it(machine: Rooted) -> None:
    elsewhere = (("machine", "another"),)  # so that nothing is restored here
    reboots = [Saved("kernel", "/dev/x", elsewhere, "", volatile=False)]
    refused = pytest.raises(RequestError, match=r"/somewhere/one.*would end another run")
    with run(machine, "one", SWAP), undo_log(machine, "two", Path("/somewhere/two")) as log, refused:
        log.keep(lambda: reboots)
    with undo_log(machine, "one-kernel", Path("/somewhere/one")) as log:
        log.keep(lambda: reboots)
        with run(machine, "one", SWAP):  # its own settings, within a boot
            assert machine.read(SWAP).strip() == "1"
        with pytest.raises(RequestError, match=r"/somewhere/one.*still going on"), run(machine, "two", SWAP):
            raise AssertionError


def test_two_runs_that_set_different_things_go_on_side_by_side(machine: Rooted) -> None:
    with run(machine, "one"), run(machine, "two", SWAP):
        assert (machine.read(RATIO).strip(), machine.read(SWAP).strip()) == ("1", "1")
    assert (machine.read(RATIO).strip(), machine.read(SWAP).strip()) == ("3000", "60")


def test_what_a_live_run_has_set_is_not_taken_for_an_original_even_if_that_run_ends_meanwhile(machine: Rooted) -> None:
    with contextlib.ExitStack() as first, undo_log(machine, "two", Path("/two")) as log:
        first.enter_context(run(machine, "one"))

        def slow_reading() -> list[Saved]:
            found = originals(machine)()  # the value of the first run
            first.close()  # which ends now, and puts the true original back
            return found

        with pytest.raises(RequestError, match="still going on"):
            log.keep(slow_reading)
    assert machine.read(RATIO).strip() == "3000"


def test_what_cannot_be_put_back_stays_in_the_log_until_it_is_given_up(machine: Rooted, state: Path) -> None:
    crash(machine, state, "one")
    make_busy(machine)
    (outcome,) = restore_pending(machine)
    assert not outcome.done
    assert "EBUSY" in outcome.restored[0].error
    with pytest.raises(RequestError, match="iodelta restore --forget"), undo_log(machine, "one", Path("/x")):
        pass
    (outcome,) = restore_pending(machine)
    assert give_up(machine, outcome) == ""
    assert restore_pending(machine) == []
    assert restore_pending(machine) == []


@pytest.mark.parametrize("ending", ["killed", "ended"])
def test_what_is_back_is_not_written_again_when_the_rest_is(machine: Rooted, state: Path, ending: str) -> None:
    def busy(path: str, text: str) -> None:
        if path == SWAP and text == "60":
            machine.refuse(path, text, "Device or resource busy (EBUSY)")

    with undo_log(machine, "one", Path("/x")) as log:
        log.keep(originals(machine))
        log.keep(originals(machine, SWAP))
        for path in (RATIO, SWAP):
            machine.write(path, "1")
        kept = log_of(state).read_bytes()
        if ending == "ended":
            machine.kernel = busy
    if ending == "killed":
        log_of(state).write_bytes(kept + b'{"type":"saved","sa')
        for path in (RATIO, SWAP):
            machine.write(path, "1")
        machine.kernel = busy
        (outcome,) = restore_pending(machine)
        assert [bool(record.error) for record in outcome.restored] == [True, False]
    machine.write(RATIO, "500")  # by the administrator
    (outcome,) = restore_pending(machine)
    assert [record.saved.knob for record in outcome.restored] == ["sysctl.vm.swappiness"]
    assert RATIO not in (state / "pending" / "one.sh").read_text()
    machine.kernel = lambda path, text: None
    assert [outcome.done for outcome in restore_pending(machine)] == [True]
    assert (machine.read(RATIO).strip(), machine.read(SWAP).strip()) == ("500", "60")
    assert not list((state / "pending").iterdir())


def test_what_could_not_be_put_back_is_tried_again_in_the_same_order(machine: Rooted) -> None:
    with undo_log(machine, "one", Path("/x")) as log:
        log.keep(originals(machine))
        machine.write(RATIO, "2")
        log.keep(originals(machine))
        machine.write(RATIO, "1")
        make_busy(machine)
        assert all(record.error for record in log.undo())
        machine.kernel = lambda path, text: None
    assert machine.read(RATIO).strip() == "3000"


@pytest.mark.parametrize("forget", [False, True])
def test_a_process_that_cannot_be_ended_keeps_no_setting_from_being_put_back(
    machine: Rooted, state: Path, monkeypatch: pytest.MonkeyPatch, forget: bool
) -> None:
    def hangs(*_: object) -> NoReturn:
        raise MeasureError("processes 7 of an earlier run do not end")

    crash(machine, state, "one")
    with monkeypatch.context() as patch:
        patch.setattr(undo_module, "end_leftovers", hangs)
        (outcome,) = restore_pending(machine)
        if forget:
            give_up(machine, outcome)
    assert not outcome.done
    assert "processes 7" in outcome.problem
    assert outcome.restored[0].account == f"{RATIO} = 3000 again"
    assert machine.read(RATIO).strip() == "3000"
    assert len(restore_pending(machine)) == (0 if forget else 1), "kept until they have ended"


DAMAGES = {
    "not JSON": b"\0\0\0\0",
    "of another kind": b'{"type":"saved","saved":{}}',
    "cut": b'{"type":"saved","saved":{"knob":"sysctl.vm.swap',
}


def damage(state: Path, number: int, new: bytes) -> Path:
    """Damage a line of the log of the run called one."""
    log = log_of(state)
    lines = log.read_bytes().splitlines()
    lines[number - 1] = new
    log.write_bytes(b"".join(line + b"\n" for line in lines))
    return log


def crash_of_two(machine: Rooted, state: Path) -> None:
    """A killed run that had two settings changed, each in a line of its own; its script too."""
    with run(machine, "one") as log:
        log.keep(originals(machine, SWAP))
        pending = state / "pending"
        kept = {name: (pending / name).read_bytes() for name in ("one.jsonl", "one.sh")}
    for name, data in kept.items():
        (pending / name).write_bytes(data)
    machine.write(RATIO, "1")
    machine.write(SWAP, "1")


@pytest.mark.parametrize("new", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize(("number", "back"), [(1, {RATIO, SWAP}), (2, {SWAP}), (3, {RATIO})])
def test_a_damaged_line_keeps_no_other_from_being_put_back(
    machine: Rooted, state: Path, number: int, back: set[str], new: bytes
) -> None:
    crash_of_two(machine, state)
    log = damage(state, number, new)
    script = log.with_suffix(".sh").read_bytes()
    (outcome,) = restore_pending(machine)
    values = {RATIO: "3000", SWAP: "60"}
    assert {path for path, value in values.items() if machine.read(path).strip() == value} == back
    assert not outcome.done
    assert outcome.damaged == (number,)
    assert f"line {number} of {log} cannot be read" in outcome.problem
    assert str(log.with_suffix(".sh")) in outcome.problem
    assert log.with_suffix(".sh").read_bytes() == script, "it alone knows what the line said"


@pytest.mark.parametrize(("number", "value", "back"), [(2, b"3000", {SWAP}), (3, b"60", {RATIO})])
def test_a_line_in_which_a_digit_changed_is_a_damaged_one(
    machine: Rooted, state: Path, number: int, value: bytes, back: set[str]
) -> None:
    crash_of_two(machine, state)
    line = log_of(state).read_bytes().splitlines()[number - 1]
    assert line.count(b'"%b"' % value) == 1
    damage(state, number, line.replace(b'"%b"' % value, b'"%b1"' % value))
    (outcome,) = restore_pending(machine)
    values = {RATIO: "3000", SWAP: "60"}
    assert {path for path, text in values.items() if machine.read(path).strip() == text} == back
    assert (outcome.done, outcome.damaged) == (False, (number,))
    assert "digest" in outcome.problem


def test_of_a_damaged_log_too_nothing_is_put_back_twice(machine: Rooted, state: Path) -> None:
    crash_of_two(machine, state)
    damage(state, 2, b"?")
    restore_pending(machine)
    machine.write(SWAP, "10")  # by the administrator, later
    (again,) = restore_pending(machine)
    assert machine.read(SWAP).strip() == "10"
    assert (again.restored, again.damaged, again.done) == ((), (2,), False)


def test_a_damaged_log_keeps_no_other_log_from_being_put_back(machine: Rooted, state: Path) -> None:
    crash(machine, state, "two", SWAP)
    log_of(state).write_text('{"type":"saved","saved":{}}\n')
    bad, good = restore_pending(machine)
    assert "the script next to it is missing" in bad.problem
    assert good.done
    assert machine.read(SWAP).strip() == "60"
    assert log_of(state).exists()


@pytest.mark.parametrize("data", [b"", bytes(300), b'{"type":"exp', b"\n"])
def test_a_log_of_which_nothing_is_left_keeps_its_script(machine: Rooted, state: Path, data: bytes) -> None:
    """A log has its first line before it has its name: one without it was damaged, and is not an empty one."""
    crash_of_two(machine, state)
    log = log_of(state)
    log.write_bytes(data)
    (outcome,) = restore_pending(machine)
    assert not outcome.done
    assert log.exists()
    assert log.with_suffix(".sh").exists()


def test_what_is_given_up_is_said_and_the_script_of_an_unreadable_line_is_kept(machine: Rooted, state: Path) -> None:
    crash_of_two(machine, state)
    log = damage(state, 3, b"?")
    script = log.with_suffix(".sh").read_bytes()
    make_busy(machine)
    (outcome,) = restore_pending(machine)
    said = " ".join(lost(outcome))
    assert "original of sysctl.vm.dirty_expire_centisecs" in said
    assert f"{RATIO} = 3000" in said
    assert f"line 3 of {log}" in said
    kept = give_up(machine, outcome)
    assert Path(kept).read_bytes() == script
    assert restore_pending(machine) == []
    machine.kernel = lambda path, text: None
    with run(machine, "one", SWAP):  # a run of the same name begins with an empty log
        pass
    assert Path(kept).read_bytes() == script


def test_what_nobody_was_shown_is_not_given_up(machine: Rooted, state: Path) -> None:
    crash_of_two(machine, state)
    make_busy(machine)
    (outcome,) = restore_pending(machine)
    shown = msgspec.structs.replace(outcome, restored=outcome.restored[:1])
    with pytest.raises(MeasureError, match="it contains more than was shown"):
        give_up(machine, shown)
    assert log_of(state).exists()


@pytest.mark.parametrize(("answer", "given_up"), [(True, True), (False, False), (click.Abort(), False)])
def test_at_a_terminal_forget_gives_up_after_a_yes_alone(
    machine: Rooted, state: Path, monkeypatch: pytest.MonkeyPatch, answer: bool | click.Abort, given_up: bool
) -> None:
    def ask(*_: object, **__: object) -> bool:
        if isinstance(answer, click.Abort):
            raise answer
        return answer

    crash_of_two(machine, state)
    make_busy(machine)
    monkeypatch.setattr("iodelta.machine.reach", lambda name: contextlib.nullcontext(machine))
    monkeypatch.setattr(restore_command, "can_ask", lambda: True)
    monkeypatch.setattr(click, "confirm", ask)
    done = CliRunner().invoke(cli, ["restore", "--forget"])
    assert log_of(state).exists() != given_up
    if given_up:
        assert done.exit_code == 0
    else:
        assert isinstance(done.exception, RequestError)


def test_forget_says_what_is_lost_and_asks(machine: Rooted, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash_of_two(machine, state)
    make_busy(machine)
    monkeypatch.setattr("iodelta.machine.reach", lambda name: contextlib.nullcontext(machine))
    log = log_of(state)

    def restore(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, ["restore", *words])
        error = done.exception if isinstance(done.exception, IodeltaError) else None
        return (error.exit_code, f"{done.output}{error}") if error else (done.exit_code, done.output)

    assert restore()[0] == 4
    code, said = restore("--forget")
    assert code == 2
    assert f"{RATIO} = 3000" in said
    assert "nothing was given up" in said
    assert "--yes" in said
    assert log.exists()
    assert log.with_suffix(".sh").exists()
    code, said = restore("--forget", "--format", "json")
    assert code == 2
    assert log.exists()
    code, said = restore("--forget", "--yes")
    assert code == 0
    assert f"{RATIO} = 3000" in said
    assert not log.exists()
    assert restore("--forget") == (0, "nothing to restore\n"), "where nothing is left nobody has to be asked"


def test_a_line_torn_by_the_kill_was_never_followed_by_a_change(machine: Rooted, state: Path) -> None:
    crash(machine, state, "one")
    with open(log_of(state), "a") as file:
        file.write('{"type":"saved","sav')
    assert [outcome.done for outcome in restore_pending(machine)] == [True]
    assert machine.read(RATIO).strip() == "3000"


def test_the_script_for_sh_undoes_in_the_order_of_restore(machine: Rooted, state: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"

    def saying(*words: str) -> list[Saved]:
        values = [json.dumps({"apply": ["true"], "restore": saying_of(word)}) for word in words]
        return [knob("command", machine, target()).save(values)]

    def saying_of(word: str) -> list[str]:
        return ["sh", "-c", 'echo "$1" >> "$0"', str(told), word]

    with undo_log(machine, "one", Path("/x")) as log:
        log.keep(lambda: saying("1st of 1", "2nd of 1"))
        log.keep(lambda: saying("1st of 2", "2nd of 2"))
        subprocess.run(["sh", str(state / "pending" / "one.sh")], check=True)
        by_script = told.read_text()
        told.unlink()
        assert {path.name for path in (state / "pending").iterdir()} == {"one.jsonl", "one.sh"}
    assert by_script == told.read_text() == "2nd of 2\n1st of 2\n2nd of 1\n1st of 1\n"


def test_the_script_for_sh_undoes_what_resets_others_first(machine: Rooted) -> None:
    saved = [Saved(f"sysctl.{name}", "/dev/x", ((f"/proc/sys/{name}", "1"),), "boot-1") for name in ("a", "b")]
    command = Saved("command", "/dev/x", (("machine", ""), ("restore", '["rmmod","x"]')), "boot-1", volatile=False)
    lines = restore_script([saved[0], command, saved[1]]).splitlines()
    assert [line for line in lines if line.startswith("# ")][-3:] == ["# command", "# sysctl.b", "# sysctl.a"]


def test_the_script_for_sh_disables_io_limits_that_were_not_enabled_unless_another_group_needs_them(
    tmp_path: Path,
) -> None:
    control, group = tmp_path / "cgroup.subtree_control", tmp_path / "iodelta-0123456789ab"
    saved = Saved(
        "cgroup.io_max", "/dev/x", (("group", str(group)), ("enabled io in", str(control))), "", volatile=False
    )
    script = restore_script([saved])
    other = tmp_path / "iodelta-another"
    for place in (group, other):
        place.mkdir()
    subprocess.run(["sh", "-c", script], check=False)
    assert not group.exists()
    assert not control.exists()
    other.rmdir()
    subprocess.run(["sh", "-c", script], check=True)
    assert control.read_text() == "-io"


def test_where_no_log_can_be_kept_nothing_is_changed_and_the_way_out_is_named(
    machine: Rooted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "file" / "state"))
    with pytest.raises(MeasureError, match=r"(?s)Not a directory.*IODELTA_STATE"), run(machine, "one"):
        pass
    assert machine.writes == []


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_under_the_log_stops_before_anything_is_changed(
    machine: Rooted, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "")

    with undo_log(machine, "one", Path("/x")) as log:
        monkeypatch.setattr(os, call, full)
        with pytest.raises(MeasureError, match="No space left"):
            log.keep(originals(machine))
    assert machine.writes == []


def test_what_a_killed_run_left_running_is_ended_and_what_it_left_lying_is_swept(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "pending").mkdir(parents=True)
    (state / "pending" / "abc.jsonl").write_text('{"type":"experiment","experiment":"abc","folder":"/f"}\n')
    (state / "pending" / ".abd.unborn").write_text("")
    program = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(program, env={**os.environ, **marked("abc")}) as left:
        (outcome,) = restore_pending(LocalMachine())
        assert outcome.ended == (left.pid,)
        assert left.wait() < 0
    assert not list((state / "pending").iterdir())


def test_a_setting_that_was_being_made_by_a_killed_run_is_not_made_after_the_restore(
    state: Path, tmp_path: Path
) -> None:
    begun, held, file = tmp_path / "begun", tmp_path / "held", tmp_path / "file"
    held.touch()
    script = 'touch "$0"; while test -e "$1"; do sleep 0.05; done; touch "$2"'
    apply = ["sh", "-c", script, str(begun), str(held), str(file)]
    code = (
        "import sys; from pathlib import Path; from iodelta.knob import knob; from iodelta.lab.undo import undo_log;"
        "from iodelta.machine import LocalMachine; from iodelta.probe.topology import resolve;"
        "machine = LocalMachine(); one = knob('command', machine, resolve(machine, '/tmp')); value = sys.argv[1]\n"
        "with undo_log(machine, 'abc', Path('/f')) as log:\n"
        "    log.keep(lambda: [one.save([value])])\n"
        "    one.apply(value)"
    )
    value = json.dumps({"apply": apply, "restore": ["rm", "-f", str(file)]})
    with subprocess.Popen([sys.executable, "-c", code, value]) as process:
        until(begun.exists)
        process.kill()
    (outcome,) = restore_pending(LocalMachine())
    assert outcome.done
    assert outcome.ended
    held.unlink()
    until(lambda: not carrying(LocalMachine(), MARKER, "abc"))
    assert not file.exists()


def test_what_is_started_belongs_to_the_innermost_experiment_and_after_it_to_none(machine: Rooted) -> None:
    def owner() -> str:
        return machine.run(["sh", "-c", 'printf %s "$IODELTA_EXPERIMENT"']).text

    outside = owner()
    with undo_log(machine, "one", Path("/x")):
        with undo_log(machine, "two", Path("/x")):
            assert owner() == "two"
            assert machine.run(["sh", "-c", 'printf %s "$IODELTA_EXPERIMENT"'], env=marked("load")).text == "load"
        assert owner() == "one"
    assert owner() == outside


def test_a_directory_that_is_in_use_is_never_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workdir_module, "_place", lambda machine: str(tmp_path))
    orphan = tmp_path / "iodelta-work-orphan"
    orphan.mkdir()
    (orphan / "fio.json").write_text("{}")
    machine = LocalMachine()
    with workdir(machine) as own:
        sweep(machine)
        assert not orphan.exists()
        assert Path(own).is_dir()
    assert not Path(own).exists()
