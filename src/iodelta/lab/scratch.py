"""The file that iodelta makes and measures where the target is a directory."""

from __future__ import annotations

from iodelta.errors import RefusedError
from iodelta.lab.guard import MARK, make_scratch, read_only, refuse_at_once
from iodelta.lab.plan import Plan
from iodelta.lab.progress import Control
from iodelta.machine import Machine, literal
from iodelta.probe.made import made
from iodelta.probe.topology import Target, resolve
from iodelta.workload.layout import prepare
from iodelta.workload.leftovers import marked

SCRATCH_SIZE = 1 << 30
"""Bytes of a scratch file when no size is given."""


def scratch_file(
    machine: Machine,
    plan: Plan,
    directory: Target,
    size: int | None,
    place: str,
    control: Control,
) -> Target:
    """Write a file of ``size`` bytes in ``directory``. Raises RefusedError for one that is not iodelta's own."""
    refuse_at_once(read_only(machine, directory))
    path = f"{make_scratch(machine, directory.real_path)}/{plan.identifier}.dat"
    prepare(
        machine,
        path,
        size or SCRATCH_SIZE,
        workdir=place,
        env=marked(plan.identifier),
        on_progress=lambda done, total: control.watcher.preparing(
            f"writing {path}", done / total
        ),
        stop=control.stop,
    )
    target = resolve(machine, path)
    if target.real_path != path:
        raise RefusedError(
            f"is a link to {target.real_path}, which is not a scratch file",
            place=path,
            remedy="somebody exchanged it: delete the link, or choose another directory for the scratch file",
        )
    if not made(machine, target):
        raise RefusedError(
            "exists already, and there is no record that iodelta made it",
            place=path,
            remedy="move it away, or choose another directory for the scratch file",
        )
    return target


def remove_scratch(machine: Machine, plan: Plan, target: Target) -> None:
    """Delete the scratch file of an experiment that is over, and the files that iodelta made for it; ``target`` is its
    directory."""
    directory = make_scratch(machine, target.real_path)
    machine.run(
        [
            "rm",
            "-f",
            "--",
            f"{directory}/{plan.identifier}.dat",
            f"{directory}/.{plan.identifier}.dat.iodelta",
        ]
    )
    if not [
        path
        for path in machine.glob(f"{literal(directory)}/*")
        if not path.endswith(f"/{MARK}")
    ]:
        machine.run(["rm", "-f", "--", f"{directory}/{MARK}"])
        machine.run(["rmdir", "--", directory])
