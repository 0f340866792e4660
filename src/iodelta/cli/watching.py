"""Watching a run: one line that is written over on a terminal, a few lines in a log or pipe."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

import click

from iodelta.cli.progress import Progress, redrawable
from iodelta.errors import pasted
from iodelta.lab.plan import Plan, Slot
from iodelta.lab.progress import Watcher
from iodelta.plural import plural
from iodelta.report.stories.underway import ahead, beyond_budget, so_far
from iodelta.study.planned import longest
from iodelta.study.words import expected, inert, metric_name
from iodelta.trial import Trial
from iodelta.verdict import Judgement, next_step


class Unheard:
    """A stream that nobody may be reading any more (``| head``, a closed terminal): no reason to stop measuring."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with self._closing():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._closing():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextlib.contextmanager
    def _closing(self) -> Iterator[None]:
        try:
            yield
        except OSError:  # what is buffered must go somewhere, or it fails again when the interpreter ends
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


EVERY = 0.25
"""Share of the budget between two lines of a log; a cell that is decided gets its line at once."""


class RunWatcher:
    """What a run says while it works: lines to ``say``, or on a ``terminal`` one line, which is written over."""

    def __init__(
        self, say: Callable[[str], None], terminal: IO[str] | None = None
    ) -> None:
        self._tell = say
        self._terminal = terminal
        self._progress = Progress(say=self._say)
        self._plan: Plan | None = None
        self._judgement: Judgement | None = None
        self._spent = 0.0
        self._left: float | None = None
        self._block = 0
        self._now = ""
        self._said: tuple[int, float] | None = None
        """Decided cells and seconds spent as of the last line of a log."""

    def begin(self, plan: Plan, folder: str, done: int) -> None:
        self._plan, self._said = plan, None
        again = f", {plural(done, 'trial')} already there" if done else ""
        self._say(f"measuring, {longest(plan)}{again}; folder {inert(pasted(folder))}")
        if self._terminal is not None:
            self._say(
                f"Ctrl-C ends it with what is known; `iodelta run {inert(pasted(folder))}` continues it"
            )

    def note(self, text: str) -> None:
        self._say(inert(text))

    def trial(self, slot: Slot, variant: str, number: int) -> None:
        self._block = slot.block + 1
        self._now = f"{slot.cell}: {variant}"
        self._draw()

    def tick(self, seconds: float) -> None:
        self._draw(f" {seconds:.0f} s")

    def measured(self, trial: Trial) -> None:
        """Judged with its round."""

    def judged(self, judgement: Judgement, spent: float, left: float) -> None:
        if self._plan is None:
            return
        if self._judgement is None and (
            beyond := beyond_budget(self._plan, judgement, spent)
        ):
            self.note(beyond)
        self._judgement, self._spent, self._left = judgement, spent, left
        verdicts = [judgement.of(cell.name) for cell in self._plan.experiment.cells]
        decided = [next_step(own) for own in verdicts].count("decided")
        every = max(15.0, EVERY * self._plan.experiment.design.budget)
        due = (
            self._said is None
            or decided != self._said[0]
            or spent - self._said[1] >= every
        )
        if due and self._terminal is None:
            self._said = (decided, spent)
            of_cells = (
                f", {decided} of {plural(len(verdicts), 'cell')} decided"
                if len(verdicts) > 1
                else ""
            )
            self._say(f"{self._ahead()}{of_cells}")
        self._draw()

    def preparing(self, what: str, share: float) -> None:
        if self._terminal is not None:
            self._now = f"{what}: {100 * share:.0f} %"
            self._draw()
        else:
            self._progress.step(f"{inert(what)}:", share)

    def close(self) -> None:
        """Remove the line."""
        if self._terminal is not None:
            self._terminal.write("\r\x1b[K")
            self._terminal.flush()

    def _ahead(self) -> str:
        """Return how far it is, and what is known so far."""
        if self._plan is None:
            return ""
        if self._judgement is None or self._left is None:
            first = self._plan.rules.looks[0]
            seconds = first * self._plan.per_round * self._plan.trial_seconds
            return f"block {self._block} of {first} before the first result, {expected(seconds)}"
        to_come = ahead(self._plan, self._judgement, self._spent, self._left)
        known = [
            verdict for verdict in self._judgement.verdicts if verdict.look is not None
        ]
        if len(self._plan.experiment.cells) > 1 or not known:
            return to_come
        return f"{metric_name(known[0].metric, with_kind=False)} {so_far(known[0])} so far, {to_come}"

    def _draw(self, seconds: str = "") -> None:
        if self._terminal is None:
            return
        line = inert("; ".join(filter(None, (self._ahead(), self._now)))) + seconds
        width = (
            os.get_terminal_size(sys.stderr.fileno()).columns
            if sys.stderr.isatty()
            else 80
        )
        self._terminal.write(f"\r\x1b[K{line[: width - 1]}")
        self._terminal.flush()

    def _say(self, line: str) -> None:
        if self._terminal is None:
            self._tell(line)
        else:
            self._terminal.write(f"\r\x1b[K{line}\n")
            self._terminal.flush()


@contextlib.contextmanager
def watcher(format_: str) -> Iterator[Watcher]:
    """A line that is written over where people look, plain lines on standard error elsewhere."""
    heard = cast(IO[str], Unheard(sys.stderr))
    live = format_ == "console" and redrawable(sys.stderr)
    watching = RunWatcher(
        lambda line: click.echo(line, file=heard), heard if live else None
    )
    try:
        yield watching
    finally:
        watching.close()
