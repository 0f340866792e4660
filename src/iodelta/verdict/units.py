"""Units: the log-ratios by which a comparison is judged, with what is known about them, or a reason for a refusal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import MEMORIES
from iodelta.stats.stalls import episodes, stalled_trials
from iodelta.stats.total import Arms
from iodelta.trial import Finding
from iodelta.verdict.metrics import Metric
from iodelta.verdict.model import LARGEST

Floats = NDArray[np.float64]

NO_WEIGHTS: Floats = np.empty(0)

COLUMNS = (
    "d baseline_values variant_values numbers baseline_first baseline_at variant_at hosts coins baseline_weights "
    "variant_weights exposed direct ahead baseline_flags variant_flags started"
)
"""The fields with one entry for each unit, arrays in their last dimension."""

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
    """What earlier trials may have left: exposures by memory, arm (baseline, variant) and unit; empty: not known."""
    direct: Floats = field(default_factory=lambda: NO_WEIGHTS)
    """In superblocks the log-ratio of two neighbours that followed the same arm; nan where there are none."""
    ahead: Floats = field(default_factory=lambda: np.empty((len(MEMORIES), 0)))
    """In superblocks what is still to come of the variant's state, by memory and unit (see ``series_units``)."""
    conditioning: int = 0
    resolution: float = 0.0
    baseline_flags: tuple[tuple[str, ...], ...] = ()
    variant_flags: tuple[tuple[str, ...], ...] = ()
    started: tuple[float, ...] = ()
    trials_at: Floats = field(default_factory=lambda: NO_WEIGHTS)
    """Numbers of all trials of the variant, those of other cells too, ascending; empty: those of ``singles``."""
    others: tuple[Units, ...] = ()
    """The units that hold the variant's single trials: this quantity in all cells, the blocks behind boot pairs. Empty:
    the units themselves."""
    _found: dict[int, Stalled] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    findings: tuple[Finding, ...] = ()
    refusal: Finding | None = None
    forever: bool = False

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """Return the findings, and the refusal if there is one."""
        return self.findings if self.refusal is None else (*self.findings, self.refusal)

    @property
    def place(self) -> str:
        """Where a finding about it is: cell, metric and variant."""
        return f"cell {self.cell}, {self.metric.name}, {self.variant}"

    @property
    def higher_is_better(self) -> bool:
        """Return whether a larger value of the metric is the better one."""
        return self.metric.better == "higher"

    def before(self, blocks: int) -> int:
        """Return how many units lie among the first ``blocks`` blocks that were run of the cell."""
        if len(self.finished) < blocks:
            return len(self.d)
        return self.until(self.finished[blocks - 1])

    def until(self, trial: int) -> int:
        """Return how many units were complete when trial number ``trial`` was."""
        return int(
            np.count_nonzero(np.maximum(self.baseline_at, self.variant_at) <= trial)
        )

    def part(self, start: int, stop: int | None = None) -> Units:
        """Its units from ``start`` to ``stop``, as if the others had not been run."""
        cut = slice(start, stop)
        ended = [n - start for n in self.ended if n > start]
        columns: dict[str, Any] = {}
        for name in COLUMNS.split():
            column = getattr(self, name)
            whole = isinstance(column, np.ndarray)
            columns[name] = column[..., cut] if whole else column[cut]
        most = len(self.d) if stop is None else stop - start
        left = tuple(n for n in ended if stop is None or n <= most)
        return replace(self, ended=left, **columns)

    @property
    def singles(self) -> tuple[Units, ...]:
        """Return the units whose values are those of single trials: its own, else those behind it."""
        return (self,) if self.unit == "blocks" else self.others

    def trials_by(self, unit: int) -> int:
        """Return how many trials of the variant had been run, in any cell, when ``unit`` units were complete."""
        if not unit:
            return 0
        if not len(self.trials_at):
            return sum(single.until(self._last(unit)) for single in self.singles)
        return int(np.searchsorted(self.trials_at, self._last(unit), side="right"))

    def stalls_by(self, unit: int) -> tuple[int, int]:
        """Return how many episodes of stalls these trials had by then, judged by what was known then, and the longest."""
        if not unit:
            return 0, 0
        last = self._last(unit)
        singles = self.others or self.singles
        known = [single.stalled_by(single.until(last)) for single in singles]
        stalled = set(
            chain.from_iterable(variant for variant, _ in filter(None, known))
        )
        trials = set(self.trials_at[self.trials_at <= last].tolist())
        trials.update(
            *(single.variant_at[: single.until(last)].tolist() for single in singles)
        )
        return episodes(stalled, sorted(trials))

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
        idle: list[list[int]] = [[] for _ in range(unit)]
        for values, at in (
            (self.baseline_values, self.baseline_at),
            (self.variant_values, self.variant_at),
        ):
            for row in np.flatnonzero(
                nothing_done(values[:unit], higher_is_better=self.higher_is_better)
            ):
                idle[row].append(int(at[row]))
        return tuple(tuple(sorted(numbers)) for numbers in idle) if any(idle) else ()

    def _stalled(self, values: Floats, at: Floats) -> tuple[int, ...]:
        with np.errstate(divide="ignore"):
            logs = np.log(values)
        worse = np.nan_to_num(
            -logs if self.higher_is_better else logs, posinf=LARGEST, neginf=-LARGEST
        )
        hosts = np.array(self.hosts[: len(worse)] or [""] * len(worse))
        own = [
            np.flatnonzero(hosts == host) for host in dict.fromkeys(hosts)
        ]  # each has a level of its own
        places = list(
            chain.from_iterable(rows[list(stalled_trials(worse[rows]))] for rows in own)
        )
        return tuple(int(at[place]) for place in sorted(places))

    def arms(self, blocks: int) -> Arms:
        """Both arms' contributions to a total, worse over better, for ``blocks`` units; shape (1, blocks)."""
        old, new = (
            self.baseline_values[None, :blocks],
            self.variant_values[None, :blocks],
        )
        if self.higher_is_better:
            ones = np.ones_like(old)
            return Arms(new, old, ones, ones)
        old_weight, new_weight = self._weights(blocks)
        return Arms(
            _endless(old) * old_weight,
            _endless(new) * new_weight,
            old_weight,
            new_weight,
        )

    def _weights(self, blocks: int) -> tuple[Floats, Floats]:
        """Weights around 1; all 1 where they are not known."""
        old, new = (
            self.baseline_weights[None, :blocks],
            self.variant_weights[None, :blocks],
        )
        known = (
            old.shape[1] == new.shape[1] == blocks and old.sum() > 0 and new.sum() > 0
        )
        if not known:
            return np.ones((1, blocks)), np.ones((1, blocks))
        scale = (old.sum() + new.sum()) / (2 * blocks)
        return old / scale, new / scale


def nothing_done(values: Floats, *, higher_is_better: bool) -> NDArray[np.bool_]:
    return values == 0 if higher_is_better else np.isinf(values)


def _endless(values: Floats) -> Floats:
    """Values with a number for what never came back: far beyond all others."""
    known = values[np.isfinite(values)]
    return np.asarray(
        np.where(
            np.isfinite(values), values, 1e3 * (known.max() if len(known) else 1.0)
        )
    )
