"""The verbs of a machine mean the same over SSH as here, whatever is in a name."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest
from processes import alive
from waiting import LIMIT, until

from iodelta.errors import MachineError, RequestError
from iodelta.machine import LocalMachine, reach
from iodelta.machine.shell import SEPARATOR
from iodelta.machine.ssh import SshMachine

from .host import COREUTILS, Host

pytestmark = [pytest.mark.root, pytest.mark.beside, pytest.mark.xdist_group("ssh")]  # a network namespace, an sshd

HERE = LocalMachine()
HOSTILE = (
    "a b",
    "$(touch pwned)",
    "`touch pwned`",
    "it's",
    '"',
    "-n",
    "new\nline",
    "\\",
    "*",
    "[a]",
    "~",
    "é",
    "\udcff",
)


@pytest.mark.parametrize(
    "words",
    [
        ("sh", "-c", "echo out; echo err >&2; exit 3"),
        ("sh", "-c", 'cat; pwd; printf %s "$X"'),
        ("printf", "%s|", *HOSTILE, ""),
        ("sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2"),
    ],
)
def test_a_command_says_the_same_and_ends_the_same(machine: SshMachine, tmp_path: Path, words: tuple[str, ...]) -> None:
    there, here = (m.run(words, stdin=b"in\0put\n", env={"X": "a'b $c"}, cwd=str(tmp_path)) for m in (machine, HERE))
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)
    assert there.args == here.args == words
    assert list(tmp_path.iterdir()) == []


def test_a_command_ended_by_a_signal_says_which(machine: SshMachine) -> None:
    assert machine.run(["sh", "-c", "kill -9 $$"]).returncode == -signal.SIGKILL


def test_a_command_that_prints_its_environment_has_all_of_it_kept(machine: SshMachine) -> None:
    done = machine.run(["sh", "-c", 'env; echo "$IODELTA_CONNECTION" >&2; echo end; exit 3'])
    assert "\nIODELTA_CONNECTION=" in done.text
    assert done.text.endswith("\nend\n")
    assert done.returncode == 3
    assert done.stderr


@pytest.mark.parametrize("start", [False, True])
def test_a_command_that_is_not_there_is_named_with_the_machine(machine: SshMachine, *, start: bool) -> None:
    with pytest.raises(MachineError, match=r"ssh:there: cannot start no-such-program.*ENOENT") as caught:
        (machine.start if start else machine.run)(["no-such-program"])
    assert "installed there" in caught.value.remedy


def test_what_cannot_be_read_or_written_has_the_kernels_reason(machine: SshMachine, tmp_path: Path) -> None:
    for path, reason in (("/nonexistent", "ENOENT"), ("/etc", "EISDIR")):
        for one in (machine, HERE):
            with pytest.raises(MachineError, match=rf"{path}: cannot read: .*\({reason}\)"):
                one.read(path)
    for path, reason in (("/proc/sys/vm/swappiness", "EINVAL"), (f"{tmp_path}/new", "ENOENT"), ("/etc", "EISDIR")):
        for one in (machine, HERE):
            with pytest.raises(MachineError, match=rf"{path}: cannot write 'nonsense': .*\({reason}\)"):
                one.write(path, "nonsense")
    assert list(tmp_path.iterdir()) == []


def test_files_of_any_name_and_any_bytes_are_carried_both_ways(machine: SshMachine, tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    for name in HOSTILE:
        there, back = tmp_path / f"there{name}", tmp_path / "back"
        source = tmp_path / "source"
        source.write_bytes(data[: 1 + len(os.fsencode(name))])
        machine.put(str(source), str(there))
        machine.append(str(there), b"\0more")
        machine.get(str(there), str(back))
        assert back.read_bytes() == there.read_bytes() == source.read_bytes() + b"\0more"
    source.write_bytes(data)
    machine.put(str(source), str(there))
    assert machine.read_bytes(str(there)) == data
    assert not Path("pwned").exists()


@pytest.mark.parametrize("broken", ["", "#!/bin/sh\nexec head -c 3\n", "#!/bin/sh\nkill -9 $$\n"])
def test_what_was_not_written_there_whole_is_never_taken_for_written(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setenv("PATH", host.env["PATH"])
    poor = Path(host.programs("sh", *(name for name in COREUTILS.split() if name != "base64")))
    if broken:
        (poor / "base64").write_text(broken)
        (poor / "base64").chmod(0o755)
    port = 2230 + len(broken)
    host.serve(port, f"SetEnv PATH={poor}")
    host.alias(f"poor{port}", port=port)
    file, source = tmp_path / "file", tmp_path / "source"
    file.write_text("")
    source.write_text("from here")
    with reach(f"ssh:poor{port}") as other:
        for call in (
            lambda: other.append(str(file), b"a record"),
            lambda: other.put(str(source), str(file)),
            lambda: other.write(str(file), "a value"),
            lambda: other.run(["tee", str(tmp_path / "tee")], stdin=b"a script"),
        ):
            with pytest.raises(MachineError, match="base64 there did not decode") as caught:
                call()
            assert "coreutils" in caught.value.remedy
        other.append(str(file), b"")
    assert not (tmp_path / "tee").exists()


def test_patterns_match_the_same_names(machine: SshMachine, tmp_path: Path) -> None:
    for name in HOSTILE:
        (tmp_path / f"x{name}").write_text("")
    (tmp_path / "xdangling").symlink_to("nowhere")
    (tmp_path / ".xhidden").write_text("")
    for pattern in ("*", "x[!a]*", "x[[]a]", "xa b", "x$(touch pwned)", "xa\n*", "x-?", "*/*", "none*", ".x*"):
        assert machine.glob(f"{tmp_path}/{pattern}") == HERE.glob(f"{tmp_path}/{pattern}"), pattern
    assert machine.glob("/sys/block/*/queue/scheduler") == HERE.glob("/sys/block/*/queue/scheduler")


def test_a_command_over_its_time_is_ended_with_its_children(machine: SshMachine, tmp_path: Path) -> None:
    mark = f"{time.time_ns() % 10**9 + 10**9}"
    done = machine.run(["sh", "-c", f"sleep {mark} & sleep {mark}"], timeout=0.3)
    assert done.timed_out
    until(lambda: not _sleeping(mark))


def test_a_started_process_is_one_session_and_stops_as_a_whole(machine: SshMachine, tmp_path: Path) -> None:
    mark = f"{time.time_ns() % 10**9 + 10**9}"
    process = machine.start(["sh", "-c", f"echo begun; sleep {mark} & sleep {mark}"], stdout=str(tmp_path / "out"))
    until(lambda: len(_sleeping(mark)) == 2)
    assert process.poll() is None
    assert process.wait(0.01) is None
    assert os.getsid(process.pid) == process.pid
    assert process.stop(LIMIT) == -signal.SIGTERM
    assert process.poll() == -signal.SIGTERM
    assert (tmp_path / "out").read_text() == "begun\n"
    until(lambda: not _sleeping(mark))
    quick = machine.start(["sh", "-c", "exit 7"], cwd="/")
    assert quick.wait() == quick.wait() == 7


def test_asked_together_the_answers_are_the_same(machine: SshMachine, tmp_path: Path) -> None:
    texts = {"one": "1\n", "empty": "", "absent": None, "it's one": "2", "boot": machine.read(SEPARATOR)}
    for name, text in texts.items():
        if text is not None:
            (tmp_path / name).write_text(text)
    paths = [str(tmp_path), *(f"{tmp_path}/{name}" for name in texts)]

    def look(paths: list[str]) -> list[object]:
        found: list[object] = []
        for path in paths:
            try:
                found.append(machine.read(path))
            except MachineError as error:
                found.append(str(error))
        return [*found, machine.glob(f"{tmp_path}/*"), machine.run(["stat", "-c", "%s", "--", *paths]).text]

    for files in (paths, paths[:-1]):  # a text with the separator in it makes each be asked again by itself
        alone = look(files)
        for _ in range(2):
            with machine.together("a look", str(len(files))):
                assert look(files) == alone
    with machine.together("a look", str(len(paths) - 1)):
        assert machine.read(paths[1]) == "1\n"
        machine.write(paths[1], "2")
        assert machine.read(paths[1]) == "2\n", "what is changed in the block is seen in the block"


def test_a_lock_there_is_the_lock_of_whoever_runs_there(machine: SshMachine, tmp_path: Path, host: Host) -> None:
    file = tmp_path / "it's $(x)"
    file.write_text("")
    assert machine.lock(str(tmp_path / "none")) is None
    held = machine.lock(str(file))
    assert held is not None
    assert HERE.lock(str(file)) is None
    assert machine.lock(str(file), wait=0.1) is None
    held.release()
    here = HERE.lock(str(file))
    assert here is not None
    assert machine.lock(str(file)) is None
    here.release()
    directory = machine.lock(str(tmp_path))
    assert directory is not None
    directory.release()


def test_nothing_outlives_a_connection_that_ends_in_the_middle(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", host.env["PATH"])
    mark = f"{time.time_ns() % 10**9 + 10**9}"
    with contextlib.suppress(ZeroDivisionError), reach("ssh:there") as other:
        other.start(["sh", "-c", f"setsid sleep {mark} & trap '' TERM; sleep {mark}; sleep {mark}"])
        until(lambda: len(_sleeping(mark)) >= 2)
        _ = 1 / 0
    until(lambda: not _sleeping(mark))


def test_its_clock_is_its_own(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", host.env["PATH"])
    poor = Path(host.programs("sh", "flock", *(name for name in COREUTILS.split() if name != "date")))
    (poor / "date").write_text("#!/bin/sh\necho 4102444800.25\n")
    (poor / "date").chmod(0o755)
    host.serve(2201, f"SetEnv PATH={poor}")
    host.alias("ahead", port=2201)
    with reach("ssh:ahead") as other:
        assert other.time() == pytest.approx(4102444800, abs=300)


@pytest.mark.parametrize("name", ["-oProxyCommand=touch pwned", "a;b", "a b", "", "u@-x", "$(x)", "a\nb"])
def test_a_host_that_could_be_an_option_or_a_command_is_no_host(name: str) -> None:
    with pytest.raises(RequestError, match="is not a valid host"):
        reach(f"ssh:{name}")


def _sleeping(mark: str) -> list[int]:
    return [pid for pid, words in alive() if words[:2] == [b"sleep", mark.encode()]]
