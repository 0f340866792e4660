"""A setting of the whole kernel has one run at a time, whatever its user, state directory, HOME or container."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iodelta.errors import RequestError
from iodelta.knob import knob
from iodelta.lab.undo import UndoLog, restore_pending, undo_log
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

HERE = LocalMachine()
NAME, FILE = "sysctl.vm.dirty_expire_centisecs", Path("/proc/sys/vm/dirty_expire_centisecs")

OTHER = f"""
import sys
from pathlib import Path
sys.path[:0] = {sys.path!r}
from iodelta.errors import RequestError
from iodelta.lab.undo import undo_log
import test_global_knobs as tests
try:
    with undo_log(tests.HERE, "other", Path("/tmp/other")) as log:
        tests.keep(log)
except RequestError as error:
    print(error)
else:
    print("taken")
"""

pytestmark = pytest.mark.root


def keep(log: UndoLog) -> None:
    log.keep(lambda: [knob(NAME, HERE, resolve(HERE, "/tmp")).save(["1234"])])


@pytest.fixture(autouse=True)
def original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    before = FILE.read_text()
    yield before
    FILE.write_text(before)
    for note in Path("/dev").glob(".iodelta-*"):
        if str(tmp_path) in note.read_text():
            note.unlink()


def elsewhere(state: Path, words: list[str]) -> str:
    """What a run with another state directory says that wants the same setting."""
    environment = {**os.environ, "IODELTA_STATE": str(state), "HOME": str(state)}
    done = subprocess.run([*words, sys.executable, "-c", OTHER], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


CONTAINERS = {
    "another state directory": [],
    "a container with mounts of its own": [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "--uts",
        "--ipc",
        "--net",
    ],
    "a container with a /dev of its own": [
        *("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--net", "sh", "-c"),
        *('mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9 && exec "$@"', "sh"),
    ],
}


@pytest.mark.parametrize("where", CONTAINERS)
def test_a_second_run_never_takes_a_changed_value_for_the_original(tmp_path: Path, original: str, where: str) -> None:
    with undo_log(HERE, "first", tmp_path / "folder") as log:
        keep(log)
        FILE.write_text("1234")
        said = elsewhere(tmp_path / "other", CONTAINERS[where])
        assert str(tmp_path / "state/pending/first.jsonl") in said
        assert f"has set {FILE} and not restored it" in said
    assert FILE.read_text() == original
    assert elsewhere(tmp_path / "other", CONTAINERS[where]) == "taken\n"


def test_what_a_killed_run_left_changed_is_nobodys_original(tmp_path: Path, original: str) -> None:
    pid = os.fork()
    if not pid:
        with contextlib.ExitStack() as stack:
            keep(stack.enter_context(undo_log(HERE, "killed", tmp_path / "folder")))
            FILE.write_text("1234")
            os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
    assert FILE.read_text() == "1234\n"
    assert "has set" in elsewhere(tmp_path / "other", [])
    assert all(outcome.done for outcome in restore_pending(HERE))
    assert FILE.read_text() == original
    assert elsewhere(tmp_path / "other", []) == "taken\n"


def test_a_note_of_another_run_is_no_note_of_ours(tmp_path: Path) -> None:
    with undo_log(HERE, "first", tmp_path / "folder") as log:
        keep(log)
        with undo_log(HERE, "second", tmp_path / "folder2") as other, pytest.raises(RequestError):
            keep(other)
        assert "has set" in elsewhere(tmp_path / "other", [])
