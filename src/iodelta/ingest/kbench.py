"""Summaries that give ``read / write`` pairs below a heading with the unit, as kbench prints them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Run, Workload, unknown
from iodelta.ingest.table_cells import cell
from iodelta.ingest.table_titles import column
from iodelta.ingest.wording import clean
from iodelta.trial import Direction, Kind, Latency, Place, Quantity

_HEADING = re.compile(r"(IOPS|Bandwidth|Latency)(?: in (\S{1,10}))? \(Read/Write\)")
_PAIR = re.compile(r"(Random|Sequential): ([\d,.]{1,24}) / ([\d,.]{1,24})$")
_NAMED = re.compile(r"For: (\S.{0,80})")
_KINDS: tuple[Kind, ...] = ("read", "write")


def summaries(lines: Sequence[Line], used: bytearray, file: str) -> list[list[Run]]:
    """Return one run per measure and pattern of each summary; the indexes of the lines are marked in ``used``.

    kbench measures IOPS, bandwidth and latency one after the other, with different block sizes: they are separate runs.
    """
    collector = _Summaries(file)
    for index, line in enumerate(lines):
        text = " ".join(line.text.split())
        is_free = not used[index] and 0 < len(text) <= _LONGEST
        if is_free and collector.take(line.number, text):
            used[index] = 1
    return collector.end()


_LONGEST = 200
"""Most characters of a line that is read."""


class _Summaries:
    """Collects the summaries of a text, line by line."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[list[Run]] = []
        self._heading: tuple[str, str] | None = None
        """Measure and unit."""
        self._title = self._above = ""
        self._parts: dict[tuple[str, str], list[Direction]] = {}
        self._places: dict[tuple[str, str], Place] = {}

    def end(self) -> list[list[Run]]:
        return self._found + _runs(self._parts, self._title, self._places)

    def take(self, number: int, text: str) -> bool:
        """Return whether the line is kbench's."""
        named, begun = _NAMED.match(text), _HEADING.match(text)
        pair = _PAIR.match(text) if self._heading else None
        if named:
            # End the previous summary, and begin that of `name`.
            name = named[1]
            self._found = self.end()
            self._parts, self._places = {}, {}
            self._title = f"{self._above}: {name}" if self._above else name
        elif begun:
            self._heading = (begun[1], begun[2] or "")
        elif pair:
            pattern, *numbers = pair.groups()
            # What a line says of reads and of writes.
            if self._heading is not None:
                measure, unit = self._heading
                self._places[measure, pattern] = Place(self._file, number)
                what = column(f"{measure} ({unit})" if unit else measure)
                # What a line says of reads and of writes.
                key = (measure, pattern)
                if not (what is None or what.scale is None):
                    unit_ = {"iops": "1/s", "bw": "B/s"}.get(what.stat, "ns")
                    for kind, number_ in zip(_KINDS, numbers, strict=True):
                        value = cell(number_)
                        if value is not None:
                            direction = _direction(
                                kind, what.stat, value[0].quantity(unit_, what.scale)
                            )
                            self._parts.setdefault(key, []).append(direction)
        elif text.startswith("#"):
            self._above = text.strip("# ")
        return bool(named or begun or pair)


def _runs(
    parts: dict[tuple[str, str], list[Direction]],
    title: str,
    places: dict[tuple[str, str], Place],
) -> list[list[Run]]:
    runs = [
        Run(
            place=places[measure, pattern],
            format="table",
            jobname=f"{pattern} {measure}",
            directions=tuple(directions),
            workload=Workload(rw="randrw" if pattern == "Random" else "rw"),
            labels={"pattern": pattern, "measure": measure},
            table=clean(title),
        )
        for (measure, pattern), directions in parts.items()
    ]
    if not runs:
        return []
    return [runs]


def _direction(kind: Kind, stat: str, quantity: Quantity) -> Direction:
    nothing = unknown("ns")
    return Direction(
        kind=kind,
        ios=0,
        bytes=0,
        runtime_ms=0,
        iops=quantity if stat == "iops" else unknown("1/s"),
        bandwidth=quantity if stat == "bw" else unknown("B/s"),
        lat=Latency(0, quantity, nothing, nothing, nothing) if stat == "mean" else None,
    )
