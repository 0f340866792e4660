"""One call from a question to an answer: begin a folder, or continue one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from iodelta.decoding import converted
from iodelta.errors import LostError, MeasureError, RequestError, pasted
from iodelta.experiment import Experiment
from iodelta.lab.account import OVER, Account
from iodelta.lab.bench import Bench
from iodelta.lab.boots import Boots, boots_of, look
from iodelta.lab.calibration import calibrations_for
from iodelta.lab.diskstate import Known, state_known
from iodelta.lab.folder import (
    CALIBRATION,
    ENVIRONMENT,
    NOTHING,
    Abandoned,
    Extended,
    Folder,
    Session,
    now,
)
from iodelta.lab.instrument import look_closer
from iodelta.lab.integrity import check_uncut
from iodelta.lab.judged import judge_folder, read_plan, rules_of, usable_trials
from iodelta.lab.plan import Plan, host_of
from iodelta.lab.progress import Control, Watcher
from iodelta.lab.runner import Outcome, Runner
from iodelta.lab.scratch import remove_scratch
from iodelta.lab.setup import Survey, check_same_target, ready
from iodelta.lab.undo import restore_pending
from iodelta.machine import Machine, throw_away
from iodelta.probe.environment import environment
from iodelta.probe.sysfs import boot_id
from iodelta.probe.topology import Target


def start(
    path: Path,
    text: str,
    plan: Plan,
    machine: Machine,
    control: Control,
    *,
    beside: Mapping[str, bytes] = NOTHING,
    others: Sequence[Machine] = (),
) -> Folder:
    """Begin a folder and run its experiment; a request that is refused leaves no folder. Raises IodeltaError.

    ``others`` are the further hosts of an experiment that names several.
    """
    folder = Folder.begin(path, text, plan, beside)
    try:
        go(folder, machine, control, others=others)
    except RequestError:
        if not Account(folder.events()).begun:
            folder.remove()
        raise
    return folder


def without(experiment: Experiment, unavailable: dict[str, str]) -> Experiment:
    """Return the experiment without the variants that cannot run; one left over is compared with itself."""
    variants = tuple(
        variant for variant in experiment.variants if variant.name not in unavailable
    )
    if not variants:
        raise MeasureError(
            "no variant can run here", remedy="\n  ".join(unavailable.values())
        )
    baseline = (
        experiment.baseline
        if experiment.baseline not in unavailable
        else variants[0].name
    )
    if len(variants) == 1:
        variants = (
            *variants,
            replace(variants[0], name=f"{variants[0].name}-again"),
        )
    return replace(experiment, variants=variants, baseline=baseline)


def go(
    folder: Folder,
    machine: Machine,
    control: Control,
    *,
    budget: float | None = None,
    others: Sequence[Machine] = (),
    remade: bool = False,
) -> Outcome:
    """Run what is left of a folder's experiment. Raises IodeltaError; finished trials are kept whatever happens.

    ``budget`` in seconds extends an experiment whose budget has ended: its rules release the alpha held in reserve.
    ``remade``: the target was made anew, so it may differ from that of the earlier trials.
    """
    machines = (machine, *others)
    plan = read_plan(folder)
    check_uncut(folder)
    experiment, surveys = plan.experiment, list[tuple[Machine, Survey]]()
    benches: dict[str, Bench | Boots] = {}

    def begin(machine: Machine, bench: Bench, survey: Survey) -> None:
        """Record what the machine is. Raises RequestError where the target is not that of the sessions before."""
        is_new = survey.scratch or remade or throw_away(machine)
        for session in state.sessions:
            if session.machine in ("", machine.name):
                if not is_new:
                    check_same_target(converted(session.target, Target), bench.target)
                break
        earlier = len(Account(folder.events()).sessions)
        if not earlier:
            folder.write_struct(
                CALIBRATION, calibrations_for(machine, bench.target, experiment)
            )
        disk = state_known(machine, bench.target) if survey.writes else None
        record_session(folder, machine, bench.target, earlier=earlier, disk=disk)
        for cell, reason in survey.unmeasurable.items():
            folder.append(Abandoned(now(), cell, reason))

    try:
        with folder.writing():
            # Once more, of what is written to: another user may have exchanged the name since.
            plan = read_plan(folder)
            for one in machines:
                if not throw_away(one):
                    settle_pending(one, control.watcher, plan.identifier)
            state = Account(folder.events())
            if budget is not None:
                _extend(folder, plan, state, budget)
            if state.over:
                trials = usable_trials(folder, state)
                return Outcome(
                    state.state,
                    judge_folder(plan, rules_of(plan, state), state, trials),
                )
            with contextlib.ExitStack() as stack:
                if experiment.boots:
                    # The baseline is booted once on each machine, for its survey; a block boots what it measures.
                    for one in machines:
                        boots = boots_of(one)(one, plan, folder, control)
                        benches[one.name] = stack.enter_context(boots)
                        baseline = experiment.variant(experiment.baseline)
                        with boots.booted(baseline) as (booted, bench, survey):
                            begin(booted, bench, survey)
                        surveys.append((one, survey))
                else:
                    # Each machine is made ready once all of them were looked at.
                    surveys += [(one, look(one, experiment)) for one in machines]
                    for one, survey in surveys:
                        bench = stack.enter_context(
                            ready(one, plan, survey, folder, control)
                        )
                        benches[one.name] = bench
                        begin(one, bench, survey)
                runner = Runner(
                    plan,
                    rules_of(plan, state),
                    folder,
                    lambda block: benches[host_of(experiment, block) or machine.name],
                    control.watcher,
                    budget=experiment.design.budget
                    + (state.extended.budget if state.extended else 0.0),
                    stop=control.stop,
                )
                control.watcher.begin(plan, str(folder.path), len(state.finished))
                outcome = runner.run()
                first = benches[machine.name]
                if outcome.reason in OVER and isinstance(first, Bench):
                    look_closer(machine, first, plan, folder, control)
            if outcome.reason in OVER:
                for one, survey in surveys:
                    if survey.scratch and not throw_away(one):
                        remove_scratch(one, plan, survey.target)
        return outcome
    except LostError as error:
        on = (
            "continues in a new guest"
            if throw_away(machine)
            else "restores what was set there and continues"
        )
        raise LostError(
            error.what,
            place=error.place,
            remedy=f"finished trials are kept; `iodelta run {pasted(folder.path)}` {on}",
        ) from error


def record_session(
    folder: Folder,
    machine: Machine,
    target: Target,
    *,
    earlier: int,
    disk: Known | None = None,
) -> None:
    """Record a session and the environment it begins in, after ``earlier`` sessions of this folder.

    ``disk`` is what is known of the state of a disk that the session may write to."""
    name = f"environment-{earlier + 1}.json" if earlier else ENVIRONMENT
    folder.write_struct(name, environment(machine, target))
    known = msgspec.to_builtins(disk) if disk is not None else None
    described = msgspec.to_builtins(target)
    folder.append(
        Session(
            now(), boot_id(machine), os.getpid(), described, name, machine.name, known
        )
    )


def settle_pending(machine: Machine, watcher: Watcher, own: str = "") -> None:
    """Restore what crashed runs left changed, before anything new is measured. Raises RequestError if that fails.

    ``own`` is the experiment that is about to continue, if any.
    """
    for outcome in restore_pending(machine, own=own):
        for record in outcome.restored:
            watcher.note(
                f"{record.saved.knob}, left changed by {outcome.folder}: {record.account or record.error}"
            )
        if not outcome.done:
            raise RequestError(
                "an earlier run left settings that cannot be restored, or processes that do not end",
                place=outcome.folder,
                remedy="`iodelta restore` says why; `iodelta restore --forget` gives them up",
            )


def _extend(folder: Folder, plan: Plan, state: Account, budget: float) -> None:
    """Add blocks to an experiment that is over; one whose extension was cut short just continues."""
    if not state.over:
        if state.extended is None:
            raise RequestError(
                "this experiment is not complete, so it cannot be extended",
                place=str(folder.path),
                remedy="continue it first, without --budget",
            )
        return
    if state.extended is not None:
        raise RequestError(
            "this experiment was extended once already; no alpha is left in reserve",
            place=str(folder.path),
            remedy="begin a new experiment with a larger budget",
        )
    cost = plan.per_round * state.trial_seconds(plan.trial_seconds)
    event = Extended(now(), budget, plan.rules.max_blocks + max(1, int(budget / cost)))
    folder.append(event)
    state.add(event)
