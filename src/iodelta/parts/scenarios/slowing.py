"""Disks of a scenario made slow by the kernel, for everybody who reads them: limits of the control group we are in.

Source: Documentation/admin-guide/cgroup-v1/blkio-controller.rst and cgroup-v2.rst. Under the older hierarchy our own
group gets the limits. Under the unified one, whose root has none, we move into a group made for it, and back later.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping

import msgspec

from iodelta.knob.cgroup import V1, hierarchy
from iodelta.machine import LocalMachine, Machine
from iodelta.parts.scenarios.model import Need
from iodelta.parts.scenarios.stage import Stage
from iodelta.probe.sysfs import attribute, status

WRITE = 'echo "$1" > "$0"'
FORGET = '[ ! -e "$0" ] || echo "$1" > "$0" 2>/dev/null || true'
"""A limit of a device that is gone is gone, too."""

JOIN = 'mkdir -- "$0" && echo "$1" > "$0/cgroup.procs"'
LEAVE = """[ -d "$0" ] || exit 0
for pid in $(cat "$0/cgroup.procs"); do echo "$pid" > "$1/cgroup.procs" 2>/dev/null || true; done
rmdir -- "$0" """


class Pace(msgspec.Struct, frozen=True):
    """What a disk does at most: reads, and as many writes, per second; bytes per second of each."""

    ios: int
    bytes_per_second: int


def needs(machine: Machine) -> Iterator[Need]:
    """Yield a control group that can limit I/O, of this very machine."""
    if not isinstance(machine, LocalMachine):
        yield Need(
            "this machine",
            "disks are slowed for the processes of one machine",
            "run it there",
        )
        return
    _, _, reason = hierarchy(machine)
    if reason:
        yield Need(
            "blkio",
            reason,
            "a kernel with CONFIG_BLK_DEV_THROTTLING, outside a container",
        )


def slow(stage: Stage, paces: Mapping[str, Pace]) -> None:
    """Every disk (its device node) at its pace, until the stage is gone. Raises MeasureError."""
    unified, point, _ = hierarchy(stage.machine)
    group = (
        _unified(stage, point)
        if unified
        else f"{point}{_own(stage.machine)}".rstrip("/")
    )
    for disk, pace in paces.items():
        stat = status(stage.machine, disk)
        number = stat.rdev if stat else ""
        limits = {
            "rbps": pace.bytes_per_second,
            "wbps": pace.bytes_per_second,
            "riops": pace.ios,
            "wiops": pace.ios,
        }
        if unified:
            words = " ".join(f"{key}={limit}" for key, limit in limits.items())
            stage.run(["sh", "-c", WRITE, f"{group}/io.max", f"{number} {words}"])
            continue
        for key, limit in limits.items():
            file = f"{group}/blkio.throttle.{V1[key]}_device"
            stage.make(
                ["sh", "-c", WRITE, file, f"{number} {limit}"],
                ["sh", "-c", FORGET, file, f"{number} 0"],
            )


def _unified(stage: Stage, point: str) -> str:
    group = f"{point}/{posixpath.basename(stage.directory)}"
    control = f"{point}/cgroup.subtree_control"
    if "io" not in (attribute(stage.machine, control) or "").split():
        stage.make(
            ["sh", "-c", WRITE, control, "+io"], ["sh", "-c", FORGET, control, "-io"]
        )
    home = f"{point}{_own(stage.machine)}".rstrip("/")
    stage.make(
        ["sh", "-c", JOIN, group, str(os.getpid())], ["sh", "-c", LEAVE, group, home]
    )
    return group


def _own(machine: Machine) -> str:
    """Return the path of our own group: in the unified hierarchy, or in that of blkio."""
    v1 = ""
    for line in (attribute(machine, "/proc/self/cgroup") or "").splitlines():
        _, names, path = line.split(":", 2)
        if (not names and not v1) or "blkio" in names.split(","):
            v1 = path
    return v1
