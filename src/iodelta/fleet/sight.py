"""A look at one host: whether it answers, which machine and device it is, and whether it is unchanged."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from iodelta.errors import IodeltaError, LostError, UnreachableError
from iodelta.experiment import Experiment
from iodelta.fleet.events import Sight
from iodelta.lab.turns import physical
from iodelta.lab.undo import restore_pending
from iodelta.machine import Machine, reach
from iodelta.probe.environment import environment
from iodelta.probe.sysfs import attribute, boot_id
from iodelta.probe.topology import Target, resolve, resolve_tree
from iodelta.study.confounders import Differing, differences, line_of

MATTERS = (
    "fio",
    "kernel",
    "mitigations",
    "firmware",
    "device",
    "topology",
    "virtual machine",
)
"""Groups of differences that make a host another machine for an experiment that is half done. Settings of knobs are not
among them."""

MOVES = (".link_", ".memory")
"""Parts of the names of values that change by themselves: a link slows down to save power, a balloon takes memory."""

EMULATED = ("QEMU", "QM0000", "VBOX", "drive-scsi")
"""Parts of serial numbers that many guests share, so they identify no device."""

Trouble = Literal["", "away", "failed"]
"""``away``: it does not answer now, and may later."""


class Looked(msgspec.Struct, frozen=True):
    """What a look found, or why there is nothing to see."""

    name: str
    sight: Sight | None = None
    trouble: Trouble = ""
    reason: str = ""
    remedy: str = ""


def look(
    name: str,
    machine: str,
    path: str,
    experiment: Experiment,
    recorded: Mapping[str, Any] | None,
) -> Looked:
    """Look at a host and the target at ``path``. ``recorded`` is the environment in which its experiment began.

    Restores what dead runs left changed there. Raises nothing: an error is part of the answer.
    """
    try:
        with reach(machine) as there:
            restore_pending(
                there, own="a look does not wait for a run that may be alive"
            )
            return Looked(name, _sight(there, path, experiment, recorded))
    except (UnreachableError, LostError) as error:
        return Looked(name, None, "away", said(error), error.remedy)
    except IodeltaError as error:
        return Looked(name, None, "failed", said(error), error.remedy)


def said(error: IodeltaError) -> str:
    """Return what happened and where, in one line."""
    return " ".join(f"{error.place}: {error.what}".removeprefix(": ").split())


def _sight(
    machine: Machine,
    path: str,
    experiment: Experiment,
    recorded: Mapping[str, Any] | None,
) -> Sight:
    # Assumption: the answer takes as long there as back, so the middle of the two readings is the same moment.
    begun = time.time()
    there = machine.time()
    ahead = there - (begun + time.time()) / 2
    with machine.together("fleet"):
        target = target_there(machine, path, experiment)
        return Sight(
            boot=boot_id(machine),
            machine=(attribute(machine, "/etc/machine-id") or "").strip(),
            devices=physical(machine, [target]),
            lasting=_lasting(target),
            ahead=ahead,
            differs=()
            if recorded is None
            else _differs(machine, target, experiment, recorded),
        )


def target_there(machine: Machine, path: str, experiment: Experiment) -> Target:
    """Return what is measured on that host. Raises RequestError."""
    return (resolve_tree if experiment.target.files else resolve)(
        machine, path or machine.directory
    )


def _lasting(target: Target) -> str:
    name = target.identity.wwid or target.identity.serial
    return "" if any(part in name for part in EMULATED) else name


def _differs(
    machine: Machine,
    target: Target,
    experiment: Experiment,
    recorded: Mapping[str, Any],
) -> tuple[str, ...]:
    now: dict[str, Any] = msgspec.to_builtins(environment(machine, target))
    groups = [
        group
        for group in MATTERS
        if not (experiment.boots and group in ("kernel", "mitigations"))
    ]
    changed = [
        difference
        for difference in differences(recorded, now)
        if difference.group in groups
    ]
    lasting = (difference for difference in changed if not _moves(difference))
    return tuple(map(line_of, lasting))


def _moves(difference: Differing) -> bool:
    """Return whether it is a value that changes by itself."""
    return any(part in difference.what for part in MOVES)
