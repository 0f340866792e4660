"""The order of trials: one uniform draw a block, fixed by its seed, never chosen by what was measured."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations
from math import factorial
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare

from iodelta.experiment import Cell, Condition, Design, Experiment, Target, Variant
from iodelta.lab.plan import Slot, make_schedule, repeated, trial_seed

SEEDS = st.integers(0, 2**31)

OLD_TWO = [("v1", "v0"), ("v0", "v1")] * 3
OLD_THREE = [tuple(f"v{n}" for n in order) for order in ("210", "012", "102", "201", "021", "120")]
"""As version 0.1 drew them for seed 42."""


def experiment(variants: int = 2, cells: int = 3, conditions: int = 1) -> Experiment:
    names = [f"condition{n}" for n in range(conditions)]
    return Experiment(
        question="",
        baseline="v0",
        margin=0.01,
        target=Target(),
        cells=tuple(Cell(f"{name}: cell{n}", name, ()) for name in names for n in range(cells)),
        variants=tuple(Variant(f"v{n}") for n in range(variants)),
        conditions=tuple(Condition(name) for name in names),
        design=Design(),
    )


def orders(
    variants: int, seed: int, rounds: int, order: Literal["mirrored", "independent"] = "independent"
) -> list[tuple[str, ...]]:
    """The orders of one cell, block after block."""
    made = make_schedule(experiment(variants, cells=1), seed, rounds, order=order)
    return [slot.order for slot in made.slots()]


@pytest.mark.parametrize("variants", [2, 3, 4])
def test_every_order_of_a_block_is_equally_likely(variants: int) -> None:
    found = Counter(orders(variants, 1, 240 * factorial(variants)))
    counts = [found[one] for one in permutations([f"v{n}" for n in range(variants)])]
    assert chisquare(counts).pvalue > 0.001, counts


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_the_order_of_a_block_says_nothing_of_the_blocks_after_it(lag: int) -> None:
    found = orders(3, 2, 4000)
    names = sorted(set(found))
    table = [[0] * len(names) for _ in names]
    for before, after in zip(found, found[lag:], strict=False):
        table[names.index(before)][names.index(after)] += 1
    assert chi2_contingency(table).pvalue > 0.001


def test_the_orders_of_two_cells_are_drawn_apart() -> None:
    by_cell: dict[str, list[str]] = {cell: [] for cell in ("0", "1")}  # cells may have the names of block numbers
    one = experiment(2, cells=2)
    cells = tuple(msgspec.structs.replace(cell, name=name) for cell, name in zip(one.cells, by_cell, strict=True))
    for slot in make_schedule(msgspec.structs.replace(one, cells=cells), 3, 2000).slots():
        by_cell[slot.cell].append(slot.order[0])
    same = sum(a == b for a, b in zip(*by_cell.values(), strict=True))
    assert abs(same - 1000) < 4 * 500**0.5


def test_a_superblock_that_is_repeated_is_a_superblock_with_seeds_of_its_own() -> None:
    slot = Slot("cell", 7, ("v1", "v1", "v0", "v0"))
    again = {repeated(slot, 1, seed).order for seed in range(40)}
    assert again == {("v0", "v0", "v1", "v1"), ("v1", "v1", "v0", "v0")}
    longer = repeated(Slot("cell", 7, ("v0",) * 4 + ("v1",) * 4), 1, 3)
    assert {longer.order[:4], longer.order[4:]} == {("v0",) * 4, ("v1",) * 4}
    assert [longer.to_come(place) for place in range(8)] == [3, 2, 1, 0] * 2
    seeds = {trial_seed(9, slot, 0, "v0", fresh=True, to_come=to_come) for to_come in range(4)}
    assert len(seeds) == 4


# --------------------------------------------------------------------------------------- plans of schema 1


def test_a_plan_made_before_goes_on_with_the_orders_that_it_had() -> None:
    assert orders(2, 42, 6, "mirrored") == OLD_TWO
    assert orders(3, 42, 6, "mirrored") == OLD_THREE


@given(SEEDS, st.integers(1, 30), st.integers(0, 30))
def test_a_longer_schedule_begins_with_the_shorter_so_an_extension_changes_nothing_before_it(
    seed: int, rounds: int, more: int
) -> None:
    one = experiment(3, cells=4, conditions=2)
    assert make_schedule(one, seed, rounds + more).rounds[:rounds] == make_schedule(one, seed, rounds).rounds


def test_the_order_of_a_seed_does_not_depend_on_the_version_of_python() -> None:
    first = make_schedule(experiment(3, cells=2), 42, 2).rounds[0]
    assert [(slot.cell, slot.order) for slot in first] == [
        ("condition0: cell0", ("v2", "v0", "v1")),
        ("condition0: cell1", ("v2", "v1", "v0")),
    ]


@given(SEEDS)
def test_a_round_has_every_cell_once_and_stays_under_a_condition_until_its_cells_are_done(seed: int) -> None:
    one = experiment(2, cells=4, conditions=3)
    for round_ in make_schedule(one, seed, 5).rounds:
        assert Counter(slot.cell for slot in round_) == Counter(cell.name for cell in one.cells)
        held = [slot.cell.split(":")[0] for slot in round_]
        changes = sum(before != after for before, after in pairwise(held))
        assert changes == 2, "a background load is started once a round, not for every block"


def test_cells_and_conditions_take_every_place_in_the_rounds() -> None:
    rounds = make_schedule(experiment(2, cells=3, conditions=2), 3, 200).rounds
    firsts = Counter(round_[0].cell for round_ in rounds)
    assert len(firsts) == 6
    assert min(firsts.values()) > 15


def test_a_block_that_is_made_again_gets_a_fresh_order_that_the_seed_decides() -> None:
    slot = Slot("cell", 7, ("v0", "v1"))
    assert repeated(slot, 0, 1) == slot
    assert repeated(slot, 2, 1) == repeated(slot, 2, 1)
    seconds = Counter(repeated(slot, 1, seed).order for seed in range(400))
    assert set(seconds) == {("v0", "v1"), ("v1", "v0")}
    assert min(seconds.values()) > 150


@pytest.mark.parametrize("fresh", [True, False])
def test_trials_have_offsets_of_their_own_unless_the_same_are_asked_for(fresh: bool) -> None:
    slots = make_schedule(experiment(2, cells=5), 9, 20).slots()
    seeds = {trial_seed(9, slot, 0, variant, fresh=fresh) for slot in slots for variant in slot.order}
    assert len(seeds) == (200 if fresh else 1)
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_where_a_boot_of_a_host_serves_all_cells_they_have_one_order_in_a_round() -> None:
    kernels = tuple(Variant(f"v{n}", {"kernel": f"6.{n}"}) for n in range(2))
    over_ssh = msgspec.structs.replace(experiment(2, 3, 2), variants=kernels, machines=("ssh:there",))
    for round_ in make_schedule(over_ssh, 1, 8).rounds:
        by_condition = {(slot.cell.partition(":")[0], slot.order) for slot in round_}
        assert len(by_condition) == 2, by_condition
    in_guests = msgspec.structs.replace(over_ssh, machines=("vm",))
    assert any(len({slot.order for slot in round_[:3]}) > 1 for round_ in make_schedule(in_guests, 1, 8).rounds)
