"""What ``iodelta scenario`` answers as data, and the story and rows of its plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from iodelta.lab.plan import kinds_of
from iodelta.parts.scenarios.model import Need
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
from iodelta.study.planned import PlanAnswer
from iodelta.study.words import inert, size


class Offered(msgspec.Struct, frozen=True):
    """One scenario, and whether it can run."""

    name: str
    title: str
    """What it asks, in one line."""
    missing: tuple[Need, ...]
    """What this machine lacks for it; empty when it can run."""


class ScenarioListAnswer(msgspec.Struct, frozen=True):
    """Every scenario there is."""

    scenarios: tuple[Offered, ...]
    """In the order of the list."""
    schema: str = "iodelta.scenario-list/1"


class ScenarioAnswer(msgspec.Struct, frozen=True):
    """One scenario in full."""

    name: str
    title: str
    about: str
    """Whose question it was, and what a small run of it can and cannot say."""
    makes: str
    """What it makes on the machine, and removes again."""
    missing: tuple[Need, ...]
    """What this machine lacks for it; empty when it can run."""
    experiment: str
    """The experiment file; ``@NAME@`` marks what is known only after everything was made."""
    schema: str = "iodelta.scenario/1"


class ScenarioPlanAnswer(msgspec.Struct, frozen=True):
    """What a scenario would make and measure. Nothing was made or changed to find it out. Bytes."""

    name: str
    makes: str
    """What it would make on the machine, and remove again; empty where it measures what is there already, or makes it
    in a guest."""
    space: int
    """Bytes of data that it may write where it makes things."""
    free: int | None
    """Bytes that are free there; not known of a guest that is not booted yet."""
    home: str
    """Directory in which it makes things; empty where it makes nothing on the machine."""
    missing: tuple[Need, ...]
    """What the machine lacks for it; empty when it can run."""
    plan: PlanAnswer
    """The experiment. Its ``surveys`` are empty where the target has yet to be made."""
    own: bool = False
    """Whether what is measured is the user's own."""
    schema: Literal["iodelta.scenario-plan/1"] = "iodelta.scenario-plan/1"


def of_rehearsal(answer: ScenarioPlanAnswer, detail: Detail = PLAIN) -> Story:
    """Return what a scenario would make, with the room for it, what is missing, and what would be measured."""
    plan = answer.plan.plan
    space = "none here"
    if answer.space:
        space = f"up to {size(answer.space)}"
        if answer.free is not None:
            space += f"; {size(answer.free)} are free in {inert(answer.home)}"
    making = [fact("Makes", answer.makes or "nothing here"), fact("Space", space)]
    for need in answer.missing:
        making.append(
            fact(
                "Not here",
                f"{inert(need.what)}: {inert(need.reason)}; {inert(need.remedy)}",
            )
        )
    seen = facts(answer.plan) if answer.plan.surveys else _unmade(answer)
    return Story(
        question=inert(plan.experiment.question),
        answer=planned(plan),
        tables=(),
        sections=order(plan),
        lead=section("Plan", (*making, *seen)),
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
