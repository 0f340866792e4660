"""What ``bisect`` and ``attribute`` share on the command line: how a thing is measured, progress, output."""

from __future__ import annotations

import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, cast

import click
import msgspec
from click.core import ParameterSource

from iodelta.bisect.byhand import TakeBack
from iodelta.bisect.counted import EXACT, UNIT, metric_of
from iodelta.bisect.driver import R, Replay, S, attributed, go, judged, new, searched, undo
from iodelta.bisect.log import Answered, SearchFolder
from iodelta.bisect.model import Ask, Rules
from iodelta.bisect.question import WRONG, Better, Patches, Question, Steps, Subject, command_words
from iodelta.bisect.store import Store
from iodelta.cli.delivery import report_exit_code
from iodelta.cli.progress import Progress
from iodelta.cli.turn import in_turn
from iodelta.errors import RequestError, pasted
from iodelta.experiment import seconds, shorthand
from iodelta.experiment.values import fraction
from iodelta.lab.signals import stop_on_signals
from iodelta.machine import LocalMachine, Machine
from iodelta.study.words import inert, quantity

if TYPE_CHECKING:
    from iodelta.cli.by_hand import Once
    from iodelta.study.attribution import AttributionAccount
    from iodelta.study.search import SearchAccount


TITLE = 44
"""Columns of an item's title in a line of progress."""


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
        build, put, measure = (command_words(self.text(name), f"--{name}") for name in ("build", "put", "measure"))
        artifacts = self.many("artifacts")
        if artifacts and not build:
            raise RequestError("there is no --build to produce it", place="--artifact")
        for name in artifacts:
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise RequestError("an artifact is named relative to the tree", place=f"--artifact {name}")
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
        exact = self._share("exact") if self.text("exact") else EXACT if self._counts else 0.0
        return Rules(
            margin=math.log1p(self._share("margin")),
            exact=math.log1p(exact),
            force=bool(self._options.get("force")),
            several=not self._options.get("first"),
            rest=cast(float, self._options.get("rest", Rules().rest)),
            revert=not self._options.get("no_revert"),
            most_runs=cast("int | None", self._options.get("runs")) or Rules().most_runs,
            seed=random.SystemRandom().getrandbits(31) if given is None else given,
        )

    def measured(self) -> Measured:
        """The metric of the cell, or the number that a command prints."""
        from iodelta.bisect.measure import cell_experiment, cell_metric

        if self.by_hand:
            return self._by_person()
        if self.text("measure"):
            return self._by_command()
        if self._options["better"]:
            raise RequestError("iodelta knows the better direction of fio's metrics", place="--better")
        text = shorthand(
            fio=self._fio,
            variants=["item"],
            top={"machine": self.text("machine"), "clock": self.text("clock")},
            target={"path": self.text("target"), "size": self.text("size")},
            design={"trial": self.text("trial"), "ramp": self.text("ramp"), "placebo": True},
        )
        experiment = cell_experiment(text)
        if self.text("machine").partition(":")[0] == "vm" and not self._counts:
            raise RequestError(
                "in a guest, a search counts instructions; it does not measure time",
                place="--machine",
                remedy="add --clock instructions; `iodelta run --machine vm` takes times of two kernels",
            )
        if self._counts:
            return Measured(metric_of(experiment, self.text("metric")), UNIT, "lower", text)
        found = cell_metric(experiment, self.text("metric"))
        return Measured(found.name, found.unit, found.better, text)

    def _by_command(self) -> Measured:
        """The number that --measure prints. Raises RequestError for options of fio."""
        if self.text("machine") or self.text("clock"):
            raise RequestError(
                "--measure is your own command, and runs on this machine",
                place="--machine" if self.text("machine") else "--clock",
                remedy="use --measure 'ssh HOST ...', or omit it to run fio there",
            )
        of_fio = ("target", "size", "trial", "ramp", "metric", "knobs")
        if self._fio or any(self._options.get(name) for name in of_fio):
            raise RequestError("either --measure, or fio with its target and knobs", place="command line")
        if not self._options["better"]:
            raise RequestError(
                "say whether a higher or a lower number is better", place="--measure", remedy="--better higher"
            )
        return Measured("the number", "", cast(Better, self._options["better"]))

    @property
    def by_hand(self) -> Literal["", "words", "numbers"]:
        """Whether a person answers, and in what."""
        if not self._options.get("by_hand"):
            return ""
        return "numbers" if self.text("better") else "words"

    def _by_person(self) -> Measured:
        """What a person is asked about; nothing is built or measured here."""
        from iodelta.cli.by_hand import MEASURING, NUMBERS

        given = given_options(self._options)
        if self._fio or (mine := sorted(given & MEASURING)):
            name = "an option of fio" if self._fio else _spelt(mine[0])
            raise RequestError(
                f"{name} is for automatic searches",
                place="--by-hand",
                remedy="leave it out: you put each item under test and answer; or leave --by-hand out",
            )
        if self.by_hand == "numbers" and "wrong" in given:
            raise RequestError(
                "--wrong is for the answers good and bad", place="--better", remedy="leave --wrong or --better out"
            )
        if self.by_hand == "words":
            if about := sorted(given & NUMBERS):
                remedy = "leave it out, or answer with numbers: --better higher or lower"
                raise RequestError(
                    f"{_spelt(about[0])} is for answers that are numbers", place="--by-hand", remedy=remedy
                )
            return Measured("your answers", "", "lower")
        return Measured(self.text("metric") or "the number", "", cast(Better, self._options["better"]))

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
        found = {}
        for text in self.many("knobs"):
            name, equals, value = text.partition("=")
            if not equals or not name:
                raise RequestError(f"{text!r} is not KNOB=VALUE", place="--set", remedy="iodelta knobs lists them")
            found[name] = value
        if self._counts and self.text("build") and not any("{built}" in value for value in found.values()):
            raise RequestError(
                "the kernel that boots is not the one that was built",
                place="--set",
                remedy="name the kernel: --set kernel={built}",
            )
        return found

    def question(self, subject: Subject, *, blocks: int = 8) -> Question:
        """All of it, about ``subject``."""
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
            raise RequestError(str(error), place=f"--{name.replace('_', '-')}") from error

    def _share(self, name: str) -> float:
        try:
            return fraction(self.text(name))
        except ValueError as error:
            raise RequestError(str(error), place=f"--{name}") from error


class Lines:
    """A line for every answer, and how far the search is; a person who answers needs no line of that."""

    def __init__(self, folder: Path, question: Question, progress: Progress) -> None:
        self._question, self._progress = question, progress
        kind = "attribute" if isinstance(question.subject, Patches) else "bisect"
        self.note(f"Ctrl-C ends it cleanly; `iodelta {kind} {pasted(folder)}` continues it.")

    def note(self, text: str) -> None:
        self._progress.note(inert(text))

    def tick(self, seconds: float) -> None:
        """Too often for a line."""

    def ask(self, ask: Ask, title: str, share: float | None) -> None:
        if not self._question.by_hand:
            self._progress.step("searching", share, f"{ask.stage} {inert(title)[:TITLE]}")

    def answered(self, answered: Answered, title: str, store: Store) -> None:
        answer = answered.answer
        said = " ".join(quantity(value, self._question.unit) for value in answered.values)
        came = answer.word or (f"skipped: {answer.reason}" if answer.value is None else said)
        self.note(f"{len(store.runs) + len(store.words):>4} {answered.stage:<7} {title[:TITLE]:<{TITLE}} {came}")


def open_folder(path: Path, fio: tuple[str, ...], options: dict[str, object]) -> SearchFolder:
    """The folder of an earlier call, with what --undo takes back taken back. Raises RequestError, also when a question
    was given as well."""
    wrong = sorted(given_options(options) - {"plan_", "undo", "show_", "format_", "value", "rest"})
    if fio or wrong:
        raise RequestError(
            "the folder already defines the question",
            place=str(path),
            remedy="to continue, only --plan, --undo, --show, --rest and --format can be given"
            + (f", not --{wrong[0].rstrip('_')}" if not fio else ""),
        )
    folder = SearchFolder.open(path)
    if given_options({"rest"}):
        folder.extend(cast(float, options["rest"]))
    if options["undo"]:
        for answered in undo(folder, cast(int, options["undo"])):
            click.echo(f"taken back: {answered.item[:12]} ({answered.stage})", err=True)
    return folder


def new_folder(kind: str, question: Question, machine: Machine, options: dict[str, object]) -> SearchFolder:
    """The folder of a new question. Raises RequestError, MeasureError."""
    place = options["folder"]
    return new(place if isinstance(place, Path) else fresh_name(kind), question, machine)


def carry_on(
    folder: SearchFolder,
    machine: Machine,
    replay: Callable[[Machine, Question, Iterable[Answered]], Replay[S, R]],
    account: Callable[[SearchFolder, Question, Replay[S, R]], SearchAccount | AttributionAccount],
    options: dict[str, object],
) -> NoReturn:
    """Go on with a folder, or only look at it; print what it amounts to, and exit."""
    question = folder.question()
    if options["plan_"] or options["undo"] or options["show_"]:
        at = replay(machine, question, folder.answers())
    else:
        at = _gone_on(folder, machine, replay, cast("Once | None", options.get("answer")))
    found = account(folder, question, at)
    deliver(found, options)
    if options["plan_"] or options["undo"]:
        sys.exit(0)
    sys.exit(report_exit_code(found.exit_code, gate=options.get("gate") is not False))


def go_on(folder: SearchFolder, machine: Machine, options: dict[str, object]) -> NoReturn:
    """The same with the folder of a search: words of a person have one of their own."""
    from iodelta.study.by_words import account as of_words
    from iodelta.study.search import account as of_search

    if folder.question().by_hand == "words":
        carry_on(folder, machine, judged, of_words, options)
    carry_on(folder, machine, searched, of_search, options)


def _gone_on(
    folder: SearchFolder,
    machine: Machine,
    replay: Callable[[Machine, Question, Iterable[Answered]], Replay[S, R]],
    answer: Once | None,
) -> Replay[S, R]:
    """Measure, or ask a person: for one ``answer`` of the command line, else at the terminal."""
    from iodelta.cli.by_hand import Prompt, take_back

    question = folder.question()
    with stop_on_signals() as stop, Progress(log=True) as progress:
        lines = Lines(folder.path, question, progress)
        person = answer or Prompt(stop, lines.note) if question.by_hand else None
        while True:
            try:
                return in_turn(lambda: go(folder, machine, replay, lines, stop=stop, person=person), stop, lines.note)
            except TakeBack:
                take_back(folder, lines.note)


def report(path: Path, format_: str, output: Path | None, *, force: bool, gate: bool) -> NoReturn:
    """What is known of a folder, in any format; and exit, by the verdict with ``gate``."""
    folder = SearchFolder.open(path)
    options: dict[str, object] = {"plan_": False, "undo": None, "show_": True, "format_": format_, "gate": gate}
    options |= {"output": output, "force": force}
    if isinstance(folder.question().subject, Patches):
        from iodelta.study.attribution import account as of_patches

        carry_on(folder, LocalMachine(), attributed, of_patches, options)
    go_on(folder, LocalMachine(), options)


def deliver(account: SearchAccount | AttributionAccount, options: dict[str, object]) -> None:
    """Print an account in the format asked for, or write it to a file."""
    format_, output = str(options["format_"]), options.get("output")
    if options["plan_"] and format_ != "json":
        click.echo(f"next: {inert(account.next)}" if account.next else "nothing is left to do")
    elif format_ == "console":
        _tell(account)
    elif isinstance(output, Path):
        from iodelta.cli.files import write

        write(output, _encoded(account, format_), "the report", force=bool(options.get("force")))
    else:
        sys.stdout.buffer.write(_encoded(account, format_))


def _tell(account: SearchAccount | AttributionAccount) -> None:
    from iodelta.cli.delivery import print_result
    from iodelta.report.stories.story import Detail

    folder = inert(pasted(account.folder))
    print_result(account, Detail(folder))
    click.echo(f"\nFolder: {folder}")


def _encoded(account: SearchAccount | AttributionAccount, format_: str) -> bytes:
    if format_ == "git" and account.schema == "iodelta.bisect/2":
        return account.git_log.encode()
    if format_ == "html":
        from iodelta.report.formats.html.result import html_of

        return html_of(account, ())
    from iodelta.report.formats.render import rendered

    return rendered(account, format_)


def given_options(options: Iterable[str]) -> set[str]:
    """Which of the options were on the command line."""
    context = click.get_current_context()
    return {name for name in options if context.get_parameter_source(name) == ParameterSource.COMMANDLINE}


def _spelt(option: str) -> str:
    """An option as the user writes it."""
    return "--" + {"artifacts": "artifact", "knobs": "set"}.get(option, option).replace("_", "-")


def fresh_name(kind: str) -> Path:
    """A folder's name that tells when it was begun."""
    return Path(time.strftime(f"iodelta-{kind}-%Y%m%d-%H%M%S"))


def text_of(path: Path) -> str:
    """A file's text. Raises RequestError."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"cannot be read: {error}", place=str(path)) from error
