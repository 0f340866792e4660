"""Rare stalls in the total: what stalls that a run's trials do not exclude could add to it.

The interval of a total comes from swapping the arms of blocks. It knows the size of three stalls in 80 trials, but not
that there might as well have been eight. Where one arm stalled more often than the other, the interval is therefore
extended to the total that this arm would have if as many of its trials as are not excluded stalled, at the size seen.
Where both stalled alike the machine is the cause, and swapping the arms covers that already.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iodelta.stats.carry import CLEAR, drawn_in
from iodelta.stats.effect import Estimate, hodges_lehmann
from iodelta.stats.special import ndtri
from iodelta.stats.stalls import excluded, likelier_by_arm
from iodelta.stats.total import Arms, log_total, mean_with
from iodelta.verdict.units import Units

Floats = NDArray[np.float64]

UNKNOWN = 0.5
"""The exposure of a trial that followed neither arm."""


def with_stalls(
    total: Estimate, typical: Estimate, unit: Units, blocks: int
) -> Estimate:
    """``total`` extended by the stalls that are not excluded, and by the uncertainty of a typical trial."""
    more = _unseen(unit, blocks)
    low, high = total.low, total.high
    if more > 0.0:
        high = max(high, total.value + more + (typical.high - typical.value))
    elif more < 0.0:
        low = min(low, total.value + more - (typical.value - typical.low))
    return Estimate(total.value, low, high, total.level, total.n)


def stalls_fit(unit: Units, d: Floats, blocks: int, tail: float, margin: float) -> bool:
    """Return whether the total stays inside ``margin`` with the stalls that are not excluded. ``d`` are the log-ratios
    judged and ``tail`` the one-sided level of the look."""
    low, high = _reach(unit, d, blocks, tail)
    room = margin - unit.resolution
    return _unseen(unit, blocks) == 0.0 or (-room <= low and high <= room)


def stalls_undo(
    unit: Units, d: Floats, blocks: int, tail: float, *, worse: bool
) -> bool:
    """Return whether the stalls that are not excluded could take a change of the total back: those of the arm that it
    favours. ``d`` and ``tail`` as in ``stalls_fit``."""
    more = _unseen(unit, blocks)
    low, high = _reach(unit, d, blocks, tail)
    return (worse and more < 0.0 and low <= 0.0) or (
        not worse and more > 0.0 and high >= 0.0
    )


def calm_blocks(unit: Units, blocks: int) -> NDArray[np.bool_]:
    """In which blocks neither trial stalled."""
    variant, baseline = unit.stalled_by(blocks) or ((), ())
    stalled = np.isin(unit.variant_at[:blocks], variant) | np.isin(
        unit.baseline_at[:blocks], baseline
    )
    return np.asarray(~stalled)


def taken_by_stalls(unit: Units, blocks: int, later: int, tail: float) -> float:
    """Return how much of a margin the stalls of the first ``blocks`` blocks take from an equivalence at ``later``
    blocks, if none comes after them: what they do to the total, with its error at the one-sided level ``tail`` or with the stalls
    that are not excluded then. All other trials count as their arm's mean: what they add is the noise's."""
    arms = _later(unit, blocks, later)
    if arms is None:
        return 0.0
    moved, error = _moved(unit, arms, blocks)
    return max(
        abs(moved) - float(ndtri(tail)) * error,
        abs(moved + _more(unit, arms, blocks)),
    )


def asked_by_stalls(unit: Units, blocks: int, later: int) -> float:
    """By how much (log-ratio) a typical trial must be better at ``later`` blocks for the total to be better, too, with
    the stalls that are not excluded then, if none comes after those of the first ``blocks`` blocks; 0 where the variant
    stalled no more often than the baseline."""
    arms = _later(unit, blocks, later)
    more = 0.0 if arms is None else _more(unit, arms, blocks)
    return 0.0 if arms is None or more <= 0.0 else _moved(unit, arms, blocks)[0] + more


def _later(unit: Units, blocks: int, later: int) -> Arms | None:
    """Return the arms at ``later`` blocks if no further trial stalls, all that did not at their arm's mean; None where
    none stalled, or one in every block."""
    calm = calm_blocks(unit, blocks)
    if calm.all() or not calm.any():
        return None
    columns = []
    for column in unit.arms(blocks).columns:
        mean = column[:, calm].mean()
        columns.append(
            np.hstack(
                [np.where(calm, mean, column), np.full((1, later - blocks), mean)]
            )
        )
    return Arms(*columns)


def _moved(unit: Units, arms: Arms, blocks: int) -> tuple[float, float]:
    """By how much the stalls of the first ``blocks`` blocks move the total of ``arms``, and its error."""
    calm = int(calm_blocks(unit, blocks).argmax())
    typical = [float(column[0, calm]) for column in arms.columns]
    usual = np.log(typical[1] / typical[0]) - np.log(typical[3] / typical[2])
    value, error = log_total(arms)
    return float(value[0] - usual), float(error[0])


def own_stalls(unit: Units, d: Floats, shown: float) -> bool:
    """Return whether the variant's own stalls make its total worse, which a carry-over that all trials share cannot do.

    The part of ``d`` that lies far from a typical log-ratio must be ``shown`` standard errors above 0 by itself, and
    the stalls must follow the arm of a trial rather than that of the trial before it, by the same odds as a change of
    its own.
    """
    blocks = len(d)
    stalled, beyond = unit.stalled_by(blocks), d - drawn_in(d)
    if stalled is None or beyond.mean() <= shown * beyond.std(ddof=1) / np.sqrt(blocks):
        return False
    lost = np.concatenate(
        [
            np.isin(unit.baseline_at[:blocks], stalled[1]),
            np.isin(unit.variant_at[:blocks], stalled[0]),
        ]
    )
    variant = np.repeat([False, True], blocks)
    # Under a memory of one trial, the first of ``MEMORIES``: 1 after the variant, 0 after the baseline.
    before = unit.exposed[0, :, :blocks].ravel()
    known = before != UNKNOWN
    return (
        likelier_by_arm(lost[known], variant[known], before[known] > UNKNOWN)
        >= CLEAR / blocks
    )


def _reach(unit: Units, d: Floats, blocks: int, tail: float) -> tuple[float, float]:
    """Return how far the total reaches with the stalls that are not excluded, without its own interval."""
    value = float(log_total(unit.arms(blocks))[0][0])
    alone = Estimate(value, value, value, 1.0 - 2.0 * tail, blocks)
    bounds = with_stalls(alone, hodges_lehmann(d, 1.0 - 2.0 * tail), unit, blocks)
    return bounds.low, bounds.high


def _unseen(unit: Units, blocks: int) -> float:
    """Return the log-ratio that stalls not excluded could add to the total: positive where the variant stalled more
    often.
    """
    return _more(unit, unit.arms(blocks), blocks)


def _more(unit: Units, arms: Arms, blocks: int) -> float:
    """As ``_unseen`` in ``arms`` that go on from the first ``blocks`` blocks without another stall."""
    stalled, trials = unit.stalled_by(blocks), arms.old.shape[1]
    if stalled is None or len(stalled[0]) == len(stalled[1]):
        return 0.0
    by_variant = len(stalled[0]) > len(stalled[1])
    numbers, at = (
        (stalled[0], unit.variant_at) if by_variant else (stalled[1], unit.baseline_at)
    )
    # A rate's total is baseline over variant, a latency's variant over baseline.
    values, weights = (
        (arms.old, arms.old_weight)
        if by_variant == unit.higher_is_better
        else (arms.new, arms.new_weight)
    )
    places = np.zeros(trials, dtype=bool)
    places[:blocks] = np.isin(at[:blocks], numbers)
    share = max(excluded(len(numbers), trials), float(places.mean()))
    seen = mean_with(values[0], weights[0], places, float(places.mean()))
    more = abs(float(np.log(mean_with(values[0], weights[0], places, share) / seen)))
    return more if by_variant else -more
