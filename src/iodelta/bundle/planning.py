"""Plan a bundle's experiment on this machine, to show it before anything runs. Changes nothing."""

from __future__ import annotations

import itertools
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from iodelta.bundle.dangers import Danger, dangers
from iodelta.bundle.packed import Packed
from iodelta.errors import RequestError
from iodelta.experiment import (
    Cell,
    Condition,
    Experiment,
    Option,
    Target,
    Variant,
    overridden,
    parse,
    toml_text,
)
from iodelta.experiment.values import seconds
from iodelta.experiment.written import rendered
from iodelta.jobfile import canonical, runs_command
from iodelta.knob.affinity import DEVICE_QUEUES, labelled_value
from iodelta.lab.account import Account
from iodelta.lab.folder import EXPERIMENT
from iodelta.lab.judged import read_plan
from iodelta.lab.plan import Plan, make_plan
from iodelta.lab.requests import Requests
from iodelta.lab.session import without
from iodelta.lab.setup import Survey, check_options, survey, unsettable
from iodelta.machine import LocalMachine, Machine
from iodelta.probe.queues import numbers
from iodelta.probe.topology import resolve
from iodelta.workload.fio import command_of

CPU_OPTIONS = frozenset(
    "cpus_allowed sqthread_poll_cpu gtod_cpu verify_async_cpus".split()
)
"""fio options (first names) whose values are CPUs."""
NODE_OPTIONS = frozenset({"numa_cpu_nodes", "numa_mem_policy"})
KINDS = ("cpus", "numa")
SIZE = re.compile(r"\d{1,15}[kmgtpKMGTP%]?")
LONGEST_NAME = 1000
"""Characters of a cell's name."""

Maps = Mapping[str, Mapping[str, str]]
"""``cpus`` or ``numa`` -> set there (``*``: any set that this machine lacks) -> set here."""


class Mapped(msgspec.Struct, frozen=True):
    """The experiment as it would run here."""

    experiment: Experiment
    text: str
    """The text of its file."""
    notes: tuple[str, ...]
    """Differences from the original experiment."""


def maps(given: Sequence[str]) -> Maps:
    """Parse ``--map cpus=0-31:0-1``, or ``cpus=0-1`` for every set that this machine lacks. Raises RequestError."""
    by_kind: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for text in given:
        kind, _, rest = text.partition("=")
        there, colon, here = rest.rpartition(":")
        valid_there = not colon or numbers(there.removeprefix("node:"))
        if kind not in KINDS or not valid_there or not numbers(here):
            raise RequestError(
                f"{text!r} is not a valid mapping",
                place="--map",
                remedy="as in --map cpus=0-31:0-1, or --map numa=0",
            )
        by_kind[kind][there or "*"] = here
    return by_kind


def checked(experiment: Experiment, place: str) -> Experiment:
    """Check the experiment of a stranger's plan as an experiment file is checked.

    A plan can contain more than a file can; all of that is refused, except the names of cells. Raises RequestError.
    """
    if not experiment.conditions or not experiment.cells:
        raise _unsayable(place)
    # The experiment as a file expresses it: flags have values, and sizes of single cells, which a file gives as a
    # list, are omitted
    replace, prepare = msgspec.structs.replace, experiment.prepare
    # A parameter of a command may be named `size` without being one.
    is_fio = experiment.cells[0].command is None
    plain_options = _sizeless if is_fio else _filled
    cells = [
        replace(cell, options=plain_options(cell.options)) for cell in experiment.cells
    ]
    variants = [
        replace(variant, options=plain_options(variant.options))
        for variant in experiment.variants
    ]
    conditions = [
        replace(condition, background_fio=_filled(condition.background_fio))
        for condition in experiment.conditions
    ]
    if prepare is not None:
        prepare = replace(prepare, workload=_filled(prepare.workload))
    plain = replace(
        experiment,
        cells=tuple(cells),
        variants=tuple(variants),
        conditions=tuple(conditions),
        prepare=prepare,
    )
    if _says(parse(rendered(plain), place, numbered=False)) != _says(plain):
        raise _unsayable(place)
    if not all(map(_has_plain_sizes, experiment.cells)):
        raise _unsayable(place)
    if not _are_names([cell.name for cell in plain.cells]):
        raise _unsayable(place)
    return experiment


def _has_plain_sizes(cell: Cell) -> bool:
    """Return whether the sizes of a cell, which the comparison with a file omits, are numbers with a unit."""
    if cell.command is not None:
        return True
    for name, value in cell.options:
        if name == "size" and not SIZE.fullmatch(value or ""):
            return False
    return True


def _are_names(names: Sequence[str]) -> bool:
    """Return whether all are different, printable and not too long."""
    if len(set(names)) < len(names):
        return False
    return all(name.isprintable() and len(name) <= LONGEST_NAME for name in names)


def _unsayable(place: str) -> RequestError:
    return RequestError(
        "its plan contains settings that no experiment file can contain",
        place=place,
        remedy="ask its author for a bundle that `iodelta pack` made",
    )


def _says(experiment: Experiment) -> tuple[object, ...]:
    """Return the contents of an experiment except the names of its cells."""
    cells = [(cell.condition, cell.options, cell.command) for cell in experiment.cells]
    tables = (
        experiment.variants,
        experiment.conditions,
        experiment.design,
        experiment.prepare,
        experiment.measures,
    )
    return (
        experiment.question,
        experiment.baseline,
        experiment.margin,
        experiment.target,
        cells,
        *tables,
    )


def _sizeless(given: tuple[Option, ...]) -> tuple[Option, ...]:
    return tuple(option for option in _filled(given) if option[0] != "size")


def _filled(given: tuple[Option, ...]) -> tuple[Option, ...]:
    return tuple((name, "1" if value is None else value) for name, value in given)


def onto(
    experiment: Experiment,
    text: str,
    target: str,
    size: str,
    given: Maps,
    here: Mapping[str, str],
) -> Mapped:
    """The experiment with the target and the CPU sets of this machine.

    ``text`` is its original file, ``here`` the CPUs and nodes of this machine as lists. Raises RequestError with every
    set that cannot be mapped.
    """
    # Notes for a reader about a target or size that differs here
    there = experiment.target
    differences: list[str] = []
    if target or there.path:
        target_there = there.path or "a scratch file"
        target_here = target or "a scratch file"
        differences.append(f"target: {target_there} there, {target_here} here")
    if size and size != there.size:
        size_there = there.size or "all of the target"
        differences.append(f"size: {size_there} there, {size} here")
    notes = differences
    sets: dict[tuple[str, str], str] = {}
    missing: list[str] = []
    found: dict[tuple[str, str], None] = {}
    for condition in experiment.conditions:
        found |= dict.fromkeys(_sets_in(condition.knobs, condition.background_fio))
    for variant in experiment.variants:
        found |= dict.fromkeys(_sets_in(variant.knobs, variant.options))
    for cell in experiment.cells:
        found |= dict.fromkeys(_sets_in({}, cell.options))
    for kind, value in list(found):
        placed = _placed(kind, value, given, here)
        sets[kind, value] = placed
        if not placed:
            missing.append(f"{kind} {value}")
        elif placed != value:
            notes.append(f"{kind}: {value} there, {placed} here")
    if missing:
        raise RequestError(
            f"this machine has no {'; '.join(missing)} (cpus {here['cpus']}, numa {here['numa']})",
            place="--map",
            remedy="give a replacement for each, as in --map cpus=0-31:0-1, or --leave-out to continue without",
        )
    changed = _moved(experiment, Target(target, size or experiment.target.size), sets)
    doubled = _doubled(changed, experiment)
    if doubled:
        raise RequestError(
            f"with this mapping the variants {' and '.join(doubled)} become the same",
            place="--map",
            remedy="map their sets to different ones, or leave one out of the question",
        )
    return Mapped(changed, _file(text, experiment, changed, sets), tuple(notes))


def unplaceable(
    experiment: Experiment, given: Maps, here: Mapping[str, str]
) -> dict[str, str]:
    """Variants with CPU or node sets that this machine lacks and no mapping replaces, with the reason."""
    reasons = {}
    for variant in experiment.variants:
        lacking: list[str] = []
        for kind, value in _sets_in(variant.knobs, variant.options):
            if not _placed(kind, value, given, here):
                lacking.append(f"{kind} {value}")
        if lacking:
            reasons[variant.name] = f"this machine has no {', '.join(lacking)}"
    return reasons


def _sets_in(
    knobs: Mapping[str, str], options: tuple[Option, ...]
) -> list[tuple[str, str]]:
    """Kind and value of every set of CPUs or nodes in these settings."""
    pairs = [(name, value) for name, value in knobs.items() if name in KINDS]
    for name, value in options:
        kind = _kind(name)
        if kind and value:
            pairs.append((kind, value))
    return pairs


def _kind(name: str) -> str:
    """Return the kind of set that an option of fio takes: ``cpus``, ``numa``, or empty."""
    first_name = canonical(name)
    if first_name in CPU_OPTIONS:
        return "cpus"
    if first_name in NODE_OPTIONS:
        return "numa"
    return ""


def _placed(kind: str, value: str, given: Maps, here: Mapping[str, str]) -> str:
    """Return the set of this machine that replaces a set of the original; empty without one."""
    # fio's numa_mem_policy puts a word before the nodes: `bind:0`.
    prefix, wanted = "", value
    if kind == "numa":
        # `bind:0-1` -> `bind:`, `0-1`; nothing before nodes alone
        policy = re.fullmatch(r"([a-z]+:)(.+)", value)
        if not policy:
            prefix, wanted = "", value
        else:
            prefix, wanted = policy[1], policy[2]
    if wanted in given[kind]:
        return prefix + given[kind][wanted]
    if _is_within(wanted, here[kind]) or _is_by_topology(wanted, here):
        return value
    if "*" not in given[kind]:
        return ""
    return prefix + given[kind]["*"]


def _is_by_topology(wanted: str, here: Mapping[str, str]) -> bool:
    """Return whether a set has the same meaning here, with other CPUs: the queues of the device, or a node of this
    machine.
    """
    if wanted == DEVICE_QUEUES:
        return True
    node = wanted.removeprefix("node:")
    return node != wanted and _is_within(node, here["numa"])


def _is_within(wanted: str, offered: str) -> bool:
    """Return whether the text is a set, and this machine offers all of it."""
    members = numbers(wanted)
    return bool(members) and members <= numbers(offered)


def _moved(
    experiment: Experiment, target: Target, sets: Mapping[tuple[str, str], str]
) -> Experiment:
    """Return the experiment on another target, with every set of CPUs or nodes replaced by that of ``sets``."""
    replace = msgspec.structs.replace

    def knobs(given: dict[str, str]) -> dict[str, str]:
        return {name: sets.get((name, value), value) for name, value in given.items()}

    def options(given: tuple[Option, ...]) -> tuple[Option, ...]:
        moved: list[Option] = []
        for name, value in given:
            moved.append(
                (name, (sets.get((_kind(name), value), value) if value else value))
            )
        return tuple(moved)

    cells = [replace(cell, options=options(cell.options)) for cell in experiment.cells]
    variants = [
        replace(variant, knobs=knobs(variant.knobs), options=options(variant.options))
        for variant in experiment.variants
    ]
    conditions = [
        Condition(
            condition.name,
            condition.background,
            options(condition.background_fio),
            knobs(condition.knobs),
        )
        for condition in experiment.conditions
    ]
    return replace(
        experiment,
        target=target,
        cells=tuple(cells),
        variants=tuple(variants),
        conditions=tuple(conditions),
    )


def _doubled(changed: Experiment, before: Experiment) -> tuple[str, ...]:
    """Return names of two variants that differed in the original and are equal here; empty without such a pair."""
    pairs = list(zip(before.variants, changed.variants, strict=True))
    for number, (there, here) in enumerate(pairs):
        for other_there, other_here in pairs[:number]:
            if _same_settings(here, other_here) and not _same_settings(
                there, other_there
            ):
                return other_here.name, here.name
    return ()


def _same_settings(one: Variant, other: Variant) -> bool:
    return one.knobs == other.knobs and one.options == other.options


def _file(
    text: str,
    before: Experiment,
    changed: Experiment,
    sets: Mapping[tuple[str, str], str],
) -> str:
    """Return the original file with the mapped values, if it still expresses the experiment; else a new file."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return rendered(changed)
    workload = data.get("workload")
    if not isinstance(workload, dict) or "job_file" in workload:
        return rendered(changed)
    target = msgspec.to_builtins(changed.target)
    data["target"] = {key: value for key, value in target.items() if value}
    for table in ("workload", "variant", "condition"):
        data[table] = _replaced(data.get(table, {}), sets)
    for key in ("filename", "directory", "size"):
        data["workload"].pop(key, None)
    edited = toml_text(data)
    try:
        # No file next to it may be read: it came from a stranger.
        parsed = parse(edited, "experiment.toml", base=Path("/nonexistent"))
    except RequestError:
        return rendered(changed)
    if _says(parsed) != _says(changed):
        return rendered(changed)
    return edited


def _replaced(table: Any, sets: Mapping[tuple[str, str], str]) -> Any:
    if not isinstance(table, dict):
        return table
    replaced: dict[str, Any] = {}
    for key, value in table.items():
        name = key.removeprefix("fio.")
        kind = name if name in KINDS else _kind(name)
        if isinstance(value, list):
            replaced[key] = [_here(kind, item, sets) for item in value]
        elif isinstance(value, str):
            replaced[key] = _here(kind, value, sets)
        else:
            replaced[key] = _replaced(value, sets)
    return replaced


def _here(kind: str, value: Any, sets: Mapping[tuple[str, str], str]) -> Any:
    """Return a value of a file on this machine; a value that is not a string is unchanged."""
    if not isinstance(value, str):
        return value
    return sets.get((kind, value), value)


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
    # For a command, iodelta shows all words and asks for consent.
    if not experiment.of_command:
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
    text = bundle.read(EXPERIMENT).decode("utf-8", "replace")
    if budget:
        try:
            design = msgspec.structs.replace(experiment.design, budget=seconds(budget))
        except ValueError as error:
            raise RequestError(str(error), place="--budget") from error
        experiment = msgspec.structs.replace(experiment, design=design)
        text = overridden(text, design={"budget": budget}) or text
    if experiment.target.path and not target:
        raise RequestError(
            f"it was measured on {_described(bundle, experiment)}; only you know which device matches it here",
            place=str(bundle.path),
            remedy="name a block device, file or directory with --target, or with --hosts a class: --target class:NAME",
        )
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
        reasons = "; ".join(f"{name}: {reason}" for name, reason in absent.items())
        raise RequestError(
            f"not every variant can be set here: {reasons}",
            place=place,
            remedy="--leave-out continues without these, and the result says so",
        )
    experiment, left_out = _reduced(mapped.experiment, absent)
    size = size or experiment.target.size
    # Its sets are already mapped to this machine.
    nothing: Maps = {"cpus": {}, "numa": {}}
    return onto(
        experiment, mapped.text, target, size, nothing, _offered(machine)
    ), left_out


def _offered(machine: Machine) -> dict[str, str]:
    """Return the CPUs and memory nodes that iodelta may use on the machine."""
    status = machine.read("/proc/self/status")
    return {
        "cpus": labelled_value(status, "Cpus_allowed_list"),
        "numa": labelled_value(status, "Mems_allowed_list"),
    }


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
        lines[shlex.join(command_of(requests.of(cell, variant)))] = None
    return tuple(lines)
