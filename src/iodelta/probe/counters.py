"""The machine's counters during a trial: disks, CPUs, pressure, interrupts, memory, and sampled clock speeds.

Sources: Documentation/admin-guide/iostats.rst, proc(5) for stat and vmstat, Documentation/accounting/psi.rst,
Documentation/core-api/irq. Counters that a kernel or machine does not have are absent, never 0.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
import numpy as np

from iodelta.errors import MachineError
from iodelta.machine import Machine
from iodelta.probe.devices import btrfs_of, interrupts, with_below
from iodelta.probe.sysfs import attribute
from iodelta.probe.topology import Target

SECTOR = 512
"""Bytes of the unit of diskstats, regardless of the device's block size."""

DISK_FIELDS = tuple(
    "read_ios read_merges read_bytes read_ms write_ios write_merges write_bytes write_ms in_flight busy_ms queue_ms "
    "discard_ios discard_merges discard_bytes discard_ms flush_ios flush_ms".split()
)
"""In the order of diskstats; the number in flight is not a counter. ``queue_ms`` sums over
requests."""

CPU_FIELDS = tuple(
    "user nice system idle iowait irq softirq steal guest guest_nice".split()
)

VM_COUNTERS = frozenset(
    "pgpgin pgpgout pswpin pswpout pgfault pgmajfault pgscan_direct pgscan_kswapd pgsteal_direct pgsteal_kswapd "
    "workingset_refault_file workingset_refault_anon workingset_activate_file allocstall_normal allocstall_movable "
    "compact_stall thp_fault_alloc drop_pagecache numa_miss numa_pages_migrated".split()
)
CGROUP = {
    "nr_throttled": ("throttles", 1.0),
    "throttled_usec": ("throttled_ms", 1e-3),
    "throttled_time": ("throttled_ms", 1e-6),
}
"""Lines of a control group's ``cpu.stat`` -> our counter, and the factor to its unit."""

VM_LEVELS = frozenset({"nr_dirty", "nr_writeback", "nr_free_pages"})

READ_STATS_COUNTERS = re.compile(
    r"(cumulative_)?(ios|wait)|count|ignored|vetoed|overflow"
)
"""The values of btrfs ``read_stats`` that only grow. Averages, ages and values that restart at a checkpoint are
levels."""


class Snapshot(msgspec.Struct, frozen=True):
    """All counters at one moment, by dotted name."""

    at: float
    """Seconds of the monotonic clock."""
    counters: dict[str, float]
    """Values that only grow, as the kernel counts them: a disk's ``bytes`` are still sectors here."""
    levels: dict[str, float]
    """Values that go up and down: the later one is reported, not a difference."""
    mhz: tuple[tuple[float, ...], ...] = ()
    """Clock of every CPU (policy) at each ``sample`` since the snapshot before."""


def _is_of_disk(name: str) -> bool:
    return name.startswith("disk.")


def _grown_within(
    windows: Sequence[tuple[float, float]],
    times: Sequence[float],
    values: Sequence[float],
) -> float:
    """Return the growth of a counter in these windows. Assumption: it grows evenly between its readings ``values`` at
    ``times``."""
    total = 0.0
    for begin, end in windows:
        total += float(np.interp(end, times, values) - np.interp(begin, times, values))
    return total


class Counters:
    """Counters of one machine for one target; the files to read are looked up once, here."""

    def __init__(self, machine: Machine, target: Target) -> None:
        """Raises MachineError when the target's devices have vanished."""
        self._machine = machine
        disks = dict.fromkeys((*with_below(machine, target.devices), *target.disks))
        self.disks = tuple(disks)
        """The target's devices and every member below them, by kernel name."""
        try:
            ticks = machine.run(["getconf", "CLK_TCK"]).text.strip()
        except (
            MachineError
        ):  # a machine may have only coreutils, and getconf is glibc's
            ticks = ""
        if not ticks.isdigit():
            self._tick_ms = 10.0
        else:
            self._tick_ms = 1000 / int(ticks)
        self._interrupts = {
            name: paths for name in disks if (paths := _interrupt_files(machine, name))
        }
        self._clocks = tuple(
            machine.glob("/sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq")
        )
        # Thermal throttle counts, one file of each core and package: all threads of one repeat the same number
        first_files: dict[str, dict[str, str]] = {"core": {}, "package": {}}
        for count_file in machine.glob(
            "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count"
        ):
            cpu = count_file.removesuffix("/thermal_throttle/core_throttle_count")
            package = attribute(machine, f"{cpu}/topology/physical_package_id") or ""
            core = attribute(machine, f"{cpu}/topology/core_id") or ""
            first_files["core"].setdefault(f"{package}/{core}", count_file)
            first_files["package"].setdefault(
                package, count_file.replace("core_throttle", "package_throttle")
            )
        self._throttled = {
            kind: tuple(files.values()) for kind, files in first_files.items() if files
        }
        self._cgroup = _cpu_stat_file(machine)
        # Devid -> its `read_stats` file, of a mirrored btrfs whose kernel has them
        if target.fstype != "btrfs":
            self._read_stats = {}
        else:
            filesystems = {btrfs_of(machine, name) for name in target.devices}
            files = {}
            for fsid in sorted(filter(None, filesystems)):
                for path in machine.glob(f"/sys/fs/btrfs/{fsid}/devinfo/*/read_stats"):
                    files[path.split("/")[-2]] = path
            self._read_stats = files
        self._mhz: list[tuple[float, ...]] = []
        self._notes: list[tuple[float, dict[str, float]]] = []

    def snapshot(self) -> Snapshot:
        """Read all counters; those that cannot be read are left out."""
        with self._machine.together("snapshot"):
            return self._snapshot()

    def _snapshot(self) -> Snapshot:
        counters: dict[str, float] = {}
        levels: dict[str, float] = {}
        counters.update(self._disk_counters())
        counters.update(self._cpu_counters())
        counters.update(self._pressure())
        for name, value in _pairs(self._text("/proc/vmstat")):
            if name in VM_COUNTERS:
                counters[f"vm.{name}"] = value
            elif name in VM_LEVELS:
                levels[f"vm.{name}"] = value
        interrupts = {}
        for disk, files in self._interrupts.items():
            counts = ",".join(self._text(path).strip() for path in files).split(",")
            interrupts[f"irq.{disk}"] = float(
                sum(int(count) for count in counts if count)
            )
        counters.update(interrupts)
        throttles = {}
        for kind, files in self._throttled.items():
            throttles[f"thermal.{kind}_throttles"] = sum(
                float(self._text(path) or 0) for path in files
            )
        if self._cgroup:
            for line, count in _pairs(self._text(self._cgroup)):
                if line in CGROUP:
                    counter, scale = CGROUP[line]
                    throttles[f"cgroup.{counter}"] = count * scale
        counters.update(throttles)
        for devid, path in self._read_stats.items():
            for name, value in parse_read_stats(self._text(path)).items():
                section = counters if READ_STATS_COUNTERS.fullmatch(name) else levels
                section[f"btrfs.devid{devid}.{name}"] = value
        clocks, self._mhz = tuple(self._mhz), []
        return Snapshot(time.monotonic(), counters, levels, clocks)

    def sample(self) -> None:
        """Note the clock of every CPU now: once a second while a trial runs, by whoever waits for it."""
        if self._clocks:
            with self._machine.together("clocks"):
                seen = tuple(
                    float(text) / 1000
                    for path in self._clocks
                    if (text := self._text(path).strip())
                )
        else:
            seen = tuple(
                map(
                    float,
                    re.findall(
                        r"^cpu MHz\s*: ([\d.]+)",
                        self._text("/proc/cpuinfo"),
                        re.MULTILINE,
                    ),
                )
            )
        if seen:
            self._mhz.append(seen)

    def difference(self, before: Snapshot, after: Snapshot) -> dict[str, float]:
        """Return what happened between two snapshots, by dotted name (``disk.sda.read_bytes``, ``cpu.steal_ms``).

        ``seconds`` is the time between them, ``cpu.mhz_min``, ``_mean`` and ``_max`` the clocks sampled in between.
        A counter that was reset is left out.
        """
        differences = {"seconds": after.at - before.at}
        for name, value in after.counters.items():
            if name in before.counters:
                grown = _grown(before.counters[name], value)
                if grown is not None:
                    differences[name] = grown * (
                        SECTOR if name.endswith("_bytes") else 1
                    )
        differences.update(after.levels)
        clocks = list(chain.from_iterable(after.mhz))
        if clocks:
            differences["cpu.mhz_min"], differences["cpu.mhz_max"] = (
                min(clocks),
                max(clocks),
            )
            differences["cpu.mhz_mean"] = sum(clocks) / len(clocks)
        return differences

    def note(self) -> None:
        """Note the disks' counters now, for a load that does not count all of its time."""
        self._notes.append((time.monotonic(), dict(self._disk_counters())))

    def within(
        self,
        guesses: Sequence[Sequence[tuple[float, float]]],
        before: Snapshot,
        after: Snapshot,
    ) -> dict[str, float]:
        """Return what the disks did in windows of the monotonic clock, interpolated between notes: the least over
        several ``guesses`` of the windows, so that nothing is attributed to others that may be the load's. Drops the notes."""
        points = [
            (before.at, before.counters),
            *self._notes,
            (after.at, after.counters),
        ]
        self._notes = []
        times = [at for at, _ in points]
        rates: dict[str, float] = {}
        for name in filter(_is_of_disk, before.counters):
            grown = [
                _grown(before.counters[name], counters.get(name, 0.0))
                for _, counters in points
            ]
            values = [value for value in grown if value is not None]
            if len(values) == len(points):
                did = [_grown_within(windows, times, values) for windows in guesses]
                rates[name] = round(min(did)) * (
                    SECTOR if name.endswith("_bytes") else 1
                )
        return rates

    def since(self, begin: float, after: Snapshot) -> dict[str, float]:
        """Return what the disks did from the first note after ``begin``, by the monotonic clock; empty without one.
        Drops the notes."""
        notes, self._notes = self._notes, []
        noted = next((counters for at, counters in notes if at >= begin), {})
        grown = {
            name: _grown(value, after.counters.get(name, 0.0))
            for name, value in noted.items()
        }
        return {
            name: value * (SECTOR if name.endswith("_bytes") else 1)
            for name, value in grown.items()
            if value is not None
        }

    def _text(self, path: str) -> str:
        try:
            return self._machine.read(path)
        except MachineError:
            return ""

    def _disk_counters(self) -> Iterator[tuple[str, float]]:
        for line in self._text("/proc/diskstats").splitlines():
            words = line.split()
            if len(words) > 2 and words[2] in self.disks:
                for field, word in zip(DISK_FIELDS, words[3:], strict=False):
                    if field != "in_flight":
                        yield f"disk.{words[2]}.{field}", float(word)

    def _cpu_counters(self) -> Iterator[tuple[str, float]]:
        for line in self._text("/proc/stat").splitlines():
            name, _, rest = line.partition(" ")
            if name == "cpu":
                for field, word in zip(CPU_FIELDS, rest.split(), strict=False):
                    yield f"cpu.{field}_ms", float(word) * self._tick_ms
            elif name in ("ctxt", "intr", "processes"):
                label = {
                    "ctxt": "context_switches",
                    "intr": "interrupts",
                    "processes": "forks",
                }[name]
                yield f"cpu.{label}", float(rest.split(maxsplit=1)[0])
            elif name == "softirq":
                # Total, then hi, timer, net_tx, net_rx, block, ...
                words = rest.split()
                yield "cpu.softirqs", float(words[0])
                yield "cpu.block_softirqs", float(words[5])

    def _pressure(self) -> Iterator[tuple[str, float]]:
        for resource in ("io", "cpu", "memory"):
            for line in self._text(f"/proc/pressure/{resource}").splitlines():
                kind, _, total = line.split(" ")[0], *line.rpartition("total=")[1:]
                yield f"pressure.{resource}_{kind}_ms", float(total) / 1000


def parse_read_stats(text: str) -> dict[str, float]:
    """Return the numbers of a btrfs ``read_stats`` file, in any layout: words before a number are its name.

    Two layouts are known, both of an out-of-tree series: 6.12 (``cumulative ios``, ``checkpoint wait``, ``age``...)
    and 6.18 (``ios``, ``health avg``, ``score``...). The first word of ``cumulative ios`` holds for the ``wait`` and
    ``avg`` after it as well.
    """
    stats: dict[str, float] = {}
    group, words = "", list[str]()
    for token in re.findall(r"[A-Za-z_]+|-?\d+(?:\.\d+)?", text):
        if token[0].isalpha() or token[0] == "_":
            words.append(token)
            continue
        if words:
            *first, last = words
            group = "_".join(first) or group
            stats[
                f"{group}_{last}" if group and last in ("ios", "wait", "avg") else last
            ] = float(token)
        words = []
    return stats


def _grown(before: float, after: float) -> float | None:
    """Return the growth of a counter that may have wrapped; None when it was reset.

    Millisecond fields of diskstats are 32 bits wide everywhere, the others as wide as the kernel's long. A value that
    falls from the lower half of its range was not wrapped but reset: the device is new.
    """
    if after >= before:
        return after - before
    for bits in (32, 64):
        top = float(1 << bits)
        if top / 2 <= before < top:
            return after + top - before
    return None


def _pairs(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        yield name, float(value)


def _interrupt_files(machine: Machine, name: str) -> tuple[str, ...]:
    counts_of = (
        f"/sys/kernel/irq/{number}/per_cpu_count"
        for number in interrupts(machine, name)
    )
    return tuple(file for file in counts_of if attribute(machine, file) is not None)


def _cpu_stat_file(machine: Machine) -> str | None:
    """``cpu.stat`` of our own control group (v2, else the v1 cpu controller): shows whether a quota throttles us."""
    for line in (attribute(machine, "/proc/self/cgroup") or "").splitlines():
        _, controllers, below = line.split(":", 2)
        if not controllers:
            places = (f"/sys/fs/cgroup{below}", f"/sys/fs/cgroup/unified{below}")
        elif "cpu" in controllers.split(","):
            places = (
                f"/sys/fs/cgroup/{controllers}{below}",
                f"/sys/fs/cgroup/cpu{below}",
            )
        else:
            continue
        for place in places:
            file = f"{place.rstrip('/')}/cpu.stat"
            if "throttled" in (attribute(machine, file) or ""):
                return file
    return None
