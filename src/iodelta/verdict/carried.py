"""Carried: the words that are withheld because carry-over could have made them."""

from __future__ import annotations

import math

import numpy as np

from iodelta.stats.carry import Carry, drawn_in, own_change
from iodelta.stats.effect import hodges_lehmann
from iodelta.stats.total import log_total
from iodelta.verdict.explain import SWITCH
from iodelta.verdict.hosts import total_over, typical_over
from iodelta.verdict.machine import Machine
from iodelta.verdict.model import Basis, Word
from iodelta.verdict.rare import own_stalls
from iodelta.verdict.rules import Rules
from iodelta.verdict.units import Units

SHOWN_WITHOUT = 2.4
"""Standard errors from 0 that an improvement must keep once the carry-over that may have made it is taken off."""

ALONE = 1.8
"""Standard errors by which the trials of the variant that followed one of its own, a quarter of them, must show an
improvement by themselves."""

WITHIN = 1.0
"""Standard errors of a change without a carry-over that lasts, or that only the variant's trials show, which must lie
inside the margin, too, for ``equivalent``."""

SLIGHT = 0.25
"""A carry-over of at most this share of the change, or of the margin, does not withhold a word."""


def made_by_carry(
    unit: Units,
    word: Word,
    basis: Basis,
    machine: Machine,
    blocks: int,
    rules: Rules,
) -> str:
    """Return why carry-over could have made the word: empty where it could not, ``SWITCH``, or ``carry``. In
    superblocks, whether the variant's lasting state may overturn it.

    A word is compared with the change that it rests on: where the variant stalls now and then, its typical change is
    about 0 and has either sign. In plain blocks a word must survive every shape, onto all trials under every memory,
    onto the baseline's only, onto the variant's only:

    - ``equivalent`` does not survive a carry-over that is shown and not slight, nor a change that leaves the margin
      once the carry-over is taken off.
    - A regression does not survive where the blocks fit a carry-over that made all of it (a warm cache) as well as a
      change of its own, unless stalls of its own made it; nor where they show a gain of the baseline's trials alone, or
      a loss of the variant's right after each change of variant that those after its own do not share.
    - An improvement must be shown without the carry-over, and no carry-over may favour it; the variant's trials that
      followed one of its own must show it by themselves. More is required of it because the variant that does the
      damage gains from carry-over.
    """
    if rules.carry == "superblocks":
        return "carry" * _not_reached(unit, word, basis, machine, blocks, rules)
    carry = machine.carry
    if rules.carry != "tested" or carry is None:
        return ""
    change, noise = _plain(unit, basis, machine, blocks)
    margin = math.log1p(rules.margin)
    baseline, variant = machine.onto(0), machine.onto(1)
    if word == "regression":
        carried = carry.share * carry.value
        own = own_change(
            np.full(carried.shape, change),
            noise,
            carried,
            np.abs(carry.share) * carry.error,
            blocks,
        )
        if (
            basis == "total"
            and (carried < change).all()
            and own_stalls(unit, unit.d[:blocks], SHOWN_WITHOUT)
        ):
            return ""
        if not own.all() or _gained(baseline, change):
            return "carry"
        if machine.alone is None or variant is None or not variant.shown[0]:
            return ""
        alone, error = machine.alone
        switched = change - alone > SLIGHT * change and alone < ALONE * error
        return SWITCH * switched
    limit = SLIGHT * (margin if word == "equivalent" else abs(change))
    if any(
        _may_be(one, word, change, noise, limit, margin)
        for one in (carry, baseline)
        if one is not None
    ):
        return "carry"
    if machine.alone is None:  # none of its trials followed one of its own yet
        return SWITCH * (word == "improvement")
    alone, error = machine.alone
    if word == "equivalent":
        stepped = variant is not None and bool(variant.shown[0])
        return SWITCH * (abs(alone) + WITHIN * error * stepped > margin)
    return SWITCH * (-alone <= ALONE * error)


def _gained(carry: Carry | None, change: float) -> bool:
    """Return whether the baseline alone shows a gain from trials of the variant, of more than a slight part of the
    regression."""
    if carry is None:
        return False
    carried = carry.share * carry.value
    return bool((carry.shown & (carried > SLIGHT * change)).any())


def _may_be(
    carry: Carry, word: Word, change: float, noise: float, limit: float, margin: float
) -> bool:
    """Return whether an improvement, or ``equivalent``, may be the work of ``carry`` under one of its memories."""
    adjusted = carry.adjusted(change)
    most = np.abs(carry.share) * (np.abs(carry.value) + carry.half)
    shown = carry.shown & (most > limit)
    error = np.hypot(noise, np.abs(carry.share) * carry.error)
    if word == "equivalent":
        # A debt of one trial is known best; the lasting ones must leave room for their error.
        slack = np.where(np.arange(len(error)) > 0, WITHIN, 0.0) * error
        return bool((shown | (np.abs(adjusted) + slack > margin)).any())
    favoured = shown & (carry.share * carry.value < 0)
    return bool((favoured | (-adjusted <= SHOWN_WITHOUT * error)).any())


def _not_reached(
    unit: Units, word: Word, basis: Basis, machine: Machine, blocks: int, rules: Rules
) -> bool:
    """Return whether counted trials were still approaching a state in which ``equivalent``, or the sign of a change,
    is wrong under some memory, by the errors of what is still to come."""
    if machine.ahead is None or not machine.ahead.shown:
        return False
    change, noise = _plain(unit, basis, machine, blocks)
    deployed = machine.ahead.deployed(change)
    if word == "equivalent":
        return bool((np.abs(deployed) > math.log1p(rules.margin)).any())
    side = 1.0 if word == "regression" else -1.0
    moved = machine.ahead.value != 0.0
    least = side * deployed - np.where(
        moved, np.hypot(2 * noise, machine.ahead.half), 0.0
    )
    return bool((least <= 0.0).any())


def _plain(
    unit: Units, basis: Basis, machine: Machine, blocks: int
) -> tuple[float, float]:
    """Return the change with its carry-over, and its standard error; over hosts their mean."""
    hosts = unit.hosts[:blocks]
    if basis == "total":
        arms = unit.arms(blocks)
        mean = total_over(arms, hosts) if hosts else None
        value, error = (mean.value, mean.error) if mean is not None else log_total(arms)
        return float(value[0]), float(error[0])
    d = unit.d[:blocks] - machine.added
    mean = typical_over(d, hosts) if hosts else None
    if mean is not None:
        return float(mean.value[0]), float(mean.error[0])
    # Assumption: the pseudo-median is the typical change even where carry-over or stalls make d bimodal, and a median
    # would jump between the modes. A stall is drawn in, as where the carry-over is estimated: one trial without I/O
    # must not make a typical change doubtful.
    return hodges_lehmann(d, 0.5).value, float(drawn_in(d).std()) / math.sqrt(len(d))
