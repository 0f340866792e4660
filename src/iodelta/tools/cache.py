"""Where things that can be made or fetched again are kept."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


def cache(*parts: str) -> Path:
    """Return a path below ``$IODELTA_CACHE``, else ``$XDG_CACHE_HOME/iodelta``, else ``~/.cache/iodelta``; not made
    here.
    """
    given = os.environ.get("IODELTA_CACHE")
    if given:
        return Path(given).absolute().joinpath(*parts)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home).joinpath("iodelta", *parts)


@contextlib.contextmanager
def held(
    directory: Path, on_wait: Callable[[str], object] = lambda text: None
) -> Iterator[bool]:
    """Let one process at a time write to a directory: wait for the others, and yield whether there was one.

    ``on_wait`` gets a sentence that says what is waited for.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        waited = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait(f"waiting for another build in {directory}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            waited = True
        yield waited
    finally:
        os.close(descriptor)
