"""Caches below the target: a second read of an offset is fast, and dropping the page cache does not empty them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from iodelta.machine import Machine
from iodelta.probe.devices import with_below
from iodelta.probe.sysfs import attribute, sysfs_name
from iodelta.probe.topology import Target
from iodelta.trial import Finding
from iodelta.vm.boot import EMULATED

DM_CACHES = ("cache", "writecache")
"""Types of device-mapper targets that keep blocks of a slower device on a quicker one."""


class CacheBelow(msgspec.Struct, frozen=True):
    """One caching device: its kernel name, kind and mode as the kernel prints it."""

    device: str
    kind: str
    mode: str = ""


def caches_below(machine: Machine, target: Target) -> tuple[CacheBelow, ...]:
    """Return every bcache and caching device-mapper target that I/O to ``target`` goes through, nearest first."""
    caches = (_cache(machine, name) for name in with_below(machine, target.devices))
    return tuple(cache for cache in caches if cache is not None)


def cache_findings(machine: Machine, target: Target) -> tuple[Finding, ...]:
    """Return a finding for each cache below."""
    return tuple(
        Finding(
            "cache.below",
            "warning",
            cache.device,
            f"{cache.kind} {cache.device}{f' ({cache.mode})' if cache.mode else ''} lies below the target: offsets read before "
            "come from its quick device, regardless of which variant reads them again",
            "keep fresh offsets for every trial (the default), or detach the cache; drop_caches does not empty it",
        )
        for cache in caches_below(machine, target)
    )


def _cache(machine: Machine, name: str) -> CacheBelow | None:
    base = f"/sys/class/block/{sysfs_name(name)}"
    mode = attribute(machine, f"{base}/bcache/cache_mode")
    state = attribute(machine, f"{base}/bcache/state") or ""
    if mode is not None:
        # "no cache": registered as a backing device, and nothing attached to it.
        if state == "no cache":
            return None
        return CacheBelow(
            name, "bcache", mode.partition("[")[2].partition("]")[0] or mode
        )
    mapped = attribute(machine, f"{base}/dm/name")
    if mapped is None:
        return None
    table = machine.run(["dmsetup", "table", "--", mapped], env={"LC_ALL": "C"}).text
    kinds = [
        words[2]
        for line in table.splitlines()
        if len(words := line.split()) > 2 and words[2] in DM_CACHES
    ]
    if not kinds:
        return None
    return CacheBelow(name, f"dm-{kinds[0]}")


def emulation_findings(machine: Machine) -> Iterator[Finding]:
    """Yield what qemu only emulates: the CPU (our model and ``max`` say so in ``/proc/cpuinfo``), and the cpufreq
    clocks.
    """
    if EMULATED in (attribute(machine, "/proc/cpuinfo") or ""):
        yield Finding(
            "vm.emulated",
            "warning",
            machine.name,
            "time is emulated here: qemu runs this machine's CPU as a program (TCG), so results show "
            "whether something works and how a throttled disk behaves, but nothing about "
            "the speed of a kernel or of hardware",
            'measure where KVM works, or count instructions: clock = "instructions"',
        )
    vendor = attribute(machine, "/sys/class/dmi/id/sys_vendor") or ""
    if vendor.strip() == "QEMU" and machine.glob(
        "/sys/devices/system/cpu/cpufreq/policy*"
    ):
        yield Finding(
            "vm.clocks",
            "warning",
            machine.name,
            "the clocks here are only entries of a table given to qemu: a governor is set, read back "
            "and restored as on hardware, but does not change the speed of a CPU, "
            "so a difference between governors is due to chance",
            "compare governors on hardware",
        )
