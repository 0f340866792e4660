"""The options of ``bisect`` and ``attribute`` as a question: what is built, measured and followed, by which rules."""

from __future__ import annotations

import math
import os
import random
import sys
from pathlib import Path
from typing import Literal

import msgspec

from iodelta.api.own_command import check_settings, of_file
from iodelta.bisect.counted import ANATOMIES, metric_of
from iodelta.bisect.measure import cell_experiment, cell_metric
from iodelta.bisect.model import Rules
from iodelta.bisect.question import WRONG, Question, Steps, Subject, command_words
from iodelta.cli.commands import Asked
from iodelta.errors import RequestError
from iodelta.experiment import parse
from iodelta.experiment.shorthand import shorthand
from iodelta.experiment.source import COMMAND_LINE
from iodelta.experiment.values import fraction
from iodelta.path.metrics import LATENCY, path_metric

MEASURING = (
    *("build", "artifact", "put", "measure", "workload", "allow_commands", "machine"),
    *("clock", "target", "size", "trial", "ramp", "set", "destroy", "repeat"),
    *("build_timeout", "put_timeout", "measure_timeout"),
)
"""Options of a search in which iodelta builds and measures."""

NUMBERS = ("margin", "exact", "first", "rest", "no_revert", "below_noise", "metric")
"""Options of a search that follows numbers."""

BASIC = Rules()


class Followed(msgspec.Struct, frozen=True):
    """What is followed."""

    metric: str
    unit: str
    better: Literal["higher", "lower"]
    experiment: str = ""


def question_of(asked: Asked, subject: Subject, *, blocks: int = 8) -> Question:
    """Return all of the question, about ``subject``. Raises RequestError."""
    options = vars(asked)
    counts = asked.clock == "instructions"
    by_hand: Literal["", "words", "numbers"] = ""
    if options.get("by_hand"):
        by_hand = "numbers" if asked.better else "words"
    if by_hand:
        followed = _by_person(asked, by_hand)
    elif asked.measure:
        followed = _by_command(asked)
    elif asked.workload:
        followed = _by_file(asked, asked.workload)
    else:
        followed = _by_fio(asked, counts=counts)
    repeats = 0.0
    if counts:
        metric = path_metric(asked.metric)
        repeats = metric.exact if metric else LATENCY
    exact = asked.share_of("exact") if options.get("exact") else repeats
    rules = Rules(
        margin=math.log1p(asked.share_of("margin", "1%")),
        exact=math.log1p(exact),
        force=bool(options.get("below_noise")),
        several=not options.get("first"),
        rest=options.get("rest", BASIC.rest),
        revert=not options.get("no_revert"),
        most_runs=options.get("runs") or BASIC.most_runs,
        seed=random.SystemRandom().getrandbits(31)
        if asked.seed is None
        else asked.seed,
    )
    return Question(
        subject=subject,
        steps=_steps(asked),
        rules=rules,
        metric=followed.metric,
        unit=followed.unit,
        better=followed.better,
        experiment=followed.experiment,
        knobs=_knobs(asked, counts=counts),
        destroy=asked.destroy,
        commands=asked.allow_commands,
        words=("iodelta", *sys.argv[1:]),
        cwd=os.getcwd(),
        blocks=blocks,
        by_hand=by_hand,
        wrong=_wrong(asked) if "wrong" in options else WRONG,
    )


def _steps(asked: Asked) -> Steps:
    for name in asked.artifact:
        if not asked.build:
            raise RequestError("there is no --build to produce it", place="--artifact")
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise RequestError(
                "an artifact is named relative to the tree", place=f"--artifact {name}"
            )
    return Steps(
        command_words(asked.build, "--build"),
        asked.artifact,
        command_words(asked.put, "--put"),
        command_words(asked.measure, "--measure"),
        build_timeout=asked.time_of("build_timeout"),
        put_timeout=asked.time_of("put_timeout"),
        measure_timeout=asked.time_of("measure_timeout"),
        repeat=asked.repeat,
    )


def _by_fio(asked: Asked, *, counts: bool) -> Followed:
    """Return the metric of the cell, and where it is measured, and what its guests count."""
    if asked.better:
        raise RequestError(
            "iodelta knows the better direction of fio's metrics", place="--better"
        )
    top = {"machine": asked.machine, "clock": asked.clock}
    metric = path_metric(asked.metric) if counts else None
    if metric and metric.source in ANATOMIES:
        top["anatomy"] = ANATOMIES[metric.source]
    text = shorthand(
        fio=asked.fio,
        variants=["item"],
        top=top,
        target={"path": asked.target, "size": asked.size},
        design={"trial": asked.trial, "ramp": asked.ramp, "placebo": True},
    )
    parse(text, COMMAND_LINE, numbered=False, strict=True)
    experiment = cell_experiment(text)
    if asked.machine.partition(":")[0] == "vm" and not counts:
        raise RequestError(
            "in a guest, a search counts instructions; it does not measure time",
            place="--machine",
            remedy="add --clock instructions; `iodelta run --machine vm` takes times of two kernels",
        )
    if counts:
        counted = metric_of(experiment, asked.metric)
        return Followed(counted.name, counted.unit, "lower", text)
    chosen = cell_metric(experiment, asked.metric)
    return Followed(chosen.name, chosen.unit, chosen.better, text)


def _by_command(asked: Asked) -> Followed:
    """Return the number that --measure prints. Raises RequestError for options of fio."""
    if asked.machine or asked.clock:
        raise RequestError(
            "--measure is your own command, and runs on this machine",
            place="--machine" if asked.machine else "--clock",
            remedy="use --measure 'ssh HOST ...', or omit it to run fio there",
        )
    of_fio = ("fio", "workload", "target", "size", "trial", "ramp", "metric", "set")
    if any(getattr(asked, name) for name in of_fio):
        raise RequestError(
            "either --measure, or --workload or fio with target and knobs",
            place="command line",
        )
    if not asked.better:
        raise RequestError(
            "say whether a higher or a lower number is better",
            place="--measure",
            remedy="--better higher",
        )
    return Followed("the number", "", asked.better)


def _by_file(asked: Asked, path: Path) -> Followed:
    """Return a number of the command of an experiment file."""
    given = [name for name in ("better", "ramp") if getattr(asked, name)]
    if asked.fio or given:
        option = "an option of fio" if asked.fio else f"--{given[0]}"
        raise RequestError(
            f"{option} is not of a command", place="--workload", remedy="leave it out"
        )
    metric = asked.metric
    text, experiment = of_file(
        path,
        top={"machine": asked.machine, "clock": asked.clock},
        target={"path": asked.target, "size": asked.size},
        design={"trial": asked.trial, "metrics": [metric] if metric else None},
        allowed=asked.allow_commands,
    )
    check_settings(experiment, _knobs(asked, counts=asked.clock == "instructions"))
    chosen = cell_metric(cell_experiment(text), metric)
    return Followed(chosen.name, chosen.unit, chosen.better, text)


def _by_person(asked: Asked, by_hand: str) -> Followed:
    """Return what a person is asked about; nothing is built or measured here."""

    def spelt(option: str) -> str:
        return f"--{option.replace('_', '-')}"

    mine = sorted(asked.given(*MEASURING))
    if asked.fio or mine:
        name = "an option of fio" if asked.fio else spelt(mine[0])
        raise RequestError(
            f"{name} is for automatic searches",
            place="--by-hand",
            remedy="leave it out: you put each item under test and answer; or leave --by-hand out",
        )
    if by_hand == "numbers" and asked.given("wrong"):
        raise RequestError(
            "--wrong is for the answers good and bad",
            place="--better",
            remedy="leave --wrong or --better out",
        )
    if by_hand == "numbers":
        return Followed(asked.metric or "the number", "", asked.better)
    about = sorted(asked.given(*NUMBERS))
    if about:
        raise RequestError(
            f"{spelt(about[0])} is for answers that are numbers",
            place="--by-hand",
            remedy="leave it out, or answer with numbers: --better higher or lower",
        )
    return Followed("your answers", "", "lower")


def _wrong(asked: Asked) -> float:
    """Return the probability that a word is wrong."""
    if not asked.by_hand and asked.given("wrong"):
        raise RequestError(
            "only answers by hand have a probability to be wrong",
            place="--wrong",
            remedy="add --by-hand, or leave it out",
        )
    try:
        wrong = fraction(asked.wrong)
    except ValueError:
        wrong = 0.0
    if not 0.001 <= wrong <= 0.4:
        raise RequestError(
            f"a word cannot be wrong this often: {asked.wrong}",
            place="--wrong",
            remedy="say 0.1% to 40%; where words are wrong more often, give numbers with --better",
        )
    return wrong


def _knobs(asked: Asked, *, counts: bool) -> dict[str, str]:
    knobs = {}
    for text in asked.set:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise RequestError(
                f"{text!r} is not KNOB=VALUE",
                place="--set",
                remedy="iodelta knobs lists them",
            )
        knobs[name] = value
    is_booted = any("{built}" in value for value in knobs.values())
    if counts and asked.build and not is_booted:
        raise RequestError(
            "the kernel that boots is not the one that was built",
            place="--set",
            remedy="name the kernel: --set kernel={built}",
        )
    return knobs
