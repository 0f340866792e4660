"""Expand workloads, variants and conditions into one checked experiment with its cells."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from iodelta.experiment import io_uring
from iodelta.experiment.command import called, check_parameters
from iodelta.experiment.model import (
    PLACEBO,
    Cell,
    Command,
    Condition,
    Design,
    Experiment,
    Measure,
    Option,
    Target,
    Variant,
)
from iodelta.experiment.order import place_of
from iodelta.experiment.source import Refuse
from iodelta.experiment.values import checked_size, only_path, seconds
from iodelta.experiment.work import kind_and_size
from iodelta.jobfile import canonical, owned

APART = frozenset(
    "bs ba bsrange bssplit rate rate_min rate_iops rate_iops_min cmdprio_percentage cmdprio_class cmdprio "
    "cmdprio_bssplit".split()
)
"""From the HOWTO of fio 3.33, by fio's first names."""

NUMBER = 3
"""Reads, writes, trims; fio ignores what follows."""

ONE_WAY = {
    "read": 0,
    "randread": 0,
    "write": 1,
    "randwrite": 1,
    "trim": 2,
    "randtrim": 2,
}
"""Place of the value that a workload of one direction takes."""

DIRECTIONS = ("reads", "writes", "trims")


def unused(cell: Cell, variant: Variant) -> Iterator[tuple[str, str, str]]:
    """Options of a cell under a variant with values that none of its I/Os uses, such as ``bs=4k,64k`` if it only reads.

    Yields name, value, and how fio interprets it.
    """
    options: dict[str, tuple[str, str]] = {}
    for name, value in (*cell.options, *variant.options):
        options[canonical(name)] = (name, value or "")
    _, mode = options.get("rw", ("rw", "read"))
    mode = mode.partition(":")[0]
    for first_name, (name, value) in options.items():
        if first_name in APART:
            # How fio interprets the values of one option in a workload ``rw=mode``; empty if it uses all of
            # them.
            values = value.split(",")
            if len(values) > NUMBER:
                why = "fio takes one value for reads, one for writes, one for trims, and ignores what follows"
            else:
                # An empty value leaves a direction at its default.
                differing = set(filter(None, values))
                if mode not in ONE_WAY or len(differing) <= 1:
                    why = ""
                else:
                    pairs = zip(values, DIRECTIONS, strict=False)
                    means = ", ".join(
                        f"{value} for {direction}"
                        for value, direction in pairs
                        if value
                    )
                    only = DIRECTIONS[ONE_WAY[mode]]
                    why = f"to fio this is {means}, and rw={mode} makes only {only}"
            if why:
                yield name, value, why


class Workload(msgspec.Struct, frozen=True):
    """A table of workload options, before its lists become cells."""

    name: str
    options: tuple[tuple[str, tuple[str | None, ...]], ...]
    """Each option with the values it takes; several make several cells."""
    notes: tuple[str, ...] = ()
    command: Command | None = None
    """The command that runs instead of fio; the options are then the values of its parameters."""

    @property
    def place(self) -> tuple[str, ...]:
        """Return the path of its table."""
        return ("workload", self.name) if self.name else ("workload",)


def _cells(
    workload: Workload, variants: Sequence[Variant], several: bool
) -> list[tuple[str, tuple[Option, ...]]]:
    """Return every combination of the values of a workload, with the name of its cell."""
    values_of = dict(workload.options)
    prefix = [workload.name] if several and workload.name else []
    cells = []
    for combination in itertools.product(*values_of.values()):
        options = dict(zip(values_of, combination, strict=True))
        varying = [
            f"{key}={value}"
            for key, value in options.items()
            if len(values_of[key]) > 1
        ]
        name = " ".join(prefix + varying) or workload.name
        name = name or _describe(workload, options, variants)
        cells.append((name, tuple(options.items())))
    return cells


def _describe(
    workload: Workload, options: Mapping[str, str | None], variants: Sequence[Variant]
) -> str:
    if workload.command is not None:
        return called(workload.command)
    parts = kind_and_size(options.items(), variants, {"rw": "read", "bs": "4k"})
    return " ".join(filter(None, parts)) or "the workload"


_LIFTED = {
    "filename": "path",
    "directory": "path",
    "size": "size",
    "runtime": "trial",
    "ramp_time": "ramp",
}
"""fio options that belong to [target] and [design]: moved there from a pasted command line or job file."""

_ONE_PATH = r"name one file, device or directory; write \: for a colon in its name"
_READ = {
    "size": (checked_size, "a size in bytes, or none for all of a device or file"),
    "filename": (only_path, _ONE_PATH),
    "directory": (only_path, _ONE_PATH),
}
"""How fio reads the values of some of these options, and the remedy for a value that cannot be used."""


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
    measures: tuple[Measure, ...] = (),
) -> Experiment:
    """Return the experiment of these parts, its cells in order. Refuses parts that do not fit together."""
    variants = _with_placebo(variants, baseline, design, refuse)
    tool = ""
    if workloads[0].command is None:
        tool, workloads = _tool(workloads, refuse)
        workloads, target, design = _lift(
            workloads, target, design, refuse, fio=not tool
        )
    if tool:
        workloads = tuple(
            _for_io_uring(workload, tool, refuse) for workload in workloads
        )
        variants = tuple(_variant_for_io_uring(variant, refuse) for variant in variants)
    conditions = conditions or (Condition(""),)
    cells = _cells_under(conditions, workloads, variants)
    names = Counter(cell.name for cell in cells)
    name, count = names.most_common(1)[0]
    if count > 1:
        refuse(
            f"two cells are both called {name!r}",
            "workload",
            remedy="a value is listed twice",
        )
    place = place_of(cell.name for cell in cells)
    cells.sort(key=lambda cell: place(cell.name))
    if workloads[0].command is None:
        _check_directions(cells, variants, refuse)
    notes = _notes(workloads, conditions)
    experiment = Experiment(
        question,
        baseline,
        margin,
        target,
        tuple(cells),
        variants,
        conditions,
        design,
        notes,
    )
    if experiment.of_command:
        check_parameters(experiment, refuse)
    return msgspec.structs.replace(experiment, measures=measures)


def _check_directions(
    cells: Sequence[Cell], variants: Sequence[Variant], refuse: Refuse
) -> None:
    """Refuse a list that fio reads as one value for each direction if it would ignore some of them."""
    for cell, variant in itertools.product(cells, variants):
        for name, value, why in unused(cell, variant):
            if name in dict(variant.options):
                refuse(
                    f"{name}={value}: {why}",
                    "variant",
                    variant.name,
                    f"fio.{name}",
                    remedy="give one value",
                )
            each = [part for part in value.split(",") if part]
            words = " ".join(f"--{name}={part}" for part in each)
            listed = ", ".join(f'"{part}"' for part in each)
            remedy = f"for a cell each: {words}, in a file {name} = [{listed}]"
            refuse(f"{name}={value}: {why}", "workload", name, remedy=remedy)


def _with_placebo(
    variants: tuple[Variant, ...], baseline: str, design: Design, refuse: Refuse
) -> tuple[Variant, ...]:
    """Return the variants, with a copy of the baseline where the design asks for one."""
    named = {variant.name: variant for variant in variants}
    if design.placebo and variants:
        base = named.get(baseline, variants[0])
        variants = (*variants, Variant(PLACEBO, base.knobs, base.options))
    if len(variants) < 2:
        refuse(
            "there is nothing to compare: an experiment needs two variants at least",
            "variant",
            remedy="add [variant.NAME] tables (--variant NAME:knob=value), or ask for an A/A with placebo = true",
        )
    if baseline not in named:
        refuse(
            f"the baseline {baseline!r} is not a variant",
            "baseline",
            remedy=f"variants: {', '.join(named)}",
        )
    return variants


def _cells_under(
    conditions: tuple[Condition, ...],
    workloads: tuple[Workload, ...],
    variants: Sequence[Variant],
) -> list[Cell]:
    """Return every cell of every workload, under each condition."""
    several = len(workloads) > 1
    expanded = []
    for workload in workloads:
        expanded += [
            (name, options, workload.command)
            for name, options in _cells(workload, variants, several)
        ]
    cells: list[Cell] = []
    for condition in conditions:
        prefix = f"{condition.name}: " if len(conditions) > 1 else ""
        cells += [
            Cell(f"{prefix}{name}", condition.name, options, command)
            for name, options, command in expanded
        ]
    return cells


def _notes(
    workloads: tuple[Workload, ...], conditions: tuple[Condition, ...]
) -> tuple[str, ...]:
    """Return which options have no effect, each said once."""
    notes: dict[str, None] = {}
    for workload in workloads:
        notes |= dict.fromkeys(workload.notes)
    for condition in conditions:
        dropped = [name for name, _ in condition.background_fio if _is_dropped(name)]
        notes |= dict.fromkeys(
            f"condition {condition.name}: {note}" for note in without_effect(dropped)
        )
    return tuple(notes)


def _is_dropped(option: str) -> bool:
    """Return whether iodelta sets this fio option itself, to the same effect."""
    ours = owned(option)
    return ours is not None and ours.harmless


def _tool(
    workloads: tuple[Workload, ...], refuse: Refuse
) -> tuple[str, tuple[Workload, ...]]:
    """Return the tool that makes the load (empty for fio), and the workloads without that option."""
    tools = {
        dict(workload.options).get(io_uring.TOOL, ("fio",)) for workload in workloads
    }
    (tool, *more), *others = tools
    if more or others:
        refuse(
            "one experiment is measured with one tool",
            "workload",
            io_uring.TOOL,
            remedy="make two experiments",
        )
    if tool in (None, "fio"):
        tool = ""
    elif tool != io_uring.IO_URING and not tool.startswith("/"):
        refuse(
            f"{tool!r} is not a tool that iodelta knows",
            *("workload", io_uring.TOOL),
            remedy=f'fio, "{io_uring.IO_URING}" (see `iodelta fio build`), or the absolute path of a t/io_uring',
        )
    return tool or "", tuple(map(_without_tool, workloads))


def _without_tool(workload: Workload) -> Workload:
    options = tuple(option for option in workload.options if option[0] != io_uring.TOOL)
    return msgspec.structs.replace(workload, options=options)


def _for_io_uring(workload: Workload, tool: str, refuse: Refuse) -> Workload:
    """Return the options of a workload by fio's names, with the tool's own defaults made explicit."""
    place = workload.place
    named: dict[str, tuple[str | None, ...]] = {}
    for key, values in workload.options:
        name = _io_uring_name(key, values, refuse, *place, key)
        if name in named:
            refuse(f"{key} is given twice, by two of its names", *place, key)
        named[name] = values
    defaults = {
        name: (value,) for name, value in io_uring.DEFAULTS.items() if name not in named
    }
    return msgspec.structs.replace(
        workload, options=tuple({io_uring.TOOL: (tool,), **defaults, **named}.items())
    )


def _variant_for_io_uring(variant: Variant, refuse: Refuse) -> Variant:
    options = []
    for key, value in variant.options:
        place = ("variant", variant.name, f"fio.{key}")
        options.append((_io_uring_name(key, (value,), refuse, *place), value))
    return msgspec.structs.replace(variant, options=tuple(options))


def _io_uring_name(
    key: str, values: tuple[str | None, ...], refuse: Refuse, *place: str
) -> str:
    name = io_uring.name_of(key)
    if name is None:
        refuse(
            f"t/io_uring has no option {key}",
            *place,
            remedy=f"it has {io_uring.allowed()}",
        )
    for value in values:
        try:
            io_uring.switches(name, value)
        except ValueError as error:
            refuse(f"{key}: {error}", *place)
    return name


def _lift(
    workloads: tuple[Workload, ...],
    target: Target,
    design: Design,
    refuse: Refuse,
    *,
    fio: bool = True,
) -> tuple[tuple[Workload, ...], Target, Design]:
    """Move fio options that belong to target and design there. Drop those that iodelta sets itself to the same effect,
    and refuse those that it sets otherwise. Options of a tool other than ``fio`` are left as they are."""
    lifted: dict[str, str] = {}
    kept: list[Workload] = []
    for workload in workloads:
        options: list[tuple[str, tuple[str | None, ...]]] = []
        dropped: list[str] = []
        for key, values in workload.options:
            place = (*workload.place, key)
            # Whether an option belongs to target or design. Several sizes make several cells, so they stay.
            name = canonical(key)
            several_sizes = name == "size" and len(values) > 1
            if name in _LIFTED and not several_sizes:
                _lift_option(lifted, key, values, refuse, *place)
            elif not fio or owned(key) is None:
                options.append((key, values))
            else:
                _drop(key, refuse, *place)
                dropped.append(key)
        notes = (*workload.notes, *without_effect(dropped))
        kept.append(Workload(workload.name, tuple(options), notes))
    paths = (target.path, lifted.get("filename", ""), lifted.get("directory", ""))
    path = _one("path", paths, refuse)
    size = _one("size", (target.size, lifted.get("size", "")), refuse)
    replace = msgspec.structs.replace
    # The times of [design] that fio options set.
    times: dict[str, float] = {}
    for option, key in (("runtime", "trial"), ("ramp_time", "ramp")):
        text = lifted.get(option)
        if text is None:
            continue
        try:
            # In job files and on its command line fio takes a bare number as seconds.
            times[key] = seconds(float(text) if text.isdigit() else text)
        except ValueError as error:
            refuse(str(error), "workload", option)
        if getattr(design, key) not in (getattr(Design(), key), times[key]):
            refuse(
                f"{option}={text} in the workload and {key} in [design] differ",
                "design",
                key,
            )
    return (
        tuple(kept),
        replace(target, path=path, size=size),
        replace(design, **times),
    )


def _lift_option(
    lifted: dict[str, str],
    key: str,
    values: tuple[str | None, ...],
    refuse: Refuse,
    *place: str,
) -> None:
    name, given = canonical(key), values[0] if len(values) == 1 else None
    if not given:
        refuse(f"{key} must be one value for the whole experiment", *place)
    read, remedy = _READ.get(name, (str, ""))
    try:
        value = read(given)
    except ValueError as error:
        refuse(f"{key}: {error}", *place, remedy=remedy)
    if lifted.setdefault(name, value) != value:
        refuse(f"{key} must be one value for the whole experiment", *place)


def _drop(key: str, refuse: Refuse, *place: str) -> None:
    """Refuse an option that iodelta sets itself to another effect."""
    ours = owned(key)
    if ours is not None and not ours.harmless:
        refuse(f"fio option {key}: {ours.why}", *place, remedy=f"remove {key}")


def without_effect(names: Iterable[str]) -> tuple[str, ...]:
    """Notes about fio options that iodelta leaves out because it sets them itself or does their work."""
    reasons: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        ours = owned(name)
        if ours:
            reasons.setdefault(ours.why, []).append(name)
    return tuple(
        f"no effect here: {', '.join(given)} ({why})" for why, given in reasons.items()
    )


def _one(key: str, values: Iterable[str], refuse: Refuse) -> str:
    """Return the value of a key of [target] that may be set in several places; empty if it is not set."""
    distinct = sorted(set(filter(None, values)))
    if len(distinct) > 1:
        what = f"{key} is given twice: {' and '.join(distinct)}"
        refuse(what, "target", key, remedy="name one")
    return "".join(distinct)
