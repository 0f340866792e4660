"""From the paths on a command line to runs: foreign results and iodelta's own folders alike."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from iodelta.audit import Audit, audit, audit_trials
from iodelta.audit.tables import with_tables_named
from iodelta.bundle.packed import is_own, opened
from iodelta.errors import pasted
from iodelta.ingest import Refusal, Run
from iodelta.ingest.layouts import Entry, Layout, read_layout
from iodelta.ingest.model import Measured
from iodelta.lab.opened import believing
from iodelta.study.rows import OWN
from iodelta.trial import Finding, Place, Trial

if TYPE_CHECKING:
    from iodelta.lab.account import Account


def read_all(
    paths: Sequence[str], *, stdin: BinaryIO | None = None, pattern: str | None = None
) -> tuple[Layout, Audit]:
    """Everything in ``paths`` as one layout, and its audit. Raises RequestError, MeasureError for a damaged folder."""
    layouts = _once([read_one(path, stdin=stdin, pattern=pattern) for path in paths])
    kinds = dict.fromkeys(layout.kind for layout in layouts)
    parts = {
        name: tuple(chain.from_iterable(getattr(layout, name) for layout in layouts))
        for name in JOINED
    }
    whole = Layout(kind="+".join(kinds), **parts)
    return whole, audit(entry.run for entry in whole.entries)


def unread(
    paths: Sequence[str], refusals: Sequence[Refusal], runs: Iterable[Run]
) -> tuple[str, ...]:
    """Return the files among ``paths`` of which nothing could be read. A folder may hold things of other kinds."""
    read = {run.place.file.partition("!")[0] for run in runs}
    refused = {refusal.place.file for refusal in refusals} - read
    return tuple(path for path in paths if path in refused)


def _once(layouts: Sequence[Layout]) -> list[Layout]:
    """Return the layouts without what an earlier one has read already: a file that is named twice, or in a folder named
    too.
    """
    seen: set[str] = set()
    unique = []
    for layout in layouts:
        own = [entry.run.place.file for entry in layout.entries] + [
            refusal.place.file for refusal in layout.refusals
        ]
        real = {
            file: os.path.realpath(file.partition("!")[0]) + file.partition("!")[2]
            for file in own
        }
        entries = tuple(
            entry for entry in layout.entries if real[entry.run.place.file] not in seen
        )
        refusals = tuple(
            refusal
            for refusal in layout.refusals
            if real[refusal.place.file] not in seen
        )
        unique.append(
            msgspec.structs.replace(layout, entries=entries, refusals=refusals)
        )
        seen.update(real.values())
    return unique


JOINED = ("entries", "device_stats", "refusals", "findings", "logs")
"""Fields of a layout that several layouts have one after another."""


def read_one(
    path: str, *, stdin: BinaryIO | None = None, pattern: str | None = None
) -> Layout:
    """Return what is in one path: an experiment folder of iodelta, or anything else."""
    if is_own(path):
        return own_folder(Path(path))
    return with_tables_named(read_layout(path, stdin=stdin, pattern=pattern))


@believing
def own_folder(path: Path) -> Layout:
    """Return the trials of an experiment folder by cell and variant. Raises MeasureError for a damaged one."""
    from iodelta.ingest.options import workload
    from iodelta.lab.account import Account
    from iodelta.lab.integrity import integrity
    from iodelta.lab.judged import read_plan, usable_trials
    from iodelta.study.facts import options_of
    from iodelta.trial import Quantity

    folder = opened(path)
    plan = read_plan(folder)
    given = options_of(plan)
    journal = Account(folder.events())
    trials = usable_trials(folder, journal)
    changed = tuple(
        finding for finding in integrity(folder, journal) if finding.severity == "hard"
    )
    entries = []
    cells = [cell.name for cell in plan.experiment.cells]
    variants = [variant.name for variant in plan.experiment.variants]

    def place(trial: Trial) -> tuple[int, int, int]:
        """Return the order of the experiment file, not the one that was drawn for the first block."""
        cell, variant = cells.index(trial.cell), variants.index(trial.variant)
        return cell, variant, trial.number

    for trial in sorted(trials.values(), key=place):
        options = given.get((trial.cell, trial.variant), {})
        asked = workload(options)
        jobs = asked.numjobs or 1
        # The numbers of a command that are judged, by name.
        measured = {}
        for metric in plan.rules.metrics:
            name = metric.name.removeprefix("command.")
            if name in trial.measured:
                measured[name] = Measured(trial.measured[name], metric.better)
        run = Run(
            place=trial.source,
            format="json+",
            jobname=trial.cell,
            jobs=jobs,
            directions=trial.directions,
            sync=trial.sync,
            measured=measured,
            options=options,
            workload=asked,
            started=trial.started,
            ended=trial.started + trial.seconds,
            usr_cpu=Quantity.exact(trial.usr_cpu / jobs, "%"),
            sys_cpu=Quantity.exact(trial.sys_cpu / jobs, "%"),
            findings=trial.findings,
        )
        entries.append(Entry(run, trial.cell, trial.variant, replicate=trial.block))
    empty = () if entries or changed else _without_trials(path, journal)
    return Layout(OWN, tuple(entries), refusals=empty, findings=changed)


class OwnAudit(msgspec.Struct, frozen=True):
    """What the rules make of an experiment folder."""

    trials: int
    findings: tuple[Finding, ...]
    system: tuple[tuple[str, str], ...]
    """What the machine was: name and value."""
    refusals: tuple[Refusal, ...]
    """Why there is nothing to judge."""


def own_audit(path: Path) -> OwnAudit:
    """Return what the rules find in the trials of an experiment folder. Raises MeasureError."""
    from iodelta.lab.account import Account
    from iodelta.lab.integrity import integrity
    from iodelta.lab.judged import read_plan, usable_trials
    from iodelta.study.facts import facts_of
    from iodelta.study.system import recorded_environment, system

    folder = opened(path)
    environment = recorded_environment(folder)
    facts = facts_of(read_plan(folder), environment)
    journal = Account(folder.events())
    trials = usable_trials(folder, journal)
    findings = audit_trials((trials[number] for number in sorted(trials)), facts)
    changed = integrity(folder, journal)
    judged = trials or any(finding.severity == "hard" for finding in changed)
    empty = () if judged else _without_trials(path, journal)
    return OwnAudit(
        trials=len(trials),
        findings=(*changed, *findings),
        system=system(environment),
        refusals=empty,
    )


def _without_trials(path: Path, journal: Account) -> tuple[Refusal, ...]:
    """Return why no trial of a folder can be judged."""
    if journal.finished:
        reason = "none of its trials gave a result"
    else:
        reason = f"no trial ended before the run stopped; `iodelta run {pasted(path)}` continues it"
    return (Refusal(Place(str(path)), reason),)


def own_systems(paths: Sequence[str]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the machine of each experiment folder among ``paths``; foreign results have none. Raises MeasureError."""
    own = [path for path in paths if is_own(path)]
    if not own:
        return {}
    from iodelta.study.system import recorded_environment, system

    return {path: system(recorded_environment(opened(Path(path)))) for path in own}
