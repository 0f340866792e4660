"""One visit of an item: check it out, build it, put it under test, measure it; and what a failure means."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from iodelta.bisect.commands import carry_out
from iodelta.bisect.items import InTree, SettingItems, Titled
from iodelta.bisect.log import BUILT, OUTPUT, TREE, TRIALS
from iodelta.bisect.measure import CellMeasure, CommandMeasure, Measure, cell_experiment
from iodelta.bisect.model import Answer, Ask
from iodelta.bisect.question import Question, Words, filled
from iodelta.bisect.tree import Unbuildable, Worktree, check_room, keep_artifacts
from iodelta.errors import MeasureError
from iodelta.lab.seal import sha256
from iodelta.machine import Machine
from iodelta.workload.leftovers import marked


class Visited(msgspec.Struct, frozen=True):
    """An answer, with the values and trials that it is made of."""

    answer: Answer
    values: tuple[float, ...] = ()
    trials: tuple[int, ...] = ()


class Visitor(Protocol):
    """Answers asks; ``Site`` does, and so does a simulation."""

    def visit(self, ask: Ask, visit: int, *, known: bool) -> Visited:
        """``known``: this item was measured before. Raises MeasureError, Stopped."""


class Site:
    """Where items are built and measured. Everything it makes lies in the search's folder."""

    def __init__(
        self,
        machine: Machine,
        question: Question,
        kind: Titled,
        path: Path,
        identifier: str,
        *,
        stop: Callable[[], bool],
        say: Callable[[str], None],
        tick: Callable[[float], None],
    ) -> None:
        self._machine, self._question, self._kind = machine, question, kind
        self._path = path.absolute()
        self._marks = marked(identifier)
        self._stop, self._say = stop, say
        self._items = kind if isinstance(kind, InTree) else None
        self._tree = (
            Worktree(self._items.repository, self._path / TREE) if self._items else None
        )
        self._present = ""
        """The item that the tree is at."""
        self._built = ""
        """The item whose build is in the tree now."""
        self._command: CommandMeasure | None = None
        if question.steps.measure:
            self._command = CommandMeasure(machine, question, self._path / OUTPUT, stop)
            self._measure: Measure = self._command
        elif cell_experiment(question.experiment).clock == "instructions":
            from iodelta.bisect.counted import Counted

            self._measure = Counted(machine, question, path, stop, say)
        else:
            self._measure = CellMeasure(
                machine, question, self._path / TRIALS, stop, say, tick
            )

    def visit(self, ask: Ask, visit: int, *, known: bool) -> Visited:
        """Measure an item. An item that was measured before, or that must be measurable, gets a second attempt. If that
        fails too, the machine or the request is at fault, not the item. Raises MeasureError, Stopped."""
        try:
            return self._once(ask.item, visit)
        except Unbuildable as error:
            if not (known or ask.must):
                return Visited(Answer(None, str(error), *self._spent))
            self._say(f"{self._kind.title(ask.item)}: {error}; once more")
        self._built = self._present = ""
        try:
            return self._once(ask.item, visit)
        except Unbuildable as error:
            what = str(error)
            remedy = f"both ends of the range must work; {self._path / OUTPUT} contains the output of the commands"
            if known:
                what += "; it was measured before"
                remedy = "something else has changed: check the machine, then give the folder again to continue"
            place = self._kind.title(ask.item)
            raise MeasureError(what, place=place, remedy=remedy) from error

    def leave(self) -> None:
        """Close the connection to the measured machine."""
        self._measure.close()

    def remove_tree(self) -> None:
        """Remove the worktree; artifacts and outputs stay."""
        if self._tree is not None:
            self._tree.remove()

    def _once(self, item: str, visit: int) -> Visited:
        self._spent = (0.0, 0.0)
        steps = self._question.steps
        begun = time.monotonic()
        kept = self._path / BUILT / slug(item)
        cached = bool(steps.artifacts) and kept.is_dir()
        try:
            # Commands after the build may also use the sources.
            later = (*steps.put, *steps.measure, *self._question.knobs.values())
            sources = not steps.artifacts or any(
                "{tree}" in word or "IODELTA_TREE" in word for word in later
            )
            if (
                self._items
                and self._tree
                and self._present != item
                and (not cached or sources)
            ):
                self._built = self._present = ""
                self._items.prepare(self._tree, item)
                self._present = item
            there = self._tree is not None and self._tree.path.exists()
            values = {"item": item, "commit": item, "built": str(kept), "settings": ""}
            values["tree"] = str(self._tree.path) if self._tree and there else ""
            if isinstance(self._kind, SettingItems):
                place = self._path / OUTPUT / "settings"
                place.write_text(self._kind.text(item))
                values["settings"] = str(place)
            env = {
                **self._marks,
                **{f"IODELTA_{name.upper()}": value for name, value in values.items()},
            }
            cwd = values["tree"] or self._question.cwd
            if steps.build and not cached and self._built != item:
                self._built = ""
                self._run(
                    "build", steps.build, steps.build_timeout, visit, cwd, env, values
                )
                if steps.artifacts:
                    kept.parent.mkdir(exist_ok=True)
                    keep_artifacts(Path(cwd), steps.artifacts, kept)
                self._built = item
        finally:
            build = time.monotonic() - begun
            self._spent = (build, 0.0)
        readings = []
        begun = time.monotonic()
        try:
            if steps.put:
                self._run("put", steps.put, steps.put_timeout, visit, cwd, env, values)
            if self._command is not None:
                self._command.env, self._command.cwd = env, cwd
            readings = [
                self._measure.read(item, visit, values) for _ in range(steps.repeat)
            ]
        finally:
            self._spent = (build, time.monotonic() - begun)
        measured = [reading.value for reading in readings]
        sign = -1.0 if self._question.better == "higher" else 1.0
        # The mean covers all work of the visit, including a run that stalls.
        value = sign * math.log(statistics.fmean(measured))
        keeps = not steps.build or bool(steps.artifacts)
        answer = Answer(value, "", build, self._spent[1], keeps)
        trials = tuple(filter(None, (reading.trial for reading in readings)))
        return Visited(answer, tuple(measured), trials)

    def _run(
        self,
        what: str,
        words: Words,
        timeout: float,
        visit: int,
        cwd: str,
        env: Mapping[str, str],
        values: dict[str, str],
    ) -> None:
        output = self._path / OUTPUT / f"{visit:05d}.{what}"
        check_room(output)
        carry_out(
            self._machine,
            filled(words, values),
            what={"build": "the build", "put": "installing it"}[what],
            timeout=timeout,
            output=output,
            cwd=cwd,
            env=env,
            stop=self._stop,
        )


def slug(item: str) -> str:
    """Return a file name for an item: a hash of a commit stays as it is."""
    return item if item.isalnum() and len(item) <= 64 else sha256(item.encode())[:16]
