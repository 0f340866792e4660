"""Settings of a Linux md array. Source: Documentation/admin-guide/md.rst."""

from __future__ import annotations

from collections.abc import Mapping

from iodelta.knob.base import EMPTY, refuse, whole
from iodelta.knob.files import FileKnob
from iodelta.knob.shell import Line, in_disks
from iodelta.probe.devices import with_below
from iodelta.probe.sysfs import sysfs_name


class StripeCacheSize(FileKnob):
    """Stripe cache of every RAID 4/5/6 array that the target is or lies on, in pages per member."""

    names = ("md.stripe_cache_size",)
    harmless = True

    def disks(self) -> tuple[str, ...]:
        devices = with_below(self.machine, self.target.disks)
        return tuple(name for name in devices if self.machine.glob(_cache_of(name)))

    def paths(self) -> tuple[str, ...]:
        return tuple(_cache_of(name) for name in self.disks())

    @classmethod
    def script_files(cls, name: str) -> Line:
        return (in_disks("md/stripe_cache_size"),)

    def absent(self) -> str:
        return (
            f"needs an md array of RAID level 4, 5 or 6: {self.target.path} is on none"
        )

    def allowed(self) -> str:
        return "a whole number from 17 to 32768"

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        if not (whole(value) and 17 <= int(value) <= 32768):
            raise refuse(self.name, value, self.allowed())


def _cache_of(name: str) -> str:
    return f"/sys/block/{sysfs_name(name)}/md/stripe_cache_size"
