"""The order of runs, from their time stamps, and the risk in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Literal

import msgspec

from iodelta.ingest.layouts.model import Entry
from iodelta.ingest.model import Run
from iodelta.trial import Finding

UNEVEN = 0.01
"""Probability of a random order below which an uneven order does not count as random."""

Order = Literal["interleaved", "one after the other", "mixed", "unknown"]


class Ordered(msgspec.Struct, frozen=True):
    """The order of the runs of two variants of a cell; ``phrase`` gives it in letters, A for the baseline.

    ``blocks`` are adjacent pairs (baseline, variant) in time where ``order`` is interleaved; one run may be left over.
    """

    order: Order
    phrase: str
    blocks: tuple[tuple[Entry, Entry], ...] = ()

    @property
    def baseline_first(self) -> int:
        """In how many pairs the baseline went first."""
        return sum(
            (ended(first.run) or 0.0) < (ended(other.run) or 0.0)
            for first, other in self.blocks
        )

    @property
    def as_drawn(self) -> bool:
        """Return whether the first of each pair varies as in a random order; False where one variant was first in all
        pairs.

        Two-sided sign test: an order as uneven as this one is drawn in at least ``UNEVEN`` of cases.
        """
        pairs, first = len(self.blocks), self.baseline_first
        fewer = min(first, pairs - first)
        if not fewer:
            return False
        orders = sum(math.comb(pairs, count) for count in range(fewer + 1))
        as_uneven: float = orders / 2 ** (pairs - 1)
        return as_uneven >= UNEVEN


def ended(run: Run) -> float | None:
    """When a run ended, Unix seconds; its start where only that is known."""
    return run.ended if run.ended is not None else run.started


def order_of(baseline: Sequence[Entry], variant: Sequence[Entry]) -> Ordered:
    """The order of the runs of two variants."""
    entries = [*baseline, *variant]
    ends = (ended(entry.run) for entry in entries)
    times = [time for time in ends if time is not None]
    clocks = {entry.run.local_time for entry in entries}
    if len(set(times)) < len(entries) or len(clocks) > 1:
        return Ordered("unknown", "the results do not show the order of the runs")
    all_a, all_b = "A" * len(baseline), "B" * len(variant)
    sides = sorted(zip(times, all_a + all_b, entries, strict=True), key=itemgetter(0))
    runs = [(side, entry) for _, side, entry in sides]
    letters = "".join(map(itemgetter(0), runs))
    blocks = _pairs(runs)
    shown = letters if len(letters) <= 24 else f"{letters[:21]}..."
    left_over = len(letters) - 2 * len(blocks)
    if left_over <= 1 and len(blocks) > 1:
        return Ordered("interleaved", shown, blocks)
    if letters in (all_a + all_b, all_b + all_a):
        return Ordered("one after the other", shown)
    return Ordered("mixed", shown)


def _pairs(runs: Sequence[tuple[str, Entry]]) -> tuple[tuple[Entry, Entry], ...]:
    """Neighbours in time, two by two, where they are of different sides: the baseline's first."""
    pairs = []
    for (side, first), (other, second) in zip(runs[::2], runs[1::2], strict=False):
        if side != other:
            pairs.append((first, second) if side == "A" else (second, first))
    return tuple(pairs)


def order_finding(ordered: Ordered, place: str) -> Finding | None:
    """Return the risk in the order; None if the runs were interleaved."""
    remedy = "run the variants interleaved, in random order: drift and warm-up then affect both equally"
    if ordered.order == "interleaved":
        return None
    if ordered.order == "unknown":
        return Finding("order.unknown", "warning", place, ordered.phrase, remedy)
    what = "the runs are not in pairs"
    if ordered.order == "one after the other":
        what = "all runs of one variant came before all of the other"
    text = f"{what} ({ordered.phrase})"
    return Finding("order.not-interleaved", "warning", place, text, remedy)
