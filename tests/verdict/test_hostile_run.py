"""The hostile benchmark as a program: it is interrupted, goes on, is put together from parts, and claims no more than
its experiments show."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.verdicts import hostile
from benchmarks.verdicts.lines import Line, limits
from benchmarks.verdicts.measures import Tally
from benchmarks.verdicts.records import Results
from benchmarks.verdicts.scenarios import Bound, scenarios

QUICK = "No change, short plans: 6 blocks: normal, CV 2 %"
SCENARIO = next(one for one in scenarios() if one.key == QUICK)


def order(file: Path, *, reps: int, workers: int = 1) -> hostile.Order:
    return hostile.Order(seed=1, reps=reps, minutes=60, workers=workers, file=file)


def counted(results: list[Results]) -> Tally:
    (one,) = (one for one in results if one.scenario.key == QUICK)
    tally = one.tally
    tally.seconds = 0.0
    return tally


def test_a_run_that_goes_on_counts_what_one_run_counts(tmp_path: Path) -> None:
    at_once = counted(hostile.run([SCENARIO], order(tmp_path / "once", reps=150)))
    assert at_once.count == 150
    hostile.run([SCENARIO], order(tmp_path / "parts", reps=50))
    with (tmp_path / "parts").open("ab") as file:
        file.write(b'{"scenario":"cut sho')  # the machine went down while it wrote
    assert counted(hostile.run([SCENARIO], order(tmp_path / "parts", reps=150))) == at_once


@pytest.mark.parametrize(
    ("hits", "count", "most", "held"),
    [
        (30, 1000, 0.05, "yes"),  # up to 4.1 % are not excluded
        (45, 1000, 0.05, "?"),  # the value lies inside, its limit does not
        (55, 1000, 0.05, "?"),
        (65, 1000, 0.05, "FAILS"),
        (0, 20, 0.05, "?"),
        (0, 20, 0.0, "yes"),
        (1, 20, 0.0, "FAILS"),
    ],
)
def test_a_bound_holds_where_the_limit_lies_inside(hits: int, count: int, most: float, held: str) -> None:
    line = Line("alarm", hits / count, *limits(hits, count), count, Bound("alarm", most=most))
    assert line.held == held
    at_least = Line("covered", 1 - hits / count, *limits(count - hits, count), count, Bound("covered", least=1 - most))
    if most:
        assert at_least.held == held
