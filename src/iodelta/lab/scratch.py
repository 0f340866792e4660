"""The file that iodelta makes and measures where the target is a directory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from iodelta.errors import RefusedError
from iodelta.experiment.model import SCRATCH_SIZE
from iodelta.lab.guard import SCRATCH, read_only, refuse_at_once, scratch_directory
from iodelta.lab.plan import Plan
from iodelta.lab.progress import Control
from iodelta.lab.workdir import workdir
from iodelta.machine import Machine
from iodelta.probe.made import made_file
from iodelta.probe.topology import Target, resolve, status
from iodelta.workload.layout import prepare
from iodelta.workload.leftovers import marked


@contextlib.contextmanager
def scratch_file(
    machine: Machine,
    plan: Plan,
    directory: Target,
    size: int | None,
    place: str,
    control: Control,
) -> Iterator[tuple[Target, str]]:
    """Write a file of ``size`` bytes in ``directory``: its target, and the path by which trials open it.

    Raises RefusedError for a file that is not iodelta's own, or that somebody exchanged.
    """
    refuse_at_once(read_only(machine, directory))
    env: Mapping[str, str] = marked(plan.identifier)
    with scratch_directory(machine, directory.real_path, place, env) as inside:
        opened = f"{inside}/{plan.identifier}.dat"
        path = f"{directory.real_path.rstrip('/')}/{SCRATCH}/{plan.identifier}.dat"
        prepare(
            machine,
            opened,
            size or SCRATCH_SIZE,
            workdir=place,
            env=env,
            on_progress=lambda done, total: control.watcher.preparing(
                f"writing {path}", done / total
            ),
            stop=control.stop,
        )
        target, found = resolve(machine, path), status(machine, opened)
        if (
            target.real_path != path
            or found is None
            or target.identity.backing != f"{found.devno} {found.inode}"
        ):
            raise RefusedError(
                f"is a link to {target.real_path}, which is not a scratch file"
                if target.real_path != path
                else "is not the file that was written there a moment ago",
                place=path,
                remedy="somebody exchanged it: choose another directory for the scratch file",
            )
        if not made_file(machine, opened):
            raise RefusedError(
                "exists already, and there is no record that iodelta made it",
                place=path,
                remedy="move it away, or choose another directory for the scratch file",
            )
        yield target, opened


def remove_scratch(machine: Machine, plan: Plan, target: Target) -> None:
    """Delete the scratch file of an experiment that is over, and the files that iodelta made for it; ``target`` is its
    directory."""
    with (
        workdir(machine) as place,
        scratch_directory(
            machine, target.real_path, place, marked(plan.identifier)
        ) as inside,
    ):
        name = f"{plan.identifier}.dat"
        machine.run(["rm", "-f", "--", f"{inside}/{name}", f"{inside}/.{name}.iodelta"])
