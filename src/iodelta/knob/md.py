"""Settings of a Linux md array. Source: Documentation/admin-guide/md.rst."""

from __future__ import annotations

from iodelta.knob.base import whole
from iodelta.knob.files import FileKnob
from iodelta.knob.shell import Line, in_disks
from iodelta.probe.devices import with_below
from iodelta.probe.sysfs import sysfs_name


class StripeCacheSize(FileKnob):
    """Stripe cache, in pages per member, of every RAID 4/5/6 array at or below the target."""

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

    def takes(self, value: str) -> bool:
        return whole(value) and 17 <= int(value) <= 32768


def _cache_of(name: str) -> str:
    return f"/sys/block/{sysfs_name(name)}/md/stripe_cache_size"
