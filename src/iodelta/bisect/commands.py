"""Run the user's own commands with a time limit and a way to stop them; their output is kept in files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from iodelta.bisect.question import Words
from iodelta.bisect.tree import Unbuildable, check_room
from iodelta.machine import Machine
from iodelta.workload.leftovers import MARKER, end_leftovers

TAIL = 20_000


class Stopped(Exception):  # noqa: N818  # control flow, not an error
    """The user wants to stop; the visit does not count."""


def carry_out(
    machine: Machine,
    words: Words,
    *,
    what: str,
    timeout: float,
    output: Path,
    cwd: str,
    env: Mapping[str, str],
    stop: Callable[[], bool],
) -> tuple[str, float]:
    """Run a command to its end; return its standard output and its seconds.

    Both streams go to files that begin with ``output``. Raises Unbuildable if it fails or hangs, MeasureError if it
    cannot be started or the disk is full, Stopped.
    """
    streams = [Path(f"{output}.{kind}") for kind in ("out", "err")]
    for stream in streams:
        stream.write_bytes(b"")
    begun = time.monotonic()
    process = machine.start(
        words, cwd=cwd, env=env, stdout=str(streams[0]), stderr=str(streams[1])
    )
    try:
        while (code := process.wait(0.2)) is None:
            if stop():
                raise Stopped
            if time.monotonic() - begun > timeout:
                process.stop()
                # Also processes that have left the session of the command.
                if MARKER in env:
                    end_leftovers(machine, env[MARKER])
                raise Unbuildable(f"{what} hangs: stopped after {timeout:g} s")
    except BaseException:
        process.stop()
        raise
    printed, complained = (_tail(stream) for stream in streams)
    if code:
        check_room(output, complained + printed)
        how = f"ended with {code}" if code > 0 else f"was ended by signal {-code}"
        # A compiler's first error, else the last line: the last line of make only says that there was an error.
        lines = (complained.strip() or printed.strip()).splitlines() or [
            "it printed nothing"
        ]
        errors = [line for line in lines if " error: " in line]
        raise Unbuildable(f"{what} {how}: {(errors or lines[-1:])[0][:200]}")
    return printed, time.monotonic() - begun


def _tail(path: Path) -> str:
    with open(path, "rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - TAIL))
        return file.read().decode(errors="replace")
