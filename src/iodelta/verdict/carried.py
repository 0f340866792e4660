"""Carried: the words that are withheld because carry-over could have made them."""

from __future__ import annotations

import math

import numpy as np

from iodelta.stats.carry import Carry, drawn_in, own_change
from iodelta.stats.effect import hodges_lehmann
from iodelta.stats.total import log_total
from iodelta.verdict.hosts import total_over, typical_over
from iodelta.verdict.machine import Machine
from iodelta.verdict.model import Basis, Word
from iodelta.verdict.rare import own_stalls
from iodelta.verdict.rules import Rules
from iodelta.verdict.units import Units

SHOWN_WITHOUT = 2.4
"""Standard errors from 0 that an improvement must keep once the carry-over that may have made it is taken off."""

SLIGHT = 0.25
"""A carry-over of at most this share of the change, or of the margin, does not withhold a word."""


def made_by_carry(
    unit: Units,
    word: Word,
    basis: Basis,
    machine: Machine | None,
    blocks: int,
    rules: Rules,
) -> bool:
    """Whether carry-over could have made the word; in superblocks, whether the variant's lasting state may overturn it.

    A word is compared with the change that it rests on: where the variant stalls now and then, its typical change is
    about 0 and has either sign. In plain blocks a word must survive every memory:

    - ``equivalent`` does not survive a carry-over that is shown and not slight, nor a change that leaves the margin
      once the carry-over is taken off.
    - A regression does not survive where the blocks fit a carry-over that made all of it (a warm cache) as well as a
      change of its own, unless stalls of its own made it.
    - An improvement must be shown without the carry-over, and no carry-over may favour it. More is required of it
      because the variant that does the damage gains from carry-over.

    So far any trial may suffer. Perhaps only those of the baseline do: three of four follow a trial of the variant, and
    what both have in common shows almost nothing of it. An improvement and ``equivalent`` must survive that, too; a
    regression only where it is seen, because otherwise half of the real regressions would be withheld.
    """
    if machine is None:
        return False
    if rules.carry == "superblocks":
        return _not_reached(unit, word, basis, machine, blocks, rules)
    carry = machine.carry
    if rules.carry != "tested" or carry is None:
        return False
    change, noise = _plain(unit, basis, machine, blocks)
    if word == "regression":
        carried = carry.share * carry.value
        own_blocks = own_change(
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
            return False
        return not own_blocks.all() or _gained(machine.onto_baseline, change)
    margin = math.log1p(rules.margin)
    limit = SLIGHT * (margin if word == "equivalent" else abs(change))
    return any(
        _may_be(one, word, change, noise, limit, margin)
        for one in (carry, machine.onto_baseline)
        if one is not None
    )


def _gained(carry: Carry | None, change: float) -> bool:
    """Whether the baseline alone shows a gain from trials of the variant, of more than a slight part of the
    regression."""
    if carry is None:
        return False
    carried = carry.share * carry.value
    return bool((carry.shown & (carried > SLIGHT * change)).any())


def _may_be(
    carry: Carry, word: Word, change: float, noise: float, limit: float, margin: float
) -> bool:
    """Whether an improvement, or ``equivalent``, may be the work of ``carry`` under one of its memories."""
    adjusted = carry.adjusted(change)
    most = np.abs(carry.share) * (np.abs(carry.value) + carry.half)
    shown = carry.shown & (most > limit)
    if word == "equivalent":
        return bool((shown | (np.abs(adjusted) > margin)).any())
    favoured = shown & (carry.share * carry.value < 0)
    asked = SHOWN_WITHOUT * np.hypot(noise, np.abs(carry.share) * carry.error)
    return bool((favoured | (-adjusted <= asked)).any())


def _not_reached(
    unit: Units, word: Word, basis: Basis, machine: Machine, blocks: int, rules: Rules
) -> bool:
    """Whether counted trials were still approaching a state in which ``equivalent``, or the sign of a change, is wrong
    under some memory."""
    if machine.ahead is None or not machine.ahead.shown:
        return False
    change, _ = _plain(unit, basis, machine, blocks)
    deployed = machine.ahead.deployed(change)
    if word == "equivalent":
        return bool((np.abs(deployed) > math.log1p(rules.margin)).any())
    return bool((deployed * (1.0 if word == "regression" else -1.0) <= 0.0).any())


def _plain(
    unit: Units, basis: Basis, machine: Machine, blocks: int
) -> tuple[float, float]:
    """The change with its carry-over, and its standard error; over hosts their mean."""
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
