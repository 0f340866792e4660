"""An experiment as a plain POSIX shell script: the same trials in the same order, with fio and nothing else.

``script.sh`` holds all that does not depend on the experiment; this module writes the lines before it.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import msgspec

from iodelta import __version__
from iodelta.bundle.packed import opened
from iodelta.errors import MeasureError, RequestError, pasted
from iodelta.experiment import Cell, Experiment, Variant
from iodelta.experiment.model import NAME, of_boot
from iodelta.knob.registry import family, order
from iodelta.knob.shell import Line, NoScript, Script, Steps, line_text, quoted
from iodelta.lab.account import Account
from iodelta.lab.folder import Started
from iodelta.lab.judged import read_plan
from iodelta.lab.plan import Plan, Slot, trial_seed
from iodelta.lab.setup import any_writes
from iodelta.plural import plural
from iodelta.probe.topology import Target
from iodelta.report.derived import load
from iodelta.study.again import size_of, words_of
from iodelta.study.experiment import headline
from iodelta.study.judging import target_of
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
    # The script of each knob of an experiment, in the order in which they are set
    by_name: dict[str, Script] = {}
    for name in experiment.knob_names():
        if of_boot(name):
            raise _no_script(name, "every trial has its own boot")
    for name in order(experiment.knob_names()):
        script = family(name).script(name, _values(experiment, name))
        if isinstance(script, NoScript):
            raise _no_script(name, script.reason)
        by_name[name] = script
    scripts = by_name
    # `save`: what is kept on disk before the first trial
    yield "save() {"
    for script in scripts.values():
        for line in script.keep:
            yield f"    {line_text(line)}"
        yield from (
            f"    printf 'undo %s\\n\\n' {quoted(step)} >>\"$saved\""
            for step in script.steps
        )
    yield from ("    :", "}", "")
    yield from _arm(experiment, scripts)
    # `launch`: what binds or limits the load
    cases: dict[str, Lines] = {}
    for arm, settings in _settings(experiment).items():
        launcher: Line = ()
        for name, script in scripts.items():
            launcher += script.launchers.get(settings.get(name, ""), ())
        line_words = launcher
        if line_words:
            cases[arm] = (f'set -- {line_text(line_words)} "$@"',)
    yield from (
        "launch() { # CELL.VARIANT WORD...: start these words behind what binds or limits them",
        "    arm=$1",
    )
    yield "    shift"
    yield from _cases("$arm", cases)
    yield from ('    start "$@"', "}", "")
    cases = {}
    for number, condition in enumerate(experiment.conditions, 1):
        # The words of a background load; `{target.path}` and so on become what they are on the reader's machine
        if condition.background:
            words = " ".join(map(_filled, condition.background))
        elif not condition.background_fio:
            words = ""
        else:
            fio_words = background_fio(
                condition.background_fio, "/TARGET", place=f"condition {condition.name}"
            )[1:]
            options = [
                _option(word) for word in fio_words if not word.startswith(PLACED)
            ]
            words = " ".join(['fio --name=background --filename="$named"', *options])
        if words:
            cases[f"{number}"] = (f"begin_load {words}",)
    yield from ("load_of() {", '    stop "$load"', "    load=")
    yield from _cases("$1", cases)
    yield from ("}", "")
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


def _filled(word: str) -> str:
    """Return a word of a background command: quoted, its placeholders left to the shell."""
    parts = re.split(f"({'|'.join(map(re.escape, PLACES))})", word)
    return "".join(PLACES.get(part) or _option(part) for part in parts if part)


# ------------------------------------------------------------------------------------------------- settings


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


BODY = Path(__file__).with_name("script.sh")


def reproducer_of(path: Path) -> str:
    """Return the script of an experiment folder or bundle. Raises RequestError for an experiment that no script can
    hold, MeasureError for a damaged folder or one without a trial."""
    folder = opened(path)
    plan = read_plan(folder)
    folder.check_journal()
    journal = Account(folder.events())
    target = target_of(journal)
    if target is None:
        raise MeasureError(
            "nothing was measured yet",
            place=str(path),
            remedy=f"`iodelta run {pasted(path)}` continues it",
        )
    ran = [journal.started[number] for number in sorted(journal.finished)]
    account = load(folder)
    return script(
        plan,
        target,
        ran or _planned(plan),
        headline(account),
        dict(account.system).get("fio", ""),
    )


def script(
    plan: Plan, target: Target, trials: list[Started], answer: str, fio: str
) -> str:
    """Return the script for these trials. Raises RequestError for settings or names that no script can hold."""
    experiment = plan.experiment
    tool = "a command" if experiment.of_command else experiment.tool
    if tool:
        raise RequestError(
            f"a script is of fio's own trials; these were made with {inert(tool)}",
            place="--reproducer",
            remedy="`iodelta report --format mail` ends with the command line of each; `iodelta pack` makes a bundle",
        )
    scratch = plan.identifier in target.real_path
    # Only the trials count: the script does not prepare the disk.
    writing = any_writes(
        msgspec.structs.replace(experiment, prepare=None),
        target,
        size_of(experiment, target),
    )
    lines = [
        *_head(plan, target, trials, answer, fio, scratch=scratch, writing=writing),
        *functions(plan, target),
        "run_all() {",
        *_trials(experiment, trials),
        "}",
        "",
        BODY.read_text(encoding="utf-8"),
    ]
    return "\n".join(lines)


def _head(
    plan: Plan,
    target: Target,
    trials: list[Started],
    answer: str,
    fio: str,
    *,
    scratch: bool,
    writing: bool,
) -> Iterator[str]:
    experiment = plan.experiment
    yield "#!/bin/sh"
    if experiment.question:
        yield from _comment(experiment.question)
    yield from _comment(f"It was answered: {answer}")
    yield from _comment(
        f"{plural(len(trials), 'trial')} of {experiment.design.trial:g} s, made with fio "
        f"{fio or 'of an unknown version'} on "
        f"{target.path}; in the same order, with the same seeds. Made by iodelta {__version__}."
    )
    if experiment.prepare is not None:
        yield from _comment(
            "Before these trials the disk was prepared, which this script does not do: iodelta prepare"
        )
    yield "#"
    what = "DIRECTORY" if scratch else "TARGET"
    force = "--overwrite " if writing and not scratch else ""
    yield f"#   sh reproduce.sh {force}{what} [RESULTS]   do it; Ctrl-C ends it and puts every setting back"
    yield "#   sh reproduce.sh --restore RESULTS   put back what a kill -9 left changed"
    yield "#"
    for variant in experiment.variants:
        settings = [f"{name} = {value}" for name, value in variant.knobs.items()]
        settings += [f"fio.{name} = {value}" for name, value in variant.options]
        yield from _comment(
            f"{variant.name}: {'; '.join(settings) or 'everything as it is'}"
        )
    for command in experiment.runs_commands():
        yield from _comment(f"It runs: {command}")
    yield ""
    yield "# shellcheck disable=SC2046  # lists of kernel files, which have no blanks in their names"
    yield f"usage() {{ echo {shlex.quote(f'usage: sh reproduce.sh {force}{what} [RESULTS] | --restore RESULTS')}; }}"
    yield f"trials={len(trials)}"
    yield f"writes={'yes' if writing and not scratch else 'no'}"
    yield f"scratch_size={size_of(experiment, target) if scratch else ''}"
    yield f"settle={experiment.design.settle:g}"
    names = [variant.name for variant in experiment.variants]
    yield f"baseline={safe_name(experiment.baseline, names.index(experiment.baseline) + 1)}"
    yield ""


def _comment(text: str) -> Iterator[str]:
    """Yield a comment of any text: without line breaks, which would end it."""
    yield from textwrap.wrap(
        inert(text), 100, initial_indent="# ", subsequent_indent="#   "
    )


def _trials(experiment: Experiment, trials: list[Started]) -> Iterator[str]:
    cells = {cell.name: n for n, cell in enumerate(experiment.cells, 1)}
    variants = {variant.name: n for n, variant in enumerate(experiment.variants, 1)}
    for number, trial in enumerate(trials, 1):
        block = f"{trial.block + 1}"
        if trial.attempt:
            block += f"-{trial.attempt + 1}"
        if trial.conditioning:
            block += "c"
        yield f"    trial {number} {cells[trial.cell]} {variants[trial.variant]} {block} {trial.seed}"
    if not trials:
        yield "    :"


def _planned(plan: Plan) -> list[Started]:
    """Return the trials of the plan, where none was made yet."""
    planned = []
    for slot in plan.schedule.slots():
        planned += [_begun(plan, slot, position) for position in range(len(slot.order))]
    return planned


def _begun(plan: Plan, slot: Slot, position: int) -> Started:
    name, to_come = slot.order[position], slot.to_come(position)
    fresh = plan.experiment.design.fresh_seeds
    return Started(
        at=0.0,
        trial=0,
        cell=slot.cell,
        block=slot.block,
        attempt=0,
        position=position,
        variant=name,
        seed=trial_seed(plan.seed, slot, 0, name, fresh=fresh, to_come=to_come),
        conditioning=to_come > 0,
    )
