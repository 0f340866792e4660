"""Numbers that other services keep, as nights: Bencher's metric format, Perfherder, LNT, and tables (CSV, Parquet)."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from iodelta.decoding import from_json
from iodelta.errors import RequestError, needs_extra
from iodelta.experiment import Subject
from iodelta.history.foreign import FOREIGN, NO_ERROR
from iodelta.history.log import Given
from iodelta.history.points import Key, Night, Point, apart, epoch_of, mean_and_error
from iodelta.verdict import metric

KNOWN = {
    "latency": ("lower", "ns"),
    "throughput": ("higher", "operations/s"),
    "build-time": ("lower", "s"),
    "file-size": ("lower", "B"),
    "accuracy": ("higher", "%"),
    "instructions": ("lower", "instructions"),
    "compile_time": ("lower", "s"),
    "execution_time": ("lower", "s"),
    "score": ("higher", ""),
    "mem_bytes": ("lower", "B"),
    "code_size": ("lower", "B"),
}
"""Measures that Bencher and LNT give a meaning: which way is better, and the unit."""


LARGEST = 1e300
"""Ends of intervals must be numbers too."""


class Number(msgspec.Struct, frozen=True):
    """One result. ``values`` are replicates; ``error`` is the relative standard error of a single value."""

    cell: str
    measure: str
    values: tuple[float, ...]
    error: float | None = None
    better: str = ""
    unit: str = ""
    variant: str = ""


class Told(msgspec.Struct, frozen=True):
    """Results of one moment, as far as the source says when, where and of which build."""

    numbers: tuple[Number, ...]
    at: float | None = None
    machine: str = ""
    build: str = ""
    commit: str = ""


def nights_of(path: Path, given: Given) -> tuple[Night, ...]:
    """The nights in a file of ``given.format``. Raises RequestError."""
    try:
        data = path.read_bytes()
        parsed = list(READERS[given.format](data))
    except OSError as error:
        raise RequestError(
            f"cannot read it: {error.strerror}", place=str(path)
        ) from error
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        msgspec.MsgspecError,
    ) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RequestError(
            f"not {NAMES[given.format]}: {message}", place=str(path)
        ) from error
    digest = hashlib.sha256(data).hexdigest()
    nights = tuple(
        _night(night, path, given, digest) for night in parsed if night.numbers
    )
    if not nights:
        raise RequestError("there is no number in it", place=str(path))
    return nights


def _night(parsed: Told, path: Path, given: Given, digest: str) -> Night:
    machine = given.machine or parsed.machine
    at = parsed.at if given.at is None else given.at
    if not machine or at is None:
        what, option = (
            ("where", "--machine NAME") if not machine else ("when", "--at TIME")
        )
        raise RequestError(
            f"this does not say {what} it was measured",
            place=str(path),
            remedy=f"say it with {option}",
        )
    points, left_out = _points(parsed, machine, dict(given.better))
    content = hashlib.sha256(
        msgspec.json.encode((machine, at, parsed.build, parsed.commit, given))
    ).hexdigest()
    return Night(
        identifier=f"import-{digest[:12]}-{content[:12]}",
        sha=digest,
        t=at,
        machine=machine,
        epoch=epoch_of({}),
        facts={},
        subject=Subject(
            commit=given.commit or parsed.commit,
            describe=given.describe or parsed.build,
        ),
        folder=str(path.resolve()),
        state="foreign",
        points=points,
        left_out=left_out,
    )


def _points(
    parsed: Told, machine: str, better: Mapping[str, str]
) -> tuple[tuple[Point, ...], dict[str, str]]:
    points, left_out = [], {}
    for number in parsed.numbers:
        way, unit = _meaning(number, better)
        name = f"{number.cell}, {number.measure}"
        if not way:
            left_out[name] = (
                f"higher or lower may be better: say it with --better {number.measure}=higher"
            )
        elif not all(math.isfinite(value) and value > 0.0 for value in number.values):
            left_out[name] = "a value that is not above zero has no logarithm"
        elif max(number.values) > LARGEST:
            left_out[name] = f"a value above {LARGEST:g} is not a measurement"
        elif number.error is not None and not 0.0 <= number.error <= 1.0:
            left_out[name] = "its error is not a share of the value from 0 to 1"
        else:
            points.append(_point(number, machine, way, unit))
    return apart(points), left_out


def _point(number: Number, machine: str, better: str, unit: str) -> Point:
    logs = np.log(np.asarray(number.values, dtype=float))
    flags: tuple[str, ...] = (FOREIGN,)
    lag1, error = 0.0, number.error
    if len(logs) > 1:
        _, error, lag1 = mean_and_error(logs)
    elif error is None:
        flags, error = (FOREIGN, NO_ERROR), 0.0
    options = (("tool", "import"), ("cell", number.cell))
    knobs = (("variant", number.variant),) if number.variant else ()
    key = Key(machine, options, (), knobs, FOREIGN, number.measure, "")
    y = float(np.mean(logs))
    return Point(
        key,
        number.cell,
        number.variant,
        better,
        unit,
        y,
        error,
        len(logs),
        lag1,
        flags=flags,
    )


def _meaning(number: Number, better: Mapping[str, str]) -> tuple[str, str]:
    """Which way is better, and the unit; empty where nobody says."""
    way, unit = KNOWN.get(number.measure, ("", ""))
    try:
        known = metric(number.measure)
        way, unit = known.better, known.unit
    except RequestError:
        pass
    return better.get(number.measure) or number.better or way, number.unit or unit


def _bmf(data: bytes) -> Iterator[Told]:
    benchmarks = from_json(data, dict[str, dict[str, dict[str, Any]]])
    numbers = []
    for cell, measures in benchmarks.items():
        for measure, value in measures.items():
            numbers.append(Number(cell, measure, (float(value["value"]),)))
    yield Told(tuple(numbers))


def _perfherder(data: bytes) -> Iterator[Told]:
    text = data.decode().strip().removeprefix("PERFHERDER_DATA:")
    numbers = []
    for suite in msgspec.json.decode(text)["suites"]:
        # Perfherder tells suites of one name apart by these, in any order.
        variant = " ".join(sorted(map(str, suite.get("extraOptions") or ())))
        cells = [(str(suite["name"]), suite)] if "value" in suite else []
        for subtest in suite.get("subtests", ()):
            cells.append((f"{suite['name']} {subtest['name']}", subtest))
        for cell, subtest in cells:
            values = tuple(map(float, subtest.get("replicates") or (subtest["value"],)))
            # A subtest says what differs from its suite.
            lower = subtest.get("lowerIsBetter", suite.get("lowerIsBetter", True))
            way = "lower" if lower else "higher"
            unit = str(subtest.get("unit", suite.get("unit", "")))
            numbers.append(Number(cell, "value", values, None, way, unit, variant))
    yield Told(tuple(numbers))


def _lnt(data: bytes) -> Iterator[Told]:
    document = msgspec.json.decode(data)
    numbers = []
    for test in document["tests"]:
        for name, value in test.items():
            values = value if isinstance(value, list) else [value]
            # Notes and hashes are texts.
            are_numbers = all(isinstance(item, int | float) for item in values)
            if name != "name" and values and are_numbers:
                samples = tuple(map(float, values))
                numbers.append(Number(str(test["name"]), name, samples))
    run = document.get("run", {})
    at = _time(str(run["start_time"])) if run.get("start_time") else None
    machine = str(document.get("machine", {}).get("name", ""))
    build = str(run.get("llvm_project_revision", ""))
    commit = str(run.get("commit", ""))
    yield Told(tuple(numbers), at, machine, build, commit)


NEEDED = ("cell", "metric", "value")
EMPTY = (None, "")
"""What a cell of a table without a value is, in Parquet and in CSV."""


def _word(row: Mapping[str, Any], column: str) -> str:
    return str(row.get(column) or "")


def _number(row: Mapping[str, Any]) -> Number:
    """The number in a row of a table. Raises ValueError."""
    error = None
    if row.get("error") not in EMPTY:
        error = float(row["error"])
    return Number(
        str(row["cell"]),
        str(row["metric"]),
        (float(row["value"]),),
        error,
        _word(row, "better"),
        _word(row, "unit"),
        _word(row, "variant"),
    )


def _table(records: Sequence[Mapping[str, Any]]) -> Iterator[Told]:
    """A row is a number; rows of one time, machine and build are a night."""
    groups: dict[tuple[Any, ...], list[Number]] = {}
    for number, row in enumerate(records, 1):
        missing = [name for name in NEEDED if row.get(name) in EMPTY]
        if missing:
            raise ValueError(
                f"row {number} has no {missing[0]}; needed are the columns {', '.join(NEEDED)}"
            )
        words = [_word(row, column) for column in ("machine", "build", "commit")]
        night = (_time(row.get("time")), *words)
        groups.setdefault(night, []).append(_number(row))
    for (at, machine, build, commit), numbers in groups.items():
        yield Told(tuple(numbers), at, machine, build, commit)


def _csv(data: bytes) -> Iterator[Told]:
    import csv

    yield from _table(list(csv.DictReader(io.StringIO(data.decode("utf-8-sig")))))


def _parquet(data: bytes) -> Iterator[Told]:
    with needs_extra("frames", "reading Parquet"):
        import polars as pl

    try:
        records = pl.read_parquet(io.BytesIO(data)).to_dicts()
    except pl.exceptions.PolarsError as error:
        raise ValueError(str(error)) from error
    yield from _table(records)


def _time(value: Any) -> float | None:
    """Unix seconds, or ISO 8601 in UTC where it says no zone."""
    if value in EMPTY:
        return None
    is_number = isinstance(value, int | float)
    if is_number or (isinstance(value, str) and value.replace(".", "", 1).isdigit()):
        return float(value)
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


READERS: dict[str, Callable[[bytes], Iterator[Told]]] = {
    "bmf": _bmf,
    "perfherder": _perfherder,
    "lnt": _lnt,
    "csv": _csv,
    "parquet": _parquet,
}
NAMES = {
    "bmf": "Bencher's metric format",
    "perfherder": "data of Perfherder",
    "lnt": "a report of LNT",
    "csv": "a table as CSV",
    "parquet": "a table as Parquet",
}
