"""One host of a fleet: its folder judged, whether it counts, and its own change of every comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from iodelta.bundle.pseudonyms import is_nameless
from iodelta.errors import MeasureError, RequestError
from iodelta.grouping import grouped
from iodelta.lab.account import OVER
from iodelta.lab.account import Account as Journal
from iodelta.lab.folder import JOURNAL, Folder
from iodelta.lab.judged import read_plan
from iodelta.lab.plan import Plan
from iodelta.lab.seal import sha256
from iodelta.plural import plural
from iodelta.stats.hosts import FEWEST_BLOCKS
from iodelta.stats.special import stdtr
from iodelta.stats.stalls import excluded
from iodelta.stats.total import Arms
from iodelta.study.judging import Judged, judged, target_of
from iodelta.study.system import system
from iodelta.study.views import changed_placebos
from iodelta.verdict import Verdict
from iodelta.verdict.agreement import HostChange, own_change, own_total
from iodelta.verdict.model import Change
from iodelta.verdict.series import series_of
from iodelta.verdict.series_units import units_of

UNKNOWN = "not recorded"

FALSE_ALARMS = "calibration.false-alarms"


class FleetMember(msgspec.Struct, frozen=True):
    """A host: its folder, what it is, and why it is not averaged."""

    name: str
    place: str
    """Its folder or bundle."""
    state: str
    """How its last session ended."""
    blocks: int
    """Complete blocks of all cells."""
    seconds: float
    """Seconds spent on its trials."""
    drained: str
    """Why it is shown and not averaged; empty where it is averaged."""
    cpu: str
    """The model of its CPU."""
    disk: str
    """The model of what was measured."""
    kernel: str
    """The release of its kernel."""
    system: tuple[tuple[str, str], ...] = ()
    """What the machine was, in a few lines: name and value."""
    left: str = ""
    """How its fleet left it, where it is not done: the state and the reason."""


class HostWord(msgspec.Struct, frozen=True):
    """What one host says of one comparison."""

    host: str
    word: str
    """The host's own word, as its folder has it; empty where it has none."""
    phrase: str
    """Its own word in full."""
    blocks: int
    """Blocks behind it."""
    change: Change | None
    """Its change with the interval of its own verdict."""
    typical: HostChange | None
    """The log-ratio of a typical trial that is averaged; null where there is none."""
    total: HostChange | None
    """The log-ratio of all work that is averaged; null where there is none."""
    obstacle: str
    """Why no joint word can rest on this host; empty where one can."""
    p: float
    """One-sided p value that it is no worse, for all looks that its plan has together; 1 where nothing tells."""
    stalls_excluded: bool
    """Whether its trials are enough to exclude rare stalls."""
    averaged: bool
    """Whether it counts in the joint word."""


@dataclass(frozen=True)
class Left:
    """How a fleet left a host: one without a folder is shown as well, with the reason."""

    place: str
    """Where its folder is, or would be."""
    state: str
    """As in ``lost``."""
    reason: str

    @property
    def said(self) -> str:
        return f"{self.state}: {self.reason}" if self.reason else self.state


@dataclass(frozen=True)
class MeasuredHost:
    """A host as it was read; without ``judged`` its folder cannot be judged."""

    member: FleetMember
    judged: Judged | None
    environment: dict[str, Any]
    seconds_of_block: float

    @property
    def counts(self) -> bool:
        """Return whether it is averaged."""
        return not self.member.drained


def read_hosts(
    folders: Mapping[str, Folder], left: Mapping[str, Left]
) -> tuple[MeasuredHost, ...]:
    """Return every host, those that cannot be averaged with the reason; ``left`` is what a fleet says of its hosts.
    Raises RequestError where the folders are not of one plan."""
    plans: dict[str, Plan] = {}
    failed: dict[str, str] = {}
    for name, folder in folders.items():
        try:
            plans[name] = read_plan(folder)
        except MeasureError as error:
            failed[name] = error.sentence
    _refuse_unlike(plans)
    seen: dict[str, str] = {}
    measured = [
        _host(name, folder, failed.get(name, ""), seen, left.get(name))
        for name, folder in folders.items()
    ]
    absent = [_absent(name, left[name]) for name in left if name not in folders]
    return (*measured, *absent)


def _asked(plan: Plan) -> dict[str, object]:
    """Return what is the same on all hosts of one plan, by what it is called."""
    experiment, rules, design = plan.experiment, plan.rules, plan.experiment.design
    return {
        "baseline": experiment.baseline,
        "variants": experiment.variants,
        "conditions": experiment.conditions,
        "workloads": sorted(experiment.cells, key=lambda cell: cell.name),
        "metrics": (rules.metrics, experiment.measures),
        "margin": rules.margin,
        "length of a trial": (design.trial, design.ramp),
        "treatment of carry-over": (
            rules.carry,
            design.conditioning if plan.superblocks else 0,
        ),
        "level": rules.alpha,
    }


def _refuse_unlike(plans: Mapping[str, Plan]) -> None:
    """Raises RequestError where one folder asks something else than the first, or holds several hosts."""
    for name, plan in plans.items():
        if len(plan.experiment.machines) > 1:
            raise RequestError(
                "this experiment spread its blocks over several hosts, which its own report judges together",
                place=name,
                remedy="give one folder for each host",
            )
    asked = {name: _asked(plan) for name, plan in plans.items()}
    first = next(iter(asked), "")
    for name, of_host in asked.items():
        unlike = [what for what in of_host if of_host[what] != asked[first][what]]
        if unlike:
            raise RequestError(
                f"not of one plan: {' and '.join(unlike)} are not those of {first}",
                place=name,
                remedy="give folders that measured one experiment file, one for each host",
            )


def _absent(name: str, left: Left) -> MeasuredHost:
    """Return a host of a fleet that has no folder."""
    return _without_result(
        name, left.place, left.state, f"it was not measured: {left.said}"
    )


def _without_result(name: str, place: str, state: str, reason: str) -> MeasuredHost:
    """Return a host of which no trial is known."""
    member = FleetMember(
        name=name,
        place=place,
        state=state,
        blocks=0,
        seconds=0.0,
        drained=reason,
        cpu=UNKNOWN,
        disk=UNKNOWN,
        kernel=UNKNOWN,
    )
    return MeasuredHost(
        member=member, judged=None, environment={}, seconds_of_block=0.0
    )


def _host(
    name: str, folder: Folder, failure: str, seen: dict[str, str], left: Left | None
) -> MeasuredHost:
    """``seen`` has the machines and journals of the hosts before, and gets this one's."""
    try:
        result = None if failure else judged(folder)
    except MeasureError as error:
        result, failure = None, error.sentence
    if result is None:
        return _without_result(name, str(folder.path), "unreadable", failure)
    account, environment = result.account, result.environment
    # The models of what was measured, each once.
    devices = environment.get("devices")
    if not isinstance(devices, list | tuple):
        disk = UNKNOWN
    else:
        models: dict[str, None] = {}
        for device in devices:
            # A bundle of a stranger may hold anything.
            if isinstance(device, dict) and "partition_of" not in device:
                models[str(device.get("model") or "")] = None
        disk = " and ".join(filter(None, models)) or UNKNOWN
    member = FleetMember(
        name=name,
        place=str(folder.path),
        state=account.state,
        blocks=len({(trial.cell, trial.block) for trial in result.counted}),
        seconds=account.spent,
        drained=_drained(result)
        or _left_out(result, left)
        or _twin(name, folder, environment, seen),
        cpu=_text(environment, "cpu", "model"),
        disk=disk,
        kernel=_text(environment, "kernel", "release"),
        system=system(environment),
        left=left.said if left is not None and left.state != "done" else "",
    )
    return MeasuredHost(
        member=member,
        judged=result,
        environment=environment,
        seconds_of_block=account.block_seconds,
    )


def _left_out(result: Judged, left: Left | None) -> str:
    """Return why a host does not count: its fleet drained it, or it has not come to a block."""
    if left is not None and left.state == "drained":
        return f"the fleet drained it: {left.reason}"
    if result.counted:
        return ""
    unfinished = left is not None and left.state != "done"
    why = f": {left.said}" if left is not None and unfinished else " yet"
    return f"it has no complete block{why}"


def _drained(result: Judged) -> str:
    """Return why a host is not averaged: its folder was changed, or it sees changes where there are none."""
    account = result.account
    if account.broken:
        first = account.broken[0]
        return (
            f"its folder is not what was measured: {first.place}: {first.explanation}"
        )
    for finding in account.findings:
        if finding.rule == FALSE_ALARMS:
            return f"its calibration raised false alarms: {finding.explanation}"
    if account.plan.experiment.design.placebo:
        for verdict in changed_placebos(account.judgement):
            return f"its placebo, the baseline against itself, was called {verdict.word} in {verdict.cell}"
    return ""


def _twin(
    name: str, folder: Folder, environment: Mapping[str, Any], seen: dict[str, str]
) -> str:
    """Return why this is a host that counts already; a machine and a disk are one host by whatever names."""
    keys = {
        f"journal {sha256(folder.read(JOURNAL))}": "its folder is a copy of the folder of"
    }
    identity = _identity(environment)
    target = target_of(Journal(folder.events()))
    if identity != UNKNOWN and target is not None:
        disks = ",".join(target.disks) or target.real_path
        keys[f"machine {identity} {disks}"] = "it is the same machine and disk as"
    for key, why in keys.items():
        if key in seen:
            return f"{why} {seen[key]}"
    seen.update(dict.fromkeys(keys, name))
    return ""


def _identity(environment: Mapping[str, Any]) -> str:
    """Return what tells one machine from another; of a bundle without names nothing does, its placeholders start at 1."""
    if is_nameless(environment):
        return UNKNOWN
    return _text(environment, "host", "machine_id")


def _text(environment: Mapping[str, Any], section: str, name: str) -> str:
    """Return one value of a recorded environment, which may stem from a stranger."""
    part = environment.get(section)
    if isinstance(part, dict) and part.get(name):
        return str(part[name])
    return UNKNOWN


def words_of(host: MeasuredHost) -> Iterator[tuple[HostWord, Verdict]]:
    """Yield what a host says of each comparison, with the verdict of its own folder."""
    if host.judged is None:
        return
    for verdict in host.judged.account.judgement.verdicts:
        name = host.member.name
        typical, total, idle = _changes(name, host.judged, verdict)
        rules = host.judged.account.judgement.rules
        obstacle, phrase = "", verdict.phrase
        if verdict.blocks < FEWEST_BLOCKS:
            blocks = plural(verdict.blocks, "block")
            phrase = f"{blocks} where {FEWEST_BLOCKS} are needed"
        elif host.counts:
            obstacle = _obstacle(verdict, typical, idle=idle)
        # Whether the trials exclude that more than this share of them stalls.
        trials, stalled = verdict.blocks, 0
        if verdict.stalls is not None:
            trials, stalled = verdict.stalls.trials, verdict.stalls.stalled
        # By t, and Bonferroni over the looks: whoever stops at the most striking one still holds the level.
        change = total if verdict.basis == "total" else typical
        looks = len(rules.looks) + len(rules.extension) + 1  # and an unplanned end
        if change is None:
            p = 1.0
        else:
            p = min(
                1.0, looks * float(stdtr(change.spare, -change.value / change.error))
            )
        yield (
            (
                HostWord(
                    host=name,
                    word=verdict.word if verdict.blocks else "",
                    phrase=phrase,
                    blocks=verdict.blocks,
                    change=verdict.change,
                    typical=typical,
                    total=total,
                    obstacle=obstacle,
                    p=p,
                    stalls_excluded=(excluded(stalled, trials) <= rules.stalls + 1e-9),
                    averaged=host.counts and typical is not None and not obstacle,
                )
            ),
            verdict,
        )


def key_of(verdict: Verdict) -> tuple[str, str, str]:
    """Return the comparison that a verdict is about: cell, variant and metric."""
    return verdict.cell, verdict.variant, verdict.metric.name


def _changes(
    name: str, result: Judged, verdict: Verdict
) -> tuple[HostChange | None, HostChange | None, bool]:
    """Return the typical and the total change of the blocks that were judged, and whether trials of them did no I/O."""
    own = [trial for trial in result.counted if trial.cell == verdict.cell]
    series = series_of(
        own, verdict.metric, verdict.baseline, verdict.variant, cell=verdict.cell
    )
    unit = units_of(series, result.account.judgement.rules)
    # A host that screened this comparison out has no second stage: of a screen all blocks count, on every host alike.
    wanted = set(
        unit.numbers
        if result.account.judgement.rules.family == "screen"
        else verdict.block_numbers
    )
    rows = [row for row, number in enumerate(unit.numbers) if number in wanted]
    if verdict.idle or not rows or not np.all(np.isfinite(unit.d[rows])):
        return None, None, bool(verdict.idle)
    arms = Arms(*(column[:, rows] for column in unit.arms(len(unit.d)).columns))
    total = own_total(name, arms) if verdict.total is not None else None
    return own_change(name, unit.d[rows]), total, False


def _obstacle(verdict: Verdict, typical: HostChange | None, *, idle: bool) -> str:
    """Return why a host that has blocks enough forbids a joint word: leaving it out would be a choice by its values."""
    if idle:
        return "trials there did no I/O, so its change has no size"
    for finding in verdict.findings:
        if finding.severity == "hard":
            return finding.explanation
    if typical is None:
        return "most of its blocks have the same change, so the uncertainty of its change is unknown"
    if verdict.word == "inconclusive" and " is withheld: " in verdict.phrase:
        return verdict.phrase
    return ""


def notes_of(hosts: Sequence[MeasuredHost]) -> Iterator[str]:
    """Yield what a reader must know of hosts that are averaged."""
    counting = [host for host in hosts if host.counts and host.judged is not None]
    members = [host.member for host in counting]
    still = [
        (f"{member.name} ({member.left})" if member.left else member.name)
        for member in members
        if member.state not in OVER
    ]
    if still:
        yield (
            f"Not ended: {', '.join(still)}. Every verdict may still change, and repeated looks are not corrected for."
        )
    for host in counting:
        if host.judged is not None:
            # The cells that a host gave up, and those that it has not come to.
            for cell, reason in host.judged.account.abandoned.items():
                yield f"{host.member.name} could not measure {cell}: {reason}"
            # Cells of the plan that have no complete block, and were not given up.
            measured = {trial.cell for trial in host.judged.counted} | set(
                host.judged.account.abandoned
            )
            empty = [
                cell.name
                for cell in host.judged.account.plan.experiment.cells
                if cell.name not in measured
            ]
            if empty:
                yield f"{host.member.name} has no complete block of {', '.join(empty)}."
    for names in _same_machine(counting):
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        yield f"{listed} are one machine with different disks: they differ less than machines do."


def _same_machine(hosts: Sequence[MeasuredHost]) -> Iterator[tuple[str, ...]]:
    """Yield names of hosts that are one machine with several disks."""
    by_machine = grouped(hosts, lambda host: _identity(host.environment))
    by_machine.pop(UNKNOWN, None)
    for of_machine in by_machine.values():
        if len(of_machine) > 1:
            yield tuple(host.member.name for host in of_machine)


def seconds_each(hosts: Sequence[MeasuredHost]) -> float:
    """Seconds of a block of one cell, as measured: the mean over hosts."""
    known = [host.seconds_of_block for host in hosts if host.counts]
    return sum(known) / max(1, len(known))
