"""What the audit of an experiment's trials learns from its plan and environment."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from iodelta.audit import Facts
from iodelta.experiment.model import mirrored
from iodelta.lab.plan import Plan


def facts_of(plan: Plan, environment: Mapping[str, Any]) -> Facts:
    """fio's options by cell and variant, the target's device and those below it, fio's version.

    ``environment`` is the recorded one, as plain data; what it lacks is not judged.
    """
    design = plan.experiment.design
    timed = {
        # In ms, since fio itself takes no fractions of a second.
        "ramp_time": f"{round(1000 * design.ramp)}ms",
        "runtime": f"{round(1000 * design.trial)}ms",
        "time_based": "",
    }
    target = environment.get("target", {})
    device = str(target.get("device") or "")
    # The names of the recorded devices that have one.
    names = [device.get("name") for device in environment.get("devices", ())]
    devices = [str(name) for name in names if name]
    # The devices of a btrfs or a mirror are peers: it chooses itself which of them serves a read.
    mirror = any(mirrored(variant.knobs) for variant in plan.experiment.variants)
    side_by_side = mirror or target.get("fstype") == "btrfs"
    stacked = device in devices and not side_by_side
    # A loop device reads its file through the page cache: the disk below is not a member of it.
    array = stacked and device.startswith(("md", "dm-"))
    members = [name for name in devices if name != device]
    version = str(environment.get("fio", {}).get("version", ""))
    return Facts(
        options={arm: given | timed for arm, given in options_of(plan).items()},
        devices=(device,) if stacked else (),
        members=tuple(members) if array else (),
        fio_version=version.removeprefix("fio-") or None,
        margin=plan.experiment.margin,
    )


def options_of(plan: Plan) -> dict[tuple[str, str], dict[str, str]]:
    """fio's options of every (cell, variant): a variant may set options of its own."""
    options = {}
    for cell, variant in product(plan.experiment.cells, plan.experiment.variants):
        own = (*cell.options, *variant.options)
        options[cell.name, variant.name] = {name: value or "" for name, value in own}
    return options
