"""A run while it goes on, in words: how far it is, what is to come, what is known so far. No word before its look."""

from __future__ import annotations

from iodelta.lab.plan import Plan
from iodelta.report.stories.evidence import blocks_to_look
from iodelta.study.words import duration, expected, interval, measured, percent
from iodelta.verdict import Judgement, Verdict

SETTLED = ("decided", "exhausted")
"""Steps after which no more blocks of a cell are run."""


def ahead(plan: Plan, judgement: Judgement, spent: float, left: float) -> str:
    """Return what is to come: before the first result of any cell only when that will be, at the measured pace."""
    nearest = _before_first_look(judgement)
    if nearest is None or nearest.next_look is None:
        return expected(left)
    more = sum(blocks_to_look(nearest.next_look, judgement, _names(plan)))
    seconds = more * _block_seconds(plan, judgement, spent)
    return f"block {nearest.blocks} of {nearest.next_look} before the first result, {expected(seconds)}"


def beyond_budget(plan: Plan, judgement: Judgement, spent: float) -> str:
    """That the budget ends before the first look at the pace that was measured; empty where it does not."""
    nearest, budget = _before_first_look(judgement), plan.experiment.design.budget
    if nearest is None or nearest.next_look is None:
        return ""
    if spent > budget:  # it was extended
        return ""
    each = _block_seconds(plan, judgement, spent)
    needed = spent + each * sum(
        blocks_to_look(nearest.next_look, judgement, _names(plan))
    )
    if needed <= budget:
        return ""
    return (
        f"A trial takes {duration(each / plan.per_block)} ({duration(plan.trial_seconds)} in the plan): the budget of "
        f"{duration(budget)} ends before the first result, which takes {duration(needed)} in all. "
        "Give a larger budget, shorter trials or fewer cells."
    )


def _before_first_look(judgement: Judgement) -> Verdict | None:
    """Return the comparison that is nearest to its first look; None once any cell was looked at, or where none will be."""
    waiting = [
        verdict for verdict in judgement.verdicts if verdict.next_look is not None
    ]
    if not waiting or any(verdict.look is not None for verdict in judgement.verdicts):
        return None
    return min(waiting, key=lambda verdict: (verdict.next_look or 0) - verdict.blocks)


def _names(plan: Plan) -> list[str]:
    return [cell.name for cell in plan.experiment.cells]


def _block_seconds(plan: Plan, judgement: Judgement, spent: float) -> float:
    """Seconds of a block of one cell: as measured, once one was."""
    blocks: dict[str, int] = {}
    # A metric may lack values that another one of the cell has.
    for verdict in judgement.verdicts:
        blocks[verdict.cell] = max(verdict.blocks, blocks.get(verdict.cell, 0))
    done = sum(blocks.values())
    return spent / done if done else plan.trial_seconds * plan.per_block


def so_far(verdict: Verdict) -> str:
    """Return the change with its interval; a dash before there is one."""
    change = verdict.change
    if change is None:
        return "-"
    if change.low is None or change.high is None:
        return percent(change.value)
    return f"{measured(change.value, change.low, change.high)} ({interval(change.low, change.high)})"
