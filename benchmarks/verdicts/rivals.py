"""What other rules say of the same experiments: of the very trials that were judged, and of trials of the same machine
in the order their tools use, all of the baseline and then all of the variant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.verdicts.experiments import Setup, printed
from benchmarks.verdicts.measures import Seen
from benchmarks.verdicts.peers import RULES, Rule

Floats = NDArray[np.float64]
Signals = NDArray[np.int8]

FIXED = 0.05
"""The change at which a fixed threshold speaks."""

TESTS = {"Welch t": "Welch t", "benchstat U": "Mann-Whitney (benchstat)", "otava split": "otava"}
"""Rules of ``peers``, and their names in the table."""

SAME, AFTER = "same trials", "A then B"

NAMES = (*TESTS.values(), "fixed 5 %")
RIVALS = (*((name, SAME) for name in NAMES if name != "otava"), *((name, AFTER) for name in NAMES))
"""Rules and orders; otava reads one history, and interleaved trials are none."""


def rivals(seen: Sequence[Seen], rng: np.random.Generator) -> dict[str, tuple[int, int, int]]:
    """By rule and order: in how many experiments it says worse, better, and either, of any comparison."""
    setup = seen[0].setup
    comparisons = {
        SAME: [_judged(seen, place) for place in range(len(seen[0].series))],
        AFTER: [_one_by_one(seen, cell, setup, rng) for cell in range(setup.cells)],
    }
    found = {}
    for name, order in RIVALS:
        said = np.array([_signals(name, old, new, rng) for old, new in comparisons[order]])
        worse, better = (said > 0).any(axis=0), (said < 0).any(axis=0)
        found[f"{name}, {order}"] = (int(worse.sum()), int(better.sum()), int((worse | better).sum()))
    return found


def _judged(seen: Sequence[Seen], place: int) -> tuple[Floats, Floats]:
    """Both arms of one comparison, the larger the worse, shape (experiments, blocks)."""
    sign = -1.0 if seen[0].series[place].metric.better == "higher" else 1.0
    old = np.array([one.series[place].baseline_values for one in seen])
    new = np.array([one.series[place].variant_values for one in seen])
    return sign * old, sign * new


def _one_by_one(seen: Sequence[Seen], cell: int, setup: Setup, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Half of the run without the variant and half with it: what it changes, its stalls, and what it leaves to the
    trial after it."""
    machine = np.array([one.cells[cell].machine for one in seen])
    half = machine.shape[1] // 2
    old, new = machine[:, :half], machine[:, half : 2 * half]
    own = (1 + setup.change) * np.exp(setup.spread * rng.standard_normal(new.shape))
    own = own * np.where(rng.random(new.shape) < setup.stalls, 1 - setup.depth, 1.0)
    own[:, 1:] *= 1 - setup.debt
    if setup.binned:  # the values are latencies
        return printed(1e5 * old)[0], printed(1e5 * new * own)[0]
    return -old, -new * own


def _signals(name: str, old: Floats, new: Floats, rng: np.random.Generator) -> Signals:
    """1 worse, -1 better, 0 nothing, per experiment."""
    with np.errstate(all="ignore"):  # arms that never differ have no spread to divide by
        if name == "fixed 5 %":
            change = (new.mean(axis=1) - old.mean(axis=1)) / np.abs(old.mean(axis=1))
            return np.asarray(np.where(np.abs(change) > FIXED, np.sign(change), 0), dtype=np.int8)
        rule = next(rule for rule in RULES if TESTS.get(rule.name) == name)
        window = _window(rule, old.shape[1])
        return rule.signals(old[:, old.shape[1] - window :], new[:, :window], rng)


def _window(rule: Rule, trials: int) -> int:
    """The trials of each arm next to the change that the rule looks at."""
    return trials if rule.most is None else min(trials, rule.most)
