"""Counts in words: ``1 block``, ``2 blocks``, ``a, b and 3 more``."""

from __future__ import annotations

from collections.abc import Sequence


def plural(count: int, noun: str) -> str:
    """``count`` with its ``noun``, which takes an s unless there is one; of several words the last one."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return the first ``most`` of ``names``, and how many more there are: ``a, b and 3 more``."""
    shown = separator.join(names[:most])
    if len(names) <= most:
        return shown
    return f"{shown} and {len(names) - most} more"
