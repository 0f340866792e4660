"""The order of trials, decided before the first one and from one seed.

A block is one trial of every variant, adjacent in time; the order is randomised so that drift, autocorrelation
and mode switches hit all variants alike (Abedi & Brecht 2017, "randomized multiple interleaved trials"). The order of
every block is one draw by itself, uniform over the permutations, so that the null of every test is known exactly: two
orders of one block are equally likely whatever the other blocks are. In a superblock each variant runs several times in
a row, first the conditioning trials that do not count. Where a boot serves all cells, all have one order. Within a
round, conditions are the outer factor and cells are shuffled.

Plans of schema 1 have ``mirrored`` orders: blocks in pairs, the second in the reverse order of the first, two variants
ABBA or BAAB, more the rows of random cyclic Latin squares. Such an experiment goes on with them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal

import msgspec

from iodelta.experiment import Experiment


class Slot(msgspec.Struct, frozen=True):
    """One planned block: a cell, its number, and the order of the variants; in a superblock each is there several times
    in a row."""

    cell: str
    block: int
    order: tuple[str, ...]

    def conditioning(self, position: int) -> bool:
        """Return whether the trial at this place does not count: its variant has another one after it."""
        return self.to_come(position) > 0

    def to_come(self, position: int) -> int:
        """Return how many trials its variant has in this block after the one at this place."""
        return self.order[position + 1 :].count(self.order[position])


class Schedule(msgspec.Struct, frozen=True):
    """All rounds; in each, every cell has one block. A decided cell's later slots are left out when it runs."""

    seed: int
    rounds: tuple[tuple[Slot, ...], ...]

    def slots(self) -> Iterator[Slot]:
        """Yield every block in running order."""
        for round_ in self.rounds:
            yield from round_


def variant_orders(
    variants: Sequence[str], count: int, rng: random.Random
) -> list[tuple[str, ...]]:
    """``count`` orders of ``variants``, each a draw by itself that is uniform over the permutations."""
    return [tuple(rng.sample(variants, len(variants))) for _ in range(count)]


def mirrored_orders(
    variants: Sequence[str], count: int, rng: random.Random
) -> list[tuple[str, ...]]:
    """Return the orders of plans of schema 1: ABBA or BAAB for two variants, for more the rows of random cyclic Latin
    squares, each followed by its reverse."""
    orders: list[tuple[str, ...]] = []
    names = list(variants)
    while len(orders) < count:
        rng.shuffle(names)
        rows = [tuple(names[shift:] + names[:shift]) for shift in range(len(names))]
        if len(names) == 2:
            rows = rows[:1]  # the other is its reverse
        else:
            rng.shuffle(rows)
        for row in rows:
            orders += (row, row[::-1])
    return orders[:count]


def make_schedule(
    experiment: Experiment,
    seed: int,
    rounds: int,
    *,
    order: Literal["mirrored", "independent"] = "independent",
    runs: int = 1,
) -> Schedule:
    """``rounds`` blocks of every cell, ``runs`` trials of a variant in a row. The same seed gives the same schedule
    everywhere, and a longer one begins with the shorter."""
    variants = [variant.name for variant in experiment.variants]
    orders = {}
    for cell in experiment.cells:
        shared = cell.condition if experiment.reboots else cell.name
        if order == "mirrored":
            drawn = mirrored_orders(variants, rounds, random.Random(f"{seed}/{shared}"))
        else:
            drawn = variant_orders(
                variants, rounds, random.Random(f"{seed}/order/{shared}")
            )
        orders[cell.name] = [in_a_row(one, runs) for one in drawn]
    planned = []
    for block in range(rounds):
        cells = _cells_in_order(experiment, random.Random(f"{seed}/{block}"))
        planned.append(tuple(Slot(cell, block, orders[cell][block]) for cell in cells))
    return Schedule(seed, tuple(planned))


def _cells_in_order(experiment: Experiment, rng: random.Random) -> list[str]:
    """Return the cells of a round: conditions in random order, and in each its cells."""
    conditions = [condition.name for condition in experiment.conditions]
    rng.shuffle(conditions)
    ordered = []
    for condition in conditions:
        cells = [cell.name for cell in experiment.cells if cell.condition == condition]
        rng.shuffle(cells)
        ordered += cells
    return ordered


def in_a_row(order: Sequence[str], runs: int) -> tuple[str, ...]:
    """Every variant ``runs`` times in a row: A A B B in the superblock of two."""
    return tuple(chain.from_iterable([name] * runs for name in order))


def repeated(slot: Slot, attempt: int, seed: int) -> Slot:
    """Return the slot for the ``attempt``-th repeat of a spoilt block (0: as planned): a fresh order from the seed."""
    if attempt == 0:
        return slot
    names = sorted(set(slot.order))
    random.Random(f"{seed}/{slot.cell}/{slot.block}/{attempt}").shuffle(names)
    return Slot(slot.cell, slot.block, in_a_row(names, len(slot.order) // len(names)))


def trial_seed(
    seed: int, slot: Slot, attempt: int, variant: str, *, fresh: bool, to_come: int = 0
) -> int:
    """fio's random seed for one trial: its own by default, else one for the whole experiment. ``to_come`` trials of
    its variant follow in the block."""
    if not fresh:
        return random.Random(seed).getrandbits(31)
    part = {0: "", 1: "/conditioning"}.get(to_come, f"/conditioning/{to_come}")
    return random.Random(
        f"{seed}/{slot.cell}/{slot.block}/{attempt}/{variant}{part}"
    ).getrandbits(31)
