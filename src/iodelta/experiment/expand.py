"""Workloads, variants and conditions become one checked experiment with its cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import NoReturn, Protocol

import msgspec

from iodelta.experiment import io_uring
from iodelta.experiment.model import Cell, Condition, Design, Experiment, Option, Target, Variant
from iodelta.experiment.order import place_of
from iodelta.experiment.values import seconds, size_bytes
from iodelta.jobfile import canonical, owned


class Refuse(Protocol):
    """Raises RequestError with the place of a key: tables first, the key last."""

    def __call__(self, what: str, *path: str, remedy: str = "") -> NoReturn: ...


class Workload(msgspec.Struct, frozen=True):
    name: str
    options: tuple[tuple[str, tuple[str | None, ...]], ...]
    """Each option with the values it takes; several make several cells."""
    notes: tuple[str, ...] = ()


def _cells(workload: Workload, several: bool) -> list[tuple[str, tuple[Option, ...]]]:
    keys = [key for key, _ in workload.options]
    varying = [key for key, values in workload.options if len(values) > 1]
    cells = []
    for combination in itertools.product(*(values for _, values in workload.options)):
        options = tuple(zip(keys, combination, strict=True))
        parts = [f"{key}={dict(options)[key]}" for key in varying]
        if several and workload.name:
            parts.insert(0, workload.name)
        cells.append((" ".join(parts) or workload.name or _describe(dict(options)), options))
    return cells


def _describe(options: Mapping[str, str | None]) -> str:
    words = [
        options.get("rw") or options.get("readwrite") or "read",
        options.get("bs") or options.get("blocksize") or "4k",
    ]
    return " ".join(str(word) for word in words)


_LIFTED = {"filename": "path", "directory": "path", "size": "size", "runtime": "trial", "ramp_time": "ramp"}
"""fio options that belong to [target] and [design]: taken out of a pasted command line or job file."""


def assemble(
    question: str,
    baseline: str,
    margin: float,
    target: Target,
    workloads: tuple[Workload, ...],
    variants: tuple[Variant, ...],
    conditions: tuple[Condition, ...],
    design: Design,
    *,
    refuse: Refuse,
) -> Experiment:
    names = [v.name for v in variants]
    if design.placebo and names:
        base = next((v for v in variants if v.name == baseline), variants[0])
        variants = (*variants, Variant("placebo", base.knobs, base.options))
    if len(variants) < 2:
        refuse(
            "there is nothing to compare: an experiment needs two variants at least",
            "variant",
            remedy="add [variant.NAME] tables (--variant NAME:knob=value), or ask for an A/A with placebo = true",
        )
    if baseline not in names:
        refuse(f"the baseline {baseline!r} is no variant", "baseline", remedy=f"variants: {', '.join(names)}")
    tool, workloads = _tool(workloads, refuse)
    workloads, target, design = _lift(workloads, target, design, refuse, fio=not tool)
    if tool:
        workloads = tuple(_for_io_uring(workload, tool, refuse) for workload in workloads)
        variants = tuple(_variant_for_io_uring(variant, refuse) for variant in variants)
    conditions = conditions or (Condition(""),)
    expanded = [cell for workload in workloads for cell in _cells(workload, len(workloads) > 1)]
    cells = tuple(
        Cell(f"{condition.name}: {name}" if len(conditions) > 1 else name, condition.name, options)
        for condition in conditions
        for name, options in expanded
    )
    doubled = [name for name in {c.name for c in cells} if sum(c.name == name for c in cells) > 1]
    if doubled:
        refuse(f"two cells are both called {doubled[0]!r}", "workload", remedy="a value is listed twice")
    place = place_of(cell.name for cell in cells)
    cells = tuple(sorted(cells, key=lambda cell: place(cell.name)))
    notes = [note for workload in workloads for note in workload.notes]
    for condition in conditions:
        dropped = [name for name, _ in condition.background_fio if (ours := owned(name)) and ours.harmless]
        notes += (f"condition {condition.name}: {note}" for note in without_effect(dropped))
    return Experiment(
        question, baseline, margin, target, cells, variants, conditions, design, tuple(dict.fromkeys(notes))
    )


def _tool(workloads: tuple[Workload, ...], refuse: Refuse) -> tuple[str, tuple[Workload, ...]]:
    """What makes the load when it is not fio itself, and the workloads without saying so."""
    given = {values for workload in workloads for values in [dict(workload.options).get(io_uring.TOOL, ("fio",))]}
    (tool, *more), *others = given
    if more or others:
        refuse("one experiment is measured with one tool", "workload", io_uring.TOOL, remedy="make two of it")
    if tool in (None, "fio"):
        tool = ""
    elif tool != io_uring.IO_URING and not tool.startswith("/"):
        refuse(
            f"{tool!r} is no tool that iodelta knows",
            *("workload", io_uring.TOOL),
            remedy=f'fio, "{io_uring.IO_URING}" (see `iodelta fio build`), or the absolute path of a t/io_uring',
        )
    without = tuple(
        msgspec.structs.replace(one, options=tuple(option for option in one.options if option[0] != io_uring.TOOL))
        for one in workloads
    )
    return tool or "", without


def _for_io_uring(workload: Workload, tool: str, refuse: Refuse) -> Workload:
    """The options of a workload by the names in which cells have them, with the tool's own defaults said openly."""
    place = ("workload", workload.name) if workload.name else ("workload",)
    named: dict[str, tuple[str | None, ...]] = {}
    for key, values in workload.options:
        name = _io_uring_name(key, values, refuse, *place, key)
        if name in named:
            refuse(f"{key} is given twice, by two of its names", *place, key)
        named[name] = values
    defaults = {name: (value,) for name, value in io_uring.DEFAULTS.items() if name not in named}
    return msgspec.structs.replace(workload, options=tuple({io_uring.TOOL: (tool,), **defaults, **named}.items()))


def _variant_for_io_uring(variant: Variant, refuse: Refuse) -> Variant:
    options = tuple(
        (_io_uring_name(key, (value,), refuse, "variant", variant.name, f"fio.{key}"), value)
        for key, value in variant.options
    )
    return msgspec.structs.replace(variant, options=options)


def _io_uring_name(key: str, values: tuple[str | None, ...], refuse: Refuse, *place: str) -> str:
    name = io_uring.name_of(key)
    if name is None:
        refuse(f"t/io_uring has no option {key}", *place, remedy=f"it has {io_uring.allowed()}")
    for value in values:
        try:
            io_uring.switches(name, value)
        except ValueError as error:
            refuse(f"{key}: {error}", *place)
    return name


def _lift(
    workloads: tuple[Workload, ...], target: Target, design: Design, refuse: Refuse, *, fio: bool = True
) -> tuple[tuple[Workload, ...], Target, Design]:
    """Take what belongs to target and design out of fio options; drop what iodelta does anyway, refuse the rest.

    Options of another tool than ``fio`` are left as they are.
    """
    lifted: dict[str, str] = {}
    kept = []
    for workload in workloads:
        own = []
        dropped = []
        for key, values in workload.options:
            name = canonical(key)
            place = ("workload", workload.name, key) if workload.name else ("workload", key)
            if name in _LIFTED and not (name == "size" and len(values) > 1):
                if len(values) != 1 or not values[0] or lifted.setdefault(name, values[0]) != values[0]:
                    refuse(f"{key} must be one value for the whole experiment", *place)
                if name == "size":
                    _check_size(lifted[name], refuse, *place)
                continue
            ours = owned(key) if fio else None
            if ours is None:
                own.append((key, values))
            elif ours.harmless:
                dropped.append(key)
            else:
                refuse(f"fio option {key}: {ours.why}", *place, remedy=f"remove {key}")
        kept.append(Workload(workload.name, tuple(own), (*workload.notes, *without_effect(dropped))))
    path = _one("path", target.path, [lifted.get("filename", ""), lifted.get("directory", "")], refuse, "target")
    size = _one("size", target.size, [lifted.get("size", "")], refuse, "target")
    times = {}
    for option, key, default in (("runtime", "trial", Design().trial), ("ramp_time", "ramp", Design().ramp)):
        if option in lifted:
            try:
                # In job files and on its command line fio takes a bare number as seconds.
                times[key] = seconds(float(lifted[option]) if lifted[option].isdigit() else lifted[option])
            except ValueError as error:
                refuse(str(error), "workload", option)
            if getattr(design, key) not in (default, times[key]):
                refuse(f"{option}={lifted[option]} in the workload and {key} in [design] differ", "design", key)
    return tuple(kept), msgspec.structs.replace(target, path=path, size=size), msgspec.structs.replace(design, **times)


def without_effect(names: Iterable[str]) -> tuple[str, ...]:
    """What to say of fio options that iodelta leaves out: it sets them itself, or does their work."""
    reasons: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if ours := owned(name):
            reasons.setdefault(ours.why, []).append(name)
    return tuple(f"no effect here: {', '.join(given)} ({why})" for why, given in reasons.items())


def _check_size(text: str, refuse: Refuse, *place: str) -> None:
    try:
        size_bytes(text)
    except ValueError as error:
        refuse(str(error), *place, remedy="a size in bytes, or none for all of a device or file")


def _one(key: str, given: str, lifted: list[str], refuse: Refuse, table: str) -> str:
    values = {value for value in (given, *lifted) if value}
    if len(values) > 1:
        refuse(f"{key} is given twice: {' and '.join(sorted(values))}", table, key, remedy="name one")
    return values.pop() if values else ""
