"""Where things that can be made or fetched again are kept."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from iodelta.errors import MeasureError


def cache(*parts: str) -> Path:
    """A path below ``$IODELTA_CACHE``, else ``$XDG_CACHE_HOME/iodelta``, else ``~/.cache/iodelta``; not made here."""
    given = os.environ.get("IODELTA_CACHE")
    if given:
        return Path(given).absolute().joinpath(*parts)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home).joinpath("iodelta", *parts)


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """One build at a time in a directory. Raises MeasureError while another build runs."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MeasureError(
                "another build is going on",
                place=str(directory),
                remedy="wait for its end",
            ) from None
        yield
    finally:
        os.close(descriptor)
