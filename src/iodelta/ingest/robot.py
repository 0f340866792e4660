"""The comparison tables that the kernel's test robot (LKP) mails: base, change and new of each measure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Refusal, Run, Workload, unknown
from iodelta.ingest.numbers import half_unit
from iodelta.ingest.tables import ranges
from iodelta.ingest.wording import clean
from iodelta.plural import plural
from iodelta.trial import Direction, Finding, Kind, Latency, Place, Quantity

HINT = "%stddev"
_NUMBER = r"\d{1,15}(?:\.\d{1,9})?(?:e[+-]?\d{1,3})?"
_ROW = re.compile(
    rf"\s*({_NUMBER})(?: *±  ?\d{{1,5}}%)?((?: +[+-]?\d[\d.e+]{{0,12}}%? +{_NUMBER}(?: *±  ?\d{{1,5}}%)?){{1,8}}) {{1,20}}([\w.%/<>=+-]{{3,120}})\s*$"
)
_FURTHER = re.compile(
    rf" +([+-]?\d[\d.e+]{{0,12}}%?) +({_NUMBER})(?: *±  ?\d{{1,5}}%)?"
)
_FIO = re.compile(
    r"fio\.(?:(?P<kind>read|write|trim)_)?(?:(?P<iops>iops)|bw_(?P<bw>[KMG]i?B)ps"
    r"|(?P<lat>[sc]?lat)_(?:(?P<mean>mean)|(?P<rank>\d{1,2}(?:\.\d{1,4})?)%)_(?P<unit>[num]s))$"
)
_KNOWN = re.compile(
    r"fio\.(?:latency_.*%|time\.|workload$|\w*_(?:stddev|max|min)(?:_us)?$)"
)
"""Rows of fio that are not of a rate or a latency."""
_HEADER = re.compile(
    r"\s*([0-9a-f]{12,40}|v?\d\.\d[\w.-]*)((?:\s+[0-9a-f]{12,40}|\s+v?\d\.\d[\w.-]*)+)\s*$"
)
_UNITS = {
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
}
_TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6}


class _Measure(NamedTuple):
    kind: Kind
    of: str
    rank: float
    unit: str
    scale: float


def tables(
    lines: Sequence[Line], used: bytearray, file: str
) -> list[list[Run | Refusal]]:
    """Return a run for each side of each table; the indexes are marked in ``used``."""
    groups: list[list[Run | Refusal]] = []
    sides: list[str] = []
    rows: list[tuple[int, list[str], list[str], str]] = []
    begun = 0
    for at, line in enumerate([*lines, Line(0, "end")]):
        text = line.text[:1000]
        header = _HEADER.match(text)
        row = _ROW.match(text) if begun else None
        if row is not None and not used[at]:
            further = _FURTHER.findall(row[2])
            rows.append(
                (
                    at,
                    [row[1], *(value for _, value in further)],
                    [change for change, _ in further],
                    row[3],
                )
            )
        elif HINT in text:
            begun = begun or at + 1
        elif begun and text.strip(" \\|-\t"):
            if rows:
                groups.append(_read(lines, rows, sides, file))
                used[begun - 1 : rows[-1][0] + 1] = b"\1" * (rows[-1][0] + 2 - begun)
            rows, begun = [], 0
        if header and not begun:
            sides = [header[1], *header[2].split()]
    return groups


def _read(
    lines: Sequence[Line],
    rows: Sequence[tuple[int, list[str], list[str], str]],
    sides: Sequence[str],
    file: str,
) -> list[Run | Refusal]:
    count = max(len(values) for _, values, _, _ in rows)
    names = (
        [clean(name)[:16] for name in sides]
        if len(sides) == count
        else ["base", "new", *map(str, range(2, count))]
    )
    parts: list[dict[_Measure, Quantity]] = [{} for _ in range(count)]
    findings, unknowns, others = [], [], 0
    for at, values, changes, name in rows:
        measure = _measure(name)
        if measure is None and name.startswith("fio.") and not _KNOWN.match(name):
            unknowns.append((lines[at].number, name))
        others += measure is None and not name.startswith("fio.")
        if measure is None:
            continue
        for side, text in enumerate(values):
            number, half = float(text), half_unit(text.partition("e")[0])
            scale = measure.scale
            parts[side][measure] = Quantity(
                number * scale,
                (number - half) * scale,
                (number + half) * scale,
                measure.unit,
            )
        for change, value in zip(changes, values[1:], strict=True):
            base, now = float(values[0]), float(value)
            if change.endswith("%") and base:
                shown, stated = 100 * (now / base - 1), float(change[:-1])
                slack = (
                    0.06
                    + 100
                    * (half_unit(value) + half_unit(values[0]) * now / base)
                    / base
                )
                if abs(shown - stated) > slack:
                    words = f"{name}: it says {change}, but {values[0]} to {value} is {shown:+.1f} %"
                    where_ = f"{file}:{lines[at].number}"
                    findings.append(
                        Finding(
                            "change.row",
                            "hard",
                            where_,
                            words,
                            "give the change of the numbers",
                        )
                    )
    place = Place(file, lines[rows[0][0]].number)
    items: list[Run | Refusal] = []
    for side, numbers in enumerate(parts):
        kinds = dict.fromkeys(measure.kind for measure in numbers)
        if kinds:
            items.append(
                Run(
                    place=place,
                    format="table",
                    jobname=names[side],
                    directions=tuple(_direction(kind, numbers) for kind in kinds),
                    workload=Workload(),
                    labels={"variant": names[side]},
                    table="test robot",
                    findings=tuple(findings) if not side else (),
                )
            )
    if unknowns:
        quoted = ", ".join(repr(clean(name)) for _, name in unknowns[:8])
        where = Place(file, unknowns[0][0])
        words = f"{plural(len(unknowns), 'row')} of the robot's table not read ({ranges([n for n, _ in unknowns])}): {quoted}"
        items.append(Refusal(where, words, lost=True))
    if others:
        items.append(
            Refusal(
                place,
                f"{plural(others, 'row')} of the robot's table are of the system, not of fio: not read",
            )
        )
    return items


def _measure(name: str) -> _Measure | None:
    match = _FIO.match(name)
    if match is None:
        return None
    kind: Kind = match["kind"] or "mixed"  # type: ignore[assignment]
    if match["iops"]:
        return _Measure(kind, "iops", 0, "1/s", 1.0)
    if match["bw"]:
        return _Measure(kind, "bw", 0, "B/s", _UNITS[match["bw"]])
    return _Measure(
        kind, match["lat"], float(match["rank"] or 0), "ns", _TIMES[match["unit"]]
    )


def _direction(kind: Kind, numbers: dict[_Measure, Quantity]) -> Direction:
    own = {
        (measure.of, measure.rank): value
        for measure, value in numbers.items()
        if measure.kind == kind
    }
    latencies: list[Latency | None] = []
    for of in ("lat", "clat", "slat"):
        spread = {
            rank: value
            for (name, rank), value in sorted(own.items())
            if name == of and rank
        }
        mean = own.get((of, 0), unknown("ns"))
        has_any = spread or (of, 0) in own
        latencies.append(
            Latency(0, mean, *(unknown("ns"),) * 3, spread) if has_any else None
        )
    iops, bandwidth = (
        own.get(("iops", 0), unknown("1/s")),
        own.get(("bw", 0), unknown("B/s")),
    )
    lat, clat, slat = latencies
    return Direction(kind, 0, 0, 0, iops, bandwidth, lat, clat, slat)
