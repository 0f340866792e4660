"""A report that was cut, that lost a line, or whose numbers another program wrote in its own way: each number that is
still read is the one that stood there, and of the same direction."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import second_reading as second
from told import told as of_text

from iodelta.ingest import Imported, read_bytes

DATA = Path(__file__).parent.parent / "data"
OLD = """x: (groupid=0, jobs=8): err= 0: pid=4175: Tue Apr  4 17:21:33 2017
  read : io=4096.0MB, bw=245439KB/s, iops=61359, runt= 17089msec
    clat (usec): min=39, max=84543, avg=1987.34, stdev=1061.22
  cpu          : usr=3.58%, sys=9.01%, ctx=741411, majf=0, minf=207
     issued    : total=r=1048576/w=0/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0
"""
TWO = """x: (groupid=0, jobs=1): err= 0: pid=27195: Sat Nov 21 19:07:11 2026
  read: IOPS=5313, BW=20.8MiB/s (21.8MB/s)(62.3MiB/3001msec)
    clat (usec): min=47, max=5810, avg=85.83, stdev=69.55
     lat (usec): min=48, max=5810, avg=85.96, stdev=69.55
    clat percentiles (usec):
     |  1.00th=[   63], 50.00th=[   82], 99.00th=[  147]
   iops        : min= 4808, max= 5544, avg=5258.00, stdev=276.91, samples=5
  write: IOPS=5299, BW=20.7MiB/s (21.7MB/s)(62.1MiB/3001msec); 0 zone resets
    clat (usec): min=42, max=7117, avg=99.99, stdev=92.53
     lat (usec): min=42, max=7117, avg=100.20, stdev=92.54
    clat percentiles (usec):
     |  1.00th=[   61], 50.00th=[   92], 99.00th=[  176]
   iops        : min= 5015, max= 5416, avg=5265.80, stdev=160.70, samples=5
  cpu          : usr=4.91%, sys=15.51%, ctx=31843, majf=0, minf=24
     issued rwts: total=15945,15903,0,0 short=0,0,0,0 dropped=0,0,0,0
"""
REAL = ("client.txt",)
REPORTS = {"fio 2": OLD, "two directions": TWO, **{name: (DATA / "fio-3.33" / name).read_text() for name in REAL}}


def read(text: str) -> Imported:
    return read_bytes(text.encode(), "x.txt")


def wrong(found: Imported, text: str) -> Iterator[str]:
    """What was read of a changed report that does not stand in the original ``text``."""
    stated = list(second.text(text))
    for run in found.runs:
        for direction in run.directions:
            same = [rate for rate in stated if rate.kind == direction.kind]
            iops, clat = direction.iops.value, direction.clat.mean.value if direction.clat else math.nan
            if not any(math.isclose(rate.iops, iops, rel_tol=rate.spare + 0.002) for rate in same):
                yield f"{direction.kind}: {iops:g} IOPS"
            if not any(math.isnan(clat) or math.isclose(rate.clat or 0.0, clat, rel_tol=1e-9) for rate in same):
                yield f"{direction.kind}: {clat:g} ns"


def told(found: Imported) -> bool:
    return bool(found.refusals) or any(run.findings for run in found.runs)


@pytest.mark.parametrize("name", REPORTS)
def test_a_line_that_is_missing_gives_no_number_to_another_direction(name: str) -> None:
    """The completion latency of writes was shown as that of reads."""
    text = REPORTS[name]
    lines = text.split("\n")
    for number in range(len(lines)):
        without = "\n".join(lines[:number] + lines[number + 1 :])
        found = read(without)
        assert list(wrong(found, text)) == [], lines[number]
        if list(second.text(lines[number])):
            assert told(found), lines[number]


@pytest.mark.parametrize("name", REPORTS)
def test_lines_that_are_cut_at_any_column_give_no_number_to_another_direction(name: str) -> None:
    text = REPORTS[name]
    for width in range(30, 110):
        cut = "\n".join(line[:width] for line in text.split("\n"))
        found = read(cut)
        # A number that ends at the edge may be a part of the original: only whole ones are compared.
        assert [fault for fault in wrong(found, text) if fault not in set(wrong(found, cut))] == [], width


@pytest.mark.parametrize("name", REPORTS)
def test_decimal_commas_are_read_as_such_or_not_at_all(name: str) -> None:
    """``avg=85,83`` was 85 us."""
    text = REPORTS[name]
    found = read(re.sub(r"(\d)\.(\d)", r"\1,\2", text))
    assert list(wrong(found, text)) == []
    assert found.runs or told(found)


@pytest.mark.parametrize("mark", [",", ".", " ", "'", "\u202f"])
@pytest.mark.parametrize("name", REPORTS)
def test_grouped_digits_are_read_as_such_or_not_at_all(name: str, mark: str) -> None:
    """``iops=61,359 ... total=r=1,048,576/w=0`` was 58.8 IOPS, ``IOPS=3.864`` with ``3.864MiB/s`` a thousandth."""
    text = REPORTS[name]
    grouped = re.sub(r"(?<![\d.,\w])\d{4,}(?![\d.])", lambda match: f"{int(match[0]):,}".replace(",", mark), text)
    found = read(grouped)
    assert list(wrong(found, text)) == []
    assert found.runs or told(found)


def test_what_is_read_of_numbers_with_commas() -> None:
    grouped = OLD.replace("245439", "245,439").replace("61359", "61,359").replace("17089", "17,089")
    assert of_text(grouped) == of_text(OLD)
    assert of_text(re.sub(r"(\d)\.(\d)", r"\1,\2", TWO)) == of_text(TWO)


def test_a_direction_line_that_cannot_be_read_is_said() -> None:
    (run,) = read(TWO.replace("(62.1MiB/3001msec)", "(62.1MiB/300")).runs
    assert [direction.kind for direction in run.directions] == ["read"]
    (finding,) = (finding for finding in run.findings if finding.rule == "read.cut")
    assert "the line with the rate of write is missing, cut or changed" in finding.explanation


def test_line_ends_that_were_written_as_two_letters_are_line_ends() -> None:
    (run,) = read(TWO.replace("\n", "\\n")).runs
    assert run.directions == read(TWO).runs[0].directions


@pytest.mark.parametrize("mark", [",", ".", "'", "\u2019", " ", "\u202f", "\xa0"])
def test_percentiles_with_grouped_digits_are_read_whole(mark: str) -> None:
    """``99.00th=[ 4,047]`` was 4 us."""
    whole = TWO.replace("99.00th=[  147]", "99.00th=[ 4047]").replace("50.00th=[   92]", "50.00th=[1092]")
    assert of_text(whole.replace("4047", f"4{mark}047").replace("1092", f"1{mark}092")) == of_text(whole)


def test_a_statistic_that_was_cut_is_not_read() -> None:
    """``stdev=69.55`` cut to ``stdev=6`` was 6 us, ``max=5810`` cut to ``max=58`` 58 us, ``[ 147`` to ``[ 1`` 1 us."""
    lines = TWO.split("\n")
    whole = {69_550.0, 85_830.0, 5_810_000.0, 47_000.0}
    for width in range(20, len(lines[2])):
        changed = "\n".join([*lines[:2], lines[2][:width], *lines[3:]])
        (run,) = read(changed).runs
        clat = run.directions[0].clat
        assert clat is not None
        values = (clat.mean.value, clat.stddev.value, clat.min.value, clat.max.value)
        assert {value for value in values if not math.isnan(value)} <= whole, lines[2][:width]
    for cut in ("99.00th=[  147]", "99.00th=[  14", "99.00th=[  1", "99.00th=["):
        (run,) = read(TWO.replace("99.00th=[  147]", cut)).runs
        clat = run.directions[0].clat
        assert clat is not None
        assert clat.percentiles.get(99.0) is None or clat.percentiles[99.0].value == pytest.approx(147_000, rel=0.01)


def test_a_greatest_value_with_a_point_and_no_letter_is_not_read() -> None:
    """``max=5.810`` with a point before thousands was 5.8 us."""
    (run,) = read(TWO.replace("max=5810", "max=5.810")).runs
    clat = run.directions[0].clat
    assert clat is not None
    assert math.isnan(clat.max.value)
    assert clat.mean.value == 85_830.0


@pytest.mark.parametrize("fields", range(1, 6))
def test_a_terse_record_that_ends_in_its_head_is_refused(fields: int) -> None:
    """It was an IndexError."""
    record = ";".join(["3", "fio-3.33", "name", "0", "0"][:fields])
    found = read(f"{record};\n{';' * 200}\n")
    assert not found.runs
    assert found.refusals


@pytest.mark.parametrize("gap", [" ", "\t", "    "])
def test_a_summary_of_pairs_is_read_whatever_stands_between_its_words(gap: str) -> None:
    """With a tab between words, the IOPS of writes were shown as those of reads."""
    text = "IOPS (Read/Write)\n Random: 90,546 / 73,514\n Sequential: 94,976 / 68,510\n".replace(" ", gap)
    runs = read(text).runs
    values = [[(d.kind, d.iops.value) for d in run.directions] for run in runs]
    assert values == [[("read", 90546.0), ("write", 73514.0)], [("read", 94976.0), ("write", 68510.0)]]


@pytest.mark.parametrize("changed", [OLD.upper(), OLD.replace("read : ", "ead : "), OLD.replace("=", " = ")])
def test_kilobytes_of_fio_2_are_never_thousands(changed: str) -> None:
    """In capitals, or without its direction, ``bw=245439KB/s`` was 245,439,000 bytes: 2.3 % less than it is."""
    for run in read(changed).runs:
        for direction in run.directions:
            assert direction.bandwidth.value == pytest.approx(245_439 * 1024, rel=0.002)


@pytest.mark.parametrize("banner", ["", "x: (g=0): rw=randrw, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=1\n"])
@pytest.mark.parametrize(
    "changed",
    [
        TWO.replace("20.8MiB/s", "20.8KiB/s"),
        TWO.replace("20.8MiB/s", "20.8GiB/s"),
        TWO.replace("21.8MB/s", "21.8kB/s"),
        TWO.replace("20.8MiB/s", "208MiB/s"),
        TWO.replace("62.3MiB/", "62.3KiB/"),
        TWO.replace("62.3MiB/3001", "62.3MiB/30010"),
        OLD.replace("245439KB/s", "245439MB/s"),
        OLD.replace("io=4096.0MB", "io=4096.0KB"),
    ],
)
def test_a_bandwidth_that_is_not_the_amount_over_the_run_time_is_said(banner: str, changed: str) -> None:
    """One of three spellings in another unit was left out of the account in silence."""
    (run,) = read(banner + changed).runs
    assert "read.disagree" in {finding.rule for finding in run.findings}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_of_fio_agrees_with_itself(name: str) -> None:
    for run in read(REPORTS[name]).runs:
        assert "read.disagree" not in {finding.rule for finding in run.findings}


@pytest.mark.parametrize("other", [True, False])
def test_a_line_that_may_be_of_completion_or_of_total_latency_is_neither(other: bool) -> None:
    """``clat`` without its first letter, with and without the line of the total latency below it."""
    text = TWO.replace("    clat (usec)", "    lat (usec)")
    if not other:
        text = "\n".join(line for line in text.split("\n") if not line.startswith("     lat (usec)"))
    found = read(text)
    assert not any(d.lat for run in found.runs for d in run.directions)
    assert any(finding.rule == "read.cut" for run in found.runs for finding in run.findings)
