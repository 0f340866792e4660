"""Plan a bundle's experiment on this machine, to show it before anything runs. Changes nothing."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence

import msgspec

from iodelta.bundle.dangers import Danger, dangers
from iodelta.bundle.mapping import Mapped, Maps, checked, maps, onto, unplaceable
from iodelta.bundle.packed import Packed
from iodelta.errors import RequestError
from iodelta.experiment import Experiment, overridden
from iodelta.experiment.values import seconds
from iodelta.jobfile import runs_command
from iodelta.knob.affinity import labelled_value
from iodelta.lab.account import Account
from iodelta.lab.bench import Requests
from iodelta.lab.folder import EXPERIMENT
from iodelta.lab.plan import Plan, make_plan
from iodelta.lab.session import read_plan, without
from iodelta.lab.setup import Survey, check_options, survey, unsettable
from iodelta.machine import LocalMachine, Machine
from iodelta.probe.topology import resolve
from iodelta.workload.fio import command_of

LEAST = 12
"""Fewest blocks of a reproduction. It has a single look, so that a lucky start cannot stop it early."""


class Prepared(msgspec.Struct, frozen=True):
    """A reproduction as it would run here."""

    experiment: Experiment
    text: str
    plan: Plan
    found: Survey
    notes: tuple[str, ...]
    """Differences from the original experiment."""
    dangers: tuple[Danger, ...]
    """Everything that needs separate consent."""


def prepare(
    bundle: Packed,
    machine: Machine,
    *,
    target: str = "",
    size: str = "",
    given: Sequence[str] = (),
    budget: str = "",
    leave_out: bool = False,
    blocks: int = LEAST,
) -> Prepared:
    """Plan a bundle's experiment on ``machine``, with about ``blocks`` blocks of each cell.

    Runs and sets nothing of the bundle; fio only parses its options. Raises RequestError with everything that is
    impossible here.
    """
    place = str(bundle.path)
    theirs = whole(bundle).experiment
    here = () if machine.name == LocalMachine.name else (machine.name,)
    experiment = msgspec.structs.replace(checked(theirs, place), machines=here)
    _runs_no_program(experiment, place)
    text = bundle.read(EXPERIMENT).decode("utf-8", "replace")
    if budget:
        experiment = _with_budget(experiment, budget)
        text = overridden(text, design={"budget": budget}) or text
    if experiment.target.path and not target:
        raise _no_target(bundle, experiment)
    mapped, left_out = _mapped(
        experiment, text, machine, target, size, maps(given), leave_out=leave_out
    )
    mapped, more = _settable(mapped, machine, target, size, place, leave_out=leave_out)
    text = mapped.text
    if here or theirs.machines:
        text = overridden(text, top={"machine": machine.name}) or text
    surveyed = survey(machine, mapped.experiment, engines=False)
    risky = dangers(mapped.experiment)
    # While it parses other options than the harmless ones, fio may load code or open files.
    if not risky:
        check_options(machine, mapped.experiment, surveyed)
    return Prepared(
        mapped.experiment,
        text,
        with_one_look(make_plan(mapped.experiment), blocks),
        surveyed,
        (*left_out, *more, *mapped.notes),
        risky,
    )


def _mapped(
    experiment: Experiment,
    text: str,
    machine: Machine,
    target: str,
    size: str,
    mapping: Maps,
    *,
    leave_out: bool,
) -> tuple[Mapped, list[str]]:
    """Return the experiment on the target and CPUs of this machine, and notes on omitted variants. Raises RequestError."""
    offered = _offered(machine)
    absent = unplaceable(experiment, mapping, offered)
    left_out: list[str] = []
    if absent and leave_out:
        experiment, left_out = _reduced(experiment, absent)
    return onto(experiment, text, target, size, mapping, offered), left_out


def _settable(
    mapped: Mapped,
    machine: Machine,
    target: str,
    size: str,
    place: str,
    *,
    leave_out: bool,
) -> tuple[Mapped, list[str]]:
    """Return the experiment without variants that cannot be set here, and notes on these. Raises RequestError."""
    topology = resolve(machine, target or machine.directory)
    absent = unsettable(machine, mapped.experiment, topology)
    if not absent:
        return mapped, []
    if not leave_out:
        raise _unsettable(absent, place)
    experiment, left_out = _reduced(mapped.experiment, absent)
    size = size or experiment.target.size
    # Its sets are already mapped to this machine.
    nothing: Maps = {"cpus": {}, "numa": {}}
    again = onto(experiment, mapped.text, target, size, nothing, _offered(machine))
    return again, left_out


def _offered(machine: Machine) -> dict[str, str]:
    """Return the CPUs and memory nodes that iodelta may use on the machine."""
    status = machine.read("/proc/self/status")
    return {
        "cpus": labelled_value(status, "Cpus_allowed_list"),
        "numa": labelled_value(status, "Mems_allowed_list"),
    }


def _no_target(bundle: Packed, experiment: Experiment) -> RequestError:
    return RequestError(
        f"it was measured on {_described(bundle, experiment)}; only you know which device matches it here",
        place=str(bundle.path),
        remedy="name a block device, file or directory with --target, or with --hosts a class: --target class:NAME",
    )


def _unsettable(absent: dict[str, str], place: str) -> RequestError:
    reasons = "; ".join(f"{name}: {reason}" for name, reason in absent.items())
    return RequestError(
        f"not every variant can be set here: {reasons}",
        place=place,
        remedy="--leave-out continues without these, and the result says so",
    )


def _with_budget(experiment: Experiment, budget: str) -> Experiment:
    try:
        design = msgspec.structs.replace(experiment.design, budget=seconds(budget))
    except ValueError as error:
        raise RequestError(str(error), place="--budget") from error
    return msgspec.structs.replace(experiment, design=design)


def whole(bundle: Packed) -> Plan:
    """Return the plan of a complete experiment. Raises RequestError for an incomplete one, MeasureError for a damaged
    one.
    """
    account = Account(bundle.events())
    if not account.over:
        raise RequestError(
            f"the experiment in it is not complete ({account.state}): there is nothing yet to reproduce",
            place=str(bundle.path),
            remedy="ask its author to finish it (`iodelta run FOLDER`) and to pack it again",
        )
    return read_plan(bundle)


def _runs_no_program(experiment: Experiment, place: str) -> None:
    """Raises RequestError for options with which fio runs a program or creates a file; no consent allows these."""
    # For a command, iodelta shows all words and asks for consent.
    if experiment.of_command:
        return
    options = [cell.options for cell in experiment.cells]
    options += [variant.options for variant in experiment.variants]
    options += [condition.background_fio for condition in experiment.conditions]
    for name, value in itertools.chain.from_iterable(options):
        danger = runs_command(name, value)
        if danger:
            raise RequestError(
                f"{danger}, which iodelta never allows",
                place=place,
                remedy="ask its author for an experiment without it; a command knob can be seen, and undone",
            )


def with_one_look(plan: Plan, blocks: int) -> Plan:
    """Return the plan with a single look, at about ``blocks`` blocks. A run that stops at the first clear look
    exaggerates the change, and a reproduction compares sizes. A screen of many cells is unchanged."""
    if plan.rules.family == "screen":
        return plan
    most = min(plan.rules.max_blocks, max(1, int(plan.budget_rounds)))
    rules = msgspec.structs.replace(plan.rules, looks=(min(most, max(LEAST, blocks)),))
    return msgspec.structs.replace(plan, rules=rules)


def _reduced(
    experiment: Experiment, absent: dict[str, str]
) -> tuple[Experiment, list[str]]:
    """Return the experiment without these variants, and a note on each. Raises RequestError if nothing is left to
    compare.
    """
    names = [variant.name for variant in experiment.variants]
    remaining = [name for name in names if name not in absent]
    reasons = [f"{name}: {reason}" for name, reason in absent.items()]
    if experiment.baseline in absent or len(remaining) < 2:
        raise RequestError(
            f"without them nothing is left to compare: {'; '.join(reasons)}",
            remedy="map what is missing: --map, --target",
        )
    notes = [f"left out: {reason}" for reason in reasons]
    return without(experiment, absent), notes


def _described(bundle: Packed, experiment: Experiment) -> str:
    """Return the target of the first session, for a reader: kind, path and size."""
    sessions = Account(bundle.events()).sessions
    there = sessions[0].target if sessions else {}
    size = there.get("size_bytes")
    parts = [str(there.get("kind") or "a target"), experiment.target.path]
    if isinstance(size, int) and size:
        parts.append(f"({size} bytes)")
    return " ".join(parts)


def commands(prepared: Prepared) -> tuple[str, ...]:
    """fio's command lines, each once, with a placeholder for the directory of the run."""
    experiment, surveyed = prepared.experiment, prepared.found
    requests = Requests(
        experiment, surveyed.target, surveyed.size, surveyed.fio, workdir="WORKDIR"
    )
    lines: dict[str, None] = {}
    for cell, variant in itertools.product(experiment.cells, experiment.variants):
        words = command_of(requests.of(cell, variant))
        lines[shlex.join(words)] = None
    return tuple(lines)
