"""Drop page cache, dentries and inodes before a trial. Source: Documentation/admin-guide/sysctl/vm.rst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iodelta.errors import KnobError
from iodelta.knob.base import EMPTY, Transient, refuse
from iodelta.knob.files import needs_write, put
from iodelta.knob.shell import Script, Shell, Word
from iodelta.machine import Machine
from iodelta.probe.sysfs import attribute_text
from iodelta.probe.topology import Target

DROP = "/proc/sys/vm/drop_caches"
COUNTERS = {
    "1": ("drop_pagecache",),
    "2": ("drop_slab",),
    "3": ("drop_pagecache", "drop_slab"),
}


class DropCaches(Transient):
    """``memory.drop_caches``: an action before each trial, with nothing to restore.

    Only clean pages can be dropped, so the target is written back first. Caches below the block layer stay as they are
    (bcache, dm-cache, a controller's memory), and so does the page cache of another machine that serves the disk.
    """

    names = ("memory.drop_caches",)
    harmless = True
    nothing_to_restore = "an action, so there is nothing to restore"

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._before: dict[str, int] = {}

    def available(self) -> str | None:
        return needs_write(self.machine, DROP)

    def allowed(self) -> tuple[str, ...]:
        return tuple(COUNTERS)

    def read(self) -> str:
        return ""

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        if value not in COUNTERS:
            raise refuse(
                self.name, value, "1 (page cache), 2 (dentries and inodes), 3 (both)"
            )

    def apply(self, value: str) -> None:
        self._before = self._count(value)
        # -f writes back the whole filesystem, including its metadata.
        whole = () if self.target.kind == "block" else ("-f",)
        done = self.machine.run(["sync", *whole, "--", self.target.real_path])
        if done.returncode != 0:
            raise KnobError(
                f"cannot be written back before its cache is dropped: {done.error_text}",
                place=self.target.path,
                remedy="is the device still there?",
            )
        put(self.machine, DROP, value, "allowed: 1, 2, 3, as root")

    def verify(self, value: str) -> None:
        for name, count in self._count(value).items():
            if count <= self._before.get(name, 0):
                raise KnobError(
                    f"wrote {value!r}, but {name} in /proc/vmstat is still {count}: nothing was dropped",
                    place=DROP,
                    remedy="a container's kernel may ignore the write: leave memory.drop_caches out",
                )

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script:
        drop: Word = Shell(">/proc/sys/vm/drop_caches")
        return Script(
            {value: ((Shell("sync; printf '%s\\n'"), value, drop),) for value in values}
        )

    def _count(self, value: str) -> dict[str, int]:
        """Counter in /proc/vmstat -> how often the kernel has dropped what ``value`` asks for."""
        text = attribute_text(self.machine, "/proc/vmstat")
        counts: dict[str, int] = {}
        for line in text.splitlines():
            name, count = line.split()
            if name in COUNTERS[value]:
                counts[name] = int(count)
        return counts
