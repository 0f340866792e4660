"""This machine: commands run as they are given, end with all they started, and say why they cannot."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from waiting import until

from iodelta.errors import MachineError
from iodelta.machine import LocalMachine

HERE = LocalMachine()


def test_a_command_s_words_reach_it_untouched_by_any_shell() -> None:
    words = ["$(reboot)", "a b", "*", "'\"", ";", "\n"]
    done = HERE.run([sys.executable, "-c", "import sys; print(sys.argv[1:])", *words])
    assert done.text.strip() == str(words)


def test_output_error_exit_code_and_input_are_kept_byte_for_byte() -> None:
    script = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1]); sys.stderr.write('e'); sys.exit(7)"
    done = HERE.run([sys.executable, "-c", script], stdin=b"\xff\x00ab")
    assert (done.stdout, done.stderr, done.returncode) == (b"ba\x00\xff", b"e", 7)


def test_a_command_over_its_time_is_ended_with_everything_it_started() -> None:
    done = HERE.run(["sh", "-c", "sleep 97 & sleep 98"], timeout=0.2)
    assert done.timed_out
    assert done.returncode in (-signal.SIGTERM, -signal.SIGKILL), "the latter where it had no CPU to end politely"
    until(lambda: _running("^sleep 9[78]$") == "")  # a busy machine takes its time to end what was told to end


def _running(pattern: str) -> str:
    return subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True).stdout


def test_a_command_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    process = HERE.start(["sh", "-c", "trap '' TERM; touch ignored; while :; do sleep 0.05; done"], cwd=str(tmp_path))
    until((tmp_path / "ignored").exists)
    assert process.stop(grace=0.2) == -signal.SIGKILL


def test_a_terminal_s_ctrl_c_does_not_reach_a_load() -> None:
    process = HERE.start(["sleep", "60"])
    try:
        assert os.getsid(process.pid) == process.pid
        assert process.wait(0.05) is None
    finally:
        process.stop()


@pytest.mark.parametrize("words", [["/nonexistent/fio"], ["fio\0x"]])
def test_a_command_that_cannot_start_is_named(words: list[str]) -> None:
    with pytest.raises(MachineError, match="cannot start"):
        HERE.run(words)


def test_files_are_read_and_written_with_the_kernel_s_word_when_they_cannot(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("old")
    HERE.write(str(file), "new")
    assert HERE.read(str(file)) == "new"
    with pytest.raises(MachineError, match="ENOENT"):
        HERE.read(str(tmp_path / "y"))
    with pytest.raises(MachineError, match="ENOENT"):
        HERE.write(str(tmp_path / "y"), "a knob that is not there must not become a file")
    assert not (tmp_path / "y").exists()


def test_commands_run_where_no_temporary_file_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nonexistent"])
    assert HERE.run(["cat"], stdin=b"in").stdout == b"in"


def test_where_nothing_can_be_kept_of_what_a_command_says_it_is_not_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.EMFILE, "")

    with pytest.raises(MachineError, match=r"cannot start touch.*ENOENT"):
        HERE.start(["touch", str(tmp_path / "x")], stdout="/nonexistent/out")
    monkeypatch.setattr(os, "memfd_create", full)
    with pytest.raises(MachineError, match="EMFILE"):
        HERE.run(["touch", str(tmp_path / "x")])
    assert not (tmp_path / "x").exists()
