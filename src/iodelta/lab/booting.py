"""What a machine is to a run whose variants differ in what is booted: a maker of guests, or a host that is rebooted."""

from __future__ import annotations

from collections.abc import Sequence

from iodelta.errors import RefusedError, RequestError
from iodelta.experiment import Experiment
from iodelta.lab.boots import Boots
from iodelta.lab.guard import check_commands, check_write, refuse_at_once
from iodelta.lab.guests import Guests, look_at_guests
from iodelta.lab.reboots import Reboots, look_at_host
from iodelta.lab.setup import Survey, opened_by_name, other_members, survey
from iodelta.lab.workdir import workdir
from iodelta.machine import Machine
from iodelta.machine.ssh import SshMachine
from iodelta.machine.vm import VmMachine


def look(machine: Machine, experiment: Experiment) -> Survey:
    """``survey``; where variants differ in what is booted, of guests of every variant, or of the host as it is.

    Raises RequestError, MeasureError when none can run here.
    """
    if not experiment.boots:
        with machine.together("survey"):
            return survey(machine, experiment)
    if isinstance(machine, VmMachine):
        return look_at_guests(machine, experiment)
    return look_at_host(_host(machine), experiment)


def refusal(
    machine: Machine,
    experiment: Experiment,
    found: Survey,
    destroy: Sequence[str],
    *,
    commands: bool = False,
) -> RefusedError | None:
    """Return the refusal that ``ready`` would raise for writes; None where it would not, as for a guest, whose disks
    end with it. ``commands``: those of the experiment may run.

    Raises RequestError for a ``--destroy`` that names nothing.
    """
    try:
        check_commands(experiment, commands)
        refuse_at_once(found.reasons)
        if found.writes and not isinstance(machine, VmMachine):
            _refuse(machine, experiment, found, destroy)
    except RefusedError as error:
        return error
    return None


def _refuse(
    machine: Machine, experiment: Experiment, found: Survey, destroy: Sequence[str]
) -> None:
    if not found.scratch:
        size = None if found.target.kind == "directory" else found.size
        with workdir(machine) as place:
            held_in = "" if opened_by_name(experiment) else place
            check_write(machine, found.target, destroy, size, place=held_in).close()
    for member in other_members(machine, experiment, found.target):
        check_write(machine, member, destroy).close()


def boots_of(machine: Machine) -> type[Boots]:
    """Return the boots that a machine has. Raises RequestError for one that has none."""
    if isinstance(machine, VmMachine):
        return Guests
    _host(machine)
    return Reboots


def _host(machine: Machine) -> SshMachine:
    if not isinstance(machine, SshMachine):
        raise RequestError(
            "iodelta cannot reboot the machine that it runs on",
            place="kernel",
            remedy="boot kernels in throw-away guests (--machine vm), or on a host over SSH (--machine ssh:HOST)",
        )
    return machine
