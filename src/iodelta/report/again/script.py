"""An experiment as a plain POSIX shell script: the same trials in the same order, with fio and nothing else.

The script itself is ``reproducer.sh``; here stands what is put before it, every text from outside quoted.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from iodelta import __version__
from iodelta.bundle.packed import opened
from iodelta.errors import MeasureError, RequestError, pasted
from iodelta.experiment import Condition, Experiment
from iodelta.experiment.model import NAME, of_boot
from iodelta.knob.command import Commands
from iodelta.knob.cpu import CPUFREQ, NO_TURBO
from iodelta.knob.files import ROOTS
from iodelta.knob.registry import order
from iodelta.knob.sysctl import EITHER
from iodelta.knob.sysctl import ROOT as SYSCTL
from iodelta.lab.account import Account
from iodelta.lab.folder import Started
from iodelta.lab.plan import Plan
from iodelta.lab.schedule import Slot, trial_seed
from iodelta.lab.session import read_plan
from iodelta.lab.setup import tool_of
from iodelta.lab.writing import any_writes
from iodelta.probe.topology import Target
from iodelta.report.account.load import load, target_of
from iodelta.report.account.model import headline
from iodelta.report.again.lines import size_of, words_of
from iodelta.report.words import inert
from iodelta.workload.background import background_fio

BODY = Path(__file__).with_name("script.sh")

PLACED = ("--filename=", "--directory=", "--randseed=", "--name=")
"""Words that the script gives fio itself."""

UNWRITTEN: Mapping[str, str] = {
    "irq.affinity": "which interrupts are the target's depends on its driver",
    "mirror.read_policy": "the mirror is iodelta's own, and reads in fio's place",
    "mount.options": "what a remount undoes depends on the filesystem",
}
"""Knobs that no script sets, and why; what is of a boot is none's either."""


def reproducer_of(path: Path) -> str:
    """The script of an experiment folder or bundle. Raises RequestError for what cannot be written so, MeasureError."""
    folder = opened(path)
    plan = read_plan(folder)
    folder.check_journal()
    journal = Account(folder.events())
    target = target_of(journal)
    if target is None:
        raise MeasureError("nothing was measured yet", place=str(path), remedy=f"`iodelta run {pasted(path)}` goes on")
    ran = [journal.started[number] for number in sorted(journal.finished)]
    account = load(folder)
    return script(plan, target, ran or _planned(plan), headline(account), dict(account.system).get("fio", ""))


def script(plan: Plan, target: Target, trials: list[Started], answer: str, fio: str) -> str:
    """The script for these trials. Raises RequestError for settings or names that no script can hold."""
    experiment = plan.experiment
    if tool := tool_of(experiment):
        raise RequestError(
            f"a script is of fio's own trials; these were made with {inert(tool)}",
            place="--reproducer",
            remedy="`iodelta report --format mail` ends with the command line of each; `iodelta pack` makes a bundle",
        )
    for name in experiment.knob_names():
        if why := "every trial is in a boot of its own" if of_boot(name) else UNWRITTEN.get(name):
            raise _unwritten(name, why)
    scratch = plan.identifier in target.real_path
    writing = any_writes(experiment, target, size_of(experiment, target))
    lines = [
        *_head(plan, target, trials, answer, fio, scratch=scratch, writing=writing),
        *_functions(plan, target),
        "run_all() {",
        *_trials(experiment, trials),
        "}",
        "",
        BODY.read_text(encoding="utf-8"),
    ]
    return "\n".join(lines)


def _head(
    plan: Plan, target: Target, trials: list[Started], answer: str, fio: str, *, scratch: bool, writing: bool
) -> Iterator[str]:
    experiment = plan.experiment
    yield "#!/bin/sh"
    if experiment.question:
        yield from _comment(experiment.question)
    yield from _comment(f"It was answered: {answer}")
    yield from _comment(
        f"{len(trials)} trials of {experiment.design.trial:g} s, made with fio {fio or 'of an unknown version'} on "
        f"{target.path}; in the same order, with the same seeds. Made by iodelta {__version__}."
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
        yield from _comment(f"{variant.name}: {'; '.join(settings) or 'everything as it is'}")
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
    yield f"baseline={_safe_name(experiment.baseline, names.index(experiment.baseline) + 1)}"
    yield ""


def _comment(text: str) -> Iterator[str]:
    """A comment of any text: without line breaks, which would end it."""
    yield from textwrap.wrap(inert(text), 100, initial_indent="# ", subsequent_indent="#   ")


# -------------------------------------------------------------------------------------------------- functions


def _functions(plan: Plan, target: Target) -> Iterator[str]:
    experiment = plan.experiment
    yield from _names("cell_name", [cell.name for cell in experiment.cells])
    yield from _names("variant_name", [_safe_name(variant.name, n) for n, variant in enumerate(experiment.variants, 1)])
    yield from _workloads(plan, target)
    yield from _settings(experiment)


def _names(function: str, names: list[str]) -> Iterator[str]:
    yield f"{function}() {{"
    yield from _cases("$1", {f"{n}": (f"printf '%s' {shlex.quote(inert(name))}",) for n, name in enumerate(names, 1)})
    yield from ("}", "")


def _safe_name(name: str, number: int) -> str:
    """A name that may stand in a path."""
    return name if NAME.fullmatch(name) else f"variant{number}"


def _workloads(plan: Plan, target: Target) -> Iterator[str]:
    arms = {}
    for cell_number, cell in enumerate(plan.experiment.cells, 1):
        for variant_number, variant in enumerate(plan.experiment.variants, 1):
            words = words_of(plan, cell, variant, target, (3, 33))[1:]
            own = [_quoted(word) for word in words if not word.startswith(PLACED)]
            lines = textwrap.wrap(" ".join(own), 96, break_long_words=False, break_on_hyphens=False)
            text = " \\\n            ".join(['measure --name=iodelta --filename="$named"', *lines])
            arms[f"{cell_number}.{variant_number}"] = (text,) if not _spaced(own) else (_plain(own),)
    yield "workload() { # CELL VARIANT: start fio"
    yield from _cases("$1.$2", arms)
    yield from ("}", "")


def _spaced(words: list[str]) -> bool:
    """Whether a quoted word holds blanks, at which no line may be broken."""
    return any(" " in word for word in words)


def _plain(words: list[str]) -> str:
    return " ".join(['measure --name=iodelta --filename="$named"', *words])


def _cases(word: str, arms: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """A case statement; patterns with the same commands share them."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for pattern, lines in arms.items():
        alike.setdefault(lines, []).append(pattern)
    yield f"    case {word} in"
    for lines, patterns in alike.items():
        yield f"    {' | '.join(patterns)})"
        yield from (f"        {line}" for line in lines or (":",))
        yield "        ;;"
    yield "    esac"


def _quoted(text: str) -> str:
    if "\0" in text or "\n" in text:
        raise RequestError("a script cannot hold a line break in an option", place=inert(text)[:80])
    return shlex.quote(text)


def _settings(experiment: Experiment) -> Iterator[str]:
    """``save``: what is kept before the first trial; ``arm``: what a trial's condition and variant set."""
    names = list(order(experiment.knob_names()))
    yield "save() {"
    yield from (f"    {line}" for name in names for line in _kept(name, experiment))
    yield from ("    :", "}", "")
    conditions = {condition.name: n for n, condition in enumerate(experiment.conditions, 1)}
    yield "arm() { # CELL VARIANT"
    yield from _cases("$1", {f"{n}": (f"wanted={conditions[c.condition]}",) for n, c in enumerate(experiment.cells, 1)})
    yield '    if [ "$condition" != "$wanted" ]; then load_of "$wanted"; fi'
    yield "    condition=$wanted"
    yield "    limited="
    arms = {}
    for cell_number, cell in enumerate(experiment.cells, 1):
        for variant_number, variant in enumerate(experiment.variants, 1):
            settings = {**experiment.condition(cell.condition).knobs, **variant.knobs}
            lines = (line for name in names for line in _set(name, settings.get(name), settings, names, experiment))
            arms[f"{cell_number}.{variant_number}"] = tuple(lines)
    yield from _cases("$1.$2", arms)
    yield from ("}", "")
    loads = {f"{n}": (f"begin_load {words}",) for n, c in enumerate(experiment.conditions, 1) if (words := _load(c))}
    yield "load_of() {"
    yield '    stop "$load"'
    yield "    load="
    yield from _cases("$1", loads)
    yield from ("}", "")
    for function, step in (("do_command", "apply"), ("check_command", "verify"), ("undo", "restore")):
        arms = {
            f"{number}": (" ".join(map(_quoted, getattr(_commands(value), step))),)
            for number, value in enumerate(_command_values(experiment), 1)
            if getattr(_commands(value), step)
        }
        yield f"{function}() {{"
        yield from _cases("$1", arms)
        yield from ("}", "")


def _load(condition: Condition) -> str:
    """The words of a background load; ``{target.path}`` and so on become what they are on the reader's machine."""
    if condition.background:
        return " ".join(map(_filled, condition.background))
    if not condition.background_fio:
        return ""
    words = background_fio(condition.background_fio, "/TARGET", place=f"condition {condition.name}")[1:]
    own = (_quoted(word) for word in words if not word.startswith(PLACED))
    return " ".join(['fio --name=background --filename="$named"', *own])


def _filled(word: str) -> str:
    """A word of a background command: quoted, its placeholders left to the shell."""
    places = {"{target.path}": '"$real"', "{target.mount}": '"$(target_mount)"', "{target.device}": '"$names"'}
    parts = re.split(f"({'|'.join(map(re.escape, places))})", word)
    return "".join(places.get(part) or _quoted(part) for part in parts if part)


# ------------------------------------------------------------------------------------------------------- knobs


def _files(name: str) -> str:
    """The shell's words for the files of a knob that is one text in some kernel files; empty for another kind."""
    simple: Mapping[str, str] = {
        "block.read_ahead_kb": '$(if [ -n "$fsid" ] && [ ! -b "$real" ]; then '
        'echo "/sys/fs/btrfs/$fsid/bdi/read_ahead_kb"; else in_disks queue/read_ahead_kb; fi)',
        "btrfs.read_policy": '"/sys/fs/btrfs/$fsid/read_policy"',
        "md.stripe_cache_size": "$(in_disks md/stripe_cache_size)",
        "cpu.governor": f"{CPUFREQ}/policy*/scaling_governor",
        "cpu.epp": f"{CPUFREQ}/policy*/energy_performance_preference",
        "cpu.boost": f"{CPUFREQ}/boost {NO_TURBO}",
    }
    if name in simple:
        return simple[name]
    if name.startswith("block.") and re.fullmatch(r"block\.[a-z0-9_]+(\.[a-z0-9_]+)?", name):
        return f"$(in_queues {name.removeprefix('block.').replace('.', '/')})"
    if name.startswith("sysctl."):
        return _path(f"{SYSCTL}/{_sysctl(name)}", name)
    if name.startswith("sysfs:"):
        return _path(name.removeprefix("sysfs:"), name)
    return ""


def _sysctl(name: str) -> str:
    text = name.removeprefix("sysctl.")
    first = next((c for c in text if c in "./"), ".")
    return text if first == "/" else text.translate(str.maketrans("./", "/."))


def _path(path: str, name: str) -> str:
    if not path.startswith(ROOTS) or ".." in path.split("/") or not path.isprintable():
        raise RequestError("is no path below /sys or /proc/sys", place=inert(name))
    return _quoted(path)


def _kept(name: str, experiment: Experiment) -> Iterator[str]:
    """What to keep of a knob before anything is set."""
    if name == "block.scheduler":
        yield "keep_scheduler"
    elif name == "command":
        for number, _ in enumerate(_command_values(experiment), 1):
            yield f"printf 'undo %s\\n\\n' {number} >>\"$saved\""
    elif files := _files(name):
        yield f"keep {files}{_either(name)}"


def _either(name: str) -> str:
    """Two spellings of one setting: to write one makes the other 0."""
    path = f"{_sysctl(name)}" if name.startswith("sysctl.") else ""
    others = [other for pair in EITHER if path in pair for other in pair if other != path]
    return "".join(f" {SYSCTL}/{other}" for other in others)


def _set(
    name: str, value: str | None, settings: Mapping[str, str], names: list[str], experiment: Experiment
) -> Iterator[str]:
    """The lines that set a knob to a value; for None those that bring its original back."""
    if value is not None and not value.isprintable():
        raise RequestError("a value is one line of printable text", place=inert(name))
    text = _quoted(value) if value is not None else ""
    special: Mapping[str, Callable[[], str]] = {
        "block.scheduler": lambda: f"scheduler {text}" if text else "scheduler_back",
        "cgroup.io_max": lambda: f"limit {text}; limited=yes" if text else "unlimited",
        "cpus": lambda: f"launcher={_quoted(f'cpus {value}')}" if text else "",
        "numa": lambda: f"launcher={_quoted(f'numa {value}')}" if text else "",
        "memory.drop_caches": lambda: f"sync; printf '%s\\n' {text} >/proc/sys/vm/drop_caches" if text else "",
        "cpu.boost": lambda: f"boost {text}" if text else f"put_back_all {_files(name)}",
        "command": lambda: f"commanded {_command_values(experiment).index(value) + 1 if value else 0}",
    }
    if name in special:
        if line := special[name]():
            yield line
    elif files := _files(name):
        if text:
            yield f"put_all {text} {files}"
        elif not (_resets(name, settings, names)):
            yield f"put_back_all {files}"
    else:
        raise _unwritten(name, "no kernel file is known by this name")


def _unwritten(name: str, why: str) -> RequestError:
    return RequestError(
        f"cannot be written as a plain script: {why}",
        place=inert(name),
        remedy="`iodelta pack` makes a bundle, which a reader who has iodelta measures with `iodelta reproduce`",
    )


def _resets(name: str, settings: Mapping[str, str], names: list[str]) -> bool:
    """Whether another knob that this variant sets decides the state of this one."""
    covered = name == "block.nr_requests" or name.startswith("block.iosched.")
    return covered and "block.scheduler" in settings and "block.scheduler" in names


def _command_values(experiment: Experiment) -> list[str]:
    settings = [one.knobs for one in experiment.variants] + [one.knobs for one in experiment.conditions]
    return list(dict.fromkeys(own["command"] for own in settings if "command" in own))


def _commands(value: str) -> Commands:
    try:
        return msgspec.json.decode(value, type=Commands)
    except msgspec.MsgspecError as error:
        raise RequestError(str(error), place="command") from error


# ------------------------------------------------------------------------------------------------------ trials


def _trials(experiment: Experiment, trials: list[Started]) -> Iterator[str]:
    cells = {cell.name: n for n, cell in enumerate(experiment.cells, 1)}
    variants = {variant.name: n for n, variant in enumerate(experiment.variants, 1)}
    for number, one in enumerate(trials, 1):
        block = f"{one.block + 1}" + (f"-{one.attempt + 1}" if one.attempt else "")
        block += "c" if one.conditioning else ""
        yield f"    trial {number} {cells[one.cell]} {variants[one.variant]} {block} {one.seed}"
    if not trials:
        yield "    :"


def _planned(plan: Plan) -> list[Started]:
    """The trials of the plan, where none was made yet."""
    return [_begun(plan, slot, position) for slot in plan.schedule.slots() for position in range(len(slot.order))]


def _begun(plan: Plan, slot: Slot, position: int) -> Started:
    name, conditioning = slot.order[position], slot.conditioning(position)
    fresh = plan.experiment.design.fresh_seeds
    seed = trial_seed(plan.seed, slot, 0, name, fresh=fresh, conditioning=conditioning)
    return Started(0.0, 0, slot.cell, slot.block, 0, position, name, seed, conditioning)
