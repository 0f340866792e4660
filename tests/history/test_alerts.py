"""Alerts: one for what one change may have made, named once and for all, followed to its end."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from nights import key

from iodelta.cli.history import alert_lines
from iodelta.history.alerts import CANDIDATE_RATES, CONFIRMED_RATE, grouped, history
from iodelta.history.answers import Alert, HistoryPoint
from iodelta.history.commits import Order
from iodelta.history.log import Added, Confirmed, Decided, Entry
from iodelta.history.scan import scan, scanned
from iodelta.history.store import Line
from iodelta.report.formats.mail import mail
from iodelta.report.stories.alert import of_alert

DAY = 86400.0


def line(
    name: str,
    ratios: Sequence[float],
    *,
    error: float = 0.002,
    metric: str = "read.iops",
    iops: float = 50_000.0,
    variant: str = "new",
    cell: str = "",
    days: Sequence[float] | None = None,
) -> Line:
    """A series: what the build cost against the reference in each night."""
    seed = np.random.default_rng(sum(map(ord, name + metric)))
    times = days if days is not None else range(len(ratios))
    points = []
    for number, (cost, day) in enumerate(zip(ratios, times, strict=True)):
        r = cost + error * float(seed.standard_normal())
        points.append(
            HistoryPoint(
                1.7e9 + DAY * day, f"experiment-{number}", "e", f"{number:040x}", f"v6.{number}",
                math.log(iops) - r, 0.01, r, error, (), "linux",
            )
        )  # fmt: skip
    own = msgspec.structs.replace(key(metric=metric), twin=name)
    points.sort(key=lambda point: point.t)
    return Line(own, cell or name, variant, "higher", "IOPS", tuple(points))


def stepping(at: int, size: float = 0.02, nights: int = 40) -> list[float]:
    """Worse by ``size`` from night ``at`` on."""
    return [size * (number >= at) for number in range(nights)]


def cut(lines: Sequence[Line], nights: int) -> list[Line]:
    """The same as it was after so many nights."""
    return [msgspec.structs.replace(one, points=one.points[:nights]) for one in lines]


def night_by_night(lines: Sequence[Line], first: int) -> list[Entry]:
    """The log that a scan after every night leaves."""
    log: list[Entry] = []
    for nights in range(first, len(lines[0].points) + 1):
        log += history(cut(lines, nights), log).opened
    return log


def alerts(lines: Sequence[Line], log: Sequence[Entry] = ()) -> tuple[Alert, ...]:
    """What a scan shows."""
    return history(lines, log).alerts


def number(point: HistoryPoint | None) -> int:
    """Which night it was."""
    assert point is not None
    return int(point.describe[3:])


def test_500_series_and_one_commit_are_one_alert() -> None:
    """Also those whose own range misses the commit by chance: three in a hundred do."""
    lines = [line(f"cell {n}", stepping(20, size=0.005 + 0.00005 * n, nights=30), error=0.0015) for n in range(500)]
    (alert,) = alerts(lines)
    assert len(alert.steps) > 450
    assert number(alert.last_good) < 20 <= number(alert.first_bad)
    assert [step.z for step in alert.steps] == sorted((step.z for step in alert.steps), reverse=True)


def test_a_faint_step_that_may_lie_anywhere_joins_no_clear_one() -> None:
    """It stands out with z below 4.5, and 99.999 % of its places are most of the series."""
    clear = line("clear", stepping(300, nights=400))
    (step,) = scanned([clear], Order())[0].found
    faint = msgspec.structs.replace(
        step,
        candidate=msgspec.structs.replace(step.candidate, series=1, z=3.8),
        span=Order().span(clear.points[2], clear.points[390]),
        sure=Order().span(clear.points[20], clear.points[90]),
    )
    assert [len(group) for group in grouped([step, faint])] == [1, 1]
    near = msgspec.structs.replace(faint, sure=Order().span(clear.points[280], clear.points[310]))
    assert [len(group) for group in grouped([step, near])] == [2]


def test_the_order_of_series_does_not_matter() -> None:
    lines = [line(f"cell {n}", stepping(10 + 10 * (n % 3))) for n in range(30)]
    shuffled = random.Random(1).sample(lines, len(lines))
    assert len(alerts(lines)) == 3
    names = [[(one.id, [step.series for step in one.steps]) for one in alerts(own)] for own in (lines, shuffled)]
    assert names[0] == names[1]


def test_two_steps_of_a_series_are_two_alerts() -> None:
    worse = [0.02 * (n >= 15) + 0.03 * (n >= 25) for n in range(40)]
    found = alerts([line("one", worse), line("other", worse)])
    assert [len(alert.steps) for alert in found] == [2, 2]
    assert [number(alert.first_bad) for alert in found] == [25, 15]


def test_steps_a_night_apart_are_in_one_range_or_two() -> None:
    worse = [0.03 * (n >= 20) + 0.03 * (n >= 21) for n in range(40)]
    found = alerts([line("one", worse)])
    held = set()
    for alert in found:
        held |= set(range(number(alert.last_good) + 1, number(alert.first_bad) + 1))
    assert {20, 21} <= held
    assert sum(step.size for alert in found for step in alert.steps) == pytest.approx(0.06, abs=0.012)


def test_an_alert_keeps_its_name_night_by_night_and_when_all_is_made_again() -> None:
    lines = [line(f"cell {n}", stepping(20)) for n in range(5)]
    log = night_by_night(lines, 18)
    assert len(log) == 1
    (alert,) = alerts(lines, log)
    assert alert.id == log[0].alert  # type: ignore[union-attr]
    assert len(alert.steps) == 5
    assert alerts(lines, log) == alerts(lines, log)
    assert (alert.state, alert.triage, alert.kind) == ("candidate", "new", "step")


def test_what_went_away_within_five_nights_is_an_incident() -> None:
    worse = [0.04 * (20 <= n < 23) for n in range(40)]
    lines = [line("one", worse)]
    log = night_by_night(lines, 18)
    assert len(log) >= 1
    found = alerts(lines, log)
    assert {(alert.kind, alert.state) for alert in found} == {("incident", "over")}
    for alert in found:
        assert alert.gone == ("stor3  one  new  read.iops",)
        assert any("one  new  read.iops: the step is gone" in line for line in alert_lines(alert, shown=8))
        assert "read.iops is gone; it was between" in " ".join(mail(of_alert(alert)).split())


def test_as_many_ios_more_as_fewer_are_shifted() -> None:
    """60,000 reads of which 1,200 are gone, and 30,000 writes that are 1,200 more."""
    reads = line("r", stepping(20, -math.log1p(-0.02)), cell="mixed", iops=60_000)
    writes = line("w", stepping(20, -math.log1p(0.04)), cell="mixed", iops=30_000, metric="write.iops")
    fewer = line("w", stepping(20, -math.log1p(0.01)), cell="mixed", iops=30_000, metric="write.iops")
    assert [one.kind for one in alerts([reads, writes])] == ["shifted"]
    assert [one.kind for one in alerts([reads, fewer])] == ["step"]
    assert [one.kind for one in alerts([reads])] == ["step"]


def test_a_placebo_that_steps_is_of_the_machine() -> None:
    (alert,) = alerts([line("one", stepping(20), variant="placebo")])
    assert alert.kind == "machine"
    (alert,) = alerts([line("one", stepping(20), variant="placebo"), line("two", stepping(20))])
    assert alert.kind == "step"


def test_an_alert_is_of_the_build_that_changed_however_clear_the_placebo_is() -> None:
    """Both nights of a placebo are the same build: an experiment of them confirms nothing."""
    lines = [line("one", stepping(20, 0.05), variant="placebo"), line("two", stepping(21))]
    (alert,) = alerts(lines)
    assert [one.variant for one in alert.steps] == ["new", "placebo"]
    assert alert.last_good == alert.steps[0].last_good
    assert [one.alert for one in history(lines, []).opened] == [alert.id]


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ((), "candidate"),
        (("inconclusive",), "inconclusive"),
        (("inconclusive", "regression"), "confirmed"),
        (("equivalent",), "closed"),
        (("contradicted",), "contradicted"),
    ],
)
def test_the_last_experiment_of_both_builds_says_what_an_alert_is(words: tuple[str, ...], state: str) -> None:
    lines = [line("one", stepping(20))]
    log = night_by_night(lines, 18)
    name = log[0].alert  # type: ignore[union-attr]
    log += [Confirmed(1.0 + n, name, f"/c/{n}", f"c-{n}", "sha", word) for n, word in enumerate(words)]
    (alert,) = alerts(lines, log)
    assert alert.state == state
    assert [one.word for one in alert.experiments] == list(words)
    assert alert.false_alarms.per_1000 == (CONFIRMED_RATE if state == "confirmed" else 1.4)


def test_a_decision_stays_until_it_is_taken_back() -> None:
    lines = [line("one", stepping(20))]
    log = night_by_night(lines, 18)
    name = log[0].alert  # type: ignore[union-attr]
    log.append(Decided(1.0, name, "expected", "a fix of data loss"))
    (alert,) = alerts(lines, log)
    assert (alert.triage, alert.why) == ("expected", "a fix of data loss")
    log.append(Decided(2.0, name, "new"))
    assert alerts(lines, log)[0].triage == "new"


def test_the_placebo_of_a_machine_is_counted_and_says_how_nights_resemble_each_other() -> None:
    quiet = [0.0] * 80
    few = alerts([line("one", stepping(60, nights=80)), line("p", quiet[:40], variant="placebo")])
    assert few[0].steps[0].few
    assert few[0].false_alarms.placebo_points == 40
    enough = alerts([line("one", stepping(60, nights=80)), line("p", quiet, variant="placebo")])
    assert not enough[0].steps[0].few
    assert (enough[0].false_alarms.placebo_points, enough[0].false_alarms.placebo_candidates) == (80, 0)


def test_nights_of_a_placebo_that_stick_widen_every_series() -> None:
    """A placebo whose nights come in runs of eight says that eight nights are hardly more than one."""
    sticky = [0.006 * (-1) ** (n // 8) for n in range(160)]
    calm = alerts([line("one", stepping(100, 0.006, nights=160), error=0.004)])
    warned = alerts(
        [line("one", stepping(100, 0.006, nights=160), error=0.004), line("p", sticky, variant="placebo", error=0.004)]
    )
    assert calm[0].steps[0].inflation < 2.0
    of_one = [step for alert in warned for step in alert.steps if step.cell == "one"]
    assert not of_one or of_one[0].inflation > 3.0


def test_points_without_error_gaps_and_a_clock_that_ran_backwards() -> None:
    exact = [msgspec.structs.replace(point, r_se=0.0) for point in line("one", stepping(20), error=0.0).points]
    (alert,) = alerts([msgspec.structs.replace(line("one", stepping(20)), points=tuple(exact))])
    assert (number(alert.last_good), number(alert.first_bad)) == (19, 20)
    gap = [n + 300.0 * (n >= 20) for n in range(40)]
    (alert,) = alerts([line("one", stepping(20), days=gap)])
    assert (number(alert.last_good), number(alert.first_bad)) == (19, 20)
    back = [float(n) if n != 30 else 5.5 for n in range(40)]
    (alert,) = alerts([line("one", stepping(20), days=back)])
    assert number(alert.first_bad) == 20


def test_a_log_that_names_nights_which_are_gone_is_read() -> None:
    lines = [line("one", stepping(20))]
    log: list[Entry] = [Added(1.0, "x", "s", "/x"), *night_by_night(lines, 18)]
    (alert,) = alerts([], log)
    assert (alert.state, alert.last_good, alert.range_word) == ("withdrawn", None, "its nights are gone")


def test_a_part_of_a_history_has_the_candidates_of_the_whole() -> None:
    """A placebo that is not shown says all the same how nights resemble each other."""
    sticky = [0.006 * (-1) ** (n // 8) for n in range(160)]
    lines = [line("one", stepping(100, nights=160)), line("p", sticky, variant="placebo", error=0.004)]
    of_one = [one for one in scan(lines) if one.cell == "one"]
    assert of_one
    assert scan(lines[:1], whole=lines) == of_one
    assert scan(lines[:1]) != of_one


def test_the_rates_that_alerts_quote_are_those_of_the_simulation() -> None:
    """benchmarks/history/results.md as committed: the worst kind of nights of each way to follow them."""
    text = (Path(__file__).parents[2] / "benchmarks" / "history" / "results.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.count("|") > 8]
    seen = {"ratio": "ratio to reference", "level": "level"}
    worst = {by: max(float(row[3]) for row in rows[2:] if row[1] == said) for by, said in seen.items()}
    assert {by: round(rate, 1) for by, rate in worst.items()} == CANDIDATE_RATES
    (bound,) = re.findall(r"^All: .* upper bound ([\d.]+)\.$", text, re.MULTILINE)
    assert float(bound) == CONFIRMED_RATE
