"""`make demo`: minutes on a noisy machine with two cores end in words, with and without O_DIRECT."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from iodelta.experiment import parse
from iodelta.lab.plan import Plan, make_plan, warnings
from iodelta.trial import Direction, Quantity, Trial
from iodelta.verdict import judge_all

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples/demo.toml"
NOISE = 0.01
"""Standard deviation of the log of a trial's rate, as measured on two cores with a load of twelve."""

BLOCKS = 28
"""Blocks that such a machine measures within the budget."""


def simulated(plan: Plan, seed: int) -> list[Trial]:
    """Trials of the plan's schedule; fio's limit is kept, but for noise."""
    rng = np.random.default_rng(seed)
    made: list[Trial] = []
    for (slot,) in plan.schedule.rounds[:BLOCKS]:
        for position, variant in enumerate(slot.order):
            rate = (4900 if variant == "less" else 5000) * float(np.exp(rng.normal(0, NOISE)))
            number = len(made) + 1
            bandwidth = Quantity.exact(4096 * rate, "B/s")
            read = Direction("read", 5000, int(4096 * rate), 1800, Quantity.exact(rate, "IOPS"), bandwidth)
            made.append(
                Trial(
                    number, slot.cell, variant, slot.block, position, number, number * 1.0, 1.0, (read,), sys_cpu=10.0
                )
            )
    return made


def test_nine_demos_of_ten_end_in_the_true_words() -> None:
    """The lower limit is a regression, the copy is equivalent."""
    right = 0
    for seed in range(20):
        plan = make_plan(parse(EXAMPLE.read_text() + f"seed = {seed}\n"))
        made = simulated(plan, seed)
        judgement = judge_all(made, plan.rules, baseline="full", ended=(len(made),))
        right += {v.variant: v.word for v in judgement.verdicts} == {"less": "regression", "placebo": "equivalent"}
    assert right >= 18


def test_the_plan_of_the_demo_can_reach_every_word_in_four_minutes() -> None:
    plan = make_plan(parse(EXAMPLE.read_text()))
    assert [warning.explanation for warning in warnings(plan)] == []
    assert plan.experiment.design.budget <= 240


def workshop(tmp_path: Path, *, direct: bool, status: int) -> Path:
    """A checkout in which ``iodelta`` notes what it was given and ends with ``status``."""
    for name in ("scripts/demo", "examples/demo.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    tools = {".venv/bin/iodelta": f'cat "$2" >measured; exit {status}', "bin/dd": f"exit {0 if direct else 1}"}
    for name, text in tools.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def demo(place: Path) -> subprocess.CompletedProcess[str]:
    path = f"{place}/bin:/usr/bin:/bin"
    return subprocess.run([place / "scripts/demo"], env={"PATH": path}, capture_output=True, text=True)


@pytest.mark.parametrize("direct", [True, False])
def test_without_o_direct_the_demo_reads_through_the_page_cache_and_says_so(tmp_path: Path, direct: bool) -> None:
    place = workshop(tmp_path, direct=direct, status=1)
    done = demo(place)
    assert done.returncode == 0, done.stderr
    assert ("does not support O_DIRECT" in done.stdout) != direct
    cells = parse((place / "measured").read_text()).cells
    assert [cell.option("direct") for cell in cells] == ["1" if direct else "0"]
    assert not list(place.glob(".iodelta*"))


@pytest.mark.parametrize(
    ("status", "ends", "advice"), [(0, 0, True), (1, 0, True), (3, 0, True), (2, 2, False), (130, 130, False)]
)
def test_every_answer_is_a_success_and_a_failure_stays_one(
    tmp_path: Path, status: int, ends: int, advice: bool
) -> None:
    done = demo(workshop(tmp_path, direct=True, status=status))
    assert done.returncode == ends
    assert ("Your own disk" in done.stdout) == advice
    assert max(map(len, done.stdout.splitlines()), default=0) <= 80
