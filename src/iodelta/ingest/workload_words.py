"""What a workload is called in titles, names and cells: ``4k randread QD32``, ``8 jobs``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from iodelta.ingest.model import Workload
from iodelta.ingest.numbers import size
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
"""Columns that say a fact of the workload, as people call them."""


_DIRECTION = re.compile(
    r"(?:data|io)?[\s_-]?d?dir(?:ection)?|r/?w|read[\s_-]?/?write|op(?:eration)?s?(?:[\s_-]?type)?|io[\s_-]?type",
    re.I,
)
"""Titles of columns that say the direction of each row."""


def is_direction_title(title: str) -> bool:
    """Whether the column with this title says the direction of its rows."""
    return _DIRECTION.fullmatch(title.strip(" *`:")) is not None


def facts(labels: Mapping[str, str], names: str) -> Workload:
    """Workload facts in the words of a row: ``RandRead 4 KiB QD32``, a column ``Jobs``."""
    lowered = {title.lower(): text for title, text in labels.items()}
    mode, block, depth, jobs = (
        pattern.search(names) for pattern in (MODE, BLOCK, DEPTH, JOBS)
    )
    stated = (
        MODE.search(text)
        for title, text in lowered.items()
        if is_direction_title(title)
    )
    mode = next(filter(None, stated), mode)  # not its title
    said = {name: _labelled(lowered, titles) for name, titles in TITLES.items()}
    return Workload(
        rw=_rw(mode),
        ioengine=_engine(said["engine"]),
        bs=size(said["bs"]) or (size(f"{block[1]}{block[2]}") if block else None),
        iodepth=_whole(said["depth"]) or (int(depth[1]) if depth else None),
        numjobs=_whole(said["jobs"]) or (int(jobs[1] or jobs[2]) if jobs else None),
    )


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
    if mode is None:
        return None
    if mode[3]:
        return {"rr": "randread", "rw": "randwrite", "sr": "read", "sw": "write"}[
            mode[3].lower()
        ]
    what = {"readwrite": "rw", "mixed": "rw", "mix": "rw"}.get(
        mode[2].lower(), mode[2].lower()
    )
    if not (mode[1] or "").lower().startswith("rand"):
        return what
    return f"rand{what}"
