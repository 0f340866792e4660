"""Mode verdicts: a machine with two speeds: how often it runs at each, and how fast each is.

A mean over two speeds moves when either does, and a median not at all until it jumps: neither says what changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.stats.effect import hodges_lehmann
from iodelta.stats.modes import Modes, find_modes, shares
from iodelta.trial import Finding, Kind, Trial
from iodelta.verdict.model import Change
from iodelta.verdict.series import blocks_of

Floats = NDArray[np.float64]


class ModeChange(msgspec.Struct, frozen=True):
    """The speeds of two variants in one cell, in log IOPS per second, and what changed where both have two.

    ``share`` is the change of the share of seconds at the faster speed (0.1: ten points more), ``slow`` and ``fast``
    the relative changes of the speeds themselves; None where a variant has one speed, or blocks do not show both.
    """

    cell: str
    baseline: str
    variant: str
    before: Modes
    after: Modes
    share: Change | None
    slow: Change | None
    fast: Change | None
    blocks: int
    findings: tuple[Finding, ...] = ()


def mode_change(
    trials: Iterable[Trial],
    kind: Kind,
    baseline: str,
    variant: str,
    *,
    cell: str,
    level: float = 0.95,
) -> ModeChange:
    """Return the speeds of ``cell`` under both variants, from the per-second logs of blocks that hold both."""
    every = blocks_of(trial for trial in trials if trial.cell == cell).values()
    blocks = [
        (block[baseline], block[variant])
        for block in every
        if {baseline, variant} <= block.keys()
    ]
    pairs = [(_log_seconds(old, kind), _log_seconds(new, kind)) for old, new in blocks]
    pairs = [(old, new) for old, new in pairs if old.size and new.size]
    before, after = (
        find_modes([old for old, _ in pairs]),
        find_modes([new for _, new in pairs]),
    )
    share = slow = fast = None
    if before.bimodal and after.bimodal:
        parts = np.array(
            [
                (shares(old, before.cuts[0]), shares(new, after.cuts[0]))
                for old, new in pairs
            ]
        )
        share, slow, fast = (
            _change(parts[:, 1, at] - parts[:, 0, at], level, relative=at > 0)
            for at in range(3)
        )
    findings = _findings(
        before, after, f"cell {cell}, {kind}, {variant}", baseline, variant, bool(pairs)
    )
    return ModeChange(
        cell, baseline, variant, before, after, share, slow, fast, len(pairs), findings
    )


def _log_seconds(runs: Sequence[Trial], kind: Kind) -> Floats:
    """Log IOPS of every second with any I/O, of all runs of one variant in one block."""
    seconds = np.array(
        list(
            chain.from_iterable(trial.series.get(f"{kind}.iops", ()) for trial in runs)
        ),
        dtype=float,
    )
    return np.asarray(np.log(seconds[np.isfinite(seconds) & (seconds > 0)]))


def _change(differences: Floats, level: float, *, relative: bool) -> Change | None:
    known = differences[np.isfinite(differences)]
    if not known.size:
        return None
    estimate = hodges_lehmann(known, level)
    ends = [
        math.expm1(end) if relative else end
        for end in (estimate.low, estimate.high)
        if math.isfinite(end)
    ]
    value = math.expm1(estimate.value) if relative else estimate.value
    return Change(value, ends[0] if ends else None, ends[-1] if ends else None, level)


def _findings(
    before: Modes, after: Modes, place: str, baseline: str, variant: str, logged: bool
) -> tuple[Finding, ...]:
    if not logged:
        why, remedy = (
            "no block holds per-second IOPS of both variants",
            "keep fio's IOPS logs",
        )
        return (Finding("modes.no-logs", "note", place, why, remedy),)
    if before.bimodal == after.bimodal:
        return ()
    name, other = (variant, baseline) if after.bimodal else (baseline, variant)
    return (
        Finding(
            "modes.one-sided",
            "warning",
            place,
            f"{name} runs at two speeds and {other} at one: a single number for the change hides that",
            "look at the per-second log; cpu frequency, caches and garbage collection have speeds",
        ),
    )
