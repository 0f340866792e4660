"""A calibration: A against A by the engine's own rules, stalls, and what writes leave to the next trial."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from paper import paper_trial

from iodelta.experiment import Experiment, Variant, parse
from iodelta.lab.aftermath import Aftermath, aftermath_of, writer
from iodelta.lab.calibration import (
    BLOCKS_EACH,
    Calibration,
    a_against_a,
    alarms_in,
    merged,
    noise_of,
)
from iodelta.lab.folder import Started
from iodelta.lab.plan import make_plan, variant_orders
from iodelta.lab.setup import writes
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve
from iodelta.report.formats.markdown import markdown
from iodelta.report.stories.calibration import CalibrationAnswer, of_calibrated, quoted
from iodelta.trial import Trial
from iodelta.verdict import Rules, judge_all, metric

IOPS = metric("read.iops")


def question(rw: str = "randread", more: str = "") -> Experiment:
    text = f'[workload]\nrw = "{rw}"\nbs = "4k"\ndirect = 1\n{more}\n[variant.a]\n[variant.again]\n[design]\nseed = 1\n'
    return parse(text)


# ------------------------------------------------------------------------------------------------- A against A


@pytest.mark.parametrize("budget", [600.0, 7200.0, 40000.0])
def test_alike_cells_are_judged_as_a_family_that_no_screen_cuts_short(budget: float) -> None:
    plan = make_plan(a_against_a(question(), budget))
    assert len(plan.experiment.cells) > 1
    assert plan.rules.family == "holm"
    assert plan.rules.comparisons == len(plan.experiment.cells)


@pytest.mark.parametrize(("rw", "trials"), [("randread", 2), ("randwrite", 4), ("randtrim", 4)])
def test_the_budget_pays_for_every_trial_of_a_block(rw: str, trials: int) -> None:
    """Where the workload writes, each of two variants runs twice in a block."""
    plan = make_plan(a_against_a(question(rw), 36000.0))
    paid = 36000.0 / (trials * plan.trial_seconds * BLOCKS_EACH)
    assert len(plan.experiment.cells) == round(paid)


def test_a_night_shows_less_where_a_block_takes_more_trials() -> None:
    """The smallest change grows as the root of what a block costs."""
    trials = list(alike(200, sd=0.02, seed=3))
    (plain,), (dear,) = noise_of(trials, [IOPS], 5.0), noise_of(trials, [IOPS], 20.0)
    for few, many in ((dear.ten_minutes, plain.ten_minutes), (dear.night, plain.night)):
        assert few is not None
        assert many is not None
        assert few / many == pytest.approx(2.0, rel=0.06)


def test_an_alarm_is_one_of_a_comparison_alone_and_of_the_experiment_where_the_family_stands() -> None:
    """One of eight cells leans: alone it would have been called a change, among eight it is not."""
    rules = Rules.for_blocks(12, (IOPS,), comparisons=8, margin=0.01, family="holm", seed=1)
    trials = [trial for cell in range(8) for trial in alike(12, sd=0.01, seed=cell, cell=f"c{cell}", start=24 * cell)]
    leaning = [changed(trial, 0.988 if trial.variant == "again" and trial.cell == "c0" else 1.0) for trial in trials]
    judged = judge_all(leaning, rules, baseline="a")
    by_hand = {v.cell for v in judged.verdicts if v.alone in ("regression", "improvement")}
    assert by_hand == {"c0"}
    assert {v.word for v in judged.verdicts if v.cell == "c0"} == {"inconclusive"}
    assert alarms_in(judged) == (8, 1, False)
    far = [changed(trial, 0.8 if trial.variant == "again" and trial.cell == "c0" else 1.0) for trial in trials]
    assert alarms_in(judge_all(far, rules, baseline="a")) == (8, 1, True)


def alike(blocks: int, sd: float, seed: int, cell: str = "c", start: int = 0) -> Iterator[Trial]:
    rng, orders = np.random.default_rng(seed), variant_orders(("a", "again"), blocks, random.Random(seed))
    number = start
    for block, order in enumerate(orders):
        for position, variant in enumerate(order):
            number += 1
            identity = Started(float(number), number, cell, block, 0, position, variant, number)
            yield paper_trial(identity, 1000.0 * math.exp(sd * rng.standard_normal()))


def changed(trial: Trial, factor: float) -> Trial:
    rate = trial.directions[0].iops.value * factor
    identity = Started(
        trial.started, trial.number, trial.cell, trial.block, trial.attempt, trial.position, trial.variant, 1
    )
    return paper_trial(identity, rate)


# ----------------------------------------------------------------------------------------- aftermath of writes


def after_writes(blocks: int, left: float, sd: float, seed: int) -> list[Trial]:
    """Trials of 1000 IOPS, but lower by ``left`` right after the writer, whose own rate is all over the place."""
    rng, orders = (
        np.random.default_rng(seed),
        variant_orders(("a", "again", "writer"), blocks, random.Random(seed)),
    )
    trials: list[Trial] = []
    for block, order in enumerate(orders):
        for position, variant in enumerate(order):
            number = len(trials) + 1
            identity = Started(float(number), number, "c", block, 0, position, variant, number)
            debt = left if trials and trials[-1].variant == "writer" else 0.0
            noise = rng.standard_normal() * (1.0 if variant == "writer" else sd)
            trials.append(paper_trial(identity, 1000.0 * (1 - debt) * math.exp(noise)))
    return trials


@pytest.mark.parametrize("left", [0.0, 0.03, -0.02])
def test_the_carry_over_is_what_the_trial_after_the_writer_loses(left: float) -> None:
    """The interval at 95 % holds the truth; the simulation knows it. 300 calibrations of 30 blocks at CV 2 %."""
    truth = 1 / (1 - left) - 1
    found = [aftermath_of(after_writes(30, left, 0.02, seed), [IOPS])[0] for seed in range(300)]
    held = np.mean([one.low <= truth <= one.high for one in found])
    assert held >= 0.95
    assert np.median([one.value for one in found]) == pytest.approx(truth, abs=0.002)
    assert {one.blocks for one in found} == {30}


@pytest.mark.parametrize("rw", ["read", "randread", "rw", "randrw:8", "write", "randwrite", "randtrim"])
def test_the_writer_writes_larger_requests_in_the_pattern_of_the_workload(rw: str, tmp_path: Path) -> None:
    cell = question(rw).cells[0]
    options = dict(writer(cell, Variant("a"), 1 << 30))
    (tmp_path / "disk").write_bytes(bytes(4096))
    assert writes(options.items(), resolve(LocalMachine(), str(tmp_path / "disk")))
    assert options["rw"] == ("randwrite" if rw.startswith("rand") else "write")
    assert int(options["bs"] or 0) >= 4 * 4096


def test_the_writer_does_not_hold_back_and_stays_on_the_target() -> None:
    cell = question(more='rate_iops = 500\nthinktime = "1ms"').cells[0]
    options = dict(writer(cell, Variant("a"), 64 << 10))
    assert (options["rate_iops"], options["thinktime"]) == ("0", "0")
    assert options["bs"] == "4096", "a request of 256 KiB does not fit 64 KiB"


# ------------------------------------------------------------------------------------------------ kept and said


def test_calibrations_add_up_and_say_what_stalls_and_writes_do() -> None:
    left = Aftermath(IOPS, 0.031, 0.012, 0.05, 40)
    old = Calibration("k", "randread", "vda", 0.0, 20, 1, (), trials=200, experiments=1, raised=1, aftermath=(left,))
    new = Calibration("k", "randread", "vda", 1.0, 40, 0, (), trials=100, experiments=1)
    both = merged(old, new)
    assert (both.comparisons, both.alarms, both.trials, both.experiments, both.raised) == (60, 1, 300, 2, 1)
    assert both.stall_bound == pytest.approx(1 - 0.05 ** (1 / 300)), "none in 300: about 3 / 300"
    assert both.aftermath == (left,)
    whole = markdown(of_calibrated(CalibrationAnswer(both, both.bound)))
    for said in (whole, quoted(both)):
        assert "0 of 300 trials stalled, 0 in a thousand, at most 9.9 (95 %)" in said
        assert "a trial after one that writes more is worse: -3.0 % (-4.8 .. -1.2 %)" in said
    assert "1 of 2 calibrations raised an alarm" in whole
    assert "60 comparisons of a variant with itself, 1 false alarm:" in whole
    often = msgspec.structs.replace(both, stalled=45, aftermath=(msgspec.structs.replace(left, value=1.02),))
    assert "45 of 300 trials stalled, 150 in a thousand, at most 188 (95 %)" in quoted(often)
    assert "is worse: -50.5 % (" in quoted(often)
    unsure = msgspec.structs.replace(left, low=-0.01)
    assert "not distinguishable from 0" in quoted(msgspec.structs.replace(both, aftermath=(unsure,)))
