"""Units: a series made ready for judging, log-ratios with what is known about them, or the reason they cannot be."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from iodelta.plural import plural
from iodelta.stats.boots import MIN_BOOTS, boot_means
from iodelta.stats.carry import MEMORIES, exposures_of
from iodelta.stats.effect import log_ratios
from iodelta.stats.stalls import stalled_trials
from iodelta.stats.total import Arms
from iodelta.trial import Finding
from iodelta.verdict.metrics import Metric
from iodelta.verdict.model import LARGEST
from iodelta.verdict.rules import Rules
from iodelta.verdict.series import Series
from iodelta.verdict.uncounted import ahead_in, direct_of

Floats = NDArray[np.float64]

NO_WEIGHTS: Floats = np.empty(0)

LEAST_VALUE, MOST_VALUE = 1e-100, 1e100
"""No rate, latency or count is beyond these; squares of what lies between them neither overflow nor vanish."""

NOTHING_DONE = math.log(1e6)
"""The log-ratio of a trial that did no I/O to one that did: worse than any other, and a number."""


Stalled = tuple[tuple[int, ...], tuple[int, ...]]
"""Numbers of the trials of the variant and of the baseline that stalled."""


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
    coins: tuple[int, ...] = ()
    """The draw that ordered each unit; units with one number changed sides together."""
    baseline_weights: Floats = field(default_factory=lambda: NO_WEIGHTS)
    variant_weights: Floats = field(default_factory=lambda: NO_WEIGHTS)
    exposed: Floats = field(default_factory=lambda: NO_WEIGHTS)
    """What the trials before may have left: exposures by memory, arm (baseline, variant) and unit; empty: not known."""
    direct: Floats = field(default_factory=lambda: NO_WEIGHTS)
    """In superblocks the log-ratio of two neighbours that followed the same arm; nan where there are none."""
    ahead: Floats = field(default_factory=lambda: np.empty((len(MEMORIES), 0)))
    """In superblocks what is still to come of the variant's state, by memory and unit (see ``uncounted.ahead_in``)."""
    conditioning: int = 0
    resolution: float = 0.0
    baseline_flags: tuple[tuple[str, ...], ...] = ()
    variant_flags: tuple[tuple[str, ...], ...] = ()
    trials_at: Floats = field(default_factory=lambda: NO_WEIGHTS)
    """Numbers of all trials of the variant, those of other cells too, ascending; empty: those of ``singles``."""
    others: tuple[Units, ...] = ()
    """What holds the trials of the variant one by one: this quantity in all cells, the blocks behind boot pairs. Empty:
    the units themselves."""
    _found: dict[int, Stalled] = field(default_factory=dict, init=False, repr=False, compare=False)
    findings: tuple[Finding, ...] = ()
    refusal: Finding | None = None
    forever: bool = False

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """With the reason why no verdict can be given, where there is one."""
        return self.findings if self.refusal is None else (*self.findings, self.refusal)

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
            coins=self.coins[cut],
            baseline_weights=self.baseline_weights[cut],
            variant_weights=self.variant_weights[cut],
            exposed=self.exposed[..., cut],
            direct=self.direct[cut],
            ahead=self.ahead[:, cut],
            baseline_flags=self.baseline_flags[cut],
            variant_flags=self.variant_flags[cut],
            ended=ended,
        )

    @property
    def singles(self) -> tuple[Units, ...]:
        """The units whose values are those of single trials: its own, else those behind it."""
        return (self,) if self.unit == "blocks" else self.others

    def trials_by(self, unit: int) -> int:
        """How many trials of the variant had been run, in any cell, when ``unit`` units were complete."""
        if not unit:
            return 0
        if not len(self.trials_at):
            return sum(single.until(self._last(unit)) for single in self.singles)
        return int(np.searchsorted(self.trials_at, self._last(unit), side="right"))

    def stalls_by(self, unit: int) -> int:
        """How many of these trials had stalled by then, judged by what was known then."""
        if not unit:
            return 0
        last = self._last(unit)
        stalled = (single.stalled_by(single.until(last)) for single in self.others or self.singles)
        return len(set().union(*(variant for variant, _ in filter(None, stalled))))

    def _last(self, unit: int) -> int:
        return int(max(self.baseline_at[unit - 1], self.variant_at[unit - 1]))

    def stalled_by(self, unit: int) -> Stalled | None:
        """Numbers of the trials of the variant and of the baseline that stalled in the first ``unit`` units; None where
        there are no values of single trials."""
        if len(self.baseline_values) < unit or self.unit != "blocks":
            return None
        if unit not in self._found:
            self._found[unit] = (
                self._stalled(self.variant_values[:unit], self.variant_at),
                self._stalled(self.baseline_values[:unit], self.baseline_at),
            )
        return self._found[unit]

    def idle_by(self, unit: int) -> tuple[tuple[int, ...], ...]:
        """By unit the numbers of its trials that did no I/O; empty where all of the first ``unit`` did some."""
        if len(self.baseline_values) < unit or self.unit != "blocks":
            return ()
        found: list[list[int]] = [[] for _ in range(unit)]
        for values, at in ((self.baseline_values, self.baseline_at), (self.variant_values, self.variant_at)):
            for row in np.flatnonzero(_nothing_done(values[:unit], higher_is_better=self.higher_is_better)):
                found[row].append(int(at[row]))
        return tuple(tuple(sorted(numbers)) for numbers in found) if any(found) else ()

    def _stalled(self, values: Floats, at: Floats) -> tuple[int, ...]:
        with np.errstate(divide="ignore"):
            logs = np.log(values)
        worse = np.nan_to_num(-logs if self.higher_is_better else logs, posinf=LARGEST, neginf=-LARGEST)
        hosts = np.array(self.hosts[: len(worse)] or [""] * len(worse))
        own = [np.flatnonzero(hosts == host) for host in dict.fromkeys(hosts)]  # each has a level of its own
        places = list(chain.from_iterable(rows[list(stalled_trials(worse[rows]))] for rows in own))
        return tuple(int(at[place]) for place in sorted(places))

    def arms(self, blocks: int) -> Arms:
        """Both arms' contributions to a total, worse over better, for ``blocks`` units; shape (1, blocks)."""
        old, new = self.baseline_values[None, :blocks], self.variant_values[None, :blocks]
        if self.higher_is_better:
            ones = np.ones_like(old)
            return Arms(new, old, ones, ones)
        old_weight, new_weight = self._weights(blocks)
        return Arms(_endless(old) * old_weight, _endless(new) * new_weight, old_weight, new_weight)

    def _weights(self, blocks: int) -> tuple[Floats, Floats]:
        """Weights around 1; all 1 where they are not known."""
        old, new = self.baseline_weights[None, :blocks], self.variant_weights[None, :blocks]
        known = old.shape[1] == new.shape[1] == blocks and old.sum() > 0 and new.sum() > 0
        if not known:
            return np.ones((1, blocks)), np.ones((1, blocks))
        scale = (old.sum() + new.sum()) / (2 * blocks)
        return old / scale, new / scale


def units_of(series: Series, rules: Rules, ended: Sequence[int] = (), *, trials_at: Floats = NO_WEIGHTS) -> Units:
    """``series`` made ready; ``ended`` are trial numbers after which a run stopped, ``trials_at`` the numbers of all
    trials of the variant. Never raises: what cannot be judged carries its reason."""
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
    usable = _usable(a, series.metric) & _usable(b, series.metric)
    if lopsided:
        refusal, forever = _hard("unequal", place, "the two sides do not have the same blocks", "pair them again"), True
    elif series.refused is not None or not shortest or not usable.all():
        refusal, forever = _refusal(series, rules, a, b, usable, place)
    d = np.full(shortest, np.nan)
    d[usable] = _differences(a[usable], b[usable], higher_is_better=series.metric.better == "higher")
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
        coins=coins_of(series.blocks[:shortest], rules.order, series.arms),
        baseline_weights=np.array(series.baseline_weights[:shortest], dtype=float),
        variant_weights=np.array(series.variant_weights[:shortest], dtype=float),
        exposed=_exposed(series, shortest),
        direct=direct_of(series, shortest),
        ahead=ahead_in(series, shortest),
        conditioning=series.conditioning,
        resolution=series.resolution,
        baseline_flags=series.baseline_flags[:shortest],
        variant_flags=series.variant_flags[:shortest],
        trials_at=trials_at,
        findings=series.findings,
        refusal=refusal,
        forever=forever,
    )
    if refusal is None and _boots_differ(series):
        units = _by_boot(units, series.boots, last_at, sorted(ended))
    return units


def coins_of(blocks: Sequence[int], order: str, arms: int) -> tuple[int, ...]:
    """The draw that ordered each block: its own, or in folders made before that of its pair of mirrored blocks (two
    variants) or of its whole Latin square and its mirror image (more)."""
    if order == "independent":
        return tuple(range(len(blocks)))
    size = 2 if arms <= 2 else 2 * arms
    return tuple(block // size for block in blocks)


def _differences(a: Floats, b: Floats, *, higher_is_better: bool) -> Floats:
    """Log-ratios, positive = worse. A rate of 0 or an infinite latency is the worst rank, not an error."""
    d = np.zeros(len(a))
    nothing_a, nothing_b = (_nothing_done(values, higher_is_better=higher_is_better) for values in (a, b))
    both = ~nothing_a & ~nothing_b
    d[both] = log_ratios(a[both], b[both], higher_is_better=higher_is_better)
    d[nothing_b & ~nothing_a] = NOTHING_DONE
    d[nothing_a & ~nothing_b] = -NOTHING_DONE
    return d


def _usable(values: Floats, metric: Metric) -> NDArray[np.bool_]:
    """Which values can be compared: a rate may be 0, a latency endless, where nothing was done."""
    known = (values > LEAST_VALUE) & (values < MOST_VALUE)
    return known | ((values == 0) if metric.better == "higher" else np.isposinf(values))


def _nothing_done(values: Floats, *, higher_is_better: bool) -> NDArray[np.bool_]:
    return values == 0 if higher_is_better else np.isinf(values)


def _exposed(series: Series, count: int) -> Floats:
    """See ``Units.exposed``; from the orders alone where it is not known what ran before."""
    if series.variant_after and series.baseline_after:
        old, new = (np.array(after[:count], dtype=float).T for after in (series.baseline_after, series.variant_after))
        return np.stack([old, new], axis=1)
    found, first = np.zeros((len(MEMORIES), 2, count)), np.array(series.baseline_first[:count], dtype=bool)
    hosts = np.array(series.hosts if len(series.hosts) == count else [""] * count)
    for host in np.unique(hosts):  # each has orders of its own
        found[:, :, hosts == host] = np.stack(exposures_of(first[hosts == host]), axis=1)
    return found


def _boots_differ(series: Series) -> bool:
    """Whether the variants lie on different boots, so that the boot is the unit. Where boots hold both, as when a knob
    is switched within one, the block stays the unit."""
    old, new = {boot for boot, _ in series.boots}, {boot for _, boot in series.boots}
    return bool(old) and not old & new


def _endless(values: Floats) -> Floats:
    """Values with a number for what never came back: far beyond all others."""
    known = values[np.isfinite(values)]
    return np.asarray(np.where(np.isfinite(values), values, 1e3 * (known.max() if len(known) else 1.0)))


def _logs(values: Floats) -> Floats:
    """Logarithms, a trial that did nothing far from all others."""
    positive = values[(values > 0) & np.isfinite(values)]
    least, most = (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 1.0)
    return np.asarray(np.log(np.clip(values, least / math.exp(NOTHING_DONE), most * math.exp(NOTHING_DONE))))


def _by_boot(units: Units, boots: tuple[tuple[str, str], ...], last_at: NDArray[np.intp], ended: list[int]) -> Units:
    """One unit per pair of boots: each boot's mean log value, boots of the two variants paired in run order."""
    old_boots, old = boot_means(_logs(units.baseline_values), [boot for boot, _ in boots])
    new_boots, new = boot_means(_logs(units.variant_values), [boot for _, boot in boots])
    pairs = min(len(old), len(new))
    finished = []
    old_rows = _rows_by_boot([boot for boot, _ in boots], old_boots[:pairs])
    new_rows = _rows_by_boot([boot for _, boot in boots], new_boots[:pairs])
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
        ended=tuple(dict.fromkeys(bisect_right(sorted(finished), number) for number in ended)),
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
        unit="boot pairs",
        others=(units,),
        refusal=refusal,
    )


def _rows_by_boot(boots: Sequence[str], wanted: Sequence[str]) -> list[list[int]]:
    rows: dict[str, list[int]] = {boot: [] for boot in wanted}
    for row, boot in enumerate(boots):
        if boot in rows:
            rows[boot].append(row)
    return list(rows.values())


def _hard(rule: str, place: str, explanation: str, remedy: str) -> Finding:
    return Finding(f"verdict.{rule}", "hard", place, explanation, remedy)


def _refusal(
    series: Series, rules: Rules, a: Floats, b: Floats, usable: NDArray[np.bool_], place: str
) -> tuple[Finding, bool]:
    """Why a series has no verdict, and whether more blocks will not change that."""
    if series.refused is not None:
        return series.refused, len(series.finished) >= rules.looks[0]
    if not len(a):
        return _nothing(series, rules, place)
    return _not_positive(series, a, b, usable, place), True


def _nothing(series: Series, rules: Rules, place: str) -> tuple[Finding, bool]:
    """No complete block: not yet, or, after as many failures as a first look takes, never."""
    why = f"no block holds a value of both {series.baseline} and {series.variant}"
    if series.incomplete:
        why += f" ({plural(series.incomplete, 'block')} without one)"
    finding = _hard("no-blocks", place, why, "run both variants in the same blocks, and see why values are missing")
    return finding, series.incomplete >= rules.looks[0]


def _not_positive(series: Series, a: Floats, b: Floats, usable: NDArray[np.bool_], place: str) -> Finding:
    at = int(np.argmin(usable))
    wrong_old = not _usable(a, series.metric)[at]
    value, variant = (a[at], series.baseline) if wrong_old else (b[at], series.variant)
    count = int(np.count_nonzero(~usable))
    return _hard(
        "not-positive",
        place,
        f"block {series.blocks[at]} has {value:g} {series.metric.unit} under {variant} ({count} such blocks): "
        "a relative change needs a value",
        "find out why nothing was measured there; leaving out blocks by their value would bias the rest",
    )
