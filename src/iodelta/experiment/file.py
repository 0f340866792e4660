"""The experiment file (TOML). Every error names the key, its line and what is allowed."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from iodelta.decoding import converted
from iodelta.experiment import facts
from iodelta.experiment.build import parse_build
from iodelta.experiment.command import (
    check_fits,
    is_command,
    parse_command,
    parse_measures,
    placed,
    uses_target,
)
from iodelta.experiment.expand import Workload, assemble
from iodelta.experiment.model import (
    ANATOMIES,
    FIO_PREFIX,
    INSTRUMENTS,
    NAME,
    TARGET_CLASS,
    WORKLOAD_PREFIX,
    Condition,
    Design,
    Experiment,
    Option,
    Subject,
    Target,
    Variant,
)
from iodelta.experiment.model import (
    variant as variant_of,
)
from iodelta.experiment.prepare import parse_prepare
from iodelta.experiment.source import (
    Refuse,
    Source,
    check_keys,
    is_filled,
    number_value,
    text_of,
    text_value,
    toml_data,
)
from iodelta.experiment.values import fraction, positive_size, seconds, split_command
from iodelta.jobfile import canonical, read_job_file


def parse_workloads(source: Source, table: Any, base: Path) -> tuple[Workload, ...]:
    """Return the table ``[workload]``: commands, the sections of a fio job file, or fio options. Refuses with the key."""
    if not isinstance(table, dict) or not table:
        source.refuse(
            "there is no [workload]",
            "workload",
            remedy='add one, as in [workload] rw = "randread" bs = "4k"',
        )
    named = {key: value for key, value in table.items() if isinstance(value, dict)}
    common = {key: value for key, value in table.items() if key not in named}
    if is_command(common, named):
        return _of_commands(source, common, named)
    job_file = common.pop("job_file", None)
    if job_file is not None:
        # The path of the fio job file that is the workload. Refuses named workloads in addition to it.
        place = ("workload", "job_file")
        if not isinstance(job_file, str):
            source.refuse("job_file must be the path of a fio job file", *place)
        if named:
            source.refuse("give either job_file or named workloads, not both", *place)
        path = base / job_file
        return _of_job_file(path, _options(source, common, "workload"))
    if not named:
        return (Workload("", tuple(_options(source, common, "workload").items())),)
    workloads: list[Workload] = []
    for name, own_options in named.items():
        _check_workload_name(source, name)
        options = _options(source, common, "workload")
        options |= _options(source, own_options, "workload", name)
        workloads.append(Workload(name, tuple(options.items())))
    return tuple(workloads)


def _check_workload_name(source: Source, name: str) -> None:
    if not NAME.fullmatch(name):
        source.refuse(f"{name!r} cannot be the name of a workload", "workload", name)


def _of_commands(
    source: Source, common: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]
) -> tuple[Workload, ...]:
    """Return a workload for each table; keys of ``[workload]`` itself apply to all of them."""
    workloads: list[Workload] = []
    for name, table in (named or {"": {}}).items():
        path: tuple[str, ...] = ("workload",)
        if name:
            _check_workload_name(source, name)
            path = ("workload", name)
        command, parameters = parse_command({**common, **table}, path, source.refuse)
        options = _options(source, parameters, *path)
        workloads.append(Workload(name, tuple(options.items()), command=command))
    return tuple(workloads)


def _of_job_file(path: Path, more: Mapping[str, Values]) -> tuple[Workload, ...]:
    """Return a workload for each section of a job file; ``more`` is set in all of them."""
    workloads: list[Workload] = []
    for section in read_job_file(path):
        options: dict[str, Values] = {key: (value,) for key, value in section.options}
        options |= more
        workloads.append(Workload(section.name, tuple(options.items()), section.notes))
    return tuple(workloads)


Values = tuple[str | None, ...]


def _options(source: Source, table: Mapping[str, Any], *path: str) -> dict[str, Values]:
    return {key: _values(source, value, *path, key) for key, value in table.items()}


def _values(source: Source, value: Any, *path: str) -> tuple[str | None, ...]:
    """Return the values of a fio option; each makes a cell. Refuses with the key."""
    values = value if isinstance(value, list) else [value]
    if not values:
        source.refuse("an empty list makes no cell", *path)
    if not re.fullmatch(r"[A-Za-z0-9_]+", path[-1]):
        source.refuse(f"{path[-1]!r} is not the name of a fio option", *path)
    return tuple(text_value(source, one_value, *path) for one_value in values)


_CONVERSIONS = dict.fromkeys(("trial", "ramp", "budget", "boot", "settle"), seconds) | {
    "level": fraction,
    "stalls": fraction,
}
"""Keys of ``[design]`` that are durations or shares."""

_LIMITS = {
    "trial": (0.2, 86400),
    "blocks": (1, 2000),
    "budget": (1, 30 * 86400),
    "ramp": (0, 86400),
    "boot": (1, 86400),
    "conditioning": (1, 50),
    "seed": (0, 2**63 - 1),
}
"""Keys of ``[design]`` with their least and greatest value."""


def parse_design(source: Source, table: Mapping[str, Any]) -> Design:
    """Return the table ``[design]``. Refuses with the key."""
    check_keys(source.refuse, table, ("design",), Design.__struct_encode_fields__)
    values: dict[str, Any] = {}
    for key, value in table.items():
        convert = _CONVERSIONS.get(key)
        if convert:
            value = number_value(source, value, convert, "design", key)
        values[key] = value
    if values.get("family") == "each":
        source.refuse(
            'family "each" does not correct for several comparisons: their false alarms add up',
            "design",
            "family",
            remedy='leave family out, or say "holm" or "screen"',
        )
    try:
        design = converted(values, Design)
    except msgspec.ValidationError as error:
        # msgspec ends its message with the place: `... - at `$.blocks``.
        what = str(error).partition(" - at")[0]
        key_in_error = re.search(r"\$\.([\w-]+)", str(error))
        if not key_in_error:
            source.refuse(what, "design")
        key = key_in_error[1]
        source.refuse(f"{key}: {what}", "design", key)
    _check_limits(source, design)
    return design


def _check_limits(source: Source, design: Design) -> None:
    for key, (least, most) in _LIMITS.items():
        value = getattr(design, key)
        if value is not None and not least <= value <= most:
            source.refuse(f"{key} must lie between {least} and {most}", "design", key)
    if not 0.01 <= design.stalls <= 0.5:
        source.refuse(
            "stalls must lie between 1 % and 50 %, as in 10 %", "design", "stalls"
        )
    if not 0.5 < design.level < 1:
        source.refuse(
            "level must lie between 50 % and 100 %, as in 95 %", "design", "level"
        )
    for cell, weight in design.weights.items():
        if not 0 <= weight <= 1e6:
            source.refuse(
                f"a weight is between 0 and a million, not {weight:g}",
                "design",
                "weights",
                cell,
            )


def parse_subject(table: Any, refuse: Refuse) -> Subject:
    """Return the table of an experiment file as a Subject. Refuses with the key."""
    if not isinstance(table, dict):
        refuse('subject is a table: [subject] commit = "4f2a1c9"', "subject")
    check_keys(refuse, table, ("subject",), Subject.__struct_fields__)
    for key, value in table.items():
        if key not in ("dirty", "labels") and not _line(value):
            refuse(f"{key} is one line of text", "subject", key)
    if not isinstance(table.get("dirty", False), bool):
        refuse("dirty is true or false", "subject", "dirty")
    if not re.fullmatch(r"(?:[0-9a-f]{7,64})?", table.get("commit", "")):
        refuse(
            "commit is the hash of a commit, 7 to 64 of 0-9 and a-f",
            "subject",
            "commit",
        )
    labels = table.get("labels", {})
    if not isinstance(labels, dict) or not all(map(_line, labels.values())):
        refuse(
            'labels are a table of texts, as in labels = { branch = "next" }',
            "subject",
            "labels",
        )
    return converted(table, Subject)


def parse_role(name: str, value: Any, refuse: Refuse) -> Literal["", "reference"]:
    """Return the role of variant ``name``."""
    if value == "":
        return ""
    if value != "reference":
        refuse(
            f"{value!r} is not a role",
            "variant",
            name,
            "role",
            remedy='the only role is "reference"',
        )
    return "reference"


def _line(value: Any) -> bool:
    return isinstance(value, str) and "\n" not in value and "\0" not in value


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
