"""The plan of a preparation before anything starts: steps, bytes, time, and what is known of the disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iodelta.experiment import DiskQuestion
from iodelta.lab.diskstate import findings
from iodelta.lab.preparing import Cost
from iodelta.study.words import duration, inert, size, wrap

if TYPE_CHECKING:  # a dry run does without statistics
    from iodelta.lab.disksession import DiskSurvey

PLAN_WIDTH, PLAN_INDENT = 80, " " * 10


def plan_lines(question: DiskQuestion, found: DiskSurvey, *, permitted: bool) -> Iterator[str]:
    """The plan before anything starts; ``permitted`` where the disk may be written to."""
    for line in _plan(question, found, permitted):
        yield from wrap(inert(line), PLAN_WIDTH, PLAN_INDENT)


def _plan(question: DiskQuestion, found: DiskSurvey, permitted: bool) -> Iterator[str]:
    path, prepare = found.target.path, question.prepare
    if question.machine:
        yield f"Machine   {question.machine}"
    yield f"Disk      {path} ({found.target.kind}), {size(found.size)}: everything on it will be overwritten"
    if found.holds:
        lost = "which is lost" if permitted else f"only --destroy {path} lets it be overwritten"
        yield f"Holds     {found.holds}; {lost}"
    yield from cost_lines(found.cost)
    if prepare.purge == "none":
        yield "Note      no purge: --purge discard (or nvme-format) makes the disk forget earlier writes, where it can"
    for one in findings(found.disk, path):
        yield f"State     {one.explanation}"


def cost_lines(cost: Cost) -> Iterator[str]:
    """Steps, bytes and time of a preparation."""
    basis = "as it took the last time" if cost.timed else "at 500 MiB/s, a guess until it was timed"
    fill = f"{size(cost.fill_bytes)} in sequence, about {duration(max(1.0, cost.fill_seconds))} {basis}; then "
    yield f"Prepare   {cost.how}"
    yield f"          {fill if cost.fill_bytes else ''}rounds until steady, at most {duration(cost.rounds_seconds)}"
