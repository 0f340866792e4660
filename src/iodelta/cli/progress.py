"""How far something is that takes long: one line on standard error, where that can be written over.

A line that is written over is garbage in a file, a pipe or a CI log.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, Self

from iodelta.study.words import expected, inert

TELLING_SHARE = 0.1
TELLING_SECONDS = 5.0
"""Before so much is done, and has taken so long, nobody can say how long the rest will take."""

QUARTERS = 4
"""Lines of a step in a log."""


def redrawable(stream: Any) -> bool:
    """Return whether ``stream`` is a terminal that supports a carriage return and erasing a line.

    Variables such as ``FORCE_COLOR`` request colour in a log, which still has no cursor.
    """
    has_cursor = os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    return has_cursor and bool(stream.isatty())


def time_left(share: float | None, seconds: float) -> str:
    """Return the time left, estimated from the ``seconds`` that ``share`` of the work took; empty while it is too
    uncertain."""
    if share is None or not TELLING_SHARE <= share < 1 or seconds < TELLING_SECONDS:
        return ""
    return f", {expected(seconds * (1 - share) / share)}"


class Pace:
    """The speed of one step, also if it had already begun at the first call."""

    def __init__(self) -> None:
        self._step = ""
        self._begun = self._first = 0.0

    def left(self, step: str, share: float) -> str:
        """Return the time left for a step of which ``share`` is done; empty while it is too uncertain."""
        now = time.monotonic()
        if step != self._step:
            self._step, self._begun, self._first = step, now, share
        if self._first >= 1:
            return ""
        since_first = (share - self._first) / (1 - self._first)
        return time_left(since_first, now - self._begun)


class Progress:
    """A progress line on a terminal, which is removed at the end. Without a terminal it prints nothing, or as a ``log``
    a line for each step and each quarter of it. ``say`` prints the lines of a log that does not go to standard
    error."""

    def __init__(
        self, *, log: bool = False, say: Callable[[str], None] | None = None
    ) -> None:
        self.is_live = say is None and redrawable(sys.stderr)
        self._say = say or say_line
        self._log = log or say is not None
        self._last = ""
        self._pace = Pace()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove the line."""
        if self.is_live and self._last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._last = ""

    def note(self, text: str) -> None:
        """Print a line that stays above the progress line, which the next step draws again."""
        if self.is_live:
            self.clear()
        self._say(text)

    def step(self, text: str, share: float | None = None, now: str = "") -> None:
        """Show that ``share`` of the step is done; ``now`` is its present part, which only a terminal shows."""
        percent = "" if share is None else f" {self._percent(share)} %"
        left = "" if share is None else self._pace.left(text, share)
        self.show(text + percent, left + (f": {now}" if now and self.is_live else ""))

    def show(self, text: str, more: str = "") -> None:
        """Show ``text`` with ``more`` after it. A change of ``more`` alone does not print another line."""
        if text == self._last or not (self.is_live or self._log):
            return
        self._last = text
        if not self.is_live:
            self._say(f"{text}{more}")
            return
        sys.stderr.write(f"\r\x1b[K{inert(text + more)}")
        sys.stderr.flush()

    def _percent(self, share: float) -> int:
        if self.is_live:
            return round(100 * share)
        return 100 // QUARTERS * int(QUARTERS * share)


def say_line(text: str) -> None:
    """A line on standard error. The text may quote a file, another host, or a name with control characters."""
    sys.stderr.write(f"{inert(text)}\n")
    sys.stderr.flush()
