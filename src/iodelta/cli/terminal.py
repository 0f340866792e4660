"""Whether a stream can be drawn on: a line that is written over again is garbage in a file, a pipe or a CI log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def redrawable(stream: Any) -> bool:
    """Whether ``stream`` is a terminal that obeys a carriage return and erases a line.

    ``FORCE_COLOR`` and its like ask for colour in a log, which still has no cursor to move.
    """
    return bool(stream.isatty()) and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


@contextmanager
def step_line() -> Iterator[Callable[[str, float | None], None]]:
    """What a build does, on standard error: a line that is written over on a terminal; elsewhere a line for each step,
    and one for each quarter of it. With the time left, once a tenth of a step shows how fast it goes."""
    last = doing = ""
    begun = 0.0
    live = redrawable(sys.stderr)

    def on_step(text: str, share: float | None) -> None:
        nonlocal last, doing, begun
        if text != doing:
            doing, begun = text, time.monotonic()
        percent = "" if share is None else f" {100 * share if live else 25 * int(4 * share):.0f} %"
        if text + percent == last:
            return
        last = text + percent
        shown = last + _left(share, time.monotonic() - begun)
        sys.stderr.write(f"\r\x1b[K{shown}" if live else f"{shown}\n")
        sys.stderr.flush()

    try:
        yield on_step
    finally:
        if live and last:
            sys.stderr.write("\r\x1b[K")


def _left(share: float | None, seconds: float) -> str:
    """About how long a step still takes."""
    if share is None or share < 0.1 or seconds < 5:
        return ""
    left = seconds * (1 - share) / share
    return f", about {left:.0f} s left" if left < 90 else f", about {left / 60:.0f} min left"
