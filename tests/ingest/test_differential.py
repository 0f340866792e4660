"""Every number that a reader gives is also found by a second reading of a few lines, which knows nothing of the first.

The results are those in ``tests/data`` and, where it lies next to the repository, the corpus of public results.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
import second_reading as second

from iodelta.ingest import Disk, Imported, Run, read_bytes
from iodelta.trial import Direction, Latency

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared"
ROOTS = [path for path in (HERE.parent / "data", SHARED / "fio-corpus") if path.is_dir()]

INTERIM = ("status.json", "status.txt", "kill9.txt")
"""Reports of fio while it still ran: of those of one run the last is read."""
EDITED = ("Results_FIO.json",)
"""A fixture whose rates do not agree with its own I/Os and run time: the reader takes the latter."""
WRAPPED = ("bcache_results.txt",)
"""Lines broken by a mail program: the second reading knows no such thing."""
UNIFIED = ("fio-3.1-mixed-two-groups.txt", "mixed.json")
"""Rates of all directions together, which have no line of their own direction."""


class File(NamedTuple):
    """A file of results, and what was read of it."""

    name: str
    text: str
    found: Imported


@cache
def files() -> tuple[File, ...]:
    paths = [path for root in ROOTS for path in sorted(root.rglob("*")) if path.is_file()]
    paths = [path for path in paths if path.suffix != ".csv"]
    return tuple(File(p.name, p.read_text(errors="replace"), read_bytes(p.read_bytes(), p.name)) for p in paths)


def directions(found: Imported) -> list[tuple[Run, Direction]]:
    return [(run, d) for run in found.runs for d in run.directions]


def agrees(direction: Direction, rate: second.Rate) -> bool:
    """Whether kind, IOPS, bandwidth and mean latency are those of ``rate``, as far as its digits tell."""
    spare = rate.spare + 0.002
    same = direction.kind == rate.kind and math.isclose(direction.iops.value, rate.iops, rel_tol=spare)
    same = same and math.isclose(direction.bandwidth.value, rate.bandwidth, rel_tol=spare + 0.01)
    if rate.clat is None or direction.clat is None or math.isnan(direction.clat.mean.value):
        return same
    return same and math.isclose(direction.clat.mean.value, rate.clat, rel_tol=0.02)


def rates(file: File) -> dict[str, list[second.Rate]]:
    """What the second reading finds in a file, by format."""
    of_json = [rate for document in second.documents(file.text) for _, rate in second.jobs(document)]
    return {"text": list(second.text(file.text)), "terse": list(second.terse(file.text)), "json": of_json}


@pytest.mark.parametrize("form", ["text", "terse", "json"])
def test_every_rate_that_stands_in_a_file_is_read(form: str) -> None:
    seen = 0
    for file in files():
        if file.name in INTERIM + EDITED:
            continue
        read = [direction for _, direction in directions(file.found)]
        for rate in rates(file)[form]:
            if rate.iops > 0:
                seen += 1
                assert any(agrees(direction, rate) for direction in read), (file.name, rate)
    assert seen >= 30


def test_every_rate_that_is_read_stands_in_its_file() -> None:
    seen = 0
    for file in files():
        if file.name in EDITED + WRAPPED + UNIFIED:
            continue
        stated = [rate for of_form in rates(file).values() for rate in of_form]
        for run, direction in directions(file.found):
            if run.format not in ("text", "json", "json+", "terse3", "terse4", "terse5"):
                continue
            if not math.isnan(direction.iops.value):
                seen += 1
                assert any(agrees(direction, rate) for rate in stated), (file.name, run.place.line, direction.kind)
    assert seen >= 60


def test_the_bytes_and_io_counts_of_every_document_are_read_to_the_last_one() -> None:
    seen = 0
    for file in files():
        if file.name in INTERIM:
            continue
        read = [direction for _, direction in directions(file.found)]
        for volume in second.volumes(file.text):
            seen += 1
            same = [d for d in read if (d.kind, d.ios) == (volume.kind, volume.ios)]
            assert any(volume.least <= d.bytes <= volume.most for d in same), (file.name, volume)
    assert seen >= 20


def test_a_histogram_has_as_many_samples_as_its_bins_in_the_document() -> None:
    seen = 0
    for file in files():
        read = [d.clat.histogram for _, d in directions(file.found) if d.clat is not None]
        counts = [sum(histogram.counts) for histogram in read if histogram is not None]
        for total in bins(file.text):
            seen += 1
            assert total in counts, (file.name, total)
    assert seen >= 3


def bins(text: str) -> Iterator[int]:
    """The sums of the bins of every direction's completion latencies."""
    for document in second.documents(text):
        for job in document.get("jobs", []):
            for kind in ("read", "write", "trim"):
                part = job.get(kind) if isinstance(job, dict) else None
                clat = part.get("clat_ns", {}) if isinstance(part, dict) else {}
                if clat.get("bins") and job.get("jobname") != "All clients":
                    yield sum(clat["bins"].values())


@pytest.mark.parametrize(("ending", "scale"), [("iops", 1.0), ("bw", 1024.0)])
def test_the_rate_of_a_log_lies_among_its_values(ending: str, scale: float) -> None:
    seen = 0
    for file in files():
        if not re.search(rf"_{ending}(?:\.\d+)?\.log$", file.name):
            continue
        values = second.log_values(file.text)
        for _, direction in directions(file.found):
            quantity = direction.iops if ending == "iops" else direction.bandwidth
            own = [value for _, value in values[direction.kind]]
            if math.isnan(quantity.value) or not averaged(values[direction.kind]):
                continue
            seen += 1
            most = (max(own) + 1) * together(values[direction.kind])
            assert min(own) * scale * 0.99 <= quantity.high, file.name
            assert quantity.value <= most * scale * 1.01, file.name
    assert seen >= 2


def averaged(rows: list[tuple[int, float]]) -> bool:
    """Whether rows are too far apart to be single I/Os, whose rates say nothing of the run's."""
    times = sorted({time for time, _ in rows})
    gaps = sorted(b - a for a, b in pairwise(times))
    return len(gaps) > 1 and gaps[len(gaps) // 2] >= 400


def together(rows: list[tuple[int, float]]) -> int:
    """How many jobs write into one log: the most rows within 50 ms."""
    times = sorted(time for time, _ in rows)
    return max(sum(abs(time - other) <= 50 for other in times[at : at + 9]) for at, time in enumerate(times))


def test_the_rate_of_t_io_uring_lies_among_its_lines() -> None:
    seen = 0
    powers = {"": 1.0, "K": 1e3, "M": 1e6}
    for file in files():
        lines = [(m[1], m[2]) for m in re.finditer(r"^[> ]*IOPS=([\d.]+)([KM]?), ", file.text, re.M)]
        values = [float(number) * powers[unit] for number, unit in lines]
        for run, direction in directions(file.found):
            if run.format == "io_uring" and values:
                seen += 1
                counted = values[1:] or values  # the first second holds the warm-up
                assert min(counted) * 0.98 <= direction.iops.value <= max(counted) * 1.02, file.name
    assert seen >= 5


KBENCH = """=========================
FIO Benchmark Summary
=========================
IOPS (Read/Write)
        Random:          90,546 / 73,514
    Sequential:          94,976 / 68,510

Bandwidth in KiB/sec (Read/Write)
        Random:        438,403 / 315,218
    Sequential:        459,349 / 349,123


Latency in ns (Read/Write)
        Random:         160,387 / 65,962
    Sequential:         166,476 / 68,810
"""


def test_the_rate_of_t_io_uring_is_the_mean_of_the_seconds_after_the_first() -> None:
    thousands = (10, 20, 40, 50)
    text = "submitter=0, tid=1, file=/dev/x, nfiles=1, node=-1\n"
    text += "".join(f"IOPS={rate}K, BW={rate * 4096 // 1049}MiB/s, IOS/call=32/31\n" for rate in thousands)
    (run,) = read_bytes(text.encode(), "x").runs
    assert math.isclose(run.directions[0].iops.value, 1e3 * sum(thousands[1:]) / 3, rel_tol=0.03)


def test_kbench_summaries_are_their_pairs() -> None:
    files_of_kbench = [file for file in files() if "(Read/Write)" in file.text]
    summaries = [File("printed", KBENCH, read_bytes(KBENCH.encode(), "printed")), *files_of_kbench]
    for file in summaries:
        expected = [
            (f"{pattern} {measure}", kind, value)
            for measure, pattern, read, write in second.pairs(file.text)
            for kind, value in (("read", read), ("write", write))
        ]
        found = []
        for run, d in directions(file.found):
            mean = d.lat.mean.value if d.lat is not None else math.nan
            value = next(v for v in (d.iops.value, d.bandwidth.value, mean) if not math.isnan(v))
            found.append((run.jobname, d.kind, value))
        assert sorted(found) == sorted(expected)
        assert len(found) >= 12


def test_numbers_in_prose_are_those_that_stand_there() -> None:
    text = "Random read, good: 554 IOPS → bad: 535 IOPS (-3.4%)\n\nIt went from 1,200 MiB/s to 900 MiB/s.\n\n"
    text += "It fell from ~36M IOPS to ~13k IOPS.\n\n"
    text += "Results:\n\nKernel 4.1:\nRR: 780 MByte/sec – RW: 754 MByte/sec\n"
    rows = read_bytes(text.encode(), "mail").runs
    values = {round(v) for run in rows for d in run.directions for v in (d.iops.value, d.bandwidth.value) if v == v}
    number = r"([\d,]+)( |M |k )(IOPS|MiB/s|MByte/sec)"
    scales = {" IOPS": 1, "M IOPS": 10**6, "k IOPS": 1000, " MiB/s": 2**20, " MByte/sec": 10**6}
    assert values == {int(n.replace(",", "")) * scales[power + unit] for n, power, unit in re.findall(number, text)}


def test_the_second_reading_sees_a_wrong_number() -> None:
    """A report with a digit changed after it was read does not agree."""
    line = "  read: IOPS=8466, BW=33.1MiB/s (34.7MB/s)(33.1MiB/1001msec)\n"
    (rate,) = second.text(line)
    (run,) = read_bytes(line.encode(), "x").runs
    assert agrees(run.directions[0], rate)
    assert not agrees(run.directions[0], next(iter(second.text(line.replace("8466", "8966")))))
    assert not agrees(run.directions[0], next(iter(second.text(line.replace("33.1MiB/s", "53.1MiB/s")))))


@pytest.mark.parametrize(
    ("form", "reading", "least"), [("text", second.disks_of_text, 5), ("json", second.disks_of_json, 5)]
)
def test_every_counter_of_a_disk_that_stands_in_a_file_is_read(
    form: str, reading: Callable[[str], Iterator[second.DiskCount]], least: int
) -> None:
    seen = 0
    for file in files():
        if file.name in INTERIM + WRAPPED:
            continue
        read = {
            (disk.name, *counters(disk), round(disk.util, 2))
            for run in file.found.runs
            if run.format.startswith(form) or form in run.also
            for disk in run.disks
        }
        for stated in reading(file.text):
            seen += 1
            assert (stated.name, *stated.counts, round(stated.util, 2)) in read, (file.name, stated)
    assert seen >= least


def counters(disk: Disk) -> tuple[int, ...]:
    merges = (disk.read_merges, disk.write_merges)
    return (disk.read_ios, disk.write_ios, *merges, disk.read_ticks, disk.write_ticks, disk.in_queue)


@pytest.mark.parametrize("reading", [second.syncs_of_text, second.syncs_of_json])
def test_every_latency_of_fsync_that_stands_in_a_file_is_read(reading: Callable[[str], Iterator[second.Sync]]) -> None:
    seen = 0
    for file in files():
        if file.name in INTERIM:
            continue
        read = [run.sync for run in file.found.runs if run.sync is not None]
        for stated in reading(file.text):
            seen += 1
            assert any(is_sync(latency, stated) for latency in read), (file.name, stated, read)
    assert seen >= 4


def is_sync(found: Latency, stated: second.Sync) -> bool:
    same = math.isclose(found.mean.value, stated.mean, rel_tol=0.002)
    same = same and math.isclose(found.max.value, stated.slowest, rel_tol=0.02)
    return same and (stated.p99 is None or math.isclose(found.percentiles[99.0].value, stated.p99, rel_tol=0.02))


def test_the_second_reading_of_disks_and_syncs_sees_a_wrong_number() -> None:
    (line,) = second.disks_of_text("  sda: ios=12/3, sectors=96/24, merge=1/0, ticks=7/2, in_queue=9, util=1.50%\n")
    assert line == second.DiskCount("sda", (12, 3, 1, 0, 7, 2, 9), 1.5)
    (run,) = read_bytes((HERE.parent / "data" / "fio-3.33" / "syncramp.json").read_bytes(), "x").runs
    assert run.sync is not None
    (stated,) = second.syncs_of_json((HERE.parent / "data" / "fio-3.33" / "syncramp.json").read_text())
    assert is_sync(run.sync, stated)
    assert not is_sync(run.sync, stated._replace(mean=stated.mean * 1.1))
