"""Watching a run: a live view on a terminal, plain lines elsewhere. Drawn once a second, between fio's work."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from iodelta.cli.progress import Pace, Progress, redrawable
from iodelta.errors import pasted
from iodelta.lab.plan import Plan
from iodelta.lab.progress import Watcher
from iodelta.lab.schedule import Slot
from iodelta.plural import plural
from iodelta.report.stories.underway import SETTLED, ahead, beyond_budget, so_far, state
from iodelta.study.planned import longest
from iodelta.study.words import duration, inert, metric_name, wrap
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


SHOWN_CELLS = 20
"""Rows of the live table; of more cells those still open come first."""


EVERY = 15.0
"""Seconds of measuring between two lines of a log; a cell that is decided gets its line at once."""


class PlainWatcher:
    """One line per event worth a line, for logs and pipes."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._plan: Plan | None = None
        self._progress = Progress(say=say)
        self._round = 0
        self._said: tuple[int, float] | None = None
        """Decided cells and seconds spent as of the last line."""

    def begin(self, plan: Plan, folder: str, done: int) -> None:
        self._plan, self._round, self._said = plan, 0, None
        again = f", {plural(done, 'trial')} already there" if done else ""
        self._say(
            f"measuring: {_cells(len(plan.experiment.cells))}, {plural(len(plan.experiment.variants), 'variant')}, "
            f"{longest(plan)}{again}; folder {inert(pasted(folder))}"
        )

    def note(self, text: str) -> None:
        self._say(inert(text))

    def trial(self, slot: Slot, variant: str, number: int) -> None:
        """Too often for a line."""

    def tick(self, seconds: float) -> None:
        """Too often for a line."""

    def measured(self, trial: Trial) -> None:
        """Too often for a line."""

    def judged(self, judgement: Judgement, spent: float, left: float) -> None:
        if self._plan is None:
            return
        # A cell without a verdict was given up, or not measured yet: neither is a decision.
        verdicts = [judgement.of(cell.name) for cell in self._plan.experiment.cells]
        steps = [next_step(own) for own in verdicts]
        decided = steps.count("decided")
        exhausted = sum(
            step == "exhausted" and bool(own)
            for step, own in zip(steps, verdicts, strict=True)
        )
        ended = f", {exhausted} out of blocks" if exhausted else ""
        self._round += 1
        if (
            self._said is not None
            and decided == self._said[0]
            and spent - self._said[1] < EVERY
        ):
            return
        if self._said is None and (
            beyond := beyond_budget(self._plan, judgement, spent)
        ):
            self.note(beyond)
        self._said = (decided, spent)
        self._say(
            f"round {self._round} done: {decided} of {_cells(len(steps))} decided{ended}, {duration(spent)} spent, "
            f"{ahead(self._plan, judgement, spent, left)}"
        )

    def preparing(self, what: str, share: float) -> None:
        self._progress.step(f"{inert(what)}:", share)


def _cells(count: int) -> str:
    return plural(count, "cell")


class LiveWatcher:
    """A table that is drawn again in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._plan: Plan | None = None
        self._judgement: Judgement | None = None
        self._now = "getting ready"
        self._head = ""
        self._seconds = 0.0
        self._spent = 0.0
        self._left: float | None = None
        self._block = 0
        self._pace = Pace()

    def begin(self, plan: Plan, folder: str, done: int) -> None:
        self._plan = plan
        others = [
            v.name
            for v in plan.experiment.variants
            if v.name != plan.experiment.baseline
        ]
        self._head = f"{', '.join(others)} against {plan.experiment.baseline}"
        again = f"; {plural(done, 'trial')} already there" if done else ""
        self.note(
            f"Folder {pasted(folder)}{again}. Ctrl-C ends it cleanly; `iodelta run {pasted(folder)}` continues it."
        )
        self._start()

    def note(self, text: str) -> None:
        for line in wrap(inert(text), self._console.width):
            self._console.print(
                line, style="yellow", highlight=False, markup=False, soft_wrap=True
            )

    def trial(self, slot: Slot, variant: str, number: int) -> None:
        self._block = slot.block + 1
        self._now = f"{inert(slot.cell)}: {variant}, trial {number}"
        self._seconds = 0.0
        self._draw()

    def tick(self, seconds: float) -> None:
        self._seconds = seconds
        self._draw()

    def measured(self, trial: Trial) -> None:
        self._spent += trial.seconds

    def judged(self, judgement: Judgement, spent: float, left: float) -> None:
        first = self._judgement is None
        if (
            first
            and self._plan is not None
            and (beyond := beyond_budget(self._plan, judgement, spent))
        ):
            self.note(beyond)
        self._judgement, self._spent, self._left = judgement, spent, left
        self._draw()

    def preparing(self, what: str, share: float) -> None:
        self._now = f"{inert(what)}: {100 * share:.0f} %{self._pace.left(what, share)}"
        self._start()
        self._draw()

    def close(self) -> None:
        """Give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _start(self) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()

    def _draw(self) -> None:
        if self._live is not None:
            self._live.update(self._view(), refresh=True)

    def _view(self) -> Group:
        if self._plan is None:
            return Group(Text(self._now))
        design = self._plan.experiment.design
        whole = design.ramp + design.trial
        bar = "#" * round(10 * min(1.0, self._seconds / whole))
        left = ""
        if self._left is not None and self._judgement is not None:
            left = f", {ahead(self._plan, self._judgement, self._spent, self._left)}"
        lines = [
            Text(
                f"{self._head}: block {self._block} of {self._plan.rules.max_blocks} at most",
                style="bold",
            ),
            Text(f"{duration(self._spent)} of {duration(design.budget)}{left}"),
            Text(f"[{bar:<10}] {self._now}"),
        ]
        if self._judgement:
            return Group(
                *lines, _table(self._plan, self._judgement, self._console.width)
            )
        return Group(*lines)


def _table(plan: Plan, judgement: Judgement, width: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", width=min(80, width))
    for name in ("cell", "variant", "blocks", "", "change so far", "state"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    rows = []
    for cell in plan.experiment.cells:
        verdicts = judgement.of(cell.name)
        for variant in {verdict.variant: None for verdict in verdicts}:
            own = [verdict for verdict in verdicts if verdict.variant == variant]
            rows.append(own)
    for own in sorted(rows, key=lambda own: next_step(own) in SETTLED)[:SHOWN_CELLS]:
        first = own[0]
        name = metric_name(first.metric, with_kind=False)
        table.add_row(
            inert(first.cell),
            first.variant,
            str(first.blocks),
            name,
            so_far(first),
            state(own),
        )
    return table


@contextlib.contextmanager
def watcher(format_: str) -> Iterator[Watcher]:
    """A live view where people look, plain lines on standard error elsewhere."""
    heard = cast(IO[str], Unheard(sys.stderr))
    console = Console(file=heard)
    if format_ == "console" and redrawable(sys.stderr):
        live = LiveWatcher(console)
        try:
            yield live
        finally:
            live.close()
    else:
        yield PlainWatcher(lambda line: click.echo(line, file=heard))
