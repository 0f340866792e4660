"""Any command as a workload: its words, its parameters, and the numbers that are read from its output."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping
from itertools import chain, pairwise
from pathlib import Path, PurePath
from typing import Any

from iodelta.errors import RequestError
from iodelta.experiment.model import Command, Experiment, Measure
from iodelta.experiment.source import Refuse
from iodelta.experiment.values import seconds

BUILT_IN = {
    "wall": Measure("wall", "ns", "lower"),
    "cpu": Measure("cpu", "ns", "lower"),
    "memory": Measure("memory", "B", "lower"),
}
"""Metrics of every command, whatever it prints: wall time, CPU time and peak memory of it and its children."""

GIVEN = ("target", "trial", "seed")
"""Names that iodelta fills in: the path of the target, the seconds of a trial, the seed of this trial."""

HERE = "{here}"
"""The directory of the experiment file, filled in before the file is read."""

KEYS = ("command", "setup", "reset", "timeout", "only_reads")

SOURCES = ("pattern", "json", "last_line")
MEASURE_KEYS = (*SOURCES, "unit", "better")
"""Of ``[metric.NAME]``: where the number stands in the output, and what it is."""

_PARAMETER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_GAP = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}", re.ASCII)
_INTERPRETERS = re.compile(r"(python|pypy|perl|ruby|node|bash|dash|sh|env|sudo)[\d.]*")

UNITS: dict[str, tuple[str, float]] = {
    "ns": ("ns", 1),
    "us": ("ns", 1e3),
    "ms": ("ns", 1e6),
    "s": ("ns", 1e9),
    "min": ("ns", 6e10),
    **{f"{p}B": ("B", 1000.0**n) for n, p in enumerate(["", "k", "M", "G", "T"])},
    **{f"{p}iB": ("B", 1024.0**n) for n, p in enumerate(["", "K", "M", "G", "T"]) if n},
    **{f"{p}B/s": ("B/s", 1000.0**n) for n, p in enumerate(["", "k", "M", "G", "T"])},
    **{
        f"{p}iB/s": ("B/s", 1024.0**n)
        for n, p in enumerate(["", "K", "M", "G", "T"])
        if n
    },
}
"""Unit as programs print it -> what it is a multiple of, and which. A unit that is not here is only its own."""


def kept_unit(unit: str) -> tuple[str, float]:
    """Return the unit that ``unit`` is a multiple of, and which one."""
    return UNITS.get(unit, (unit, 1.0))


def in_unit(value: float, printed: str, wanted: str) -> float:
    """``value`` of the unit ``printed`` in the unit ``wanted``; nan where they measure different things."""
    (kind, factor), (wanted_kind, wanted_factor) = kept_unit(printed), kept_unit(wanted)
    return value * (factor / wanted_factor) if kind == wanted_kind else math.nan


def measure_called(name: str, measures: Iterable[Measure]) -> Measure:
    """Return the measure of this name. Raises RequestError."""
    known = {**BUILT_IN, **{measure.name: measure for measure in measures}}
    if name not in known:
        raise RequestError(
            f"unknown metric {name!r}",
            place="design.metrics",
            remedy=f"use {', '.join(known)}",
        )
    return known[name]


def measured_by(experiment: Experiment) -> tuple[Measure, ...]:
    """Return the measures of a command that are judged: those of [design], else all that it prints, else its wall time."""
    printed = [measure.name for measure in experiment.measures]
    names = experiment.design.metrics or printed or ["wall"]
    return tuple(measure_called(name, experiment.measures) for name in names)


def gaps(words: Iterable[str]) -> set[str]:
    """Return the names in braces in ``words``; ``{{name}}`` is the text ``{name}``."""
    pairs = chain.from_iterable(map(_GAP.findall, words))
    return {name for _, name in pairs if name}


def filled(words: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words with every name in braces replaced. No shell sees the result."""

    def value(match: re.Match[str]) -> str:
        return values[match[2]] if match[2] else f"{{{match[1]}}}"

    return tuple(_GAP.sub(value, word) for word in words)


def commands_of(experiment: Experiment) -> tuple[str, ...]:
    """Return the commands that are measured, each once, as they stand in the experiment."""
    words = (
        cell.command.words for cell in experiment.cells if cell.command is not None
    )
    return tuple(dict.fromkeys(map(shlex.join, words)))


def unseen(experiment: Experiment) -> tuple[str, ...]:
    """Commands that may write without a check by the guard: those of every workload without ``only_reads``, each once,
    as they stand in the experiment."""
    hidden: dict[str, None] = {}
    for cell in experiment.cells:
        if cell.command is not None and not cell.command.only_reads:
            commands = (*cell.command.setup, *cell.command.reset, cell.command.words)
            hidden |= dict.fromkeys(map(shlex.join, commands))
    return tuple(hidden)


def every_word(command: Command) -> tuple[str, ...]:
    """Return the words of all commands of a workload."""
    return tuple(chain(command.words, *command.setup, *command.reset))


def uses_target(experiment: Experiment) -> bool:
    """Return whether some command is given the path of the target."""
    commands = filter(None, (cell.command for cell in experiment.cells))
    return any("target" in gaps(every_word(command)) for command in commands)


def only_reads(experiment: Experiment) -> bool:
    """Return whether the owner of every command says that it only reads."""
    return all(
        cell.command is not None and cell.command.only_reads
        for cell in experiment.cells
    )


def called(command: Command) -> str:
    """Return the name of a cell with this command: the program, or the script that an interpreter runs."""
    names: list[str] = []
    for before, word in pairwise(("", *command.words)):
        # env runs something else than the directory to which it changes.
        is_directory = command.words[0] == "env" and before in ("-C", "--chdir")
        name = PurePath(word).name
        # Options and values are not names of programs.
        if not is_directory and re.fullmatch(r"\w[\w.+-]*", name):
            names.append(name)
    for name in names:
        if not _INTERPRETERS.fullmatch(name):
            return name
    return names[0] if names else "command"


def placed(text: str, folder: Path) -> str:
    """Return an experiment file with ``{here}`` replaced by ``folder``, so that a copy of it elsewhere means the same.

    Raises RequestError for a path that would change the TOML.
    """
    if HERE not in text:
        return text
    path = str(folder.absolute())
    if re.search(r"[\"'\\{}\x00-\x1f\x7f]", path):
        raise RequestError(
            f"{HERE} cannot be filled in: the directory has a special character",
            place=repr(path),
        )
    return text.replace(HERE, path)


# ------------------------------------------------------------------------------------------------- the file


def is_command(
    common: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]
) -> bool:
    """Return whether the tables of a workload run a command in place of fio."""
    return "command" in common or any("command" in table for table in named.values())


def parse_command(
    table: Mapping[str, Any], path: tuple[str, ...], refuse: Refuse
) -> tuple[Command, dict[str, Any]]:
    """Return a command and the values of its parameters. Raises RequestError."""
    if "command" not in table:
        refuse(
            "has no command, and the other workloads have one",
            *path,
            remedy="one experiment has one tool",
        )
    words = _words(table["command"], refuse, *path, "command")
    try:
        timeout = seconds(table.get("timeout", 600.0))
    except (ValueError, TypeError) as error:
        refuse(str(error), *path, "timeout")
    if not 0.1 <= timeout <= 86400:
        refuse("timeout must lie between 100 ms and 1 day", *path, "timeout")
    reads = table.get("only_reads", False)
    # A variant's text says "1" or "0".
    if not isinstance(reads, bool) and reads not in ("0", "1"):
        refuse("only_reads is true or false", *path, "only_reads")
    setup = _commands(table.get("setup", []), refuse, *path, "setup")
    reset = _commands(table.get("reset", []), refuse, *path, "reset")
    parameters = {key: value for key, value in table.items() if key not in KEYS}
    for name in parameters:
        if not _is_parameter(name):
            refuse(
                f"{name!r} cannot be the name of a parameter",
                *path,
                name,
                remedy=f"keys: {', '.join(KEYS)}",
            )
    return Command(words, setup, reset, timeout, reads in (True, "1")), parameters


def _is_parameter(name: str) -> bool:
    """Return whether a key can stand in braces in a command; names that iodelta fills in itself cannot be parameters."""
    if name in GIVEN or name == HERE.strip("{}"):
        return False
    return bool(_PARAMETER.fullmatch(name))


def _is_word(value: Any) -> bool:
    """Return whether it can be an argument of a program: a NUL would end it."""
    return isinstance(value, str) and "\0" not in value


def _words(value: Any, refuse: Refuse, *path: str) -> tuple[str, ...]:
    are_words = isinstance(value, list) and value and all(map(_is_word, value))
    if not are_words or not value[0].strip():
        refuse(
            f"{path[-1]} is a list of words, and no shell reads them",
            *path,
            remedy='as in command = ["dd", "if={target}", "of=/dev/null"]',
        )
    return tuple(value)


def _commands(value: Any, refuse: Refuse, *path: str) -> tuple[tuple[str, ...], ...]:
    """Return one command as a list of words, or several as a list of such lists."""
    if isinstance(value, list) and all(isinstance(item, list) for item in value):
        return tuple(_words(item, refuse, *path) for item in value)
    return (_words(value, refuse, *path),)


def check_parameters(experiment: Experiment, refuse: Refuse) -> None:
    """Refuse a name in braces without a value in some trial, and a parameter that no command uses."""
    for cell in experiment.cells:
        assert cell.command is not None
        wanted = gaps(every_word(cell.command))
        for variant in experiment.variants:
            has = {name for name, _ in (*cell.options, *variant.options)}
            unknown = sorted(wanted - has - {*GIVEN})
            if unknown:
                name = unknown[0]
                refuse(
                    f"{{{name}}} has no value in cell {cell.name}, variant {variant.name}",
                    "workload",
                    "command",
                    remedy=f"give {name} in [workload] or in every variant (workload.{name}); "
                    f"{', '.join(f'{{{given}}}' for given in GIVEN)} are filled in; "
                    f"{{{{{name}}}}} is the text {{{name}}}",
                )
            unused = sorted(has - wanted)
            if unused:
                refuse(
                    f"the parameter {unused[0]} does not stand in the command of cell {cell.name}",
                    *("workload", unused[0]),
                    remedy=f"write {{{unused[0]}}} where its value belongs",
                )


def check_fits(data: Mapping[str, Any], experiment: Experiment, refuse: Refuse) -> None:
    """Refuse what only trials of fio support."""
    why = "the workload is a command, and this is of fio's trials"
    machines = data.get("machine", [])
    for key in ("clock", "anatomy", "prepare", "instrument"):
        if data.get(key, "wall") not in ("wall", ""):
            refuse(why, key, remedy=f"remove {key}")
    names = [machines] if isinstance(machines, str) else machines
    if any(name.partition(":")[0] == "vm" for name in names):
        refuse(
            "a throw-away guest has no Python, which runs commands",
            "machine",
            remedy="measure on a host",
        )
    if experiment.boot_knobs:
        name = experiment.boot_knobs[0]
        what = f"{name} takes a boot for every variant, and a command is measured within one boot"
        remedy = f"remove {name}, or measure with fio"
        refuse(what, "workload", "command", remedy=remedy)


def parse_measures(
    data: Any, refuse: Refuse, *, by_command: bool
) -> tuple[Measure, ...]:
    """Return the ``[metric.NAME]`` tables. Raises RequestError."""
    are_tables = isinstance(data, dict) and all(map(_is_table, data.values()))
    if not are_tables:
        refuse("metric must be tables: [metric.NAME]", "metric")
    if data and not by_command:
        refuse(
            "[metric] is of a command, and fio is measured here",
            "metric",
            remedy="fio's are [design] metrics",
        )
    return tuple(_measure(name, table, refuse) for name, table in data.items())


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _measure(name: str, table: Mapping[str, Any], refuse: Refuse) -> Measure:
    place = ("metric", name)
    if not re.fullmatch(r"[A-Za-z][\w-]{0,47}", name, re.ASCII) or name in BUILT_IN:
        refuse(
            f"{name!r} cannot be the name of a metric",
            *place,
            remedy=f"letters, digits, _ and - only; {', '.join(BUILT_IN)} are built in",
        )
    for key, value in table.items():
        if not _fits(key, value):
            refuse(
                f"[metric.{name}] cannot have {key} = {value!r}",
                *place,
                key,
                remedy=f"keys: {', '.join(MEASURE_KEYS)}",
            )
    sources = {key: table[key] for key in SOURCES if key in table}
    measure = Measure(name, table.get("unit", ""), table.get("better", ""), **sources)
    if measure.better not in ("higher", "lower"):
        refuse('better must be "higher" or "lower"', *place, "better")
    if not measure.unit.strip() or len(measure.unit) > 24:
        refuse('unit is missing, as in unit = "1/s" or unit = "ms"', *place, "unit")
    _check_source(measure, refuse, *place)
    return measure


def _fits(key: str, value: Any) -> bool:
    """Return whether it is a key of ``[metric.NAME]`` with a value of the right type."""
    if key not in MEASURE_KEYS:
        return False
    if key == "last_line":
        return isinstance(value, bool)
    return isinstance(value, str) and value.isprintable()


def _check_source(measure: Measure, refuse: Refuse, *place: str) -> None:
    """Refuse unless there is exactly one way to find the number; last_line may choose among a pattern's matches."""
    both = measure.pattern and measure.json
    if both or not (measure.pattern or measure.json or measure.last_line):
        refuse("give one of pattern, json, last_line = true", *place)
    if measure.json and json_path(measure.json) is None:
        refuse(
            f"{measure.json!r} is not a path",
            *place,
            "json",
            remedy='as in json = "results.tps" or "a.b[0]"',
        )
    if measure.pattern:
        _check_pattern(measure, refuse, *place)


def _check_pattern(measure: Measure, refuse: Refuse, *place: str) -> None:
    """Refuse a pattern unless it has one group for the number, and at most one more, for the unit."""
    try:
        compiled = re.compile(measure.pattern)
    except (re.error, RecursionError, OverflowError) as error:
        refuse(f"not a regular expression: {error}", *place, "pattern")
    groups = compiled.groups - ("unit" in compiled.groupindex)
    if groups != 1:
        refuse(
            f"pattern has {groups} groups, and the number is one",
            *place,
            "pattern",
            remedy="write one group, as in 'tps = ([0-9.]+)'; (?:...) groups without one; (?P<unit>...) is the unit",
        )


def json_path(text: str) -> tuple[str | int, ...] | None:
    """Return the steps of a path such as ``a.b[0]``; None where the text is not a path."""
    if not re.fullmatch(r"(?:[\w %/-]+|\[\d{1,9}\])(?:\.[\w %/-]+|\[\d{1,9}\])*", text):
        return None
    steps: list[str | int] = []
    for index, key in re.findall(r"\[(\d+)\]|([\w %/-]+)", text):
        steps.append(int(index) if index else key)
    return tuple(steps)
