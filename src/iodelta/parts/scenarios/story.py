"""A scenario's plan: what it asks and makes, what is missing, and what is measured once it was made."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.lab.superblocks import kinds_of
from iodelta.parts.scenarios.rehearsed import ScenarioPlanAnswer
from iodelta.report.stories.plan import (
    asked,
    fact,
    facts,
    order,
    planned,
    settings,
    warned,
)
from iodelta.report.stories.story import PLAIN, Detail, Item, Story, section
from iodelta.study.words import inert, size


def of_rehearsal(answer: ScenarioPlanAnswer, detail: Detail = PLAIN) -> Story:
    """Return what a scenario would make and measure."""
    plan = answer.plan.plan
    seen = facts(answer.plan) if answer.plan.surveys else _unmade(answer)
    return Story(
        question=inert(plan.experiment.question),
        answer=planned(plan),
        tables=(),
        sections=order(plan),
        lead=section("Plan", (*_making(answer), *_lacking(answer), *seen)),
    )


def _making(answer: ScenarioPlanAnswer) -> Iterator[Item]:
    """Yield what it makes, with the room for it."""
    yield fact("Makes", answer.makes or "nothing here")
    space = "none here"
    if answer.space:
        space = f"up to {size(answer.space)}"
        if answer.free is not None:
            space += f"; {size(answer.free)} are free in {inert(answer.home)}"
    yield fact("Space", space)


def _lacking(answer: ScenarioPlanAnswer) -> Iterator[Item]:
    """Yield what is missing, with the remedy."""
    for need in answer.missing:
        yield fact(
            "Not here",
            f"{inert(need.what)}: {inert(need.reason)}; {inert(need.remedy)}",
        )


def _unmade(answer: ScenarioPlanAnswer) -> Iterator[Item]:
    """Yield the plan of an experiment on a target that the run makes, or on the user's own that nobody looked at."""
    plan = answer.plan.plan
    experiment = plan.experiment
    for name in experiment.machines:
        yield fact("Machine", inert(name))
    target = inert(experiment.target.path)
    writes = "YES, if --destroy names it"
    if not answer.own:
        target += ", as the run will make it"
        writes = "to what the run makes only"
    yield fact("Target", target)
    yield from asked(plan)
    if not any("write" in kinds_of(cell) for cell in experiment.cells):
        writes = "the trials write nothing"
    yield fact("Writes", writes)
    yield from settings(experiment)
    yield from warned(plan)
