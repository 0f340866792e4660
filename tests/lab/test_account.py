"""Which trials count: those of the first whole attempt of each block, decided by the journal alone."""

from __future__ import annotations

from typing import NoReturn

import pytest

from iodelta.lab.account import Account
from iodelta.lab.folder import Abandoned, Ended, Event, Extended, Failed, Finished, Repeated, Session, Started

VARIANTS = ("a", "b")


def begun(trial: int, variant: str, block: int = 0, attempt: int = 0, cell: str = "c") -> Started:
    return Started(float(trial), trial, cell, block, attempt, VARIANTS.index(variant), variant, 1)


def made(trial: int, variant: str, block: int = 0, attempt: int = 0, problem: str = "") -> list[Event]:
    return [begun(trial, variant, block, attempt), Finished(float(trial), trial, 2.0, problem)]


def session() -> Session:
    return Session(0.0, "boot", 1, {}, "environment.json")


def counted(*events: Event | list[Event]) -> list[int]:
    flat = [one for event in events for one in (event if isinstance(event, list) else [event])]
    return list(Account(flat).counted(VARIANTS))


def test_a_block_counts_when_every_variant_has_a_usable_trial() -> None:
    assert counted(made(1, "a")) == []
    assert counted(made(1, "a"), made(2, "b")) == [1, 2]


def test_a_trial_in_flight_at_a_kill_does_not_count_and_its_block_goes_on() -> None:
    assert counted(made(1, "a"), begun(2, "b")) == []
    assert counted(made(1, "a"), begun(2, "b"), made(3, "b")) == [1, 3]


def test_of_a_block_with_a_spoilt_trial_no_arm_is_kept_from_that_attempt() -> None:
    spoilt: list[Event] = [*made(1, "a"), *made(2, "b", problem="fio was killed")]
    assert counted(spoilt) == []
    assert counted(spoilt, made(3, "b", attempt=1), made(4, "a", attempt=1)) == [3, 4]


def test_of_a_block_that_an_older_run_repeated_for_noise_the_first_attempt_counts() -> None:
    first: list[Event] = [*made(1, "a"), *made(2, "b"), Repeated(3.0, "c", 0, 0, "noise", "steal")]
    assert counted(first, made(3, "b", attempt=1)) == [1, 2]
    assert counted(first, made(3, "b", attempt=1), made(4, "a", attempt=1)) == [1, 2]


def superblock(first: int, names: str = "aabb", attempt: int = 0, spoilt: int = -1, runs: int = 2) -> list[Event]:
    """Trials from number ``first`` on, of which the one at place ``spoilt`` failed."""
    events: list[Event] = []
    for place, variant in enumerate(names):
        number, conditioning = first + place, place % runs < runs - 1
        events.append(Started(1.0, number, "c", 0, attempt, place, variant, 1, conditioning))
        events.append(Finished(1.0, number, 2.0, "fio was killed" if place == spoilt else ""))
    return events


def test_of_a_superblock_the_second_trial_of_every_variant_counts_and_the_first_is_judged_with_it() -> None:
    state = Account(superblock(1))
    assert list(state.counted(VARIANTS)) == [2, 4]
    assert list(state.judged(VARIANTS)) == [1, 2, 3, 4]


@pytest.mark.parametrize("spoilt", range(4))
def test_a_spoilt_trial_of_a_superblock_spoils_it_a_conditioning_one_too(spoilt: int) -> None:
    assert counted(superblock(1, spoilt=spoilt)) == []
    both = Account([*superblock(1, spoilt=spoilt), *superblock(5, "bbaa", attempt=1)])
    assert list(both.counted(VARIANTS)) == [6, 8]
    assert list(both.judged(VARIANTS)) == [5, 6, 7, 8]


@pytest.mark.parametrize("spoilt", range(6))
def test_a_spoilt_trial_spoils_a_superblock_of_three_runs_each(spoilt: int) -> None:
    assert counted(superblock(1, "aaabbb", spoilt=spoilt, runs=3)) == []
    assert list(Account(superblock(1, "aaabbb", runs=3)).judged(VARIANTS)) == [1, 2, 3, 4, 5, 6]
    assert counted(superblock(1, "aaabbb", runs=3)) == [3, 6]


@pytest.mark.parametrize("made", range(4))
def test_half_a_superblock_counts_nothing(made: int) -> None:
    assert counted(superblock(1, "aabb"[:made])) == []


def test_which_trials_count_is_the_same_whatever_was_measured() -> None:
    state = Account([*made(1, "a"), *made(2, "b"), *made(3, "a", 1), *made(4, "b", 1)])
    assert list(state.counted(VARIANTS)) == [1, 2, 3, 4]
    assert state.complete(VARIANTS) == [("c", 0), ("c", 1)]


def test_a_trial_whose_raw_file_is_gone_opens_its_block_again() -> None:
    state = Account([*made(1, "a"), *made(2, "b")])
    state.lose(2, "000002.fio.json.zst: damaged")
    assert state.counted(VARIANTS) == {}
    assert not state.is_complete("c", 0, VARIANTS)
    assert "damaged" in state.problem(2)


def test_numbers_of_trials_are_never_used_twice() -> None:
    assert Account().next_trial == 1
    assert Account([*made(1, "a"), begun(2, "b")]).next_trial == 3


def test_the_time_of_every_finished_trial_is_spent_also_of_a_spoilt_one() -> None:
    assert Account([*made(1, "a"), *made(2, "b", problem="short"), begun(3, "b")]).spent == 4.0


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([], "running"),
        ([session()], "running"),
        ([session(), Ended(1.0, "budget")], "budget"),
        ([session(), Ended(1.0, "interrupted"), session()], "running"),
        ([session(), Ended(1.0, "budget"), Extended(2.0, 60.0, 40)], "running"),
        ([session(), Ended(1.0, "failed: no space left")], "failed: no space left"),
    ],
)
def test_the_state_is_how_the_last_session_ended_and_a_kill_leaves_it_running(events: list[Event], state: str) -> None:
    account = Account(events)
    assert account.state == state
    assert account.over == (state in ("complete", "budget"))


def test_where_a_budget_ended_is_kept_for_the_last_look() -> None:
    account = Account([*made(1, "a"), *made(2, "b"), Ended(9.0, "budget")])
    assert account.budget_ends == [2]


def test_failed_trials_and_abandoned_cells_keep_their_reasons() -> None:
    account = Account([begun(1, "a"), Failed(1.0, 1, "EINVAL"), Abandoned(2.0, "c", "bs=3k")])
    assert account.problem(1) == "EINVAL"
    assert account.abandoned == {"c": "bs=3k"}


class Unwalkable(dict[object, object]):
    """A dictionary that can be asked, and not walked through."""

    def _refuse(self, *_: object) -> NoReturn:
        raise AssertionError("this walks through the whole journal")

    __iter__ = keys = values = items = _refuse


def test_a_trial_more_walks_through_none_of_those_before() -> None:
    account = Account(event for n in range(1, 201) for event in made(n, VARIANTS[n % 2], n // 2))
    for name in ("started", "finished", "failed", "lost", "_attempts"):
        setattr(account, name, Unwalkable(getattr(account, name)))
    account._attempts.setdefault(("c", 150), {}).setdefault(0, [])
    for event in (*made(201, "a", 150), *made(202, "b", 150)):
        account.add(event)
        assert account.problem(200) == ""
    assert account.is_complete("c", 150, VARIANTS)
    assert account.attempts("c", 150)
    assert account.next_trial == 203
