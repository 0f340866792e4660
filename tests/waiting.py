"""Wait for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

LIMIT = 240.0
"""Seconds after which a test that waits is given up as hanging. However loaded a machine is, it answers sooner."""


def until(condition: Callable[[], object]) -> None:
    """Wait for something that must come true."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"it did not come true within {LIMIT:g} s"
        time.sleep(0.02)


def journals(runs: Path) -> list[Path]:
    """Those of the folders in ``runs``: not of one that is just being made, whose name changes."""
    return list(runs.glob("[!.]*/journal.jsonl"))
