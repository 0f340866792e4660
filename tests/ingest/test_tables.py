"""Result tables as people paste them. The five seeds lie beside the repository and are no part of it."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from iodelta.audit import audit
from iodelta.audit.tables import cell as cell_of
from iodelta.audit.tables import variant
from iodelta.ingest import DeviceStats, Run, read, read_bytes
from iodelta.ingest.report import read_text
from iodelta.ingest.table_cells import cell
from iodelta.ingest.table_columns import Column, column

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
GIST = SEEDS / "003_32c9d470c4ad77c4.txt"

seeds = pytest.mark.skipif(not SEEDS.is_dir(), reason="the seeds are not beside this repository")


def rows_of(text: str) -> list[Run]:
    found = read_text(text.encode(), "x")
    assert all(isinstance(item, Run) for item in found), found
    return [item for item in found if isinstance(item, Run)]


@cache
def gist() -> tuple[Run, ...]:
    return read([GIST]).runs


@seeds
def test_the_gist_has_195_rows_in_six_tables() -> None:
    assert Counter(run.table for run in gist()) == {
        "Benchmark Results Summary Table": 30,
        "HDD RAID1": 15,
        "SSD RAID10": 15,
        "SSD RAID10 ReadWrite": 15,
        "Btrfs Read Policy Results (Defrag Off)": 60,
        "Btrfs Read Policy Results (Defrag On)": 60,
    }


GIST_ROWS = [
    # line, labels, workload (rw, bs, depth, jobs), IOPS, KiB/s, mean ms, p99 ms, p99.9 ms: as they stand there
    (251, "No Defrag", ("randread", 4096, 1, None), 65, 260, 15.4, 242, 860),
    (260, "No Defrag", ("randread", 4096, 32, None), 3647, 14596, 8.8, 90, 186),
    (276, "With Defrag", ("randread", 4096, 32, None), 2437, 9751, 13.1, 96, 186),
    (312, None, ("randread", 4096, 1, None), 100, 403, 0.069, 25.822, 34.341),
    (326, None, ("read", 2**20, 16, None), 287, 294087, 0.061, 209, 961),
    (331, None, ("randread", 4096, 1, None), 6793, 27171, 0.146, 0.221, 0.367),
    (341, None, ("read", 2**20, 16, None), 2692, 2890752, 5.9409, 6.718, 8.979),
    (378, None, ("randread", 4096, 1, 1), 81, 328, 0.31, 30.016, 242.222),
    (437, None, ("read", 2**20, 16, 4), 5880, 6022144, 0.077, 0.016, 0.236),
    (501, None, ("read", 2**20, 16, 4), 5026, 5147648, 0.08, 0.042, 0.201),
]


@seeds
@pytest.mark.parametrize(("line", "section", "asked", "iops", "kib", "mean", "p99", "p999"), GIST_ROWS)
def test_a_row_of_the_gist(
    line: int,
    section: str | None,
    asked: tuple[str, int, int, int | None],
    iops: float,
    kib: float,
    mean: float,
    p99: float,
    p999: float,
) -> None:
    (run,) = [run for run in gist() if run.place.line == line]
    assert run.labels.get("section") == section
    w = run.workload
    assert (w.rw, w.bs, w.iodepth, w.numjobs) == asked
    (direction,) = run.directions
    assert direction.kind == "read"
    assert direction.lat is not None
    assert direction.iops.value == iops
    assert direction.bandwidth.value == kib * 1024
    assert direction.lat.mean.value == pytest.approx(mean * 1e6)
    assert direction.lat.percentiles[99.0].value == pytest.approx(p99 * 1e6)
    assert direction.lat.percentiles[99.9].value == pytest.approx(p999 * 1e6)


@seeds
def test_reads_and_writes_of_one_row_are_two_directions() -> None:
    (run,) = [run for run in gist() if run.place.line == 353]
    assert run.labels["Policy"] == "latency-rr"
    assert [(d.kind, d.iops.value, d.bandwidth.value) for d in run.directions] == [
        ("read", 2655, 10650 * 1024),
        ("write", 2653, 10650 * 1024),
    ]


@seeds
def test_a_row_without_numbers_is_a_row_and_keeps_its_words() -> None:
    (run,) = [run for run in gist() if run.place.line == 267]
    assert run.directions == ()
    assert (run.labels["IOPS"], run.labels["Avg Lat (ms)"], run.labels["Policy"]) == ("~0", "very high", "pid")


@seeds
def test_letters_that_contradict_the_heading_widen_the_interval() -> None:
    rows = [run for run in gist() if run.table.startswith("Benchmark") and run.workload.rw == "read"]
    assert len(rows) == 10
    for run in rows:
        assert [f.rule for f in run.findings] == ["read.unit-conflict"]
        bandwidth = run.directions[0].bandwidth
        number = float(run.labels["BW (KiB/s)"].removesuffix("M"))
        for reading in (1e6, 2.0**20, 1024e3):
            assert bandwidth.low <= number * reading <= bandwidth.high


@seeds
def test_the_numbers_that_the_other_seeds_tell_in_words_are_rows() -> None:
    """000 gives three depths on two kernels, 001 percentages alone, 002 a list of three settings for each of two block
    sizes, 004 one change as seen by two people."""
    found = {seed.name[:3]: read([seed]) for seed in SEEDS.iterdir() if seed != GIST}
    assert {name: len(one.runs) for name, one in found.items()} == {"000": 6, "001": 8, "002": 6, "004": 4}
    assert not any(one.refusals for one in found.values())
    assert [run.directions[0].iops.value / 1e6 for run in found["004"].runs] == [36, 13, 19, 14]
    assert "more than 40% regression" in found["001"].runs[0].labels["stated"]
    assert not any(run.directions for run in found["001"].runs)
    old, new = found["000"].runs[:2]
    assert (old.workload.iodepth, old.directions[0].iops.value, old.place.line) == (32, 554, new.place.line)
    line = (
        next(seed for seed in SEEDS.iterdir() if seed.name.startswith("000"))
        .read_text()
        .split("\n")[old.place.line - 1]
    )
    assert "554 IOPS" in line


def narrow_spaces_gone(text: str) -> str:
    return text.replace("\u202f", " ")


@seeds
def test_thousands_are_found_again_when_their_spaces_are_plain_ones() -> None:
    """IOPS times the block size is the bandwidth: that tells "537 550 105" is 537 and 550105."""
    plain = rows_of(narrow_spaces_gone(GIST.read_text()))
    assert len(plain) == 195
    for run, twin in zip(gist(), plain, strict=True):
        assert [d.iops for d in run.directions] == [d.iops for d in twin.directions]
        assert [d.bandwidth for d in run.directions] == [d.bandwidth for d in twin.directions]


MARKDOWN = """
### Array A

| Scheduler | Jobs | randread 4k QD32 IOPS | BW (MiB/s) | p99.9 lat (us) |
|:----------|-----:|----------------------:|-----------:|---------------:|
| none      |    1 |             1,117,899 |     4366.8 |          127.5 |
| **bfq**   |    4 |                 99.5k |      388.7 |       **2104** |
"""

CSV = (
    "policy,iodepth,read_iops,read_bw (KiB/s),read_lat_ns_mean\npid,32,537,2150,59500000\nqueue,32,3647,14596,8800000\n"
)

EUROPEAN = "Plan;Blockgröße;IOPS;Bandwidth (MB/s);Avg latency (ms)\na;4k;12345,6;50,57;0,81\nb;4k;9876,5;40,45;1,01\n"

ALIGNED = """
workload          IOPS     BW           clat avg (usec)
-----------------------------------------------------
randread-4k       25.2k    98.1MiB/s    78.95
randwrite-4k      2078     8316KiB/s    1203.5
"""

DRAWN = """
┏━━━━━━━━━━┳━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ variant  ┃ IOPS    ┃ p99 lat (ms)  ┃
┡━━━━━━━━━━╇━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ old      │ 554     │ 57.7          │
│ new      │ 535     │ 59.8          │
└──────────┴─────────┴───────────────┘
"""

METRICS = """
test results
   metric            baseline    current    stdev      diff
================================================================
read_iops             5680.85    5848.49        0     2.95%
read_clat_ns_p50      2277376    2244608        0    -1.44%
write_iops                  0          0        0     0.00%
"""


def test_markdown() -> None:
    first, second = rows_of(MARKDOWN)
    assert first.table == "Array A"
    assert (first.labels["Scheduler"], first.workload.numjobs) == ("none", 1)
    direction = first.directions[0]
    assert direction.iops.value == 1_117_899
    assert direction.bandwidth.value == pytest.approx(4366.8 * 2**20)
    assert direction.lat is not None
    assert direction.lat.percentiles[99.9].value == pytest.approx(127_500)
    assert second.directions[0].iops.value == 99_500
    assert second.directions[0].iops.low <= 99_460 <= second.directions[0].iops.high


def test_comma_separated_values() -> None:
    first, second = rows_of(CSV)
    assert [d.kind for d in first.directions] == ["read"]
    assert (first.directions[0].iops.value, second.directions[0].bandwidth.value) == (537, 14596 * 1024)
    assert first.directions[0].lat is not None
    assert first.directions[0].lat.mean.value == 59_500_000
    assert first.workload.iodepth == 32


def test_decimal_commas() -> None:
    first, _ = rows_of(EUROPEAN)
    direction = first.directions[0]
    assert direction.iops.value == pytest.approx(12345.6)
    assert direction.bandwidth.value == pytest.approx(50.57e6)
    assert direction.lat is not None
    assert direction.lat.mean.value == pytest.approx(810_000)


def test_columns_of_spaces_with_units_in_the_cells() -> None:
    first, second = rows_of(ALIGNED)
    assert first.directions[0].kind == "read"
    assert first.directions[0].iops.value == pytest.approx(25_200)
    assert first.directions[0].bandwidth.value == pytest.approx(98.1 * 2**20)
    assert second.directions[0].kind == "write"
    assert second.directions[0].bandwidth.value == 8316 * 1024
    assert second.directions[0].clat is not None
    assert second.directions[0].clat.mean.value == pytest.approx(1_203_500)


def test_drawn_tables() -> None:
    old, new = rows_of(DRAWN)
    assert (old.labels["variant"], old.directions[0].iops.value) == ("old", 554)
    assert new.directions[0].lat is not None
    assert new.directions[0].lat.percentiles[99.0].value == pytest.approx(59.8e6)


def test_a_metric_per_row_is_a_run_per_column() -> None:
    baseline, current = rows_of(METRICS)
    assert (baseline.labels["metric"], current.labels["metric"]) == ("baseline", "current")
    assert [(d.kind, d.iops.value) for d in baseline.directions] == [("read", 5680.85)]
    clat = current.directions[0].clat
    assert clat is not None
    assert clat.percentiles[50.0].value == 2244608


WORKLOADS = """
| kernel | 4k randread IOPS | 4k randread p99 (us) | 1M seqwrite (MB/s) |
|--------|-----------------:|---------------------:|-------------------:|
| 5.14   | 554              | 57700                | 780                |
| 6.19   | 535              | 59800                | 755                |
"""

CORNER = """
| IOPS          | none  | mq-deadline | diff |
|---------------|-------|-------------|------|
| randread 4k   | 99.5k | 98.1k       | 1.4% |
| randwrite 64k | 12.0k | 11.9k       | 0.8% |
"""

TITLED = """
Bandwidth in MiB/s, sequential read 1M

| policy | QD1 | QD32 |
|--------|-----|------|
| pid    | 97  | 255  |
| queue  | 139 | 265  |
"""


def test_columns_of_several_workloads_are_several_runs() -> None:
    runs = rows_of(WORKLOADS)
    assert [(run.jobname, run.workload.rw, run.workload.bs) for run in runs] == [
        ("5.14", "randread", 4096),
        ("5.14", "write", 2**20),
        ("6.19", "randread", 4096),
        ("6.19", "write", 2**20),
    ]
    assert runs[2].directions[0].iops.value == 535
    assert runs[2].directions[0].lat is not None
    assert runs[2].directions[0].lat.percentiles[99.0].value == 59_800_000
    assert runs[1].directions[0].bandwidth.value == 780e6


def test_a_measure_in_the_corner_is_that_of_every_number() -> None:
    runs = rows_of(CORNER)
    assert [(run.labels["row"], run.labels["column"], run.directions[0].iops.value) for run in runs] == [
        ("randread 4k", "none", 99_500),
        ("randread 4k", "mq-deadline", 98_100),
        ("randwrite 64k", "none", 12_000),
        ("randwrite 64k", "mq-deadline", 11_900),
    ]
    assert [run.directions[0].kind for run in runs] == ["read", "read", "write", "write"]


def test_a_measure_in_the_title_is_that_of_every_number() -> None:
    runs = rows_of(TITLED)
    assert [
        (run.labels["policy"], run.workload.iodepth, run.directions[0].bandwidth.value / 2**20) for run in runs
    ] == [
        ("pid", 1, 97),
        ("pid", 32, 255),
        ("queue", 1, 139),
        ("queue", 32, 265),
    ]
    assert {(run.workload.rw, run.workload.bs) for run in runs} == {("read", 2**20)}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("IOPS", Column(None, "rate", "iops", 0, 1.0)),
        ("Read IOPS", Column("read", "rate", "iops", 0, 1.0)),
        ("BW (KiB/s)", Column(None, "rate", "bw", 0, 1024.0)),
        ("Throughput [MB/s]", Column(None, "rate", "bw", 0, 1e6)),
        ("99.9% Lat (ms)", Column(None, "lat", "percentile", 99.9, 1e6)),
        ("write_clat_ns_p99", Column("write", "clat", "percentile", 99.0, 1.0)),
        ("p999 (us)", Column(None, "lat", "percentile", 99.9, 1e3)),
        ("p99,9 (us)", Column(None, "lat", "percentile", 99.9, 1e3)),
        ("p99_9_us", Column(None, "lat", "percentile", 99.9, 1e3)),
        ("p99,99", Column(None, "lat", "percentile", 99.99, None)),
        ("99,9% lat (us)", Column(None, "lat", "percentile", 99.9, 1e3)),
        ("lat_99_9th_us", Column(None, "lat", "percentile", 99.9, 1e3)),
        ("p99_4k_us", Column(None, "lat", "percentile", 99, 1e3)),
        ("99th percentile latency (ms)", Column(None, "lat", "percentile", 99, 1e6)),
        ("clat avg (usec)", Column(None, "clat", "mean", 0, 1e3)),
        ("Policy", None),
        ("stdev", None),
        ("IOPS diff", None),
        ("notes on the platform", None),
    ],
)
def test_what_a_heading_announces(title: str, expected: Column | None) -> None:
    assert column(title) == expected


@pytest.mark.parametrize(
    ("text", "value", "suffix"),
    [
        ("1,117,899", 1_117_899, ""),
        ("6 793", 6793, ""),
        ("6\u202f793", 6793, ""),
        ("0,146", 0.146, ""),
        ("12.5k", 12.5, "k"),
        ("261M", 261, "M"),
        ("**3647**", 3647, ""),
        ("1.36e+08", 1.36e8, ""),
        ("98.1MiB/s", 98.1, "MiB/s"),
    ],
)
def test_what_a_cell_says(text: str, value: float, suffix: str) -> None:
    found = cell(text)
    assert found is not None
    assert found[0].value == pytest.approx(value)
    assert found[0].low <= value <= found[0].high
    assert found[1] == suffix


@pytest.mark.parametrize("text", ["~0", "-", "very high", "", "n/a", "≈5", "1.2.3.4", "9" * 2000])
def test_what_is_no_number_is_none(text: str) -> None:
    assert cell(text) is None


def test_a_comma_before_three_digits_is_decimal_where_its_column_says_so() -> None:
    found = cell("0,146", comma=True)
    assert found is not None
    assert found[0].value == 0.146
    other = cell("1,146", comma=True)
    assert other is not None
    assert other[0].value == 1.146


READ_STATS = """--- Timestamp: 2025-05-04 10:50:33.123456789 ---
/sys/fs/btrfs/7f/devinfo/1/read_stats:cumulative ios 1000 wait 5000000 avg 5000 checkpoint ios 10 wait 40 avg 4 age 7
/sys/fs/btrfs/7f/devinfo/2/read_stats:cumulative ios 20 wait 800000 avg 40000 checkpoint ios 20 wait 9 avg 1 age -3
--- End Stats ---
--- Timestamp: 2025-05-04 10:52:33.000000000 ---
/sys/fs/btrfs/7f/devinfo/1/read_stats:cumulative ios 1500 wait 7000000 avg 4666 checkpoint ios 5 wait 40 avg 8 age 0
"""


def test_what_each_mirror_served_is_read_with_its_time() -> None:
    found = [item for item in read_text(READ_STATS.encode(), "x") if isinstance(item, DeviceStats)]
    assert [stats.device for stats in found] == ["1", "2", "1"]
    first, second, later = found
    assert first.fields["cumulative_ios"] == 1000
    assert second.fields["age"] == -3
    assert later.at is not None
    assert first.at is not None
    assert later.at - first.at == 120
    assert later.fields["cumulative_ios"] - first.fields["cumulative_ios"] == 500


SHAPES = {
    "Jira": "||sched||IOPS||p99 (us)||\n|none|12345|120|\n|bfq|10200|240|",
    "LaTeX": "\\begin{tabular}{lrr}\nsched & IOPS & p99 (us) \\\\\n\\hline\n"
    "none & 12345 & 120 \\\\ \\hline\nbfq & 10200 & 240 \\\\\n\\end{tabular}",
    "HTML": "<table>\n<tr><th>sched</th><th>IOPS</th><th>p99 (us)</th></tr>\n<tr><td>none</td>\n<td>12345</td>"
    "<td>120</td></tr>\n<tr><td>bfq</td><td>10200</td><td>240</td></tr>\n</table>",
    "no title above the names": "          IOPS     p99\n  none    12345    120us\n  bfq     10200    240us\n",
    "a measure per row": "| metric | none | bfq | change |\n|--|--|--|--|\n| IOPS | 12345 | 10200 | -17% |\n"
    "| p99 (us) | 120 | 240 | +100% |",
    "scatter behind the numbers": "| sched | IOPS | p99 (us) |\n|--|--|--|\n| none | **12345** ± 20 | 120 ± 3 |\n"
    "| bfq | 10200 (±1 %) | 240 (+100%) |",
    "ranges": "| sched | IOPS (min-max) | p99 |\n|--|--|--|\n| none | 12340 - 12350 | 110-130 us |\n"
    "| bfq | 10190–10210 | 240 us |",
    "decimal commas, points before thousands": "sched;IOPS;p99 (us)\nnone;12.345,0;120,0\nbfq;10.200,0;240,0\n",
    "thousands of I/Os": "sched,kIOPS,p99 (us)\nnone,12.345,120\nbfq,10.2,240\n",
    "a variant's name in each title": "| bs | none IOPS | none p99 (us) | bfq IOPS | bfq p99 (us) | Δ IOPS |\n"
    "|--|--|--|--|--|--|\n| 4k | 12345 | 120 | 10200 | 240 | -17% |",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_is_the_same_in_every_shape(shape: str) -> None:
    runs = rows_of(SHAPES[shape])
    assert [variant(run) for run in runs] == ["none", "bfq"]
    directions = [direction for run in runs for direction in run.directions]
    assert [direction.iops.value for direction in directions] == pytest.approx([12345, 10200])
    assert [d.lat.percentiles[99.0].value for d in directions if d.lat is not None] == [120e3, 240e3]


def test_a_range_is_known_no_better_than_its_ends() -> None:
    found = cell("330000 - 341000")
    assert found is not None
    assert found[0].low < 330_001
    assert found[0].high > 340_999


def test_the_title_of_a_table_of_one_measure_may_stand_above_it() -> None:
    runs = rows_of("Random read IOPS:\n\niodepth   none    bfq\n1         12345   10200\n32        210000  91000\n")
    assert [(run.labels["iodepth"], variant(run), run.directions[0].iops.value) for run in runs] == [
        ("1", "none", 12345),
        ("1", "bfq", 10200),
        ("32", "none", 210000),
        ("32", "bfq", 91000),
    ]


def test_a_csv_of_a_parser_with_zeros_for_what_was_not_done() -> None:
    text = "jobname,read_iops,read_bw_kib,read_clat_mean_us,write_iops,write_bw_kib,write_clat_mean_us\n"
    text += "seqread,1024,1048576,970,0,0,0\nrandwrite,0,0,0,25000,100000,1270\n"
    first, second = (run.directions for run in read_bytes(text.encode(), "x.csv").runs)
    assert [(d.kind, d.iops.value, d.bandwidth.value) for d in first] == [("read", 1024, 2.0**30)]
    assert [(d.kind, d.iops.value, d.bandwidth.value) for d in second] == [("write", 25000, 102_400_000)]


def test_points_before_thousands_where_commas_stand_before_decimals() -> None:
    text = "Test;IOPS;Bandbreite (MB/s);Latenz (ms)\nrandread;12.345;50,56;2,59\nrandwrite;8.000;32,77;4,00\n"
    runs = read_bytes(text.encode(), "x.csv").runs
    assert [run.directions[0].iops.value for run in runs] == [12_345, 8_000]
    assert [run.directions[0].lat.mean.value for run in runs if run.directions[0].lat] == [2_590_000, 4_000_000]


def test_a_block_size_of_zero_is_no_divisor() -> None:
    runs = read_bytes(b"| test | IOPS | BW (MB/s) |\n|---|---|---|\n| randread 0k | 100 | 5 |\n", "x.md").runs
    assert [run.workload.bs for run in runs] == [0]
    assert not audit(runs).hits


def test_two_workloads_in_the_titles_are_two_cells() -> None:
    text = b"| Scheduler | randread 4k QD1 IOPS | randread 4k QD32 IOPS |\n|---|---|---|\n"
    runs = read_bytes(text + b"| none | 12,345 | 98,765 |\n| bfq | 11.2k | 55k |\n", "x.md").runs
    assert [(variant(run), cell_of(run), run.workload.iodepth) for run in runs] == [
        ("none", ("randread 4k QD1",), 1),
        ("none", ("randread 4k QD32",), 32),
        ("bfq", ("randread 4k QD1",), 1),
        ("bfq", ("randread 4k QD32",), 32),
    ]


def test_a_column_called_rw_says_the_direction() -> None:
    text = b"kernel,rw,bs,iodepth,numjobs,iops,bw_mbps,lat_mean_us\n5.14,randread,4k,32,1,100000,409.6,319\n"
    (run,) = read_bytes(text, "x.csv").runs
    assert (run.workload.rw, run.workload.bs, run.workload.iodepth, run.workload.numjobs) == ("randread", 4096, 32, 1)
    assert [(d.kind, d.iops.value, d.bandwidth.value) for d in run.directions] == [("read", 100_000, 409.6e6)]


METRIC_ROWS = {
    "semicolons, no titles": "IOPS;70800;43600\nlat (us);12;33\np99 (us);40;90\n",
    "commas": "metric,old,new\nIOPS,70800,43600\nlat (us),12,33\np99 (us),40,90\n",
    "a first line that names no measure": "Results;old;new\nIOPS;70800;43600\nlat (us);12;33\np99 (us);40;90\n",
    "tabs": "\told\tnew\nIOPS\t70800\t43600\nlat (us)\t12\t33\np99 (us)\t40\t90\n",
    "single spaces": "IOPS 70800 43600\nlat_us 12 33\np99_us 40 90\n",
    "Markdown": "| | old | new |\n|--|--|--|\n| IOPS | 70800 | 43600 |\n| lat (us) | 12 | 33 |\n"
    "| p99 (us) | 40 | 90 |\n",
    "a corner that names one of them": "IOPS;70800;43600\nCPU (%);5;6\nlat (us);12;33\nerrors;0;0\np99 (us);40;90\n",
    "long": "kernel,metric,value\nold,IOPS,70800\nold,lat (us),12\nold,p99 (us),40\n"
    "new,IOPS,43600\nnew,lat (us),33\nnew,p99 (us),90\n",
    "units in a column": "metric,unit,old,new\nIOPS,1/s,70800,43600\nlat,us,12,33\np99,us,40,90\n",
}


LOG_LINES = {
    "a name behind its number": ["10{m}70800 iops{m}12.1{m}3.5", "20{m}43600 iops{m}33.2{m}3.5"],
    "a name of its own": ["12.5{m}70800{m}IOPS{m}4", "13.5{m}43600{m}IOPS{m}4", "14.5{m}43611{m}IOPS{m}4"],
    "units in every cell": ["17:01:02{m}70800 IOPS{m}283 MB/s{m}12.1 us", "17:01:03{m}43600 IOPS{m}174 MB/s{m}33.2 us"],
    "names before numbers": ["1 s{m}IOPS 70800{m}lat 12{m}err 0", "2 s{m}IOPS 43600{m}lat 33{m}err 0"],
    "pairs": ["t=1{m}iops=70800{m}lat=12{m}q=4", "t=2{m}iops=43600{m}lat=33{m}q=4"],
}


@pytest.mark.parametrize(
    "mark", [", ", "\t", " | ", ";", "   "], ids=["commas", "tabs", "bars", "semicolons", "spaces"]
)
@pytest.mark.parametrize("lines", LOG_LINES)
def test_lines_of_a_log_are_no_table_whose_heading_is_the_first_of_them(lines: str, mark: str) -> None:
    """A heading with digits in most cells is data: what is read at all is the number beside the word IOPS."""
    text = "\n".join(LOG_LINES[lines]).format(m=mark)
    runs = [item for item in read_text(text.encode(), "x") if isinstance(item, Run)]
    values = {direction.iops.value for run in runs for direction in run.directions if direction.iops}
    assert values <= {70_800, 43_600, 43_611}, values


@pytest.mark.parametrize("shape", METRIC_ROWS)
def test_a_measure_in_each_row_is_never_read_as_another(shape: str) -> None:
    runs = rows_of(METRIC_ROWS[shape])
    assert [len(run.directions) for run in runs] == [1, 1]
    one, two = (run.directions[0] for run in runs)
    assert (one.iops.value, two.iops.value) == (70800, 43600)
    assert one.lat is not None
    assert two.lat is not None
    assert (one.lat.mean.value, two.lat.mean.value) == (12e3, 33e3)
    assert (one.lat.percentiles[99.0].value, two.lat.percentiles[99.0].value) == (40e3, 90e3)


PRINTED = {
    "pandas": "  sched  depth   iops  bw_mib  lat_ms\n0  none      1   1877   7.332   0.708\n"
    "1   bfq     32  15000  58.590   0.900\n",
    "R": "  sched depth  iops bw_mib lat_ms\n1  none     1  1877  7.332  0.708\n2   bfq    32 15000 58.590  0.900\n",
    "single spaces": "sched depth iops bw_mib lat_ms\nnone 1 1877 7.332 0.708\nbfq 32 15000 58.59 0.9\n",
    "R, two columns below": "  sched depth  iops\n1  none     1  1877\n2   bfq    32 15000\n  bw_mib lat_ms\n"
    "1  7.332  0.708\n2 58.590  0.900\n",
    "pandas, two columns below": "  sched  depth   iops  \\\n0  none      1   1877   \n1   bfq     32  15000   \n\n"
    "   bw_mib  lat_ms  \n0   7.332   0.708  \n1  58.590   0.900  \n",
    "an index with a name": "       depth   iops  bw_mib  lat_ms\nsched                              \n"
    "none       1   1877   7.332   0.708\nbfq       32  15000  58.590   0.900\n",
    "titles of several words": "sched depth  IOPS BW (MiB/s) avg lat (ms)\n none     1  1877      7.332        0.708\n"
    "  bfq    32 15000     58.590        0.900\n",
}


@pytest.mark.parametrize("shape", PRINTED)
def test_columns_that_single_spaces_set_apart(shape: str) -> None:
    runs = rows_of(PRINTED[shape])
    directions = [run.directions[0] for run in runs]
    assert [run.labels["sched"] for run in runs] == ["none", "bfq"]
    assert [run.workload.iodepth for run in runs] == [1, 32]
    assert [d.iops.value for d in directions] == [1877, 15000]
    assert [d.bandwidth.value / 2**20 for d in directions] == pytest.approx([7.332, 58.59])
    assert [d.lat.mean.value for d in directions if d.lat is not None] == pytest.approx([708e3, 900e3])


UNCLEAR = {
    "names of two words": "kernel build IOPS lat_us p99_us\n6.1 rc 1 1877 531 708\n6.12 1900 520 700\n",
    "numbers with spaces": "sched IOPS p99_us\nnone 100 200 300\nbfq 100 300 400\n",
    "rows too short": "sched jobs IOPS BW lat_us\nnone 1877 7.33 531\nbfq 1500 5.86 640\n",
}


@pytest.mark.parametrize("shape", UNCLEAR)
def test_columns_that_nothing_tells_apart_are_refused_with_their_line(shape: str) -> None:
    found = read_bytes(f"Some text\n\n{UNCLEAR[shape]}".encode(), "x")
    assert not [d for run in found.runs for d in run.directions]
    assert [(refusal.place.line, "told apart" in refusal.reason) for refusal in found.refusals] == [(3, False)]
    assert "heading names" in found.refusals[0].reason


LOGS = {
    "commas": "2026-01-01 12:00:{0:02}, {0}.0, 12{0:02} IOPS, 4.8 MB/s, 0\n",
    "colons": "[ {0}s] iops: 12{0:02}, bw: 4.{0}MB/s, lat: 1{0}us\n",
    "bars": "12:00:{0:02} | 12{0:02} IOPS | 4.8 MB/s | 12 us\n",
    "spaces": "12:00:{0:02}   12{0:02} IOPS   4.8 MB/s   12 us\n",
    "words": "INFO 12:00:{0:02}  read iops   12{0:02}   avg lat  12us\n",
}


@pytest.mark.parametrize("shape", LOGS)
def test_the_lines_of_a_log_are_not_a_table(shape: str) -> None:
    found = read_bytes("".join(LOGS[shape].format(number) for number in range(30)).encode(), "x.log")
    assert found.runs == ()
    assert len(found.refusals) == 1


@pytest.mark.parametrize(
    "title",
    [
        "IOPS stddev",
        "IOPS limit",
        "IOPS/W",
        "IOPS per core",
        "IOPS p99",
        "iops_max",
        "bw_min",
        "bw_agg",
        "IOPS (%)",
        "IOPS, lat (us)",
        "latency at 1000 IOPS (ms)",
        "BW (MB/s) / IOPS",
        "tail latency (us)",
        "CPU time avg (us)",
        "runtime (ms) average",
        "latency_us.250",
        "runtime (s)",
        "$/IOPS",
        "rate_iops",
        "read rate_iops (k)",
        "lat range (us)",
        "lat iqr (us)",
        "lat_q1_us",
        "lat_q3_us",
        "d9 lat (us)",
        "70% read lat (us)",
        "latency percentile (us)",
        "lat 99 (us)",
        "p99_16_us",
        "p95,5 (us)",
        "p50/p99 (us)",
        "p99-p50 (us)",
    ],
)
def test_a_heading_of_something_else_is_not_a_measure(title: str) -> None:
    assert column(title) is None


def test_a_heading_of_both_directions_is_of_neither() -> None:
    assert column("Read/Write IOPS") == Column(None, "rate", "iops", 0, 1.0)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ("12345 IOPS|50 MB/s|12 us", (12345, 50e6, 12e3)),
        ("12.3 kIOPS|1.5 GiB/s|1.5 ms", (12300, 1.5 * 2**30, 1.5e6)),
        ("1.2e+05|50|12", (120_000, 50e6, 12e3)),
    ],
)
def test_units_in_the_cells(cells: str, values: tuple[float, float, float]) -> None:
    text = f"| sched | IOPS | BW (MB/s) | lat (us) |\n|--|--|--|--|\n| none |{cells}|\n"
    (direction,) = read_bytes(text.encode(), "x").runs[0].directions
    assert direction.lat is not None
    found = (direction.iops.value, direction.bandwidth.value, direction.lat.mean.value)
    assert found[0] == pytest.approx(values[0])
    assert found[1] / values[1] == pytest.approx(1, rel=0.08)  # GiB below MB/s: either may be meant
    assert found[2] == pytest.approx(values[2])


def test_a_cell_of_another_measure_is_not_read() -> None:
    text = "| sched | IOPS | BW (MB/s) | lat (us) |\n|--|--|--|--|\n| none | 5 ms | 12 ms | 5 MB/s |\n"
    text += "| bfq | 1 | 2 | 3 |\n"
    none, _ = read_bytes(text.encode(), "x").runs
    assert none.directions == ()
    assert [finding.rule for finding in none.findings] == ["read.cell"] * 3


def test_a_decimal_comma_in_one_column_is_one_in_all() -> None:
    text = "sched;IOPS;BW (MB/s);lat (ms)\nnone;12345,6;50,57;1,234\nbfq;9876,5;40,45;1,012\n"
    directions = [run.directions[0] for run in read_bytes(text.encode(), "x").runs]
    assert [d.lat.mean.value for d in directions if d.lat is not None] == pytest.approx([1.234e6, 1.012e6])


def test_a_comma_that_may_be_either_is_not_guessed_at() -> None:
    runs = read_bytes(b"sched;lat (ms)\nnone;1,234\nbfq;1,012\n", "x").runs
    assert [run.directions for run in runs] == [(), ()]
    assert [finding.rule for run in runs for finding in run.findings] == ["read.comma"] * 2


STATISTICS = "| min | 0.5 | 0.6 |\n| avg | 1.5 | 1.6 |\n| max | 9.5 | 9.6 |\n| 95th percentile | 2.5 | 2.6 |\n"


@pytest.mark.parametrize("head", ["Latency (ms)\n\n| | old | new |\n", "| Latency (ms) | old | new |\n"])
def test_a_row_of_a_statistic_is_not_a_mean(head: str) -> None:
    runs = rows_of(f"{head}|---|---|---|\n{STATISTICS}")
    found = [run.directions[0].lat for run in runs]
    assert len(found) == 8
    means = [lat.mean.value for lat in found if lat is not None and lat.mean.value == lat.mean.value]
    lows = [lat.min.value for lat in found if lat is not None and lat.min.value == lat.min.value]
    highs = [lat.max.value for lat in found if lat is not None and lat.max.value == lat.max.value]
    p95s = [lat.percentiles[95.0].value for lat in found if lat is not None and lat.percentiles]
    assert means == pytest.approx([1.5e6, 1.6e6])
    assert lows == pytest.approx([0.5e6, 0.6e6])
    assert highs == pytest.approx([9.5e6, 9.6e6])
    assert p95s == pytest.approx([2.5e6, 2.6e6])


@pytest.mark.parametrize(
    "head",
    [
        "Latency (ms)\n\n| percentile | old | new |\n",
        "Latency (ms)\n\n| | old | new |\n",
        "| Latency (ms) | old | new |\n",
    ],
)
@pytest.mark.parametrize(
    "rows", ["| 50 | 1.5 | 1.6 |\n| 99 | 2.5 | 2.6 |\n", "| 50 | 1.5 | 1.6 |\n| 99,9 | 9.5 | 9.6 |\n"]
)
def test_rows_of_bare_percentiles_are_not_means(head: str, rows: str) -> None:
    assert not read_bytes(f"{head}|---|---|---|\n{rows}".encode(), "x").runs


def test_a_power_is_not_a_number() -> None:
    assert cell("1024**2") is None
    (first, second) = rows_of("| fs | IOPS | MB/s |\n|---|---|---|\n| a | 100 | 1024**2 |\n| b | 200 | **10** |\n")
    assert first.directions[0].bandwidth.value != first.directions[0].bandwidth.value
    assert second.directions[0].bandwidth.value == 10e6


def test_rows_that_say_how_others_differ_are_not_variants() -> None:
    text = b"| sched | IOPS |\n|--|--|\n| none | 100 |\n| bfq | 90 |\n| diff | 10 |\n| stddev | 3 |\n"
    assert [variant(run) for run in read_bytes(text, "x").runs] == ["none", "bfq"]


def test_rows_of_other_measures_in_a_table_of_one_are_left_out() -> None:
    text = b"| IOPS | none | bfq |\n|--|--|--|\n| randread | 100 | 90 |\n| CPU (%) | 50 | 60 |\n| errors | 0 | 1 |\n"
    assert [run.directions[0].iops.value for run in read_bytes(text, "x").runs] == [100, 90]


@pytest.mark.parametrize(("bar", "mark"), [("|", "|"), ("", ","), ("", ";"), ("", "\t")])
def test_a_row_with_more_cells_than_titles_is_said(bar: str, mark: str) -> None:
    rows = [["sched", "IOPS", "p99 (us)"], ["none", "12", "5", "8"], ["bfq", "7", "9"], ["kyber", "8", "9"]]
    text = "".join(f"{bar}{mark.join(row)}{bar}\n" for row in rows)
    found = read_bytes(text.encode(), "x")
    assert [run.directions[0].iops.value for run in found.runs] == [7, 8]
    assert [refusal.place.line for refusal in found.refusals] == [2]


def test_two_columns_of_one_rate_do_not_undo_each_other() -> None:
    text = b"job,read.iops,read.bw_bytes,read.bw,read.bw_min,read.bw_max,read.bw_mean,read.bw_dev\n"
    text += b"a,1000,4096000,4000,1,9,4000.5,3\nb,2000,8192000,8000,2,99,8000.5,4\n"
    runs = read_bytes(text, "x.csv").runs
    rates = {run.labels["job"]: d.bandwidth.value for run in runs for d in run.directions if d.iops.value > 0}
    assert rates == {"a": 4096000, "b": 8192000}


@pytest.mark.parametrize(
    ("line", "read", "write"),
    [
        ("Sequential Read/Write: 536MiB/s / 512MiB/s", 536 * 2**20, 512 * 2**20),
        ("Sequential Write/Read: 512MiB/s / 536MiB/s", 536 * 2**20, 512 * 2**20),
        ("Random R/W (MB/s): 438 / 401", 438e6, 401e6),
        ("Read/Write = 5 / 6 GB/s", 5e9, 6e9),
    ],
)
@pytest.mark.parametrize("above", ["", "Results:\n"])
def test_two_directions_of_one_line_keep_their_numbers(line: str, read: float, write: float, above: str) -> None:
    (run,) = read_bytes(f"{above}{line}\n".encode(), "x").runs
    assert {d.kind: d.bandwidth.value for d in run.directions} == {"read": read, "write": write}


def test_two_directions_without_a_unit_are_not_read() -> None:
    found = read_bytes(b"Results:\nSequential Read/Write: 536 / 512\n", "x")
    assert found.runs == ()
    assert len(found.refusals) == 1


def test_a_change_told_in_words_is_two_rows() -> None:
    text = b"> IOPS drops significantly\n> compared to v6.19: from ~36M IOPS to ~13M IOPS (~64%\n> drop).\n"
    before, after = read_bytes(text, "x").runs
    assert (before.directions[0].iops.value, after.directions[0].iops.value) == (36e6, 13e6)
    assert (variant(before), variant(after)) == ("before", "after")
    assert before.place.line == 2


def test_an_effect_in_percent_is_a_row_without_numbers() -> None:
    (run,) = read_bytes(b"With 2.6.33-rc1, fio randread 64k has more than 40% regression.\n", "x").runs
    assert run.directions == ()
    assert run.labels["stated"] == "more than 40% regression"
    assert (run.workload.rw, run.workload.bs) == ("randread", 65536)


def test_an_empty_cell_between_tabs_is_a_cell() -> None:
    none, bfq = read_bytes(b"sched\tIOPS\tp99 (us)\nnone\t\t40\nbfq\t5\t6\n", "x.tsv").runs
    assert none.directions[0].iops.value != none.directions[0].iops.value
    assert bfq.directions[0].iops.value == 5


@pytest.mark.parametrize("unit", ["Mbps", "Mb/s", "Mbit/s"])
def test_megabits_are_not_taken_for_megabytes(unit: str) -> None:
    text = f"sched,IOPS,BW ({unit})\nnone,1000,32.8\nbfq,2000,65.5\n"
    for run in read_bytes(text.encode(), "x.csv").runs:
        assert run.directions[0].bandwidth.value != run.directions[0].bandwidth.value
        assert [finding.rule for finding in run.findings] == ["read.no-unit"]


@pytest.mark.parametrize("mark", ["|", ",", ";", "\t", "   "])
@pytest.mark.parametrize("more", ["", "jobs"])
def test_the_titles_of_another_table_end_one(mark: str, more: str) -> None:
    rows = ["sched IOPS", "none 100", "bfq 90", f"sched {more} p99_us", f"none {more and 4} 12", f"bfq {more and 4} 13"]
    bar = mark if mark == "|" else ""
    text = "".join(f"{bar}{mark.join(row.split())}{bar}\n" for row in rows)
    found = read_bytes(text.encode(), "x")
    directions = [d for run in found.runs for d in run.directions]
    assert [d.iops.value for d in directions][:2] == [100, 90]
    assert all(d.iops.value != d.iops.value for d in directions if d.lat is not None)
    assert [d.lat.percentiles[99.0].value for d in directions if d.lat is not None] == [12e3, 13e3]
    assert len(directions) == 4


def test_a_row_of_units_belongs_to_the_titles() -> None:
    runs = read_bytes(b"sched;IOPS;lat\n;1/s;us\nnone;100;12\nbfq;90;13\n", "x").runs
    assert [run.directions[0].iops.value for run in runs] == [100, 90]
    assert [run.directions[0].lat.mean.value for run in runs if run.directions[0].lat] == [12e3, 13e3]


@pytest.mark.parametrize(
    "text",
    [
        "IOPS dropped after upgrading from 6.1 to 6.12.",
        "The IOPS by block size, 4k → 8k, differ.",
        "IOPS were stable, but latency rose from 12345 to 23456.",
        "IOPS fell when the depth went from 32 to 64.",
    ],
)
def test_numbers_of_something_else_in_a_sentence_about_iops_are_not_iops(text: str) -> None:
    assert read_bytes(text.encode(), "mail").runs == ()


def test_iops_without_a_unit_of_their_own_are_read_where_nothing_else_is_named() -> None:
    before, after = read_bytes(b"IOPS went from 123,456 to 98,765 with it.\n", "mail").runs
    assert (before.directions[0].iops.value, after.directions[0].iops.value) == (123456, 98765)


def test_thousands_of_iops_are_not_iops_where_single_spaces_set_columns_apart() -> None:
    found = read_bytes(b"sched kIOPS BW (MiB/s)\nnone 100 100\nbfq 100 100\n", "x")
    assert all(d.iops.value != 100 for run in found.runs for d in run.directions)
    assert found.runs or found.refusals


@pytest.mark.parametrize(
    "text",
    [
        "   Read IOPS 100 100   100\navg lat (ms) 100 100   100\n99% lat (ms)  10 100 100.1\n",
        "Read IOPS   100 940\n p99 (us) 2'177   2\n",
        "   metric  none bfq\nRead IOPS   100 940\n p99 (us)    12   7\n",
        "sched  IOPS lat_us\n none   100 940\n  bfq   12000 31\n",
    ],
)
def test_two_columns_one_space_apart_are_no_number_with_thousands(text: str) -> None:
    found = read_bytes(text.encode(), "x")
    values = [d.iops.value for run in found.runs for d in run.directions]
    values += [q.value for run in found.runs for d in run.directions if d.lat for q in d.lat.percentiles.values()]
    assert not {100_940.0, 10_100_100.1, 10_100_100.1 * 1e6} & set(values)


@pytest.mark.parametrize("space", [" ", "\u202f", "\xa0"])
def test_thousands_that_a_title_and_its_whole_column_prove_are_read(space: str) -> None:
    text = "sched   IOPS     lat (us)\nnone    70 800   12\nbfq     800      13\n".replace("70 800", f"70{space}800")
    found = read_bytes(text.encode(), "x")
    assert [run.directions[0].iops.value for run in found.runs] == [70_800.0, 800.0]


ANOTHERS = ["lat variation (us)", "network latency (us)", "fsync lat (us)", "IOPS budget", "provisioned IOPS"]


@pytest.mark.parametrize("title", ANOTHERS)
def test_a_measure_with_a_word_that_may_make_it_anothers_is_refused_by_name(title: str) -> None:
    """Beside a column of the same measure, before the names of the rows, and as a row."""
    shapes = (
        f"{title};sched;IOPS;lat (us)\n12;none;70000;14\n9;bfq;42000;31\n",
        f"metric;none;bfq\nIOPS;70000;42000\n{title};12;9\nlat (us);14;31\n",
    )
    for text in shapes:
        found = read_bytes(text.encode(), "x.csv")
        assert [run.jobname for run in found.runs] == ["none", "bfq"]
        directions = [run.directions[0] for run in found.runs]
        means = [d.lat.mean.value for d in directions if d.lat is not None]
        assert ([d.iops.value for d in directions], means) == ([70e3, 42e3], [14e3, 31e3])
        assert [(refusal.place.line, repr(title) in refusal.reason) for refusal in found.refusals] == [(1, True)]


def test_a_word_that_is_not_known_names_a_variant_where_every_column_of_a_measure_has_one() -> None:
    runs = rows_of("bs,patched IOPS,vanilla IOPS\n4k,900,800\n64k,90,80\n")
    assert [(run.jobname, run.directions[0].iops.value) for run in runs[:2]] == [("patched", 900), ("vanilla", 800)]


BELOW_TITLE = "{title}\n\nsched  1  8  32\nnone  10  80  300\nbfq  9  70  250\n"


@pytest.mark.parametrize("title", ["Latency variation (us)", "IOPS budget"])
def test_a_title_of_something_else_is_not_a_measure_of_the_table_below(title: str) -> None:
    found = read_bytes(BELOW_TITLE.format(title=title).encode(), "x")
    assert found.runs == ()
    assert [(refusal.place.line, repr(title) in refusal.reason) for refusal in found.refusals] == [(3, True)]


@pytest.mark.parametrize("title", ["IOPS by scheduler", "Figure 3: IOPS, Samsung 980", "4k random read: IOPS (k)"])
def test_a_title_may_say_more_before_and_after_its_measure(title: str) -> None:
    assert len(rows_of(BELOW_TITLE.format(title=title))) == 6


UNREAD = {
    "bars": "some words\n\n| 01:00 | 5001 IOPS | 21 MB/s |\n| 02:00 | 5002 IOPS | 22 MB/s |\n",
    "a short heading": "some words\n\nnone,bfq\nIOPS,70800,43600\n",
    "two lines of titles": "some words\n\n        read_iops  read_lat_us\nkernel depth\n6.1    1   1877  531\n"
    "6.12   1   1900  520\n",
}


@pytest.mark.parametrize("shape", UNREAD)
def test_a_text_that_gives_nothing_is_refused_with_the_line_that_names_a_measure(shape: str) -> None:
    found = read_bytes(UNREAD[shape].encode(), "x")
    assert found.runs == ()
    (refusal,) = found.refusals
    assert refusal.place.line in (3, 4)
    assert "put a" in refusal.reason


def test_a_cell_of_two_numbers_that_stand_apart_as_columns_do_is_none() -> None:
    read = read_bytes(b"Member   r/s   MB/s   reads\nsda   101.0   404.0   0.52\nsdb   102.0   405.0   0.53\n", "x")
    runs = read.runs
    assert [refusal.reason.partition(":")[0] for refusal in read.refusals] == ["2 columns not read"]
    assert [run.labels["Member"] for run in runs] == ["sda", "sdb"]


@pytest.mark.parametrize(
    ("title", "rw"), [("thread", None), ("spread", None), ("4kread", "read"), ("mmap_read", "read")]
)
def test_a_word_that_ends_as_a_direction_does_is_none(title: str, rw: str | None) -> None:
    (run,) = rows_of(f"{title},IOPS,MiB/s\n0,30140,117.74\n")
    assert run.workload.rw == rw
    assert run.directions[0].kind == (rw or "mixed")


LATEX = r"""\begin{tabular}{lrr}
Case & CPU (\%) & Wait \\
\hline
 & & p99 (us) \\
none & 12 & 40 \\
bfq & 14 & 90 \\
"""
BOX = """Latency of two schedulers, p99 in the last column
┌──────┬─────────┬──────────┐
│ case │ threads │ time     │
│      │         │ p99 (us) │
├──────┼─────────┼──────────┤
│ none │ 1       │ 40       │
└──────┴─────────┴──────────┘
"""


@pytest.mark.parametrize("text", [LATEX, BOX])
def test_a_number_below_two_lines_of_titles_is_of_its_measure_or_refused(text: str) -> None:
    found = read_bytes(text.encode(), "x")
    waits = [d.lat.percentiles[99.0].value for run in found.runs for d in run.directions if d.lat is not None]
    assert set(waits) <= {40_000, 90_000}
    assert found.refusals or waits


def test_lines_that_end_in_numbers_and_that_no_reader_took_are_refused_beside_a_table_that_was_read() -> None:
    table = "sched,IOPS\nnone,70800\nbfq,43600\n"
    lines = "none lat_us 12\nbfq lat_us 13\nkyber lat_us 14\n"
    found = read_bytes(f"{table}\n{lines}".encode(), "x")
    assert len(found.runs) == 2
    (refusal,) = found.refusals
    assert refusal.place.line == 5
    assert "3 lines with numbers of a result not read" in str(refusal)


def test_prose_with_numbers_beside_a_table_is_not_refused() -> None:
    table = "sched,IOPS\nnone,70800\nbfq,43600\n"
    lines = "The kernel was 6.12\nthe number of CPUs 8\nand the latency of the disk is unknown\n"
    assert not read_bytes(f"{table}\n{lines}".encode(), "x").refusals


def test_a_word_is_a_variant_only_where_every_measure_has_a_column_for_each() -> None:
    text = "case,IOPS none,IOPS bfq,lat budget (us)\nread,70800,43600,500\nwrite,30140,20000,500\n"
    found = read_bytes(text.encode(), "x")
    assert not any(d.lat for run in found.runs for d in run.directions)
    assert found.refusals


def test_a_variant_of_one_measure_is_none_of_another() -> None:
    text = "case,none IOPS,bfq IOPS,lat budget (us),lat slo (us)\nread,70800,43600,500,501\n"
    found = read_bytes(text.encode(), "x")
    assert not found.runs
    assert found.refusals


LATEX_METRICS = r"""\begin{tabular}{lrr}
Metric & none & bfq \\
\cmidrule(lr){2-3}
IOPS & \textbf{70{,}800} & \num{43600} \\
{p99 (\si{\micro\second})} & \SI{40}{\micro\second} & 90 \\
\bottomrule
"""


def test_latex_is_read_without_the_commands_of_its_looks() -> None:
    none, bfq = rows_of(LATEX_METRICS)
    for run, name, iops, p99 in ((none, "none", 70800, 40e3), (bfq, "bfq", 43600, 90e3)):
        (direction,) = run.directions
        assert run.jobname == name
        assert not run.table
        assert direction.lat is not None
        assert direction.iops.value == iops
        assert direction.lat.percentiles[99.0].value == pytest.approx(p99)


@pytest.mark.parametrize(
    "cell", [r"43600\footnotemark{1}", r"43600\textsuperscript{2}", "43600$^{1}$", r"\multicolumn{1}{c}{12}"]
)
def test_a_number_of_latex_that_carries_more_than_its_looks_is_refused(cell: str) -> None:
    found = read_bytes(f"sched & IOPS & p99 (us) \\\\\nnone & {cell} & 90 \\\\\n".encode(), "x")
    assert not any(d.iops.value > 0 for run in found.runs for d in run.directions)
    assert found.refusals or any(f.rule == "read.cell" for run in found.runs for f in run.findings)


DIRECTION_TITLES = "dir direction ddir data_direction rw R/W readwrite Read/Write op operation op_type io_type".split()


@pytest.mark.parametrize("title", DIRECTION_TITLES)
@pytest.mark.parametrize("names", [("read", "write"), ("R", "W"), ("rd", "wr"), ("Reads", "Writes")])
def test_a_column_says_the_direction_of_its_rows(title: str, names: tuple[str, str]) -> None:
    runs = rows_of(f"time_ms,iops,{title}\n1000,5000,{names[0]}\n1000,4000,{names[1]}\n")
    assert [(d.kind, d.iops.value) for run in runs for d in run.directions] == [("read", 5000), ("write", 4000)]


@pytest.mark.parametrize("title", ["dir", "ddir", "direction", "data direction"])
def test_a_direction_may_be_the_number_of_fios_logs(title: str) -> None:
    runs = rows_of(f"time_ms,iops,{title}\n1000,5000,0\n1000,4000,1\n1000,300,2\n")
    assert [d.kind for run in runs for d in run.directions] == ["read", "write", "trim"]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("row", ["sideways{}4000{}12", "7{}4000{}12"])
def test_a_row_whose_direction_is_unknown_is_refused_by_its_line(mark: str, row: str) -> None:
    text = "ddir{}iops{}lat_us\nread{}5000{}10\n" + row + "\n"
    found = read_bytes(text.replace("{}", mark).encode(), "x")
    (run,), (refusal,) = found.runs, found.refusals
    assert (run.directions[0].kind, run.directions[0].iops.value) == ("read", 5000)
    assert (refusal.place.line, "direction" in refusal.reason) == (3, True)


def test_directions_are_told_apart_where_each_row_is_a_measure() -> None:
    found = read_text(b"dir,metric,none,bfq\nR,IOPS,5000,4000\nW,IOPS,3000,2000\nQ,IOPS,11,12\n", "x")
    runs = [item for item in found if isinstance(item, Run)]
    assert [(d.kind, d.iops.value) for run in runs for d in run.directions] == [
        ("read", 5000),
        ("read", 4000),
        ("write", 3000),
        ("write", 2000),
    ]
    assert len(found) == len(runs) + 1


def test_folders_in_a_column_called_dir_are_names() -> None:
    runs = rows_of("dir,iops,lat_us\n/mnt/a,5000,10\n/mnt/b,4000,12\n")
    assert [run.jobname for run in runs] == ["/mnt/a", "/mnt/b"]


@pytest.mark.parametrize("title", ["policy", "Read policy", "scheduler", "algorithm"])
def test_a_policy_called_rr_makes_no_workload_of_random_reads(title: str) -> None:
    runs = rows_of(f"{title},iops,lat_us\nrr,5000,10\npid,4000,12\n")
    assert {(run.workload.rw, run.directions[0].kind) for run in runs} == {(None, "mixed")}


@pytest.mark.parametrize("space", ["\u202f", " "])
def test_a_row_apart_from_a_table_is_named_where_spaces_stand_before_thousands(space: str) -> None:
    text = (
        "sched         IO/s    BW (MiB/s)   lat (ms)\n"
        "none          100     100          100\n"
        "bfq           1_657   100          1_000\n\n"
        "kyber         100     100          1_000\n"
    )
    found = read_text(text.replace("_", space).encode(), "x")
    assert any(item.place.line == 5 for item in found), found


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_file_that_ends_in_a_number_may_be_cut_and_says_so_wherever_it_ends(mark: str) -> None:
    text = "job,IOPS,BW (MiB/s)\na,5000,19.5\nb,15000,58.6\nc,51000,123.5".replace(",", mark)
    assert not any("cut" in str(item) for item in read_text((text + "\n").encode(), "x"))
    for length in range(text.index("51000") + 1, len(text) + 1):
        found = read_bytes(text[:length].encode(), "x.csv")
        said = [refusal.reason for refusal in found.refusals if refusal.place.line == 4]
        said += [
            f.explanation for run in found.runs for f in run.findings if (f.rule, f.place) == ("read.no-end", "x.csv:4")
        ]
        assert len(said) == 1, text[:length]
        assert "cut" in said[0]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "|", " |"])
def test_a_row_that_is_closed_is_whole(end: str) -> None:
    text = "| job | IOPS |\n| a | 5000 |\n| b | 7000 "
    runs = rows_of(text + end if end.strip() else text + "|" + end)
    assert [run.findings for run in runs] == [(), ()]


@pytest.mark.parametrize(
    "text",
    [
        "sched;IOPS\nnone;45.000\nbfq;131.250\n",
        "| sched | IOPS |\n|--|--|\n| none | 45.000 |\n| bfq | 131.250 |\n",
        "IOPS;none;bfq\nqd1;8.100;7.900\nqd32;120.000;96.000\n",
        "IOPS;none;bfq\nqd1;8,100;7,900\nqd32;120,000;96,000\n",
        "measure;none;bfq\nIOPS;45.000;31.000\n",
        "sched;p99 (us)\nnone;1.812\nbfq;2.100\n",
    ],
)
def test_a_mark_that_may_stand_before_thousands_or_decimals_is_not_guessed_at(text: str) -> None:
    found = read_bytes(text.encode(), "x")
    assert [d for run in found.runs for d in run.directions] == []
    rules = {finding.rule for run in found.runs for finding in run.findings}
    assert rules == {"read.comma"} or found.refusals


@pytest.mark.parametrize("number", ["0.125", "12.5", "1234", "1234.567", "1,234,567"])
def test_another_number_tells_what_a_point_means(number: str) -> None:
    text = f"| sched | IOPS |\n|--|--|\n| none | 45.125 |\n| bfq | {number} |\n"
    none, bfq = rows_of(text)
    assert none.directions[0].iops.value == 45.125
    assert bfq.directions[0].iops.value == float(number.replace(",", ""))


def test_thousandths_of_a_millisecond_are_decimals() -> None:
    none, _ = rows_of("| sched | IOPS | lat (ms) |\n|--|--|--|\n| none | 450 | 1.250 |\n| bfq | 310 | 2.125 |\n")
    lat = none.directions[0].lat
    assert lat is not None
    assert lat.mean.value == 1.25e6


PAGE = "<table><tr><th>sched</th><th>IOPS</th><th>lat (us)</th></tr>{}</table>"


@pytest.mark.parametrize(
    "cell",
    [
        '<span style="display:none">1</span>44000',
        '<span class=key style="width: 1px; display: none;">0044000</span> 44000',
        "<span hidden>1</span>44000",
        "<div style='visibility:hidden'>9</div>44000",
        "44<br>000",
        "<p>44</p><p>000</p>",
        "<div>44</div><div>000</div>",
    ],
)
def test_a_cell_of_html_is_read_as_a_browser_shows_it(cell: str) -> None:
    row = f"<tr><td>kyber</td><td>{cell}</td><td>720</td></tr><tr><td>bfq</td><td>31000</td><td>1030</td></tr>"
    found = read_bytes(PAGE.format(row).encode(), "x.html")
    values = [(d.iops.value, d.lat and d.lat.mean.value) for run in found.runs for d in run.directions]
    assert values == [(44_000, 720e3), (31_000, 1030e3)]


@pytest.mark.parametrize("word", ["lost", "gained", "saved", "penalty", "decrease", "gap"])
def test_what_one_side_lost_is_no_side(word: str) -> None:
    text = f"| sched | IOPS before | IOPS after | IOPS {word} |\n|--|--|--|--|\n| none | 45000 | 44000 | 1000 |\n"
    rates = [d.iops.value for run in read_bytes(text.encode(), "x").runs for d in run.directions]
    assert 1000 not in rates
    pivot = f"| | none | bfq | {word} |\n|--|--|--|--|\n| IOPS | 45000 | 44000 | 1000 |\n| lat (us) | 7 | 8 | 1 |\n"
    rates = [d.iops.value for run in read_bytes(pivot.encode(), "x").runs for d in run.directions]
    assert rates == [45_000, 44_000]


@pytest.mark.parametrize(
    "text",
    [
        ",sched,iops,lat_us\n0,none,45000,710\n1,bfq,31000,1030\n",
        "Unnamed: 0,sched,iops,lat_us\n0,none,45000,710\n1,bfq,31000,1030\n",
        "  sched   iops  lat_us\n1  none  45000     710\n2   bfq  31000    1030\n",
        "| # | sched | iops | lat_us |\n|--|--|--|--|\n| 1 | none | 45000 | 710 |\n| 2 | bfq | 31000 | 1030 |\n",
    ],
)
def test_a_column_that_counts_the_rows_is_no_name(text: str) -> None:
    runs = rows_of(text)
    assert [run.jobname for run in runs] == ["none", "bfq"]
    assert [set(run.labels) - {"sched", "iops", "lat_us"} for run in runs] == [set(), set()]


def test_numbered_runs_keep_their_numbers() -> None:
    assert [run.jobname for run in rows_of("run,iops\n1,45000\n2,31000\n")] == ["1", "2"]


def test_lines_of_a_paragraph_that_is_read_in_part_are_told() -> None:
    found = read_bytes(b"none:\n  iops: 45000\n  lat_us: 710\nbfq:\n  iops: 31000\n  lat_us: 1030\n", "x.yml")
    lines = {run.place.line for run in found.runs} | {refusal.place.line for refusal in found.refusals}
    assert lines == {2, 5}


@pytest.mark.parametrize("title", ["max", "min", "p99", "延迟(us)", "svctm [ms]"])
def test_a_number_of_the_result_that_is_not_read_names_no_row(title: str) -> None:
    """Two rows that differ in it are variants of one cell, not two cells."""
    runs = rows_of(f"policy,{title},IOPS\npid,5,1000\nqueue,6,2000\n")
    assert [cell_of(run) for run in runs] == [(), ()]
    assert [variant(run) for run in runs] == ["pid", "queue"]


@pytest.mark.parametrize("title", ["delay (ms)", "think time (us)", "clients", "iodepth", "revision"])
def test_a_number_that_somebody_sets_names_its_row(title: str) -> None:
    runs = rows_of(f"policy,{title},IOPS\npid,5,1000\nqueue,6,2000\n")
    assert [cell_of(run) for run in runs] == [("5",), ("6",)]


def test_numbers_without_which_rows_cannot_be_told_apart_name_them() -> None:
    """The least and greatest frequency of a governor, for example: rows of two settings are no replicates."""
    runs = rows_of("governor,min,max,IOPS\nondemand,800,3000,1000\nondemand,1600,3000,2000\n")
    assert len({cell_of(run) for run in runs}) == 2


def test_a_heading_of_several_lines_in_a_grid_is_one_and_rows_keep_their_names() -> None:
    text = """\
+--------+---------+-----------+
|        | random  | random    |
| policy | read    | read lat  |
|        | IOPS    | (us)      |
+========+=========+===========+
| pid    | 1000    | 12        |
+--------+---------+-----------+
| queue  | 2000    | 13        |
+--------+---------+-----------+
"""
    runs = rows_of(text)
    assert [variant(run) for run in runs] == ["pid", "queue"]
    assert [run.directions[0].iops.value for run in runs] == [1000, 2000]
    latencies = [run.directions[0].lat for run in runs]
    assert [latency.mean.value for latency in latencies if latency is not None] == [12000, 13000]


@pytest.mark.parametrize("rule", ["+===========+=========+======+", "+-----------+---------+------+"])
def test_a_row_of_several_lines_in_a_grid_is_one_and_its_name_is_whole(rule: str) -> None:
    text = f"""\
+-----------+---------+------+
| policy    | IOPS    | lat  |
{rule}
| round     | 1000    | 12us |
| robin     |         |      |
+-----------+---------+------+
| mq-       | 2000    | 13us |
| deadline  |         |      |
+-----------+---------+------+
"""
    runs = rows_of(text)
    assert [variant(run) for run in runs] == ["round robin", "mq-deadline"]
    assert [run.directions[0].iops.value for run in runs] == [1000, 2000]


def test_a_grid_of_one_row_has_one_run() -> None:
    runs = rows_of("+-----+------+\n| job | IOPS |\n+=====+======+\n| my  | 10   |\n| one |      |\n+-----+------+\n")
    assert [variant(run) for run in runs] == ["my one"]


def test_rows_between_borders_that_have_numbers_of_their_own_are_a_group_and_not_one_row() -> None:
    text = """\
+------+------+
| job  | IOPS |
+------+------+
| a    | 100  |
| b    | 200  |
+------+------+
| c    | 300  |
|      | 310  |
+------+------+
"""
    runs = rows_of(text)
    assert [variant(run) for run in runs] == ["a", "b", "c", "c"]
    assert [run.directions[0].iops.value for run in runs] == [100, 200, 300, 310]
