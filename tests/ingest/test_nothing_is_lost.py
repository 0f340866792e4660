"""Every number of a result is read, or what holds it is named: columns, rows, lines, the heads of reports."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from told import told

from iodelta.audit import audit
from iodelta.ingest import Imported, read_bytes

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
     |  1.00th=[   55],  5.00th=[   63], 10.00th=[   69], 20.00th=[   78],
     | 50.00th=[   99], 90.00th=[  139], 99.00th=[  210], 99.90th=[  519],
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


def reading(text: str) -> Imported:
    return read_bytes(text.encode(), "mail.txt")


def numbers(read: Imported) -> list[tuple[str, str, float]]:
    """Direction, measure and value (1/s, B/s, ns) of everything that was read."""
    found: list[tuple[str, str, float]] = []
    for direction in (each for run in read.runs for each in run.directions):
        named = {"iops": direction.iops, "bw": direction.bandwidth}
        for name, latency in direction.latencies().items():
            named[name] = latency.mean
            named |= {f"{name} p{rank:g}": value for rank, value in latency.percentiles.items()}
        found += [(direction.kind, name, round(q.value, 3)) for name, q in named.items() if q.value == q.value]
    return found


def said(read: Imported) -> list[str]:
    return [refusal.reason for refusal in read.refusals if refusal.lost]


SOUND = numbers(reading(REPORT))


def test_a_whole_report_loses_nothing() -> None:
    read = reading(REPORT)
    assert (len(SOUND), said(read), audit(read.runs).hits) == (5 + 9, [], ())


@pytest.mark.parametrize(
    ("change", "to"),
    [
        (r"avg=103.40", "avg: 103.40"),
        (r"(min|max|avg|stdev)=", r"\1: "),
        (r"\.00th", "th"),
        (r"(\d)\.(\d\dth)", r"\1,\2"),
        (r"percentiles", "percentile"),
        (r"th=\[ *(\d+)\]", r"th=\1"),
        (r"th=\[", "th="),
        (r"\],", ","),
        (r"th=\[", "th = [ "),
        (r"\n +", "\n"),
        (r"\s+", " "),
        (r"(?s).*", lambda match: match[0].upper()),
        (r"(?m)^", "> "),
        (r"(?m)^", "\t"),
    ],
)
def test_a_report_that_was_written_in_another_way_is_read_all_the_same(change: str, to: str) -> None:
    read = reading(re.sub(change, to, REPORT))
    assert set(numbers(read)) == set(SOUND)


@pytest.mark.parametrize(
    ("change", "to", "line"),
    [
        (r"(\d+\.\d+)th=", r"p\1=", 11),
        (r"    clat percentiles \(usec\):\n", "", 10),
        (r"percentiles \(usec\)", "percentiles", 11),
        (r"avg=103.40", "mean=103.40", 8),
        (r"avg=608256.00", "mittel=608256.00", 14),
        (r"(?s)^.*?percentiles \(usec\):\n", "", 1),
        (r"lat \(usec\): min=21", "Gesamt (usec): min=21", 9),
    ],
)
def test_a_line_of_a_report_that_is_not_understood_is_said_with_its_place(change: str, to: str, line: int) -> None:
    read = reading(re.sub(change, to, REPORT))
    assert [refusal.place.line for refusal in read.refusals if refusal.lost] == [line]


ROW = [("read", "iops", 6498.0), ("read", "bw", 26_600_000.0), ("read", "lat", 650_000.0)]


@pytest.mark.parametrize(
    ("titles", "cells"),
    [
        ("IOP/s|BW (MB/s)|lat (ms)", "6498|26.6|0.65"),
        ("IOPS|МБ/с|задержка, мс", "6498|26.6|0.65"),
        ("IOPS|пропускная способность|задержка", "6498|26,6 МБ/с|0,65 мс"),
        ("IOPS|Durchsatz|Latenz", "6498|26.6 MB/s|0.65 ms"),
        ("IOPS|Débit (Mo/s)|Latence (ms)", "6498|26,6|0,65"),
        ("IOPS|带宽(MB/s)|延迟(毫秒)", "6498|26.6|0.65"),
        ("IOPS|帯域 (MB/秒)|レイテンシ (ms)", "6498|26.6|0.65"),
        ("I/Os per second|MB/s|avg time (us)", "6498|26.6|650"),
        ("kIOPS|Ergebnis|Latencia (ms)", "6.498|26.6 MB/s|0.65"),
    ],
)
@pytest.mark.parametrize("mark", [" | ", ",", "\t", ";"])
def test_a_column_is_read_by_its_measure_and_unit_in_any_language(titles: str, cells: str, mark: str) -> None:
    """A unit may also be in the cells; a column that is not understood is named."""
    if "," in titles + cells and mark == ",":
        mark = ";"
    text = "\n".join(mark.join(line.split("|")) for line in (f"test|{titles}", f"randread|{cells}"))
    if mark == " | ":
        text = text.replace("\n", "\n---|---|---|---\n")
    read = reading(f"{text}\n")
    unread = [name for name in titles.split("|") if any(repr(name) in reason for reason in said(read))]
    got = {name: value for _, name, value in numbers(read)}
    wanted = [
        (name, value) for (_, name, value), title in zip(ROW, titles.split("|"), strict=True) if title not in unread
    ]
    assert [got.get(name) for name, _ in wanted] == pytest.approx([value for _, value in wanted])
    assert set(unread) <= {"Ergebnis"}


ROBOT = """\
FYI, we noticed a 330.6% improvement of fio.write_iops due to commit:

aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbb
---------------- ---------------------------
         %stddev     %change         %stddev
             \\          |                \\
     12735 ±  5%     -77.1%       2912 ±  4%  fio.write_clat_mean_us
      0.05 ±  9%      -0.0        0.01 ± 20%  fio.latency_4us%
   3783763 ±  6%    +330.6%   16293190 ±  3%  fio.write_iops
     14780            +330.6%      63645        fio.write_bw_MBps
     20352 ±  8%     -80.2%       4032        fio.write_clat_99%_us
    123456            +3.0%     127160        vmstat.system.cs
     12.25            +8.0%      13.23        fio.write_something_new
"""


READ = {
    "tables of the test robot": (
        ROBOT,
        """\
7 aaaaaaaaaaaaaaaa: | write iops=3783763 MB/s=14780 clat mean=12735 clat p99=20352
7 bbbbbbbbbbbbbbbb: | write iops=16293190 MB/s=63645 clat mean=2912 clat p99=4032
13 refused: 1 row of the robot's table not read (lines 13): 'fio.write_something_new'
7 refused: 1 row of the robot's table are of the system, not of fio: not read""",
    ),
    "a row of data is no heading, and rows without a unit are named": (
        """\
 | 6.8 | 6.9-rc1 | diff
randread-4k-qd1 | 11.2k | 11.1k | -0.9%
randread-4k-qd32 | 245k | 231k | -5.7%
seqread-1m-qd8 (MB/s) | 6800 | 6790 | -0.1%
""",
        """\
1 6.8: read 1048576B qd8 | read MB/s=6800
1 6.9-rc1: read 1048576B qd8 | read MB/s=6790
1 refused: 2 rows not read: 'randread-4k-qd1', 'randread-4k-qd32'""",
    ),
    "a run without a head is named by words, not by ```": (
        """\
**Unpatched**
```
read : io=102120KB, bw=618740 B/s, iops=151 , runt=169006msec
slat (usec): min=275 , max=876 , avg=657.88, stdev=27.57

```
write: io=102120KB, bw=618740 B/s, iops=151 , runt=169006msec
slat (usec): min=275 , max=876 , avg=24.88, stdev=27.57
""",
        """\
3 Unpatched: | read 169006ms iops=151 MB/s=0.61874 slat mean=657.88 slat min=275 slat max=876 !read.cut
7 Unpatched: | write 169006ms iops=151 MB/s=0.61874 slat mean=24.88 slat min=275 slat max=876 !read.cut""",
    ),
    "a run without a head is named by words, not by 2025-01-06 10:11:12": (
        """\
**Unpatched**
2025-01-06 10:11:12
read : io=102120KB, bw=618740 B/s, iops=151 , runt=169006msec
slat (usec): min=275 , max=876 , avg=657.88, stdev=27.57

2025-01-06 10:11:12
write: io=102120KB, bw=618740 B/s, iops=151 , runt=169006msec
slat (usec): min=275 , max=876 , avg=24.88, stdev=27.57
""",
        """\
3 Unpatched: | read 169006ms iops=151 MB/s=0.61874 slat mean=657.88 slat min=275 slat max=876 !read.cut
7 Unpatched: | write 169006ms iops=151 MB/s=0.61874 slat mean=24.88 slat min=275 slat max=876 !read.cut""",
    ),
    "a run without a head is named by words, not by [ 12.345678] done": (
        """\
**Unpatched**
[ 12.345678] done
read : io=102120KB, bw=618740 B/s, iops=151 , runt=169006msec
slat (usec): min=275 , max=876 , avg=657.88, stdev=27.57

[ 12.345678] done
write: io=102120KB, bw=618740 B/s, iops=151 , runt=169006msec
slat (usec): min=275 , max=876 , avg=24.88, stdev=27.57
""",
        """\
3 Unpatched: | read 169006ms iops=151 MB/s=0.61874 slat mean=657.88 slat min=275 slat max=876 !read.cut
7 Unpatched: | write 169006ms iops=151 MB/s=0.61874 slat mean=24.88 slat min=275 slat max=876 !read.cut""",
    ),
    "a run without a head is named by words, not by -----": (
        """\
**Unpatched**
-----
read : io=102120KB, bw=618740 B/s, iops=151 , runt=169006msec
slat (usec): min=275 , max=876 , avg=657.88, stdev=27.57

-----
write: io=102120KB, bw=618740 B/s, iops=151 , runt=169006msec
slat (usec): min=275 , max=876 , avg=24.88, stdev=27.57
""",
        """\
3 Unpatched: | read 169006ms iops=151 MB/s=0.61874 slat mean=657.88 slat min=275 slat max=876 !read.cut
7 Unpatched: | write 169006ms iops=151 MB/s=0.61874 slat mean=24.88 slat min=275 slat max=876 !read.cut""",
    ),
    "a run without a head is named by words, not by 10:11:12": (
        """\
**Unpatched**
10:11:12
read : io=102120KB, bw=618740 B/s, iops=151 , runt=169006msec
slat (usec): min=275 , max=876 , avg=657.88, stdev=27.57

10:11:12
write: io=102120KB, bw=618740 B/s, iops=151 , runt=169006msec
slat (usec): min=275 , max=876 , avg=24.88, stdev=27.57
""",
        """\
3 Unpatched: | read 169006ms iops=151 MB/s=0.61874 slat mean=657.88 slat min=275 slat max=876 !read.cut
7 Unpatched: | write 169006ms iops=151 MB/s=0.61874 slat mean=24.88 slat min=275 slat max=876 !read.cut""",
    ),
    "the rest of a report whose head is cut": (
        REPORT[REPORT.index("     | 50.00th") :],
        """\
15 Run status group 0 (all jobs): | read 10001ms MB/s=622.854144
1 refused: a report of fio without its head and its line of rates: 12 lines not read""",
    ),
    "no table of storage: threads | tps | latency (ms)": (
        """\
threads | tps | latency (ms)
---|---|---
1 | 1200 | 0.8
2 | 2300 | 0.9
""",
        "1 refused: a table with 'tps': not read",
    ),
    "no table of storage: host | ping (ms) | latency (ms)": (
        """\
host | ping (ms) | latency (ms)
---|---|---
1 | 1200 | 0.8
2 | 2300 | 0.9
""",
        "1 refused: a table with 'ping': not read",
    ),
    "no table of storage: test | requests | avg latency (ms)": (
        """\
test | requests | avg latency (ms)
---|---|---
1 | 1200 | 0.8
2 | 2300 | 0.9
""",
        "1 refused: a table with 'requests': not read",
    ),
    "another tool beside a table": (
        """\
64 bytes from 1.1.1.1: icmp_seq=1 ttl=57 time=4.21 ms

| test | IOPS |
|---|---|
| randread | 6498 |
""",
        """\
5 randread: randread | read iops=6498
1 refused: results of ping, which are not read: it measures a network, not storage""",
    ),
    "KDiskMark is fio": (
        """\
KDiskMark (3.1.4): https://github.com/JonMagon/KDiskMark

[Read]
Random   4 KiB (Q= 32, T= 1):   812.345 MB/s [ 198325.5 IOPS] <   160.92 us>

[Write]
Random   4 KiB (Q= 32, T= 1):   812.345 MB/s [ 198325.5 IOPS] <   160.92 us>
""",
        """\
4 Random 4 KiB (Q= 32, T= 1)/read: randread 4096B qd32 jobs1 | read iops=198325.5 MB/s=812.345 lat mean=160.92
7 Random 4 KiB (Q= 32, T= 1)/write: randwrite 4096B qd32 jobs1 | write iops=198325.5 MB/s=812.345 lat mean=160.92""",
    ),
}


@pytest.mark.parametrize("what", READ)
def test_what_is_read_and_what_is_named(what: str) -> None:
    text, expected = READ[what]
    assert told(text, "mail.txt") == expected


def test_a_change_of_the_test_robot_that_is_not_that_of_its_numbers_is_found() -> None:
    wrong = reading(ROBOT.replace("-77.1%", "-17.1%")).runs[0].findings
    assert [(finding.rule, finding.severity) for finding in wrong] == [("change.row", "hard")]


TERSE = (Path(__file__).parents[1] / "data" / "same-run" / "fio-3.33.out").read_text()


@pytest.mark.parametrize("width", [60, 65, 72, 78])
def test_a_terse_record_that_mail_wrapped_is_still_that_of_the_report_above_it(width: int) -> None:
    lines = TERSE.splitlines()
    wrapped = [
        part for line in lines for part in ([line] if ";fio-" not in line else re.findall(f".{{1,{width}}}", line))
    ]
    assert len(wrapped) > len(lines)
    assert [run.also for run in reading("\n".join(wrapped)).runs] == [run.also for run in reading(TERSE).runs]
    assert "terse3" in reading(TERSE).runs[0].also


MUTABLE = [
    at for at, letter in enumerate(REPORT) if not letter.isdigit() and 290 < at < REPORT.index("  lat (usec)   : 50")
]


@pytest.mark.parametrize("seed", range(8))
def test_numbers_in_are_numbers_read_and_numbers_said(seed: int) -> None:
    """One letter of a report is lost, doubled or changed: what is no longer read as before is named, never dropped.

    A letter less can make clat of slat: then the number is read, of the other.
    """
    rng = random.Random(seed)
    for _ in range(60):
        at, letter = rng.choice(MUTABLE), rng.choice(" .,:=[]()|;-xX")
        put = rng.choice(["", letter, letter + REPORT[at], REPORT[at].swapcase()])
        text = REPORT[:at] + put + REPORT[at + 1 :]
        read = reading(text)
        lost = {number for _, _, number in SOUND} - {number for _, _, number in numbers(read)}
        names = [finding.rule for run in read.runs for finding in run.findings if finding.rule.startswith("read.")]
        assert not lost or read.refusals or names, text[REPORT.rindex("\n", 0, at) : REPORT.index("\n", at + 1)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mark", [" | ", ",", "\t", ";"])
def test_every_column_of_a_table_is_read_or_named(seed: int, mark: str) -> None:
    rng = random.Random(seed)
    known = {
        "IOPS": "iops",
        "IOP/s": "iops",
        "BW (MB/s)": "bw",
        "МБ/с": "bw",
        "lat (us)": "lat",
        "задержка (мкс)": "lat",
    }
    unknown = [
        "Rate",
        "MB",
        "ms",
        "задача",
        "Latenz-Varianz (ms)",
        "foo",
        "Kennzahl",
        "speed index",
        "значение",
        "ops/s",
        "lat range (us)",
    ]
    for _ in range(15):
        titles = list({known[title]: title for title in rng.sample(list(known), 4)}.values())
        titles += rng.sample(unknown, rng.randrange(1, 4))
        rng.shuffle(titles)
        rows = [[str(rng.randrange(1001, 99999) + 0.5) for _ in titles] for _ in range(3)]
        lines = [["test", *titles], *([f"job{number}", *row] for number, row in zip("abc", rows, strict=True))]
        text = "\n".join(mark.join(line) for line in lines).replace(" | job", "\njob")
        read = reading(f"{text}\n")
        got = {round(number, 1) for _, _, number in numbers(read)}
        scale = {"bw": 1e6, "lat": 1e3, "iops": 1.0}
        for at, title in enumerate(titles):
            wanted = {round(float(row[at]) * scale[known[title]], 1) for row in rows} if title in known else set()
            named = any(repr(title) in reason for reason in said(read))
            assert named or (wanted and wanted <= got), (title, text, said(read))
