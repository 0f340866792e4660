"""The options of ``bisect`` and ``attribute`` as a question: what is built, measured and followed, by which rules."""

from __future__ import annotations

import math
import os
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, cast

import click
import msgspec
from click.core import ParameterSource

from iodelta.bisect.counted import ANATOMIES, metric_of
from iodelta.bisect.model import Rules
from iodelta.bisect.question import (
    WRONG,
    Better,
    Question,
    Steps,
    Subject,
    command_words,
)
from iodelta.errors import RequestError
from iodelta.experiment import parse, seconds, shorthand
from iodelta.experiment.source import COMMAND_LINE
from iodelta.experiment.values import fraction
from iodelta.path.metrics import LATENCY, path_metric


class Measured(msgspec.Struct, frozen=True):
    """What is followed."""

    metric: str
    unit: str
    better: Better
    experiment: str = ""


class Asked:
    """Options as click gave them, read as parts of a question. Every method raises RequestError."""

    def __init__(self, options: dict[str, object], fio: tuple[str, ...]) -> None:
        self._options, self._fio = options, fio

    def text(self, name: str) -> str:
        return str(self._options.get(name) or "")

    def many(self, name: str) -> tuple[str, ...]:
        return cast(tuple[str, ...], self._options.get(name) or ())

    def steps(self) -> Steps:
        build, put, measure = (
            command_words(self.text(name), f"--{name}")
            for name in ("build", "put", "measure")
        )
        artifacts = self.many("artifacts")
        if artifacts and not build:
            raise RequestError("there is no --build to produce it", place="--artifact")
        for name in artifacts:
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise RequestError(
                    "an artifact is named relative to the tree",
                    place=f"--artifact {name}",
                )
        return Steps(
            build,
            artifacts,
            put,
            measure,
            build_timeout=self._seconds("build_timeout"),
            put_timeout=self._seconds("put_timeout"),
            measure_timeout=self._seconds("measure_timeout"),
            repeat=cast(int, self._options["repeat"]),
        )

    def rules(self) -> Rules:
        given = cast("int | None", self._options["seed"])
        repeats = 0.0
        if self._counts:
            metric = path_metric(self.text("metric"))
            repeats = metric.exact if metric else LATENCY
        return Rules(
            margin=math.log1p(self._share("margin")),
            exact=math.log1p(self._share("exact") if self.text("exact") else repeats),
            force=bool(self._options.get("force")),
            several=not self._options.get("first"),
            rest=cast(float, self._options.get("rest", Rules().rest)),
            revert=not self._options.get("no_revert"),
            most_runs=cast("int | None", self._options.get("runs"))
            or Rules().most_runs,
            seed=random.SystemRandom().getrandbits(31) if given is None else given,
        )

    def measured(self) -> Measured:
        """Return the metric of the cell, or the number that a command prints."""
        from iodelta.bisect.measure import cell_experiment, cell_metric

        if self.by_hand:
            return self._by_person()
        if self.text("measure"):
            return self._by_command()
        if self._options["workload"]:
            return self._by_file(cast(Path, self._options["workload"]))
        if self._options["better"]:
            raise RequestError(
                "iodelta knows the better direction of fio's metrics", place="--better"
            )
        text = shorthand(
            fio=self._fio,
            variants=["item"],
            top=self._top(),
            target={"path": self.text("target"), "size": self.text("size")},
            design={
                "trial": self.text("trial"),
                "ramp": self.text("ramp"),
                "placebo": True,
            },
        )
        parse(text, COMMAND_LINE, numbered=False, strict=True)
        experiment = cell_experiment(text)
        if self.text("machine").partition(":")[0] == "vm" and not self._counts:
            raise RequestError(
                "in a guest, a search counts instructions; it does not measure time",
                place="--machine",
                remedy="add --clock instructions; `iodelta run --machine vm` takes times of two kernels",
            )
        if self._counts:
            counted = metric_of(experiment, self.text("metric"))
            return Measured(counted.name, counted.unit, "lower", text)
        chosen = cell_metric(experiment, self.text("metric"))
        return Measured(chosen.name, chosen.unit, chosen.better, text)

    def _top(self) -> dict[str, str]:
        """Where a cell is measured, and what its guests count."""
        top = {"machine": self.text("machine"), "clock": self.text("clock")}
        metric = path_metric(self.text("metric")) if self._counts else None
        if metric and metric.source in ANATOMIES:
            top["anatomy"] = ANATOMIES[metric.source]
        return top

    def _by_command(self) -> Measured:
        """Return the number that --measure prints. Raises RequestError for options of fio."""
        if self.text("machine") or self.text("clock"):
            raise RequestError(
                "--measure is your own command, and runs on this machine",
                place="--machine" if self.text("machine") else "--clock",
                remedy="use --measure 'ssh HOST ...', or omit it to run fio there",
            )
        of_fio = ("workload", "target", "size", "trial", "ramp", "metric", "knobs")
        if self._fio or any(self._options.get(name) for name in of_fio):
            raise RequestError(
                "either --measure, or --workload or fio with target and knobs",
                place="command line",
            )
        if not self._options["better"]:
            raise RequestError(
                "say whether a higher or a lower number is better",
                place="--measure",
                remedy="--better higher",
            )
        return Measured("the number", "", cast(Better, self._options["better"]))

    def _by_file(self, path: Path) -> Measured:
        """Return a number of the command of an experiment file."""
        from iodelta.bisect.measure import cell_experiment, cell_metric
        from iodelta.cli.own_command import check_settings, of_file

        if self._fio or (
            given := next(
                (name for name in ("better", "ramp") if self._options[name]), ""
            )
        ):
            option = "an option of fio" if self._fio else f"--{given}"
            raise RequestError(
                f"{option} is not of a command",
                place="--workload",
                remedy="leave it out",
            )
        metric = self.text("metric")
        text, experiment = of_file(
            path,
            top={"machine": self.text("machine"), "clock": self.text("clock")},
            target={"path": self.text("target"), "size": self.text("size")},
            design={
                "trial": self.text("trial"),
                "metrics": [metric] if metric else None,
            },
            allowed=bool(self._options["allow_commands"]),
        )
        check_settings(experiment, self.knobs())
        metric_ = cell_metric(cell_experiment(text), metric)
        return Measured(metric_.name, metric_.unit, metric_.better, text)

    @property
    def by_hand(self) -> Literal["", "words", "numbers"]:
        """Return whether a person answers, and in what."""
        if not self._options.get("by_hand"):
            return ""
        return "numbers" if self.text("better") else "words"

    def _by_person(self) -> Measured:
        """Return what a person is asked about; nothing is built or measured here."""
        from iodelta.cli.by_hand import MEASURING, NUMBERS

        given = given_options(self._options)
        if self._fio or (mine := sorted(given & MEASURING)):
            name = "an option of fio" if self._fio else spelt(mine[0])
            raise RequestError(
                f"{name} is for automatic searches",
                place="--by-hand",
                remedy="leave it out: you put each item under test and answer; or leave --by-hand out",
            )
        if self.by_hand == "numbers" and "wrong" in given:
            raise RequestError(
                "--wrong is for the answers good and bad",
                place="--better",
                remedy="leave --wrong or --better out",
            )
        if self.by_hand == "words":
            about = sorted(given & NUMBERS)
            if about:
                remedy = (
                    "leave it out, or answer with numbers: --better higher or lower"
                )
                raise RequestError(
                    f"{spelt(about[0])} is for answers that are numbers",
                    place="--by-hand",
                    remedy=remedy,
                )
            return Measured("your answers", "", "lower")
        return Measured(
            self.text("metric") or "the number",
            "",
            cast(Better, self._options["better"]),
        )

    def wrong(self) -> float:
        """Probability that a word is wrong."""
        if not self.by_hand and "wrong" in given_options(self._options):
            raise RequestError(
                "only answers by hand have a probability to be wrong",
                place="--wrong",
                remedy="add --by-hand, or leave it out",
            )
        try:
            wrong = fraction(self.text("wrong")) if self.text("wrong") else WRONG
        except ValueError:
            wrong = 0.0
        if not 0.001 <= wrong <= 0.4:
            raise RequestError(
                f"a word cannot be wrong this often: {self.text('wrong')}",
                place="--wrong",
                remedy="say 0.1% to 40%; where words are wrong more often, give numbers with --better",
            )
        return wrong

    @property
    def _counts(self) -> bool:
        return self.text("clock") == "instructions"

    def knobs(self) -> dict[str, str]:
        knobs_set = {}
        for text in self.many("knobs"):
            name, equals, value = text.partition("=")
            if not equals or not name:
                raise RequestError(
                    f"{text!r} is not KNOB=VALUE",
                    place="--set",
                    remedy="iodelta knobs lists them",
                )
            knobs_set[name] = value
        if (
            self._counts
            and self.text("build")
            and not any("{built}" in value for value in knobs_set.values())
        ):
            raise RequestError(
                "the kernel that boots is not the one that was built",
                place="--set",
                remedy="name the kernel: --set kernel={built}",
            )
        return knobs_set

    def question(self, subject: Subject, *, blocks: int = 8) -> Question:
        """Return all of it, about ``subject``."""
        measured = self.measured()
        return Question(
            subject=subject,
            steps=self.steps(),
            rules=self.rules(),
            metric=measured.metric,
            unit=measured.unit,
            better=measured.better,
            experiment=measured.experiment,
            knobs=self.knobs(),
            destroy=self.many("destroy"),
            commands=bool(self._options["allow_commands"]),
            words=("iodelta", *sys.argv[1:]),
            cwd=os.getcwd(),
            blocks=blocks,
            by_hand=self.by_hand,
            wrong=self.wrong(),
        )

    def _seconds(self, name: str) -> float:
        try:
            return seconds(self.text(name))
        except ValueError as error:
            raise RequestError(
                str(error), place=f"--{name.replace('_', '-')}"
            ) from error

    def _share(self, name: str) -> float:
        try:
            return fraction(self.text(name))
        except ValueError as error:
            raise RequestError(str(error), place=f"--{name}") from error


def given_options(options: Iterable[str]) -> set[str]:
    """Return which of the options were on the command line."""
    context = click.get_current_context()
    return {
        name
        for name in options
        if context.get_parameter_source(name) == ParameterSource.COMMANDLINE
    }


def spelt(option: str) -> str:
    """Return an option as the user writes it."""
    return "--" + {"artifacts": "artifact", "knobs": "set"}.get(option, option).replace(
        "_", "-"
    )
