"""Read fsperf's database (josefbacik/fsperf): its fio results as runs, the purpose of a session as the variant, or the
kernel if all sessions have one purpose."""

from __future__ import annotations

import calendar
import re
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path

from iodelta.ingest.layouts.model import Entry, Layout
from iodelta.ingest.model import Refusal, Run, unknown
from iodelta.trial import Direction, Kind, Latency, Place, Quantity
from iodelta.workload.fio_schema import centre

MAGIC = b"SQLite format 3\x00"

KINDS: tuple[Kind, ...] = ("read", "write")

ROWS = 200_000
"""Most results that are read."""

PATIENCE = 20.0
"""Most seconds for the query of a database."""

_QUERY = (
    "SELECT runs.name, runs.config, runs.kernel, runs.hostname, runs.purpose, runs.time, fio_results.* "
    "FROM fio_results JOIN runs ON runs.id = fio_results.run_id ORDER BY fio_results.id LIMIT ?"
)


def is_database(path: Path) -> bool:
    """Return whether the file is an SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_database(path: Path) -> Layout:
    """Return the fio results in an fsperf database; a Layout with a refusal for another or damaged file."""
    import sqlite3  # with the library itself

    place = Place(str(path))
    try:
        rows = _rows(path)
    except sqlite3.Error as error:
        return _refused(place, f"not a database of fsperf: {error}")
    if rows is None:
        return _refused(place, "an SQLite database, but not fsperf's: no fio_results")
    purposes = {str(row.get("purpose") or "") for row in rows}
    compared = ("purpose", "kernel") if len(purposes) > 1 else ("kernel", "purpose")
    counts: dict[tuple[str, str], int] = {}
    entries = []
    for number, row in enumerate(rows, 1):
        run = _run(row, Place(str(path), number))
        variants = filter(None, (row.get(name) for name in compared))
        key = (run.jobname, str(next(variants, "")))
        counts[key] = counts.get(key, -1) + 1
        entries.append(Entry(run, *key, replicate=counts[key]))
    return Layout("fsperf", tuple(entries))


def _refused(place: Place, reason: str) -> Layout:
    return Layout("fsperf", (), refusals=(Refusal(place, reason),))


def _rows(path: Path) -> list[Mapping[str, object]] | None:
    import sqlite3

    until = time.monotonic() + PATIENCE
    with sqlite3.connect(
        f"file:{urllib.parse.quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True
    ) as database:
        database.set_progress_handler(lambda: time.monotonic() > until, 100_000)
        database.execute("PRAGMA trusted_schema=OFF")
        database.row_factory = sqlite3.Row
        tables = {
            row[0]
            for row in database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            )
        }
        if not {"runs", "fio_results"} <= tables:
            return None
        return [dict(row) for row in database.execute(_QUERY, (ROWS,))]


def _run(row: Mapping[str, object], place: Place) -> Run:
    name, section = str(row.get("name") or ""), str(row.get("config") or "")
    return Run(
        place=place,
        format="json",
        jobname=f"{section} {name}".strip(),
        directions=tuple(
            d for kind in KINDS if (d := _direction(row, kind)) is not None
        ),
        ended=_time(str(row.get("time") or "")),
        elapsed=_number(row, "elapsed"),
        host=str(row.get("hostname") or ""),
        labels={"kernel": str(row.get("kernel") or ""), "config": section},
    )


def _direction(row: Mapping[str, object], kind: Kind) -> Direction | None:
    iops, bandwidth = _number(row, f"{kind}_iops"), _number(row, f"{kind}_bw_bytes")
    size = _number(row, f"{kind}_io_bytes") or 1024 * (
        _number(row, f"{kind}_io_kbytes") or 0.0
    )
    if not iops:
        return None
    return Direction(
        kind=kind,
        ios=0,
        bytes=int(size),
        runtime_ms=0,
        iops=Quantity.exact(iops, "1/s"),
        bandwidth=Quantity.exact(bandwidth, "B/s") if bandwidth else unknown("B/s"),
        lat=_latency(row, f"{kind}_lat_ns"),
        clat=_latency(row, f"{kind}_clat_ns"),
    )


def _latency(row: Mapping[str, object], name: str) -> Latency | None:
    """Return a latency; None for a mean of zero, which means that it was not measured."""
    mean = _number(row, f"{name}_mean")
    if not mean:
        return None
    least, most = _number(row, f"{name}_min"), _number(row, f"{name}_max")
    percentiles = {
        percent: value
        for percent in (50.0, 99.0)
        if (value := _number(row, f"{name}_p{percent:.0f}"))
    }
    return Latency(
        count=0,
        mean=Quantity(mean, mean - 1, mean + 1, "ns"),
        stddev=unknown("ns"),
        min=Quantity.exact(least, "ns") if least is not None else unknown("ns"),
        max=Quantity.exact(most, "ns") if most else unknown("ns"),
        percentiles={percent: centre(value) for percent, value in percentiles.items()},
    )


def _number(row: Mapping[str, object], name: str) -> float | None:
    """Return a column that holds a number from 0 to 2^63; None where it holds anything else."""
    value = row.get(name)
    if not isinstance(value, int | float) or not 0 <= value < 2**63:
        return None
    return float(value)


def _time(text: str) -> float | None:
    """Unix seconds of ``2024-05-03 10:11:12.123456``, which fsperf writes in UTC."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(\.\d+)?", text.strip())
    if match is None:
        return None
    try:
        whole = time.strptime(match[1].replace("T", " "), "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None
    return calendar.timegm(whole) + float(match[2] or 0)
