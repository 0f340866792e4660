"""The comparison tables that the kernel's test robot (LKP) mails: base, change and new of each measure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Refusal, Run
from iodelta.ingest.numbers import half_unit
from iodelta.ingest.table_runs import direction
from iodelta.ingest.table_titles import Stat
from iodelta.ingest.tables import ranges
from iodelta.ingest.wording import clean
from iodelta.plural import plural
from iodelta.trial import Finding, Kind, Place, Quantity

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
    **{f"{prefix}B": 1e3**power for power, prefix in enumerate("KMG", 1)},
    **{f"{prefix}iB": 2.0 ** (10 * power) for power, prefix in enumerate("KMG", 1)},
    **{"ns": 1.0, "us": 1e3, "ms": 1e6},
}
Row = tuple[int, list[str], list[str], str]
"""Index of the line, numbers of all sides, changes from the first to each other side, and the name of the measure."""


def tables(
    lines: Sequence[Line], used: bytearray, file: str
) -> list[list[Run | Refusal]]:
    """Return a run for each side of each table; the indexes are marked in ``used``."""
    groups: list[list[Run | Refusal]] = []
    sides: list[str] = []
    rows: list[Row] = []
    begun = 0
    for at, line in enumerate([*lines, Line(0, "end")]):
        text = line.text[:1000]
        header = _HEADER.match(text)
        row = _ROW.match(text) if begun else None
        if row is not None and not used[at]:
            further = _FURTHER.findall(row[2])
            values = [row[1], *(value for _, value in further)]
            rows.append((at, values, [change for change, _ in further], row[3]))
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
    lines: Sequence[Line], rows: Sequence[Row], sides: Sequence[str], file: str
) -> list[Run | Refusal]:
    count = max(len(values) for _, values, _, _ in rows)
    names = ["base", "new", *map(str, range(2, count))]
    if len(sides) == count:
        names = [clean(name)[:16] for name in sides]
    parts: list[dict[Kind, dict[tuple[str, Stat, float], Quantity]]]
    parts = [{} for _ in range(count)]
    findings: list[Finding] = []
    unknowns: list[int] = []
    quoted: list[str] = []
    others = 0
    for at, values, changes, name in rows:
        match = _FIO.match(name)
        if match is None:
            others += not name.startswith("fio.")
            if name.startswith("fio.") and not _KNOWN.match(name):
                unknowns.append(lines[at].number)
                quoted.append(repr(clean(name)))
            continue
        kind: Kind = match["kind"] or "mixed"  # type: ignore[assignment]
        rank = float(match["rank"] or 0)
        key: tuple[str, Stat, float] = match["lat"], "mean", rank
        if rank:
            key = match["lat"], "percentile", rank
        elif not match["lat"]:
            key = "rate", "iops" if match["iops"] else "bw", 0
        unit = {"iops": "1/s", "bw": "B/s"}.get(key[1], "ns")
        scale = _UNITS.get(match["bw"] or match["unit"], 1.0)
        for side, text in zip(parts, values, strict=False):
            number, half = (
                float(text) * scale,
                half_unit(text.partition("e")[0]) * scale,
            )
            of_kind = side.setdefault(kind, {})
            of_kind[key] = Quantity(number, number - half, number + half, unit)
        for change, value in zip(changes, values[1:], strict=True):
            base, now = float(values[0]), float(value)
            if not change.endswith("%") or not base:
                continue
            shown = 100 * (now / base - 1)
            slack = half_unit(value) + half_unit(values[0]) * now / base
            if abs(shown - float(change[:-1])) > 0.06 + 100 * slack / base:
                words = f"{name}: it says {change}, but {values[0]} to {value} is {shown:+.1f} %"
                where = f"{file}:{lines[at].number}"
                remedy = "give the change of the numbers"
                findings.append(Finding("change.row", "hard", where, words, remedy))
    place = Place(file, lines[rows[0][0]].number)
    items: list[Run | Refusal] = [
        Run(
            place=place,
            format="table",
            jobname=name,
            directions=tuple(direction(*item) for item in side.items()),
            labels={"variant": name},
            table="test robot",
            findings=tuple(findings) if side is parts[0] else (),
        )
        for name, side in zip(names, parts, strict=False)
        if side
    ]
    if unknowns:
        words = f"{plural(len(unknowns), 'row')} of the robot's table not read ({ranges(unknowns)})"
        words = f"{words}: {', '.join(quoted[:8])}"
        items.append(Refusal(Place(file, unknowns[0]), words, lost=True))
    if others:
        words = f"{plural(others, 'row')} of the robot's table are of the system, not of fio: not read"
        items.append(Refusal(place, words))
    return items
