"""A search compares typical runs: which items stalled now and then is said all the same."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from iodelta.bisect.model import Answer, Ask, Line, Outcome, Rules
from iodelta.bisect.question import Listed, Question, Steps
from iodelta.bisect.search import Search
from iodelta.bisect.store import Store
from iodelta.study.ends import Ends, beyond_typical, ends_of

from .toy import bisect, shown

BENCH = """
import os, pathlib, sys
place, item = pathlib.Path(sys.argv[1]), os.environ["IODELTA_ITEM"]
count = place / f"runs-{item}"
made = int(count.read_text()) if count.exists() else 0
count.write_text(str(made + 1))
speed = (1000 if item < "d" else 900) * (1 + ((7 * made + ord(item)) % 11 - 5) / 1000)
print(speed * (0.1 if item == "c" and made == 2 else 1))
"""
"""Noise of half a percent. The third run of c, the last good item, loses 90 %."""


def test_a_good_item_that_stalled_once_is_named_with_its_runs(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(BENCH)
    items = [word for item in "abcdef" for word in ("--item", item)]
    measure = f"python3 -I -S {tmp_path}/bench.py {tmp_path}"
    how = ("--better", "higher", "--margin", "5%", "--seed", "1", "--folder", tmp_path / "out")
    done = bisect(*items, "--measure", measure, *how)
    assert done.code == 1
    assert "One culprit of 5 candidates: d" in done.out, "by typical runs c is good"
    runs = int((tmp_path / "runs-c").read_text())
    assert f"c: 1 of {runs} runs far worse than its others." in done.out
    assert "an item that stalls only now and then counts as good" in " ".join(done.out.split())
    (stalled,) = shown(tmp_path / "out")["stalled"]
    assert (stalled["item"], stalled["runs"], stalled["stalled"]) == ("c", runs, 1)


@pytest.mark.parametrize("seed", range(5))
def test_normal_noise_a_fast_run_and_a_small_slip_are_no_stalls(seed: int) -> None:
    """Log-ratios, positive = worse."""
    rng = np.random.default_rng(seed)
    store = Store()
    for run in range(60):
        more = {20: -2.0, 40: 0.04}.get(run, 0.0)
        store.add(f"item {run % 3}", Answer(more + 0.004 * float(rng.standard_normal())))
    assert store.stalled() == {}
    store.add("item 1", Answer(0.3))
    assert store.stalled() == {"item 1": 1}


# --------------------------------------------------------------------------------- bad that is bad only now and then

ITEMS, CULPRIT = 12, 7


def search(number: int, *, share: float, repeat: int = 1) -> tuple[Outcome, Ends | None]:
    """Items from the culprit on lose 90 % in this share of their runs; a visit is the mean of ``repeat`` runs."""
    rng = np.random.default_rng([77, number])
    found = Search(Line(tuple(map(str, range(ITEMS))), (1.0,) * (ITEMS - 1)), Rules(math.log(1.02), seed=number))
    course = found.run()
    try:
        ask: Ask = next(course)
        while True:
            speeds = np.exp(0.005 * rng.standard_normal(repeat))
            stalls = (int(ask.item) >= CULPRIT) & (rng.random(repeat) < share)
            speed = float(np.where(stalls, 0.1, 1.0) @ speeds) / repeat
            ask = course.send(Answer(-math.log(speed), kept=True))
    except StopIteration as end:
        outcome: Outcome = end.value
    asked = Question(Listed(()), Steps(), found.rules, "read.iops", "IOPS", "higher")
    return outcome, ends_of(found, asked)


def test_ends_that_differ_in_the_total_alone_are_not_called_the_same() -> None:
    """A tenth of the runs of bad stall. 60 rounds show it where seven stalls or so fell on bad: in about half."""
    worse = 0
    for number in range(6):
        outcome, ends = search(number, share=0.1)
        assert not outcome.culprits
        assert "do not differ in a typical run" in outcome.refused
        assert ends is not None
        assert ends.rounds >= 29
        assert ends.open, "exit code 3, not 0"
        said = beyond_typical(ends)
        assert f"{ends.bad_stalled} of {ends.rounds} runs of bad stalled" in said
        assert "--repeat " in said
        worse += ends.worse
        if ends.worse:
            assert ends.total is not None
            assert ends.total.high is not None
            assert ends.total.high < 0.0
    assert worse >= 2


def test_a_search_by_visits_of_many_runs_finds_what_stalls() -> None:
    outcomes = [search(number, share=0.1, repeat=29)[0] for number in range(4)]
    named = [[culprit.item for culprit in outcome.culprits] for outcome in outcomes]
    assert named.count([str(CULPRIT)]) >= 3
    assert all(set(one) <= {str(CULPRIT)} for one in named), "nobody else is accused"


def test_equal_ends_are_run_until_rare_stalls_are_excluded() -> None:
    for number in range(3):
        outcome, ends = search(number, share=0.0)
        assert outcome.refused
        assert ends is not None
        assert (ends.rounds, ends.worse, ends.open) == (29, False, False)
        assert "stalls in up to 10 % of the runs of bad are not excluded" in beyond_typical(ends)


SEVERAL = """
count=$(cat "$1/$IODELTA_ITEM" 2>/dev/null || echo 0)
echo $((count + 1)) >"$1/$IODELTA_ITEM"
case $IODELTA_ITEM$((count % 10)) in b3) echo 100 ;; *) echo $((1000 + count * 7 % 11)) ;; esac
"""
"""Every tenth run of b does a tenth of the work."""


def test_a_visit_is_the_mean_of_its_runs_so_that_a_stall_counts_with_the_work_it_costs(tmp_path: Path) -> None:
    (tmp_path / "bench.sh").write_text(SEVERAL)
    items = ("--item", "a", "--item", "b", "--first", "--no-revert")
    measure = ("--measure", f"sh {tmp_path}/bench.sh {tmp_path}", "--repeat", "10", "--better", "higher")
    done = bisect(*items, *measure, "--margin", "2%", "--seed", "1", "--folder", tmp_path / "out")
    assert (done.code, "One culprit of 1 candidates: b" in done.out) == (1, True), done.out
    (culprit,) = shown(tmp_path / "out")["culprits"]
    assert culprit["change"]["value"] == pytest.approx(-0.09, abs=0.005), "nine tenths of a tenth of the work"
