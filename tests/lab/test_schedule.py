"""The order of trials: balanced in time and position, fixed by its seed, never chosen by what was measured."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iodelta.experiment import Cell, Condition, Design, Experiment, Target, Variant
from iodelta.lab.schedule import Slot, make_schedule, repeated, trial_seed

SEEDS = st.integers(0, 2**31)


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


def orders(variants: int, seed: int, rounds: int) -> list[tuple[str, ...]]:
    """The orders of one cell, block after block."""
    return [slot.order for slot in make_schedule(experiment(variants, cells=1), seed, rounds).slots()]


@given(SEEDS)
def test_two_variants_run_as_abba_or_baab_so_a_linear_drift_cancels_in_every_pair_of_blocks(seed: int) -> None:
    found = orders(2, seed, 20)
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert first == second[::-1]
        places = [place for place, name in enumerate((*first, *second)) if name == "v0"]
        assert sum(places) == 3, "both variants have the same mean time in the pair"


def test_the_coin_is_fair_and_thrown_for_every_pair() -> None:
    found = orders(2, 1, 2000)[::2]
    heads = sum(order[0] == "v0" for order in found)
    runs = 1 + sum(one != other for one, other in pairwise(found))
    assert abs(heads - 500) < 4 * 250**0.5
    assert abs(runs - 500) < 4 * 250**0.5


@given(SEEDS, st.integers(2, 8))
def test_in_every_pair_of_blocks_a_linear_drift_cancels_and_no_variant_always_runs_before_another(
    seed: int, variants: int
) -> None:
    found = orders(variants, seed, 24)
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert sorted(first) == sorted(f"v{n}" for n in range(variants)), "a block has every variant once"
        assert first == second[::-1]


@given(SEEDS, st.integers(3, 6))
def test_more_variants_stand_equally_often_in_every_position(seed: int, variants: int) -> None:
    found = orders(variants, seed, 4 * variants)
    for start in range(0, len(found), 2 * variants):
        square = found[start : start + 2 * variants]
        for position in range(variants):
            assert set(Counter(order[position] for order in square).values()) == {2}, "twice, and so every variant"


def test_which_variant_follows_which_is_not_always_the_same() -> None:
    neighbours = Counter(pair for order in orders(3, 5, 300) for pair in pairwise(order))
    assert len(neighbours) == 6
    assert min(neighbours.values()) > 50


@given(SEEDS, st.integers(1, 30), st.integers(0, 30))
def test_a_longer_schedule_begins_with_the_shorter_so_an_extension_changes_nothing_before_it(
    seed: int, rounds: int, more: int
) -> None:
    one = experiment(3, cells=4, conditions=2)
    assert make_schedule(one, seed, rounds + more).rounds[:rounds] == make_schedule(one, seed, rounds).rounds


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    one = experiment(3, cells=5, conditions=2)
    assert make_schedule(one, 42, 30) == make_schedule(one, 42, 30)
    assert make_schedule(one, 42, 30).rounds != make_schedule(one, 43, 30).rounds


def test_the_order_of_a_seed_does_not_depend_on_the_version_of_python() -> None:
    first = make_schedule(experiment(3, cells=2), 42, 2).rounds[0]
    assert [(slot.cell, slot.order) for slot in first] == [
        ("condition0: cell0", ("v2", "v1", "v0")),
        ("condition0: cell1", ("v2", "v0", "v1")),
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
