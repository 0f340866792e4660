"""An engine that cannot be used here says why before the first trial."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from iodelta.errors import MachineError
from iodelta.machine import Completed, LocalMachine, Machine
from iodelta.workload.engines import engine_refusal
from iodelta.workload.parsing import Job, check

pytestmark = pytest.mark.fio

FORBID_IO_URING = """
import ctypes, os, struct, sys
load, equal, give = 0x20, 0x15, 0x06  # BPF: load the syscall's number, compare, return
errno_eperm, allow = 0x00050001, 0x7fff0000
program = b"".join(struct.pack("HBBI", *i) for i in [
    (load, 0, 0, 0), (equal, 0, 1, 425), (give, 0, 0, errno_eperm), (give, 0, 0, allow)])  # 425: io_uring_setup
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Program(4, program)), 0, 0):
    sys.exit("no seccomp here")
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Without(LocalMachine):
    """This machine with another value, or none, of kernel.io_uring_disabled."""

    def __init__(self, value: str | None) -> None:
        self.value = value

    def read(self, path: str) -> str:
        if path != "/proc/sys/kernel/io_uring_disabled":
            return super().read(path)
        if self.value is None:
            raise MachineError("cannot read", place=path)
        return self.value


@pytest.fixture
def launcher(tmp_path: Path) -> tuple[str, ...]:
    """A container's seccomp filter: io_uring_setup answers EPERM."""
    script = tmp_path / "forbid.py"
    script.write_text(FORBID_IO_URING)
    return (sys.executable, str(script))


def test_an_engine_that_works_has_no_refusal_and_leaves_no_file(machine: Machine, tmp_path: Path) -> None:
    assert engine_refusal(machine, "psync", str(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


def test_an_engine_that_fio_lacks_is_named(machine: Machine, tmp_path: Path) -> None:
    refusal = engine_refusal(machine, "no-such-engine", str(tmp_path))
    assert refusal is not None
    assert refusal.startswith("no-such-engine: ")
    assert "cannot open shared object file" in refusal


@pytest.mark.parametrize(
    ("switch", "reason"),
    [
        ("2\n", "io_uring: Operation not permitted (kernel.io_uring_disabled = 2)"),
        ("0\n", "io_uring: Operation not permitted (a seccomp filter or container forbids it)"),
        (None, "io_uring: Operation not permitted"),
    ],
)
def test_a_forbidden_io_uring_names_what_forbids_it(
    tmp_path: Path, launcher: tuple[str, ...], switch: str | None, reason: str
) -> None:
    refusal = engine_refusal(Without(switch), "io_uring", str(tmp_path), launcher=launcher)
    assert refusal == reason


class Busy(LocalMachine):
    """So busy that fio is stopped before it has answered."""

    def run(self, args: Sequence[str], **how: Any) -> Completed:
        return Completed(tuple(args), -15, b"", b"", 60.0, timed_out=True)


def test_a_fio_that_does_not_answer_in_time_has_refused_nothing(tmp_path: Path) -> None:
    """On a busy machine the plan said that libaio is not here, and then the run measured with it."""
    with pytest.raises(MachineError, match="did not answer in"):
        engine_refusal(Busy(), "libaio", str(tmp_path))
    with pytest.raises(MachineError, match="did not answer in"):
        check(Busy(), [Job("reads", ("--name=reads", "--rw=read"))], str(tmp_path))
