"""Tables whose rows are what a monitor saw, second by second: the samples of one run and not a run each.

The oracle is arithmetic on the generated columns: no sample count, separator or clock may change the mean.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from statistics import fmean

import pytest
from told import told

from iodelta.ingest import Imported, Run, read_bytes

IOPS = [1000, 3000, 2000, 500, 2500]
LATS = [100, 30, 50, 200, 40]
START = datetime(2026, 3, 1, 23, 59, 58, tzinfo=UTC)
CLOCKS = {
    "time": [str(at) for at in range(5)],
    "Time (s)": [f"{at}.0" for at in range(1, 6)],
    "elapsed_ms": [str(at * 1000) for at in range(1, 6)],
    "seconds": [f"{at}s" for at in range(5)],
    "t [min]": [str(at * 10) for at in range(5)],
    "timestamp": [str(1772323198 + at) for at in range(5)],
    "epoch_ms": [str((1772323198 + at) * 1000) for at in range(5)],
    "Timestamp": [(START + timedelta(seconds=at)).isoformat() for at in range(5)],
    "date_time": [(START + timedelta(seconds=at)).strftime("%Y-%m-%d %H:%M:%S.%f") for at in range(5)],
    "clock": [(START + timedelta(seconds=at)).strftime("%H:%M:%S") for at in range(5)],
    "Elapsed time": [f"0:{at:02}" for at in range(5)],
}


def read_table(titles: list[str], rows: list[list[str]], mark: str = ",") -> Imported:
    lines = [mark.join(titles), *(mark.join(cells) for cells in rows)]
    return read_bytes(("\n".join(lines) + "\n").encode(), "samples.csv")


def only(found: Imported) -> Run:
    assert not found.refusals
    (run,) = found.runs
    return run


@pytest.mark.parametrize("mark", [",", ";", "\t", " | "])
@pytest.mark.parametrize("title", CLOCKS)
def test_the_rows_of_a_clock_are_one_run_with_their_mean(title: str, mark: str) -> None:
    if mark == " | ":
        titles, ends = ["", title, "IOPS", "lat (us)", ""], [""]
    else:
        titles, ends = [title, "IOPS", "lat (us)"], []
    rows = [[*ends, at, str(iops), str(lat), *ends] for at, iops, lat in zip(CLOCKS[title], IOPS, LATS, strict=True)]
    run = only(read_table(titles, rows, mark))
    (direction,) = run.directions
    assert direction.iops.value == pytest.approx(fmean(IOPS))
    assert direction.lat is not None
    assert direction.lat.mean.value == pytest.approx(1000 * fmean(LATS, weights=IOPS)), "each I/O counts once"
    (finding,) = [f for f in run.findings if f.rule == "read.samples"]
    assert "5 rows" in finding.explanation


READ = {
    "a clock in a later column and two variants": (
        """\
scheduler,time,IOPS
none,0,1000
none,1,1001
none,2,1002
none,3,1003
bfq,0,1004
bfq,1,1005
bfq,2,1006
bfq,3,1007
""",
        """\
2 none: | mixed iops=1001.5 !read.samples
6 bfq: | mixed iops=1005.5 !read.samples""",
    ),
    "a column for each variant": (
        """\
time,none IOPS,bfq IOPS
0,1000,2000
1,1001,2001
2,1002,2002
3,1003,2003
""",
        """\
2 none: | mixed iops=1001.5 !read.samples
2 bfq: | mixed iops=2001.5 !read.samples""",
    ),
    "reads and writes": (
        """\
time,read IOPS,write IOPS
0,1000,0
1,1001,10
2,1002,20
3,1003,30
""",
        "2 : | read iops=1001.5 | write iops=15 !read.samples",
    ),
    "a sample without a number may be a stall: ''": (
        """\
time,IOPS,bw (MiB/s)
0,1000,5
1,1000,5
2,,5
3,1000,5
""",
        "2 : | mixed MB/s=5.24288 !read.samples",
    ),
    "a sample without a number may be a stall: '-'": (
        """\
time,IOPS,bw (MiB/s)
0,1000,5
1,1000,5
2,-,5
3,1000,5
""",
        "2 : | mixed MB/s=5.24288 !read.samples",
    ),
    "a sample without a number may be a stall: 'n/a'": (
        """\
time,IOPS,bw (MiB/s)
0,1000,5
1,1000,5
2,n/a,5
3,1000,5
""",
        "2 : | mixed MB/s=5.24288 !read.samples",
    ),
}


@pytest.mark.parametrize("what", READ)
def test_whose_samples_the_rows_are(what: str) -> None:
    text, expected = READ[what]
    assert told(text) == expected


def test_the_greatest_of_the_maxima_is_the_maximum_and_percentiles_do_not_add_up() -> None:
    rows = [[str(at), str(1000), str(at + 5), str(at + 2), str(at + 3)] for at in range(4)]
    run = only(read_table(["time", "IOPS", "max lat (us)", "min lat (us)", "p99 (us)"], rows))
    lat = run.directions[0].lat
    assert lat is not None
    assert (lat.max.value, lat.min.value, lat.percentiles) == (8000, 2000, {})
    (finding,) = [f for f in run.findings if f.rule == "read.samples"]
    assert "percentiles" in finding.explanation


@pytest.mark.parametrize(
    ("title", "cells"),
    [
        ("time", ["60", "60", "60", "60"]),
        ("time", ["60.1", "60.3", "60.2", "60.4"]),
        ("time (s)", ["60.1", "60.2", "60.3"]),
        ("date", ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]),
        ("timestamp", ["2026-03-01T10:00:00", "2026-03-01T10:07:11", "2026-03-01T13:00:00"]),
        ("runtime (s)", ["1", "2", "3", "4"]),
        ("iodepth", ["1", "2", "3", "4"]),
        ("run", ["1", "2", "3", "4"]),
    ],
)
def test_durations_nights_and_numbered_runs_stay_runs_of_their_own(title: str, cells: list[str]) -> None:
    found = read_table([title, "IOPS"], [[text, str(1000 + at)] for at, text in enumerate(cells)])
    assert [run.directions[0].iops.value for run in found.runs] == [1000 + at for at in range(len(cells))]


@pytest.mark.parametrize(
    ("title", "cells"),
    [
        ("timestamp", [f"2026-03-01T10:{at:02}:00" for at in range(0, 50, 5)]),
        ("time", ["0", "1", "2", "9", "10", "11"]),
    ],
    ids=["five minutes apart", "with a gap"],
)
def test_rows_that_may_be_samples_or_runs_are_refused_with_what_to_do(title: str, cells: list[str]) -> None:
    found = read_table([title, "IOPS"], [[text, str(1000 + at)] for at, text in enumerate(cells)])
    assert not found.runs
    (refusal,) = found.refusals
    assert title in refusal.reason
    assert "run" in refusal.reason.partition(";")[2], "it says what to do"


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("end", ["", "\n"])
def test_no_row_is_lost_in_silence_wherever_it_is_cut(mark: str, columns: int, end: str) -> None:
    titles = ["job", "IOPS", "lat (us)", "bw (MiB/s)"][:columns]
    whole = [mark.join(cells[:columns]) for cells in (titles, ["aa", "1000", "5", "4"], ["bb", "1100", "6", "5"])]
    if mark == "|":
        whole = [f"|{line}|" for line in whole]
    last = f"|cc|1200|7|{6}" if mark == "|" else mark.join(["cc", "1200", "7", "6"][:columns])
    for length in range(1, len(last)):
        found = read_bytes(("\n".join([*whole, last[:length]]) + end).encode(), "x.csv")
        if end and mark not in last[:length].removeprefix("|"):
            continue  # a word on a line of its own, which ends: a footnote
        lines = {run.place.line for run in found.runs}
        said = {refusal.place.line for refusal in found.refusals}
        said |= {int(f.place.rpartition(":")[2]) for run in found.runs for f in run.findings}
        assert 4 in lines | said, repr(last[:length])
