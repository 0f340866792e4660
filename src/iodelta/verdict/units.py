"""Units: a series made ready for judging, log-ratios with what is known about them, or the reason they cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.boots import MIN_BOOTS, boot_means
from iodelta.stats.effect import log_ratios
from iodelta.trial import Finding
from iodelta.verdict.metrics import Metric
from iodelta.verdict.rules import Rules
from iodelta.verdict.series import Series

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Units:
    """One comparison: ``d`` has one log-ratio per unit (block, or boot pair) in run order, positive = worse (nan only
    where there is a ``refusal``).

    ``ended`` are the unit counts at which a run stopped, ``finished`` the last trial numbers of all blocks of the cell,
    whether they gave a unit or not. ``refusal`` is why no verdict can be given; ``forever`` says
    that more blocks would not change that.
    """

    cell: str
    metric: Metric
    baseline: str
    variant: str
    d: Floats
    baseline_values: Floats
    variant_values: Floats
    numbers: tuple[int, ...]
    baseline_first: tuple[bool, ...]
    baseline_at: Floats
    variant_at: Floats
    ended: tuple[int, ...] = ()
    finished: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    unit: str = "blocks"
    findings: tuple[Finding, ...] = ()
    refusal: Finding | None = None
    forever: bool = False

    @property
    def place(self) -> str:
        """Where a finding about it is: cell, metric and variant."""
        return f"cell {self.cell}, {self.metric.name}, {self.variant}"

    @property
    def higher_is_better(self) -> bool:
        """Whether a larger value of the metric is the better one."""
        return self.metric.better == "higher"

    def before(self, blocks: int) -> int:
        """How many units lie among the first ``blocks`` blocks that were run of the cell."""
        if len(self.finished) < blocks:
            return len(self.d)
        return self.until(self.finished[blocks - 1])

    def until(self, trial: int) -> int:
        """How many units were complete when trial number ``trial`` was."""
        return int(np.count_nonzero(np.maximum(self.baseline_at, self.variant_at) <= trial))

    def part(self, start: int, stop: int | None = None) -> Units:
        """Its units from ``start`` to ``stop``, as if the others had not been run."""
        cut = slice(start, stop)
        ended = tuple(n - start for n in self.ended if n > start)
        if stop is not None:
            ended = tuple(n for n in ended if n <= stop - start)
        return replace(
            self,
            d=self.d[cut],
            baseline_values=self.baseline_values[cut],
            variant_values=self.variant_values[cut],
            numbers=self.numbers[cut],
            baseline_first=self.baseline_first[cut],
            baseline_at=self.baseline_at[cut],
            variant_at=self.variant_at[cut],
            hosts=self.hosts[cut],
            ended=ended,
        )


def units_of(series: Series, rules: Rules, ended: Sequence[int] = ()) -> Units:
    """``series`` made ready; ``ended`` are trial numbers after which a run stopped. Never raises: what cannot be
    judged carries its reason."""
    columns = (
        series.blocks,
        series.baseline_values,
        series.variant_values,
        series.baseline_first,
        series.baseline_at,
        series.variant_at,
    )
    shortest = min(len(column) for column in columns)
    lopsided = any(len(column) != shortest for column in columns) or any(
        optional and len(optional) != shortest for optional in (series.boots, series.hosts)
    )
    a = np.array(series.baseline_values[:shortest], dtype=float)
    b = np.array(series.variant_values[:shortest], dtype=float)
    place = f"cell {series.cell}, {series.metric.name}, {series.variant}"
    refusal, forever = None, False
    usable = np.isfinite(a) & (a > 0) & np.isfinite(b) & (b > 0)
    if lopsided:
        refusal, forever = _hard("unequal", place, "the two sides do not have the same blocks", "pair them again"), True
    elif series.refused is not None:
        refusal, forever = series.refused, len(series.finished) >= rules.looks[0]
    elif not shortest:
        refusal, forever = _nothing(series, rules, place)
    elif not usable.all():
        refusal, forever = _not_positive(series, a, b, usable, place), True
    d = np.full(shortest, np.nan)
    d[usable] = log_ratios(a[usable], b[usable], higher_is_better=series.metric.better == "higher")
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
        ended=tuple(dict.fromkeys(int(np.count_nonzero(last_at <= number)) for number in sorted(ended))),
        finished=series.finished or tuple(last_at.tolist()),
        hosts=series.hosts if len(set(series.hosts)) > 1 else (),
        findings=series.findings,
        refusal=refusal,
        forever=forever,
    )
    if refusal is None and _boots_differ(series):
        units = _by_boot(units, series.boots, last_at, sorted(ended))
    if units.refusal is None and len(units.d) > 1 and np.ptp(units.d) <= 1e-12:
        units = replace(units, refusal=_constant(units))
    return units


def _boots_differ(series: Series) -> bool:
    """Whether the variants lie on different boots, so that the boot is the unit. Where boots hold both, as when a knob
    is switched within one, the block stays the unit."""
    old, new = {boot for boot, _ in series.boots}, {boot for _, boot in series.boots}
    return bool(old) and not old & new


def _by_boot(units: Units, boots: tuple[tuple[str, str], ...], last_at: NDArray[np.intp], ended: list[int]) -> Units:
    """One unit per pair of boots: each boot's mean log value, boots of the two variants paired in run order."""
    old_boots, old = boot_means(np.log(units.baseline_values), [boot for boot, _ in boots])
    new_boots, new = boot_means(np.log(units.variant_values), [boot for _, boot in boots])
    pairs = min(len(old), len(new))
    finished = []
    old_rows = [[i for i, pair in enumerate(boots) if pair[0] == boot] for boot in old_boots[:pairs]]
    new_rows = [[i for i, pair in enumerate(boots) if pair[1] == boot] for boot in new_boots[:pairs]]
    for one, other in zip(old_rows, new_rows, strict=True):
        finished.append(max(last_at[one + other]))
    a, b = np.exp(old[:pairs]), np.exp(new[:pairs])
    old_at = np.array([units.baseline_at[rows[-1]] for rows in old_rows])
    new_at = np.array([units.variant_at[rows[-1]] for rows in new_rows])
    refusal = None
    if pairs < MIN_BOOTS:
        refusal = _hard(
            "few-boots",
            units.place,
            f"{pairs} boots per variant: what differs from boot to boot cannot be told from the change",
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
        ended=tuple(dict.fromkeys(sum(at <= number for at in finished) for number in ended)),
        finished=tuple(int(at) for at in finished),
        hosts=(),
        unit="boot pairs",
        refusal=refusal,
    )


def _hard(rule: str, place: str, explanation: str, remedy: str) -> Finding:
    return Finding(f"verdict.{rule}", "hard", place, explanation, remedy)


def _nothing(series: Series, rules: Rules, place: str) -> tuple[Finding, bool]:
    """No complete block: not yet, or, after as many failures as a first look takes, never."""
    why = f"no block holds a value of both {series.baseline} and {series.variant}"
    if series.incomplete:
        why += f" ({series.incomplete} blocks lack one)"
    finding = _hard("no-blocks", place, why, "run both variants in the same blocks, and see why values are missing")
    return finding, series.incomplete >= rules.looks[0]


def _not_positive(series: Series, a: Floats, b: Floats, usable: NDArray[np.bool_], place: str) -> Finding:
    at = int(np.argmin(usable))
    value, variant = (a[at], series.baseline) if not a[at] > 0 or not np.isfinite(a[at]) else (b[at], series.variant)
    count = int(np.count_nonzero(~usable))
    return _hard(
        "not-positive",
        place,
        f"block {series.blocks[at]} has {value:g} {series.metric.unit} under {variant} ({count} such blocks): "
        "a relative change needs values above zero",
        "find out why nothing was measured there; leaving out blocks by their value would bias the rest",
    )


def _constant(units: Units) -> Finding:
    return _hard(
        "constant",
        units.place,
        f"all {len(units.d)} {units.unit} show exactly the same ratio: no measurement repeats itself so",
        "look for a rate limit, a rounded or copied result; without spread nothing can be inferred",
    )
