"""Which trials count: those of the first whole attempt of each block, decided by the journal alone."""

from __future__ import annotations

import pytest

from iodelta.lab.account import Account
from iodelta.lab.folder import Ended, Event, Extended, Finished, Repeated, Session, Started

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


def test_of_a_block_with_a_spoilt_trial_no_arm_is_kept_from_that_attempt() -> None:
    spoilt: list[Event] = [*made(1, "a"), *made(2, "b", problem="fio was killed")]
    assert counted(spoilt) == []
    assert counted(spoilt, made(3, "b", attempt=1), made(4, "a", attempt=1)) == [3, 4]


def test_of_a_block_that_an_older_run_repeated_for_noise_the_first_attempt_counts() -> None:
    first: list[Event] = [*made(1, "a"), *made(2, "b"), Repeated(3.0, "c", 0, 0, "noise", "steal")]
    assert counted(first, made(3, "b", attempt=1)) == [1, 2]
    assert counted(first, made(3, "b", attempt=1), made(4, "a", attempt=1)) == [1, 2]


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
