"""The units of a series: its blocks or boot pairs as log-ratios, or the reason why it cannot be judged."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from iodelta.plural import plural
from iodelta.stats.boots import MIN_BOOTS, boot_means
from iodelta.stats.carry import MEMORIES, approach, exposures_of
from iodelta.stats.effect import log_ratios
from iodelta.trial import Finding
from iodelta.verdict.metrics import Metric
from iodelta.verdict.rules import Rules
from iodelta.verdict.series import Pair, Series
from iodelta.verdict.units import NO_WEIGHTS, Floats, Units, nothing_done

LEAST_VALUE, MOST_VALUE = 1e-100, 1e100
"""Bounds of every rate, latency and count; squares of values between them neither overflow nor underflow."""

MISSING = (np.nan, np.nan)

NOTHING_DONE = math.log(1e6)
"""The log-ratio of a trial that did no I/O to one that did: a finite number that ranks as worse than any other."""


def units_of(
    series: Series,
    rules: Rules,
    ended: Sequence[int] = (),
    *,
    trials_at: Floats = NO_WEIGHTS,
) -> Units:
    """Return the units of ``series``; ``ended`` are trial numbers after which a run stopped, ``trials_at`` the numbers
    of all trials of the variant. Never raises: units that cannot be judged carry the reason."""
    names = (
        "blocks baseline_values variant_values baseline_first baseline_at variant_at"
    )
    lengths = [len(getattr(series, name)) for name in names.split()]
    shortest = min(lengths)
    given = [len(one) for one in (series.boots, series.hosts) if one]
    lopsided = {*lengths, *given} != {shortest}
    a = np.array(series.baseline_values[:shortest], dtype=float)
    b = np.array(series.variant_values[:shortest], dtype=float)
    place = f"cell {series.cell}, {series.metric.name}, {series.variant}"
    refusal, forever = None, False
    usable = _usable(a, series.metric) & _usable(b, series.metric)
    if lopsided:
        refusal, forever = (
            _hard(
                "unequal",
                place,
                "the two sides do not have the same blocks",
                "pair them again",
            ),
            True,
        )
    elif series.refused is not None or not shortest or not usable.all():
        refusal, forever = _refusal(series, rules, a, b, usable, place)
    d = np.full(shortest, np.nan)
    d[usable] = _differences(
        a[usable], b[usable], higher_is_better=series.metric.better == "higher"
    )
    last_at = np.maximum(series.baseline_at[:shortest], series.variant_at[:shortest])
    units = Units(
        cell=series.cell,
        metric=series.metric,
        baseline=series.baseline,
        variant=series.variant,
        d=d,
        baseline_values=a,
        variant_values=b,
        numbers=series.blocks[:shortest],
        baseline_first=series.baseline_first[:shortest],
        baseline_at=np.array(series.baseline_at[:shortest], dtype=float),
        variant_at=np.array(series.variant_at[:shortest], dtype=float),
        ended=tuple(
            dict.fromkeys(
                int(np.count_nonzero(last_at <= number)) for number in sorted(ended)
            )
        ),
        finished=series.finished or tuple(last_at.tolist()),
        hosts=series.hosts if len(set(series.hosts)) > 1 else (),
        coins=coins_of(series.blocks[:shortest], rules.order, series.arms),
        baseline_weights=np.array(series.baseline_weights[:shortest], dtype=float),
        variant_weights=np.array(series.variant_weights[:shortest], dtype=float),
        exposed=_exposed(series, shortest),
        direct=_ratios(series.direct[:shortest], series),
        ahead=_ahead(series, shortest),
        conditioning=series.conditioning,
        resolution=series.resolution,
        baseline_flags=series.baseline_flags[:shortest],
        variant_flags=series.variant_flags[:shortest],
        started=series.started[:shortest],
        trials_at=trials_at,
        findings=series.findings,
        refusal=refusal,
        forever=forever,
    )
    if refusal is None and _boots_differ(series):
        units = _by_boot(units, series.boots, last_at, sorted(ended))
    return units


def coins_of(blocks: Sequence[int], order: str, arms: int) -> tuple[int, ...]:
    """Return the draw that ordered each block: its own, or in folders made before that of its pair of mirrored blocks
    (two variants) or of its whole Latin square and its mirror image (more)."""
    if order == "independent":
        return tuple(range(len(blocks)))
    size = 2 if arms <= 2 else 2 * arms
    return tuple(block // size for block in blocks)


def _differences(a: Floats, b: Floats, *, higher_is_better: bool) -> Floats:
    """Log-ratios, positive = worse. A rate of 0 or an infinite latency is the worst rank, not an error."""
    d = np.zeros(len(a))
    nothing_a, nothing_b = (
        nothing_done(values, higher_is_better=higher_is_better) for values in (a, b)
    )
    both = ~nothing_a & ~nothing_b
    d[both] = log_ratios(a[both], b[both], higher_is_better=higher_is_better)
    d[nothing_b & ~nothing_a] = NOTHING_DONE
    d[nothing_a & ~nothing_b] = -NOTHING_DONE
    return d


def _usable(values: Floats, metric: Metric) -> NDArray[np.bool_]:
    """Return which values can be compared: a rate may be 0, and a latency infinite, where no I/O was done."""
    known = (values > LEAST_VALUE) & (values < MOST_VALUE)
    return known | ((values == 0) if metric.better == "higher" else np.isposinf(values))


def _exposed(series: Series, count: int) -> Floats:
    """See ``Units.exposed``; from the orders alone where what ran before is not known."""
    if series.variant_after and series.baseline_after:
        old, new = (
            np.array(after[:count], dtype=float).T
            for after in (series.baseline_after, series.variant_after)
        )
        return np.stack([old, new], axis=1)
    exposed, first = (
        np.zeros((len(MEMORIES), 2, count)),
        np.array(series.baseline_first[:count], dtype=bool),
    )
    hosts = np.array(series.hosts if len(series.hosts) == count else [""] * count)
    for host in np.unique(hosts):  # each has orders of its own
        exposed[:, :, hosts == host] = np.stack(
            exposures_of(first[hosts == host]), axis=1
        )
    return exposed


def _ahead(series: Series, count: int) -> Floats:
    """Per memory and block how far the variant's state is from being reached after its counted trial, less the same for
    the baseline; nan where a trial is missing. No blocks outside superblocks."""
    if not series.uncounted:
        return np.empty((len(MEMORIES), 0))
    weights = approach(series.conditioning)
    before = weights.shape[1] - 1
    counted = zip(
        series.baseline_values[:count], series.variant_values[:count], strict=True
    )
    padded = [(MISSING,) * before + pairs for pairs in series.uncounted[:count]]
    trials = []
    for back in range(before, 0, -1):
        trials.append(_ratios([pairs[-back] for pairs in padded], series))
    return np.asarray(weights @ np.array([*trials, _ratios(list(counted), series)]))


def _ratios(pairs: Sequence[Pair], series: Series) -> Floats:
    """Log-ratios of the variant to the baseline, positive = worse; nan where one has no logarithm."""
    old, new = np.array(pairs, dtype=float).reshape(-1, 2).T
    ratios = np.full(len(old), np.nan)
    known = (old > 0) & (new > 0) & np.isfinite(old) & np.isfinite(new)
    ratios[known] = log_ratios(
        old[known], new[known], higher_is_better=series.metric.better == "higher"
    )
    return ratios


def _boots_differ(series: Series) -> bool:
    """Return whether the variants lie on different boots, so that the boot is the unit. Where boots hold both, as when
    a knob is switched within one, the block stays the unit."""
    old, new = {boot for boot, _ in series.boots}, {boot for _, boot in series.boots}
    return bool(old) and not old & new


def _logs(values: Floats) -> Floats:
    """Logarithms; a trial without I/O gets a finite value far from all others."""
    positive = values[(values > 0) & np.isfinite(values)]
    least, most = (
        (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 1.0)
    )
    return np.asarray(
        np.log(
            np.clip(
                values, least / math.exp(NOTHING_DONE), most * math.exp(NOTHING_DONE)
            )
        )
    )


def _by_boot(
    units: Units,
    boots: tuple[tuple[str, str], ...],
    last_at: NDArray[np.intp],
    ended: list[int],
) -> Units:
    """Return one unit per pair of boots: each boot's mean log value, boots of the two variants paired in run order."""
    of_arms = zip(*boots, strict=True)
    (old, old_rows), (new, new_rows) = (
        _boots(values, own)
        for values, own in zip(
            (units.baseline_values, units.variant_values), of_arms, strict=True
        )
    )
    pairs = min(len(old), len(new))
    old_rows, new_rows = old_rows[:pairs], new_rows[:pairs]
    finished = [
        max(last_at[one + other]) for one, other in zip(old_rows, new_rows, strict=True)
    ]
    a, b = np.exp(old[:pairs]), np.exp(new[:pairs])
    old_at = np.array([units.baseline_at[rows[-1]] for rows in old_rows])
    new_at = np.array([units.variant_at[rows[-1]] for rows in new_rows])
    refusal = None
    if pairs < MIN_BOOTS:
        refusal = _hard(
            "few-boots",
            units.place,
            f"{plural(pairs, 'boot')} per variant: what differs from boot to boot cannot be separated from the change",
            f"boot each variant at least {MIN_BOOTS} times; more runs in one boot do not help",
        )
    return replace(
        units,
        d=log_ratios(a, b, higher_is_better=units.higher_is_better),
        baseline_values=a,
        variant_values=b,
        numbers=tuple(units.numbers[rows[0]] for rows in old_rows),
        baseline_first=tuple((old_at < new_at).tolist()),
        baseline_at=old_at,
        variant_at=new_at,
        ended=tuple(
            dict.fromkeys(bisect_right(sorted(finished), number) for number in ended)
        ),
        finished=tuple(int(at) for at in finished),
        hosts=(),
        coins=tuple(range(pairs)),
        baseline_weights=NO_WEIGHTS,
        variant_weights=NO_WEIGHTS,
        exposed=NO_WEIGHTS,
        direct=NO_WEIGHTS,
        ahead=np.empty((len(MEMORIES), 0)),
        baseline_flags=(),
        variant_flags=(),
        started=(),
        unit="boot pairs",
        others=(units,),
        refusal=refusal,
    )


def _boots(values: Floats, boots: Sequence[str]) -> tuple[Floats, list[list[int]]]:
    """Return each boot's mean log value and its rows, boots in first-seen order."""
    rows: dict[str, list[int]] = {}
    for row, boot in enumerate(boots):
        rows.setdefault(boot, []).append(row)
    return boot_means(_logs(values), boots)[1], list(rows.values())


def _hard(rule: str, place: str, explanation: str, remedy: str) -> Finding:
    return Finding(f"verdict.{rule}", "hard", place, explanation, remedy)


def _refusal(
    series: Series,
    rules: Rules,
    a: Floats,
    b: Floats,
    usable: NDArray[np.bool_],
    place: str,
) -> tuple[Finding, bool]:
    """Return why a series has no verdict, and whether more blocks will not change that."""
    if series.refused is not None:
        return series.refused, len(series.finished) >= rules.looks[0]
    if not len(a):
        # No complete block: not yet, or, after as many failures as a first look takes, never.
        why = f"no block holds a value of both {series.baseline} and {series.variant}"
        if series.incomplete:
            why += f" ({plural(series.incomplete, 'block')} without one)"
        finding = _hard(
            "no-blocks",
            place,
            why,
            "run both variants in the same blocks, and see why values are missing",
        )
        return finding, series.incomplete >= rules.looks[0]
    at = int(np.argmin(usable))
    wrong_old = not _usable(a, series.metric)[at]
    value, variant = (a[at], series.baseline) if wrong_old else (b[at], series.variant)
    count = int(np.count_nonzero(~usable))
    return (
        _hard(
            "not-positive",
            place,
            f"block {series.blocks[at]} has {value:g} {series.metric.unit} under {variant} ({count} such blocks): "
            "a relative change needs a value",
            "find out why nothing was measured there; leaving out blocks by their value would bias the rest",
        )
    ), True
