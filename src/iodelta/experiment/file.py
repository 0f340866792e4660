"""The experiment file (TOML). Every error names the key, its line and what is allowed."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from iodelta.experiment import facts
from iodelta.experiment.build import parse_build
from iodelta.experiment.command import (
    check_fits,
    parse_measures,
    placed,
    uses_target,
)
from iodelta.experiment.design import parse_design
from iodelta.experiment.expand import assemble
from iodelta.experiment.model import (
    ANATOMIES,
    FIO_PREFIX,
    INSTRUMENTS,
    NAME,
    TARGET_CLASS,
    WORKLOAD_PREFIX,
    Condition,
    Experiment,
    Option,
    Target,
    Variant,
)
from iodelta.experiment.model import (
    variant as variant_of,
)
from iodelta.experiment.prepare import parse_prepare
from iodelta.experiment.source import (
    Source,
    check_keys,
    is_filled,
    number_value,
    text_of,
    text_value,
    toml_data,
)
from iodelta.experiment.subject import parse_role, parse_subject
from iodelta.experiment.values import fraction, positive_size, split_command
from iodelta.experiment.workloads import parse_workloads
from iodelta.jobfile import canonical


def load(path: Path) -> Experiment:
    """Read an experiment file. Raises RequestError that names the key, its line and what is allowed."""
    return parse(
        placed(text_of(path), path.parent), str(path), base=path.parent, strict=True
    )


_AS_TABLES = {
    "target": 'path = "/dev/nvme0n1"',
    "design": 'budget = "5m"',
    "workload": 'rw = "randread"',
    "prepare": 'purge = "discard"',
}
"""Tables that are easily given as a value -> a first key of each."""


def parse(
    text: str,
    name: str = "experiment.toml",
    *,
    base: Path = Path(),
    numbered: bool = True,
    strict: bool = False,
    same: bool = False,
) -> Experiment:
    """Return the experiment in a TOML text; a relative ``job_file`` is relative to ``base``. Raises RequestError.

    ``numbered`` is false for a text that was generated from a command line: messages then have no line numbers.
    ``strict`` refuses what would measure something else than asked, as is right for a new question but not for one that
    somebody measured already; ``same`` lets variants be the same, in an A/A.
    """
    data = toml_data(text, name)
    source = Source(text, name, numbered=numbered)
    check_keys(source.refuse, data, (), _TOP)
    for table, example in _AS_TABLES.items():
        if not isinstance(
            data.get(table, {}), dict | list if table == "workload" else dict
        ):
            source.refuse(
                f"[{table}] is a table: {example}",
                table,
                remedy=f"write the line [{table}], and {example.partition(' = ')[0]} = ... below it",
            )
    design = parse_design(source, data.get("design", {}))
    target = parse_target(source, data.get("target", {}))
    workloads = parse_workloads(source, data.get("workload"), base)
    by_command = workloads[0].command is not None
    measures = parse_measures(
        data.get("metric", {}), source.refuse, by_command=by_command
    )
    prefix = WORKLOAD_PREFIX if by_command else FIO_PREFIX
    variants = tuple(
        _variant(source, variant_name, table, prefix)
        for variant_name, table in _tables(source, data, "variant").items()
    )
    if [variant.role for variant in variants].count("reference") > 1:
        source.refuse(
            "an experiment has at most one reference",
            "variant",
            remedy='use role = "reference" for one variant only',
        )
    conditions = tuple(
        _condition(source, condition_name, table)
        for condition_name, table in _tables(source, data, "condition").items()
    )
    margin = number_value(source, data.get("margin", "1%"), fraction, "margin")
    baseline = data.get("baseline", variants[0].name if variants else "")
    machines = parse_machines(source, data.get("machine", []))
    clock = _clock(source, data.get("clock", "wall"), machines)
    experiment = assemble(
        str(data.get("question", "")),
        baseline,
        margin,
        target,
        workloads,
        variants,
        conditions,
        design,
        refuse=source.refuse,
        measures=measures,
    )
    if strict:
        _check_facts(source, experiment, same=same)
    _check_weights(source, experiment)
    _check_prepare(source, data, experiment, clock)
    if experiment.of_command:
        check_fits(data, experiment, source.refuse)
    parse_build(data.get("build", {}), source.refuse)
    anatomy = data.get("anatomy", "")
    if anatomy not in ("", *ANATOMIES):
        allowed = " or ".join(f'"{name}"' for name in ANATOMIES)
        source.refuse(f"anatomy must be {allowed}", "anatomy")
    if anatomy and clock != "instructions":
        source.refuse(
            "an anatomy is counted with the instruction clock only",
            "anatomy",
            remedy='say clock = "instructions" (--clock instructions)',
        )
    return msgspec.structs.replace(
        experiment,
        machines=machines,
        clock=clock,
        anatomy=str(anatomy),
        instruments=_instruments(source, data.get("instrument", {})),
        subject=parse_subject(data.get("subject", {}), source.refuse),
        prepare=parse_prepare(data, source.refuse),
    )


def _clock(source: Source, clock: Any, machines: tuple[str, ...]) -> Any:
    if clock not in ("wall", "instructions"):
        source.refuse('clock must be "wall" or "instructions"', "clock")
    if clock == "instructions" and machines != ("vm",):
        if any(machine.startswith("vm:") for machine in machines):
            source.refuse(
                "with the instruction clock every guest is the same but for its variants",
                "machine",
                remedy='say machine = "vm" (--machine vm); set a kernel as a variant: kernel = "6.12"',
            )
        source.refuse(
            "instructions are counted in a virtual machine only",
            "clock",
            remedy='say machine = "vm" (--machine vm)',
        )
    return clock


def _check_facts(source: Source, experiment: Experiment, *, same: bool) -> None:
    """Refuse trials that would measure something else than asked, and variants that are the same."""
    for cell, variant, options in facts.each_trial(experiment):
        for fact in filter(operator.attrgetter("refused"), facts.of_workload(options)):
            own = {canonical(name) for name, _ in experiment.variant(variant).options}
            key = f"fio.{fact.option}" if fact.option in own else fact.option
            place = (
                ("variant", variant, key) if fact.option in own else ("workload", key)
            )
            names = (
                f"cell {cell}, variant {variant}: " if len(experiment.cells) > 1 else ""
            )
            remedy = facts.spelled(fact.remedy, as_options=not source.is_file)
            source.refuse(names + fact.what, *place, remedy=remedy)
    for first, second in () if same else facts.same_settings(experiment):
        source.refuse(
            f"variants {first} and {second} have the same settings",
            *("variant", second),
            remedy="change a setting of one, or compare a variant with itself by --placebo (placebo = true in [design])",
        )


def _check_weights(source: Source, experiment: Experiment) -> None:
    cells = [cell.name for cell in experiment.cells]
    for name in experiment.design.weights:
        if name not in cells:
            allowed = "; ".join(map(repr, cells))
            source.refuse(
                f"no cell is called {name!r}",
                "design",
                "weights",
                name,
                remedy=f"the cells are {allowed}",
            )


def _check_prepare(
    source: Source, data: Mapping[str, Any], experiment: Experiment, clock: str
) -> None:
    if experiment.target.none and (
        uses_target(experiment) or not all(cell.command for cell in experiment.cells)
    ):
        source.refuse(
            "fio, and a command with {target}, need a target",
            "target",
            "path",
            remedy='remove path = "none", or measure a command that uses no disk',
        )
    if "prepare" not in data:
        return
    if clock == "instructions" or experiment.boot_knobs:
        what = "a disk cannot be prepared where variants differ in what is booted, or instructions are counted"
        source.refuse(
            what,
            "prepare",
            remedy="remove [prepare], and prepare the disk with `iodelta prepare`",
        )
    if experiment.target.files or not experiment.target.path:
        source.refuse(
            "only a disk of your own can be prepared, and [target] names none",
            "prepare",
            remedy="name a block device or a file as [target] path",
        )


def parse_machines(source: Source, value: Any) -> tuple[str, ...]:
    """Return the machines of a name or a list of names; empty for this machine."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(map(is_filled, names)):
        source.refuse('machine must be a name, as in machine = "ssh:HOST"', "machine")
    if len(set(names)) < len(names):
        source.refuse("a machine is named twice", "machine")
    if names == ["local"]:
        return ()
    return tuple(names)


_TOP = (
    "question",
    "baseline",
    "margin",
    "machine",
    "clock",
    "anatomy",
    "target",
    "workload",
    "metric",
    "variant",
    "condition",
    "design",
    "instrument",
    "subject",
    "build",
    "prepare",
)


def _tables(
    source: Source, data: Mapping[str, Any], kind: str
) -> dict[str, dict[str, Any]]:
    tables = data.get(kind, {})
    if not isinstance(tables, dict):
        source.refuse(f"{kind} must be tables: [{kind}.NAME]", kind)
    for name, table in tables.items():
        if not isinstance(table, dict):
            source.refuse(f"{kind}.{name} must be a table: [{kind}.{name}]", kind, name)
        if not NAME.fullmatch(name):
            source.refuse(
                f"{name!r} cannot be the name of a {kind}",
                kind,
                name,
                remedy="letters, digits and . _ + - only, 48 at most, a letter or digit first",
            )
    return dict(tables)


def _instruments(source: Source, table: Any) -> tuple[str, ...]:
    is_table = isinstance(table, dict)
    if not is_table or not all(isinstance(value, bool) for value in table.values()):
        source.refuse(
            "instrument is a table of true or false, as in [instrument] perf = true",
            "instrument",
        )
    check_keys(source.refuse, table, ("instrument",), INSTRUMENTS)
    return tuple(name for name in INSTRUMENTS if table.get(name))


def parse_target(source: Source, table: Mapping[str, Any]) -> Target:
    """Return the table ``[target]``. Refuses with the key."""
    check_keys(source.refuse, table, ("target",), ("path", "size", "files"))
    for key, value in table.items():
        if not is_filled(value):
            source.refuse(
                f'{key} must be a non-empty text, as in path = "/dev/sdb", size = "10g"',
                "target",
                key,
            )
    if "size" in table:
        number_value(source, table["size"], positive_size, "target", "size")
    path = table.get("path", "")
    class_name = path.removeprefix(TARGET_CLASS)
    if path.startswith(TARGET_CLASS) and not NAME.fullmatch(class_name):
        what = 'not a class of targets; write it as path = "class:nvme"'
        source.refuse(what, "target", "path")
    files = table.get("files", "x")
    # A name that leaves the directory could create files anywhere.
    if not _FILES.fullmatch(files) or ".." in files:
        source.refuse(
            'files are names inside the directory, as in files = "$jobnum/$filenum"',
            "target",
            "files",
        )
    if path == "none":
        return Target(none=True)
    return Target(**table)


def _variant(
    source: Source, name: str, table: Mapping[str, Any], prefix: str
) -> Variant:
    """Return the table ``[variant.NAME]``; settings with ``prefix`` are options of the workload."""
    settings = dict(table)
    role = settings.pop("role", "")
    variant = variant_of(name, _settings(source, settings, "variant", name), prefix)
    return msgspec.structs.replace(variant, role=parse_role(name, role, source.refuse))


def _settings(
    source: Source, table: Mapping[str, Any], kind: str, name: str
) -> dict[str, str]:
    """Dotted names of settings with their values as text."""
    settings: dict[str, str] = {}
    for key, value in _flat(table).items():
        settings[key] = text_value(source, value, kind, name, key)
    return settings


_FILES = re.compile(r"[A-Za-z0-9_$.-]+(/[A-Za-z0-9_$.-]+)*")


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """TOML writes ``block.scheduler = "none"`` without quotes as a nested table; a knob's name is the dotted path."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, dict) and name != "command":
            flat.update(_flat(value, name + "."))
        else:
            flat[name] = value
    return flat


def _condition(source: Source, name: str, table: Mapping[str, Any]) -> Condition:
    settings = dict(table)
    background = settings.pop("background", None)
    words: tuple[str, ...] = ()
    job: tuple[Option, ...] = ()
    if isinstance(background, str):
        words = split_command(background, source.place("condition", name, "background"))
    elif _are_texts(background):
        words = tuple(background)
    elif isinstance(background, dict):
        place = ("condition", name, "background")
        job = tuple(
            (key, text_value(source, value, *place, key))
            for key, value in background.items()
        )
    elif background is not None:
        source.refuse(
            "background must be a command (text or list of words) or a table of fio options",
            "condition",
            name,
            "background",
        )
    knobs = _settings(source, settings, "condition", name)
    return Condition(name, words, job, knobs)


def _are_texts(value: Any) -> bool:
    """Return whether it is a list of texts that is not empty."""
    is_list = isinstance(value, list) and bool(value)
    return is_list and all(isinstance(word, str) for word in value)
