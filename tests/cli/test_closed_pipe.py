"""A reader that goes away, as ``| head -1`` does, ends a command quietly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fio_files import write


@pytest.mark.parametrize("words", [("show",), ("show", "--format", "json"), ("audit",), ("report",)])
def test_a_closed_pipe_ends_a_command_like_the_signal_for_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    write(tmp_path / "x.json")
    reader, writer = os.pipe()
    os.close(reader)
    code = "from iodelta.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, words[0], "x.json", *words[1:]],
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")
