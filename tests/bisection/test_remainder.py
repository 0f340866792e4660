"""What a search says of the difference that its culprits do not account for, and how it goes on to look for it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bisect.simulate import History, play
from iodelta.bisect.model import Rules
from iodelta.bisect.remainder import remainder
from iodelta.bisect.search import Search

from .toy import READ, Toy, bisect, log, shown

MARGIN = 0.5
"""Half of a run's noise, the unit of the simulated histories."""


def places(stretch: tuple[str, str]) -> range:
    """The items of a stretch that may hold a change: all but its good end."""
    first, last = (int(item[1:]) for item in stretch)
    return range(first + 1, last + 1)


def played(truth: History, number: int, *further: float) -> Search:
    rules = Rules(margin=MARGIN, seed=number, further=further)
    return play(truth, rules, np.random.default_rng([211, number]))[1]


@pytest.mark.parametrize("number", range(8))
def test_a_second_culprit_half_as_large_is_named_or_what_is_left_holds_it(number: int) -> None:
    truth = History(1000, {230 + 40 * number: 2.0, 700: 1.0})
    search = played(truth, number)
    named = {place for place in truth.steps if any(f"c{place}" in one.suspects for one in search.culprits)}
    left = remainder(search)
    assert left is not None
    for place in set(truth.steps) - named:
        assert not left.rises or any(place in places(stretch) for stretch in left.rises)
        assert left.possible
        assert left.left.low <= truth.steps[place] <= left.left.high
    explained = sum(one.effect.size for one in search.culprits)
    assert explained + left.left.size == pytest.approx(left.whole.size, abs=1e-12)


@pytest.mark.parametrize("number", range(8))
def test_where_one_culprit_is_all_there_is_nothing_is_called_unexplained(number: int) -> None:
    left = remainder(played(History(1000, {300 + 50 * number: 2.0}), number))
    assert left is not None
    assert left.rises == ()
    assert left.left.low < 0 < left.left.high


def test_half_of_such_histories_are_said_to_hold_more_and_where() -> None:
    found = [remainder(played(History(1000, {230 + 40 * number: 2.0, 700: 1.0}), number)) for number in range(8)]
    assert sum(bool(left and left.rises) for left in found) >= 4


def test_a_later_limit_goes_on_from_the_same_runs_and_mostly_names_what_was_left() -> None:
    truth = History(1000, {250: 2.0, 650: 1.0})
    named = 0
    for number in range(4):
        short, long = played(truth, number), played(truth, number, 4.0)
        shared = len(short.store.runs)
        assert [run.item for run in long.store.runs[:shared]] == [run.item for run in short.store.runs]
        assert len(long.store.runs) <= 5 * long.culprits[0].runs
        named += {one.item for one in long.culprits} == {"c250", "c650"}
    assert named >= 3


def test_a_search_that_stopped_at_the_first_culprit_says_what_is_left_and_goes_on(repo: Toy, tmp_path: Path) -> None:
    made = repo.commits(1000, 1000, 960, 960, 960, 960, 940.8, 940.8)
    folder = tmp_path / f"a-name-that-{'no-' * 30}line-of-a-terminal-holds"
    ends = ("--repo", repo.path, "--good", made[0], "--bad", made[-1], "--folder", folder)
    done = bisect(*ends, *READ, "--first", "--no-revert")
    text = " ".join(done.out.split())
    assert "One culprit of 7" in text
    first = shown(folder)
    [culprit] = first["culprits"]
    left = first["left"]
    product = (1 + culprit["change"]["value"]) * (1 + left["change"]["value"])
    assert product == pytest.approx(1 + left["whole"]["value"], abs=1e-9) == pytest.approx(0.9408)
    [(low, high)] = left["between"]
    other = {made[2]: made[6], made[6]: made[2]}[culprit["item"]]
    span = [one[:12] for one in made]
    assert span.index(low[:12]) < made.index(other) <= span.index(high[:12])
    assert f"remains unexplained between {low} and {high}" in text
    assert f"`iodelta bisect {folder} --rest 4` looks for it" in done.out.replace("\n    looks", " looks")

    before = sum(line["type"] == "answered" for line in log(folder))
    second = bisect(folder, "--rest", "4", "--format", "json").json
    assert {one["item"] for one in second["culprits"]} == {made[2], made[6]}
    assert second["left"]["between"] == []
    assert math.isclose(second["left"]["change"]["value"], 0, abs_tol=1e-9)
    assert sum(line["type"] == "answered" for line in log(folder)) > before
    refused = bisect(folder, "--rest", "2")
    assert refused.code == 2
