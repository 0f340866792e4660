"""Compare the I/O of the device with that of fio: caches above it, other users of it, members below it.

fio's disk statistics, like the kernel's, count whole devices over the whole run, its ramp included.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from typing import NamedTuple

from iodelta.audit.model import Evidence, Mark, rule
from iodelta.audit.numbers import known, parts
from iodelta.ingest import Disk, Run
from iodelta.ingest.numbers import seconds
from iodelta.trial import Direction, Severity

SERVED = 0.5
"""If a device moved less than this share of fio's bytes, a cache served the rest."""

RAMP_RATE = 10.0
"""fio may be up to this many times faster in its ramp, which it does not count, than afterwards. Measured on a machine
with 15 busy processes per CPU: up to 4.7 times."""

FOREIGN = 0.25
"""An excess over fio's I/O of more than this share belongs to another user of the device."""

MEMBERS = 0.05
"""Relative difference allowed between the reads of the members and of the array."""

LITTLE = 64 << 20
"""Bytes read from an array up to which its members are not compared with it."""

LARGEST = 1 << 20
"""Bytes of the largest usual request of a file system or read-ahead; used where sectors are not counted."""

SMALL = 65536
"""Bytes of an I/O up to which the block layer does not split it."""


class Moved(NamedTuple):
    """Bytes and I/Os of one kind: fio's, and the device's (bytes None where only requests were counted)."""

    ios: int
    bytes: int
    device_ios: int
    device_bytes: int | None
    member_bytes: int | None


def _shared(
    evidence: Evidence,
) -> Iterator[tuple[tuple[int, ...], list[Run], tuple[Disk, ...]]]:
    """Runs of one fio, which counted its disks once for all of them; runs with unknown counts are left out."""
    shared: dict[tuple[str, tuple[Disk, ...]], list[int]] = {}
    for index, run in evidence.measured():
        if run.disks:
            shared.setdefault((run.place.file, run.disks), []).append(index)
    for (_, disks), indexes in shared.items():
        runs = [evidence.runs[index] for index in indexes]
        by_name = {disk.name: disk for disk in disks}
        if all(map(_is_counted, _directions(runs))):
            yield tuple(indexes), runs, tuple(by_name.values())


def _is_counted(direction: Direction) -> bool:
    """Return whether the I/Os of one direction are known."""
    return direction.kind != "mixed" and _ios(direction) > 0


def _directions(runs: list[Run], kind: str = "") -> list[Direction]:
    """The directions of runs; those of one kind where it is named."""
    directions = itertools.chain.from_iterable(map(parts, runs))
    return [direction for direction in directions if kind in ("", direction.kind)]


def _ios(direction: Direction) -> int:
    """I/Os, from rate and run time where the source has no count; 0 when unknown."""
    if direction.ios or not known(direction.iops):
        return direction.ios
    count = direction.iops.value * direction.runtime_ms / 1000
    return round(count) if math.isfinite(count) else 0


def _tops(disks: tuple[Disk, ...]) -> list[Disk]:
    """Return the devices that fio used; stacked devices without their members, also where these are not marked."""
    tops = list(itertools.filterfalse(_is_member, disks))
    return list(filter(_is_stacked, tops)) or tops


_is_member = operator.attrgetter("member")


def _is_stacked(disk: Disk) -> bool:
    return disk.name.startswith(("dm-", "md"))


def _moved(runs: list[Run], disks: tuple[Disk, ...], kind: str) -> Moved:
    directions = _directions(runs, kind)
    tops, members = _tops(disks), list(filter(_is_member, disks))
    return Moved(
        sum(map(_ios, directions)),
        sum(direction.bytes for direction in directions),
        sum(_requests(disk, kind) for disk in tops),
        _bytes(tops, kind),
        _bytes(members, kind),
    )


def _requests(disk: Disk, kind: str) -> int:
    """Requests plus merges, as fio counts I/Os: the block layer merges several into one request."""
    if kind == "read":
        return disk.read_ios + disk.read_merges
    return disk.write_ios + disk.write_merges


def _names(disks: tuple[Disk, ...]) -> str:
    names = [disk.name for disk in _tops(disks)]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _synced(run: Run) -> bool:
    """Return whether fsync or a similar call made the file system write its metadata."""
    return run.sync is not None or not _SYNCS.isdisjoint(run.options)


_SYNCS = frozenset(("fsync", "fdatasync", "sync", "sync_file_range"))


def _bytes(disks: list[Disk], kind: str) -> int | None:
    """Bytes that these devices moved together; None if the sectors of one are not counted."""
    field = "read_sectors" if kind == "read" else "write_sectors"
    sectors: list[int | None] = list(map(operator.attrgetter(field), disks))
    if not sectors or None in sectors:
        return None
    return 512 * sum(filter(None, sectors))


def _stretch(runs: list[Run]) -> float:
    """Return the factor by which the device may have done more than fio counted: fio does not count its ramp."""
    times = [direction.runtime_ms for direction in _directions(runs)]
    longest = max(times, default=0) / 1000
    ramp = max(map(_ramp, runs), default=0.0)
    if longest > 0:
        return 1 + RAMP_RATE * ramp / longest
    return 1.0


def _ramp(run: Run) -> float:
    return seconds(run.options.get("ramp_time", "")) or 0.0


@rule(
    "cache.page-cache",
    "warning",
    says="I/O went through the page cache",
    needs="direct",
    remedy="use direct=1 to measure a device; keep it off only to measure what an application with a cache sees",
)
def page_cache(evidence: Evidence) -> Iterator[Mark]:
    for index, run in evidence.measured():
        if run.workload.direct is False and parts(run):
            yield Mark((index,), "direct=0: memory answers reads of cached data")


@rule(
    "cache.not-from-device",
    "hard",
    says="most of the I/O never reached the device",
    needs="fio's disk statistics, or the machine's",
    remedy="look for a cache above the device, for holes in the file, or for a file system that ignores direct",
)
def not_from_device(evidence: Evidence) -> Iterator[Mark]:
    for indexes, runs, disks in _shared(evidence):
        for kind in ("read", "write"):
            moved = _moved(runs, disks, kind)
            if not moved.bytes or not _comparable(runs, disks, kind):
                continue
            # Bytes that the device moved; an upper bound if only its requests were counted.
            if moved.device_bytes is not None:
                most = moved.device_bytes
            elif _all_direct(runs):
                most = moved.device_ios * moved.bytes // max(moved.ios, 1)
            else:
                most = moved.device_ios * LARGEST
            if most < SERVED * moved.bytes:
                text = f"{_names(disks)} moved {most / moved.bytes:.0%} of the bytes that fio counted as {kind}"
                severity: Severity = "hard" if runs[0].workload.direct else "warning"
                yield Mark(indexes, text, severity=severity)


def _all_direct(runs: list[Run]) -> bool:
    return all(run.workload.direct is True for run in runs)


def _comparable(runs: list[Run], disks: tuple[Disk, ...], kind: str) -> bool:
    """Return whether the device's counts can be compared with fio's: buffered writes may reach it later."""
    if kind == "write" and not _all_direct(runs):
        return False
    # Without any count they are off (queue/iostats), or the device is served past the block layer.
    is_counted = any(disk.read_ios or disk.write_ios for disk in disks)
    return is_counted or runs[0].workload.direct is False


@rule(
    "device.other-io",
    "warning",
    says="the device did I/O that is not fio's",
    needs="fio's disk statistics, or the machine's, and a ramp no longer than the run",
    remedy="find the other user of the device, stop it, and repeat the run",
)
def other_io(evidence: Evidence) -> Iterator[Mark]:
    for indexes, runs, disks in _shared(evidence):
        # Whether fio counted nearly all its I/O: latency_target resets its counts, and fio does not count its ramp.
        tries_depths = any("latency_target" in run.options for run in runs)
        has_long_ramp = _stretch(runs) > 1 + RAMP_RATE
        if not (not tries_depths and not has_long_ramp):
            continue
        is_synced = any(map(_synced, runs))
        for kind in ("read",) if is_synced else ("read", "write"):
            # I/O of the device beyond fio's, in words; empty if chance and the ramp explain it.
            moved = _moved(runs, disks, kind)
            most = _stretch(runs) * (1 + FOREIGN)
            if moved.device_bytes is not None and moved.bytes:
                if moved.device_bytes <= moved.bytes * most + (8 << 20):
                    text = ""
                else:
                    text = f"{moved.device_bytes / moved.bytes - 1:.0%} more bytes than fio's were {_PAST[kind]}"
            elif moved.ios:
                sizes = map(_size, _directions(runs, kind))
                if max(sizes) > SMALL or moved.device_ios <= moved.ios * most + 100:
                    text = ""
                else:
                    text = f"{moved.device_ios} {kind}s on the device, {moved.ios} of them fio's"
            else:
                of_fio = sum(map(_ios, _directions(runs)))
                if moved.device_ios <= FOREIGN * of_fio + 100:
                    text = ""
                else:
                    text = f"{moved.device_ios} {kind}s on the device, and fio did none"
            if text:
                yield Mark(indexes, text)


def _size(direction: Direction) -> float:
    """Bytes per I/O."""
    return direction.bytes / max(_ios(direction), 1)


@rule(
    "device.members",
    "warning",
    says="members and array disagree about what was read",
    needs="counters of an array and of its members",
    remedy="look for a resync, a scrub or another user of the members",
)
def members(evidence: Evidence) -> Iterator[Mark]:
    for indexes, runs, disks in _shared(evidence):
        moved = _moved(runs, disks, "read")
        read, by_members = moved.device_bytes or 0, moved.member_bytes
        if by_members is None or read < LITTLE:
            continue
        ratio = by_members / read
        if abs(ratio - 1) > MEMBERS:
            text = f"the members read {ratio:.3g} times what the array did"
            yield Mark(indexes, text)


_PAST = {"read": "read", "write": "written"}


RULES = (page_cache, not_from_device, other_io, members)
