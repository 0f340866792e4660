"""Result tables as people paste them. The five seeds lie beside the repository and are no part of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from told import runs_of, told

from iodelta.audit import audit
from iodelta.audit.tables import cell as cell_of
from iodelta.audit.tables import variant
from iodelta.ingest import DeviceStats, Run, read, read_bytes
from iodelta.ingest.report import read_text
from iodelta.ingest.table_cells import cell
from iodelta.ingest.table_titles import Column, column

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
GIST = SEEDS / "003_32c9d470c4ad77c4.txt"

seeds = pytest.mark.skipif(not SEEDS.is_dir(), reason="the seeds are not beside this repository")


def rows(text: str) -> list[str]:
    """What is told of a text, without its lines."""
    return [row.partition(" ")[2] for row in told(text).split("\n")]


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


READ = {
    "Markdown with a title, bold cells and thousands": (
        """\

### Array A

| Scheduler | Jobs | randread 4k QD32 IOPS | BW (MiB/s) | p99.9 lat (us) |
|:----------|-----:|----------------------:|-----------:|---------------:|
| none      |    1 |             1,117,899 |     4366.8 |          127.5 |
| **bfq**   |    4 |                 99.5k |      388.7 |       **2104** |
""",
        """\
6 none: randread 4096B qd32 jobs1 | read iops=1117899 MB/s=4578.92168 lat p99.9=127.5
7 **bfq**: randread 4096B qd32 jobs4 | read iops=99500 MB/s=407.581491 lat p99.9=2104""",
    ),
    "a metric in each row, a run for each column": (
        """\

test results
   metric            baseline    current    stdev      diff
================================================================
read_iops             5680.85    5848.49        0     2.95%
read_clat_ns_p50      2277376    2244608        0    -1.44%
write_iops                  0          0        0     0.00%
""",
        """\
3 baseline: | read iops=5680.85 clat p50=2277.376
3 current: | read iops=5848.49 clat p50=2244.608""",
    ),
    "columns of several workloads": (
        """\

| kernel | 4k randread IOPS | 4k randread p99 (us) | 1M seqwrite (MB/s) |
|--------|-----------------:|---------------------:|-------------------:|
| 5.14   | 554              | 57700                | 780                |
| 6.19   | 535              | 59800                | 755                |
""",
        """\
4 5.14: randread 4096B | read iops=554 lat p99=57700
4 5.14: write 1048576B | write MB/s=780
5 6.19: randread 4096B | read iops=535 lat p99=59800
5 6.19: write 1048576B | write MB/s=755""",
    ),
    "a measure in the corner": (
        """\

| IOPS          | none  | mq-deadline | diff |
|---------------|-------|-------------|------|
| randread 4k   | 99.5k | 98.1k       | 1.4% |
| randwrite 64k | 12.0k | 11.9k       | 0.8% |
""",
        """\
4 randread 4k/none: randread 4096B | read iops=99500
4 randread 4k/mq-deadline: randread 4096B | read iops=98100
5 randwrite 64k/none: randwrite 65536B | write iops=12000
5 randwrite 64k/mq-deadline: randwrite 65536B | write iops=11900""",
    ),
    "a measure in the title": (
        """\

Bandwidth in MiB/s, sequential read 1M

| policy | QD1 | QD32 |
|--------|-----|------|
| pid    | 97  | 255  |
| queue  | 139 | 265  |
""",
        """\
6 pid: read 1048576B qd1 | read MB/s=101.711872
6 pid: read 1048576B qd32 | read MB/s=267.38688
7 queue: read 1048576B qd1 | read MB/s=145.752064
7 queue: read 1048576B qd32 | read MB/s=277.87264""",
    ),
    "zeros of what was not done": (
        """\
jobname,read_iops,read_bw_kib,read_clat_mean_us,write_iops,write_bw_kib,write_clat_mean_us
seqread,1024,1048576,970,0,0,0
randwrite,0,0,0,25000,100000,1270
""",
        """\
2 seqread: read | read iops=1024 MB/s=1073.74182 clat mean=970
3 randwrite: randwrite | write iops=25000 MB/s=102.4 clat mean=1270""",
    ),
    "points before thousands beside decimal commas": (
        """\
Test;IOPS;Bandbreite (MB/s);Latenz (ms)
randread;12.345;50,56;2,59
randwrite;8.000;32,77;4,00
""",
        """\
2 randread: randread | read iops=12345 MB/s=50.56 lat mean=2590
3 randwrite: randwrite | write iops=8000 MB/s=32.77 lat mean=4000""",
    ),
    "a column called rw": (
        """\
kernel,rw,bs,iodepth,numjobs,iops,bw_mbps,lat_mean_us
5.14,randread,4k,32,1,100000,409.6,319
""",
        """\
2 5.14: randread 4096B qd32 jobs1 | read iops=100000 MB/s=409.6 lat mean=319
1 refused: 1 column not read: 'bs'""",
    ),
    "cells of another measure": (
        """\
| sched | IOPS | BW (MB/s) | lat (us) |
|--|--|--|--|
| none | 5 ms | 12 ms | 5 MB/s |
| bfq | 1 | 2 | 3 |
""",
        """\
3 none: !read.cell !read.cell !read.cell
4 bfq: | mixed iops=1 MB/s=2 lat mean=3""",
    ),
    "a decimal comma in one column is one in all": (
        """\
sched;IOPS;lat (ms)
none;12345,6;1,234
bfq;9876,5;1,012
""",
        """\
2 none: | mixed iops=12345.6 lat mean=1234
3 bfq: | mixed iops=9876.5 lat mean=1012""",
    ),
    "a comma that may be either": (
        """\
sched;lat (ms)
none;1,234
bfq;1,012
""",
        """\
2 none: !read.comma
3 bfq: !read.comma""",
    ),
    "statistics below a title": (
        """\
Latency (ms)

| | old | new |
|---|---|---|
| min | 0.5 | 0.6 |
| avg | 1.5 | 1.6 |
| max | 9.5 | 9.6 |
| 95th percentile | 2.5 | 2.6 |
""",
        """\
5 min/old: | mixed lat min=500
5 min/new: | mixed lat min=600
6 avg/old: | mixed lat mean=1500
6 avg/new: | mixed lat mean=1600
7 max/old: | mixed lat max=9500
7 max/new: | mixed lat max=9600
8 95th percentile/old: | mixed lat p95=2500
8 95th percentile/new: | mixed lat p95=2600""",
    ),
    "statistics below a corner": (
        """\
| Latency (ms) | old | new |
|---|---|---|
| min | 0.5 | 0.6 |
| avg | 1.5 | 1.6 |
| max | 9.5 | 9.6 |
| 95th percentile | 2.5 | 2.6 |
""",
        """\
3 min/old: | mixed lat min=500
3 min/new: | mixed lat min=600
4 avg/old: | mixed lat mean=1500
4 avg/new: | mixed lat mean=1600
5 max/old: | mixed lat max=9500
5 max/new: | mixed lat max=9600
6 95th percentile/old: | mixed lat p95=2500
6 95th percentile/new: | mixed lat p95=2600""",
    ),
    "bare percentiles below a title": (
        """\
Latency (ms)

| | old | new |
|---|---|---|
| 50 | 1.5 | 1.6 |
| 99 | 2.5 | 2.6 |
""",
        "0 refused: no result",
    ),
    "bare percentiles with their name": (
        """\
Latency (ms)

| percentile | old | new |
|---|---|---|
| 50 | 1.5 | 1.6 |
| 99,9 | 9.5 | 9.6 |
""",
        "3 refused: no result, and how to mend it",
    ),
    "bare percentiles below a corner": (
        """\
| Latency (ms) | old | new |
|---|---|---|
| 50 | 1.5 | 1.6 |
| 99,9 | 9.5 | 9.6 |
""",
        "1 refused: no result, and how to mend it",
    ),
    "a power, and bold": (
        """\
| fs | IOPS | MB/s |
|---|---|---|
| a | 100 | 1024**2 |
| b | 200 | **10** |
""",
        """\
3 a: | mixed iops=100 !read.cell
4 b: | mixed iops=200 MB/s=10""",
    ),
    "rows of other measures in a table of one": (
        """\
| IOPS | none | bfq |
|--|--|--|
| randread | 100 | 90 |
| CPU (%) | 50 | 60 |
| errors | 0 | 1 |
""",
        """\
3 randread/none: randread | read iops=100
3 randread/bfq: randread | read iops=90""",
    ),
    "more cells than titles, bars": (
        """\
|sched|IOPS|p99 (us)|
|none|12|5|8|
|bfq|7|9|
|kyber|8|9|
""",
        """\
3 bfq: | mixed iops=7 lat p99=9
4 kyber: | mixed iops=8 lat p99=9
2 refused: a row of a table with more or fewer cells than its 3 titles: not read""",
    ),
    "more cells than titles, commas": (
        """\
sched,IOPS,p99 (us)
none,12,5,8
bfq,7,9
kyber,8,9
""",
        """\
3 bfq: | mixed iops=7 lat p99=9
4 kyber: | mixed iops=8 lat p99=9
2 refused: a row of a table with more or fewer cells than its 3 titles: not read""",
    ),
    "more cells than titles, semicolons": (
        """\
sched;IOPS;p99 (us)
none;12;5;8
bfq;7;9
kyber;8;9
""",
        """\
3 bfq: | mixed iops=7 lat p99=9
4 kyber: | mixed iops=8 lat p99=9
2 refused: a row of a table with more or fewer cells than its 3 titles: not read""",
    ),
    "more cells than titles, tabs": (
        "sched\tIOPS\tp99 (us)\nnone\t12\t5\t8\nbfq\t7\t9\nkyber\t8\t9\n",
        """\
3 bfq: | mixed iops=7 lat p99=9
4 kyber: | mixed iops=8 lat p99=9
2 refused: a row of a table with more or fewer cells than its 3 titles: not read""",
    ),
    "two columns of one rate": (
        """\
job,read.iops,read.bw_bytes,read.bw,read.bw_min,read.bw_max,read.bw_mean,read.bw_dev
a,1000,4096000,4000,1,9,4000.5,3
b,2000,8192000,8000,2,99,8000.5,4
""",
        """\
2 a: read | read iops=1000 MB/s=4.096 !read.no-unit
3 b: read | read iops=2000 MB/s=8.192 !read.no-unit
1 refused: 4 columns not read: 'read.bw_min', 'read.bw_max', 'read.bw_mean', 'read.bw_dev'""",
    ),
    "a pair of directions": (
        "Sequential Read/Write: 536MiB/s / 512MiB/s\n",
        "1 /Sequential Read/Write: 536MiB/s / 512MiB/s: rw | read MB/s=562.036736 | write MB/s=536.870912",
    ),
    "a pair of directions below a heading": (
        """\
Results:
Sequential Write/Read: 512MiB/s / 536MiB/s
""",
        "2 /Sequential Write/Read: 512MiB/s / 536MiB/s [Results]: rw | write MB/s=536.870912 | read MB/s=562.036736",
    ),
    "a pair with its unit in the title": (
        "Random R/W (MB/s): 438 / 401\n",
        "1 /Random R/W (MB/s): 438 / 401: randrw | read MB/s=438 | write MB/s=401",
    ),
    "a pair with its unit at the end": (
        """\
Results:
Read/Write = 5 / 6 GB/s
""",
        "2 /Read/Write = 5 / 6 GB/s [Results]: | read MB/s=5000 | write MB/s=6000",
    ),
    "a pair without a unit": (
        """\
Results:
Sequential Read/Write: 536 / 512
""",
        "0 refused: no result",
    ),
    "a change told in words": (
        """\
> IOPS drops significantly
> compared to v6.19: from ~36M IOPS to ~13M IOPS (~64%
> drop).
""",
        """\
2 /before: | mixed iops=36000000
2 /after: | mixed iops=13000000""",
    ),
    "an empty cell between tabs": (
        "sched\tIOPS\tp99 (us)\nnone\t\t40\nbfq\t5\t6\n",
        """\
2 none: | mixed lat p99=40
3 bfq: | mixed iops=5 lat p99=6""",
    ),
    "megabits are no megabytes, Mbps": (
        """\
sched,IOPS,BW (Mbps)
none,1000,32.8
bfq,2000,65.5
""",
        """\
2 none: | mixed iops=1000 !read.no-unit
3 bfq: | mixed iops=2000 !read.no-unit""",
    ),
    "megabits are no megabytes, Mb/s": (
        """\
sched,IOPS,BW (Mb/s)
none,1000,32.8
bfq,2000,65.5
""",
        """\
2 none: | mixed iops=1000 !read.no-unit
3 bfq: | mixed iops=2000 !read.no-unit""",
    ),
    "megabits are no megabytes, Mbit/s": (
        """\
sched,IOPS,BW (Mbit/s)
none,1000,32.8
bfq,2000,65.5
""",
        """\
2 none: | mixed iops=1000 !read.no-unit
3 bfq: | mixed iops=2000 !read.no-unit""",
    ),
    "numbers of kernels in a sentence about IOPS": (
        "IOPS dropped after upgrading from 6.1 to 6.12.",
        "1 refused: no result, and how to mend it",
    ),
    "numbers of block sizes in a sentence about IOPS": (
        "The IOPS by block size, 4k → 8k, differ.",
        "1 refused: no result, and how to mend it",
    ),
    "numbers of another measure in a sentence about IOPS": (
        "IOPS were stable, but latency rose from 12345 to 23456.",
        "1 refused: no result, and how to mend it",
    ),
    "numbers of depths in a sentence about IOPS": (
        "IOPS fell when the depth went from 32 to 64.",
        "1 refused: no result, and how to mend it",
    ),
    "IOPS in words without a unit": (
        "IOPS went from 123,456 to 98,765 with it.\n",
        """\
1 /before: | mixed iops=123456
1 /after: | mixed iops=98765""",
    ),
    "thousands of IOPS between single spaces": (
        """\
sched kIOPS BW (MiB/s)
none 100 100
bfq 100 100
""",
        "1 refused: a table whose heading names bandwidth and IOPS",
    ),
    "columns one space apart, no titles": (
        """\
   Read IOPS 100 100   100
avg lat (ms) 100 100   100
99% lat (ms)  10 100 100.1
""",
        "1 refused: no result, and how to mend it",
    ),
    "columns one space apart, apostrophes": (
        """\
Read IOPS   100 940
 p99 (us) 2'177   2
""",
        "1 refused: no result, and how to mend it",
    ),
    "columns one space apart, rows of measures": (
        """\
   metric  none bfq
Read IOPS   100 940
 p99 (us)    12   7
""",
        """\
1 none: | read iops=100 | mixed lat p99=12
1 bfq: | read iops=940 | mixed lat p99=7""",
    ),
    "columns one space apart, rows of variants": (
        """\
sched  IOPS lat_us
 none   100 940
  bfq   12000 31
""",
        """\
2 none: | mixed iops=100 lat mean=940
3 bfq: | mixed iops=12000 lat mean=31""",
    ),
    "plain spaces before thousands that a column proves": (
        """\
sched   IOPS     lat (us)
none    70 800   12
bfq     800      13
""",
        """\
2 none: | mixed iops=70800 lat mean=12
3 bfq: | mixed iops=800 lat mean=13""",
    ),
    "thin spaces before thousands that a column proves": (
        "sched   IOPS     lat (us)\nnone    70\u202f800   12\nbfq     800      13\n",
        """\
2 none: | mixed iops=70800 lat mean=12
3 bfq: | mixed iops=800 lat mean=13""",
    ),
    "fixed spaces before thousands that a column proves": (
        "sched   IOPS     lat (us)\nnone    70\xa0800   12\nbfq     800      13\n",
        """\
2 none: | mixed iops=70800 lat mean=12
3 bfq: | mixed iops=800 lat mean=13""",
    ),
    "an unknown word beside every measure names a variant": (
        """\
bs,patched IOPS,vanilla IOPS
4k,900,800
""",
        """\
2 patched: 4096B | mixed iops=900
2 vanilla: 4096B | mixed iops=800""",
    ),
    "below the title Latency variation (us)": (
        """\
Latency variation (us)

sched  1  8  32
none  10  80  300
bfq  9  70  250
""",
        "3 refused: the table of 'Latency variation (us)': not read",
    ),
    "below the title IOPS budget": (
        """\
IOPS budget

sched  1  8  32
none  10  80  300
bfq  9  70  250
""",
        "3 refused: the table of 'IOPS budget': not read",
    ),
    "a column called thread": (
        """\
thread,IOPS,MiB/s
0,30140,117.74
""",
        "2 0: | mixed iops=30140 MB/s=123.459338",
    ),
    "a column called spread": (
        """\
spread,IOPS,MiB/s
0,30140,117.74
""",
        "2 0: | mixed iops=30140 MB/s=123.459338",
    ),
    "a column called 4kread": (
        """\
4kread,IOPS,MiB/s
0,30140,117.74
""",
        "2 0: read | read iops=30140 MB/s=123.459338",
    ),
    "a column called mmap_read": (
        """\
mmap_read,IOPS,MiB/s
0,30140,117.74
""",
        "2 0: read | read iops=30140 MB/s=123.459338",
    ),
    "LaTeX without the commands of its looks": (
        "\\begin{tabular}{lrr}\n"
        "Metric & none & bfq \\\\\n"
        "\\cmidrule(lr){2-3}\n"
        "IOPS & \\textbf{70{,}800} & \\num{43600} \\\\\n"
        "{p99 (\\si{\\micro\\second})} & \\SI{40}{\\micro\\second} & 90 \\\\\n"
        "\\bottomrule\n",
        """\
2 none: | mixed iops=70800 lat p99=40
2 bfq: | mixed iops=43600 lat p99=90""",
    ),
    "LaTeX, a cell with a footnote": (
        "sched & IOPS & p99 (us) \\\\\nnone & 43600\\footnotemark{1} & 90 \\\\\n",
        "2 none: | mixed lat p99=90 !read.cell",
    ),
    "LaTeX, a cell with a superscript": (
        "sched & IOPS & p99 (us) \\\\\nnone & 43600\\textsuperscript{2} & 90 \\\\\n",
        "2 none: | mixed lat p99=90 !read.cell",
    ),
    "LaTeX, a cell with a power": (
        "sched & IOPS & p99 (us) \\\\\nnone & 43600$^{1}$ & 90 \\\\\n",
        "2 none: | mixed lat p99=90 !read.cell",
    ),
    "LaTeX, a cell with several columns": (
        "sched & IOPS & p99 (us) \\\\\nnone & \\multicolumn{1}{c}{12} & 90 \\\\\n",
        "2 none: | mixed lat p99=90 !read.cell",
    ),
    "LaTeX, two lines of titles": (
        "\\begin{tabular}{lrr}\n"
        "Case & CPU (\\%) & Wait \\\\\n"
        "\\hline\n"
        " & & p99 (us) \\\\\n"
        "none & 12 & 40 \\\\\n"
        "bfq & 14 & 90 \\\\\n",
        """\
5 none: | mixed lat p99=40
6 bfq: | mixed lat p99=90""",
    ),
    "a box, two lines of titles": (
        """\
Latency of two schedulers, p99 in the last column
┌──────┬─────────┬──────────┐
│ case │ threads │ time     │
│      │         │ p99 (us) │
├──────┼─────────┼──────────┤
│ none │ 1       │ 40       │
└──────┴─────────┴──────────┘
""",
        "6 none: jobs1 | mixed lat p99=40",
    ),
    "lines of numbers that no reader took": (
        """\
sched,IOPS
none,70800
bfq,43600

none lat_us 12
bfq lat_us 13
kyber lat_us 14
""",
        """\
2 none: | mixed iops=70800
3 bfq: | mixed iops=43600
5 refused: 3 lines with numbers of a result not read (lines 5-7): 'none lat_us 12'""",
    ),
    "prose with numbers": (
        """\
sched,IOPS
none,70800
bfq,43600

The kernel was 6.12
the number of CPUs 8
and the latency of the disk is unknown
""",
        """\
2 none: | mixed iops=70800
3 bfq: | mixed iops=43600""",
    ),
    "a word beside some of the measures only": (
        """\
case,IOPS none,IOPS bfq,lat budget (us)
read,70800,43600,500
write,30140,20000,500
""",
        """\
2 none: read | read iops=70800
2 bfq: read | read iops=43600
3 none: write | write iops=30140
3 bfq: write | write iops=20000
1 refused: 1 column not read: 'lat budget (us)'""",
    ),
    "a variant of one measure is none of another": (
        """\
case,none IOPS,bfq IOPS,lat budget (us),lat slo (us)
read,70800,43600,500,501
""",
        "1 refused: no result, and how to mend it",
    ),
    "directions of rows of measures": (
        """\
dir,metric,none,bfq
R,IOPS,5000,4000
W,IOPS,3000,2000
Q,IOPS,11,12
""",
        """\
2 read/none: read | read iops=5000
2 read/bfq: read | read iops=4000
3 write/none: write | write iops=3000
3 write/bfq: write | write iops=2000
4 refused: dir: 'Q' is not a known direction: its row is not read""",
    ),
    "directions as numbers": (
        """\
ddir,time_ms,iops
0,1000,5000
1,1000,4000
2,1000,300
""",
        """\
2 read: read | read iops=5000
3 write: write | write iops=4000
4 trim: trim | trim iops=300""",
    ),
    "a direction that is a word": (
        """\
ddir,iops,lat_us
read,5000,10
sideways,4000,12
""",
        """\
2 read: read | read iops=5000 lat mean=10
3 refused: ddir: 'sideways' is not a known direction: its row is not read""",
    ),
    "a direction that is a number of none": (
        "ddir\tiops\tlat_us\nread\t5000\t10\n7\t4000\t12\n",
        """\
2 read: read | read iops=5000 lat mean=10
3 refused: ddir: '7' is not a known direction: its row is not read""",
    ),
    "folders in a column called dir": (
        """\
dir,iops,lat_us
/mnt/a,5000,10
/mnt/b,4000,12
""",
        """\
2 /mnt/a: | mixed iops=5000 lat mean=10
3 /mnt/b: | mixed iops=4000 lat mean=12""",
    ),
    "a policy called rr": (
        """\
policy,iops,lat_us
rr,5000,10
pid,4000,12
""",
        """\
2 rr: | mixed iops=5000 lat mean=10
3 pid: | mixed iops=4000 lat mean=12""",
    ),
    "a Read policy called rr": (
        """\
Read policy,iops,lat_us
rr,5000,10
pid,4000,12
""",
        """\
2 rr: | mixed iops=5000 lat mean=10
3 pid: | mixed iops=4000 lat mean=12""",
    ),
    "a row apart, plain spaces before thousands": (
        """\
sched         IO/s    BW (MiB/s)   lat (ms)
none          100     100          100
bfq           1 657   100          1 000

kyber         100     100          1 000
""",
        """\
2 none: | mixed iops=100 MB/s=104.8576 lat mean=100000
3 bfq: | mixed iops=1657 MB/s=104.8576 lat mean=1000000
5 refused: 1 row like those of the table above, after lines that end it: not read""",
    ),
    "a row apart, thin spaces before thousands": (
        "sched         IO/s    BW (MiB/s)   lat (ms)\n"
        "none          100     100          100\n"
        "bfq           1\u202f657   100          1\u202f000\n"
        "\n"
        "kyber         100     100          1\u202f000\n",
        """\
2 none: | mixed iops=100 MB/s=104.8576 lat mean=100000
3 bfq: | mixed iops=1657 MB/s=104.8576 lat mean=1000000
5 refused: 1 row like those of the table above, after lines that end it: not read""",
    ),
    "points or commas of either meaning, rows of variants": (
        """\
sched;IOPS
none;45.000
bfq;131.250
""",
        """\
2 none: !read.comma
3 bfq: !read.comma""",
    ),
    "points or commas of either meaning, Markdown": (
        """\
| sched | IOPS |
|--|--|
| none | 45.000 |
| bfq | 131.250 |
""",
        """\
3 none: !read.comma
4 bfq: !read.comma""",
    ),
    "points or commas of either meaning, a corner": (
        """\
IOPS;none;bfq
qd1;8.100;7.900
qd32;120.000;96.000
""",
        """\
2 qd1/none: qd1 !read.comma
2 qd1/bfq: qd1 !read.comma
3 qd32/none: qd32 !read.comma
3 qd32/bfq: qd32 !read.comma""",
    ),
    "points or commas of either meaning, a corner, commas": (
        """\
IOPS;none;bfq
qd1;8,100;7,900
qd32;120,000;96,000
""",
        """\
2 qd1/none: qd1 !read.comma
2 qd1/bfq: qd1 !read.comma
3 qd32/none: qd32 !read.comma
3 qd32/bfq: qd32 !read.comma""",
    ),
    "points or commas of either meaning, rows of measures": (
        """\
measure;none;bfq
IOPS;45.000;31.000
""",
        "2 refused: no result, and how to mend it",
    ),
    "points or commas of either meaning, times": (
        """\
sched;p99 (us)
none;1.812
bfq;2.100
""",
        """\
2 none: !read.comma
3 bfq: !read.comma""",
    ),
    "thousandths of a millisecond": (
        """\
| sched | IOPS | lat (ms) |
|--|--|--|
| none | 450 | 1.250 |
| bfq | 310 | 2.125 |
""",
        """\
3 none: | mixed iops=450 lat mean=1250
4 bfq: | mixed iops=310 lat mean=2125""",
    ),
    "numbered runs": (
        """\
run,iops
1,45000
2,31000
""",
        """\
2 1: | mixed iops=45000
3 2: | mixed iops=31000""",
    ),
    "a paragraph that is read in part": (
        """\
none:
  iops: 45000
  lat_us: 710
bfq:
  iops: 31000
  lat_us: 1030
""",
        """\
5 column 1: | mixed iops=31000 lat mean=1030
2 refused: 2 lines with numbers of a result not read (lines 2-3): 'iops: 45000'""",
    ),
    "a cell of two numbers as far apart as columns": (
        """\
Member   r/s   MB/s   reads
sda   101.0   404.0   0.52
sdb   102.0   405.0   0.53
""",
        """\
2 sda: | mixed MB/s=404
3 sdb: | mixed MB/s=405
1 refused: 2 columns not read: 'r/s', 'reads'""",
    ),
    "nothing read, bars": (
        """\
some words

| 01:00 | 5001 IOPS | 21 MB/s |
| 02:00 | 5002 IOPS | 22 MB/s |
""",
        "3 refused: no result, and how to mend it",
    ),
    "nothing read, a short heading": (
        """\
some words

none,bfq
IOPS,70800,43600
""",
        "4 refused: no result, and how to mend it",
    ),
    "nothing read, two lines of titles": (
        """\
some words

        read_iops  read_lat_us
kernel depth
6.1    1   1877  531
6.12   1   1900  520
""",
        "3 refused: no result, and how to mend it",
    ),
    "columns that nothing tells apart, names of two words": (
        """\
Some text

kernel build IOPS lat_us p99_us
6.1 rc 1 1877 531 708
6.12 1900 520 700
""",
        "3 refused: a table whose heading names IOPS and latency",
    ),
    "columns that nothing tells apart, numbers with spaces": (
        """\
Some text

sched IOPS p99_us
none 100 200 300
bfq 100 300 400
""",
        "3 refused: a table whose heading names IOPS and latency",
    ),
    "columns that nothing tells apart, rows too short": (
        """\
Some text

sched jobs IOPS BW lat_us
none 1877 7.33 531
bfq 1500 5.86 640
""",
        "3 refused: a table whose heading names bandwidth and IOPS and latency",
    ),
    "a grid, a heading of several lines": (
        """\
+--------+---------+-----------+
|        | random  | random    |
| policy | read    | read lat  |
|        | IOPS    | (us)      |
+========+=========+===========+
| pid    | 1000    | 12        |
+--------+---------+-----------+
| queue  | 2000    | 13        |
+--------+---------+-----------+
""",
        """\
6 pid: randread | read iops=1000 lat mean=12
8 queue: randread | read iops=2000 lat mean=13""",
    ),
    "a grid, rows of several lines below =": (
        """\
+-----------+---------+------+
| policy    | IOPS    | lat  |
+===========+=========+======+
| round     | 1000    | 12us |
| robin     |         |      |
+-----------+---------+------+
| mq-       | 2000    | 13us |
| deadline  |         |      |
+-----------+---------+------+
""",
        """\
4 round robin: | mixed iops=1000 lat mean=12
7 mq-deadline: | mixed iops=2000 lat mean=13""",
    ),
    "a grid, rows of several lines below -": (
        """\
+-----------+---------+------+
| policy    | IOPS    | lat  |
+-----------+---------+------+
| round     | 1000    | 12us |
| robin     |         |      |
+-----------+---------+------+
| mq-       | 2000    | 13us |
| deadline  |         |      |
+-----------+---------+------+
""",
        """\
4 round robin: | mixed iops=1000 lat mean=12
7 mq-deadline: | mixed iops=2000 lat mean=13""",
    ),
    "a grid of one row": (
        """\
+-----+------+
| job | IOPS |
+=====+======+
| my  | 10   |
| one |      |
+-----+------+
""",
        "4 my one: | mixed iops=10",
    ),
    "a grid, rows of a group": (
        """\
+------+------+
| job  | IOPS |
+------+------+
| a    | 100  |
| b    | 200  |
+------+------+
| c    | 300  |
|      | 310  |
+------+------+
""",
        """\
4 a: | mixed iops=100
5 b: | mixed iops=200
7 c: | mixed iops=300
8 c: | mixed iops=310""",
    ),
    "the titles of another table end one, bars": (
        """\
|sched|IOPS|
|none|100|
|bfq|90|
|sched|p99_us|
|none|12|
|bfq|13|
""",
        """\
2 none: | mixed iops=100
3 bfq: | mixed iops=90
5 none: | mixed lat p99=12
6 bfq: | mixed lat p99=13""",
    ),
    "the titles of another table end one, commas": (
        """\
sched,IOPS
none,100
bfq,90
sched,jobs,p99_us
none,4,12
bfq,4,13
""",
        """\
2 none: | mixed iops=100
3 bfq: | mixed iops=90
5 none: jobs4 | mixed lat p99=12
6 bfq: jobs4 | mixed lat p99=13""",
    ),
    "the titles of another table end one, tabs": (
        "sched\tIOPS\nnone\t100\nbfq\t90\nsched\tp99_us\nnone\t12\nbfq\t13\n",
        """\
2 none: | mixed iops=100
3 bfq: | mixed iops=90
5 none: | mixed lat p99=12
6 bfq: | mixed lat p99=13""",
    ),
    "the titles of another table end one, spaces": (
        """\
sched   IOPS
none   100
bfq   90
sched   jobs   p99_us
none   4   12
bfq   4   13
""",
        """\
2 none: | mixed iops=100
3 bfq: | mixed iops=90
5 none: jobs4 | mixed lat p99=12
6 bfq: jobs4 | mixed lat p99=13""",
    ),
    "units in the cells": (
        """\
| sched | IOPS | BW (MB/s) | lat (us) |
|--|--|--|--|
| none |12345 IOPS|50 MB/s|12 us|
""",
        "3 none: | mixed iops=12345 MB/s=50 lat mean=12",
    ),
    "units of thousands in the cells": (
        """\
| sched | IOPS | BW (MB/s) | lat (us) |
|--|--|--|--|
| none |12.3 kIOPS|1.5 GiB/s|1.5 ms|
""",
        "3 none: | mixed iops=12300 MB/s=1610.61274 lat mean=1500 !read.unit-conflict",
    ),
    "exponents": (
        """\
| sched | IOPS | BW (MB/s) | lat (us) |
|--|--|--|--|
| none |1.2e+05|50|12|
""",
        "3 none: | mixed iops=120000 MB/s=50 lat mean=12",
    ),
}


@pytest.mark.parametrize("what", READ)
def test_what_is_read_of_a_table_and_what_is_refused(what: str) -> None:
    text, expected = READ[what]
    assert told(text) == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("IOPS", Column(None, "rate", "iops", 0, 1.0)),
        ("Read/Write IOPS", Column(None, "rate", "iops", 0, 1.0)),
        ("Throughput [MB/s]", Column(None, "rate", "bw", 0, 1e6)),
        ("99.9% Lat (ms)", Column(None, "lat", "percentile", 99.9, 1e6)),
        ("write_clat_ns_p99", Column("write", "clat", "percentile", 99.0, 1.0)),
        ("p999 (us)", Column(None, "lat", "percentile", 99.9, 1e3)),
        ("p99,99", Column(None, "lat", "percentile", 99.99, None)),
        ("lat_99_9th_us", Column(None, "lat", "percentile", 99.9, 1e3)),
        ("p99_4k_us", Column(None, "lat", "percentile", 99, 1e3)),
        ("99th percentile latency (ms)", Column(None, "lat", "percentile", 99, 1e6)),
        ("clat avg (usec)", Column(None, "clat", "mean", 0, 1e3)),
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


@pytest.mark.parametrize("text", ["~0", "-", "very high", "", "n/a", "≈5", "1.2.3.4", "1024**2", "9" * 2000])
def test_what_is_no_number_is_none(text: str) -> None:
    assert cell(text) is None


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
    "a box of heavy lines": "┏━━━━━━┳━━━━━━┳━━━━━━━┓\n┃sched ┃ IOPS ┃ p99   ┃\n┡━━━━━━╇━━━━━━╇━━━━━━━┩\n"
    "│ none │ 12345│ 120us │\n│ bfq  │ 10200│ 240us │\n└──────┴──────┴───────┘",
    "a measure per row": "| metric | none | bfq | change |\n|--|--|--|--|\n| IOPS | 12345 | 10200 | -17% |\n"
    "| p99 (us) | 120 | 240 | +100% |",
    "scatter behind the numbers": "| sched | IOPS | p99 (us) |\n|--|--|--|\n| none | **12345** ± 20 | 120 ± 3 |\n"
    "| bfq | 10200 (±1 %) | 240 (+100%) |",
    "ranges": "| sched | IOPS (min-max) | p99 |\n|--|--|--|\n| none | 12340 - 12350 | 110-130 us |\n"
    "| bfq | 10190–10210 | 240 us |",
    "decimal commas, points before thousands": "sched;IOPS;p99 (us)\nnone;12.345,0;120,0\nbfq;10.200,0;240,0\n",
    "thousands of I/Os": "sched,kIOPS,p99 (us)\nnone,12.345,120\nbfq,10.2,240\n",
    "a variant's name in each title": "| case | none IOPS | none p99 (us) | bfq IOPS | bfq p99 (us) | Δ IOPS |\n"
    "|--|--|--|--|--|--|\n| a | 12345 | 120 | 10200 | 240 | -17% |",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_is_the_same_in_every_shape(shape: str) -> None:
    assert rows(SHAPES[shape]) == ["none: | mixed iops=12345 lat p99=120", "bfq: | mixed iops=10200 lat p99=240"]


@pytest.mark.parametrize(
    ("text", "low", "high"), [("330000 - 341000", 330_001, 340_999), ("99.5k", 99.46, 99.54), ("261", 260.6, 261.4)]
)
def test_a_number_is_known_no_better_than_it_is_written(text: str, low: float, high: float) -> None:
    found = cell(text)
    assert found is not None
    assert found[0].low < low < high < found[0].high


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
    assert [row.partition(":")[2] for row in rows(METRIC_ROWS[shape])] == [
        " | mixed iops=70800 lat mean=12 lat p99=40",
        " | mixed iops=43600 lat mean=33 lat p99=90",
    ]


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
    assert rows(PRINTED[shape]) == [
        "none: qd1 | mixed iops=1877 MB/s=7.68815923 lat mean=708",
        "bfq: qd32 | mixed iops=15000 MB/s=61.4360678 lat mean=900",
    ]


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
        "Policy",
        "notes on the platform",
        "IOPS diff",
        "IOPS per core",
        "IOPS p99",
        "bw_agg",
        "IOPS (%)",
        "IOPS, lat (us)",
        "latency at 1000 IOPS (ms)",
        "BW (MB/s) / IOPS",
        "tail latency (us)",
        "CPU time avg (us)",
        "runtime (ms) average",
        "latency_us.250",
        "$/IOPS",
        "read rate_iops (k)",
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


def test_an_effect_in_percent_is_a_row_without_numbers() -> None:
    (run,) = read_bytes(b"With 2.6.33-rc1, fio randread 64k has more than 40% regression.\n", "x").runs
    assert run.directions == ()
    assert run.labels["stated"] == "more than 40% regression"
    assert (run.workload.rw, run.workload.bs) == ("randread", 65536)


ANOTHERS = ["lat variation (us)", "network latency (us)", "fsync lat (us)", "IOPS budget", "provisioned IOPS"]


@pytest.mark.parametrize("title", ANOTHERS)
def test_a_measure_with_a_word_that_may_make_it_anothers_is_refused_by_name(title: str) -> None:
    """Beside a column of the same measure, before the names of the rows, and as a row."""
    own = ["none: | mixed iops=70000 lat mean=14", "bfq: | mixed iops=42000 lat mean=31"]
    column_ = f"{title};sched;IOPS;lat (us)\n12;none;70000;14\n9;bfq;42000;31\n"
    assert rows(column_) == [*own, f"refused: 1 column not read: {title!r}"]
    row = f"metric;none;bfq\nIOPS;70000;42000\n{title};12;9\nlat (us);14;31\n"
    assert rows(row) == [*own, f"refused: 1 row not read: {title!r}"]


BELOW_TITLE = "{title}\n\nsched  1  8  32\nnone  10  80  300\nbfq  9  70  250\n"


@pytest.mark.parametrize("title", ["IOPS by scheduler", "Figure 3: IOPS, Samsung 980", "4k random read: IOPS (k)"])
def test_a_title_may_say_more_before_and_after_its_measure(title: str) -> None:
    assert len(runs_of(BELOW_TITLE.format(title=title))) == 6


DIRECTION_TITLES = "dir direction ddir data_direction rw R/W readwrite Read/Write op operation op_type io_type".split()


@pytest.mark.parametrize("title", DIRECTION_TITLES)
@pytest.mark.parametrize("names", [("read", "write"), ("R", "W"), ("rd", "wr"), ("Reads", "Writes")])
def test_a_column_says_the_direction_of_its_rows(title: str, names: tuple[str, str]) -> None:
    runs = runs_of(f"time_ms,iops,{title}\n1000,5000,{names[0]}\n1000,4000,{names[1]}\n")
    assert [(d.kind, d.iops.value) for run in runs for d in run.directions] == [("read", 5000), ("write", 4000)]


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
    runs = runs_of(text + end if end.strip() else text + "|" + end)
    assert [run.findings for run in runs] == [(), ()]


@pytest.mark.parametrize("number", ["0.125", "12.5", "1234", "1234.567", "1,234,567"])
def test_another_number_tells_what_a_point_means(number: str) -> None:
    text = f"| sched | IOPS |\n|--|--|\n| none | 45.125 |\n| bfq | {number} |\n"
    none, bfq = runs_of(text)
    assert none.directions[0].iops.value == 45.125
    assert bfq.directions[0].iops.value == float(number.replace(",", ""))


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
    assert rows(text) == ["before: | mixed iops=45000", "after: | mixed iops=44000"]
    pivot = f"| | none | bfq | {word} |\n|--|--|--|--|\n| IOPS | 45000 | 44000 | 1000 |\n| lat (us) | 7 | 8 | 1 |\n"
    assert rows(pivot) == ["none: | mixed iops=45000 lat mean=7", "bfq: | mixed iops=44000 lat mean=8"]


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
    runs = runs_of(text)
    assert [run.jobname for run in runs] == ["none", "bfq"]
    assert [set(run.labels) - {"sched", "iops", "lat_us"} for run in runs] == [set(), set()]


@pytest.mark.parametrize("title", ["max", "min", "p99", "延迟(us)", "svctm [ms]"])
def test_a_number_of_the_result_that_is_not_read_names_no_row(title: str) -> None:
    """Two rows that differ in it are variants of one cell, not two cells."""
    runs = runs_of(f"policy,{title},IOPS\npid,5,1000\nqueue,6,2000\n")
    assert [cell_of(run) for run in runs] == [(), ()]
    assert [variant(run) for run in runs] == ["pid", "queue"]


@pytest.mark.parametrize("title", ["delay (ms)", "think time (us)", "clients", "iodepth", "revision"])
def test_a_number_that_somebody_sets_names_its_row(title: str) -> None:
    runs = runs_of(f"policy,{title},IOPS\npid,5,1000\nqueue,6,2000\n")
    assert [cell_of(run) for run in runs] == [("5",), ("6",)]


def test_numbers_without_which_rows_cannot_be_told_apart_name_them() -> None:
    """The least and greatest frequency of a governor, for example: rows of two settings are no replicates."""
    runs = runs_of("governor,min,max,IOPS\nondemand,800,3000,1000\nondemand,1600,3000,2000\n")
    assert len({cell_of(run) for run in runs}) == 2
