"""Commands as workloads: their requests, their setup, and what a record keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from iodelta.errors import MeasureError
from iodelta.experiment import Experiment
from iodelta.experiment.command import filled, uses_target
from iodelta.lab.plan import Plan
from iodelta.machine import Machine
from iodelta.probe.topology import Target
from iodelta.probe.usage import current_uses, device_reasons
from iodelta.trial import Finding
from iodelta.workload import command
from iodelta.workload.leftovers import marked
from iodelta.workload.model import FioResult, FioRun


def kept_of(run: FioRun, result: FioResult) -> dict[str, Any]:
    """Return what the record of a trial keeps of the result of a command; nothing of fio's, which is read again."""
    if run.request.tool != "command":
        return {}
    usage = (
        (result.usr_cpu, result.sys_cpu, result.context_switches)
        if result.measured
        else (0.0, 0.0, 0)
    )
    return {"measured": result.measured, "usage": usage, "said": result.findings}


class SetupError(MeasureError):
    """A command that runs before the first trial failed: nothing was measured."""


class OnlyReads:
    """Detects that a command wrote to its target although its owner says that it only reads."""

    def __init__(self, machine: Machine, target: Target) -> None:
        self._machine, self._target = machine, target
        # Others write to a device that they use, so its counters prove something only if nobody else uses it.
        self._alone = target.kind == "block" and not device_reasons(
            machine, target.device or "", current_uses(machine)
        )
        self._before = ""

    def look(self) -> None:
        """Note what the target is like before a trial."""
        self._before = self._state()

    def _state(self) -> str:
        """Size and time of the last change of a file; nothing of another target."""
        if self._target.kind != "file":
            return ""
        return self._machine.run(
            ["stat", "-L", "-c", "%s %y", "--", self._target.real_path]
        ).text.strip()

    def findings(self, counted: Mapping[str, float]) -> tuple[Finding, ...]:
        """Return what became of the target since the look; ``counted`` is of the same time."""
        text = (
            ""
            if self._state() == self._before
            else "the file has changed during the trial"
        )
        fields = (
            f"disk.{self._target.device}.{field}"
            for field in ("write_bytes", "discard_bytes")
        )
        changed = (
            sum(counted.get(field, 0.0) for field in fields) if self._alone else 0.0
        )
        if changed:
            text = f"{changed:.0f} bytes of the device were written or discarded during the trial"
        if not text:
            return ()
        return (
            Finding(
                command.WRITES, "hard", self._target.path, text, command.WRITES_NOT
            ),
        )


def check_reads(findings: Iterable[Finding]) -> None:
    """Raises MeasureError where a command wrote although its owner says that it only reads: no further trial."""
    for finding in findings:
        if finding.rule == command.WRITES:
            what = f"{finding.explanation}, but the file says only_reads = true"
            raise MeasureError(what, place=finding.place, remedy=finding.remedy)


def makes_scratch(experiment: Experiment) -> bool:
    """Return whether iodelta makes the file that commands are given."""
    return uses_target(experiment) and not experiment.target.path


def needs_fio(experiment: Experiment) -> bool:
    """Return whether the experiment needs fio: with commands, only for a scratch file, a background load or a
    preparation.
    """
    loads = any(condition.background_fio for condition in experiment.conditions)
    return (
        not experiment.of_command
        or loads
        or experiment.prepare is not None
        or makes_scratch(experiment)
    )


def set_up(machine: Machine, plan: Plan, target: Target, workdir: str) -> str:
    """Return what commands need before the first trial: their supervisor, and their own ``setup``, each command once.

    Returns the Python that runs the supervisor there. Raises MeasureError, SetupError.
    """
    python = command.python(machine)
    command.install(machine, workdir)
    setups: dict[tuple[str, ...], float] = {}
    for cell, variant in product(plan.experiment.cells, plan.experiment.variants):
        if cell.command is None:
            continue
        trial = plan.experiment.design.trial
        values = command.values_of(
            cell, variant, target=target.real_path, trial=trial, seed=plan.seed
        )
        setups |= {
            filled(words, values): cell.command.timeout for words in cell.command.setup
        }
    for words, timeout in setups.items():
        problem = command.run_all(
            machine, [words], workdir, timeout, marked(plan.identifier)
        )
        if problem:
            raise SetupError(f"the setup failed: {problem}", place="[workload] setup")
    return python
