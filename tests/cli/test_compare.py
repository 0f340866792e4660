"""iodelta compare: verdicts as far as the data allow, and no further."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from fio_files import write
from foreign import iodelta, narrow, shared

START = 1_700_000_000


def session(
    folder: Path, letters: str, change: float, *, noise: float = 0.005, drift: float = 0.0, **more: Any
) -> None:
    """Runs in the order of ``letters``, B faster by ``change``, a minute apart, all drifting by ``drift`` a run."""
    rng = random.Random(5)
    for number, letter in enumerate(letters):
        iops = 50_000 * (1 + (change if letter == "B" else 0)) * (1 + drift) ** number * (1 + rng.gauss(0, noise))
        write(folder / letter / f"{number}.json", iops, ended=START + 60 * number, p99_ns=3_000_000, **more)


def compare(folder: Path, *words: str) -> tuple[int, str, dict[tuple[str, str], Any]]:
    """Exit code, text, and the comparisons by cell and metric."""
    said = iodelta("compare", "A", "B", *words, cwd=folder)
    found = json.loads(iodelta("compare", "A", "B", *words, "--format", "json", cwd=folder).stdout)
    return said.returncode, said.stdout.decode(), {(one["cell"], one["metric"]): one for one in found["compared"]}


CELL = "randread 4k iodepth 32"


@pytest.mark.parametrize(
    ("change", "word", "exit_code", "pairs", "margin"),
    [(-0.03, "regression", 1, 16, 1), (0.03, "improvement", 0, 16, 1), (0.0, "equivalent", 0, 32, 2)],
)
def test_interleaved_pairs_give_a_verdict(
    tmp_path: Path, change: float, word: str, exit_code: int, pairs: int, margin: int
) -> None:
    """``equivalent`` takes the 29 pairs that exclude stalls, and a margin above the 1.6 % of fio's bins; an improvement
    says which stalls it does not exclude."""
    session(tmp_path, "ABBA" * (pairs // 2), change, noise=0.003)
    code, text, found = compare(tmp_path, "--margin", f"{margin}%")
    one = found[CELL, "read.iops"]
    assert (one["word"], one["basis"], code) == (word, "blocks", exit_code)
    assert one["change"]["low"] < change < one["change"]["high"]
    assert f"{word}" in text
    assert f"{pairs} interleaved pairs" in " ".join(text.split())
    assert ("stalls in up to" in one["says"]) == (word != "regression")


def test_too_few_pairs_to_exclude_stalls_are_not_equivalent_and_it_says_so(tmp_path: Path) -> None:
    session(tmp_path, "ABBA" * 8, 0.0, noise=0.003)
    code, text, found = compare(tmp_path)
    assert (found[CELL, "read.iops"]["word"], code) == ("inconclusive", 3)
    assert "29 trials are needed to exclude stalls in 10 % of trials, 16 were run" in " ".join(text.split())


def test_the_same_runs_one_side_after_the_other_give_none(tmp_path: Path) -> None:
    session(tmp_path, "A" * 16 + "B" * 16, -0.03, noise=0.003)
    code, text, found = compare(tmp_path)
    one = found[CELL, "read.iops"]
    assert (one["word"], one["basis"], code) == ("no verdict", "replicates", 3)
    assert one["change"]["low"] < -0.03 < one["change"]["high"]
    assert "all runs of one variant came before all of the other" in " ".join(text.split())


def test_a_change_of_the_other_sign_than_the_medians_beside_it_says_so(tmp_path: Path) -> None:
    """Medians 98 and 101 thousand; half of all pairs of runs lose 5 %."""
    rates = {"A": (98, 98, 98, 101, 109), "B": (91, 93, 101, 102, 102)}
    for side, values in rates.items():
        for number, value in enumerate(values):
            write(tmp_path / side / f"{number}.json", 1000 * value, ended=START + number)
    _, text, found = compare(tmp_path)
    one = found[CELL, "read.iops"]
    assert one["values"] == [pytest.approx(98_000, rel=1e-3), pytest.approx(101_000, rel=1e-3)]
    assert one["change"]["value"] == pytest.approx(-0.051, abs=0.002)
    assert "median over all pairs of runs, the medians alone say +3" in " ".join(text.split())


def test_a_drift_that_could_explain_the_difference_is_said(tmp_path: Path) -> None:
    session(tmp_path, "A" * 8 + "B" * 8, 0.0, noise=0.002, drift=0.003)
    _, _, found = compare(tmp_path)
    assert "a drift over the session could explain it" in found[CELL, "read.iops"]["says"]


def test_a_drift_does_not_fool_interleaved_pairs(tmp_path: Path) -> None:
    session(tmp_path, "ABBA" * 16, 0.0, noise=0.002, drift=0.003)
    _, _, found = compare(tmp_path)
    assert found[CELL, "read.iops"]["word"] == "equivalent"


@pytest.mark.parametrize("letters", ["AB" * 20, "BA" * 20, "AB" * 19 + "BA"])
def test_an_order_that_nobody_drew_gives_an_interval_and_no_word(tmp_path: Path, letters: str) -> None:
    """A drift of 1 % a run makes the second of every pair slower: the same system, but a sure difference."""
    session(tmp_path, letters, 0.0, noise=0.002, drift=-0.01)
    code, text, found = compare(tmp_path)
    one = found[CELL, "read.iops"]
    assert (one["word"], one["basis"], code) == ("no verdict", "blocks", 3)
    assert one["change"]["low"] is not None
    assert one["verdict"]["word"] == "inconclusive"
    assert "went first in" in one["why"]
    assert "the order was not random" in " ".join(text.split())


def test_a_word_from_runs_in_varying_order_says_that_it_assumes_a_drawn_one(tmp_path: Path) -> None:
    drawn = random.Random(2)
    session(tmp_path, "".join(drawn.choice(("AB", "BA")) for _ in range(24)), -0.03, noise=0.003)
    code, text, found = compare(tmp_path)
    assert (found[CELL, "read.iops"]["word"], code) == ("regression", 1)
    assert "24 interleaved pairs, assuming that their order was random" in " ".join(text.split())


def test_three_runs_a_side_have_no_interval(tmp_path: Path) -> None:
    session(tmp_path, "AAABBB", 0.05)
    _, _, found = compare(tmp_path)
    one = found[CELL, "read.iops"]
    assert (one["word"], one["says"].split(";")[0]) == ("no verdict", "too few runs for an interval")
    assert one["change"]["low"] is None


def test_one_run_a_side_is_a_difference_with_its_resolution_and_plainly_no_verdict(tmp_path: Path) -> None:
    session(tmp_path, "AB", -0.10)
    code, text, found = compare(tmp_path)
    one = found[CELL, "read.iops"]
    assert (one["word"], one["basis"], code) == ("no verdict", "single runs", 3)
    assert one["change"]["high"] - one["change"]["low"] < 0.001, "the totals are exact to a millisecond in ten seconds"
    assert "One run per side: the noise is unknown, so no verdict." in " ".join(text.split())
    assert len(text.splitlines()) <= len(found) + 8


def test_percentiles_one_bin_apart_are_not_resolved(tmp_path: Path) -> None:
    """josefbacik/fsperf#3 shows p50 -1.44 %: exactly one bin."""
    write(tmp_path / "A" / "x.json", depth=16, p99_ns=2_277_376)
    write(tmp_path / "B" / "x.json", depth=16, p99_ns=2_244_608)
    _, text, found = compare(tmp_path)
    assert "not resolved" in found["randread 4k iodepth 16", "read.clat.p99"]["says"]
    assert "not resolved" in text
    write(tmp_path / "B" / "x.json", depth=16, p99_ns=2_211_840)
    _, _, found = compare(tmp_path)
    assert "not resolved" not in found["randread 4k iodepth 16", "read.clat.p99"]["says"]


TEXT = """fio-3.33
job: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=32

job: (groupid=0, jobs=1): err= 0: pid=7: Tue Nov 14 22:{minute:02d}:00 2023
  read: IOPS=10.0k, BW=39.1MiB/s (41.0MB/s)(391MiB/10001msec)
    clat (usec): min=900, max=9100, avg=2000.{minute:02d}, stdev=300.00
    clat percentiles (msec):
     |  1.00th=[    2], 50.00th=[    2], 99.00th=[    {p99}], 99.99th=[    9]
  issued rwts: total=100010,0,0,0 short=0,0,0,0 dropped=0,0,0,0
"""


@pytest.mark.parametrize(("slower", "resolved"), [(4, False), (5, True)])
def test_percentiles_printed_in_whole_milliseconds_are_resolved_only_where_they_cannot_meet(
    tmp_path: Path, slower: int, resolved: bool
) -> None:
    """fio rounds up: [3] and [4] may have been 3.00 and 3.02 ms."""
    for number, letter in enumerate("ABBA" * 4):
        path = tmp_path / letter / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        p99 = (3 if letter == "A" else slower) + (number == 5)
        path.write_text(TEXT.format(minute=number, p99=p99))
    code, _, found = compare(tmp_path)
    one = found[CELL, "read.clat.p99"]
    assert (one["resolved"], one["word"]) == (resolved, "regression" if resolved else "no verdict")
    assert (code == 1) == resolved


def test_what_else_differs_stands_beside_the_numbers(tmp_path: Path) -> None:
    write(tmp_path / "A" / "x.json", ended=START)
    write(
        tmp_path / "B" / "x.json", ended=START + 86_400, engine="io_uring", version="fio-3.38", options={"hipri": "1"}
    )
    said = " ".join(compare(tmp_path, "--verbose")[1].split())
    assert "ioengine: libaio | io_uring" in said
    assert "fio: 3.33 | 3.38" in said
    assert "hipri: not given | 1" in said
    assert "run at (UTC): 2023-11-14 22:13 | 2023-11-15 22:13" in said


@pytest.mark.parametrize("option", ["fsync", "fdatasync"])
def test_a_cell_is_named_with_the_syncs_that_both_sides_make(option: str, tmp_path: Path) -> None:
    session(tmp_path, "AB", -0.1, rw="randwrite", options={option: "1"})
    cells = {cell for cell, _ in compare(tmp_path)[2]}
    assert cells == {f"randwrite 4k iodepth 32 {option}=1"}


def test_syncs_of_one_side_only_are_told_of_that_side(tmp_path: Path) -> None:
    session(tmp_path, "A", 0, rw="randwrite")
    session(tmp_path, "B", -0.1, rw="randwrite", options={"fdatasync": "1"})
    _, text, found = compare(tmp_path)
    assert {cell for cell, _ in found} == {"randwrite 4k iodepth 32 against randwrite 4k iodepth 32 fdatasync=1"}
    assert "fdatasync" in text


def test_cells_of_one_side_only_are_named_and_not_compared(tmp_path: Path) -> None:
    for depth in (1, 32):
        write(tmp_path / "A" / f"qd{depth}.json", depth=depth)
    write(tmp_path / "B" / "qd32.json", depth=32)
    code, text, found = compare(tmp_path)
    assert {cell for cell, _ in found} == {CELL}
    assert "On one side only: randread 4k iodepth 1 (A)" in " ".join(text.split())
    assert code == 3


def test_one_cell_each_of_different_depth_is_compared_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path / "A" / "x.json", depth=16)
    write(tmp_path / "B" / "x.json", depth=32)
    code, text, _ = compare(tmp_path)
    assert "iodepth: 16 | 32" in text
    assert code == 3


def test_nothing_in_common_is_exit_code_4(tmp_path: Path) -> None:
    for side, depths in (("A", (1, 2)), ("B", (4, 8))):
        for depth in depths:
            write(tmp_path / side / f"{depth}.json", depth=depth)
    code, text, _ = compare(tmp_path)
    assert code == 4
    assert "no cell in common" in text


def test_a_side_that_holds_nothing_is_named(tmp_path: Path) -> None:
    write(tmp_path / "A" / "1.json")
    (tmp_path / "B").mkdir()
    said = iodelta("compare", "A", "B", cwd=tmp_path)
    assert said.returncode == 4
    assert "iodelta: B: nothing here could be read" in said.stderr.decode()
    assert "there is no file in it" in said.stderr.decode()
    write(tmp_path / "B" / "1.json", depth=1, rw="randwrite")
    other = iodelta("compare", "A", "B", cwd=tmp_path)
    assert "nothing here" not in other.stderr.decode(), "a side with another workload was read"


def test_a_run_that_failed_bears_no_verdict(tmp_path: Path) -> None:
    session(tmp_path, "ABBA" * 4, -0.05)
    write(tmp_path / "B" / "1.json", 48_000, ended=START + 60, error=5)
    code, text, found = compare(tmp_path)
    assert found[CELL, "read.iops"]["word"] == "no verdict"
    assert "numbers that are not credible" in text
    assert code == 3


def test_interleaved_pairs_that_are_too_few_are_not_called_something_else(tmp_path: Path) -> None:
    session(tmp_path, "ABBAABBA", -0.03)
    code, text, _ = compare(tmp_path)
    assert code == 3
    assert text.startswith("B against A: no verdict: 4 interleaved pairs, 6 are needed.")
    assert "not interleaved" not in text


def test_an_unknown_order_is_called_so(tmp_path: Path) -> None:
    for number in range(4):
        for side in "AB":
            write(tmp_path / side / f"{number}.json", 10_000 + number, ended=START)
    _, text, _ = compare(tmp_path)
    assert text.startswith("B against A: no verdict: the order of the runs is not known.")


def test_a_run_without_io_leaves_its_cell_without_a_verdict(tmp_path: Path) -> None:
    session(tmp_path, "ABBA" * 4, -0.05)
    failed = json.loads((tmp_path / "B" / "1.json").read_text())
    del failed["jobs"][0]["read"]
    (tmp_path / "B" / "1.json").write_text(json.dumps(failed))
    code, text, _ = compare(tmp_path)
    assert code == 3
    assert text.startswith("B against A: no verdict: no number that all runs have in 1 cell.")
    assert "1 of 16 runs without numbers, the first is B/1.json" in " ".join(text.split())


def test_variants_inside_one_folder(tmp_path: Path) -> None:
    session(tmp_path, "ABBA" * 8, -0.03, noise=0.003)
    said = iodelta("compare", ".", "--baseline", "A", cwd=tmp_path)
    assert said.returncode == 1
    assert said.stdout.decode().startswith("B against A: regression")


@pytest.mark.parametrize("runs", [1, 2])
def test_variants_that_both_sides_have_are_compared_each_with_its_own(tmp_path: Path, runs: int) -> None:
    for side, rates in (("A", {"none": 50_000, "mq": 20_000}), ("B", {"none": 55_000, "mq": 10_000})):
        for scheduler, iops in rates.items():
            for number in range(1, runs + 1):
                write(tmp_path / side / scheduler / f"{number}.json", iops + number, ended=START + number)
    _, _, found = compare(tmp_path)
    cells = {cell: one for (cell, metric), one in found.items() if metric == "read.iops"}
    assert {cell: (one["runs"], round(one["change"]["value"], 2)) for cell, one in cells.items()} == {
        f"{CELL}, none": ([runs, runs], 0.1),
        f"{CELL}, mq": ([runs, runs], -0.5),
    }


@pytest.mark.parametrize("name", ["{}", "run{}", "sample-{}/result"])
def test_runs_that_both_sides_only_number_are_replicates(tmp_path: Path, name: str) -> None:
    for side in "AB":
        for number in (1, 2, 3):
            write(tmp_path / side / f"{name.format(number)}.json", 50_000 + number, ended=START + number)
    _, _, found = compare(tmp_path)
    assert found[CELL, "read.iops"]["runs"] == [3, 3]


def test_the_side_that_is_called_old_is_the_baseline(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / "new" / f"{number}.json", 10_000 + number)
        write(tmp_path / "old" / f"{number}.json", 9_000 + number)
    assert iodelta("compare", ".", cwd=tmp_path).stdout.decode().startswith("new against old")


def test_many_numbers_are_a_family(tmp_path: Path) -> None:
    """Eight null cells of three numbers: an uncorrected 5 % rule would call one different more often than not."""
    for depth in (1, 2, 4, 8, 16, 32, 64, 128):
        rng = random.Random(depth)
        for number, letter in enumerate("ABBA" * 4):
            iops = 50_000 * (1 + rng.gauss(0, 0.01))
            write(tmp_path / letter / f"qd{depth}-{number}.json", iops, depth=depth, ended=START + 60 * number + depth)
    said = iodelta("compare", "A", "B", "--format", "json", cwd=tmp_path)
    words = {one["word"] for one in json.loads(said.stdout)["compared"]}
    assert not words & {"regression", "improvement"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["A"], b"there is only one side"),
        (["A", "nowhere"], b"nowhere"),
        (["A", "B", "--baseline", "C"], b"sides are A, B"),
        (["A", "B", "--margin", "much"], b"1% or 0.01"),
        (["A", "B", "--name-pattern", "{x}.json"], b"--name-pattern"),
    ],
)
def test_wrong_requests(tmp_path: Path, words: list[str], says: bytes) -> None:
    session(tmp_path, "AB", 0.0)
    said = iodelta("compare", *words, cwd=tmp_path)
    assert said.returncode == 2
    assert says in said.stderr


def test_hostile_names_and_options_reach_the_screen_as_plain_text(tmp_path: Path) -> None:
    for side in "AB":
        write(tmp_path / side / "x.json", name="\x1b[2Jx", options={"\x1b[31mk": f"\x07{side}\r"})
    said = iodelta("compare", "A", "B", cwd=tmp_path)
    assert said.returncode == 3
    assert not set(said.stdout) & set(b"\x1b\x07\r\x08\x7f")


def test_eight_runs_a_side_of_a_public_patch_are_no_verdict() -> None:
    """Eight runs per side of xarray against linked list: +18 %, but in two sessions, with a 7 % regime shift in one."""
    said = iodelta("compare", "chaitanya-xarray", "--baseline", "linked-list", cwd=shared("fio-corpus"))
    text = said.stdout.decode()
    assert said.returncode == 3
    assert narrow(text)
    assert "the runs are not in pairs (BBBBBAAAAAAAABBB)" in " ".join(text.split())
    assert "+18.1 %" in text


def test_the_latency_of_syncs_is_compared_and_judged_like_any_other(tmp_path: Path) -> None:
    """Writes are the same on both sides; what differs is how long a sync takes."""
    session(tmp_path, "ABBA" * 8, 0.0, noise=0.003, rw="randwrite", options={"fsync": "1"})
    rng = random.Random(9)
    for path in sorted(tmp_path.glob("[AB]/*.json")):
        document = json.loads(path.read_text())
        mean = 400_000 * (1.08 if path.parent.name == "B" else 1.0) * (1 + rng.gauss(0, 0.004))
        syncs = {"min": mean / 2, "max": mean * 9, "mean": mean, "stddev": mean / 5, "N": 400_000}
        document["jobs"][0]["sync"] = {"total_ios": 400_000, "lat_ns": syncs}
        path.write_text(json.dumps(document))
    code, text, found = compare(tmp_path)
    words = {metric: one["word"] for (_, metric), one in found.items()}
    assert (words["sync.lat.mean"], code) == ("regression", 1)
    assert words["write.iops"] != "regression"
    assert "sync mean" in text
    change = next(one for (_, metric), one in found.items() if metric == "sync.lat.mean")["change"]
    assert change["low"] < 0.08 < change["high"]


def test_a_change_of_averages_is_the_same_wherever_it_is_said(tmp_path: Path) -> None:
    """The average over windows of unknown weights lies anywhere between the least and the greatest of them."""
    for name, times in (("before", (1, 100)), ("after", (2, 118))):
        rows = [f"{1000 * (second + 1)}, {times[second % 2] * 10_000}, 0, 0, 0" for second in range(20)]
        (tmp_path / f"{name}_lat.1.log").write_text("\n".join(rows))
    logs = ["before_lat.1.log", "after_lat.1.log"]
    said = iodelta("compare", *logs, cwd=tmp_path).stdout.decode()
    page = tmp_path / "page.html"
    iodelta("compare", *logs, "-o", str(page), cwd=tmp_path)
    assert "+19 %" in said.split("Method")[0]
    assert " x1 " not in said
    matrix, _, numbers = page.read_text().partition('id="numbers"')
    assert "+19 %" in matrix
    assert "+19 %" in numbers
    assert "+18.8 %" not in matrix


def test_a_read_is_compared_with_a_read_in_whatever_order_both_stand(tmp_path: Path) -> None:
    lines = ["read : io=102120KB, bw=618740 B/s, iops=151 , runt=169006msec"]
    lines += ["write: io=102680KB, bw=622133 B/s, iops=151 , runt=169006msec"]
    (tmp_path / "A").write_text("\n\n".join(["**Unpatched**", *lines]))
    (tmp_path / "B").write_text("\n\n".join(["**Patched**", *reversed(lines)]).replace("iops=151", "iops=302"))
    _, _, found = compare(tmp_path)
    assert {metric: one["values"] for (_, metric), one in found.items() if "iops" in metric} == {
        "read.iops": [151, 302],
        "write.iops": [151, 302],
    }
