"""An experiment as a plain POSIX shell script: the same trials in the same order, with fio and nothing else.

``script.sh`` holds all that does not depend on the experiment; this module writes the lines before it.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

import msgspec

from iodelta import __version__
from iodelta.bundle.packed import opened
from iodelta.errors import MeasureError, RequestError, pasted
from iodelta.experiment import Experiment
from iodelta.lab.account import Account
from iodelta.lab.folder import Started
from iodelta.lab.plan import Plan
from iodelta.lab.schedule import Slot, trial_seed
from iodelta.lab.session import read_plan
from iodelta.lab.setup import tool_of
from iodelta.lab.writing import any_writes
from iodelta.plural import plural
from iodelta.probe.topology import Target
from iodelta.report.derived import load
from iodelta.reproducer.functions import functions, safe_name
from iodelta.study.again import size_of
from iodelta.study.experiment import headline
from iodelta.study.judging import target_of
from iodelta.study.words import inert

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
    tool = "a command" if experiment.of_command else tool_of(experiment)
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
    seed = trial_seed(plan.seed, slot, 0, name, fresh=fresh, to_come=to_come)
    return Started(
        at=0.0,
        trial=0,
        cell=slot.cell,
        block=slot.block,
        attempt=0,
        position=position,
        variant=name,
        seed=seed,
        conditioning=to_come > 0,
    )
