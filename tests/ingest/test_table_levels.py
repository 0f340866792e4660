"""Words above, below and between the rows of a table say whose its numbers are, or that they are nobody's."""

from __future__ import annotations

import pytest

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
}


@pytest.mark.parametrize("layout", SECTIONS)
def test_a_row_that_only_names_the_rows_below_it_says_their_direction(layout: str) -> None:
    assert rates(read_bytes(SECTIONS[layout].encode(), "x")) == BOTH


def test_a_variant_without_results_is_no_section() -> None:
    found = read_bytes(b"sched,IOPS\nnone,70800\nkyber,\nbfq,43600\n", "x")
    assert rates(found) == [("none", "mixed", 70800), ("bfq", "mixed", 43600)]
    assert not any("section" in run.labels for run in found.runs)


TWO_LEVELS = {
    "Markdown": "| sched | Read | | Write | |\n| | IOPS | lat (us) | IOPS | lat (us) |\n|---|---|---|---|---|\n"
    "| none | 70800 | 40 | 30000 | 50 |\n",
    "CSV": ",Read,,Write,\nsched,IOPS,lat (us),IOPS,lat (us)\nnone,70800,40,30000,50\n",
    "HTML": "<table><tr><th rowspan='2'>sched</th><th colspan='2'>Read</th><th colspan='2'>Write</th></tr>"
    "<tr><th>IOPS</th><th>lat (us)</th><th>IOPS</th><th>lat (us)</th></tr>"
    "<tr><td>none</td><td>70800</td><td>40</td><td>30000</td><td>50</td></tr></table>",
}


@pytest.mark.parametrize("layout", TWO_LEVELS)
def test_titles_of_two_levels_say_the_direction_together(layout: str) -> None:
    assert rates(read_bytes(TWO_LEVELS[layout].encode(), "x")) == BOTH


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
    ["avg", "Max", "geomean", "bfq/none", "bfq vs none", "relative", "normalized", "Std. Dev.", "95% CI", "p-value"],
)
def test_a_row_about_other_rows_is_no_result(row: str) -> None:
    found = read_bytes(f"sched,IOPS\nnone,70800\nbfq,43600\n{row},0.62\n".encode(), "x")
    assert rates(found) == [("none", "mixed", 70800), ("bfq", "mixed", 43600)]


@pytest.mark.parametrize("title", ["bfq (normalized)", "relative", "bfq versus none", "change", "improvement"])
def test_a_column_about_other_columns_is_no_variant(title: str) -> None:
    found = read_bytes(f"metric,none,{title}\nIOPS,70800,0.62\nlat (us),12,2.75\n".encode(), "x")
    assert rates(found) == [("none", "mixed", 70800)]


def test_the_average_of_runs_is_said_and_not_read_beside_them() -> None:
    found = read_bytes(b"metric,run1,run2,avg\nIOPS,70800,70900,70850\nlat (us),12,12.1,12.05\n", "x")
    assert rates(found) == [("run1", "mixed", 70800), ("run2", "mixed", 70900)]
    assert "'avg'" in str(found.refusals[0])


def test_rows_without_titles_keep_their_rates_beside_a_column_of_changes() -> None:
    found = read_bytes(b"IOPS,70800,43600,-38.4%\nlat (us),12,33,+175%\n", "x")
    assert [iops for _, _, iops in rates(found)] == [70800, 43600]


def test_the_rate_of_a_run_is_not_the_mean_of_its_samples() -> None:
    found = read_bytes(b"job,read_iops,read_iops_mean,read_bw_kib,read_bw_mean_kib\na,70800,70700,283200,282000\n", "x")
    assert rates(found) == [("a", "read", 70800)]
    assert "read_iops_mean" in str(found.refusals[0])


def test_random_and_sequential_rates_of_one_list_are_runs_of_their_own() -> None:
    text = b"name,value\nseq_read_MBps,3500\nseq_write_MBps,3000\nrand_read_iops,500000\nrand_write_iops,450000\n"
    found = read_bytes(text, "x")
    assert [run.workload.rw for run in found.runs] == ["read", "write", "randread", "randwrite"]
    assert rates(found) == [("", "read", 500000), ("", "write", 450000)]


@pytest.mark.parametrize("units", ["-;k;ms;MB/s", "unit;k;ms;MB/s", ";(k);(ms);(MB/sec)"])
def test_units_may_stand_in_the_line_below_the_titles(units: str) -> None:
    (run,) = read_bytes(f"sched;IOPS;lat;bw\n{units}\nnone;70.8;0.040;276\n".encode(), "x").runs
    (direction,) = run.directions
    assert direction.lat is not None
    found = (direction.iops.value, direction.lat.mean.value, direction.bandwidth.value)
    assert found == pytest.approx((70800, 40e3, 276e6))


@pytest.mark.parametrize(
    ("title", "cell"), [("lat (us/ms)", "100"), ("lat (us),lat (ms)", "12,0.033"), ("lat ms or us", "100")]
)
def test_a_time_of_two_units_that_do_not_agree_is_not_read(title: str, cell: str) -> None:
    found = read_bytes(f"sched,{title},IOPS\nnone,{cell},70800\n".encode(), "x")
    assert not any(d.lat and d.lat.mean.value > 0 for run in found.runs for d in run.directions)
    assert found.refusals or any(run.findings for run in found.runs)


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


def test_how_full_a_disk_is_sums_nothing_up() -> None:
    assert len(rates(read_bytes(b"fill,IOPS\n25%,70800\n50%,60000\n75%,43600\n", "x"))) == 3


def test_the_heading_of_the_next_table_ends_the_one_above() -> None:
    text = "IOPS,none,bfq\nqd1,8100,7900\nqd32,120000,96000\nlat (us),none,bfq\nqd1,123,126\nqd32,266,333\n"
    runs = read_bytes(text.encode(), "x").runs
    assert [run.directions[0].iops.value for run in runs[:4]] == [8100, 7900, 120_000, 96_000]
    means = [lat.mean.value for run in runs[4:] if (lat := run.directions[0].lat) is not None]
    assert means == [123e3, 126e3, 266e3, 333e3]


def test_a_section_that_names_a_measure_is_what_its_numbers_are() -> None:
    text = ",none,bfq\nIOPS,,\nqd1,8100,7900\nqd32,120000,96000\nlat (us),,\nqd1,123,126\nqd32,266,333\n"
    runs = read_bytes(text.encode(), "x").runs
    means = [lat.mean.value for run in runs if (lat := run.directions[0].lat) is not None]
    assert means == [123e3, 126e3, 266e3, 333e3]
    rates = [run.directions[0].iops.value for run in runs if run.directions[0].lat is None]
    assert rates == [8100, 7900, 120_000, 96_000]


def test_rows_of_another_measure_below_one_of_iops_are_refused() -> None:
    found = read_bytes(b"sched,IOPS\nnone,45000\nbfq,31000\nlat (us),\nnone,710\nbfq,1030\n", "x")
    assert not found.runs
    assert "'lat (us)'" in found.refusals[0].reason


def test_a_section_of_a_measure_that_is_not_read_gives_no_numbers() -> None:
    found = read_bytes(b"IOPS,none,bfq\nqd1,8100,7900\nCPU (%),,\nqd1,45,46\nqd2,55,56\nqd1,7,8\n", "x")
    rates = [d.iops.value for run in found.runs for d in run.directions]
    assert not {45, 46, 55, 56} & set(rates)


def test_versions_above_the_columns_of_the_next_measure_are_no_numbers_of_the_first() -> None:
    text = "IOPS,6.1,6.12\nqd1,8100,7900\nqd32,120000,96000\nlat (us),6.1,6.12\nqd1,123,126\nqd32,266,333\n"
    found = read_bytes(text.encode(), "x")
    assert not {123, 126, 266, 333} & {value for _, _, value in rates(found)}
    assert found.refusals
