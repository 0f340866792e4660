"""Caches below the target: a second read of an offset is fast, and dropping the page cache does not empty them."""

from __future__ import annotations

import msgspec

from iodelta.machine import Machine
from iodelta.probe.devices import with_below
from iodelta.probe.sysfs import attribute, sysfs_name
from iodelta.probe.topology import Target
from iodelta.trial import Finding

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
        return CacheBelow(name, "bcache", _bracketed(mode))
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


def _bracketed(text: str) -> str:
    return text.partition("[")[2].partition("]")[0] or text
