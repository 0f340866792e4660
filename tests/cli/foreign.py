"""Running the command on results as a user does."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from iodelta.cli.main import cli
from iodelta.errors import IodeltaError

SHARED = Path(__file__).parents[3] / "shared"


class Said(NamedTuple):
    """What a command printed, as bytes, since what it shows must be safe as bytes."""

    returncode: int
    stdout: bytes
    stderr: bytes


def iodelta(*words: str, cwd: Path, stdin: bytes = b"") -> Said:
    """The command in this process: what it prints and its exit code, an IodeltaError as its message."""
    before = os.getcwd()
    os.chdir(cwd)
    try:
        done = CliRunner().invoke(cli, list(words), input=stdin, prog_name="iodelta")
    finally:
        os.chdir(before)
    error = done.exception
    if isinstance(error, IodeltaError):
        return Said(error.exit_code, done.stdout_bytes, f"{done.stderr}iodelta: {error}\n".encode())
    if error is not None and not isinstance(error, SystemExit):
        raise error
    with contextlib.suppress(ValueError):
        return Said(done.exit_code, done.stdout_bytes, done.stderr.encode())
    return Said(done.exit_code, done.stdout_bytes, b"")


def shared(name: str) -> Path:
    """A folder of the samples beside this checkout; the test is skipped with the reason where they are absent."""
    found = SHARED / name
    if not found.is_dir():
        pytest.skip(f"the samples are not beside this checkout (../shared/{name})")
    return found


def narrow(text: str, width: int = 80) -> bool:
    """Whether no line is wider than a terminal."""
    return all(len(line) <= width for line in text.splitlines())
