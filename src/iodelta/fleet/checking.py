"""Checks before a fleet runs: whether each host can be reached, has what the experiment needs, and permits it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from iodelta.errors import IodeltaError, RequestError
from iodelta.experiment import Experiment
from iodelta.fleet.answers import CheckedStep, HostCheck, Step
from iodelta.fleet.host import FleetHost
from iodelta.fleet.sight import said
from iodelta.lab.boots import look as survey_of
from iodelta.lab.boots import refusal
from iodelta.lab.setup import Survey, unsettable
from iodelta.lab.turns import alone
from iodelta.lab.undo import restore_pending
from iodelta.machine import Machine, reach
from iodelta.probe.environment import environment
from iodelta.probe.topology import resolve, resolve_tree
from iodelta.workload.fio import fio_version


def check(
    host: FleetHost,
    experiment: Experiment,
    destroy: tuple[str, ...],
    *,
    commands: bool = False,
) -> HostCheck:
    """Check one host without changing a setting. Raises nothing: an error is the last step."""
    checked: list[CheckedStep] = []
    step: Step = "reach"
    try:
        with reach(host.machine) as machine:
            restore_pending(
                machine, own="a check does not wait for a run that may be alive"
            )
            for one in _steps(host, machine, experiment, destroy, commands):
                step = one.step
                checked.append(one)
    except IodeltaError as error:
        failed = _failed(checked, step, error)
        checked.append(failed)
    return HostCheck(host.name, host.machine, tuple(checked))


def _failed(checked: list[CheckedStep], step: Step, error: IodeltaError) -> CheckedStep:
    order: tuple[Step, ...] = (
        "reach",
        "target",
        "fio",
        "knobs",
        "permits",
        "in use",
        "environment",
    )
    following = order[min(order.index(step) + 1, len(order) - 1)] if checked else step
    return CheckedStep(following, False, said(error), error.remedy)


def _steps(
    host: FleetHost,
    machine: Machine,
    experiment: Experiment,
    destroy: tuple[str, ...],
    commands: bool,
) -> Iterator[CheckedStep]:
    """Yield the steps as they succeed or fail; an IodeltaError belongs to the step after the last one."""
    yield CheckedStep("reach", True, machine.run(["uname", "-n"]).text.strip())
    from msgspec.structs import replace

    experiment = replace(
        experiment,
        target=replace(experiment.target, path=host.target(experiment.target.path)),
    )
    target = (resolve_tree if experiment.target.files else resolve)(
        machine, experiment.target.path or machine.directory
    )
    yield CheckedStep("target", True, target.real_path)
    version = fio_version(machine)
    yield CheckedStep("fio", True, "fio " + ".".join(map(str, version)))
    reasons = unsettable(machine, experiment, target) if not experiment.boots else {}
    if reasons:
        reasons_ = "; ".join(
            f"{variant}: {reason}" for variant, reason in reasons.items()
        )
        yield CheckedStep(
            "knobs", False, reasons_, "leave this host out, or change the experiment"
        )
        return
    survey = survey_of(machine, experiment)
    if survey.unavailable:
        reasons_ = "; ".join(
            f"{variant}: {reason}" for variant, reason in survey.unavailable.items()
        )
        yield CheckedStep(
            "knobs", False, reasons_, "leave this host out, or change the experiment"
        )
    else:
        yield CheckedStep("knobs", True, "all can be set")
    yield _permit(host, machine, experiment, survey, destroy, commands)
    with alone(machine, [] if experiment.target.none else [survey.target], Path.cwd()):
        yield CheckedStep("in use", True, "by nobody")
    # Kernel, CPU and disk in a line.
    environment_ = environment(machine, survey.target)
    disk = next(
        (
            str(device.get("model", ""))
            for device in environment_.devices
            if device.get("model")
        ),
        "",
    )
    parts = (
        f"Linux {environment_.kernel.get('release', '?')}",
        str(environment_.cpu.get("model", "")),
        disk,
    )
    yield CheckedStep("environment", True, ", ".join(filter(None, parts)))


def _permit(
    host: FleetHost,
    machine: Machine,
    experiment: Experiment,
    survey: Survey,
    destroy: tuple[str, ...],
    commands: bool,
) -> CheckedStep:
    if not survey.writes:
        return CheckedStep("permits", True, "only reads")
    refused = refusal(machine, experiment, survey, destroy, commands=commands)
    if refused is None:
        return CheckedStep(
            "permits",
            True,
            "a scratch file"
            if survey.scratch
            else f"may overwrite {survey.target.path}",
        )
    remedy = refused.remedy
    if not survey.reasons and not destroy:
        remedy = f"if its data may be lost: --destroy {host.name}:{survey.target.path}"
    return CheckedStep("permits", False, said(refused), remedy)


def destroyed(
    words: tuple[str, ...], hosts: tuple[FleetHost, ...]
) -> dict[str, tuple[str, ...]]:
    """Host -> devices, of ``--destroy HOST:PATH``. Raises RequestError: a device that may be overwritten is always
    named with its host."""
    names = {host.name for host in hosts}
    paths: dict[str, tuple[str, ...]] = {}
    for word in words:
        name, _, path = word.partition(":")
        if name not in names or not path.startswith("/"):
            raise RequestError(
                f"not a device of one of the chosen hosts: {word!r}",
                place="--destroy",
                remedy="write it as HOST:/dev/disk/by-id/..., once for every host; HOST is its name in the inventory",
            )
        paths[name] = (*paths.get(name, ()), path)
    return paths
