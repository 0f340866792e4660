"""A scenario's plan in lines: what it asks and makes, what is missing, and what is measured once it was made."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.lab.plan import Plan
from iodelta.lab.superblocks import kinds_of
from iodelta.report.stories.plan import question_lines, setting_lines, warning_lines
from iodelta.study.rehearsed import ScenarioPlanAnswer
from iodelta.study.words import inert, size


def making_lines(answer: ScenarioPlanAnswer) -> list[str]:
    """What it asks and makes, with the room for it."""
    space = "none here"
    if answer.space:
        free = f"; {size(answer.free)} are free in {inert(answer.home)}" if answer.free is not None else ""
        space = f"up to {size(answer.space)}{free}"
    return [
        f"Asks      {inert(answer.plan.plan.experiment.question)}",
        f"Makes     {answer.makes or 'nothing here'}",
        f"Space     {space}",
    ]


def lacking_lines(answer: ScenarioPlanAnswer) -> Iterator[str]:
    """What is missing, with the remedy."""
    for need in answer.missing:
        yield f"Not here  {inert(need.what)}: {inert(need.reason)}; {inert(need.remedy)}"


def unmade_lines(plan: Plan, *, own: bool) -> list[str]:
    """The plan of an experiment on a target that the run makes, or on the user's ``own`` that nobody looked at."""
    writes = any("write" in kinds_of(cell) for cell in plan.experiment.cells)
    where = "YES, if --destroy names it" if own else "to what the run makes only"
    return [
        *(f"Machine   {inert(name)}" for name in plan.experiment.machines),
        f"Target    {inert(plan.experiment.target.path)}{'' if own else ', as the run will make it'}",
        *question_lines(plan),
        f"Writes    {where if writes else 'the trials write nothing'}",
        *setting_lines(plan.experiment),
        *warning_lines(plan),
    ]
