"""``python -m benchmarks.gallery.gigabyte``: measure what a page of a log of 1.12 GB costs (``gigabyte.md``)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROWS, CHUNK = 36_000_000, 1_000_000

ROW = np.frombuffer(b"00000000, 00000, 0, 4096, 4096\n", np.uint8)
"""As many digits in each row, so that numpy writes them fast."""

RESULT = Path(__file__).with_name("gigabyte.md")


def write(path: Path) -> None:
    """A latency log of single I/Os, three in each millisecond; every millionth takes five times as long."""
    rows = np.tile(ROW, (CHUNK, 1))
    with path.open("wb") as file:
        for begin in range(0, ROWS, CHUNK):
            at = np.arange(begin, begin + CHUNK, dtype=np.uint32)
            latency = 20_000 + (at * np.uint32(7919)) % np.uint32(40_009)
            latency[at % 1_000_003 == 0] = 99_999
            _put(rows, 10_000_000 + at // 3, 0, 8)
            _put(rows, latency, 10, 5)
            file.write(rows.tobytes())


def _put(rows: NDArray[np.uint8], numbers: NDArray[np.uint32], first: int, digits: int) -> None:
    for place in range(first + digits - 1, first - 1, -1):
        rows[:, place] = ord("0") + numbers % 10
        numbers = numbers // 10


def main() -> None:
    """Write the log, draw it three times, and keep the least."""
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "big_lat.1.log"
        write(log)
        words = [sys.executable, "-c", "from iodelta.cli.main import main; main()", "show", str(log)]
        found = []
        for _ in range(3):
            begun = time.monotonic()
            running = subprocess.Popen([*words, "-o", f"{scratch}/page.html", "--force"], stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(running.pid, 0)
            running.returncode = os.waitstatus_to_exitcode(status)
            if running.returncode != 0:
                raise subprocess.CalledProcessError(running.returncode, words)
            found.append((used.ru_utime + used.ru_stime, time.monotonic() - begun, used.ru_maxrss / 1024))
        size = log.stat().st_size / 1e9
    cpu, clock, memory = min(found)
    RESULT.write_text(
        f"`iodelta show big_lat.1.log -o page.html`, a log of {size:.2f} GB, {ROWS:,} I/Os: {cpu:.1f} s of CPU, "
        f"{clock:.0f} s by the clock, {memory:.0f} MiB at most.\n"
    )


if __name__ == "__main__":
    main()
