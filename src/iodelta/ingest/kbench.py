"""Summaries that give ``read / write`` pairs below a heading with the unit, as kbench prints them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Run, Workload, unknown
from iodelta.ingest.table_cells import cell
from iodelta.ingest.table_headings import column
from iodelta.ingest.wording import clean
from iodelta.trial import Direction, Kind, Latency, Place, Quantity

_HEADING = re.compile(r"(IOPS|Bandwidth|Latency)(?: in (\S{1,10}))? \(Read/Write\)")
_PAIR = re.compile(r"(Random|Sequential): {1,40}([\d,.]{1,24}) / ([\d,.]{1,24})$")
_NAMED = re.compile(r"For: (\S.{0,80})")
_KINDS: tuple[Kind, ...] = ("read", "write")


def summaries(lines: Sequence[Line], used: bytearray, file: str) -> list[list[Run]]:
    """A run per measure and pattern of each summary; the indexes of the lines are marked in ``used``.

    kbench measures IOPS, bandwidth and latency one after the other, with other block sizes: they are no one run's.
    """
    found: list[list[Run]] = []
    heading: tuple[str, str] | None = None
    title, above = "", ""
    parts: dict[tuple[str, str], list[Direction]] = {}
    places: dict[tuple[str, str], Place] = {}
    for index, line in enumerate(lines):
        text = line.text.strip()
        if used[index] or not text or len(text) > 200:
            continue
        if named := _NAMED.match(text):
            found += _runs(parts, title, places)
            parts, places, title = {}, {}, f"{above}: {named[1]}" if above else named[1]
        elif begun := _HEADING.match(text):
            heading = (begun[1], begun[2] or "")
        elif heading is not None and (pair := _PAIR.match(text)):
            places[heading[0], pair[1]] = Place(file, line.number)
            for kind, number in zip(_KINDS, (pair[2], pair[3]), strict=True):
                what = column(f"{heading[0]} ({heading[1]})" if heading[1] else heading[0])
                value = cell(number)
                if what is not None and value is not None and what.scale is not None:
                    unit = {"iops": "1/s", "bw": "B/s"}.get(what.stat, "ns")
                    quantity = value[0].quantity(unit, what.scale)
                    parts.setdefault((heading[0], pair[1]), []).append(_direction(kind, what.stat, quantity))
        else:
            if text.startswith("#"):
                above = text.strip("# ")
            continue
        used[index] = 1
    return found + _runs(parts, title, places)


def _runs(
    parts: dict[tuple[str, str], list[Direction]], title: str, places: dict[tuple[str, str], Place]
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
    return [runs] if runs else []


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
