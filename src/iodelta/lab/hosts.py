"""Several hosts in one experiment: which of them makes a block, and what that many hosts can decide."""

from __future__ import annotations

import math

from iodelta.experiment import Experiment
from iodelta.plural import plural
from iodelta.trial import Finding
from iodelta.verdict import Rules

ENOUGH = 2.0
"""Hosts are few where a change must be this many times as sure as on one machine."""


def host_of(experiment: Experiment, block: int) -> str:
    """Name of the machine that makes a block; empty for this one.

    Blocks go to hosts in pairs: older plans drew the orders of two blocks at once, and each host was to see both. Every
    block now has a draw of its own, but a folder must continue as it began.
    """
    names = experiment.machines
    if not names:
        return ""
    return names[block // 2 % len(names)]


def reach(experiment: Experiment, rules: Rules, blocks: int) -> Finding | None:
    """None when ``blocks`` over these hosts can give a verdict; else a finding with the reason and what it takes."""
    if len(experiment.machines) < 2:
        return None
    # Imported here: plans for one host do not need it.
    from iodelta.stats.hosts import FEWEST_BLOCKS, smallest_t

    counted = _counted(experiment, blocks, FEWEST_BLOCKS)
    if counted < 2:
        needed = next(
            n for n in range(1, 10**6) if _counted(experiment, n, FEWEST_BLOCKS) > 1
        )
        return Finding(
            "verdict.few-host-blocks",
            "hard",
            "machine",
            f"no verdict is possible: a host counts from its {FEWEST_BLOCKS}th block, and "
            f"{plural(blocks, 'block')} over "
            f"{plural(len(experiment.machines), 'host')} let {counted} of them count; a mean over hosts needs two",
            f"plan for at least {plural(needed, 'block')} per cell: a larger budget, shorter trials or fewer hosts",
        )
    level = rules.spendable / 2
    t, limit = smallest_t(counted, level), smallest_t(10**6, level)
    if t <= ENOUGH * limit:
        return None
    needed = next(n for n in range(2, 1000) if smallest_t(n, level) <= ENOUGH * limit)
    spread = math.log1p(rules.margin) * math.sqrt(blocks) / t
    return Finding(
        "verdict.few-hosts",
        "warning",
        "machine",
        f"{plural(counted, 'host')} hardly ever give a verdict: their mean change must be {t:.0f} "
        "standard errors from 0 (on one "
        f"machine {limit:.1f}), so {plural(blocks, 'block')} settle {100 * rules.margin:g} % only where "
        "they spread by less than "
        f"{100 * spread:.1g} % and all hosts change alike",
        f"name at least {plural(needed, 'host')}, or ask about one host at a time",
    )


def _counted(experiment: Experiment, blocks: int, fewest: int) -> int:
    """Hosts that make at least so many of the first ``blocks`` blocks."""
    made = [host_of(experiment, block) for block in range(blocks)]
    return sum(made.count(name) >= fewest for name in experiment.machines)
