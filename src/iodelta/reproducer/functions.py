"""The shell functions of a reproducer script that depend on its experiment: names, fio's words, settings, loads.

Every text of the experiment is quoted. The class of each knob gives the lines that set it (``Knob.script``).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from iodelta.errors import RequestError
from iodelta.experiment import Cell, Condition, Experiment, Variant
from iodelta.experiment.model import NAME, of_boot
from iodelta.knob.registry import family, order
from iodelta.knob.shell import Line, NoScript, Script, Steps, line_text, quoted
from iodelta.lab.plan import Plan
from iodelta.probe.topology import Target
from iodelta.study.again import words_of
from iodelta.study.words import inert
from iodelta.workload.background import background_fio

PLACED = ("--filename=", "--directory=", "--randseed=", "--name=")
"""Words that the script gives fio itself."""

OLD_FIO = (3, 33)
"""The script must run with the fio of any reader, so it uses what this version has."""

PLACES = {
    "{target.path}": '"$real"',
    "{target.mount}": '"$(target_mount)"',
    "{target.device}": '"$names"',
}
"""What a background command calls parts of the target, and what the script calls them."""

Lines = tuple[str, ...]


def functions(plan: Plan, target: Target) -> Iterator[str]:
    """Yield the functions that ``script.sh`` calls. Raises RequestError for a knob that no script can set."""
    experiment = plan.experiment
    yield from _names("cell_name", [cell.name for cell in experiment.cells])
    variants = [
        safe_name(variant.name, number)
        for number, variant in enumerate(experiment.variants, 1)
    ]
    yield from _names("variant_name", variants)
    yield from _workloads(plan, target)
    scripts = knob_scripts(experiment)
    yield from _save(scripts)
    yield from _arm(experiment, scripts)
    yield from _launch(experiment, scripts)
    yield from _loads(experiment)
    yield from _steps(scripts)


def safe_name(name: str, number: int) -> str:
    """Return a name that may stand in a path."""
    if NAME.fullmatch(name):
        return name
    return f"variant{number}"


def _names(function: str, names: list[str]) -> Iterator[str]:
    cases = {
        f"{number}": (f"printf '%s' {quoted(inert(name))}",)
        for number, name in enumerate(names, 1)
    }
    yield from _function(f"{function}() {{", "$1", cases)


# ------------------------------------------------------------------------------------------------- workloads


def _workloads(plan: Plan, target: Target) -> Iterator[str]:
    cases: dict[str, Lines] = {}
    for arm, cell, variant in _arms(plan.experiment):
        words = words_of(plan, cell, variant, target, OLD_FIO)[1:]
        cases[arm] = (_measure(words),)
    yield from _function("workload() { # CELL VARIANT: start fio", "$1.$2", cases)


def _arms(experiment: Experiment) -> Iterator[tuple[str, Cell, Variant]]:
    """Yield every cell under every variant, with the name that the script gives it: ``1.2`` by their numbers."""
    numbered = product(
        enumerate(experiment.cells, 1), enumerate(experiment.variants, 1)
    )
    for (cell_number, cell), (variant_number, variant) in numbered:
        yield f"{cell_number}.{variant_number}", cell, variant


def _measure(words: list[str]) -> str:
    options = [_option(word) for word in words if not word.startswith(PLACED)]
    start = 'measure --name=iodelta --filename="$named"'
    # A line may not be broken within a quoted word.
    if any(" " in option for option in options):
        return " ".join([start, *options])
    lines = textwrap.wrap(
        " ".join(options), 96, break_long_words=False, break_on_hyphens=False
    )
    return " \\\n            ".join([start, *lines])


def _option(text: str) -> str:
    """Return a quoted word of fio. Raises RequestError for one of several lines, which no option has."""
    if "\n" in text or "\0" in text:
        raise RequestError(
            "a script cannot hold a line break in an option", place=inert(text)[:80]
        )
    return quoted(text)


def _loads(experiment: Experiment) -> Iterator[str]:
    cases: dict[str, Lines] = {}
    for number, condition in enumerate(experiment.conditions, 1):
        words = _load(condition)
        if words:
            cases[f"{number}"] = (f"begin_load {words}",)
    yield from ("load_of() {", '    stop "$load"', "    load=")
    yield from _cases("$1", cases)
    yield from ("}", "")


def _load(condition: Condition) -> str:
    """Return the words of a background load; ``{target.path}`` and so on become what they are on the reader's machine."""
    if condition.background:
        return " ".join(map(_filled, condition.background))
    if not condition.background_fio:
        return ""
    words = background_fio(
        condition.background_fio, "/TARGET", place=f"condition {condition.name}"
    )[1:]
    options = [_option(word) for word in words if not word.startswith(PLACED)]
    return " ".join(['fio --name=background --filename="$named"', *options])


def _filled(word: str) -> str:
    """Return a word of a background command: quoted, its placeholders left to the shell."""
    parts = re.split(f"({'|'.join(map(re.escape, PLACES))})", word)
    return "".join(PLACES.get(part) or _option(part) for part in parts if part)


# ------------------------------------------------------------------------------------------------- settings


def knob_scripts(experiment: Experiment) -> dict[str, Script]:
    """Return the script of each knob of an experiment, in the order in which they are set. Raises RequestError for a
    knob that no script can set."""
    scripts: dict[str, Script] = {}
    for name in experiment.knob_names():
        if of_boot(name):
            raise _no_script(name, "every trial has its own boot")
    for name in order(experiment.knob_names()):
        script = family(name).script(name, _values(experiment, name))
        if isinstance(script, NoScript):
            raise _no_script(name, script.reason)
        scripts[name] = script
    return scripts


def _values(experiment: Experiment, name: str) -> list[str]:
    """Return all that a knob is set to, each value once."""
    values: dict[str, None] = {}
    settings = [variant.knobs for variant in experiment.variants]
    settings += [condition.knobs for condition in experiment.conditions]
    for knobs in settings:
        value = knobs.get(name)
        if value is None:
            continue
        if not value.isprintable():
            raise RequestError(
                "a value is one line of printable text", place=inert(name)
            )
        values[value] = None
    return list(values)


def _no_script(name: str, reason: str) -> RequestError:
    return RequestError(
        f"cannot be written as a plain script: {reason}",
        place=inert(name),
        remedy="`iodelta pack` makes a bundle, which a reader who has iodelta measures with `iodelta reproduce`",
    )


def _save(scripts: Mapping[str, Script]) -> Iterator[str]:
    """``save``: what is kept on disk before the first trial."""
    yield "save() {"
    for script in scripts.values():
        yield from _indented(script.keep)
        yield from (
            f"    printf 'undo %s\\n\\n' {quoted(step)} >>\"$saved\""
            for step in script.steps
        )
    yield from ("    :", "}", "")


def _arm(experiment: Experiment, scripts: Mapping[str, Script]) -> Iterator[str]:
    """``arm``: what a trial's condition and variant set."""
    numbers = {
        condition.name: number
        for number, condition in enumerate(experiment.conditions, 1)
    }
    conditions = {
        f"{n}": (f"wanted={numbers[cell.condition]}",)
        for n, cell in enumerate(experiment.cells, 1)
    }
    yield "arm() { # CELL VARIANT"
    yield from _cases("$1", conditions)
    yield '    if [ "$condition" != "$wanted" ]; then load_of "$wanted"; fi'
    yield "    condition=$wanted"
    settings = _settings(experiment)
    yield from _cases(
        "$1.$2", {arm: tuple(_set(scripts, settings[arm])) for arm in settings}
    )
    yield from ("}", "")


def _settings(experiment: Experiment) -> dict[str, dict[str, str]]:
    """Return what is set in each cell and variant, both by their numbers."""
    return {
        arm: {**experiment.condition(cell.condition).knobs, **variant.knobs}
        for arm, cell, variant in _arms(experiment)
    }


def _set(scripts: Mapping[str, Script], settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that bring the machine to ``settings``, as ``knob.turn`` does."""
    for name, script in scripts.items():
        if name in settings:
            yield from map(line_text, script.values[settings[name]])
        elif not any(
            other != name and family(other).covers(other, name) for other in settings
        ):
            yield from map(line_text, script.release)


def _launch(experiment: Experiment, scripts: Mapping[str, Script]) -> Iterator[str]:
    """``launch``: what binds or limits the load."""
    cases: dict[str, Lines] = {}
    for arm, settings in _settings(experiment).items():
        words = _launcher(scripts, settings)
        if words:
            cases[arm] = (f'set -- {line_text(words)} "$@"',)
    yield from (
        "launch() { # CELL.VARIANT WORD...: start these words behind what binds or limits them",
        "    arm=$1",
    )
    yield "    shift"
    yield from _cases("$arm", cases)
    yield from ('    start "$@"', "}", "")


def _launcher(scripts: Mapping[str, Script], settings: Mapping[str, str]) -> Line:
    words: Line = ()
    for name, script in scripts.items():
        words += script.launchers.get(settings.get(name, ""), ())
    return words


def _steps(scripts: Mapping[str, Script]) -> Iterator[str]:
    """``do_command``, ``check_command`` and ``undo``: commands by the name that a knob gave them."""
    steps: dict[str, Steps] = {}
    for script in scripts.values():
        steps |= script.steps
    kinds = {"do_command": "apply", "check_command": "verify", "undo": "restore"}
    for function, kind in kinds.items():
        cases: dict[str, Lines] = {}
        for name, step in steps.items():
            line: Line = getattr(step, kind)
            if line:
                cases[quoted(name)] = (line_text(line),)
        yield from _function(f"{function}() {{", "$1", cases)


# ---------------------------------------------------------------------------------------------------- shell


def _indented(lines: Iterable[Line]) -> Iterator[str]:
    for line in lines:
        yield f"    {line_text(line)}"


def _function(
    head: str, word: str, cases: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    yield head
    yield from _cases(word, cases)
    yield from ("}", "")


def _cases(word: str, cases: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a case statement; patterns with the same commands share them."""
    alike: dict[Lines, list[str]] = {}
    for pattern, commands in cases.items():
        alike.setdefault(tuple(commands), []).append(pattern)
    yield f"    case {word} in"
    for lines, patterns in alike.items():
        yield f"    {' | '.join(patterns)})"
        yield from (f"        {line}" for line in lines or (":",))
        yield "        ;;"
    yield "    esac"
