"""A calibration in words: noise by source, false alarms, the smallest change that can be seen, known slow-downs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from iodelta.lab.aftermath import Aftermath
from iodelta.lab.calibration import Calibration
from iodelta.plural import plural
from iodelta.report.formats.columns import columns
from iodelta.study.words import inert, interval, metric_name

QUOTED = 2
"""Calibrations that a plan or report quotes."""

_HEAD = ("", "within", "between", "drift", "pairing", "10 min", "1 h", "night")


def lines(calibration: Calibration) -> Iterator[str]:
    """The whole account, 80 columns."""
    yield f"{inert(calibration.workload)} on {inert(calibration.disk)}, calibrated {_day(calibration.made)}"
    yield ""
    yield "within, between, drift: noise by its source (sd of one trial, %)."
    yield "10 min, 1 h, night: smallest change seen in that time (90 % power, in %)."
    rows: list[Sequence[str]] = [_HEAD]
    for one in calibration.metrics:
        noise = one.noise
        shown = [_percent(x) for x in (noise.within, noise.between)]
        drift = f"{100 * noise.drift:+.1f}"
        seen = [_percent(x) for x in (one.ten_minutes, one.hour, one.night)]
        cells = [*shown, drift, f"x{noise.pairing:.1f}", *seen]
        rows.append((metric_name(one.metric, with_kind=False), *cells))
    yield from columns(rows, "<>>>>>>>", 80)
    yield ""
    yield "pairing: how many times more blocks an analysis that ignores the pairs would need."
    yield false_alarms(calibration)
    if calibration.experiments:
        yield (
            f"Corrected for each other, as in every experiment: {calibration.raised} of {calibration.experiments} "
            "calibrations raised an alarm."
        )
    if calibration.trials:
        yield f"{_stalls(calibration)}."
    for left in calibration.aftermath:
        yield (
            f"Carry-over: {_left(left)} ({metric_name(left.metric, with_kind=False)}, {plural(left.blocks, 'block')})."
        )
    for injection in calibration.injections:
        said = f"a slow-down of {-100 * injection.change:g} % was called {injection.word}"
        yield f"Known: {said} after {plural(injection.blocks, 'block')} ({interval(injection.low, injection.high)})"


def false_alarms(calibration: Calibration) -> str:
    """What the A/A comparisons allow to say of the false-alarm rate."""
    text = (
        f"{plural(calibration.comparisons, 'comparison')} of a variant with itself, {calibration.alarms} false alarms: "
        f"the rate is below {100 * calibration.bound:.0f} % (95 % confidence)"
    )
    clean = calibration.comparisons - calibration.alarms
    return f"{text}; 59 clean ones would show less than 5 %." if clean < 59 else f"{text}."


def quoted(calibration: Calibration) -> str:
    """One sentence for the method part of a report."""
    first = calibration.metrics[0] if calibration.metrics else None
    seen = f"; in 10 min it sees {_percent(first.ten_minutes)} %" if first and first.ten_minutes else ""
    stalled = f"; {_stalls(calibration)}" if calibration.trials else ""
    left = f"; {_left(calibration.aftermath[0])}" if calibration.aftermath else ""
    return (
        f"Calibrated here on {_day(calibration.made)} ({inert(calibration.workload)}): {calibration.alarms} false "
        f"alarms in {calibration.comparisons} A/A comparisons, rate below {100 * calibration.bound:.0f} %{seen}"
        f"{stalled}{left}."
    )


def _stalls(calibration: Calibration) -> str:
    """Stalls seen, and at most how many there are (the rule of three)."""
    rate, most = (
        _two_digits(1000 * calibration.stalled / calibration.trials),
        _two_digits(1000 * calibration.stall_bound),
    )
    return (
        f"{calibration.stalled} of {plural(calibration.trials, 'trial')} stalled, {rate} in a "
        f"thousand, at most {most} (95 %)"
    )


def _left(one: Aftermath) -> str:
    """What a trial finds that follows one that writes more."""
    size = f"{_two_digits(100 * abs(one.value))} % {'worse' if one.value > 0 else 'better'}"
    seen = "" if one.low > 0 or one.high < 0 else ", not told from 0"
    return f"a trial after one that writes more is {size} ({interval(one.low, one.high)}{seen})"


def _two_digits(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _percent(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.2f}" if value < 0.01 else f"{100 * value:.1f}"


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))
