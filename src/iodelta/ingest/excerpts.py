"""Single lines of fio's reports (``grep IOPS``), or lines written as ``IOPS=345k BW=1348MiB/s``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iodelta.ingest import text_lines as say
from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Run, Workload, unknown
from iodelta.ingest.numbers import decimals, num2str
from iodelta.ingest.table_runs import row
from iodelta.ingest.table_titles import Heading, heading
from iodelta.ingest.text_report import bandwidth, name_above
from iodelta.ingest.wording import clean
from iodelta.ingest.workload_words import facts
from iodelta.trial import Direction, Kind, Place

_HINTS = ("IOPS=", "IOPS =", "iops=", "iops =", "bw=", "BW=", "aggrb=")
MOST = 10_000
"""Most lines that are read."""
LONGEST = 100
"""Most characters of a name."""
_RATE = re.compile(r"\b((?:read|write|trim|mixed) ?: ?(?:IOPS=|io=).{10,300}?msec\)?)")
_GROUP = re.compile(r"\b(READ|WRITE|TRIM|MIXED): (?:bw|io)=.{10,300}?msec")
_OLD = re.compile(r"\brunt ?=", re.I)
"""A line of fio before 2.17, whose KB are 1024 bytes."""
_PAIR = re.compile(
    r"(?<!/)\b([A-Za-z][\w.%]{0,20}) ?= ?(\d(?:[\d.,]{0,20}\d)?(?: ?[a-zA-Zµμ/]{1,8})?)(?=[\s,;|)]|$)"
)


def hinted(text: str) -> bool:
    """Return whether ``text`` may hold such a line."""
    return any(word in text for word in _HINTS)


def runs(lines: Sequence[Line], used: bytearray, file: str) -> list[Run]:
    """Return one run per such line; its name is the text before it, or the line above it."""
    reports: list[Run] = []
    for index, line in enumerate(lines):
        if len(reports) == MOST or used[index] or not hinted(line.text[:1000]):
            continue
        before = len(reports)
        text, place = line.text[:1000], Place(file, line.number)
        match = _RATE.search(text) or _GROUP.search(text)
        if match is None:
            reports += _paired(lines, index, text, place)
            used[index] = len(reports) > before
            continue
        direction = (
            _rates(match[1]) if match.re is _RATE else _group(text[match.start() :])
        )
        if direction is not None:
            name = _name(text[: match.start()])
            group = (
                lines[index - 1].text.strip(" :")
                if index and match.re is _GROUP
                else ""
            )
            reports.append(
                _run(
                    place,
                    name if name or not group.startswith("Run status") else group,
                    direction,
                )
            )
            used[index] = 1
    return reports


def _paired(lines: Sequence[Line], index: int, text: str, place: Place) -> list[Run]:
    """The runs of a line with several names and numbers, ``IOPS=500 lat=2ms``."""
    if _OLD.search(text):
        return []
    pairs = list(_PAIR.finditer(text))
    if len(pairs) < 2 or pairs[0].start() > LONGEST:
        return []
    titles, numbers = zip(*(pair.groups()[:2] for pair in pairs), strict=True)
    headings = [Heading("name", None), *map(heading, titles)]
    measures = [h.column.of for h in headings if h.column is not None]
    if not (len(measures) > 1 and "rate" in measures):
        return []
    name = _name(text[: pairs[0].start()]) or name_above(lines, index)
    made = row(headings, [name, *numbers], place, "")
    return [run for run in made if any(map(_is_busy, run.directions))]


def _is_busy(direction: Direction) -> bool:
    return direction.iops.value > 0 or direction.bandwidth.value > 0


def _run(place: Place, name: str, direction: Direction) -> Run:
    asked = facts({}, name.replace("_", " ").replace("-", " "))
    whole = Workload(
        rw=asked.rw, bs=asked.bs, iodepth=asked.iodepth, numjobs=asked.numjobs
    )
    return Run(
        place=place,
        format="text",
        jobname=name or "excerpt",
        directions=(direction,),
        workload=whole,
    )


def _rates(text: str) -> Direction | None:
    stated = say.rates(say.statement(text), None)
    if stated is None:
        return None
    return Direction(
        stated.kind,
        0,
        int(stated.amount.value),
        stated.runtime_ms,
        stated.iops.quantity("1/s"),
        bandwidth(stated),
    )


def _group(text: str) -> Direction | None:
    """Return a line of ``Run status group``: bandwidth over all jobs, and the run time of the longest job."""
    kinds: dict[str, Kind] = {
        "READ": "read",
        "WRITE": "write",
        "TRIM": "trim",
        "MIXED": "mixed",
    }
    name, _, rest = text.partition(":")
    fields = dict(re.findall(r"(\w+)= ?([^, ]+)", rest))
    if "bw" in fields:
        speed = num2str(fields["bw"], None)
    else:
        speed = num2str(fields.get("aggrb", ""), (2, 0), kilo=1024)
    last = decimals(
        re.sub(r".*-|msec", "", fields.get("run") or fields.get("maxt", ""))
    )
    if speed is None or last is None:
        return None
    return Direction(
        kinds[name], 0, 0, int(last.value), unknown("1/s"), speed.quantity("B/s")
    )


def _name(before: str) -> str:
    return clean(" ".join(before.split()).strip(" :;,|*>-=("))
