"""The results of a folder so far: its usable trials, their verdicts, the open cells and the time they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from iodelta.errors import MeasureError
from iodelta.lab.account import Account
from iodelta.lab.folder import JOURNAL, PLAN, Finished, Folder, Started
from iodelta.lab.plan import Plan, host_of
from iodelta.lab.record import read_trial
from iodelta.trial import Trial
from iodelta.verdict import Judgement, Rules, judge_all, next_step


def read_plan(folder: Folder) -> Plan:
    """Return the plan of a folder, unchanged since it was made. Raises MeasureError, and RequestError for path mode."""
    folder.check_times()
    events = folder.events()
    plan = folder.read_plan(Plan, events).by_its_own_order()
    cells = {cell.name for cell in plan.experiment.cells}
    variants = {variant.name for variant in plan.experiment.variants}
    begun = set()
    for number, event in enumerate(events, 1):
        why = ""
        if isinstance(event, Started):
            begun.add(event.trial)
            if not (event.cell in cells and event.variant in variants):
                why = f"trial {event.trial} is of a cell or variant that the plan does not have"
        elif isinstance(event, Finished) and event.trial not in begun:
            why = f"trial {event.trial} ended, and no line before says that it began"
        if why:
            raise MeasureError(
                f"damaged: {why}",
                place=f"{folder.path / JOURNAL}:{number}",
                remedy="restore a copy of the folder, if you have one",
            )
    if plan.experiment.baseline not in variants:
        raise MeasureError(
            "damaged: the baseline is none of its variants",
            place=str(folder.path / PLAN),
        )
    return plan


def rules_of(plan: Plan, state: Account) -> Rules:
    """Return the rules in force: the plan's, or with the reserve released once the run was extended."""
    if state.extended is None:
        return plan.rules
    return plan.rules.extended(state.extended.blocks)


def open_cells(plan: Plan, state: Account, judgement: Judgement) -> list[str]:
    """Return the cells that are neither decided nor abandoned."""
    remaining = [
        cell.name for cell in plan.experiment.cells if cell.name not in state.abandoned
    ]
    return [
        name
        for name, cell_verdicts in {
            name: judgement.of(name) for name in remaining
        }.items()
        if not cell_verdicts or next_step(cell_verdicts) == "continue"
    ]


def seconds_left(
    plan: Plan, rules: Rules, state: Account, judgement: Judgement, budget: float
) -> float:
    """Expected seconds until the end: what open cells need by their own estimate, but no less than to their next
    look, within plan and budget."""
    blocks, most = 0, rules.max_blocks
    variants = [variant.name for variant in plan.experiment.variants]
    done = Counter(cell for cell, _ in state.complete(variants))
    for cell in open_cells(plan, state, judgement):
        verdicts = judgement.of(cell)
        needed = max(
            (v.needed.blocks or most for v in verdicts if v.needed), default=most
        )
        needed = max([needed, *(v.next_look or 0 for v in verdicts)])
        blocks += max(0, min(needed, most) - done[cell])
    left = blocks * plan.per_block * state.trial_seconds(plan.trial_seconds)
    return min(left, max(0.0, budget - state.spent))


def judge_folder(
    plan: Plan, rules: Rules, state: Account, trials: dict[int, Trial]
) -> Judgement:
    """Judge the trials that count, with the conditioning trials of their superblocks. ``trials`` are the usable ones
    by number."""
    variants = [variant.name for variant in plan.experiment.variants]
    counted = [trials[number] for number in state.judged(variants) if number in trials]
    several = len(plan.experiment.machines) > 1
    hosts = (
        {
            started.trial: host_of(plan.experiment, started.block)
            for started in state.started.values()
        }
        if several
        else None
    )
    return judge_all(
        sorted(counted, key=lambda trial: trial.number),
        rules,
        baseline=plan.experiment.baseline,
        variants=[
            name
            for name in variants
            if name != plan.experiment.baseline and name not in state.left_out
        ],
        ended=state.budget_ends,
        hosts=hosts,
    )


def load_trials(folder: Folder, identities: Mapping[int, Started]) -> dict[int, Trial]:
    """Finished trials from their raw files. Raises MeasureError."""
    return {
        number: read_trial(folder, identity) for number, identity in identities.items()
    }


def counted_trials(
    plan: Plan, state: Account, trials: Mapping[int, Trial]
) -> list[Trial]:
    """Return those of ``trials`` that count, in the order in which they were made."""
    counted = state.counted(variant.name for variant in plan.experiment.variants)
    return [trials[number] for number in counted if number in trials]


def usable_trials(folder: Folder, state: Account) -> dict[int, Trial]:
    """Return all usable trials from their raw files. A trial that cannot be read any more is marked in ``state`` as
    lost, with the reason."""
    trials = {}
    for number, identity in state.usable().items():
        try:
            trials[number] = read_trial(folder, identity)
        except MeasureError as error:
            raw = Path(error.place)
            state.lose(
                number,
                f"{raw.name}: {error.what}"
                if raw.is_relative_to(folder.path)
                else error.what,
                error.remedy,
            )
    return trials
