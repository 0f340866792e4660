"""Settings of a disk's request queue. Source: Documentation/ABI/stable/sysfs-block, block/blk-sysfs.c, Linux 6.18.

A bio-based device (md, most of dm, bcache) has no request queue, so each of its members' queues is set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from iodelta.decoding import active
from iodelta.errors import KnobError, RequestError
from iodelta.knob.affinity import Cpus
from iodelta.knob.base import (
    EMPTY,
    NOT_ONLY_IO,
    KnobInfo,
    Saved,
    check_text,
    describe,
    whole,
)
from iodelta.knob.files import FileKnob, ResettingKnob, choices, in_all, text_of
from iodelta.knob.shell import Line, NoScript, Script, Shell, in_disks, in_queues
from iodelta.machine import Machine
from iodelta.probe.devices import btrfs_of, device, interrupts, with_below
from iodelta.probe.queues import numbers, spelled
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
        if attribute(self.machine, path.replace("wbt_lat_usec", "rotational")) == "1":
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
            tunables = TUNABLES.get(scheduler, "").split()
            # A scheduler of another kernel version: its files show its tunables if it is active.
            if self.tunable not in tunables and not (
                scheduler in self._schedulers() and self.machine.glob(self.paths()[0])
            ):
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
    if "[" in attribute_text(machine, f"{queue_of(disk)}/scheduler"):
        return (disk,)
    # A device without members that shows no scheduler has no other queue either.
    return queues(machine, _members(machine, disk)) or (disk,)


def _members(machine: Machine, disk: str) -> tuple[str, ...]:
    """Return the whole disks directly below a device."""
    slaves = device(machine, disk).slaves
    return tuple(device(machine, name).disk for name in slaves)


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


class ReadPolicy(FileKnob):
    """``btrfs.read_policy`` of the filesystem that holds the target."""

    names = ("btrfs.read_policy",)
    harmless = True

    def paths(self) -> tuple[str, ...]:
        for name in self.target.devices:
            filesystem = btrfs_of(self.machine, name)
            if filesystem:
                return (f"/sys/fs/btrfs/{filesystem}/read_policy",)
        return ()

    @classmethod
    def script_files(cls, name: str) -> Line:
        return (Shell('"/sys/fs/btrfs/$fsid/read_policy"'),)

    def absent(self) -> str:
        if self.paths():
            return "this kernel's btrfs has no read_policy (Linux 5.12 or later has)"
        return f"needs a mounted btrfs: {self.target.path} is on {self.target.fstype or 'no filesystem'}"

    def allowed(self) -> tuple[str, ...]:
        text = "".join(text_of(self.machine, path) for path in self.paths())
        return tuple(policy.partition(":")[0] for policy in choices(text))

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        check_text(self.name, value)
        policy, colon, parameter = value.partition(":")
        if policy not in self.allowed() or (colon and not parameter):
            release = attribute(self.machine, "/proc/sys/kernel/osrelease")
            raise RequestError(
                f"{value!r} cannot be set: Linux {release} here offers {', '.join(self.allowed())}",
                place=self.name,
                remedy="others need a btrfs built with CONFIG_BTRFS_EXPERIMENTAL=y (6.13 or later), or a patched one",
            )

    def same(self, path: str, wanted: str, present: str) -> bool:
        if ":" in wanted:
            return present == wanted
        return present.partition(":")[0] == wanted

    def save(self, values: Sequence[str] = ()) -> Saved:
        saved = super().save(values)
        path, present = saved.values[0]
        originals: list[tuple[str, str]] = []
        # Inactive policies keep their parameters, so these are restored too: first, and the active policy last.
        for choice in choices(text_of(self.machine, path)):
            if ":" in choice and choice != present:
                originals.append((path, choice))
        originals.append((path, present))
        return replace(saved, values=tuple(originals))

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        path, present = saved.values[-1]
        shown = choices(attribute_text(machine, path))
        texts = {text for _, text in saved.values}
        # Where no parameter was changed, it is enough to write the active policy.
        if texts.issubset(shown):
            saved = replace(saved, values=((path, present),))
        return super().restore(machine, saved)


class IrqAffinity(FileKnob):
    """``irq.affinity``: the CPUs that may handle the interrupts of the target's controllers, written like ``cpus``.

    Nobody can move managed interrupts, which the kernel itself spreads over the CPUs (most NVMe and virtio queues).
    """

    names = ("irq.affinity",)
    harmless = True

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._cpus = Cpus(machine, target, "cpus")

    def paths(self) -> tuple[str, ...]:
        shared: dict[str, None] = {}
        # Disks on one controller share its interrupts.
        for disk in self.target.disks:
            shared.update(dict.fromkeys(interrupts(self.machine, disk)))
        return tuple(f"/proc/irq/{number}/smp_affinity_list" for number in shared)

    @classmethod
    def script_files(cls, name: str) -> NoScript:
        return NoScript("which interrupts are the target's depends on its driver")

    def absent(self) -> str:
        disks = ", ".join(self.target.disks)
        if disks:
            return f"{disks} has no interrupts of its own"
        return f"needs a disk: {self.target.reason}"

    def allowed(self) -> str:
        return self._cpus.allowed()

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        self._cpus.check(value)

    def apply(self, value: str) -> None:
        try:
            super().apply(spelled(self._cpus.named(value)))
        except KnobError as error:
            raise KnobError(
                error.what,
                place=error.place,
                remedy="the kernel spreads these interrupts itself (managed); bind the load instead: cpus",
            ) from error

    def verify(self, value: str) -> None:
        super().verify(spelled(self._cpus.named(value)))

    def same(self, path: str, wanted: str, present: str) -> bool:
        return numbers(wanted) == numbers(present)
