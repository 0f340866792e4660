"""Numbers that no run can have, planted one at a time into sound reports and tables: the audit finds every one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from iodelta.audit import audit
from iodelta.ingest import read_bytes

DATA = Path(__file__).parents[1] / "data" / "same-run" / "fio-3.33.out"
WHOLE = DATA.read_text()
DOCUMENT = re.search(r"^\{$.*?^\}$", WHOLE, re.M | re.S)
assert DOCUMENT is not None
REPORT = """\
rr: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=16
fio-3.36
Starting 1 process

rr: (groupid=0, jobs=1): err= 0: pid=3089: Mon Jan  6 10:11:12 2025
  read: IOPS=152k, BW=594MiB/s (623MB/s)(5940MiB/10001msec)
    slat (nsec): min=900, max=91000, avg=1500.25, stdev=500.10
    clat (usec): min=20, max=9100, avg=103.40, stdev=44.20
     lat (usec): min=21, max=9102, avg=104.90, stdev=44.30
    clat percentiles (usec):
     |  1.00th=[   55], 50.00th=[   99], 99.00th=[  210], 99.90th=[  519],
     | 99.99th=[ 1500]
   bw (  KiB/s): min=590000, max=620000, per=100.00%, avg=608256.00, stdev=5000.00, samples=19
   iops        : min=147500, max=155000, avg=152064.00, stdev=1250.00, samples=19
  lat (usec)   : 50=1.00%, 100=50.00%, 250=48.00%, 500=0.90%, 750=0.05%
  lat (msec)   : 2=0.04%, 4=0.01%
  cpu          : usr=20.00%, sys=40.00%, ctx=900000, majf=0, minf=20
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=100.0%, 32=0.0%, >=64=0.0%
     submit    : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     complete  : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.1%, 32=0.0%, 64=0.0%, >=64=0.0%
     issued rwts: total=1520640,0,0,0 short=0,0,0,0 dropped=0,0,0,0
     latency   : target=0, window=0, percentile=100.00%, depth=16

Run status group 0 (all jobs):
   READ: bw=594MiB/s (623MB/s), 594MiB/s-594MiB/s (623MB/s-623MB/s), io=5940MiB (6229MB), run=10001-10001msec
"""
TABLE = """\
| test | old IOPS | new IOPS | change |
|---|---|---|---|
| randread 4k QD1 | 11.2k | 11.1k | -0.9% |
| randread 4k QD32 | 245k | 231k | -5.7% |
"""
ROWS = """\
| test | IOPS | BW (MiB/s) | Avg Lat (us) | 99% Lat (us) |
|---|---|---|---|---|
| randread 4k QD32 | 100000 | 390.6 | 320 | 600 |
"""


def hard(data: str | bytes) -> set[str]:
    """The rules of hard findings, of the reader's and of the audit's."""
    read = read_bytes(data.encode() if isinstance(data, str) else data, "x.txt")
    found = [finding for run in read.runs for finding in run.findings] + list(audit(read.runs).findings())
    return {finding.rule for finding in found if finding.severity == "hard"}


@pytest.mark.parametrize("sound", [REPORT, TABLE, ROWS, DOCUMENT[0], WHOLE])
def test_sound_numbers_are_not_impossible(sound: str) -> None:
    assert hard(sound) == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("IOPS=152k, BW=594MiB/s (623MB/s)", "IOPS=15.2k, BW=59.4MiB/s (62.3MB/s)"),
        ("IOPS=152k", "IOPS=1520k"),
        ("IOPS=152k", "IOPS=200k"),
        ("BW=594MiB/s (623MB/s)", "BW=59.4MiB/s (62.3MB/s)"),
        ("BW=594MiB/s (623MB/s)", "BW=594MiB/s (62.3MB/s)"),
        ("BW=594MiB/s (623MB/s)", "BW=900MiB/s (943MB/s)"),
        ("(5940MiB/10001msec)", "(5940MiB/1001msec)"),
        ("(5940MiB/10001msec)", "(594MiB/10001msec)"),
        ("(5940MiB/10001msec)", "(5940GiB/10001msec)"),
        ("total=1520640,", "total=152064,"),
        ("total=1520640,", "total=3041280,"),
        ("slat (nsec): min=900, max=91000, avg=1500.25", "slat (nsec): min=900, max=91000, avg=50000.00"),
        ("slat (nsec)", "slat (usec)"),
        ("clat (usec)", "clat (nsec)"),
        ("clat (usec)", "clat (msec)"),
        ("     lat (usec): min", "     lat (msec): min"),
        ("     lat (usec): min", "     lat (nsec): min"),
        ("avg=103.40", "avg=1034.00"),
        ("avg=103.40", "avg=10.34"),
        ("avg=104.90", "avg=204.90"),
        ("avg=104.90", "avg=54.90"),
        ("min=20, max=9100", "min=200, max=9100"),
        ("min=20, max=9100", "min=20, max=91"),
        ("min=20, max=9100", "min=9100, max=20"),
        ("stdev=44.20", "stdev=44200.20"),
        ("clat percentiles (usec)", "clat percentiles (msec)"),
        ("clat percentiles (usec)", "clat percentiles (nsec)"),
        ("99.00th=[  210]", "99.00th=[   21]"),
        ("99.00th=[  210]", "99.00th=[ 2100]"),
        ("50.00th=[   99]", "50.00th=[  990]"),
        ("99.99th=[ 1500]", "99.99th=[15000]"),
        ("99.00th=[  210]", "99.00th=[20000]"),
        ("bw (  KiB/s)", "bw (  MiB/s)"),
        ("avg=608256.00", "avg=6082.56"),
        ("avg=608256.00", "avg=808256.00"),
        ("avg=152064.00", "avg=152.06"),
        ("avg=152064.00", "avg=252064.00"),
        ("min=147500, max=155000", "min=155000, max=147500"),
        ("250=48.00%", "250=98.00%"),
        ("100=50.00%", "100=500.00%"),
        ("2=0.04%", "2=40.00%"),
        ("usr=20.00%, sys=40.00%", "usr=80.00%, sys=90.00%"),
        ("8=0.1%, 16=100.0%", "8=99.1%, 16=100.0%"),
        ("READ: bw=594MiB/s (623MB/s), 594MiB/s-594MiB/s (623MB/s-623MB/s)", "READ: bw=59.4MiB/s (62.3MB/s)"),
        ("io=5940MiB (6229MB)", "io=594MiB (623MB)"),
        ("io=5940MiB (6229MB)", "io=11.6GiB (12.5GB)"),
        ("iodepth=16", "iodepth=1"),
        ("dropped=0,0,0,0", "dropped=152064,0,0,0"),
        ("err= 0", "err= 5"),
    ],
)
def test_an_impossible_number_in_a_report_is_found(old: str, new: str) -> None:
    assert old in REPORT
    assert hard(REPORT.replace(old, new, 1))


@pytest.mark.parametrize(
    "change",
    [
        "iops = iops * 0.1",
        "iops = iops * 1.5",
        "bw = bw * 10",
        "bw_bytes = bw_bytes * 0.5",
        "io_bytes = io_bytes * 3",
        "io_kbytes = io_kbytes * 3",
        "runtime = runtime * 10",
        "runtime = runtime * 0.3333",
        "total_ios = total_ios * 2",
        "clat_ns.N = clat_ns.N * 0.5",
        "lat_ns.N = lat_ns.N * 3",
        "slat_ns.mean = lat_ns.mean * 1",
        "clat_ns.mean = clat_ns.mean * 0.001",
        "lat_ns.mean = lat_ns.mean * 2",
        "clat_ns.max = clat_ns.mean * 0.5",
        "clat_ns.min = clat_ns.max * 1",
        "clat_ns.stddev = clat_ns.max * 5",
        "iops_mean = iops * 0.001",
        "bw_mean = bw * 1024",
        "iops_min = iops * 4",
    ],
)
def test_an_impossible_number_in_a_document_is_found(change: str) -> None:
    document = json.loads(DOCUMENT[0] if DOCUMENT else "{}")
    read = document["jobs"][0]["read"]
    changed, _, source, _, factor = change.split()
    part, _, name = changed.rpartition(".")
    of, _, whose = source.rpartition(".")
    value = (read[of] if of else read)[whose] * float(factor)
    (read[part] if part else read)[name] = value if "mean" in name or name == "iops" else round(value)
    assert hard(json.dumps(document, indent=2))


@pytest.mark.parametrize(
    ("table", "old", "new"),
    [
        (TABLE, "-0.9%", "+0.9%"),
        (TABLE, "-5.7%", "-15.7%"),
        (TABLE, "231k", "131k"),
        (ROWS, "390.6", "3.906"),
        (ROWS, "390.6", "409.6"),
        (ROWS, "320", "3200"),
        (ROWS, "320", "0.32"),
        (ROWS, "600", "6"),
        (ROWS, "100000", "10000"),
    ],
)
def test_an_impossible_number_in_a_table_is_found(table: str, old: str, new: str) -> None:
    assert hard(table.replace(old, new, 1))
