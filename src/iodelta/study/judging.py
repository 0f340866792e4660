"""From a folder to its account: read it, judge it again from raw data, and add what else is known about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from iodelta.audit import audit_trials
from iodelta.bundle.packed import is_own, opened
from iodelta.decoding import converted, sound
from iodelta.errors import MeasureError
from iodelta.experiment.order import place_of
from iodelta.lab.account import Account as Journal
from iodelta.lab.calibration import Calibration, doubt
from iodelta.lab.folder import CALIBRATION, Folder
from iodelta.lab.instrument import seen
from iodelta.lab.integrity import integrity, sealed
from iodelta.lab.judged import (
    counted_trials,
    judge_folder,
    read_plan,
    rules_of,
    usable_trials,
)
from iodelta.lab.opened import believing
from iodelta.lab.plan import Plan, warnings
from iodelta.lab.remake import line_of
from iodelta.probe.topology import Target
from iodelta.study.again import again
from iodelta.study.best import best
from iodelta.study.confounders import Differing, differences
from iodelta.study.experiment import Account
from iodelta.study.facts import facts_of
from iodelta.study.preparation import disk_accounts, disk_findings, prepared_earlier
from iodelta.study.system import system
from iodelta.study.views import views
from iodelta.trial import Trial
from iodelta.verdict import Judgement


class Judged(msgspec.Struct, frozen=True):
    """A folder read and judged: all usable trials by number, and those that count."""

    account: Account
    trials: dict[int, Trial]
    counted: list[Trial]
    environment: dict[str, Any]
    sessions: tuple[float, ...] = ()
    """Unix seconds at which sessions began."""


@believing
def judged(folder: Folder) -> Judged:
    """Return a folder judged from its raw data, complete or still being written. Raises MeasureError for a damaged one."""
    plan = read_plan(folder)
    journal = Journal(folder.events())
    trials = usable_trials(folder, journal)
    judgement = judge_folder(plan, rules_of(plan, journal), journal, trials)
    spoilt = sum(bool(done.problem) for done in journal.finished.values())
    counted = counted_trials(plan, journal, trials)
    judgement, ordered = in_cell_order(plan, judgement, counted)
    environment = _environment(folder, journal)
    calibrations = _calibrations(folder)
    doubted = doubt(calibrations, judgement.rules.alpha)
    findings = (
        *integrity(folder, journal),
        *([doubted] if doubted else ()),
        *warnings(plan),
        *disk_findings(plan.experiment, journal, counted, judgement.rules.metrics),
        *(finding for finding in journal.findings() if finding.severity != "hard"),
        *chain.from_iterable(trial.findings for trial in trials.values()),
        *audit_trials(ordered, facts_of(plan, environment)),
    )
    prepare = plan.experiment.prepare
    prepared = disk_accounts(folder, journal, prepare) if prepare else ()
    earlier = () if prepare else prepared_earlier(journal)
    # The commands that repeat a folder; for a scenario its own, since it has removed its target.
    # Fio's version as recorded; a recent one if none is.
    fio = environment.get("fio")
    version = fio.get("version") if isinstance(fio, dict) else None
    match = re.search(r"(\d+)\.(\d+)", str(version))
    commands = again(
        plan, target_of(journal), ((int(match[1]), int(match[2])) if match else (3, 33))
    )
    line = line_of(folder)
    account = Account(
        folder=str(folder.path),
        plan=without_schedule(plan),
        judgement=judgement,
        state=journal.state,
        trials=len(trials),
        repeated=spoilt + len(journal.failed),
        abandoned=journal.abandoned,
        spent=journal.spent,
        findings=findings,
        calibrations=calibrations,
        views=views(plan, judgement, ordered),
        best=best(plan, judgement, ordered),
        system=(*system(environment), *earlier),
        changed=_changed(folder, journal, environment),
        again=(msgspec.structs.replace(commands, run=line) if line else commands),
        instruments=seen(folder),
        prepared=prepared,
        measured_by=journal.planned.version if journal.planned else "",
        seal=sealed(folder),
    )
    return Judged(
        account=account,
        trials=trials,
        counted=counted,
        environment=environment,
        sessions=tuple(session.at for session in journal.sessions),
    )


def in_cell_order(
    plan: Plan, judgement: Judgement, trials: Sequence[Trial]
) -> tuple[Judgement, list[Trial]]:
    """Verdicts and trials in the order of the plan's cells: they were measured and judged in a random order."""
    place = place_of(cell.name for cell in plan.experiment.cells)
    verdicts = sorted(judgement.verdicts, key=lambda verdict: place(verdict.cell))
    in_order = msgspec.structs.replace(judgement, verdicts=tuple(verdicts))
    return in_order, sorted(trials, key=lambda trial: place(trial.cell))


def _environment(folder: Folder, journal: Journal) -> dict[str, Any]:
    """Return the environment of the first session as plain data; empty before there was one."""
    if not journal.sessions:
        return {}
    return sound(folder.read_struct(journal.sessions[0].environment, dict[str, Any]))


def recorded(path: Path) -> dict[str, Any] | None:
    """Return the environment recorded in an experiment folder or a bundle; None for anything else, or before there was
    one.
    """
    if not is_own(path):
        return None
    folder = opened(path)
    return _environment(folder, Journal(folder.events())) or None


def target_of(journal: Journal) -> Target | None:
    """Return what was measured; None before the first session. Raises MeasureError for a damaged journal."""
    if not journal.sessions:
        return None
    try:
        return converted(journal.sessions[0].target, Target)
    except msgspec.ValidationError as error:
        raise MeasureError(f"the journal's target is damaged: {error}") from error


def _changed(
    folder: Folder, journal: Journal, first: Mapping[str, Any]
) -> tuple[Differing, ...]:
    """Return what changed on the first session's machine between that session and later ones."""
    changes: dict[Differing, None] = {}
    for session in journal.sessions[1:]:
        if session.machine == journal.sessions[0].machine:
            later = sound(folder.read_struct(session.environment, dict[str, Any]))
            changes |= dict.fromkeys(differences(first, later))
    return tuple(changes)


def _calibrations(folder: Folder) -> tuple[Calibration, ...]:
    # A run that was killed before its first session has none.
    if not folder.has(CALIBRATION):
        return ()
    return folder.read_struct(CALIBRATION, tuple[Calibration, ...])


def without_schedule(plan: Plan) -> Plan:
    """Return the plan as reports hold it: cells in the order of reports, and no schedule, which stays in ``plan.json``."""
    place = place_of(cell.name for cell in plan.experiment.cells)
    cells = tuple(sorted(plan.experiment.cells, key=lambda cell: place(cell.name)))
    experiment = msgspec.structs.replace(plan.experiment, cells=cells)
    schedule = msgspec.structs.replace(plan.schedule, rounds=())
    return msgspec.structs.replace(plan, experiment=experiment, schedule=schedule)
