"""Tables people posted, transcribed row by row, as the runs a reader makes of them."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple

from iodelta.ingest import Run, Workload, unknown
from iodelta.trial import Direction, Kind, Latency, Place, Quantity

HERE = Path(__file__).parent

TITLES = {
    "T1": "Benchmark Results Summary Table",
    "T2": "HDD RAID1",
    "T3": "SSD RAID10",
    "T4": "SSD RAID10 ReadWrite",
    "T5": "Btrfs Read Policy Results (Defrag Off)",
    "T6": "Btrfs Read Policy Results (Defrag On)",
}
READ = ("IOPS", "BW (KiB/s)", "Avg Lat (ms)", "99% Lat (ms)", "99.9% Lat (ms)")
READ_WRITE = (
    *("Read IOPS", "Read BW (KiB/s)", "Read Avg Lat (ms)"),
    *("Write IOPS", "Write BW (KiB/s)", "Write Avg Lat (ms)"),
)


class Row(NamedTuple):
    """One row and the rules that the document says it breaks."""

    table: str
    run: Run
    breaks: frozenset[str]


def gist() -> list[Row]:
    """The 195 rows of the read policy gist of May 2025 (seed 003)."""
    with open(HERE / "gist.csv", encoding="utf-8") as file:
        return [_row(fields) for fields in csv.DictReader(file, delimiter="|")]


def _row(fields: dict[str, str]) -> Row:
    cells = [text.replace("_", " ") for text in fields["cells"].split()]
    named = {"Test Scenario": fields["test"], "Policy": fields["policy"]}
    title = TITLES[fields["table"]]
    if fields["storage"]:
        named = {
            "Storage": fields["storage"],
            "Jobs": fields["jobs"],
            "Test": fields["test"],
            "Policy": fields["policy"],
        }
    section = {"section": fields["section"]} if fields["section"] else {}
    titles = READ_WRITE if fields["table"] == "T4" else READ
    run = Run(
        place=Place("gist", int(fields["line"])),
        format="table",
        table=title,
        labels=named | dict(zip(titles, cells, strict=True)) | section,
        workload=Workload(
            bs=4096 if fields["test"].startswith("Rand") else 1 << 20,
            iodepth=int(re.findall(r"QD(\d+)", fields["test"])[0]),
            numjobs=int(fields["jobs"]) if fields["storage"] else None,
        ),
        directions=(
            (_direction("read", cells),)
            if len(cells) == 5
            else (_direction("read", cells[:3]), _direction("write", cells[3:]))
        ),
    )
    return Row(fields["table"], run, frozenset(fields["rules"].split()))


def _direction(kind: Kind, cells: list[str]) -> Direction:
    mean = printed(cells[2], 1e6, "ns")
    percentiles = {p: printed(cell, 1e6, "ns") for p, cell in zip((99.0, 99.9), cells[3:], strict=False)}
    return Direction(
        kind=kind,
        ios=0,
        bytes=0,
        runtime_ms=0,
        iops=printed(cells[0], 1, "1/s"),
        bandwidth=printed(cells[1], 1024, "B/s"),
        lat=Latency(0, mean, unknown("ns"), unknown("ns"), unknown("ns"), percentiles),
    )


def printed(text: str, scale: float, unit: str) -> Quantity:
    """A number as printed, with what rounding to its last digit allows."""
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        return unknown(unit)
    half = 0.5 * 10.0 ** -len(text.partition(".")[2])
    value = float(text)
    return Quantity(value * scale, (value - half) * scale, (value + half) * scale, unit)
