"""Doubts: findings about one comparison that a reader must see together with its word."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from iodelta.plural import plural
from iodelta.stats.effect import Estimate, disagree
from iodelta.stats.guards import order_effect, order_trend, suspicion
from iodelta.trial import Finding
from iodelta.verdict import explain
from iodelta.verdict.decide import Trace
from iodelta.verdict.model import relative
from iodelta.verdict.numbers import Numbers, flags_of
from iodelta.verdict.units import Units

Floats = NDArray[np.float64]

SUSPECT = 0.001
"""Level at which an effect of the order becomes a finding."""

UNEVEN = 0.05
"""Level at which flags that fall on one arm become a finding."""

APART = 0.1
"""Variants whose mean places in run order lie further apart than this share of the run were not interleaved."""


def doubts_of(
    unit: Units, trace: Trace, at: int, numbers: Numbers, used: int, *, judged: bool
) -> tuple[list[Finding], bool]:
    """Return all doubts, and whether one of them forbids a word."""
    first = np.array(unit.baseline_first[:used], dtype=bool)
    findings = _order_fixed(unit, used, first) or _place(unit, used, first)
    findings += _one_block(unit, used)
    findings += _carry(unit, trace, at, numbers)
    findings += _not_reached(unit, numbers)
    findings += [
        Finding(
            "verdict.uneven-flags",
            "warning",
            unit.place,
            f"{flags.rule}: {flags.variant} {unit.variant} runs, {flags.baseline} {unit.baseline} runs of "
            f"{flags.trials} each; a cost of that variant, or chance (p = {flags.p:.2g})",
            "treat it as part of the change; look at what the flagged trials have in common",
        )
        for flags in flags_of(unit, used)
        if flags.p < UNEVEN
    ]
    findings += _apart(unit, numbers)
    trend = _not_interleaved(unit, used, numbers.typical) if judged else None
    return ([*findings, trend], True) if trend is not None else (findings, False)


def _order_fixed(unit: Units, used: int, first: NDArray[np.bool_]) -> list[Finding]:
    if used < 6 or first.any() != first.all():
        return []
    leader = unit.baseline if first.all() else unit.variant
    return [
        Finding(
            "verdict.order-fixed",
            "warning",
            unit.place,
            f"{leader} ran first in all {plural(used, 'block')}: what running first does counts as part of the change "
            f"(of orders drawn block by block, one in {2 ** (used - 1)} is like this)",
            "run more blocks, each in an independently drawn order",
        )
    ]


def _place(unit: Units, used: int, first: NDArray[np.bool_]) -> list[Finding]:
    """Return an effect of running second; the full test runs only where a quick one suspects something."""
    if (
        used < 8
        or min(np.count_nonzero(first), np.count_nonzero(~first)) < 3
        or suspicion(unit.d[:used], first) < 2.5
    ):
        return []
    order = order_effect(unit.d[:used], first)
    if order.period is None or order.period_p is None or order.period_p >= SUSPECT:
        return []
    size = explain.percent(math.expm1(order.period))
    return [
        Finding(
            "verdict.period",
            "warning",
            unit.place,
            f"the run in second place differs from the one in first place, by {size} (p {order.period_p:.2g}); "
            "random order keeps it out of the change, but more blocks are needed",
            "reset the device's state before every run, or pause between runs",
        )
    ]


def _carry(unit: Units, trace: Trace, at: int, numbers: Numbers) -> list[Finding]:
    """Carry-over that is shown, or that withheld a word; that onto one arm's trials alone only where no other is
    shown."""
    carry, first = numbers.carry, unit.variant
    if carry is None:
        return []
    if not carry.shown.any():
        arms = zip(numbers.onto, (unit.baseline, unit.variant), strict=True)
        for one, arm in arms:
            if one is not None and one.shown.any():
                carry, first = one, arm
                break
        else:
            if at not in trace.withheld:
                return []
    value = relative(float(carry.value[carry.best]))
    low, high = sorted((relative(carry.low), relative(carry.high)))
    return [
        Finding(
            "verdict.carry-over",
            "warning",
            unit.place,
            f"{first} runs {'slower' if value > 0 else 'faster'} right after {unit.variant} "
            f"({explain.percent(-high)} .. {explain.percent(-low)}): runs affect each other",
            "use --superblocks: each variant then runs twice in a row, and the second run counts",
        )
    ]


def _not_reached(unit: Units, numbers: Numbers) -> list[Finding]:
    """In superblocks: a counted trial that still differs from the one of its variant before it."""
    if numbers.deployed is None or not numbers.not_reached:
        return []
    sign = -1.0 if unit.higher_is_better else 1.0
    low, high = sorted(
        relative(sign * end) for end in (numbers.deployed.low, numbers.deployed.high)
    )
    return [
        Finding(
            "verdict.state-not-reached",
            "warning",
            unit.place,
            f"the counted trial of {unit.variant} still differs from the uncounted ones before it: "
            f"with {unit.variant} in steady use the change may be {explain.percent(low)} to {explain.percent(high)}",
            f"{explain.more_conditioning(unit.conditioning)} puts more uncounted trials before each counted one",
        )
    ]


def _not_interleaved(unit: Units, used: int, typical: Estimate) -> Finding | None:
    """Where the variants were not interleaved, a drift that could make up half of the change forbids a verdict."""
    old_at, new_at = unit.baseline_at[:used], unit.variant_at[:used]
    values = np.concatenate([unit.baseline_values[:used], unit.variant_values[:used]])
    if (
        len(unit.baseline_values) < used
        or not (np.isfinite(values) & (values > 0)).all()
    ):
        return None
    # Whether each block ended before the next began, so that the variants took turns. Always true of one block.
    first, last = np.minimum(old_at, new_at), np.maximum(old_at, new_at)
    if bool((last[:-1] < first[1:]).all()):
        return None
    span = max(old_at.max(), new_at.max()) - min(old_at.min(), new_at.min())
    if abs(float(new_at.mean() - old_at.mean())) <= APART * span:
        return None
    trend = order_trend(
        values, np.concatenate([old_at, new_at]), np.repeat([False, True], used)
    )
    if trend is not None and not trend.could_explain(typical.value):
        return None
    size = (
        ""
        if trend is None
        else f" of up to {explain.percent(math.expm1(abs(trend.explained) + trend.spread))}"
    )
    return Finding(
        "verdict.order-trend",
        "hard",
        unit.place,
        f"the variants did not run interleaved, and a drift over time{size} cannot be separated from the change",
        "run both variants in each block, in random order",
    )


def _one_block(unit: Units, used: int) -> list[Finding]:
    if used != 1 or unit.unit != "blocks":
        return []
    return [
        Finding(
            "verdict.one-block",
            "warning",
            unit.place,
            "one block cannot show whether the variants differ or the machine changed between trials",
            "run more blocks; the plan says how many a verdict needs",
        )
    ]


def _apart(unit: Units, numbers: Numbers) -> list[Finding]:
    """Return a typical trial and all trials together say different things."""
    if numbers.total is None or not disagree(numbers.typical, numbers.total):
        return []
    sign = -1.0 if unit.higher_is_better else 1.0
    typical, total = (
        math.expm1(sign * estimate.value)
        for estimate in (numbers.typical, numbers.total)
    )
    return [
        Finding(
            "verdict.estimands-disagree",
            "warning",
            unit.place,
            f"a typical trial changed by {explain.percent(typical)}, all work together by {explain.percent(total)}: "
            "rare trials make the difference",
            "look at the blocks one by one: report --explain names the trials that stalled",
        )
    ]
