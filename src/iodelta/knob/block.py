"""Settings of a disk's request queue. Source: Documentation/ABI/stable/sysfs-block, block/blk-sysfs.c, Linux 6.18.

A bio-based device (md, most of dm, bcache) has no request queue, so each of its members' queues is set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from iodelta.errors import RequestError
from iodelta.knob.base import (
    EMPTY,
    NOT_ONLY_IO,
    KnobInfo,
    Saved,
    check_text,
    describe,
    whole,
)
from iodelta.knob.files import FileKnob, ResettingKnob, active, choices, in_all, text_of
from iodelta.knob.shell import Line, NoScript, Script, Shell, in_queues
from iodelta.machine import Machine
from iodelta.probe.devices import btrfs_of, device
from iodelta.probe.sysfs import attribute, attribute_text, sysfs_name
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
    """Read-ahead of sequential reads. The setting of the device itself counts, not that of its members."""

    names = ("block.read_ahead_kb",)

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._disks = target.disks
        self._filesystem: str | None = None
        # For files on btrfs the filesystem's own setting counts, not that of its devices.
        on_btrfs = target.kind != "block" and target.fstype == "btrfs"
        if on_btrfs and target.devices:
            self._filesystem = btrfs_of(machine, target.devices[0])

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

    def takes(self, value: str) -> bool:
        return whole(value) and int(value) % self._page() == 0

    def _page(self) -> int:
        return int(self.machine.run(["getconf", "PAGESIZE"]).text) // 1024


class WritebackThrottle(QueueKnob):
    """The read latency above which the kernel throttles buffered writes.

    After any write the kernel treats it as set by the user: bfq no longer disables it, even once the original number is
    restored. Only a reboot undoes that (``WBT_STATE_ON_DEFAULT`` in block/blk-wbt.c).
    """

    names = ("block.wbt_lat_usec",)

    def absent(self) -> str:
        if not self.target.disks:
            return super().absent()
        return f"{super().absent()} (CONFIG_BLK_WBT_MQ)"

    def allowed(self) -> str:
        return "microseconds; 0 is off, -1 the default for the disk"

    def takes(self, value: str) -> bool:
        return whole(value) or value == "-1"

    def same(self, path: str, wanted: str, present: str) -> bool:
        if wanted == "-1":
            return present == self._default(path)
        return present == wanted

    def _default(self, path: str) -> str:
        """Return what the kernel shows after -1 was written (``wbt_default_latency_nsec`` in block/blk-wbt.c)."""
        rotational = path.replace("wbt_lat_usec", "rotational")
        if attribute(self.machine, rotational) == "1":
            return "75000"
        return "2000"


class NrRequests(QueueKnob, ResettingKnob):
    """Size of the request queue. A change resets mq-deadline's ``async_depth``."""

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

    def takes(self, value: str) -> bool:
        # BLKDEV_MIN_RQ: the kernel silently raises a smaller number to 4.
        return whole(value) and int(value) >= 4


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
        throttles = [f"{queue_of(disk)}/wbt_lat_usec" for disk in self.disks()]
        return (*super().also(), *throttles)

    def allowed(self) -> tuple[str, ...]:
        offers: list[tuple[str, ...]] = []
        for path in self.paths():
            schedulers = choices(text_of(self.machine, path))
            # A bio-based device shows `none` without brackets.
            offers.append(schedulers or ("none",))
        return in_all(offers)

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
        names: list[str] = []
        for disk in queues(machine, target.disks)[:1]:
            paths = machine.glob(f"{queue_of(disk)}/iosched/*")
            names += [path.rsplit("/", 1)[1] for path in paths]
        tunables = [
            cls(machine, target, f"block.iosched.{name}") for name in names or ["*"]
        ]
        return tuple(tunable.info() for tunable in tunables)

    @property
    def tunable(self) -> str:
        return self.name.removeprefix("block.iosched.")

    @classmethod
    def danger(cls, name: str) -> str:
        if _is_tunable(name):
            return ""
        return NOT_ONLY_IO

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
        # A variant may set its scheduler too.
        all_tunables = " ".join(TUNABLES.values()).split()
        if self.tunable in all_tunables:
            return None
        schedulers = " | ".join(self._schedulers())
        if self.tunable == "*":
            return (
                f"the active scheduler {schedulers} has no tunables; "
                "others have, for a variant that sets block.scheduler too"
            )
        return f"neither a known scheduler nor the active one, {schedulers}, has it"

    def allowed(self) -> str:
        return "a whole number that the scheduler takes"

    def takes(self, value: str) -> bool:
        return whole(value)

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        super().check(value, beside)
        schedulers = self._schedulers()
        if "block.scheduler" in beside:
            schedulers = (beside["block.scheduler"],)
        for scheduler in schedulers:
            self._check_tunable_of(scheduler)

    def _check_tunable_of(self, scheduler: str) -> None:
        """Raises RequestError if the scheduler lacks the tunable."""
        tunables = TUNABLES.get(scheduler, "").split()
        if self.tunable in tunables:
            return
        # A scheduler of another kernel version: its files show its tunables if it is active.
        if scheduler in self._schedulers() and self.machine.glob(self.paths()[0]):
            return
        remedy = "set block.scheduler in the same variant"
        if tunables:
            remedy = f"it has {', '.join(tunables)}"
        raise RequestError(
            f"the scheduler {scheduler} has no such tunable",
            place=self.name,
            remedy=remedy,
        )

    def save(self, values: Sequence[str] = ()) -> Saved:
        if all(map(self.machine.glob, self.paths())):
            return super().save(values)
        # A tunable that does not exist now needs no restoring: it comes and goes with its scheduler.
        return self.record(())

    def _schedulers(self) -> tuple[str, ...]:
        """Return the active schedulers of the disks, each once."""
        schedulers: dict[str, None] = {}
        for disk in self.disks():
            text = attribute_text(self.machine, f"{queue_of(disk)}/scheduler")
            schedulers[active(text)] = None
        return tuple(filter(None, schedulers))


def _file_of(name: str) -> str:
    return name.removeprefix("block.").replace(".", "/")


def _is_tunable(name: str) -> bool:
    """Return whether a name stays within ``iosched/``: with ``..`` it could name any file of the disk."""
    return bool(re.fullmatch(r"block\.iosched\.\w+", name, re.ASCII))


def queue_of(disk: str) -> str:
    """sysfs directory of a disk's request queue."""
    return f"/sys/block/{sysfs_name(disk)}/queue"


def queues(machine: Machine, disks: tuple[str, ...]) -> tuple[str, ...]:
    """Return the uppermost disks with a request queue below ``disks``: a bio-based device stands for its members."""
    with_queue: list[str] = []
    for disk in disks:
        with_queue += _queues_of(machine, disk)
    return tuple(dict.fromkeys(with_queue))


def _queues_of(machine: Machine, disk: str) -> tuple[str, ...]:
    if _has_queue(machine, disk):
        return (disk,)
    # A device without members that shows no scheduler has no other queue either.
    return queues(machine, _members(machine, disk)) or (disk,)


def _has_queue(machine: Machine, disk: str) -> bool:
    """Return whether it has a request queue: a bio-based device shows ``none`` without brackets."""
    return "[" in attribute_text(machine, f"{queue_of(disk)}/scheduler")


def _members(machine: Machine, disk: str) -> tuple[str, ...]:
    """Return the whole disks directly below a device."""
    slaves = device(machine, disk).slaves
    return tuple(device(machine, name).disk for name in slaves)
