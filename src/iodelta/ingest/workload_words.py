"""Read the words for a workload in titles, names and cells: ``4k randread QD32``, ``8 jobs``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from iodelta.ingest.model import Workload
from iodelta.ingest.numbers import size
from iodelta.ingest.vocabulary import english
from iodelta.workload.engines import ENGINES, READERS

MODE = re.compile(
    r"(?:(?<![a-z])|(?<=\d[km]))(rand(?:om)?|seq(?:uential)?)?[\s_-]{0,2}(readwrite|rw|read|write|trim|mixed|mix)(?![a-z\d])"
    r"|\b(rr|rw|sr|sw)\b",
    re.I,
)
BLOCK = re.compile(r"\b(\d{1,6})\s?([km])(?:i?b)?\b", re.I)
DEPTH = re.compile(r"\b(?:qd|io_?depth|queue ?depth|depth)\s?[=:]?\s?(\d{1,6})\b", re.I)
JOBS = re.compile(
    r"\b(\d{1,5})\s?(?:num)?(?:jobs?|threads?|procs?)\b|\b(?:num)?(?:jobs?|threads?)\s?[=:]?\s?(\d{1,5})\b",
    re.I,
)


TITLES = {
    "depth": (
        "qd",
        "iodepth",
        "io depth",
        "io_depth",
        "depth",
        "queue depth",
        "queue_depth",
    ),
    "jobs": ("jobs", "numjobs", "threads"),
    "bs": ("bs", "block size", "blocksize"),
    "engine": ("engine", "ioengine", "io engine", "io_engine"),
}
"""Usual titles of columns with a fact of the workload."""


_DIRECTION = re.compile(
    r"(?:data|io)?[\s_-]?d?dir(?:ection)?|r/?w|read[\s_-]?/?write|op(?:eration)?s?(?:[\s_-]?type)?|io[\s_-]?type",
    re.I,
)
"""Titles of columns with the direction of each row."""


def is_direction_title(title: str) -> bool:
    """Return whether a column with this title contains the direction of its rows."""
    return _DIRECTION.fullmatch(title.strip(" *`:")) is not None


def facts(labels: Mapping[str, str], names: str) -> Workload:
    """Return the workload in the words of a row: ``RandRead 4 KiB QD32``, or columns such as ``Jobs``."""
    lowered = {title.lower(): text for title, text in labels.items()}
    names = names if names.isascii() else english(names)
    stated = {name: _labelled(lowered, titles) for name, titles in TITLES.items()}
    return Workload(
        rw=_rw(_mode(lowered) or MODE.search(names)),
        ioengine=_engine(stated["engine"]),
        bs=size(stated["bs"]) or _block_in(names),
        iodepth=_whole(stated["depth"]) or _number_in(DEPTH, names),
        numjobs=_whole(stated["jobs"]) or _number_in(JOBS, names),
    )


def _mode(labels: Mapping[str, str]) -> re.Match[str] | None:
    """Return the direction in the first cell with one below a title such as ``Dir``."""
    stated = [text for title, text in labels.items() if is_direction_title(title)]
    return next(filter(None, map(MODE.search, stated)), None)


def _block_in(names: str) -> int | None:
    """Return the block size that words name, in bytes."""
    block = BLOCK.search(names)
    return size(f"{block[1]}{block[2]}") if block else None


def _number_in(pattern: re.Pattern[str], names: str) -> int | None:
    """Return the number in words of this ``pattern``."""
    match = pattern.search(names)
    return int(next(filter(None, match.groups()))) if match else None


def _engine(text: str) -> str | None:
    name = text.replace("`", "").strip().lower()
    return name if name in ENGINES | READERS else None


def _labelled(lowered: Mapping[str, str], titles: tuple[str, ...]) -> str:
    return next((lowered[title] for title in titles if title in lowered), "")


def _whole(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    return None


def _rw(mode: re.Match[str] | None) -> str | None:
    """fio's name of a direction: ``rr`` and ``Random read`` are randread."""
    if mode is None:
        return None
    how, what, short = (text.lower() for text in mode.groups(""))
    if short:
        return _SHORT[short]
    prefix = "rand" if how.startswith("rand") else ""
    return f"{prefix}{_MIXED.get(what, what)}"


_SHORT = {"rr": "randread", "rw": "randwrite", "sr": "read", "sw": "write"}


_MIXED = {"readwrite": "rw", "mixed": "rw", "mix": "rw"}
