"""What the machine puts into the blocks of one comparison: carry-over from trial to trial, and two speeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import Carry, carry_rows
from iodelta.stats.speeds import within_speed
from iodelta.verdict.units import Units

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Machine:
    """In the first blocks of a comparison: the carry-over, None where the orders do not tell; what two speeds add to
    each log-ratio, and whether the machine has two."""

    carry: Carry | None
    added: Floats
    two_speeds: bool


def machine_of(unit: Units, blocks: int) -> Machine:
    """What the machine put into the first ``blocks`` log-ratios."""
    carry = _carry(unit, blocks)
    alone = Machine(carry, np.zeros(blocks), two_speeds=False)
    old, new = unit.baseline_values[:blocks], unit.variant_values[:blocks]
    if len(old) < blocks or not (np.isfinite(old) & np.isfinite(new) & (old > 0) & (new > 0)).all():
        return alone
    if carry is not None and carry.shown[0]:  # what a trial leaves to the next one makes two levels, too
        return alone
    sign = -1.0 if unit.higher_is_better else 1.0
    logs = sign * np.log([old, new])
    level = logs.mean(axis=0) - within_hosts(logs.mean(axis=0), unit.hosts)  # hosts may differ in speed: not one in two
    added, two = within_speed((logs[0] - level)[None, :], (logs[1] - level)[None, :])
    return Machine(carry, added[0], bool(two[0]))


def _carry(unit: Units, blocks: int) -> Carry | None:
    """The carry-over; over hosts from what differs inside each, since a host's own change is no carry-over."""
    if len(unit.contrast) < blocks or unit.unit != "blocks":
        return None
    d, contrast = unit.d[:blocks], unit.contrast[:blocks]
    share = contrast.mean()
    inside = within_hosts(contrast, unit.hosts) + share
    found = carry_rows(within_hosts(d, unit.hosts)[None, :], inside[None, :])
    return found if np.isfinite(found.half[0]) else None


def within_hosts(values: Floats, hosts: Sequence[str]) -> Floats:
    """``values``, one per block, less the mean of their host; as they are on one host."""
    if not hosts:
        return values
    _, which = np.unique(hosts[: len(values)], return_inverse=True)
    means = np.bincount(which, weights=values) / np.bincount(which)
    return np.asarray(values - means[which])
