"""What the machine itself adds to the blocks of one comparison: carry-over from trial to trial, and two speeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import (
    MEMORIES,
    Ahead,
    Carry,
    Levels,
    ahead_of,
    carry_over,
    drawn_in,
)
from iodelta.stats.speeds import within_speed
from iodelta.verdict.units import Units

Floats = NDArray[np.float64]

HALF = 0.5
"""The exposure of a trial of which nobody knows what ran before it."""

DEEP = math.log(4.0)
"""Log-ratio, beyond the usual one, of a block in which one of the trials stalled for most of its time."""


@dataclass(frozen=True)
class Machine:
    """In the first blocks of a comparison: the carry-over, None where the orders do not tell; what two speeds add to
    each log-ratio, and whether the machine has two."""

    added: Floats
    two_speeds: bool
    unit: Units
    blocks: int
    _onto: dict[int, Carry | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def carry(self) -> Carry | None:
        """Computed on first use: at most looks there is no word that it could withhold."""
        return _carry(self.unit, self.blocks)

    def onto(self, arm: int) -> Carry | None:
        """Return the carry-over of a memory of one trial if only trials of the baseline (0) or of the variant (1)
        suffer (or gain) from a trial of the variant before them."""
        if arm not in self._onto:
            self._onto[arm] = _carry(self.unit, self.blocks, onto=arm)
        return self._onto[arm]

    @cached_property
    def alone(self) -> tuple[float, float] | None:
        """Return the typical change of the variant's trials that followed one of its own, and its error by the spread
        of all blocks around their kind; None where there is none. They are first in their blocks: what the second place does
        is taken out by the trials that followed the baseline's in either place."""
        unit, blocks = self.unit, self.blocks
        own = unit.exposed[0, 1, :blocks] > HALF
        if not own.any():
            return None
        # A stalled trial is not typical, and one of five weighs much.
        stalled = np.concatenate(unit.stalled_by(blocks) or ((), ()))
        at = np.array([unit.baseline_at[:blocks], unit.variant_at[:blocks]])
        calm = ~np.isin(at, stalled).any(axis=0)
        kept = np.flatnonzero(calm if (own & calm).any() else calm | ~calm)
        d, own = (unit.d[:blocks] - self.added)[kept], own[kept]
        second = np.array(unit.baseline_first[:blocks])[kept]
        parts = [
            drawn_in(d[kind])
            for kind in (own, second & ~own, ~second & ~own)
            if kind.any()
        ]
        squares = sum(float(np.sum((part - part.mean()) ** 2)) for part in parts)
        spread = math.sqrt(squares / max(len(d) - len(parts), 1))
        value, weight = float(parts[0].mean()), 1.0 / len(parts[0])
        if len(parts) == 3:
            value += float(parts[1].mean() - parts[2].mean()) / 2.0
            weight += (1.0 / len(parts[1]) + 1.0 / len(parts[2])) / 4.0
        return value, spread * math.sqrt(weight)

    @cached_property
    def ahead(self) -> Ahead | None:
        """In superblocks: how far the variant's state was still from being reached, under the memories that fit.

        One uncounted trial leaves a single step from it to the counted trial, which lasts on under one memory and is
        over under another. Counted trials that ran after three of their own tell: those of a debt that lasts differ.
        """
        rows = self.unit.ahead[:, : self.blocks]
        ahead = ahead_of(rows[:, np.isfinite(rows).all(axis=0)])
        if ahead is None or self.unit.conditioning != 1 or not ahead.shown:
            return ahead
        value, half = ahead.value.copy(), ahead.half.copy()
        exposed = self.unit.exposed[..., : self.blocks]
        for row, memory in enumerate(MEMORIES):
            contrast = (exposed[row, 1] - exposed[row, 0])[None, :]
            if not memory or exposed.shape[-1] < self.blocks:
                continue
            share = contrast.mean(axis=1)
            seen = carry_over(self.unit.d[: self.blocks], contrast, share)
            # In steady use the exposures differ by 1 / (1 - memory); what of it is still to come is in ``value``.
            scale = 1.0 / (1.0 / (1.0 - memory) - float(share[0]))
            apart = abs(scale * value[row] - float(seen.value[0]))
            if seen.known and apart > math.hypot(
                scale * half[row], float(seen.half[0])
            ):
                value[row] = half[row] = 0.0
        return Ahead(value, half)


def machine_of(unit: Units, blocks: int) -> Machine:
    """Return what the machine added to the first ``blocks`` log-ratios."""
    alone = Machine(np.zeros(blocks), two_speeds=False, unit=unit, blocks=blocks)
    logs = _worse(unit, blocks, stall=math.inf)  # one of two speeds may be far slower
    if logs is None:
        return alone
    level = logs.mean(axis=0) - within_hosts(
        logs.mean(axis=0), unit.hosts
    )  # hosts may differ in speed: not one in two
    added, two = within_speed((logs[0] - level)[None, :], (logs[1] - level)[None, :])
    if not two[0]:
        return alone
    if (
        alone.carry is not None and alone.carry.shown.any()
    ):  # what a trial leaves to the next makes two levels, too
        return alone
    return Machine(added[0], two_speeds=True, unit=unit, blocks=blocks)


def _carry(unit: Units, blocks: int, *, onto: int | None = None) -> Carry | None:
    """Return the carry-over; over hosts from what differs inside each, since a host's own change is no carry-over.
    None where the orders do not tell: the counted trials of superblocks all follow their own arm's."""
    if unit.exposed.shape[-1] < blocks or unit.unit != "blocks" or len(unit.direct):
        return None
    exposed = unit.exposed[..., :blocks]
    if onto is not None:
        exposed = exposed[:1] * np.eye(2)[onto][:, None]
    contrast = exposed[:, 1] - exposed[:, 0]
    order = (
        np.argsort(np.array(unit.hosts[:blocks]), kind="stable")
        if unit.hosts
        else np.arange(blocks)
    )
    share = contrast.mean(axis=1)
    d, inside = (
        within_hosts(rows, unit.hosts)[..., order]
        for rows in (unit.d[:blocks], contrast)
    )
    # Trials of the baseline follow the variant's where they are second: what the place does is taken out. Those of the
    # variant follow one of its own only where they are first, and without the other half of them little could be seen.
    if onto == 0:
        place = np.where(unit.baseline_first[:blocks], 1.0, -1.0)[order]
        d, inside = (
            _without(rows, place - place.mean()) for rows in (drawn_in(d), inside)
        )
    if (
        onto == 1
    ):  # two levels, each with stalls of its own, which must not be taken for stalls of one level
        own = (exposed[0, 1] > HALF)[order]
        for group in (own, ~own):
            if group.any():
                d[group] = drawn_in(d[group])
    # The mean logarithms of the blocks, each host's by themselves; None where a value has none.
    exposure = exposed.mean(axis=1)
    logs = _worse(unit, blocks, stall=DEEP)
    if logs is None:
        levels = None
    else:
        level = logs.mean(axis=0)
        at = (unit.baseline_at[:blocks] + unit.variant_at[:blocks]) / 2
        before = np.full(blocks, np.inf) if unit.hosts else at - at.min() + 0.5
        level, exposure = (
            within_hosts(rows, unit.hosts)[..., order] for rows in (level, exposure)
        )
        levels = Levels(level, exposure, before)
    carry = carry_over(d, inside, share, levels, clean=onto == 1)
    return carry if carry.known else None


def _without(rows: Floats, nuisance: Floats) -> Floats:
    """``rows`` without their part of ``nuisance``, which has mean 0."""
    part = rows @ nuisance / max(float(nuisance @ nuisance), 1e-12)
    return np.asarray(rows - np.multiply.outer(part, nuisance))


def _worse(unit: Units, blocks: int, stall: float) -> Floats | None:
    """Logarithms of both arms' values, positive = worse; shape (2, blocks). None where one has none.

    A trial that did nothing, or falls behind the other of its block by the log-ratio ``stall`` more than usual, shows
    nothing about the speed of the machine; the other trial of the block stands in for it.
    """
    arms = np.array([unit.baseline_values[:blocks], unit.variant_values[:blocks]])
    if arms.shape[1] < blocks:
        return None
    # One trial of a block may have done nothing, or both; a median may lie between such blocks of either arm.
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = (-1.0 if unit.higher_is_better else 1.0) * np.log(arms)
        d = logs[1] - logs[0]
        middle = np.median(d)
    usual = middle if np.isfinite(middle) else 0.0
    logs[1] = np.where(d >= usual + stall, logs[0] + usual, logs[1])
    logs[0] = np.where(d <= usual - stall, logs[1] - usual, logs[0])
    return logs if np.isfinite(logs).all() else None


def within_hosts(values: Floats, hosts: Sequence[str]) -> Floats:
    """``values``, one per block (and in rows), less the mean of their host; as they are on one host."""
    if not hosts:
        return values
    _, which = np.unique(hosts[: values.shape[-1]], return_inverse=True)
    membership = np.eye(which.max() + 1)[which]
    return np.asarray(
        values - values @ (membership / membership.sum(axis=0)) @ membership.T
    )
