"""The experiment that confirms an alert: the last good build against the first bad one, in the same blocks."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from iodelta.bundle.packed import opened
from iodelta.errors import RequestError
from iodelta.experiment import Cell, Experiment, Variant, toml_text
from iodelta.experiment.build import Build, filled, parse_build
from iodelta.experiment.written import rendered
from iodelta.history.answers import Alert
from iodelta.history.points import BUILT
from iodelta.lab.folder import EXPERIMENT
from iodelta.lab.judged import read_plan
from iodelta.lab.plan import make_plan
from iodelta.plural import plural
from iodelta.verdict import Verdict
from iodelta.verdict.explain import percent

GOOD, BAD = "good", "bad"
WAYS = {True: "regression", False: "improvement"}
"""What confirms a step that is worse, or better."""

BLOCKS = 80
"""A confirmation may go on for so many blocks; it ends when it is decided."""

ENOUGH = 8
"""Its budget pays for at least so many, whatever a night of few blocks may spend: fewer cannot give a verdict."""

NEIGHBOURS = 2
"""Cells measured with the one of the alert, which differ from it in one option."""


class Measured(msgspec.Struct, frozen=True):
    """One night of an alert, as its folder has it."""

    experiment: Experiment
    build: Build
    variant: Variant

    @property
    def commit(self) -> str:
        """Return the commit that was measured; empty where it is not known."""
        return self.experiment.subject.commit

    @property
    def settings(self) -> dict[str, str]:
        """Knobs and fio options of the variant."""
        prefix = self.experiment.option_prefix
        return {
            **self.variant.knobs,
            **{f"{prefix}{name}": value or "1" for name, value in self.variant.options},
        }


def measured_in(folder: str, variant: str) -> Measured:
    """Return the night in a folder. Raises RequestError, MeasureError."""
    kept = opened(Path(folder))
    experiment = read_plan(kept).experiment
    own = next((one for one in experiment.variants if one.name == variant), None)
    if own is None:
        raise RequestError(f"this night has no variant {variant!r}", place=folder)
    data = tomllib.loads(kept.read(EXPERIMENT).decode())
    return Measured(experiment, parse_build(data.get("build", {}), refuse), own)


def refuse(what: str, *path: str, remedy: str = "") -> NoReturn:
    """Raises RequestError with the place of a key."""
    raise RequestError(what, place=".".join(path), remedy=remedy)


def put_knobs(
    put: Sequence[str], good: Mapping[str, str], bad: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings of both builds where a command installs them: the later build is installed again in the end."""
    words = [list(filled(list(put), own)) for own in (good, bad)]
    later: list[str] = words[1]
    first, second = (
        {"apply": words[0], "restore": later},
        {"apply": later, "restore": ["true"]},
    )
    return {"command": msgspec.json.encode(first).decode()}, {
        "command": msgspec.json.encode(second).decode()
    }


def question(
    alert: Alert, night: Measured, good: Variant, bad: Variant, good_commit: str
) -> str:
    """Return the text of the experiment, by the rules of the night. Its labels say what it is about, so that it can be
    told from the folder alone."""
    step = alert.steps[0]
    cells = chosen(night.experiment.cells, step.cell)
    since = night.commit[:12] or "that night"
    labels = {f"cell-{number}": cell.name for number, cell in enumerate(cells, 1)}
    labels |= {"alert": alert.id, "metric": step.metric, "way": WAYS[step.size > 0.0]}
    labels |= {GOOD: good_commit, BAD: night.commit}
    asked = f"Alert {alert.id}: did {step.metric} of {step.cell} change at {since}?"
    replace = msgspec.structs.replace
    pair = (replace(good, name=GOOD, role=""), replace(bad, name=BAD, role=""))
    return _text(night, asked, pair, cells, labels)


def pair_question(first: Measured, second: Measured, cell: str, metric: str) -> str:
    """Return the text of an experiment that measures two nights' variants in the same blocks, by the rules of the
    second.

    Raises RequestError where nothing that iodelta sets tells them apart, or the second has no such cell.
    """
    if first.settings == second.settings:
        raise RequestError(
            "both nights have the same settings: another program installed the difference",
            place=second.variant.name,
            remedy="`iodelta history confirm ALERT --put COMMAND` installs both builds",
        )
    cells = chosen(second.experiment.cells, cell)[:1]
    replace = msgspec.structs.replace
    pair = tuple(
        replace(one.variant, name=name, role="")
        for one, name in ((first, "a"), (second, "b"))
    )
    asked = f"Does {metric} of {cell} differ between a and b?"
    return _text(second, asked, pair, cells, {})


def _text(
    night: Measured,
    asked: str,
    pair: tuple[Variant, ...],
    cells: tuple[Cell, ...],
    labels: Mapping[str, str],
) -> str:
    """Return an experiment on two variants, the first is the baseline; all else as that night had it."""
    replace = msgspec.structs.replace
    design = replace(
        night.experiment.design, placebo=False, blocks=BLOCKS, seed=None, weights={}
    )
    experiment = replace(
        night.experiment,
        question=asked,
        baseline=pair[0].name,
        variants=pair,
        cells=cells,
        conditions=(night.experiment.condition(cells[0].condition),),
        design=design,
    )
    # Seconds that a confirmation may take: those of a night, or what ``ENOUGH`` blocks are expected to take.
    plan = make_plan(experiment)
    experiment = replace(
        experiment,
        design=replace(
            design,
            budget=max(
                experiment.design.budget, ENOUGH * plan.per_round * plan.trial_seconds
            ),
        ),
    )
    head = (
        toml_text({"machine": list(experiment.machines)}) if experiment.machines else ""
    )
    subject = {**msgspec.to_builtins(experiment.subject), "labels": dict(labels)}
    return f"{head}{rendered(experiment)}\n{toml_text({'subject': subject})}"


def chosen(cells: Sequence[Cell], name: str) -> tuple[Cell, ...]:
    """Return the cell of that name, then the nearest of those that differ from it in one option. Raises RequestError."""
    names = [cell.name for cell in cells]
    if name not in names:
        raise RequestError(f"the night has no cell {name!r} any more", place="ALERT")
    place = names.index(name)
    near = [cell for cell in cells if _differing(cell, cells[place]) == 1]
    near.sort(key=lambda cell: abs(names.index(cell.name) - place))
    return (cells[place], *near[:NEIGHBOURS])


def _differing(cell: Cell, other: Cell) -> int:
    """Return how many options of two cells differ: all of them under another condition."""
    options, others = dict(cell.options), dict(other.options)
    if cell.condition != other.condition:
        return len(options) + len(others)
    names = options.keys() | others.keys()
    return sum(options.get(name) != others.get(name) for name in names)


def word_of(verdicts: Sequence[Verdict], labels: Mapping[str, str]) -> str:
    """Return the word for the log: what the alert's own cell and metric say of it."""
    verdict = verdict_of(verdicts, labels)
    word = verdict.word if verdict else ""
    if word == "equivalent":
        return word
    if word not in WAYS.values():
        return "inconclusive"
    # The nights showed one way; the other contradicts them.
    return word if word == labels["way"] else "contradicted"


def verdict_of(
    verdicts: Sequence[Verdict], labels: Mapping[str, str]
) -> Verdict | None:
    """Return the verdict on the alert's own cell and metric."""
    wanted = ("cell-1", labels.get("metric", ""), BAD)
    for verdict in verdicts:
        if (verdict.cell, verdict.metric.name, verdict.variant) == wanted:
            return verdict
    return None


def told(verdict: Verdict, labels: Mapping[str, str]) -> str:
    """Return a verdict in a line."""
    change = verdict.change
    size = f", {percent(change.value)}" if change else ""
    if change and change.low is not None and change.high is not None:
        size += f" ({percent(change.low)} .. {percent(change.high)})"
    cell = labels.get(verdict.cell, verdict.cell)
    return f"{cell}  {verdict.metric.name}: {verdict.word}{size}, {plural(verdict.blocks, 'block')}"


def bisect_line(
    alert: Alert, good: Measured, night: Measured, put: Sequence[str] = ()
) -> str:
    """Return the search for the commit between the two nights; empty where no two commits are known, or the nights
    differ in settings too."""
    if not _is_searchable(good, night):
        return ""
    build, experiment, step = night.build, night.experiment, alert.steps[0]
    words = ["iodelta", "bisect", *_option("--repo", build.repo)]
    words += ["--good", good.commit, "--bad", night.commit]
    words += _option("--build", shlex.join(build.command))
    for name in build.artifacts:
        words += ["--artifact", name]
    words += _how(night, put)
    words += _option("--target", experiment.target.path)
    words += _option("--size", experiment.target.size)
    words += ["--metric", step.metric]
    words += ["--margin", f"{100 * experiment.margin:g}%", "--"]
    # The variant's own options hold over the cell's.
    options = dict(_cell(experiment, step.cell).options) | dict(night.variant.options)
    for option, value in options.items():
        setting = "" if value is None else f"={_general(night, value)}"
        words.append(f"--{option}{setting}")
    return shlex.join(words)


def _is_searchable(good: Measured, bad: Measured) -> bool:
    """Return whether two nights differ in their commit alone, and a search can measure what they measured."""
    if not good.commit or not bad.commit or good.commit == bad.commit:
        return False
    # A search takes the number of a command by its own --measure.
    if bad.experiment.of_command:
        return False
    return _settings(good) == _settings(bad)


def _cell(experiment: Experiment, name: str) -> Cell:
    """Return the cell of that name, or the first where there is none any more."""
    for cell in experiment.cells:
        if cell.name == name:
            return cell
    return experiment.cells[0]


def _option(name: str, value: str) -> list[str]:
    """Return an option as words; none for an empty value."""
    return [name, value] if value else []


def _how(night: Measured, put: Sequence[str]) -> list[str]:
    """``--put`` and ``--set`` of the variant's settings."""
    words = _option("--put", shlex.join(put))
    for name, value in night.variant.knobs.items():
        if name != "command":
            words += ["--set", f"{name}={_general(night, value)}"]
        elif not put:
            apply = msgspec.json.decode(value)["apply"]
            words += ["--put", shlex.join(_general(night, word) for word in apply)]
    return words


def _settings(night: Measured) -> dict[str, str]:
    return {name: _general(night, value) for name, value in night.settings.items()}


def _general(night: Measured, value: str) -> str:
    """Return a setting as it is for any commit: with gaps for the tree that was built, and for the commit."""
    built = night.experiment.subject.labels.get(BUILT, "")
    for text, gap in ((built, "{built}"), (night.commit, "{commit}")):
        if text:
            value = value.replace(text, gap)
    return value
