"""Public results of every generation: each file is read with the right numbers, or refused with the reason.

``oracle.csv`` was written by hand from the files: line of the job, and a number as it stands there, in ns, bytes and
per second, with what the format's rounding leaves open. The corpus lies beside the repository and is no part of it.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from iodelta.audit import audit
from iodelta.ingest import Imported, Run, read
from iodelta.ingest.layouts import read_layout
from iodelta.study.rows import Number, Point, Row
from iodelta.study.runs import shown
from iodelta.trial import Direction, Quantity

HERE = Path(__file__).parent
CORPUS = HERE.parents[2] / "shared" / "fio-corpus"
DATA = HERE.parent / "data"

corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of public results is not beside this repository")

IMPOSSIBLE = "virtualclient/Results_FIO_"
"""Fixtures whose latencies were edited: a maximum below the 99.99th percentile, which is no bin's centre."""

UNREADABLE = {
    "INDEX.csv": "no fio report",
    "own-fio-3.33/logs-a_slat.1.log": "empty",
    "own-fio-3.33/logs-a_slat.2.log": "empty",
    "own-fio-3.33/uring_polled.txt": "printed no rate",
    "pbench-fio-0/perf36/fio_clat_hist.1.log": "impossibly high counts",
    "pbench-fio-0/perf84/fio_clat_hist.1.log": "impossibly high counts",
    "perfkit/bin_vals": "no fio report",
}
"""Files without a result in them, and the two histogram logs that fio 3.7 filled with garbage."""


@cache
def everything() -> Imported:
    return read([CORPUS])


def oracle() -> list[tuple[str, int, str, str, float, float]]:
    with (HERE / "oracle.csv").open() as file:
        return [
            (r["file"], int(r["line"]), r["kind"], r["what"], float(r["value"]), float(r["tolerance"]))
            for r in csv.DictReader(file)
        ]


def quantity(direction: Direction, what: str) -> Quantity:
    part, _, field = what.partition(".")
    value = getattr(direction, part)
    if field:
        assert value is not None, f"no {part}"
        value = value.percentiles[float(field)] if field[0].isdigit() else getattr(value, field)
    return value if isinstance(value, Quantity) else Quantity(value, value, value, "")


@corpus
@pytest.mark.parametrize(("file", "line", "kind", "what", "value", "tolerance"), oracle())
def test_a_number_read_by_hand(file: str, line: int, kind: str, what: str, value: float, tolerance: float) -> None:
    run = next(r for r in everything().runs if r.place.file.endswith("/" + file) and r.place.line == line)
    direction = next(d for d in run.directions if d.kind == kind)
    found = quantity(direction, what)
    assert found.value == pytest.approx(value, rel=1e-9, abs=max(tolerance, value * 1e-7))
    digits = value * 1e-7  # as far as the number was written down
    assert found.low <= value + tolerance + digits
    assert found.high >= value - tolerance - digits
    assert found.low <= found.value <= found.high


def shown_in(row: Row, what: str) -> Number | Point | None:
    """The same quantity in a row of ``iodelta show``; None when it shows another."""
    part, _, field = what.partition(".")
    if not field:
        return {"iops": row.iops, "bandwidth": row.bandwidth}.get(part)
    if field == "mean":
        return row.mean if part == row.latency else None
    return row.point(float(field)) if field[0].isdigit() else None


@corpus
def test_what_show_prints_is_what_was_read_by_hand() -> None:
    """By file as a user types it; jobs that ran together are one row there and are left out here."""
    files = {file for file, *_ in oracle()}
    checked = set()
    for file in sorted(files):
        layout = read_layout(CORPUS / file)
        found = shown(layout, audit(entry.run for entry in layout.entries), each=True)
        jobs = {run.place.line: run.jobs or run.workload.numjobs for run in read([CORPUS / file]).runs}
        for own, line, kind, what, value, tolerance in oracle():
            rows = [row for row in found.rows if (own, row.line, row.kind) == (file, line, kind)]
            number = shown_in(rows[0], what) if rows and rows[0].jobs == jobs[line] else None
            if number:
                spare = tolerance + value * 1e-7
                assert number.low - spare <= value <= number.high + spare, (file, line, what)
                checked.add(file)
    assert len(files) >= 100
    assert len(checked) >= 80


@corpus
def test_every_file_is_read_or_refused_with_a_reason() -> None:
    files = {str(path.relative_to(CORPUS)) for path in CORPUS.rglob("*") if path.is_file()}
    told = {run.place.file for run in everything().runs} | {item.place.file for item in everything().refusals}
    assert {name.removeprefix(f"{CORPUS}/") for name in told} == files
    read_in_part = {run.place.file for run in everything().runs}
    refusals = [r for r in everything().refusals if r.place.file not in read_in_part or "garbage" in r.reason]
    refused = {r.place.file.removeprefix(f"{CORPUS}/"): r.reason for r in refusals}
    assert refused.keys() == UNREADABLE.keys()
    for file, reason in refused.items():
        assert UNREADABLE[file] in reason


@corpus
def test_as_many_jobs_are_found_as_the_index_counted_in_each_format() -> None:
    found: dict[str, Counter[str]] = {}
    for run in everything().runs:
        counts = found.setdefault(run.place.file.removeprefix(f"{CORPUS}/"), Counter())
        counts.update(re.sub(r"\+|\d", "", form) for form in (run.format, *run.also))
    # fio's own sum over its clients is left out; of cumulative reports the last is kept; the index missed a record
    # that stands in the middle of a line.
    other = {
        "pbench-fio-0/fio-result.txt": {"json": 10},
        "own-fio-3.33/status.json": {"json": 1},
        "own-fio-3.33/status.txt": {"text": 1},
        "own-fio-3.33/kill9.txt": {"text": 1},
        "hikalium/result_2408X01456JF.txt": {"text": 8, "terse": 8},
    }
    with (CORPUS / "INDEX.csv").open() as index:
        for row in csv.DictReader(index):
            told = {name: int(n) for name, n in re.findall(r"(text|json|terse):(\d+)", row["jobs"])}
            mine = {n: c for n, c in found.get(row["file"], Counter()).items() if n in ("text", "json", "terse")}
            assert mine == other.get(row["file"], told), row["file"]


@corpus
def test_the_version_is_that_of_the_index() -> None:
    with (CORPUS / "INDEX.csv").open() as index:
        versions = {
            row["file"]: row["fio_version"].removeprefix("fio-")
            for row in csv.DictReader(index)
            if re.match(r"(json|text|terse)", row["format"]) and "terse v2" not in row["format"]
        }
    for run in everything().runs:
        told = versions.get(run.place.file.removeprefix(f"{CORPUS}/"))
        if told is not None and told[0].isdigit():
            assert run.fio_version == told, run.place


@corpus
def test_no_number_of_a_run_is_outside_its_own_interval() -> None:
    def check(value: Quantity, run: Run) -> None:
        assert math.isnan(value.value) or value.low <= value.value <= value.high, (run.place, value)

    for run in everything().runs:
        for d in run.directions:
            for value in (d.iops, d.bandwidth):
                check(value, run)
            for latency in (d.slat, d.clat, d.lat):
                if latency is not None:
                    for value in (latency.mean, latency.stddev, latency.min, latency.max):
                        check(value, run)
                    for value in latency.percentiles.values():
                        check(value, run)


@corpus
def test_percentiles_rise_and_lie_between_minimum_and_maximum() -> None:
    for run in everything().runs:
        for d in run.directions:
            for latency in (d.slat, d.clat, d.lat):
                if latency is None or len(latency.percentiles) < 2:
                    continue
                values = [latency.percentiles[p] for p in sorted(latency.percentiles)]
                assert all(a.low <= b.high for a, b in pairwise(values)), run.place
                if run.format == "table" or IMPOSSIBLE in run.place.file:
                    continue  # whether those can be true is for the audit to say
                if latency.max.high < latency.mean.low:
                    assert "latency.order" in {hit.finding.rule for hit in audit([run]).hits}, run.place
                    continue  # edited by hand: fio's longest is never below its mean
                assert math.isnan(latency.max.value) or values[-1].low <= latency.max.high, run.place
                assert math.isnan(latency.min.value) or latency.min.low <= values[0].high, run.place


@corpus
def test_the_group_of_all_clients_is_not_added_to_the_clients() -> None:
    runs = [run for run in everything().runs if run.place.file.endswith("pbench-fio-0/fio-result.txt")]
    assert Counter(run.host for run in runs) == {"perf36": 5, "perf84": 5}
    assert sum(run.directions[0].ios for run in runs) == 1_401_141, "what fio prints for All clients"
    assert {disk.name for disk in runs[0].disks} == {"dm-0", "sda"}


@corpus
def test_text_around_the_json_is_told_apart_from_it() -> None:
    (run,) = [run for run in everything().runs if run.place.file.endswith("TestFioJsonWithError.txt")]
    assert run.error == 42
    assert [f.rule for f in run.findings] == ["fio.error"]
