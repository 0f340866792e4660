"""Counts in words: ``1 block``, ``2 blocks``."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """``count`` with its ``noun``, which takes an s unless there is one; of several words the last one."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
