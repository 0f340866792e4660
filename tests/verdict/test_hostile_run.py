"""The hostile benchmark as a program: it is interrupted, goes on, is put together from parts, and claims no more than
its experiments show."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.verdicts import hostile, records
from benchmarks.verdicts.hostile_table import markdown
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


def test_two_processes_count_what_one_counts(tmp_path: Path) -> None:
    one = counted(hostile.run([SCENARIO], order(tmp_path / "one", reps=200)))
    two = counted(hostile.run([SCENARIO], order(tmp_path / "two", reps=200, workers=2)))
    assert (two.rates, two.words, two.rivals) == (one.rates, one.words, one.rivals)
    assert sorted(two.values["median blocks"]) == sorted(one.values["median blocks"])


def test_results_of_another_engine_are_not_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results"
    hostile.run([SCENARIO], order(file, reps=100))
    monkeypatch.setattr(hostile, "engine", lambda: "another")
    monkeypatch.setattr(hostile, "commit", lambda: "feedbee")
    results = hostile.run([SCENARIO], order(file, reps=50))
    assert counted(results).count == 50
    assert len(records.read(file)) == 3
    assert f"| {SCENARIO.name} | feedbee | 50 | alarm |" in markdown(results)


def test_an_engine_is_the_same_until_it_does_something_else() -> None:
    before = '''"""A module."""\nLEVEL = 0.05\n"""A level."""\ndef judge(p):\n    "Judge."\n    return p < LEVEL\n'''
    said = before.replace("Judge.", "Say a word.").replace("A level.", "The level.") + "# the end\n"
    assert records.said_by(said) == records.said_by(before)
    assert records.said_by(before.replace("p < LEVEL", "p <= LEVEL")) != records.said_by(before)
    assert len(records.engine()) == 12


def test_a_table_is_made_of_the_results_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, table = tmp_path / "results", tmp_path / "table.md"

    def made(reps: int, *, go_on: bool) -> int:
        return hostile.main(order(file, reps=reps), names=[QUICK], groups=[], go_on=go_on, table=table)

    assert made(50, go_on=False) == 0
    first = table.read_text()
    assert made(50, go_on=False) == 2
    assert "--continue" in capsys.readouterr().err
    assert made(0, go_on=True) == 0
    assert table.read_text() == first


def test_a_line_that_is_no_result_is_named(tmp_path: Path) -> None:
    file = tmp_path / "results"
    file.write_text('{"scenario": 3}\n')
    with pytest.raises(ValueError, match="line 1: not a result"):
        records.read(file)


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
