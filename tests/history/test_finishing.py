"""Wherever a command is killed, what the log says is finished by the next check, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import nights
import pytest

from benchmarks.history.scale import killed
from iodelta.history.adding import add
from iodelta.history.answers import NightPruned
from iodelta.history.finishing import finish
from iodelta.history.log import Given, Log, Removed
from iodelta.history.pruning import chosen, prune
from iodelta.history.store import Store

TABLE = "time,machine,cell,metric,value\n" + "".join(
    f"2026-01-{day:02},a,c,read.iops,{100 + day}\n" for day in range(1, 6)
)
HERE = Given(format="csv")


@pytest.fixture
def opened(tmp_path: Path) -> tuple[Store, Log]:
    """A history of five nights from one file."""
    (tmp_path / "t.csv").write_text(TABLE)
    store, log = nights.opened(tmp_path), Log(tmp_path / "decisions.jsonl")
    add(tmp_path / "t.csv", HERE, store, log)
    return store, log


def oldest(store: Store) -> NightPruned:
    return chosen(store, before=None, keep=4, gone=False)[0]


def test_nothing_is_finished_where_nothing_was_interrupted(opened: tuple[Store, Log]) -> None:
    store, log = opened
    before = store.lines()
    assert finish(store, log) == ()
    prune((oldest(store),), store, log)
    assert finish(store, log) == ()
    assert len(before[0].points) == 5
    assert len(store.lines()[0].points) == 4


def test_a_prune_that_was_killed_after_its_decision_is_carried_out(opened: tuple[Store, Log]) -> None:
    store, log = opened
    night = oldest(store)
    log.append(Removed(1.0, night.experiment, night.reason))
    (said,) = finish(store, log)
    assert said.startswith("finished removing: ")
    assert [point.experiment for point in store.lines()[0].points].count(night.experiment) == 0
    assert len(store.lines()[0].points) == 4


def test_an_add_that_was_killed_after_its_entry_is_carried_out_or_left_to_check(
    opened: tuple[Store, Log], tmp_path: Path
) -> None:
    store, log = opened
    before = store.lines()
    store.remove([oldest(store).experiment])
    (tmp_path / "t.csv").rename(tmp_path / "away.csv")
    assert finish(store, log) == ()
    (tmp_path / "away.csv").rename(tmp_path / "t.csv")
    assert len(finish(store, log)) == 1
    assert store.lines() == before


@pytest.mark.night
def test_kills_at_random_instants_leave_a_clean_history() -> None:
    """A few of the 200 of ``benchmarks.history.scale``, without its bound on time."""
    counts, wrong = killed(8, seed=7)
    assert set(counts.values()) == {2}
    assert [one for one in wrong if "opened after" not in one] == []
