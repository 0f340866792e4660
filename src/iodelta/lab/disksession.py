"""``iodelta prepare``: a disk prepared by itself, in a folder of its own. Look, plan, begin or go on."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Literal

import msgspec

from iodelta.errors import RefusedError, RequestError
from iodelta.experiment import DiskQuestion, size_bytes
from iodelta.lab.account import Account
from iodelta.lab.diskstate import Known, state_known
from iodelta.lab.folder import ENVIRONMENT, Folder
from iodelta.lab.guard import check_write, held_by
from iodelta.lab.preparing import (
    FILL,
    Cost,
    Disk,
    Preparation,
    State,
    cost_of,
    unpreparable,
)
from iodelta.lab.progress import Control
from iodelta.lab.session import settle_pending
from iodelta.lab.turns import alone
from iodelta.lab.undo import undo_log
from iodelta.lab.workdir import workdir
from iodelta.machine import Machine
from iodelta.probe.environment import environment
from iodelta.probe.topology import Target, resolve
from iodelta.workload import parsing
from iodelta.workload.fio import fio_version
from iodelta.workload.leftovers import marked


class DiskPlan(msgspec.Struct, frozen=True):
    """What will be prepared, and how."""

    question: DiskQuestion
    identifier: str
    """Names this preparation in the undo log and in the environment of every process it starts."""
    clock: Literal["rounds"] = "rounds"
    """Distinguishes the plan of a preparation from that of an experiment."""
    schema: Literal[1] = 1


class DiskSurvey(msgspec.Struct, frozen=True):
    """What a look at the machine found; nothing was changed. Bytes and seconds."""

    target: Target
    size: int
    """Bytes that are prepared."""
    fio: tuple[int, int]
    holds: str
    """What is on it, as far as it was read; empty for what iodelta made."""
    cost: Cost
    disk: Known | None = None
    """What is known of its state now."""


def make_plan(question: DiskQuestion) -> DiskPlan:
    """Return the plan of a preparation."""
    return DiskPlan(question, f"{random.SystemRandom().getrandbits(64):016x}")


def look(machine: Machine, question: DiskQuestion) -> DiskSurvey:
    """Look at the disk and ask fio about the rounds' options. Raises RequestError, MeasureError."""
    disk = _disk(machine, question)
    unpreparable(disk)
    with workdir(machine) as place:
        requests = {
            "fill": disk.request(FILL, place, whole=True),
            "rounds": disk.request(disk.workload, place),
        }
        parsing.check(
            machine,
            [parsing.job_of(name, request) for name, request in requests.items()],
            place,
        )
    state = state_known(machine, disk.target)
    return DiskSurvey(
        disk.target,
        disk.size,
        disk.fio,
        held_by(machine, disk.target),
        cost_of(disk, state),
        state,
    )


def refusal(
    machine: Machine, survey: DiskSurvey, control: Control
) -> RefusedError | None:
    """Return what the guard says of the disk; None where it may be written. Raises RequestError."""
    try:
        with workdir(machine) as place:
            check_write(machine, survey.target, control.destroy, place=place).close()
    except RefusedError as error:
        return error
    return None


def start(
    path: Path, text: str, plan: DiskPlan, machine: Machine, control: Control
) -> tuple[Folder, State]:
    """Begin a folder and prepare the disk; a request that is refused leaves no folder. Raises IodeltaError."""
    folder = Folder.begin(path, text, plan)
    try:
        return folder, go(folder, machine, control)
    except RequestError:
        if not Account(folder.events()).begun:
            folder.remove()
        raise


def read_plan(folder: Folder) -> DiskPlan:
    """Return the plan of a folder, unchanged since it was made. Raises MeasureError."""
    return folder.read_plan(DiskPlan)


def go(folder: Folder, machine: Machine, control: Control) -> State:
    """Continue a preparation; ``running`` when the user stopped it. Raises IodeltaError; finished steps are kept."""
    plan = read_plan(folder)
    with folder.writing():
        settle_pending(machine, control.watcher, plan.identifier)
        settled = Account(folder.events()).settled.get(machine.name)
        if settled is not None and settled.steady:
            return "steady"
        disk = _disk(machine, plan.question)
        unpreparable(disk)
        with contextlib.ExitStack() as stack:
            stack.enter_context(undo_log(machine, plan.identifier, folder.path))
            stack.enter_context(alone(machine, [disk.target], folder.path))
            place = stack.enter_context(workdir(machine))
            env = marked(plan.identifier)
            permit = stack.enter_context(
                check_write(machine, disk.target, control.destroy, place=place, env=env)
            )
            if not folder.has(ENVIRONMENT):
                folder.write_struct(ENVIRONMENT, environment(machine, disk.target))
            return Preparation(
                disk, folder, control, place=place, env=env, permit=permit
            ).run()


def _disk(machine: Machine, question: DiskQuestion) -> Disk:
    target = resolve(machine, question.target.path)
    size = (
        size_bytes(question.target.size) if question.target.size else target.size_bytes
    )
    if target.kind != "directory" and size > target.size_bytes:
        raise RequestError(
            f"{question.target.size} was requested, but there are only {target.size_bytes} bytes",
            place=target.path,
            remedy="give a smaller --size, or none",
        )
    return Disk(
        machine, target, size, question.prepare, question.workload, fio_version(machine)
    )
