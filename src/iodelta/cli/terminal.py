"""Whether a stream can be drawn on: a line that is written over again is garbage in a file, a pipe or a CI log."""

from __future__ import annotations

import os
from typing import Any


def redrawable(stream: Any) -> bool:
    """Whether ``stream`` is a terminal that obeys a carriage return and erases a line.

    ``FORCE_COLOR`` and its like ask for colour in a log, which still has no cursor to move.
    """
    return bool(stream.isatty()) and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
