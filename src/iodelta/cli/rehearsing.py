"""``iodelta scenario run --dry-run``: the plan of what is measured once it was made."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console

from iodelta.cli.files import write
from iodelta.cli.running import Looked, looked
from iodelta.errors import RefusedError
from iodelta.experiment import parse
from iodelta.lab.plan import make_plan
from iodelta.machine import Machine, throw_away
from iodelta.probe.topology import Target
from iodelta.report.documents import written
from iodelta.report.stories.plan import order_lines, wrapped_lines
from iodelta.report.stories.rehearsal import lacking_lines, making_lines, unmade_lines
from iodelta.scenarios.model import Scenario
from iodelta.study.planned import plan_answer
from iodelta.study.rehearsed import ScenarioPlanAnswer, rehearsed


@dataclasses.dataclass(frozen=True)
class Rehearsal:
    """What a scenario would make and measure."""

    answer: ScenarioPlanAnswer
    seen: Looked | None = None
    """What a look at the target found, where there is one already."""
    own: bool = False
    """Whether the target is the user's own."""

    @property
    def refused(self) -> RefusedError | None:
        """What the guard says of the user's own target."""
        return self.seen.refused if self.seen else None

    def show(self, format_: str, output: Path | None, *, force: bool) -> NoReturn:
        """Print it, or write it to ``output``. Ends with 0, or with 4 where something is missing.

        Raises RefusedError, as the run would.
        """
        if format_ == "json" and output is not None:
            write(output, written(self.answer), "the plan", force=force)
        elif format_ == "json":
            sys.stdout.buffer.write(written(self.answer))
        else:
            self._print()
        if self.refused is not None:
            raise self.refused
        sys.exit(4 if self.answer.missing else 0)

    def _print(self) -> None:
        plan = self.answer.plan.plan
        lines = making_lines(self.answer)
        if self.seen is None:
            lines += unmade_lines(plan, own=self.own)
        for line in wrapped_lines([*lines, *lacking_lines(self.answer)]):
            click.echo(line)
        if self.seen is not None:
            self.seen.show(Console(), whole=True)
            return
        for line in order_lines(plan):
            click.echo(line)


def planned_only(one: Scenario, text: str) -> ScenarioPlanAnswer:
    """Of kernels to be booted: no guest is booted for it."""
    return rehearsed(one, plan_answer(make_plan(parse(text, one.name)), ()), (), full=False)


def planned_here(
    one: Scenario,
    machine: Machine,
    text: str,
    own: Target | None,
    home: str,
    *,
    full: bool,
    destroy: Sequence[str],
) -> Rehearsal:
    """On a machine, on a target of the user's ``own`` or on what it would make in ``home``. Raises RequestError."""
    missing = one.missing(machine, makes=own is None)
    experiment = parse(text, one.name)
    if own is not None and not missing:
        seen = looked((machine,), experiment, leave_out=True, destroy=destroy)
        return Rehearsal(rehearsed(one, seen.answer, missing, full=full), seen)
    plan = plan_answer(make_plan(experiment), ())
    if own is not None or throw_away(machine):
        mine = own is not None and not throw_away(machine)
        return Rehearsal(rehearsed(one, plan, missing, full=full), own=mine)
    blocks, each = machine.run(["stat", "-f", "-c", "%a %S", "--", home]).text.split()
    return Rehearsal(rehearsed(one, plan, missing, full=full, home=home, free=int(blocks) * int(each)))
