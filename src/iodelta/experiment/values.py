"""Durations, sizes, shares and command words as people and fio write them."""

from __future__ import annotations

import re
import shlex

from iodelta.errors import RequestError


def seconds(value: str | float) -> float:
    """Seconds of a duration as people and fio write it: 5, "500ms", "5s", "1.5m", "2h". Raises ValueError."""
    if isinstance(value, bool):
        raise ValueError(f"{value!r} is not a valid duration")
    if isinstance(value, int | float):
        return float(value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|m|min|h|d)?\s*", value)
    if not match:
        raise ValueError(
            f"{value!r} is not a valid duration: write it as in 500ms, 5s, 30m, 2h"
        )
    return float(match[1]) * SECONDS[match[2]]


SECONDS = {
    None: 1,
    "s": 1,
    "sec": 1,
    "ms": 1e-3,
    "m": 60,
    "min": 60,
    "h": 3600,
    "d": 86400,
}
"""Unit of a duration -> its seconds."""


def size_bytes(value: str) -> int:
    """Bytes of a size as fio writes it with its default kb_base=1024: 4096, 4k, 100g, 1t. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d+)\s*([kmgtp]?)(?:i?b)?\s*", value, re.IGNORECASE)
    if not match:
        raise ValueError(
            f"{value!r} is not a valid size: write it as in 4k, 512m, 100g"
        )
    return int(match[1]) << (10 * " kmgtp".index(match[2].lower() or " "))


def positive_size(value: str) -> int:
    """Bytes of a size that is not 0. Raises ValueError."""
    size = size_bytes(value)
    if not size:
        raise ValueError(
            "a size of 0 leaves nothing to measure: write it as in 512m, or leave it out"
        )
    return size


def checked_size(value: str) -> str:
    """Return a size as it was written. Raises ValueError for one that fio would not read, or of 0 bytes."""
    positive_size(value)
    return value


def only_path(value: str) -> str:
    """Return the path that fio opens for a value of ``filename`` or ``directory``. Raises ValueError for a list of
    them.

    There ``:`` parts two names unless a backslash stands before it (``get_next_str`` in fio's ``options.c``).
    """
    names = re.split(r"(?<!\\):", value)
    if len(names) > 1:
        raise ValueError(
            f"fio reads {value!r} as {len(names)} names, separated by colons"
        )
    return value.replace("\\:", ":")


def fraction(value: str | float) -> float:
    """0.01 of "1%", "1 %" or 0.01. Raises ValueError."""
    text = str(value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e-?\d+)?)\s*(%?)\s*", text)
    if isinstance(value, bool) or not match:
        raise ValueError(f"{value!r} is not a valid share: write it as in 1% or 0.01")
    number = float(match[1])
    share = number / 100 if match[2] else number
    if not 0 < share < 1:
        could = not match[2] and 1 <= number < 100
        meant = (
            f": write {number:g}% or {number / 100:g}"
            if could
            else ", as in 1% or 0.01"
        )
        raise ValueError(f"{text.strip()} does not lie between 0 and 100 %{meant}")
    return share


def split_command(text: str, place: str) -> tuple[str, ...]:
    """Return a command line as words. It is never given to a shell. Raises RequestError on an open quote or no word."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise RequestError(
            f"cannot split the command into words: {error}", place=place
        ) from error
    if not words:
        raise RequestError("the command is empty", place=place)
    return words
