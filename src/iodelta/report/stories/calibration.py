"""A calibration in words: noise by source, false alarms, the smallest change that can be seen, known slow-downs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from iodelta.figures import two_digits
from iodelta.lab.aftermath import Aftermath
from iodelta.lab.calibration import Calibration, MetricNoise
from iodelta.plural import plural
from iodelta.report.stories.sources import system
from iodelta.report.stories.story import PLAIN, Cell, Detail, Row, Story, Table, section
from iodelta.study.words import inert, interval, measured, metric_name

QUOTED = 2
"""Calibrations that a plan or report quotes."""

HEADS = ("within", "between", "drift", "pairing", "10 min", "1 h", "night")

READ = (
    "within, between, drift: noise by its source (sd of one trial, %).",
    "10 min, 1 h, night: smallest change seen in that time (90 % power, in %).",
    "pairing: how many times more blocks an analysis that ignores the pairs would need.",
)


class CalibrationAnswer(msgspec.Struct, frozen=True):
    """What this machine can see."""

    calibration: Calibration
    bound: float
    """95 % upper bound of the false-alarm rate."""
    unwritten: str = ""
    """Why it was not measured what trials that write leave to the next trial; empty where it was."""
    throttle: str = ""
    """Why no known slow-downs were made; empty where they were."""
    system: tuple[tuple[str, str], ...] = ()
    """What the machine was, in a few lines: name and value."""
    again: str = ""
    """The command that calibrates it again."""
    schema: str = "iodelta.calibration/1"


def of_calibrated(answer: CalibrationAnswer, detail: Detail = PLAIN) -> Story:
    """Return what this machine can see of one workload on one disk."""
    calibration = answer.calibration
    title = f"{inert(calibration.workload)} on {inert(calibration.disk)}, calibrated {_day(calibration.made)}"
    rows = tuple(map(_row, calibration.metrics))
    return Story(
        question="",
        answer=false_alarms(calibration),
        tables=(Table(title=title, first="", heads=HEADS, rows=rows, words=False),),
        sections=(
            *section("How to read it", READ),
            *section("Alarms and stalls", _alarms(calibration)),
            *section("Carry-over", _aftermath(answer)),
            *section("Known slow-downs", _injected(answer)),
            *system(answer.system),
            *section("To do it again", (inert(answer.again),), commands=True),
        ),
    )


def _row(metric: MetricNoise) -> Row:
    noise = metric.noise
    sources = (
        _percent(noise.within),
        _percent(noise.between),
        f"{100 * noise.drift:+.1f}",
        f"x{noise.pairing:.1f}",
    )
    seen = map(_percent, (metric.ten_minutes, metric.hour, metric.night))
    return Row(
        metric_name(metric.metric, with_kind=False), tuple(map(Cell, (*sources, *seen)))
    )


def _alarms(calibration: Calibration) -> Iterator[str]:
    if calibration.experiments:
        yield (
            f"Corrected for each other, as in every experiment: {calibration.raised} of "
            f"{plural(calibration.experiments, 'calibration')} raised an alarm."
        )
    if calibration.trials:
        yield f"{_stalls(calibration)}."


def _aftermath(answer: CalibrationAnswer) -> Iterator[str]:
    for left in answer.calibration.aftermath:
        yield f"{_left(left)} ({metric_name(left.metric, with_kind=False)}, {plural(left.blocks, 'block')})."
    if not answer.calibration.aftermath:
        yield f"Not measured: {inert(answer.unwritten) or 'too few blocks for an estimate'}."


def _injected(answer: CalibrationAnswer) -> Iterator[str]:
    for injection in answer.calibration.injections:
        text = (
            f"A slow-down of {-100 * injection.change:g} % was called {injection.word}"
        )
        yield f"{text} after {plural(injection.blocks, 'block')} ({interval(injection.low, injection.high)})."
    if answer.throttle:
        yield f"None: {inert(answer.throttle)}."


def false_alarms(calibration: Calibration) -> str:
    """Return what the A/A comparisons allow to say of the false-alarm rate."""
    text = (
        f"{plural(calibration.comparisons, 'comparison')} of a variant with itself, "
        f"{plural(calibration.alarms, 'false alarm')}: "
        f"the rate is below {100 * calibration.bound:.0f} % (95 % confidence)"
    )
    clean = calibration.comparisons - calibration.alarms
    if clean < 59:
        return f"{text}; 59 clean ones would show less than 5 %."
    return f"{text}."


def quoted(calibration: Calibration) -> str:
    """Return one sentence for the method part of a report."""
    first = calibration.metrics[0] if calibration.metrics else None
    seen = ""
    if first and first.ten_minutes:
        seen = f"; in 10 min it sees {_percent(first.ten_minutes)} %"
    stalled = f"; {_stalls(calibration)}" if calibration.trials else ""
    left = f"; {_left(calibration.aftermath[0])}" if calibration.aftermath else ""
    return (
        f"Calibrated here on {_day(calibration.made)} ({inert(calibration.workload)}): "
        f"{plural(calibration.alarms, 'false alarm')} in {plural(calibration.comparisons, 'A/A comparison')}, rate below {100 * calibration.bound:.0f} %{seen}"
        f"{stalled}{left}."
    )


def _stalls(calibration: Calibration) -> str:
    """Stalls seen, and at most how many there are (the rule of three)."""
    rate = two_digits(1000 * calibration.stalled / calibration.trials)
    most = two_digits(1000 * calibration.stall_bound)
    return (
        f"{calibration.stalled} of {plural(calibration.trials, 'trial')} stalled, {rate} in a "
        f"thousand, at most {most} (95 %)"
    )


def _left(aftermath: Aftermath) -> str:
    """Return the change of the metric in a trial that follows one that writes more."""
    value, low, high = aftermath.value, aftermath.low, aftermath.high
    if aftermath.metric.better == "higher":
        value, low, high = (1 / (1 + cost) - 1 for cost in (value, high, low))
    seen = ", not distinguishable from 0" if low <= 0 <= high else ""
    size = f"{measured(value, low, high)} ({interval(low, high)})"
    way = "worse" if aftermath.value > 0 else "better"
    return f"a trial after one that writes more is {way}: {size}{seen}"


def _percent(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.2f}" if value < 0.01 else f"{100 * value:.1f}"


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))
