"""Words above, below and between the rows of a table say whose its numbers are, or that they are nobody's."""

from __future__ import annotations

import pytest
from told import told

from iodelta.ingest import Imported, read_bytes


def rates(found: Imported) -> list[tuple[str, str, float]]:
    """Name, direction and IOPS of every rate that was read."""
    return [
        (run.jobname, d.kind, d.iops.value)
        for run in found.runs
        for d in run.directions
        if d.iops.value == d.iops.value
    ]


BOTH = [("none", "read", 70800), ("none", "write", 30000)]
SECTIONS = {
    "CSV, rows of variants": "sched,IOPS,p99 (us)\nread,,\nnone,70800,40\nwrite,,\nnone,30000,50\n",
    "CSV, comments": "sched,IOPS,p99 (us)\n# Read\nnone,70800,40\n# Write\nnone,30000,50\n",
    "Markdown": "| sched | IOPS |\n|---|---|\n| **Read** | |\n| none | 70800 |\n| **Write** | |\n| none | 30000 |\n",
    "CSV, rows of measures": ",none\nRead,\nIOPS,70800\nlat (us),12\nWrite,\nIOPS,30000\nlat (us),13\n",
    "HTML": "<table><tr><th>sched</th><th>IOPS</th></tr><tr><td colspan=2>Read</td></tr><tr><td>none</td><td>70800</td>"
    "</tr><tr><td colspan='2'>Write</td></tr><tr><td>none</td><td>30000</td></tr></table>",
    "spaces": "sched     IOPS   p99 (us)\nRead\nnone     70800   40\nWrite\nnone     30000   50\n",
    "two levels, Markdown": "| sched | Read | | Write | |\n"
    "| | IOPS | lat (us) | IOPS | lat (us) |\n|---|---|---|---|---|\n"
    "| none | 70800 | 40 | 30000 | 50 |\n",
    "two levels, CSV": ",Read,,Write,\nsched,IOPS,lat (us),IOPS,lat (us)\nnone,70800,40,30000,50\n",
    "two levels, HTML": "<table><tr><th rowspan='2'>sched</th><th colspan='2'>Read</th><th colspan='2'>Write</th></tr>"
    "<tr><th>IOPS</th><th>lat (us)</th><th>IOPS</th><th>lat (us)</th></tr>"
    "<tr><td>none</td><td>70800</td><td>40</td><td>30000</td><td>50</td></tr></table>",
}


@pytest.mark.parametrize("layout", SECTIONS)
def test_a_row_that_only_names_the_rows_below_it_says_their_direction(layout: str) -> None:
    assert rates(read_bytes(SECTIONS[layout].encode(), "x")) == BOTH


READ = {
    "a variant without results is no section": (
        """\
sched,IOPS
none,70800
kyber,
bfq,43600
""",
        """\
2 none: | mixed iops=70800
3 kyber:
4 bfq: | mixed iops=43600""",
    ),
    "the average of runs": (
        """\
metric,run1,run2,avg
IOPS,70800,70900,70850
lat (us),12,12.1,12.05
""",
        """\
1 run1: | mixed iops=70800 lat mean=12
1 run2: | mixed iops=70900 lat mean=12.1
1 refused: 1 row not read: 'avg'""",
    ),
    "changes beside rows without titles": (
        """\
IOPS,70800,43600,-38.4%
lat (us),12,33,+175%
""",
        """\
1 column 1: | mixed iops=70800 lat mean=12
1 column 2: | mixed iops=43600 lat mean=33""",
    ),
    "a rate and the mean of its samples": (
        """\
job,read_iops,read_iops_mean,read_bw_kib,read_bw_mean_kib
a,70800,70700,283200,282000
""",
        """\
2 a: read | read iops=70800 MB/s=289.9968
1 refused: 2 columns not read: 'read_iops_mean', 'read_bw_mean_kib'""",
    ),
    "random and sequential rates of one list": (
        """\
name,value
seq_read_MBps,3500
seq_write_MBps,3000
rand_read_iops,500000
rand_write_iops,450000
""",
        """\
1 /seq_read_: read | read MB/s=3500
1 /seq_write_: write | write MB/s=3000
1 /rand_read_: randread | read iops=500000
1 /rand_write_: randwrite | write iops=450000""",
    ),
    "units below the titles, -;k;ms;MB/s": (
        """\
sched;IOPS;lat;bw
-;k;ms;MB/s
none;70.8;0.040;276
""",
        "3 none: | mixed iops=70800 MB/s=276 lat mean=40",
    ),
    "units below the titles, unit;k;ms;MB/s": (
        """\
sched;IOPS;lat;bw
unit;k;ms;MB/s
none;70.8;0.040;276
""",
        "3 none: | mixed iops=70800 MB/s=276 lat mean=40",
    ),
    "units below the titles, ;(k);(ms);(MB/sec)": (
        """\
sched;IOPS;lat;bw
;(k);(ms);(MB/sec)
none;70.8;0.040;276
""",
        "3 none: | mixed iops=70800 MB/s=276 lat mean=40",
    ),
    "two units that do not agree, lat (us/ms)": (
        """\
sched,lat (us/ms),IOPS
none,100,70800
""",
        "2 none: | mixed iops=70800 !read.no-unit",
    ),
    "two units that do not agree, lat (us),lat (ms)": (
        """\
sched,lat (us),lat (ms),IOPS
none,12,0.033,70800
""",
        "2 none: | mixed iops=70800 !read.cell",
    ),
    "two units that do not agree, lat ms or us": (
        """\
sched,lat ms or us,IOPS
none,100,70800
""",
        """\
2 none: | mixed iops=70800
1 refused: 1 column not read: 'lat ms or us'""",
    ),
    "how full a disk is sums nothing up": (
        """\
fill,IOPS
25%,70800
50%,60000
75%,43600
""",
        """\
2 25%: | mixed iops=70800
3 50%: | mixed iops=60000
4 75%: | mixed iops=43600""",
    ),
    "the heading of the next table ends the one above": (
        """\
IOPS,none,bfq
qd1,8100,7900
qd32,120000,96000
lat (us),none,bfq
qd1,123,126
qd32,266,333
""",
        """\
2 qd1/none: qd1 | mixed iops=8100
2 qd1/bfq: qd1 | mixed iops=7900
3 qd32/none: qd32 | mixed iops=120000
3 qd32/bfq: qd32 | mixed iops=96000
5 qd1/none: qd1 | mixed lat mean=123
5 qd1/bfq: qd1 | mixed lat mean=126
6 qd32/none: qd32 | mixed lat mean=266
6 qd32/bfq: qd32 | mixed lat mean=333""",
    ),
    "a section that names a measure": (
        """\
,none,bfq
IOPS,,
qd1,8100,7900
qd32,120000,96000
lat (us),,
qd1,123,126
qd32,266,333
""",
        """\
3 qd1/none: qd1 | mixed iops=8100
3 qd1/bfq: qd1 | mixed iops=7900
4 qd32/none: qd32 | mixed iops=120000
4 qd32/bfq: qd32 | mixed iops=96000
6 qd1/none [lat (us)]: qd1 | mixed lat mean=123
6 qd1/bfq [lat (us)]: qd1 | mixed lat mean=126
7 qd32/none [lat (us)]: qd32 | mixed lat mean=266
7 qd32/bfq [lat (us)]: qd32 | mixed lat mean=333""",
    ),
    "rows of another measure below one of IOPS": (
        """\
sched,IOPS
none,45000
bfq,31000
lat (us),
none,710
bfq,1030
""",
        "1 refused: a table of 'IOPS': not read",
    ),
    "a section of a measure that is not read": (
        """\
IOPS,none,bfq
qd1,8100,7900
CPU (%),,
qd1,45,46
qd2,55,56
qd1,7,8
""",
        """\
2 qd1/none: qd1 | mixed iops=8100
2 qd1/bfq: qd1 | mixed iops=7900""",
    ),
    "versions above the columns of the next measure": (
        """\
IOPS,6.1,6.12
qd1,8100,7900
qd32,120000,96000
lat (us),6.1,6.12
qd1,123,126
qd32,266,333
""",
        "1 refused: a table of 'IOPS': not read",
    ),
}


@pytest.mark.parametrize("what", READ)
def test_whose_the_numbers_of_a_table_are(what: str) -> None:
    text, expected = READ[what]
    assert told(text) == expected


REFUSED = {
    "two levels, spaces": "              read               write\nsched     IOPS   lat(us)     IOPS   lat(us)\n"
    "none     70800        40    30000        50\nbfq      43600        90    20000        91\n",
    "a column twice": "sched,IOPS,lat (us),IOPS,lat (us)\nnone,70800,40,30000,50\n",
    "a row twice": "metric,none,bfq\nIOPS,70800,43600\nIOPS,30000,20000\n",
    "statistics of runs": "        iops  lat_us\ncount      2       2\nmean   57200      65\nstd    19233      35\n"
    "min    43600      40\n50%    57200      65\nmax    70800      90\n",
    "only summaries": "run,IOPS\navg,57200\nmax,70800\n",
}


@pytest.mark.parametrize("why", REFUSED)
def test_numbers_that_may_be_of_either_are_refused(why: str) -> None:
    found = read_bytes(REFUSED[why].encode(), "x")
    assert not rates(found)
    assert found.refusals[0].place.line


@pytest.mark.parametrize(
    "row",
    [
        "avg",
        "Max",
        "geomean",
        "diff",
        "stddev",
        "bfq/none",
        "bfq vs none",
        "relative",
        "normalized",
        "Std. Dev.",
        "95% CI",
        "p-value",
    ],
)
def test_a_row_about_other_rows_is_no_result(row: str) -> None:
    found = read_bytes(f"sched,IOPS\nnone,70800\nbfq,43600\n{row},0.62\n".encode(), "x")
    assert rates(found) == [("none", "mixed", 70800), ("bfq", "mixed", 43600)]


@pytest.mark.parametrize("title", ["bfq (normalized)", "relative", "bfq versus none", "change", "improvement"])
def test_a_column_about_other_columns_is_no_variant(title: str) -> None:
    found = read_bytes(f"metric,none,{title}\nIOPS,70800,0.62\nlat (us),12,2.75\n".encode(), "x")
    assert rates(found) == [("none", "mixed", 70800)]


APART = {
    "CSV": "sched,IOPS,p99 (us)\nnone,70800,40\n\nbfq,43600,90\n",
    "Markdown": "| sched | IOPS |\n|---|---|\n| none | 70800 |\n\n| bfq | 43600 |\n",
    "spaces": "sched     IOPS   p99 (us)\nnone     70800   40\n\nbfq      43600   90\n",
    "a sentence between": "sched,IOPS\nnone,70800\nThe next was run on another day.\nbfq,43600\n",
}


@pytest.mark.parametrize("layout", APART)
def test_rows_that_something_sets_apart_from_their_titles_are_refused_with_their_line(layout: str) -> None:
    found = read_bytes(APART[layout].encode(), "x")
    assert rates(found) == [("none", "mixed", 70800)]
    (refusal,) = found.refusals
    assert refusal.place.line == APART[layout][: APART[layout].index("bfq")].count("\n") + 1
