"""``iodelta scenario run --dry-run``: the plan of what is measured once it was made."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from iodelta.cli.delivery import deliver
from iodelta.cli.running import looked
from iodelta.errors import RefusedError
from iodelta.experiment import parse
from iodelta.lab.guests import check_here
from iodelta.lab.plan import make_plan
from iodelta.machine import Machine, throw_away
from iodelta.parts.scenarios.model import Scenario
from iodelta.parts.scenarios.rehearsed import ScenarioPlanAnswer, rehearsed
from iodelta.probe.topology import Target
from iodelta.study.planned import plan_answer
from iodelta.vm.spec import Spec


@dataclasses.dataclass(frozen=True)
class Rehearsal:
    """What a scenario would make and measure."""

    answer: ScenarioPlanAnswer
    refused: RefusedError | None = None
    """What the guard says of the user's own target."""

    def show(self, format_: str, output: Path | None, *, force: bool) -> NoReturn:
        """Print it, or write it to ``output``. Ends with 0, or with 4 where something is missing.

        Raises RefusedError, as the run would.
        """
        deliver(self.answer, tuple, format_, output, force=force)
        if self.refused is not None:
            raise self.refused
        sys.exit(4 if self.answer.missing else 0)


def planned_only(chosen: Scenario, text: str, spec: Spec) -> ScenarioPlanAnswer:
    """Of kernels to be booted in guests of a ``spec``: none is booted for it. Raises IodeltaError."""
    experiment = parse(text, chosen.name)
    check_here(spec, experiment)
    return rehearsed(chosen, plan_answer(make_plan(experiment), ()), (), full=False)


def planned_here(
    chosen: Scenario,
    machine: Machine,
    text: str,
    own: Target | None,
    home: str,
    *,
    full: bool,
    destroy: Sequence[str],
) -> Rehearsal:
    """On a machine, on a target of the user's ``own`` or on what it would make in ``home``. Raises RequestError."""
    missing = chosen.missing(machine, makes=own is None)
    experiment = parse(text, chosen.name)
    if own is not None and not missing:
        seen = looked((machine,), experiment, leave_out=True, destroy=destroy)
        return Rehearsal(
            rehearsed(chosen, seen.answer, missing, full=full, own=True), seen.refused
        )
    plan = plan_answer(make_plan(experiment), ())
    if own is not None or throw_away(machine):
        mine = own is not None and not throw_away(machine)
        return Rehearsal(rehearsed(chosen, plan, missing, full=full, own=mine))
    blocks, each = machine.run(["stat", "-f", "-c", "%a %S", "--", home]).text.split()
    return Rehearsal(
        rehearsed(
            chosen, plan, missing, full=full, home=home, free=int(blocks) * int(each)
        )
    )
