"""The run: blocks in the planned order, repeated whole when spoilt, until decided, out of budget, or stopped."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paper import Paper, Say, hard, noisy

from iodelta.errors import MeasureError
from iodelta.lab import judged as judged_module
from iodelta.lab import runner as runner_module
from iodelta.lab.account import Account
from iodelta.lab.folder import Abandoned, Ended, Finished, Repeated, Started
from iodelta.trial import Finding

Make = Callable[..., Paper]
RNG = random.Random


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Experiments on paper: ``paper(say, cells=2)``."""

    def make(say: Say, **settings: Any) -> Paper:
        return Paper(tmp_path / "folder", say, monkeypatch, **settings)

    return make


def counted_of(one: Paper) -> list[Started]:
    return list(Account(one.folder.events()).counted(("v0", "v1")).values())


def rates(change: float = 0.0, spread: float = 0.01) -> Callable[[Started], float]:
    """About 1000 IOPS; the second variant differs by ``change``. The same trial always gives the same rate."""

    def say(one: Started) -> float:
        noise = RNG(f"{one.cell}/{one.block}/{one.variant}").gauss(0, spread)
        return 1000 * (1 + noise + (change if one.variant == "v1" else 0.0))

    return say


# ------------------------------------------------------------------------------------------------------ deciding


def test_a_cell_is_measured_until_it_is_decided_and_no_longer(paper: Make) -> None:
    one = paper(rates(-0.05))
    outcome = one.run()
    assert outcome.reason == "complete"
    assert [found.word for found in outcome.judgement.verdicts] == ["regression"]
    assert outcome.judgement.verdicts[0].blocks < 80 / 2
    assert len(one.bench.made) == 2 * outcome.judgement.verdicts[0].blocks


def test_a_decided_cell_leaves_its_time_to_the_others(paper: Make) -> None:
    def say(trial: Started) -> float:
        return rates(-0.1 if trial.cell.endswith("=1") else 0.004, 0.01)(trial)

    one = paper(say, cells=2, budget="100s")
    assert one.run().reason == "budget"
    blocks = Counter(trial.cell for trial in one.bench.made)
    assert blocks["iodepth=2"] > 2 * blocks["iodepth=1"]


def test_the_planned_order_is_the_order_that_is_run(paper: Make) -> None:
    one = paper(rates(), cells=3, variants=3, blocks=6)
    one.run()
    planned = [(slot.cell, slot.block, name) for slot in one.plan.schedule.slots() for name in slot.order]
    assert [(trial.cell, trial.block, trial.variant) for trial in one.bench.made] == planned


def test_the_budget_ends_the_run_before_a_block_that_it_does_not_pay_for(paper: Make) -> None:
    one = paper(rates(0.0, 0.1), budget="21s")
    assert one.run().reason == "budget"
    assert len(one.bench.made) == 20
    assert one.events(Ended)[-1].reason == "budget"


# ------------------------------------------------------------------------------------------------ spoilt and noisy


def test_a_cell_that_fails_now_and_then_is_not_given_up(paper: Make) -> None:
    one = paper(lambda t: hard("EIO") if t.attempt < 2 and t.block % 2 else 1000.0, blocks=8)
    one.run()
    assert one.events(Abandoned) == []
    assert Account(one.folder.events()).is_complete("randread 4k", 7, ("v0", "v1"))


def test_a_loss_that_comes_with_a_flag_of_its_own_making_is_counted(paper: Make) -> None:
    def say(trial: Started) -> float | tuple[float, Finding]:
        lost = trial.variant == "v1" and RNG(f"{trial.block}/{trial.attempt}").random() < 0.4
        return (700.0, noisy()) if lost else rates(spread=0.002)(trial)

    one = paper(say, blocks=40)
    verdict_ = one.run().judgement.verdicts[0]
    assert verdict_.word == "regression"
    assert one.events(Repeated) == []


def test_a_variant_that_stalls_now_and_then_has_its_stalls_counted(paper: Make) -> None:
    def stalls(trial: Started) -> bool:
        return trial.variant == "v1" and RNG(f"stall/{trial.block}/{trial.attempt}").random() < 0.3

    def say(trial: Started) -> tuple[float, ...]:
        seconds = RNG(f"{trial.block}/{trial.variant}/{trial.attempt}")
        return tuple(
            1000 * seconds.gauss(1, 0.002) * (0.1 if stalls(trial) and second >= 8 else 1) for second in range(12)
        )

    one = paper(say, blocks=24)
    verdict_ = one.run().judgement.verdicts[0]
    assert verdict_.word != "equivalent"
    assert one.events(Repeated) == []
    counted = counted_of(one)
    unsteady = [trial for trial in counted if any(f.rule == "noise.unsteady" for f in one.trials[trial.trial].findings)]
    assert {trial.trial for trial in counted if stalls(trial)} == {trial.trial for trial in unsteady}
    assert len(unsteady) >= 0.2 * verdict_.blocks


# ------------------------------------------------------------------------------------------------- superblocks


def test_in_superblocks_every_variant_conditions_and_then_counts(paper: Make) -> None:
    one = paper(rates(), blocks=6, carry_over="superblocks")
    one.run()
    assert [trial.conditioning for trial in one.bench.made] == [True, False] * 12
    assert all(a.variant == b.variant for a, b in zip(one.bench.made[::2], one.bench.made[1::2], strict=True))
    assert len({trial.seed for trial in one.bench.made}) == 24
    counted = counted_of(one)
    assert [trial.position % 2 for trial in counted] == [1] * 12


def test_a_variant_that_leaves_its_damage_to_the_next_trial_is_no_improvement(paper: Make) -> None:
    """v1 is equal, but every trial after one of its own is 10 % slower: whoever deploys it gets that."""
    last: list[str] = [""]

    def say(trial: Started) -> float:
        slow = 0.9 if last[0] == "v1" else 1.0
        last[0] = trial.variant
        return slow * rates(spread=0.005)(trial)

    verdict_ = paper(say, carry_over="superblocks").run().judgement.verdicts[0]
    assert verdict_.word == "regression"
    assert verdict_.change is not None
    assert verdict_.change.value == pytest.approx(-0.1, abs=0.02)


def test_a_failed_conditioning_trial_has_the_whole_superblock_made_again(paper: Make) -> None:
    one = paper(
        lambda t: hard("killed") if (t.block, t.attempt, t.position) == (2, 0, 2) else 1000.0,
        blocks=6,
        carry_over="superblocks",
    )
    one.run()
    assert [trial.attempt for trial in one.bench.made if trial.block == 2] == [0, 0, 0, 1, 1, 1, 1]
    counted = counted_of(one)
    assert [trial.attempt for trial in counted if trial.block == 2] == [1, 1]


@pytest.mark.parametrize("place", range(4))
def test_after_a_kill_in_a_superblock_every_counted_trial_follows_its_own_variant(paper: Make, place: int) -> None:
    def say(trial: Started) -> float | Exception:
        if (trial.block, trial.position) in kills:
            kills.clear()
            one.stopped = True
        return 1000.0

    kills = {(2, place)}
    one = paper(say, blocks=6, carry_over="superblocks")
    one.run()
    one.stopped = False
    one.run()
    state = Account(one.folder.events())
    counted = state.counted(("v0", "v1")).values()
    assert len(counted) == 12
    for trial in counted:
        before = state.started[trial.trial - 1]
        assert before.conditioning
        assert (before.variant, before.block, before.attempt) == (trial.variant, trial.block, trial.attempt)
        assert state.is_usable(before.trial)


# ---------------------------------------------------------------------------------------------- ending and going on


@pytest.mark.parametrize("at", range(1, 13))
def test_a_run_killed_in_any_trial_loses_that_trial_and_nothing_else(paper: Make, at: int) -> None:
    one = paper(lambda t: SystemExit("killed") if t.trial == at else rates(-0.02)(t), blocks=6)
    with pytest.raises(SystemExit):
        one.run()
    before = [event.trial for event in one.events(Finished)]
    one.bench.say = rates(-0.02)
    assert one.run().reason == "complete"
    after = [event.trial for event in one.events(Finished)]
    assert after[: len(before)] == before
    assert len(one.events(Started)) == 13
    assert len(Account(one.folder.events()).complete(("v0", "v1"))) == 6


def test_a_continued_experiment_says_what_an_uninterrupted_one_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Paper(tmp_path / "whole", rates(-0.02, 0.02), monkeypatch)
    expected = whole.run().judgement.verdicts
    cut = Paper(tmp_path / "cut", lambda t: SystemExit() if t.trial % 7 == 0 else rates(-0.02, 0.02)(t), monkeypatch)
    outcome = None
    while outcome is None:
        try:
            outcome = cut.run()
        except SystemExit:
            continue
    assert [(v.word, v.change, v.blocks) for v in outcome.judgement.verdicts] == [
        (v.word, v.change, v.blocks) for v in expected
    ]


@pytest.mark.parametrize(
    ("later", "attempts"),
    [(5.0, [0, 0, 0]), (3600.0, [0, 0, 1, 1]), (-86400.0, [0, 0, 0])],
    ids=["at once", "an hour later", "the clock was set back"],
)
def test_a_block_cut_in_half_goes_on_only_while_its_trials_are_neighbours_in_time(
    paper: Make, monkeypatch: pytest.MonkeyPatch, later: float, attempts: list[int]
) -> None:
    clock = [1_000_000.0]
    monkeypatch.setattr(runner_module, "now", lambda: clock[0])
    one = paper(lambda t: SystemExit() if t.trial == 4 else 1000.0, blocks=6)
    with pytest.raises(SystemExit):
        one.run()
    clock[0] += later
    one.bench.say = lambda t: 1000.0
    assert one.run().reason == "complete"
    assert [trial.attempt for trial in one.bench.made if trial.block == 1] == attempts


def test_a_block_whose_raw_file_is_lost_is_measured_again(paper: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    one = paper(rates(), blocks=6)
    one.run()

    def lossy(folder: Any, identity: Started) -> Any:
        if identity.trial == 3:
            raise MeasureError("damaged", place="raw/000003")
        return one.trials[identity.trial]

    monkeypatch.setattr(judged_module, "read_trial", lossy)
    assert one.run().reason == "complete"
    again = one.bench.made[12:]
    assert [(trial.block, trial.attempt) for trial in again] == [(1, 1), (1, 1)]
