"""The seconds of an experiment: where each trial stood, which were flagged or loaded, and what is inside them."""

from __future__ import annotations

import pytest

from iodelta.report.formats.charts import Source, times
from iodelta.study.seconds import course, stays
from iodelta.trial import Background, Finding, Trial

NOISE = Finding("trial.noise", "warning", "trial", "disturbed")


def trial(
    number: int, rates: list[float], *, variant: str = "old", load: bool = False, flags: tuple[Finding, ...] = ()
) -> Trial:
    """A trial of as many seconds as ``rates``; each begins a minute after the one before."""
    return Trial(
        number=number,
        cell="reads",
        variant=variant,
        block=number // 2,
        position=number % 2,
        seed=1,
        started=1_700_000_000.0 + 60 * number,
        seconds=float(len(rates)),
        directions=(),
        background=Background(("dd", "if=/dev/zero"), 1.0) if load else None,
        series={"read.iops": tuple(rates)},
        findings=flags,
    )


def source(trials: list[Trial], sessions: tuple[float, ...] = ()) -> Source:
    variants = tuple(dict.fromkeys(one.variant for one in trials))
    return Source(
        baseline="old", variants=variants, cells=("reads",), margin=0.01, trials=tuple(trials), sessions=sessions
    )


def test_a_stall_inside_a_trial_is_the_foot_of_its_line() -> None:
    """Two trials of the same mean: one even, one with a second of nothing."""
    even, stalled = stays([trial(0, [100.0] * 10), trial(1, [0.0] + [100.0] * 8 + [200.0])], "read")
    assert (even.low, even.mean, even.high) == pytest.approx((0, 0, 0))
    assert (stalled.low, stalled.mean, stalled.high) == pytest.approx((-1, 0, 1))
    assert (stalled.start, stalled.end) == (60, 70)


def test_every_session_but_the_first_has_a_border_where_it_began() -> None:
    begun = (1_700_000_000.0 - 5, 1_700_000_000.0 + 150)
    (figure,) = times.runs(source([trial(at, [9.0, 9.0]) for at in range(4)], begun))
    assert [row["t"] for row in figure.extra["sessions"]] == [150]
    assert "2 sessions" in figure.alt


def test_the_course_of_trials_is_second_by_second_and_as_long_as_half_of_them() -> None:
    own = [trial(0, [10.0] * 6), trial(1, [20.0] * 6), trial(2, [30.0] * 9), trial(3, [40.0] * 9), trial(4, [50.0] * 6)]
    found = list(course(own, "read"))
    assert len(found) == 6, "the last seconds are of two trials in five"
    assert {(one.mean, one.low, one.high, one.trials) for one in found} == {(30, 10, 50, 5)}
    assert list(course([trial(0, [1.0, 2.0])], "read")) == [], "two seconds are no course"


def test_a_run_of_many_trials_is_drawn_as_few_and_loses_no_extreme() -> None:
    many = [trial(at, [100.0, 100.0], variant=("old", "new")[at % 2]) for at in range(3000)]
    many[1234] = trial(1234, [100.0, 900.0], variant="old", flags=(NOISE,))
    (figure,) = times.runs(source(many))
    assert len(figure.rows) <= times.MOST + 2
    assert len(figure.table) <= times.LINES + 2
    assert max(row["high"] for row in figure.rows) == 800
    assert len(figure.extra["flagged"]) == 1
    assert "3000 trials" in figure.note or "3,000 trials" in figure.note


@pytest.mark.parametrize("rates", [[], [0.0, 0.0], [float("nan"), 1.0]], ids=["none", "zeros", "nan"])
def test_trials_without_usable_seconds_draw_nothing(rates: list[float]) -> None:
    assert list(times.runs(source([trial(at, rates) for at in range(3)]))) == []
