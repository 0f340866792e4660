"""Map a stranger's experiment to this machine: another target, other CPUs. Nothing is dropped without a message."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from iodelta.errors import RequestError
from iodelta.experiment import (
    Cell,
    Condition,
    Experiment,
    Option,
    Target,
    Variant,
    parse,
    toml_text,
)
from iodelta.experiment.written import rendered
from iodelta.jobfile import canonical
from iodelta.knob.affinity import DEVICE_QUEUES
from iodelta.probe.queues import numbers

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
    plain = _plain(experiment)
    parsed = parse(rendered(plain), place, numbered=False)
    if _says(parsed) != _says(plain):
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


def _plain(experiment: Experiment) -> Experiment:
    """Return the experiment as a file expresses it: flags have values, and sizes of single cells, which a file gives
    as a list, are omitted."""
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
    return replace(
        experiment,
        cells=tuple(cells),
        variants=tuple(variants),
        conditions=tuple(conditions),
        prepare=prepare,
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
    notes = _target_notes(experiment.target, target, size)
    sets: dict[tuple[str, str], str] = {}
    missing: list[str] = []
    for kind, value in _sets(experiment):
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


def _target_notes(there: Target, path: str, size: str) -> list[str]:
    """Notes for a reader about a target or size that differs here."""
    notes: list[str] = []
    if path or there.path:
        target_there = there.path or "a scratch file"
        target_here = path or "a scratch file"
        notes.append(f"target: {target_there} there, {target_here} here")
    if size and size != there.size:
        size_there = there.size or "all of the target"
        notes.append(f"size: {size_there} there, {size} here")
    return notes


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


def _sets(experiment: Experiment) -> list[tuple[str, str]]:
    sets: dict[tuple[str, str], None] = {}
    for condition in experiment.conditions:
        sets |= dict.fromkeys(_sets_in(condition.knobs, condition.background_fio))
    for variant in experiment.variants:
        sets |= dict.fromkeys(_sets_in(variant.knobs, variant.options))
    for cell in experiment.cells:
        sets |= dict.fromkeys(_sets_in({}, cell.options))
    return list(sets)


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
        prefix, wanted = _policy_and_nodes(value)
    if wanted in given[kind]:
        return prefix + given[kind][wanted]
    if _is_within(wanted, here[kind]) or _is_by_topology(wanted, here):
        return value
    if "*" not in given[kind]:
        return ""
    return prefix + given[kind]["*"]


def _policy_and_nodes(value: str) -> tuple[str, str]:
    """``bind:0-1`` -> ``bind:``, ``0-1``; nothing before nodes alone."""
    policy = re.fullmatch(r"([a-z]+:)(.+)", value)
    if not policy:
        return "", value
    return policy[1], policy[2]


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
            here = sets.get((_kind(name), value), value) if value else value
            moved.append((name, here))
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
