"""The settings of variants and conditions in path mode: a kernel and its boot, a guest, and files written before a
cell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from iodelta.errors import RequestError

SCHEDULERS = {"mq-deadline": "mq-deadline", "kyber": "kyber-iosched", "bfq": "bfq"}
"""I/O scheduler -> the module that has it, where it is not built in."""

KNOBS = (
    *(
        "kernel",
        "kernel.cmdline",
        "vm.memory",
        "vm.devices",
        "null_blk.NAME",
        "block.NAME",
        "block.iosched.NAME",
    ),
    *("sysctl.NAME", "sysfs:PATH", "fio.NAME"),
)


class Settings(msgspec.Struct, frozen=True):
    """Knobs sorted by when they take effect."""

    kernel: str = ""
    cmdline: str = ""
    memory: int = 0
    """MiB; 0 for what the target needs."""
    devices: int = 0
    """null_blk disks for two CPUs: 1 for both, or 2, one each; 0: not set."""
    disk: dict[str, str] = {}
    """Attributes of null_blk in configfs."""
    queue: dict[str, str] = {}
    """Files below the queue directory of the target's block device."""
    files: dict[str, str] = {}
    """Absolute paths in /sys and /proc/sys."""

    def under(self, other: Settings) -> Settings:
        """These settings, overridden by ``other``: a cell's condition, overridden by the variant."""
        return Settings(
            kernel=other.kernel or self.kernel,
            cmdline=" ".join(filter(None, (self.cmdline, other.cmdline))),
            memory=other.memory or self.memory,
            devices=other.devices or self.devices,
            disk={**self.disk, **other.disk},
            queue={**self.queue, **other.queue},
            files={**self.files, **other.files},
        )


def settings(knobs: Mapping[str, str], place: str) -> Settings:
    """``knobs`` as settings. Raises RequestError for one that path mode does not have."""
    one: dict[str, Any] = {}
    disk: dict[str, str] = {}
    queue: dict[str, str] = {}
    files: dict[str, str] = {}
    for name, value in knobs.items():
        head, _, rest = name.partition(".")
        if name in ("kernel", "kernel.cmdline"):
            one[rest or name] = value
        elif name == "vm.memory":
            if not re.fullmatch(r"\d+", value) or not 128 <= int(value) <= 65536:
                raise RequestError(
                    f"vm.memory is MiB from 128 on, not {value!r}", place=place
                )
            one["memory"] = int(value)
        elif name == "vm.devices":
            if value not in ("1", "2"):
                raise RequestError(f"vm.devices is 1 or 2, not {value!r}", place=place)
            one["devices"] = int(value)
        elif head == "null_blk" and re.fullmatch(r"[a-z_]+", rest):
            if not re.fullmatch(r"[\w.-]+", value):
                raise RequestError(f"null_blk takes no {rest}={value!r}", place=place)
            disk[rest] = value
        elif head == "block" and re.fullmatch(r"(iosched\.)?[a-z_]+", rest):
            queue[rest.replace("iosched.", "iosched/")] = value
        elif head == "sysctl" and re.fullmatch(r"[\w.-]+", rest):
            files["/proc/sys/" + rest.replace(".", "/")] = value
        elif name.startswith("sysfs:/sys/") and ".." not in name:
            files[name.removeprefix("sysfs:")] = value
        else:
            raise RequestError(
                f"path mode cannot set {name!r}",
                place=place,
                remedy=f"it can set {', '.join(KNOBS)} (clock = wall: all)",
            )
    return Settings(**one, disk=disk, queue=queue, files=files)


def modules_for(all_settings: list[Settings]) -> list[str]:
    """Return the modules of the schedulers in these settings."""
    wanted = {each.queue.get("scheduler", "") for each in all_settings}
    return [module for scheduler, module in SCHEDULERS.items() if scheduler in wanted]
