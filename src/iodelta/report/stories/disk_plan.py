"""The plan of a preparation before anything starts: steps, bytes, time, and what is known of the disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iodelta.lab.diskstate import findings
from iodelta.lab.preparing import Cost
from iodelta.report.stories.story import PLAIN, Detail, Item, Story, section
from iodelta.study.words import duration, inert, size

if TYPE_CHECKING:  # a dry run does without statistics
    from iodelta.study.planned import DiskPlanAnswer


def of_disk_plan(answer: DiskPlanAnswer, detail: Detail = PLAIN) -> Story:
    """Return what a preparation would do."""
    cost = answer.survey.cost
    longest = duration(max(1.0, cost.fill_seconds) + cost.rounds_seconds)
    return Story(
        question="",
        answer=f"Plan: {inert(answer.survey.target.path)} is prepared in about {longest} at most. Nothing was changed.",
        tables=(),
        sections=(),
        lead=section("Plan", facts(answer)),
    )


def facts(answer: DiskPlanAnswer) -> Iterator[Item]:
    """Yield the plan before anything starts."""
    question, survey = answer.plan.question, answer.survey
    path, prepare = inert(survey.target.path), question.prepare
    if question.machine:
        yield Item(inert(question.machine), label="Machine")
    yield Item(
        f"{path} ({survey.target.kind}), {size(survey.size)}: everything on it will be overwritten",
        label="Disk",
    )
    if survey.holds:
        yield Item(
            holding(survey.holds, survey.target.path, answer.refused), label="Holds"
        )
    yield cost_fact(survey.cost)
    if prepare.purge == "none":
        advice = "--purge discard (or nvme-format) makes the disk forget earlier writes, where it can"
        yield Item(f"no purge: {advice}", label="Note")
    for finding in findings(survey.disk, survey.target.path):
        yield Item(inert(finding.explanation), label="State")


def holding(holds: str, path: str, refused: str) -> str:
    """Return what a target contains, as far as it was read, and what lets it be overwritten where that is refused."""
    if refused:
        return f"{inert(holds)}; only --destroy {inert(path)} lets it be overwritten"
    return inert(holds)


def cost_fact(cost: Cost) -> Item:
    """Steps, bytes and time of a preparation."""
    steps = f"rounds until steady, at most {duration(cost.rounds_seconds)}"
    if cost.fill_bytes:
        basis = "at 500 MiB/s, a guess until it was timed"
        if cost.timed:
            basis = "as it took the last time"
        fill = duration(max(1.0, cost.fill_seconds))
        steps = (
            f"{size(cost.fill_bytes)} in sequence, about {fill} {basis}; then {steps}"
        )
    return Item(inert(cost.how), (steps,), label="Prepare")
