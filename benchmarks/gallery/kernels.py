"""``python -m benchmarks.gallery.kernels``: draw ``docs/pictures/written.png`` of two generated logs of bandwidth, in
which the cache of a disk is full after so many gigabytes: under one kernel later than under the other, which stalls."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "written.png"

WINDOW = 0.5
"""Seconds of a row, as with ``log_avg_msec=500``."""

SECONDS = 1800

MIB = 1 << 20

KERNELS = {"6.12": (188.0, 66.0, 147e9, 0.0), "6.18": (177.0, 62.0, 137e9, 0.01)}
"""MiB/s before and after the cache is full, the bytes that fill it, and the share of windows that stall."""

COMPARE = (sys.executable, "-c", "from iodelta.cli.main import main; main()", "compare", *KERNELS, "--charts", "charts")


def rows(fast: float, slow: float, cache: float, stalls: float) -> Iterator[str]:
    """Lines of fio's log of write bandwidth."""
    some, written = random.Random(fast), 0.0
    for window in range(1, round(SECONDS / WINDOW) + 1):
        level = fast if written < cache else slow
        if some.random() < stalls:
            continue  # fio writes no row for a window without I/O
        rate = some.gauss(level, 0.05 * level)
        written += rate * MIB * WINDOW
        yield f"{round(1000 * WINDOW * window)}, {round(rate * 1024)}, 1, 0, 0\n"


def main() -> None:
    """Generate the logs, and draw them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kernel, levels in KERNELS.items():
            (folder / kernel).mkdir()
            (folder / kernel / "randwrite_bw.1.log").write_text("".join(rows(*levels)))
        subprocess.run(COMPARE, cwd=folder, check=False)
        (drawn,) = (folder / "charts").glob("timeline-*-written.png")
        shutil.copyfile(drawn, PICTURE)
    print(f"{PICTURE}: {PICTURE.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
