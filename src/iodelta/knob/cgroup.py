"""I/O limits for the load only, in a control group that iodelta creates for it and removes again.

Source: Documentation/admin-guide/cgroup-v2.rst (io.max), Documentation/admin-guide/cgroup-v1/blkio-controller.rst.
"""

from __future__ import annotations

import posixpath
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence

from iodelta.errors import KnobError
from iodelta.knob.base import EMPTY, Knob, Saved, refuse, whole
from iodelta.knob.files import needs_write, put, text_of
from iodelta.knob.shell import Line, Pattern, Script, Shell
from iodelta.machine import Machine
from iodelta.probe.devices import device
from iodelta.probe.mounts import mounts
from iodelta.probe.sysfs import attribute_text
from iodelta.probe.topology import Target

V1 = {
    "rbps": "read_bps",
    "wbps": "write_bps",
    "riops": "read_iops",
    "wiops": "write_iops",
}
"""Limits of io.max, and the same of the older blkio throttle."""

JOIN = 'echo $$ > "$0" && exec "$@"'
"""Constant: the group's file and the load's words come as positional arguments."""


class IoMax(Knob):
    """``cgroup.io_max``: ``riops=5000 wbps=max``, for each whole disk under the target."""

    names = ("cgroup.io_max",)
    harmless = True

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._unified, self._parent, self._reason = hierarchy(machine)
        self._group = f"{self._parent}/iodelta-{uuid.uuid4().hex[:12]}"

    def available(self) -> str | None:
        if not self.target.disks:
            return f"needs a block device: {self.target.reason}"
        return self._reason or needs_write(self.machine, f"{self._parent}/cgroup.procs")

    def allowed(self) -> str:
        text = "any of rbps= wbps= (bytes/s) riops= wiops= (IOs/s), each a whole number above 0, or max"
        # A kernel thread of the root group writes their pages back.
        if self._unified:
            return text
        return f"{text}; through cgroup v1, which does not limit buffered writes"

    def read(self) -> str:
        return _spell(dict.fromkeys(V1, "max"))

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        self._limits(value)

    def save(self, values: Sequence[str] = ()) -> Saved:
        record = [("group", self._group)]
        if self._unified and not self._passes_io_on():
            record.append(("enabled io in", self._control))
        return self.record(tuple(record))

    def apply(self, value: str) -> None:
        limits = self._limits(value)
        if not self.machine.glob(self._group):
            self._make()
        for disk in self.target.disks:
            number = device(self.machine, disk).devno
            if self._unified:
                self._put("io.max", f"{number} {_spell(limits)}")
            else:
                # Write the limits of one disk to the files of the older throttle, where 0 means none
                for key, name in V1.items():
                    limit = limits[key].replace("max", "0")
                    self._put(f"blkio.throttle.{name}_device", f"{number} {limit}")

    def verify(self, value: str) -> None:
        wanted = self._limits(value)
        for disk in self.target.disks:
            present = self._present(device(self.machine, disk).devno)
            if present != wanted:
                raise KnobError(
                    f"requested {_spell(wanted)}; the kernel accepted the write and shows {_spell(present)} for {disk}",
                    place=self._group,
                    remedy=f"allowed: {self.allowed()}",
                )

    def launcher(self, value: str) -> tuple[str, ...]:
        return ("sh", "-c", JOIN, f"{self._group}/cgroup.procs")

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        group = saved.values[0][1]
        if not re.fullmatch(r"/.*/iodelta-[0-9a-f]{12}", group):
            raise KnobError(
                f"the record names {group!r}, which is not a group that iodelta made",
                place=saved.knob,
            )
        account = "the group is already gone"
        # A crash may have come before the group was created, or after it was removed.
        if machine.glob(group):
            # Remove a group that iodelta created. Processes that are still in it after a second are killed: only a
            # load is.
            done = machine.run(["rmdir", "--", group])
            begun = time.monotonic()
            while done.returncode != 0 and machine.glob(group):
                waited = time.monotonic() - begun
                pids = attribute_text(machine, f"{group}/cgroup.procs").split()
                if waited > 10:
                    raise KnobError(
                        f"cannot be removed: {done.error_text}",
                        place=group,
                        remedy=f"end its processes ({' '.join(pids) or 'none listed'}), then iodelta restore",
                    )
                if waited > 1 and pids:
                    machine.run(["kill", "-KILL", "--", *pids])
                time.sleep(0.05)
                done = machine.run(["rmdir", "--", group])
            account = f"removed {group}"
        for _, control in saved.values[1:]:
            # A concurrent run may still need the controller.
            parent = posixpath.dirname(control)
            if not machine.glob(f"{parent}/iodelta-*"):
                account += f"; {_disable(machine, control)}"
        return account

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script:
        join = (Shell('sh -c "$join" "$group/cgroup.procs"'),)
        return Script(
            values={value: (("limit", value),) for value in values},
            release=(("unlimited",),),
            launchers=dict.fromkeys(values, join),
        )

    @classmethod
    def undo_lines(cls, saved: Saved) -> Iterator[Line]:
        for kind, path in saved.values:
            if kind == "group":
                yield (
                    Shell("{ [ ! -d"),
                    path,
                    Shell("] || rmdir --"),
                    path,
                    Shell("; }"),
                )
            elif kind == "enabled io in":
                groups = Pattern(f"{posixpath.dirname(path)}/iodelta-*")
                nobody = (Shell("! ls -d"), groups, Shell(">/dev/null 2>&1 &&"))
                yield (*nobody, "printf", "%s", "-io", Shell(">"), path)

    @property
    def _control(self) -> str:
        """Return the file that says which controllers the parent's groups have."""
        return f"{self._parent}/cgroup.subtree_control"

    def _passes_io_on(self) -> bool:
        """Return whether groups below the parent already have the io controller."""
        return "io" in text_of(self.machine, self._control).split()

    def _make(self) -> None:
        if self._unified and not self._passes_io_on():
            remedy = "a parent group with processes of its own cannot pass io on"
            put(self.machine, self._control, "+io", remedy)
        done = self.machine.run(["mkdir", "--", self._group])
        if done.returncode != 0:
            raise KnobError(
                f"cannot be created: {done.error_text}",
                place=self._group,
                remedy="are control groups read-only here (in a container)?",
            )

    def _put(self, file: str, text: str) -> None:
        put(self.machine, f"{self._group}/{file}", text, f"allowed: {self.allowed()}")

    def _present(self, number: str) -> dict[str, str]:
        """Return the limits that the kernel shows for a disk ``MAJOR:MINOR``; ``max`` where it shows none."""
        limits = dict.fromkeys(V1, "max")
        if self._unified:
            text = text_of(self.machine, f"{self._group}/io.max")
            for word in _words_of(text, number):
                key, _, limit = word.partition("=")
                limits[key] = limit
            return limits
        for key, name in V1.items():
            text = text_of(self.machine, f"{self._group}/blkio.throttle.{name}_device")
            words = _words_of(text, number)
            if words:
                limits[key] = words[0]
        return limits

    def _limits(self, value: str) -> dict[str, str]:
        """Return all four limits of a value, in decimal. Raises RequestError."""
        limits: dict[str, str] = {}
        for word in value.split():
            key, _, limit = word.partition("=")
            if key not in V1 or not _is_limit(key, limit):
                raise refuse(self.name, value, self.allowed())
            # The kernel shows a number without leading zeros.
            limits[key] = limit.lstrip("0")
        if not limits:
            raise refuse(self.name, value, self.allowed())
        return dict.fromkeys(V1, "max") | limits


def _is_limit(key: str, limit: str) -> bool:
    """Return whether the kernel keeps a limit as written: it truncates larger numbers, down to 0 IOs/s."""
    if limit == "max":
        return True
    highest = 2**32 - 2 if key.endswith("iops") else 2**64 - 2
    return whole(limit) and 0 < int(limit) <= highest


def _words_of(text: str, number: str) -> list[str]:
    """Return the words after ``MAJOR:MINOR`` in a file with one line per disk; empty if the disk has no line."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == [number]:
            return words[1:]
    return []


def hierarchy(machine: Machine) -> tuple[bool, str, str]:
    """Return whether the unified hierarchy (v2) limits I/O, where to create the group, and why there is no such place."""
    table = mounts(machine)
    unified = [mount.point for mount in table if mount.fstype == "cgroup2"]
    for point in unified:
        if "io" in attribute_text(machine, f"{point}/cgroup.controllers").split():
            return True, point, ""
    for mount in table:
        if mount.fstype == "cgroup" and "blkio" in mount.options:
            return False, mount.point, _no_throttle(machine, mount.point)
    where = "no cgroup2 is mounted"
    if unified:
        where = f"{unified[0]} has no io controller"
    reason = f"needs control groups that limit I/O: {where}, and no blkio of cgroup v1 is mounted"
    return False, "", reason


def _no_throttle(machine: Machine, point: str) -> str:
    """Return why the blkio controller of cgroup v1 cannot limit I/O; empty if it can."""
    if machine.glob(f"{point}/blkio.throttle.read_iops_device"):
        return ""
    return f"{point} cannot throttle: the kernel has no CONFIG_BLK_DEV_THROTTLING"


def _disable(machine: Machine, control: str) -> str:
    """Disable the io controller again, unless other groups use it by now."""
    try:
        put(machine, control, "-io", f"by hand: echo -io > {control}")
    except KnobError as error:
        if "EBUSY" not in error.what:
            raise
        return f"io stays enabled in {control}: others use it now"
    return f"io is off again in {control}"


def _spell(limits: Mapping[str, str]) -> str:
    return " ".join(f"{key}={limit}" for key, limit in limits.items())
