"""Progress of reading files, on a terminal."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from iodelta.cli.progress import Progress, time_left

AT_ONCE = 1.0
"""Seconds before the first message."""
EVERY = 0.5


@contextmanager
def awaited(paths: Sequence[str]) -> Iterator[None]:
    """Say on a terminal's standard error how many of the bytes in ``paths`` this process has read, and what is left;
    and let Python's collector rest until what is made of them has been said.

    The kernel counts what a process reads (``rchar`` of ``/proc/self/io``): readers need not
    report anything.
    """
    from iodelta.ingest.reading import uncollected

    with uncollected(), _progress(paths):
        yield


@contextmanager
def _progress(paths: Sequence[str]) -> Iterator[None]:
    with Progress() as progress:
        before = _read() if progress.is_live else None
        if before is None:
            yield
            return
        done = threading.Event()
        teller = threading.Thread(
            target=_tell, args=(paths, before, done, progress), daemon=True
        )
        teller.start()
        try:
            yield
        finally:
            done.set()
            teller.join()


def _tell(
    paths: Sequence[str], before: int, done: threading.Event, progress: Progress
) -> None:
    begun = time.monotonic()
    if done.wait(AT_ONCE):
        return
    total = sum(map(_bytes_in, paths))
    while not done.is_set():
        progress.show(
            how_far((_read() or before) - before, total, time.monotonic() - begun)
        )
        done.wait(EVERY)


def how_far(read: int, total: int, seconds: float) -> str:
    """Return the progress in words; only the bytes that were read if the total is unknown or reached."""
    if read >= total:
        return f"{read / 1e6:,.0f} MB read, {seconds:.0f} s"
    return f"{read / 1e6:,.0f} of {total / 1e6:,.0f} MB read{time_left(read / total, seconds)}"


def _read() -> int | None:
    """Bytes that this process has read; None if the kernel does not count them."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next(
        (int(line.split()[1]) for line in lines if line.startswith("rchar:")), None
    )


def _bytes_in(path: str) -> int:
    """Bytes of a file, or of all files below a folder; 0 for standard input, and for what cannot be read."""
    try:
        if os.path.isfile(path):
            return os.path.getsize(path)
        total = 0
        for folder, _, names in os.walk(path):
            total += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
        return total
    except OSError:
        return 0
