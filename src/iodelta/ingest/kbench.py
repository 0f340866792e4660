"""Summaries that give ``read / write`` pairs below a heading with the unit, as kbench prints them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Run, Workload
from iodelta.ingest.table_runs import direction, quantity_of
from iodelta.ingest.table_titles import heading
from iodelta.ingest.wording import clean
from iodelta.trial import Kind, Place

_HEADING = re.compile(r"(IOPS|Bandwidth|Latency)(?: in (\S{1,10}))? \(Read/Write\)")
_PAIR = re.compile(r"(Random|Sequential): ([\d,.]{1,24}) / ([\d,.]{1,24})$")
_NAMED = re.compile(r"For: (\S.{0,80})")
_KINDS: tuple[Kind, ...] = ("read", "write")
_LONGEST = 200
"""Most characters of a line that is read."""


def summaries(lines: Sequence[Line], used: bytearray, file: str) -> list[list[Run]]:
    """Return one run per measure and pattern of each summary; the indexes of the lines are marked in ``used``.

    kbench measures IOPS, bandwidth and latency one after the other, with different block sizes: they are separate runs.
    """
    groups: list[list[Run]] = [[]]
    begun: re.Match[str] | None = None
    title = above = ""
    for index, line in enumerate(lines):
        text = " ".join(line.text.split())
        if used[index] or not 0 < len(text) <= _LONGEST:
            continue
        named, head = _NAMED.match(text), _HEADING.match(text)
        pair = _PAIR.match(text) if begun else None
        used[index] = bool(named or head or pair)
        begun = head or begun
        if named:
            groups.append([])
            title = f"{above}: {named[1]}" if above else named[1]
        elif pair and begun and not head:
            measure, unit = begun.groups()
            meant = heading(f"{measure} ({unit})" if unit else measure)
            directions = []
            for kind, text in zip(_KINDS, pair.groups()[1:], strict=True):
                quantity = quantity_of(meant, text)[0]
                if meant.column is not None and quantity is not None:
                    key = meant.column.of, meant.column.stat, 0.0
                    directions.append(direction(kind, {key: quantity}))
            if directions:
                groups[-1].append(
                    Run(
                        place=Place(file, line.number),
                        format="table",
                        jobname=f"{pair[1]} {measure}",
                        directions=tuple(directions),
                        workload=Workload(rw="randrw" if pair[1] == "Random" else "rw"),
                        labels={"pattern": pair[1], "measure": measure},
                        table=clean(title),
                    )
                )
        elif text.startswith("#") and not head:
            above = text.strip("# ")
    return [runs for runs in groups if runs]
