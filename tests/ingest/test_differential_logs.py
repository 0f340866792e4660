"""Latency logs, histogram logs and terse records of version 2 against a second reading: real and generated ones."""

from __future__ import annotations

import math
import re

import second_logs as second
from hypothesis import given, settings
from hypothesis import strategies as st
from test_differential import directions, files
from tiers import scaled

from iodelta.ingest import Imported, read_bytes
from iodelta.trial import Latency, Quantity


def holds(quantity: Quantity, value: float) -> bool:
    """Whether ``value`` lies within what a reader says that a number may be, but for the last digit of a float."""
    return quantity.low * (1 - 1e-9) <= value <= quantity.high * (1 + 1e-9)


def of_log(found: Imported, kind: str) -> Latency | None:
    """The one latency that was read of a direction."""
    (run,) = found.runs
    own = [d for d in run.directions if d.kind == kind]
    return (own[0].lat or own[0].clat or own[0].slat) if own else None


def check_latencies(found: Imported, text: str, name: str) -> None:
    stated = second.latencies(text)
    assert {d.kind for _, d in directions(found)} == stated.keys(), name
    for kind, spread in stated.items():
        latency = of_log(found, kind)
        assert latency is not None, (name, kind)
        assert holds(latency.mean, spread.mean), (name, kind)
        assert math.isclose(latency.mean.value, spread.mean, rel_tol=1e-9, abs_tol=1e-9)
        if spread.averaged:
            assert not latency.percentiles
            assert not latency.count
            continue
        assert latency.count == len(spread.values)
        assert (latency.min.value, latency.max.value) == (min(spread.values), max(spread.values))
        assert latency.percentiles
        for percent, quantity in latency.percentiles.items():
            assert holds(quantity, spread.at(percent)), (name, kind, percent)


def check_histogram(found: Imported, text: str, name: str) -> None:
    stated = second.histograms(text)
    assert {d.kind for _, d in directions(found)} == stated.keys(), name
    for _, direction in directions(found):
        counts, last = stated[direction.kind]
        bounds = [second.edges(at, len(counts)) for at in range(len(counts))]
        total = sum(counts)
        assert direction.ios == total
        assert direction.clat is not None
        if not total:
            assert math.isnan(direction.clat.mean.value)
            continue
        assert holds(direction.iops, total * 1000 / last), name
        middle = sum(n * (low + high) / 2 for n, (low, high) in zip(counts, bounds, strict=True)) / total
        assert math.isclose(direction.clat.mean.value, middle, rel_tol=1e-9)
        assert direction.clat.mean.low <= middle <= direction.clat.mean.high
        assert direction.clat.percentiles
        for percent, quantity in direction.clat.percentiles.items():
            low, high = bounds[first_bin(counts, percent)]
            assert (quantity.low, quantity.high) in ((low, high), (low, math.inf)), (name, percent)
            assert quantity.high == high or first_bin(counts, percent) == len(counts) - 1


def first_bin(counts: list[int], percent: float) -> int:
    """The first bin up to which so many percent of the I/Os lie."""
    reached = 0
    for at, count in enumerate(counts):
        reached += count
        if reached >= percent / 100 * sum(counts) * (1 - 1e-12):
            return at
    raise AssertionError("no bin holds it")


def check_terse2(found: Imported, text: str, name: str) -> None:
    stated = list(second.terse2(text))
    read = [d for run, d in directions(found) if run.format == "terse2"]
    assert len(read) == len(stated), name
    for direction, record in zip(read, stated, strict=True):
        assert (direction.kind, direction.bytes, direction.runtime_ms) == (
            record.kind,
            record.kib * 1024,
            record.runtime,
        )
        assert holds(direction.iops, record.iops)
        assert holds(direction.bandwidth, record.kib * 1024 * 1000 / record.runtime)
        for latency, (low, high, mean) in ((direction.clat, record.clat), (direction.lat, record.lat)):
            if not high:
                assert latency is None
                continue
            assert latency is not None
            assert (latency.min.value, latency.max.value) == (low * 1000, high * 1000)
            assert math.isclose(latency.mean.value, mean * 1000, rel_tol=1e-9)
        if direction.clat is not None:
            assert direction.clat.percentiles.keys() == record.percentiles.keys()
            for percent, value in record.percentiles.items():
                assert holds(direction.clat.percentiles[percent], value * 1000), (name, percent)


def test_latency_logs_hold_what_a_second_reading_finds() -> None:
    seen = 0
    for file in files():
        if re.search(r"_[sc]?lat(?:\.\d+)?\.log$", file.name) and file.found.runs:
            seen += 1
            check_latencies(file.found, file.text, file.name)
    assert seen >= 5


def test_histogram_logs_hold_what_a_second_reading_finds() -> None:
    seen = 0
    for file in files():
        if re.search(r"clat_hist(?:\.\d+)?\.log$", file.name) and file.found.runs:
            seen += 1
            check_histogram(file.found, file.text, file.name)
    assert seen >= 2


def test_terse_records_of_version_2_hold_what_a_second_reading_finds() -> None:
    own = [file for file in files() if next(second.terse2(file.text), None) is not None]
    assert own
    for file in own:
        check_terse2(file.found, file.text, file.name)


SIZES = (512, 4096, 65536, 1 << 20)


@st.composite
def latency_logs(draw: st.DrawFn) -> str:
    """Rows of single I/Os, or of windows, with the columns of several versions."""
    kinds = draw(st.lists(st.sampled_from((0, 1, 2)), min_size=1, max_size=3, unique=True))
    columns = draw(st.sampled_from(("", ", 0", ", 8192", ", 0, 0x0000", ", 4096, 0x2004")))
    averaged = draw(st.booleans())
    gap = draw(st.sampled_from((0, 1, 13))) if not averaged else draw(st.sampled_from((500, 1000)))
    rows, time = [], 0
    for value in draw(st.lists(st.integers(0, 10**11), min_size=1, max_size=60)):
        time += gap
        size = 0 if averaged else draw(st.sampled_from(SIZES))
        rows.append(f"{time}, {value}, {draw(st.sampled_from(kinds))}, {size}{columns}")
    return draw(st.sampled_from(("\n", "\r\n"))).join(rows) + "\n"


@settings(max_examples=scaled(300))
@given(latency_logs())
def test_a_generated_latency_log_is_read_as_it_was_made(text: str) -> None:
    for name in ("job_lat.1.log", "job_clat.log", "job_slat.3.log"):
        check_latencies(read_bytes(text.encode(), name), text, name)


@st.composite
def histogram_logs(draw: st.DrawFn) -> str:
    """A few rows of one or two directions, at any coarseness, in bins of ns or of us."""
    width = draw(st.sampled_from((1856, 1216))) >> draw(st.integers(0, 6))
    kinds = draw(st.lists(st.sampled_from((0, 1, 2)), min_size=1, max_size=2, unique=True))
    rows = []
    for step in range(1, draw(st.integers(1, 4)) + 1):
        for kind in kinds:
            counts = [0] * width
            for at in draw(st.lists(st.integers(0, width - 1), max_size=6)):
                counts[at] = draw(st.integers(1, 10**6))
            rows.append(f"{1000 * step}, {kind}, 4096, {', '.join(map(str, counts))}")
    return "\n".join(rows) + "\n"


@settings(max_examples=scaled(150))
@given(histogram_logs())
def test_a_generated_histogram_log_is_read_as_it_was_made(text: str) -> None:
    check_histogram(read_bytes(text.encode(), "job_clat_hist.1.log"), text, "generated")


@st.composite
def terse2_records(draw: st.DrawFn) -> str:
    """A record of fio 3.33 with other numbers in its two directions."""
    source = next(file.text for file in files() if file.name == "terse2.txt")
    fields = next(line for line in source.splitlines() if line.startswith("2;")).split(";")
    fields[1] = draw(st.sampled_from(("job", "a b", "seq-read_4k")))
    for first in (4, 45):
        runtime, iops = draw(st.integers(1, 10**6)), draw(st.integers(1, 10**7))
        fields[first : first + 4] = [str(draw(st.integers(1, 10**9))), "1", str(iops), str(runtime)]
        for at in (first + 8, first + 32):
            low, mean, high = sorted(draw(st.lists(st.integers(1, 10**8), min_size=3, max_size=3)))
            fields[at : at + 4] = [str(low), str(high), f"{mean:.6f}", "1.000000"]
        points = sorted(draw(st.lists(st.integers(1, 10**7), min_size=17, max_size=17)))
        for at, value in enumerate(points, first + 12):
            fields[at] = f"{fields[at].partition('=')[0]}={value}"
    return draw(st.sampled_from(("", "> ", "[  12.3] "))) + ";".join(fields) + "\n"


@settings(max_examples=scaled(150))
@given(terse2_records())
def test_a_generated_terse_record_is_read_as_it_was_made(text: str) -> None:
    check_terse2(read_bytes(text.encode(), "x"), text, "generated")


def test_the_second_reading_sees_a_wrong_number() -> None:
    text = "1, 1000, 0, 4096\n2, 3000, 0, 4096\n"
    found = read_bytes(text.encode(), "job_clat.log")
    check_latencies(found, text, "x")
    for wrong in (text.replace("3000", "3001"), text + "3, 2000, 0, 4096\n", text.replace("1000, 0", "1000, 1")):
        try:
            check_latencies(found, wrong, "x")
        except AssertionError:
            continue
        raise AssertionError(f"{wrong} was not seen")
