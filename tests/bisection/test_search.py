"""Searches of simulated histories of 1000 commits: smaller versions, on fixed seeds, of the table in
``benchmarks/bisect/results.md``, which holds the figures at full size."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from benchmarks.bisect.simulate import History, found, history, play
from iodelta.bisect.model import Answer, Line, Outcome, Rules
from iodelta.bisect.search import Search

MARGIN = 0.5
"""Half of a run's noise: what matters in these histories, whose unit is that noise."""

Level = Callable[[int], float]


class Tally:
    """What became of many simulated searches."""

    def __init__(self, count: int, sizes: tuple[float, ...], seed: int, *, rest: float = 1.0, **options: float) -> None:
        self.whole = self.any = self.false = self.refused = self.shown = 0
        self.runs: list[int] = []
        self.spans: list[int] = []
        several = len(sizes) != 1
        for number in range(count):
            rng = np.random.default_rng([seed, number])
            truth = history(rng, 1000, sizes, **options)
            outcome, search = play(truth, Rules(margin=MARGIN, seed=number, several=several, rest=rest), rng)
            hits = found(truth, outcome)
            ranges = [range(int(one.first[1:]), int(one.last[1:]) + 1) for one in outcome.suspects]
            self.shown += all(hit or any(place in one for one in ranges) for place, hit in hits.items())
            self.whole += bool(hits) and all(hits.values())
            self.any += any(hits.values())
            self.refused += bool(outcome.refused)
            self.false += any(
                not any(f"c{place}" in culprit.suspects for place in truth.steps) for culprit in outcome.culprits
            )
            self.runs.append(outcome.culprits[0].runs if outcome.culprits else len(search.store.runs))
            self.spans += [len(culprit.suspects) for culprit in outcome.culprits]


def test_a_step_of_twice_the_noise_is_found_exactly_in_at_most_60_runs() -> None:
    """Gate, search and the test against the parent are all counted."""
    tally = Tally(14, (2.0,), seed=101)
    assert tally.whole >= 13
    assert set(tally.spans) == {1}
    assert np.mean(tally.runs) <= 65  # of 30 histories; the mean of 1000 is in the table
    assert tally.false == 0


def test_a_step_as_large_as_the_noise_is_found_exactly_in_at_most_200_runs() -> None:
    tally = Tally(6, (1.0,), seed=102)
    assert tally.whole >= 5
    assert np.mean(tally.runs) <= 230
    assert tally.false == 0


def test_with_15_percent_unbuildable_the_culprit_is_in_the_range_that_is_reported() -> None:
    tally = Tally(15, (2.0,), seed=103, broken=0.15)
    assert tally.whole >= 14
    assert np.mean(tally.spans) < 6
    assert tally.false == 0


def test_drift_of_015_sd_a_run_is_taken_out() -> None:
    tally = Tally(4, (1.0,), seed=104, walk=0.15)
    assert tally.whole >= 3
    assert tally.false == 0


def test_two_equal_culprits_are_both_reported() -> None:
    """By default the second one by a range at least; with more runs by its name."""
    tally = Tally(6, (2.0, 2.0), seed=105)
    assert tally.shown >= 5
    assert tally.false == 0
    tally = Tally(6, (2.0, 2.0), seed=105, rest=4.0)
    assert tally.whole >= 5
    assert tally.false == 0


@pytest.mark.parametrize("sizes", [(2.0,), (2.0, 2.0), (3.0, 1.0)])
def test_what_comes_after_the_first_culprit_takes_at_most_as_many_runs_again(sizes: tuple[float, ...]) -> None:
    for number in range(3):
        rng = np.random.default_rng([111, number])
        truth = history(rng, 1000, sizes)
        outcome, search = play(truth, Rules(margin=MARGIN, seed=number), rng)
        assert outcome.culprits
        assert len(search.store.runs) <= 2 * outcome.culprits[0].runs


@pytest.mark.parametrize("seed", range(6))
def test_a_noisy_measure_that_was_called_exact_accuses_nobody_where_there_is_nothing(seed: int) -> None:
    rng = np.random.default_rng([112, seed])
    search = Search(commits(60), Rules(exact=0.0001, seed=seed))
    outcome = answered(search, lambda place: 0.02 * float(rng.standard_normal()))
    assert outcome.scatter is not None
    assert not outcome.culprits


@pytest.mark.parametrize("exact", [0.0001, 0.0])
def test_where_only_the_ends_repeat_that_is_noticed_in_the_middle_and_the_culprit_is_found(exact: float) -> None:
    """Whether exactness was promised, or the ends alone look so."""
    rng = np.random.default_rng(113)
    search = Search(commits(40), Rules(exact=exact, several=False))
    outcome = answered(
        search, lambda place: 0.1 * (place >= 17) + 0.01 * float(rng.standard_normal()) * (0 < place < 39)
    )
    assert outcome.scatter is not None or not exact
    assert [culprit.item for culprit in outcome.culprits] == ["c17"]
    assert outcome.culprits[0].pairs > 1


@pytest.mark.parametrize("panics", [(), (16,), (17, 18), (14, 15, 16), (19, 20)])
@pytest.mark.parametrize("step", [0.015, 0.2])
def test_counts_that_repeat_are_taken_as_exact_without_a_promise_also_past_commits_that_panic(
    panics: tuple[int, ...], step: float
) -> None:
    """A guest's clock counts instructions: every run of a commit gives the same number; some commits do not boot."""
    search = Search(commits(64), Rules())
    outcome = answered(search, lambda place: step * (place >= 17), broken=frozenset(f"c{place}" for place in panics))
    (culprit,) = outcome.culprits
    assert "c17" in culprit.suspects
    assert set(culprit.skipped) <= {f"c{place}" for place in panics}
    assert search.assumed > 0
    assert len(search.store.runs) <= 3 + 3 + 2 * math.ceil(math.log2(64)) + 3 + 3, "ends, search, pairs"
    often = Counter(run.item for run in search.store.runs)
    assert {item for item, count in often.items() if count > 1} <= {"c0", "c63", culprit.item, culprit.parent}


def test_a_measure_that_is_rounded_coarsely_accuses_nobody_where_there_is_nothing() -> None:
    """A percentile of bins: each run falls into one of two, whichever commit it is of."""
    for seed in range(10):
        rng = np.random.default_rng([115, seed])
        search = Search(commits(20), Rules(seed=seed, most_runs=100))
        outcome = answered(search, lambda place, rng=rng: 0.016 * float(rng.random() < 0.5))  # type: ignore[misc]
        assert not outcome.culprits


def test_where_there_is_nothing_the_search_is_refused() -> None:
    tally = Tally(4, (), seed=106)
    assert tally.refused == 4
    assert tally.false == 0
    assert np.mean(tally.runs) <= 250


def test_a_regression_hidden_by_a_later_improvement_is_found_by_probing() -> None:
    """The ends are equal: only what is measured between them can tell."""
    for number in range(2):
        truth = History(1000, {180 + 20 * number: 3.0, 700: -3.0})
        outcome, _ = play(truth, Rules(margin=MARGIN, seed=number), np.random.default_rng([107, number]))
        assert [culprit.item for culprit in outcome.culprits] == [f"c{180 + 20 * number}"]
        assert not outcome.refused
        assert any(gap.improves for gap in outcome.gaps)


def answered(search: Search, level: Level, *, broken: frozenset[str] = frozenset(), price: float = 0.0) -> Outcome:
    """Answers without noise; every item is built once, for ``price`` seconds."""
    course = search.run()
    built: set[str] = set()
    ask = next(course)
    try:
        while True:
            place = int(ask.item.lstrip("abcdefghijklm"))
            value = None if ask.item in broken else level(place)
            build = 0.0 if ask.item in built else price
            built.add(ask.item)
            ask = course.send(Answer(value, "broken" if value is None else "", build, 1.0, kept=True))
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def commits(count: int, letter: str = "c") -> Line:
    return Line(tuple(f"{letter}{n}" for n in range(count)), (1.0,) * (count - 1))


def test_an_exactly_repeatable_measure_needs_about_one_run_per_step() -> None:
    """As many items as a plain bisection: log2(40) is 5.3."""
    search = Search(commits(40), Rules(exact=0.0001, several=False))
    outcome = answered(search, lambda place: 0.01 * (place >= 17))
    assert [culprit.item for culprit in outcome.culprits] == ["c17"]
    assert len({run.item for run in search.store.runs}) <= 10
    assert len(search.store.runs) <= 14


def test_all_commits_between_the_ends_broken_is_a_range_and_no_crash() -> None:
    search = Search(commits(8), Rules(exact=0.0001))
    outcome = answered(search, lambda place: 0.02 * (place >= 3), broken=frozenset(f"c{n}" for n in range(1, 7)))
    [culprit] = outcome.culprits
    assert culprit.suspects == tuple(f"c{n}" for n in range(1, 8))


def test_dear_builds_are_spent_less_freely_than_runs() -> None:
    """With a build worth a hundred runs, fewer items are built and more runs are made of those."""

    def noisy(price: float) -> int:
        rng = np.random.default_rng(5)
        search = Search(commits(500), Rules(margin=MARGIN, several=False))
        outcome = answered(search, lambda place: 1.5 * (place >= 211) + float(rng.standard_normal()), price=price)
        assert [culprit.item for culprit in outcome.culprits] == ["c211"]
        return len({run.item for run in search.store.runs})

    assert noisy(100.0) < noisy(0.0)


def test_a_merge_whose_branch_is_innocent_is_the_culprit_itself() -> None:
    inside = commits(12, "m")
    search = Search(commits(20), Rules(exact=0.0001), lambda item: [inside] if item == "c7" else [])
    course = search.run()
    ask = next(course)
    try:
        while True:
            ask = course.send(Answer(0.02 * (ask.item[0] == "c" and int(ask.item[1:]) >= 7)))
    except StopIteration as end:
        outcome: Outcome = end.value
    [culprit] = outcome.culprits
    assert (culprit.item, culprit.via) == ("c7", ())


def test_commits_that_touch_the_paths_named_are_found_sooner_when_one_of_them_is_guilty() -> None:
    def runs(favoured: set[int]) -> float:
        counts = []
        for number in range(12):
            rng = np.random.default_rng([110, number])
            prior = tuple(20.0 if n in favoured else 1.0 for n in range(1, 300))
            line = Line(tuple(f"c{n}" for n in range(300)), prior)
            search = Search(line, Rules(margin=MARGIN, seed=number, several=False))
            noise = iter(rng.standard_normal(5000).tolist())

            def level(place: int, noise: Iterator[float] = noise) -> float:
                return 2.0 * (place >= 150) + next(noise)

            outcome = answered(search, level)
            counts.append(outcome.culprits[0].runs if outcome.culprits else len(search.store.runs))
        return float(np.mean(counts))

    assert runs({30, 90, 150, 210, 270}) < runs(set())


def test_an_effect_below_half_the_noise_is_refused_with_what_it_would_take() -> None:
    """Noise that is symmetric in itself, so that what the ends show at the gate is the truth: 0.3 of its sd."""
    noise = itertools.cycle([1.0, 1.0, -1.0, -1.0, 1.2, 1.2, -1.2, -1.2])
    search = Search(commits(1000), Rules(margin=0.05, pairs=400))
    outcome = answered(search, lambda place: 0.33 * (place >= 400) + next(noise))
    assert "average" in outcome.refused
    assert "runs a visit" in outcome.refused
    assert not outcome.culprits
