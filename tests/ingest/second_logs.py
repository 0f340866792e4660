"""A second reading of fio's logs and of terse version 2: lists, sums and sorting, as a sceptic would write it.

It shares nothing with the readers: bins are those of fio's ``plat_idx_to_val`` as its source says it, and fields are
counted by hand in a record of fio 3.33.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

KINDS = ("read", "write", "trim")


class Spread(NamedTuple):
    """Latencies of one direction of a log, in its own unit."""

    values: list[int]
    """Of single I/Os, or means over windows."""
    averaged: bool

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    def at(self, percent: float) -> int:
        """The smallest value that so many percent do not exceed."""
        return sorted(self.values)[max(1, math.ceil(percent / 100 * len(self.values) - 1e-9)) - 1]


def latencies(data: str) -> dict[str, Spread]:
    """Every sound row of a latency log, by direction. Rows without a block size are means over windows."""
    values: dict[str, list[int]] = {}
    sizes = 0
    for line in data.splitlines():
        cells = [part.strip() for part in line.split(",")]
        if len(cells) < 4 or not all(part.isdecimal() for part in cells[:4]) or cells[2] not in ("0", "1", "2"):
            continue
        values.setdefault(KINDS[int(cells[2])], []).append(int(cells[1]))
        sizes += int(cells[3])
    return {kind: Spread(own, not sizes) for kind, own in values.items()}


class Bins(NamedTuple):
    """Counts of one direction of a histogram log, by bin of what the log's coarseness left."""

    counts: list[int]
    last: int
    """Milliseconds of the last row."""


def histograms(data: str) -> dict[str, Bins]:
    """Sums over the rows of a histogram log, by direction."""
    found: dict[str, Bins] = {}
    for line in data.splitlines():
        time, kind, _, *counts = (int(part) for part in line.split(","))
        before = found.get(KINDS[kind])
        added = [a + b for a, b in zip(before.counts, counts, strict=True)] if before else counts
        found[KINDS[kind]] = Bins(added, time)
    return found


def edges(bin_: int, width: int) -> tuple[float, float]:
    """Edges in ns of a bin of a histogram log with ``width`` bins: 1856 of ns, or 1216 of us before fio 2.99, of which
    2, 4, 8 ... may be put together."""
    whole, scale = next((n, s) for n, s in ((1856, 1.0), (1216, 1000.0)) for c in range(7) if n >> c == width)
    together = whole // width
    return _lower(bin_ * together) * scale, _lower((bin_ + 1) * together) * scale


def _lower(index: int) -> int:
    """fio's plat_idx_to_val without the half: exact up to 128, then 64 bins to each power of two."""
    if index < 128:
        return index
    power = (index // 64) - 1
    return (64 + index % 64) << power


class Record(NamedTuple):
    """One direction of a terse record of version 2: rates and times as printed."""

    kind: str
    kib: int
    iops: int
    runtime: int
    clat: tuple[float, float, float]
    """Smallest, largest and mean completion latency, us."""
    lat: tuple[float, float, float]
    percentiles: dict[float, int]
    """Of completion latency, us."""


def terse2(data: str) -> Iterator[Record]:
    """Both directions of each record: the fields of a read begin at the fifth, of a write 41 later."""
    for line in data.splitlines():
        match = re.search(r"(?:^|\s)(2;[^;]*;\d+;-?\d+;\d+;\d+;\d+;\d+;.*)", line)
        fields = match[1].split(";") if match else []
        if len(fields) < 100:
            continue
        for kind, first in (("read", 4), ("write", 45)):
            own = fields[first : first + 41]
            if not int(own[3]):
                continue
            listed = [text.split("%=") for text in own[12:32]]
            clat, lat = ((float(n[0]), float(n[1]), float(n[2])) for n in (own[8:12], own[32:36]))
            points = {float(percent): int(value) for percent, value in listed if float(percent)}
            yield Record(kind, int(own[0]), int(own[2]), int(own[3]), clat, lat, points)
