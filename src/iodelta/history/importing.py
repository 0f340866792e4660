"""Numbers that other services keep, as nights: Bencher's metric format, Perfherder, LNT, and tables (CSV, Parquet)."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

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


T = TypeVar("T")

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

    numbers: Sequence[Number]
    at: float | None = None
    machine: str = ""
    build: str = ""
    commit: str = ""
    repo: str = ""


def nights_of(path: Path, given: Given) -> tuple[Night, ...]:
    """Return the nights in a file of ``given.format``. Raises RequestError."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if given.format in TABLES:
            parsed = list(_table(path, given.format))
        else:
            parsed = list(READERS[given.format](path.read_bytes()))
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
    content = hashlib.sha256(
        msgspec.json.encode((machine, at, parsed.build, parsed.commit, given))
    ).hexdigest()
    left_out: dict[str, str] = {}
    points: Sequence[Point] = _Made(
        partial(_points, parsed.numbers, machine, dict(given.better), left_out)
    )
    if not isinstance(parsed.numbers, _Made):
        points = tuple(points)
    return Night(
        identifier=f"import-{digest[:12]}-{content[:12]}",
        sha=digest,
        t=at,
        machine=machine,
        epoch=epoch_of({}),
        facts={},
        subject=Subject(
            repo=given.repo or parsed.repo,
            commit=given.commit or parsed.commit,
            describe=given.describe or parsed.build,
        ),
        folder=str(path.resolve()),
        state="foreign",
        points=points,
        left_out=left_out,
    )


class _Made(Sequence[T]):
    """Items that are made each time they are asked for: those of a million rows take more memory than the rows."""

    def __init__(self, make: Callable[[], Iterable[T]], size: int = -1) -> None:
        self._make, self._size = make, size

    def __iter__(self) -> Iterator[T]:
        made = self._make()
        if isinstance(made, tuple):
            self._size = len(made)
        return iter(made)

    def __len__(self) -> int:
        if self._size < 0:
            self._size = sum(1 for _ in self)
        return self._size

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]


def _points(
    numbers: Sequence[Number],
    machine: str,
    better: Mapping[str, str],
    left_out: dict[str, str],
) -> tuple[Point, ...]:
    """Return the points of a night; ``left_out`` gets why others are none."""
    points = []
    for number in numbers:
        known_way, known_unit = _known(number.measure)
        way = better.get(number.measure) or number.better or known_way
        why, values = "", number.values
        if not way:
            why = f"higher or lower may be better: say it with --better {number.measure}=higher"
        elif not all(math.isfinite(value) and value > 0.0 for value in values):
            why = "a value that is not above zero has no logarithm"
        elif max(values) > LARGEST:
            why = f"a value above {LARGEST:g} is not a measurement"
        elif number.error is not None and not 0.0 <= number.error <= 1.0:
            why = "its error is not a share of the value from 0 to 1"
        if why:
            left_out[f"{number.cell}, {number.measure}"] = why
            continue
        flags: tuple[str, ...] = (FOREIGN,)
        y, error, lag1 = math.log(values[0]), number.error, 0.0
        if len(values) > 1:
            y, error, lag1 = mean_and_error(np.log(np.asarray(values, dtype=float)))
        elif error is None:
            flags, error = (FOREIGN, NO_ERROR), 0.0
        key = _key(machine, number.cell, number.variant, number.measure)
        own = (number.cell, number.variant, way, number.unit or known_unit)
        points.append(Point(key, *own, y, error, len(values), lag1, flags=flags))
    return apart(points)


@lru_cache(maxsize=1 << 16)
def _key(machine: str, cell: str, variant: str, measure: str) -> Key:
    options = (("tool", "import"), ("cell", cell))
    return Key(
        machine,
        options,
        (),
        (("variant", variant),) if variant else (),
        FOREIGN,
        measure,
        "",
    )


@lru_cache(maxsize=1 << 10)
def _known(measure: str) -> tuple[str, str]:
    try:
        known = metric(measure)
    except RequestError:
        return KNOWN.get(measure, ("", ""))
    return known.better, known.unit


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
ABOUT = ("machine", "build", "commit", "repo")
"""Columns of a night next to its time."""


def _rows(nights: Any, at: int) -> Iterator[Number]:
    """Yield the numbers of one night of a table, whose columns have a list for each night."""
    row = nights.row(at, named=True)
    columns = [
        row.get(name) or itertools.repeat(None)
        for name in ("error", "better", "unit", "variant")
    ]
    for cell, measure, value, error, *words in zip(
        row["cell"], row["metric"], row["value"], *columns, strict=False
    ):
        yield Number(cell, measure, (value,), error, *(word or "" for word in words))


def _table(path: Path, kind: str) -> Iterator[Told]:
    """A row is a number; rows of one time, machine, build, commit and repository are a night. Raises ValueError."""
    with needs_extra("history", "reading a table"):
        import polars as pl

    if not path.stat().st_size:
        return
    try:
        source = (
            pl.scan_csv(path, infer_schema=False, truncate_ragged_lines=True)
            if kind == "csv"
            else pl.scan_parquet(path)
        )
        there = source.collect_schema()
        texts = [
            name
            for name in (*ABOUT, "cell", "metric", "variant", "unit", "better")
            if name in there
        ]
        # A name that stands in a million rows is kept once.
        columns = [
            pl.col(name).cast(pl.String).fill_null("").cast(pl.Categorical)
            for name in texts
        ]
        for name in ("value", "error"):
            if name in there:
                columns.append(
                    pl.col(name)
                    .cast(pl.String)
                    .str.strip_chars()
                    .replace("", None)
                    .cast(pl.Float64)
                )
        if "time" in there:
            columns.append(
                pl.col("time").cast(pl.Categorical)
                if there["time"] == pl.String
                else pl.col("time")
            )
        empty = [
            pl.col(name).is_null() | (pl.col(name).cast(pl.String) == "")
            for name in NEEDED
            if name in there
        ]
        frame = source.select(columns).collect(engine="streaming")
        lacking = [(0, name) for name in NEEDED if name not in there and frame.height]
        for mask in frame.select(empty):
            first = mask.arg_max() or 0
            if frame.height and mask[first]:
                lacking.append((first, mask.name))
        if lacking:
            number, name = min(lacking, key=lambda one: one[0])
            raise ValueError(
                f"row {number + 1} has no {name}; needed are the columns {', '.join(NEEDED)}"
            )
        about = [name for name in ("time", *ABOUT) if name in there]
        frame = (
            frame.with_columns(pl.lit("").alias("time"))
            if "time" not in there
            else frame
        )
        nights = frame.group_by(
            [*dict.fromkeys(["time", *about])], maintain_order=True
        ).agg(pl.all())
        del frame
    except pl.exceptions.PolarsError as error:
        raise ValueError(str(error)) from error
    for at, night in enumerate(
        nights.select("time", *(name for name in about if name != "time")).iter_rows(
            named=True
        )
    ):
        yield Told(
            _Made(partial(_rows, nights, at), len(nights["cell"][at])),
            _time(night["time"]),
            *(night.get(name, "") for name in ABOUT),
        )


def _time(value: Any) -> float | None:
    """Unix seconds, or ISO 8601 in UTC where it says no zone."""
    if value is None or value == "":
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
}
TABLES = ("csv", "parquet")
NAMES = {
    "bmf": "Bencher's metric format",
    "perfherder": "data of Perfherder",
    "lnt": "a report of LNT",
    "csv": "a table as CSV",
    "parquet": "a table as Parquet",
}
