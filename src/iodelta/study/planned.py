"""What a run would measure, before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from iodelta.errors import RefusedError
from iodelta.lab.disksession import DiskPlan, DiskSurvey
from iodelta.lab.diskstate import findings
from iodelta.lab.plan import Plan, boot_seconds, warnings
from iodelta.lab.setup import Survey
from iodelta.study.words import duration
from iodelta.trial import Finding


class FromBundle(msgspec.Struct, frozen=True):
    """Where somebody else's experiment comes from, and what it would run here."""

    name: str
    digest: str
    """SHA-256 of the bundle."""
    made_by: str
    """Version of iodelta that packed it."""
    question: str
    shown: bool
    """Whether any change was shown there."""
    commands: tuple[str, ...]
    """fio's command lines as they would be, directories of the run aside."""
    folder: str
    """The folder that would be made."""


class PlanAnswer(msgspec.Struct, frozen=True):
    """What a run would measure, in which order and by which rules, and what was seen of its machines. Nothing was
    changed to find it out. Seconds and bytes."""

    plan: Plan
    surveys: tuple[Survey, ...]
    """What each machine offers, in the order of the experiment's machines; of this one where it names none."""
    rounds: int
    """Blocks of every cell that the budget pays for."""
    at_most: float
    """Seconds of wall time that it takes at most."""
    findings: tuple[Finding, ...]
    """What is odd about the plan itself."""
    notes: tuple[str, ...] = ()
    """Of somebody else's experiment: what is not as it was there."""
    dangers: tuple[str, ...] = ()
    """Of somebody else's experiment: what in it could do more than I/O on the target, and why."""
    calibrations: tuple[str, ...] = ()
    """What `iodelta calibrate` found of these workloads on this machine and disk, a sentence each."""
    refused: str = ""
    """Why the run would not write to its target, as the same command without `--dry-run` says it; empty when it would,
    or when nothing is written."""
    bundle: FromBundle | None = None
    """Where somebody else's experiment comes from."""
    schema: Literal["iodelta.plan/1"] = "iodelta.plan/1"


class DiskPlanAnswer(msgspec.Struct, frozen=True):
    """What a preparation would do, and what was seen of the disk. Nothing was changed to find it out."""

    plan: DiskPlan
    survey: DiskSurvey
    refused: str = ""
    """Why the disk would not be written to; empty when it would."""
    schema: Literal["iodelta.prepare-plan/1"] = "iodelta.prepare-plan/1"


def plan_answer(
    plan: Plan,
    surveys: Sequence[Survey],
    refused: RefusedError | None = None,
    notes: Sequence[str] = (),
    dangers: Sequence[str] = (),
    calibrations: Sequence[str] = (),
    bundle: FromBundle | None = None,
) -> PlanAnswer:
    """Return the plan as data."""
    return PlanAnswer(
        plan=plan,
        surveys=tuple(surveys),
        rounds=rounds(plan),
        at_most=at_most(plan),
        findings=(*_warnings(plan, surveys), *_of_disks(plan, surveys)),
        notes=tuple(notes),
        dangers=tuple(dangers),
        calibrations=tuple(calibrations),
        refused=refusal_text(refused),
        bundle=bundle,
    )


def _warnings(plan: Plan, surveys: Sequence[Survey]) -> tuple[Finding, ...]:
    """Warnings about the plan, with what was seen of the first machine."""
    if not surveys:
        return warnings(plan)
    return warnings(plan, used=surveys[0].used, memory=surveys[0].memory)


def _of_disks(plan: Plan, surveys: Sequence[Survey]) -> Iterator[Finding]:
    """Yield what is odd about the state of the disks that are written to as they are."""
    if plan.experiment.prepare is not None:
        return
    for survey in surveys:
        yield from findings(survey.disk, survey.target.path)


def refusal_text(error: RefusedError | None) -> str:
    """Return what the guard refuses, with its place; empty where it refuses nothing."""
    if not error:
        return ""
    return f"{error.place}: {error.what}"


def rounds(plan: Plan) -> int:
    """Blocks of every cell that the budget pays for."""
    return min(plan.rules.max_blocks, max(1, int(plan.budget_rounds)))


def at_most(plan: Plan) -> float:
    """Seconds of wall time that it takes at most: what a boot takes is only assumed, so there it is the budget."""
    if boot_seconds(plan.experiment):
        return plan.experiment.design.budget
    return min(
        plan.experiment.design.budget,
        plan.rules.max_blocks * plan.per_round * plan.trial_seconds,
    )


def longest(plan: Plan) -> str:
    """Return the same in words. Only the budget is a limit; the time of trials is an estimate before the first one ran."""
    seconds = at_most(plan)
    about = "" if seconds == plan.experiment.design.budget else "about "
    return f"at most {about}{duration(seconds)}"
