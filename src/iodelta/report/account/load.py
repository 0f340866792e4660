"""From a folder to its account; and the derived files that can always be made again from raw data."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import msgspec

from iodelta.audit import audit_trials
from iodelta.bundle.packed import is_own, opened
from iodelta.errors import MeasureError
from iodelta.experiment.order import place_of
from iodelta.lab.account import OVER
from iodelta.lab.account import Account as Journal
from iodelta.lab.calibration import Calibration, doubt
from iodelta.lab.folder import CALIBRATION, Folder
from iodelta.lab.instrument import seen
from iodelta.lab.integrity import VERDICT, integrity, sealed
from iodelta.lab.plan import Plan, warnings
from iodelta.lab.runner import judge_folder, usable_trials
from iodelta.lab.session import read_plan, rules_of
from iodelta.probe.environment import sound
from iodelta.probe.topology import Target
from iodelta.report.account.best import best
from iodelta.report.account.cache import Charts, keep, kept, key_of
from iodelta.report.account.changed import refuse_changed
from iodelta.report.account.facts import facts_of
from iodelta.report.account.model import Account, headline
from iodelta.report.account.views import views
from iodelta.report.again.lines import Again, again
from iodelta.report.charts import figures
from iodelta.report.charts.sources import of_account
from iodelta.report.documents import written
from iodelta.report.environment.confounders import Differing, differences
from iodelta.report.environment.system import system
from iodelta.report.formats.statements import method
from iodelta.scenarios.model import ORIGIN, Origin
from iodelta.trial import Trial
from iodelta.verdict import Judgement

TRIALS = "trials.parquet"
PAGE = "report.html"


class Document(msgspec.Struct, frozen=True):
    """``verdict.json``: the account with its answer, versioned."""

    schema: str
    headline: str
    """The answer in a sentence or two, no stronger than the verdicts."""
    account: Account
    method: tuple[str, ...] = ()
    """How it was measured and decided, in sentences."""


MANY = 1000
"""From so many trials on, what was found in a finished folder is kept for the next reader."""


def load(folder: Folder) -> Account:
    """The account of a folder, complete or still being written. Raises MeasureError for a damaged one."""
    known = kept(folder)
    return known.account if known is not None else _judged(folder).account


def charted(folder: Folder) -> tuple[Account, Charts]:
    """The account of a folder and its charts. Raises MeasureError for a damaged one."""
    known = kept(folder)
    if known is not None:
        return known.account, known.charts
    seen = _judged(folder)
    return seen.account, seen.charts()


def _judged(folder: Folder) -> _Examined:
    """A folder judged from its raw data; where that took long, and nobody writes to it, kept for the next reader."""
    key = key_of(folder)
    seen = _examined(folder)
    if seen.account.state in OVER and len(seen.trials) >= MANY:
        keep(folder, seen.account, seen.charts(), key)
    return seen


def derive(folder: Folder, *, unchanged: bool = False) -> Account:
    """Make the derived files again: ``verdict.json``, ``trials.parquet``, ``report.html`` and the cache of all reports.

    With ``unchanged`` nothing is written for a folder that is not what was measured: the files of before may show what
    was changed. Raises MeasureError.
    """
    from iodelta.report.html.told import html_of

    key = key_of(folder)
    seen = _examined(folder)
    if unchanged:
        refuse_changed(seen.account.findings, str(folder.path))
    folder.write(VERDICT, written(document(seen.account)))
    folder.write(TRIALS, _parquet([seen.trials[number] for number in sorted(seen.trials)]))
    charts = seen.charts()
    folder.write(PAGE, html_of(seen.account, charts))
    keep(folder, seen.account, charts, key)
    return seen.account


def document(account: Account) -> Document:
    """What ``verdict.json`` says."""
    # Where the folder lies is no part of what it says: it says the same after a move.
    here = msgspec.structs.replace(account, folder=PurePath(account.folder).name)
    return Document("iodelta.verdict/1", headline(account), here, tuple(method(account)))


class _Examined(msgspec.Struct, frozen=True):
    """A folder read and judged: all usable trials by number, and those that count."""

    account: Account
    trials: dict[int, Trial]
    counted: list[Trial]
    environment: dict[str, Any]

    def charts(self) -> Charts:
        """Drawn from the trials that count."""
        return tuple(figures(of_account(self.account, self.counted, self.environment)))


def _examined(folder: Folder) -> _Examined:
    plan = read_plan(folder)
    journal = Journal(folder.events())
    trials = usable_trials(folder, journal)
    judgement = judge_folder(plan, rules_of(plan, journal), journal, trials)
    spoilt = sum(bool(done.problem) for done in journal.finished.values()) + len(journal.failed)
    counted = [trials[n] for n in journal.counted(v.name for v in plan.experiment.variants) if n in trials]
    judgement, ordered = in_cell_order(plan, judgement, counted)
    environment = _environment(folder, journal)
    calibrations = _calibrations(folder)
    doubted = doubt(calibrations, judgement.rules.alpha)
    findings = (
        *integrity(folder, journal),
        *([doubted] if doubted else ()),
        *warnings(plan),
        *(one for one in journal.findings() if one.severity != "hard"),
        *(finding for trial in trials.values() for finding in trial.findings),
        *audit_trials(ordered, facts_of(plan, environment)),
    )
    account = Account(
        folder=str(folder.path),
        plan=without_schedule(plan),
        judgement=judgement,
        state=journal.state,
        trials=len(trials),
        repeated=spoilt,
        abandoned=journal.abandoned,
        spent=journal.spent,
        findings=findings,
        calibrations=calibrations,
        views=views(plan, judgement, ordered),
        best=best(plan, judgement, ordered),
        system=system(environment),
        changed=_changed(folder, journal, environment),
        again=_again(folder, plan, journal, environment),
        instruments=seen(folder),
        measured_by=journal.planned.version if journal.planned else "",
        seal=sealed(folder),
    )
    return _Examined(account, trials, counted, environment)


def in_cell_order(plan: Plan, judgement: Judgement, trials: Sequence[Trial]) -> tuple[Judgement, list[Trial]]:
    """Verdicts and trials by their cells: they were measured, and so were judged, in a random order of these."""
    place = place_of(cell.name for cell in plan.experiment.cells)
    verdicts = tuple(sorted(judgement.verdicts, key=lambda verdict: place(verdict.cell)))
    return msgspec.structs.replace(judgement, verdicts=verdicts), sorted(trials, key=lambda trial: place(trial.cell))


def _environment(folder: Folder, journal: Journal) -> dict[str, Any]:
    """The environment of the first session as plain data; empty before there was one."""
    if not journal.sessions:
        return {}
    return sound(folder.read_struct(journal.sessions[0].environment, dict[str, Any]))


def recorded(path: Path) -> dict[str, Any] | None:
    """The environment recorded in an experiment folder or a bundle; None for anything else, or before there was one."""
    if not is_own(path):
        return None
    folder = opened(path)
    return _environment(folder, Journal(folder.events())) or None


def target_of(journal: Journal) -> Target | None:
    """What was measured; None before the first session. Raises MeasureError for a damaged journal."""
    if not journal.sessions:
        return None
    try:
        return msgspec.convert(journal.sessions[0].target, Target)
    except msgspec.ValidationError as error:
        raise MeasureError(f"the journal's target is damaged: {error}") from error


def _again(folder: Folder, plan: Plan, journal: Journal, environment: Mapping[str, Any]) -> Again:
    """A scenario's target is gone by now: the scenario itself makes it again."""
    found = again(plan, target_of(journal), _version(environment))
    if not folder.has(ORIGIN):
        return found
    return msgspec.structs.replace(found, run=folder.read_struct(ORIGIN, Origin).line)


def _version(environment: Mapping[str, Any]) -> tuple[int, int]:
    """fio's, as recorded; a recent one where nothing is."""
    fio = environment.get("fio")
    found = re.search(r"(\d+)\.(\d+)", str(fio.get("version", ""))) if isinstance(fio, dict) else None
    return (int(found[1]), int(found[2])) if found else (3, 33)


def _changed(folder: Folder, journal: Journal, first: Mapping[str, Any]) -> tuple[Differing, ...]:
    same = [one for one in journal.sessions[1:] if one.machine == journal.sessions[0].machine]  # not another host's
    later = [sound(folder.read_struct(one.environment, dict[str, Any])) for one in same]
    found = [one for environment in later for one in differences(first, environment)]
    return tuple(dict.fromkeys(found))


def _calibrations(folder: Folder) -> tuple[Calibration, ...]:
    if not folder.has(CALIBRATION):  # the run was killed before its first session
        return ()
    return folder.read_struct(CALIBRATION, tuple[Calibration, ...])


def without_schedule(plan: Plan) -> Plan:
    """The plan as reports carry it, its cells in the one order: the schedule stays in ``plan.json``."""
    place = place_of(cell.name for cell in plan.experiment.cells)
    cells = tuple(sorted(plan.experiment.cells, key=lambda cell: place(cell.name)))
    plan = msgspec.structs.replace(plan, experiment=msgspec.structs.replace(plan.experiment, cells=cells))
    return msgspec.structs.replace(plan, schedule=msgspec.structs.replace(plan.schedule, rounds=()))


def _parquet(trials: list[Trial]) -> bytes:
    """One row per trial and direction; latencies in ns, sizes in bytes."""
    import polars

    rows = []
    for trial in trials:
        for direction in trial.directions:
            latency = direction.lat or direction.clat
            rows.append(
                {
                    "trial": trial.number,
                    "cell": trial.cell,
                    "variant": trial.variant,
                    "block": trial.block,
                    "attempt": trial.attempt,
                    "conditioning": trial.conditioning,
                    "position": trial.position,
                    "seed": trial.seed,
                    "started": trial.started,
                    "seconds": trial.seconds,
                    "direction": direction.kind,
                    "ios": direction.ios,
                    "bytes": direction.bytes,
                    "runtime_ms": direction.runtime_ms,
                    "iops": direction.iops.value,
                    "bandwidth": direction.bandwidth.value,
                    "lat_mean": latency.mean.value if latency else None,
                    "lat_p50": latency.quantile(0.50) if latency else None,
                    "lat_p99": latency.quantile(0.99) if latency else None,
                    "lat_p999": latency.quantile(0.999) if latency else None,
                    "usr_cpu": trial.usr_cpu,
                    "sys_cpu": trial.sys_cpu,
                    "context_switches": trial.context_switches,
                    "background_alive": trial.background.alive if trial.background else None,
                    **{f"counter.{name}": value for name, value in sorted(trial.counters.items())},
                }
            )
    buffer = io.BytesIO()
    polars.DataFrame(rows, infer_schema_length=None).write_parquet(buffer)
    return buffer.getvalue()
