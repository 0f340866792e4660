"""Apply the rules to iodelta's own trials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from iodelta.audit.engine import RULES, judge
from iodelta.audit.model import Evidence, Hit
from iodelta.audit.rules.device import SERVED
from iodelta.ingest import Disk, Run
from iodelta.ingest.numbers import seconds
from iodelta.ingest.options import workload
from iodelta.plural import plural
from iodelta.trial import Finding, Place, Quantity, Trial

SAME_FACT = {
    "cpu.stolen": "noise.steal",
    "device.other-io": "noise.other-io",
    "steady.not-yet": "noise.unsteady",
}
"""Rule -> the rule of a trial's own findings that reports the same fact."""


class Facts(msgspec.Struct, frozen=True):
    """What the plan and the environment add to the trials: fio options by (cell, variant), the target's devices (kernel
    names) and the members below them, fio's version, and the margin."""

    options: Mapping[tuple[str, str], Mapping[str, str]] = {}
    devices: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    fio_version: str | None = None
    margin: float = 0.01


def audit_trials(trials: Iterable[Trial], facts: Facts) -> tuple[Finding, ...]:
    """Return what the rules find in ``trials``: one finding per rule, cell and variant, with the number of trials it
    affects.

    Findings that the trials have already are not repeated, also under another rule (``SAME_FACT``). The rules are about
    I/O that fio counted, so trials of a command are left out.
    """
    trials = tuple(trial for trial in trials if not trial.measured)
    evidence = Evidence(
        runs=tuple(_run(trial, facts) for trial in trials),
        counters=tuple(trial.counters for trial in trials),
        arms=tuple((trial.cell, trial.variant) for trial in trials),
        margin=facts.margin,
    )
    grouped: dict[tuple[str, str, str, str], list[Hit]] = {}
    carried: set[tuple[str, str, str]] = set()
    for trial in trials:
        carried.update(
            (finding.rule, trial.cell, trial.variant) for finding in trial.findings
        )
    for hit in judge(evidence, RULES):
        cell, variant = evidence.arms[hit.runs[0]]
        is_carried = (SAME_FACT.get(hit.finding.rule), cell, variant) in carried
        if is_carried or _judged(hit, evidence) or _least(hit, evidence):
            continue
        key = (hit.finding.rule, hit.finding.severity, cell, variant)
        grouped.setdefault(key, []).append(hit)
    totals = {arm: len(indexes) for arm, indexes in evidence.of_arm().items()}
    findings: list[Finding] = []
    for (_, _, cell, variant), hits in grouped.items():
        total = totals[cell, variant]
        # One finding for all trials of an arm that a rule affects.
        place = f"cell {cell}, {variant}"
        finding_, touched = (
            hits[0].finding,
            frozenset().union(*(hit_.runs for hit_ in hits)),
        )
        explanation = finding_.explanation
        if total > 1 and len(hits[0].runs) == 1:
            several = f"{len(touched)} of {plural(total, 'trial')}"
            explanation = f"{several}; the first: {explanation}"
        findings.append(
            msgspec.structs.replace(finding_, place=place, explanation=explanation)
        )
    return tuple(findings)


def _judged(hit: Hit, evidence: Evidence) -> bool:
    """Return whether its trials have judged that already, from the disks' counters after the ramp, which no rule has
    here.
    """
    if hit.finding.rule != "device.other-io":
        return False
    runs = (evidence.runs[index] for index in hit.runs)
    return any(seconds(run.options.get("ramp_time", "")) for run in runs)


def _least(hit: Hit, evidence: Evidence) -> bool:
    """Return whether the hit relies on a lower bound: a disk's I/O during the seconds that ``t/io_uring`` counted. Its
    I/O over the whole run, the upper bound, is enough or unknown."""
    is_of_tool = "tool" in evidence.runs[hit.runs[0]].options
    if hit.finding.rule != "cache.not-from-device" or not is_of_tool:
        return False
    most = fio = 0.0
    for index in hit.runs:
        # Bytes that each disk moved in the whole run, by direction.
        counters = evidence.counters[index]
        names = filter(_WHOLE_DISK_BYTES.fullmatch, counters)
        most += sum([counters[name] for name in names])
        fio += sum(direction.bytes for direction in evidence.runs[index].directions)
    return not most or most >= SERVED * fio


_WHOLE_DISK_BYTES = re.compile(r"whole\.disk\..*_bytes", re.S)


def _run(trial: Trial, facts: Facts) -> Run:
    options = dict(facts.options.get((trial.cell, trial.variant), {}))
    asked = workload(options)
    jobs = asked.numjobs or 1
    return Run(
        place=trial.source if trial.source.file else Place(f"trial {trial.number}"),
        format="json+",
        jobname=trial.cell,
        jobs=jobs,
        directions=trial.directions,
        sync=trial.sync,
        options=options,
        workload=asked,
        fio_version=facts.fio_version,
        started=trial.started,
        usr_cpu=Quantity.exact(trial.usr_cpu / jobs, "%"),
        sys_cpu=Quantity.exact(trial.sys_cpu / jobs, "%"),
        disks=_disks(trial.counters, facts),
        series=dict(trial.series),
    )


def _disks(counters: Mapping[str, float], facts: Facts) -> tuple[Disk, ...]:
    disks = [_disk(name, counters, member=False) for name in facts.devices]
    disks += [_disk(name, counters, member=True) for name in facts.members]
    return tuple(filter(None, disks))


def _disk(name: str, counters: Mapping[str, float], *, member: bool) -> Disk | None:
    if f"disk.{name}.read_ios" not in counters:
        return None

    def count(field: str) -> int:
        return int(counters.get(f"disk.{name}.{field}", 0))

    return Disk(
        name,
        read_ios=count("read_ios"),
        write_ios=count("write_ios"),
        read_sectors=count("read_bytes") // 512,
        write_sectors=count("write_bytes") // 512,
        read_merges=count("read_merges"),
        write_merges=count("write_merges"),
        member=member,
    )
