"""A plan, and what a look at the machines says of it, before anything is changed there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from iodelta.api.machines import Say, nobody
from iodelta.errors import RefusedError, RequestError
from iodelta.experiment import Experiment
from iodelta.lab.boots import look, refusal
from iodelta.lab.folder import CALIBRATION
from iodelta.lab.plan import Plan, make_plan
from iodelta.lab.setup import Survey, target_of, unsettable
from iodelta.lab.undo import state_directory
from iodelta.machine import Machine
from iodelta.study.planned import PlanAnswer, plan_answer
from iodelta.study.words import inert


@dataclasses.dataclass(frozen=True)
class Looked:
    """A plan, and what a look at its machines found."""

    plan: Plan
    seen: Sequence[Survey]
    """In the order of the machines."""
    refused: RefusedError | None
    """What the guard says of what it would write to."""
    known: tuple[str, ...]
    """What calibrations found of these workloads, a sentence each."""

    @property
    def answer(self) -> PlanAnswer:
        """Return the plan as a document."""
        return plan_answer(self.plan, self.seen, self.refused, calibrations=self.known)


def looked(
    machines: Sequence[Machine],
    experiment: Experiment,
    *,
    leave_out: bool,
    destroy: Sequence[str] = (),
    commands: bool = False,
    say: Say = nobody,
) -> Looked:
    """Return the plan for what can run on all the machines; ``say`` hears which variants are left out. Raises
    RequestError.
    """
    if leave_out and not experiment.boots:
        unset: dict[str, str] = {}
        for machine in machines:
            unset |= unsettable(machine, experiment, target_of(machine, experiment))
        experiment = _left_out(experiment, unset, say)
    seen = [look(machine, experiment) for machine in machines]
    unavailable: dict[str, str] = {}
    for survey in seen:
        unavailable |= survey.unavailable
    if unavailable and not leave_out:
        reasons = "; ".join(
            f"{variant}: {reason}" for variant, reason in unavailable.items()
        )
        raise RequestError(
            f"not every variant can run here: {reasons}",
            remedy="--leave-out continues without these",
        )
    plan = make_plan(_left_out(experiment, unavailable, say))
    refusals = (
        refusal(machine, plan.experiment, survey, destroy, commands=commands)
        for machine, survey in zip(machines, seen, strict=True)
    )
    refused = next(filter(None, refusals), None)
    known = (
        ()
        if experiment.boots or refused
        else _calibrated(machines[0], seen[0], plan.experiment)
    )
    return Looked(plan, seen, refused, known)


def _calibrated(
    machine: Machine, survey: Survey, experiment: Experiment
) -> tuple[str, ...]:
    """Return what calibrations of these workloads here found, a sentence each."""
    if not (state_directory() / CALIBRATION).exists():
        return ()
    from iodelta.lab.calibration import calibrations_for
    from iodelta.report.stories.calibration import QUOTED, quoted

    return tuple(
        quoted(calibration)
        for calibration in calibrations_for(machine, survey.target, experiment)[:QUOTED]
    )


def _left_out(
    experiment: Experiment, unavailable: dict[str, str], say: Say
) -> Experiment:
    """Return the experiment without the variants that cannot run here, each named."""
    for variant, reason in unavailable.items():
        say(inert(f"left out: {variant}: {reason}"))
    if not unavailable:
        return experiment
    from iodelta.lab.session import without

    return without(experiment, unavailable)
