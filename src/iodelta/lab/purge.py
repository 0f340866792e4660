"""Discards everything on a disk at once by a command of the disk, or the reason why that is impossible."""

from __future__ import annotations

import re

from iodelta.errors import MachineError, MeasureError
from iodelta.experiment.model import Prepare
from iodelta.machine import Machine
from iodelta.machine.base import Completed
from iodelta.probe.sysfs import attribute, sysfs_name
from iodelta.probe.topology import Target


def unable(machine: Machine, target: Target, prepare: Prepare, size: int) -> str:
    """Return why this disk cannot be purged in this way; empty where it can."""
    if prepare.purge == "none":
        return ""
    if target.kind != "block":
        return "only a block device can be purged"
    if prepare.purge == "discard":
        disk = sysfs_name(target.disk or target.device or "")
        if attribute(machine, f"/sys/class/block/{disk}/queue/discard_max_bytes") in (
            None,
            "",
            "0",
        ):
            return f"{disk} cannot discard"
        return _missing(machine, "blkdiscard", "util-linux")
    name = target.device or ""
    namespace = re.fullmatch(r"(nvme\d+)n\d+", name)
    if namespace is None:
        return f"{name} is not a whole NVMe namespace"
    if size < target.size_bytes:
        return "a format discards the whole namespace, but [target] size is less"
    # Some controllers format all their namespaces at once.
    others = [
        path
        for path in machine.glob(f"/sys/class/block/{namespace[1]}n*")
        if not re.search(r"p\d+$", path)
    ]
    if len(others) > 1:
        return f"{namespace[1]} has {len(others)} namespaces, and a format may discard all of them"
    return _missing(machine, "nvme", "nvme-cli")


def words(machine: Machine, target: Target, prepare: Prepare, size: int) -> list[str]:
    """Return the command that purges ``size`` bytes from the beginning.

    Both tools refuse a device that is open with O_EXCL, hence --force: we hold it ourselves, so that nobody else can
    use it meanwhile.
    """
    if prepare.purge == "nvme-format":
        return ["nvme", "format", target.real_path, "--force"]
    done = machine.run(["blkdiscard", "--help"], env={"LC_ALL": "C"})
    return [
        "blkdiscard",
        *(["--force"] if b"--force" in (done.stdout + done.stderr) else []),
        "--offset",
        "0",
        "--length",
        str(size),
        target.real_path,
    ]


def run(machine: Machine, target: Target, prepare: Prepare, size: int) -> Completed:
    """Purge it. Raises MeasureError with what the command said."""
    done = machine.run(words(machine, target, prepare, size), env={"LC_ALL": "C"})
    if done.returncode != 0:
        message = done.error_text or f"it ended with {done.returncode}"
        raise MeasureError(
            f"could not be purged: {message}",
            place=target.path,
            remedy='choose another [prepare] purge, or "none"',
        )
    return done


def _missing(machine: Machine, program: str, package: str) -> str:
    try:
        machine.run([program, "--version"])
    except MachineError:
        return f"{program} is not installed (package {package})"
    return ""
