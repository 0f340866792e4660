"""Settings of a disk's request queue. Source: Documentation/ABI/stable/sysfs-block, block/blk-sysfs.c, Linux 6.18.

A bio-based device (md, most of dm, bcache) has no request queue: the queues of its members are set, each of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import ClassVar

from iodelta.errors import RequestError
from iodelta.knob.base import (
    EMPTY,
    NOT_ONLY_IO,
    KnobInfo,
    Saved,
    check_text,
    describe,
    refuse,
    whole,
)
from iodelta.knob.files import FileKnob, ResettingKnob, active, choices, in_all, text_of
from iodelta.knob.shell import Line, NoScript, Script, Shell, in_queues
from iodelta.machine import Machine
from iodelta.probe.devices import btrfs_of, device
from iodelta.probe.sysfs import attribute, sysfs_name
from iodelta.probe.topology import Target

TUNABLES = {
    "mq-deadline": "async_depth fifo_batch front_merges prio_aging_expire read_expire write_expire writes_starved",
    "kyber": "read_lat_nsec write_lat_nsec",
    "bfq": "back_seek_max back_seek_penalty fifo_expire_async fifo_expire_sync low_latency max_budget slice_idle"
    " slice_idle_us strict_guarantees timeout_sync",
}
"""Of the schedulers in Linux 6.18, so that a tunable can be checked before its scheduler is active."""


class QueueKnob(FileKnob):
    """A file below ``queue/`` of every disk with a request queue that the target's I/O reaches."""

    harmless = True

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._disks = queues(machine, target.disks)

    @property
    def file(self) -> str:
        return _file_of(self.name)

    @classmethod
    def script_files(cls, name: str) -> Line | NoScript:
        return (in_queues(_file_of(name)),)

    def disks(self) -> tuple[str, ...]:
        return self._disks

    def paths(self) -> tuple[str, ...]:
        return tuple(f"{queue_of(disk)}/{self.file}" for disk in self.disks())

    def absent(self) -> str:
        if not self.target.disks:
            return f"needs a block device: {self.target.reason}"
        return f"the kernel offers no queue/{self.file} for {', '.join(self.disks())}"


class QueueAttribute(QueueKnob):
    """A setting with few values. Polling needs queues that the driver was loaded with (``nvme.poll_queues=``)."""

    values: ClassVar[dict[str, tuple[str, ...]]] = {
        "block.rq_affinity": ("0", "1", "2"),
        "block.nomerges": ("0", "1", "2"),
        "block.io_poll": ("0", "1"),
    }
    names = tuple(values)

    def allowed(self) -> tuple[str, ...]:
        return self.values[self.name]


class ReadAhead(QueueKnob):
    """How much is read ahead of a sequential reader: by the device itself, members are not asked."""

    names = ("block.read_ahead_kb",)

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._disks = target.disks
        # Files on btrfs are read ahead by the filesystem's own setting, whatever its members say.
        files = target.kind != "block" and target.fstype == "btrfs" and target.devices
        self._filesystem = btrfs_of(machine, target.devices[0]) if files else None

    def disks(self) -> tuple[str, ...]:
        if self._filesystem:
            return ()
        return self._disks

    def paths(self) -> tuple[str, ...]:
        if not self._filesystem:
            return super().paths()
        return (f"/sys/fs/btrfs/{self._filesystem}/bdi/read_ahead_kb",)

    @classmethod
    def script_files(cls, name: str) -> Line:
        return (
            Shell(
                '$(if [ -n "$fsid" ] && [ ! -b "$real" ]; then '
                'echo "/sys/fs/btrfs/$fsid/bdi/read_ahead_kb"; else in_disks queue/read_ahead_kb; fi)'
            ),
        )

    def allowed(self) -> str:
        return f"KiB in multiples of {self._page()} (the page size), 0 is off"

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        if not whole(value) or int(value) % self._page():
            raise refuse(self.name, value, self.allowed())

    def _page(self) -> int:
        return int(self.machine.run(["getconf", "PAGESIZE"]).text) // 1024


class WritebackThrottle(QueueKnob):
    """The read latency that buffered writes are held back for.

    Once written, it counts as set by hand: bfq no longer switches it off by itself, also after the number was
    restored. Only a reboot brings that back (``WBT_STATE_ON_DEFAULT`` in block/blk-wbt.c).
    """

    names = ("block.wbt_lat_usec",)

    def absent(self) -> str:
        if not self.target.disks:
            return super().absent()
        return f"{super().absent()} (CONFIG_BLK_WBT_MQ)"

    def allowed(self) -> str:
        return "microseconds; 0 is off, -1 the default for the disk"

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        if not (whole(value) or value == "-1"):
            raise refuse(self.name, value, self.allowed())

    def same(self, path: str, wanted: str, present: str) -> bool:
        if wanted == "-1":
            rotating = (
                attribute(self.machine, path.replace("wbt_lat_usec", "rotational"))
                == "1"
            )
            wanted = "75000" if rotating else "2000"  # wbt_default_latency_nsec()
        return wanted == present


class NrRequests(QueueKnob, ResettingKnob):
    """How many requests the queue holds. A change resets mq-deadline's ``async_depth``."""

    names = ("block.nr_requests",)

    @classmethod
    def covers(cls, name: str, other: str) -> bool:
        return other == "block.iosched.async_depth"

    @classmethod
    def script_resets(cls, name: str) -> Line:
        return (in_queues("iosched/async_depth"),)

    def resets(self, path: str) -> tuple[str, ...]:
        return tuple(
            self.machine.glob(path.replace("nr_requests", "iosched/async_depth"))
        )

    def allowed(self) -> str:
        return "a whole number from 4 to what the queue holds (2048 at most under a scheduler)"

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        # BLKDEV_MIN_RQ: the kernel silently makes 4 of less.
        if not whole(value) or int(value) < 4:
            raise refuse(self.name, value, self.allowed())


class Scheduler(QueueKnob, ResettingKnob):
    """The I/O scheduler. A switch resets its tunables and ``nr_requests``, and bfq also writeback throttling."""

    names = ("block.scheduler",)

    @classmethod
    def covers(cls, name: str, other: str) -> bool:
        return other == "block.nr_requests" or other.startswith("block.iosched.")

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script:
        return Script(
            keep=(("keep_scheduler",),),
            values={value: (("scheduler", value),) for value in values},
            release=(("scheduler_back",),),
        )

    @classmethod
    def script_resets(cls, name: str) -> Line:
        return (
            in_queues("nr_requests"),
            in_queues("iosched/*"),
            in_queues("wbt_lat_usec"),
        )

    def resets(self, path: str) -> tuple[str, ...]:
        queue = path.removesuffix("/scheduler")
        # nr_requests first, because it in turn resets mq-deadline's async_depth.
        return (f"{queue}/nr_requests", *self.machine.glob(f"{queue}/iosched/*"))

    def also(self) -> tuple[str, ...]:
        return (
            *super().also(),
            *(f"{queue_of(disk)}/wbt_lat_usec" for disk in self.disks()),
        )

    def allowed(self) -> tuple[str, ...]:
        return in_all(
            [choices(text_of(self.machine, path)) or ("none",) for path in self.paths()]
        )

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        check_text(self.name, value)
        if value not in self.allowed():
            allowed = describe(self.allowed())
            raise RequestError(
                f"{value!r} cannot be set",
                place=self.name,
                remedy=f"allowed: {allowed}; a scheduler built as a module is listed after `modprobe {value}`",
            )


class SchedulerTunable(QueueKnob):
    """A tunable of the active scheduler; it exists only while that scheduler is active."""

    names = ("block.iosched.*",)

    @classmethod
    def catalogue(cls, machine: Machine, target: Target) -> tuple[KnobInfo, ...]:
        disks = queues(machine, target.disks)[:1]
        paths = chain.from_iterable(
            machine.glob(f"{queue_of(disk)}/iosched/*") for disk in disks
        )
        names = [path.rsplit("/", 1)[1] for path in paths]
        return tuple(
            cls(machine, target, f"block.iosched.{name}").info()
            for name in names or ["*"]
        )

    @property
    def tunable(self) -> str:
        return self.name.removeprefix("block.iosched.")

    @classmethod
    def danger(cls, name: str) -> str:
        return "" if _is_tunable(name) else NOT_ONLY_IO

    @classmethod
    def script_files(cls, name: str) -> Line | NoScript:
        if _is_tunable(name):
            return super().script_files(name)
        return NoScript("no kernel file is known by this name")

    def available(self) -> str | None:
        if not self.disks():
            return self.absent()
        if self.machine.glob(self.paths()[0]):
            return super().available()
        if any(self.tunable in names.split() for names in TUNABLES.values()):
            return None
        here = " | ".join(self._schedulers())
        if self.tunable == "*":
            return f"the active scheduler {here} has no tunables; others have, for a variant that sets block.scheduler too"
        return f"no known scheduler has it, nor has the active one, {here}"

    def allowed(self) -> str:
        return "a whole number that the scheduler takes"

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        if not whole(value):
            raise refuse(self.name, value, self.allowed())
        for scheduler in (
            [beside["block.scheduler"]]
            if "block.scheduler" in beside
            else self._schedulers()
        ):
            names = TUNABLES.get(scheduler, "").split()
            present = (
                self.machine.glob(self.paths()[0]) and scheduler in self._schedulers()
            )
            if self.tunable not in names and not present:
                raise RequestError(
                    f"the scheduler {scheduler} has no such tunable",
                    place=self.name,
                    remedy=f"it has {', '.join(names)}"
                    if names
                    else "set block.scheduler in the same variant",
                )

    def save(self, values: Sequence[str] = ()) -> Saved:
        # Without the tunable there is nothing to put back: it comes and goes with its scheduler.
        saved = (
            super().save(values) if all(map(self.machine.glob, self.paths())) else None
        )
        return saved or self.record(())

    def _schedulers(self) -> tuple[str, ...]:
        texts = (
            attribute(self.machine, f"{queue_of(disk)}/scheduler")
            for disk in self.disks()
        )
        return tuple(dict.fromkeys(active(text) for text in texts if text))


def _file_of(name: str) -> str:
    return name.removeprefix("block.").replace(".", "/")


def _is_tunable(name: str) -> bool:
    """Whether a name stays within ``iosched/``: one with ``..`` in it would name any file of the disk."""
    return bool(re.fullmatch(r"block\.iosched\.\w+", name, re.ASCII))


def queue_of(disk: str) -> str:
    """sysfs directory of a disk's request queue."""
    return f"/sys/block/{sysfs_name(disk)}/queue"


def queues(machine: Machine, disks: tuple[str, ...]) -> tuple[str, ...]:
    """The disks with a request queue of their own that I/O to ``disks`` reaches first."""
    found: dict[str, None] = {}
    for disk in disks:
        # None without brackets: bio-based.
        own = "[" in (attribute(machine, f"{queue_of(disk)}/scheduler") or "")
        lower = (
            ()
            if own
            else tuple(
                device(machine, name).disk for name in device(machine, disk).slaves
            )
        )
        found |= dict.fromkeys(queues(machine, lower) if lower else (disk,))
    return tuple(found)
