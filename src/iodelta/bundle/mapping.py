"""A stranger's experiment on this machine: another target, other CPUs; what cannot be mapped is said, never dropped."""

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
LONGEST_NAME = 1000
"""Characters of a cell's name."""

Maps = Mapping[str, Mapping[str, str]]
"""``cpus`` or ``numa`` -> set there (``*``: any that is not here) -> set here."""


class Mapped(msgspec.Struct, frozen=True):
    """The experiment as it would run here."""

    experiment: Experiment
    text: str
    """Its file."""
    notes: tuple[str, ...]
    """What is not as it was there."""


def maps(given: Sequence[str]) -> Maps:
    """``--map cpus=0-31:0-1``, or ``cpus=0-1`` for every set that is not here. Raises RequestError."""
    by_kind: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for text in given:
        kind, _, rest = text.partition("=")
        there, colon, here = rest.rpartition(":")
        if (
            kind not in KINDS
            or not numbers(here)
            or (colon and not numbers(there.removeprefix("node:")))
        ):
            raise RequestError(
                f"{text!r} is not a valid mapping",
                place="--map",
                remedy="as in --map cpus=0-31:0-1, or --map numa=0",
            )
        by_kind[kind][there or "*"] = here
    return by_kind


def checked(experiment: Experiment, place: str) -> Experiment:
    """The experiment of a stranger's plan, read again as an experiment file would be, with all its refusals.

    A plan may say more than a file can; whatever a file could not say is refused. Names of cells are the plan's.
    Raises RequestError.
    """
    if not experiment.conditions or not experiment.cells:
        raise _unsayable(place)
    plain = _plain(experiment)
    parsed = parse(rendered(plain), place, numbered=False)
    names = [cell.name for cell in plain.cells]
    is_same = _says(parsed) == _says(plain)
    if (
        not is_same
        or not all(map(_has_plain_sizes, experiment.cells))
        or not _are_names(names)
    ):
        raise _unsayable(place)
    return experiment


def _has_plain_sizes(cell: Cell) -> bool:
    if cell.command is not None:
        return True
    sizes = [value or "" for name, value in cell.options if name == "size"]
    return all(re.fullmatch(r"\d{1,15}[kmgtpKMGTP%]?", size) for size in sizes)


def _are_names(names: Sequence[str]) -> bool:
    """Whether each may be printed, and none stands twice."""
    fit = all(name.isprintable() and len(name) <= LONGEST_NAME for name in names)
    return fit and len(set(names)) == len(names)


def _unsayable(place: str) -> RequestError:
    return RequestError(
        "its plan contains settings that no experiment file can contain",
        place=place,
        remedy="ask its author for a bundle that `iodelta pack` made",
    )


def _says(experiment: Experiment) -> tuple[object, ...]:
    """What an experiment says, apart from what its cells are called."""
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
    """As a file says it: flags have values, and sizes of single cells (which a file gives as a list) are left out. A
    parameter of a command may be called ``size`` and is none."""
    replace, prepare = msgspec.structs.replace, experiment.prepare
    sized = _sizeless if experiment.cells[0].command is None else _filled
    return replace(
        experiment,
        cells=tuple(
            replace(cell, options=sized(cell.options)) for cell in experiment.cells
        ),
        variants=tuple(
            replace(variant, options=sized(variant.options))
            for variant in experiment.variants
        ),
        conditions=tuple(
            replace(condition, background_fio=_filled(condition.background_fio))
            for condition in experiment.conditions
        ),
        prepare=replace(prepare, workload=_filled(prepare.workload))
        if prepare is not None
        else None,
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
    """The experiment with its target and CPU sets put in their places here.

    ``text`` is its file as it came, ``here`` what this machine offers: CPUs and nodes as lists. Raises RequestError
    that lists every set that cannot be mapped.
    """
    notes = _target_notes(experiment.target, target, size)
    sets = {
        (kind, value): _placed(kind, value, given, here)
        for kind, value in _sets(experiment)
    }
    missing = [f"{kind} {value}" for (kind, value), there in sets.items() if not there]
    if missing:
        raise RequestError(
            f"this machine has no {'; '.join(missing)} (cpus {here['cpus']}, numa {here['numa']})",
            place="--map",
            remedy="give a replacement for each, as in --map cpus=0-31:0-1, or --leave-out to continue without",
        )
    notes += [
        f"{kind}: {value} there, {mine} here"
        for (kind, value), mine in sets.items()
        if value != mine
    ]
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
    notes: list[str] = []
    if path or there.path:
        notes.append(
            f"target: {there.path or 'a scratch file'} there, {path or 'a scratch file'} here"
        )
    if size and size != there.size:
        notes.append(f"size: {there.size or 'all of the target'} there, {size} here")
    return notes


def unplaceable(
    experiment: Experiment, given: Maps, here: Mapping[str, str]
) -> dict[str, str]:
    """Variants whose CPU or node sets are not here and are not mapped, with the reason."""
    reasons = {}
    for variant in experiment.variants:
        lacking = [
            f"{k} {v}"
            for k, v in _own_sets(variant.knobs, variant.options)
            if not _placed(k, v, given, here)
        ]
        if lacking:
            reasons[variant.name] = f"this machine has no {', '.join(lacking)}"
    return reasons


def _sets(experiment: Experiment) -> list[tuple[str, str]]:
    sets: dict[tuple[str, str], None] = {}
    for condition in experiment.conditions:
        sets |= dict.fromkeys(_own_sets(condition.knobs, condition.background_fio))
    for variant in experiment.variants:
        sets |= dict.fromkeys(_own_sets(variant.knobs, variant.options))
    for cell in experiment.cells:
        sets |= dict.fromkeys(_own_sets({}, cell.options))
    return list(sets)


def _own_sets(
    knobs: Mapping[str, str], options: tuple[Option, ...]
) -> list[tuple[str, str]]:
    pairs = [(name, value) for name, value in knobs.items() if name in KINDS]
    for name, value in options:
        kind = _kind(name)
        if kind and value:
            pairs.append((kind, value))
    return pairs


def _kind(name: str) -> str:
    first = canonical(name)
    if first in CPU_OPTIONS:
        return "cpus"
    return "numa" if first in NODE_OPTIONS else ""


def _placed(kind: str, value: str, given: Maps, here: Mapping[str, str]) -> str:
    """What stands here for a set of there; empty when nothing does."""
    policy = re.fullmatch(r"([a-z]+:)(.+)", value) if kind == "numa" else None
    prefix, wanted = policy.groups() if policy else ("", value)
    if wanted in given[kind]:
        return prefix + given[kind][wanted]
    if _is_within(wanted, here[kind]):
        return value
    # A node and the queues of the device mean the same here, of other CPUs.
    node = wanted.removeprefix("node:")
    if wanted == DEVICE_QUEUES or (node != wanted and _is_within(node, here["numa"])):
        return value
    if "*" not in given[kind]:
        return ""
    return prefix + given[kind]["*"]


def _is_within(wanted: str, offered: str) -> bool:
    return bool(numbers(wanted)) and numbers(wanted) <= numbers(offered)


def _moved(
    experiment: Experiment, target: Target, sets: Mapping[tuple[str, str], str]
) -> Experiment:
    def knobs(given: dict[str, str]) -> dict[str, str]:
        return {name: sets.get((name, value), value) for name, value in given.items()}

    def options(given: tuple[Option, ...]) -> tuple[Option, ...]:
        return tuple(
            (name, sets.get((_kind(name), value), value) if value else value)
            for name, value in given
        )

    return msgspec.structs.replace(
        experiment,
        target=target,
        cells=tuple(
            msgspec.structs.replace(cell, options=options(cell.options))
            for cell in experiment.cells
        ),
        variants=tuple(
            msgspec.structs.replace(
                variant, knobs=knobs(variant.knobs), options=options(variant.options)
            )
            for variant in experiment.variants
        ),
        conditions=tuple(
            Condition(
                condition.name,
                condition.background,
                options(condition.background_fio),
                knobs(condition.knobs),
            )
            for condition in experiment.conditions
        ),
    )


def _doubled(changed: Experiment, before: Experiment) -> tuple[str, ...]:
    """Two variants that differed there and do not here."""
    for number, variant in enumerate(changed.variants):
        for place in range(number):
            other = changed.variants[place]
            if (variant.knobs, variant.options) == (other.knobs, other.options):
                was, is_ = before.variants[place], before.variants[number]
                if (was.knobs, was.options) != (is_.knobs, is_.options):
                    return other.name, variant.name
    return ()


def _file(
    text: str,
    before: Experiment,
    changed: Experiment,
    sets: Mapping[tuple[str, str], str],
) -> str:
    """The file as it came with what was mapped in its place, where that says the same; else written anew."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return rendered(changed)
    if not isinstance(data.get("workload"), dict) or "job_file" in data["workload"]:
        return rendered(changed)
    data["target"] = {
        key: value
        for key, value in msgspec.to_builtins(changed.target).items()
        if value
    }
    for table in ("workload", "variant", "condition"):
        data[table] = _replaced(data.get(table, {}), sets)
    for key in ("filename", "directory", "size"):
        data["workload"].pop(key, None)
    again = toml_text(data)
    try:
        same = _says(
            parse(again, "experiment.toml", base=Path("/nonexistent"))
        ) == _says(changed)
    except RequestError:
        same = False
    if same:
        return again
    return rendered(changed)


def _replaced(table: Any, sets: Mapping[tuple[str, str], str]) -> Any:
    if not isinstance(table, dict):
        return table
    replaced: dict[str, Any] = {}
    for key, value in table.items():
        name = key.removeprefix("fio.")
        kind = name if name in KINDS else _kind(name)
        if isinstance(value, list):
            replaced[key] = [
                sets.get((kind, item), item) if isinstance(item, str) else item
                for item in value
            ]
        else:
            replaced[key] = (
                sets.get((kind, value), value)
                if isinstance(value, str)
                else _replaced(value, sets)
            )
    return replaced
