"""From the text of an experiment to its plan, by the functions of ``iodelta run --dry-run``, with what a page forbids."""

from __future__ import annotations

from msgspec.structs import replace

from iodelta.api.planning import looked
from iodelta.bundle.dangers import dangers, dangers_of_loads
from iodelta.errors import RefusedError, RequestError
from iodelta.experiment import Experiment, overridden, parse
from iodelta.machine import LocalMachine
from iodelta.study.planned import PlanAnswer

COMMAND_LINE = "the command line can: iodelta run"


def plan_of(text: str, *, command: str = COMMAND_LINE) -> tuple[str, PlanAnswer]:
    """Return the text with the seed of its plan, so that what starts is what was shown; and the plan. Nothing is
    changed.

    ``command`` says what does what a page may not. Raises RequestError, RefusedError, MeasureError.
    """
    experiment = parse(text, "this experiment", numbered=False, strict=True)
    check_harmless(experiment, command)
    plan = looked([LocalMachine()], experiment, leave_out=False)
    survey = plan.seen[0]
    if plan.refused is not None:
        raise plan.refused
    if survey.writes and not survey.scratch:
        raise RefusedError(
            "a page never overwrites anything but scratch files of iodelta's own",
            place=survey.target.path,
            remedy=command,
        )
    fixed = overridden(text, design={"seed": plan.plan.seed})
    assert fixed is not None
    return fixed, plan.answer


def check_harmless(experiment: Experiment, command: str) -> None:
    """Raises RequestError for what does more than I/O on the target: the rule by which a stranger's bundle is read."""
    booted = experiment.boot_knobs
    if booted or experiment.clock != "wall":
        what = "from a page nothing is booted"
        raise RequestError(what, place="".join(booted[:1]), remedy=command)
    if experiment.machines:
        raise RequestError(
            f"a page starts experiments on this machine alone, not on {experiment.machines[0]}",
            remedy=command,
        )
    listed = (*dangers(_without_jobs(experiment)), *dangers_of_loads(experiment))
    if experiment.prepare is not None or listed:
        said = f"{listed[0].what}: {listed[0].why}" if listed else "it prepares a disk"
        place = listed[0].place if listed else "[prepare]"
        raise RequestError(
            f"from a page this is not started: {said}", place=place, remedy=command
        )


def _without_jobs(experiment: Experiment) -> Experiment:
    """Without background loads that are fio jobs on the target, which are judged by their options."""
    conditions = tuple(
        replace(condition, background_fio=()) for condition in experiment.conditions
    )
    return replace(experiment, conditions=conditions)
