"""The reads of each device of a btrfs, between the first and the last ``read_stats`` dump in a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from iodelta.grouping import grouped
from iodelta.ingest import DeviceStats


class Served(msgspec.Struct, frozen=True):
    """The reads of one device: between two dumps, or since it was mounted where there is but one."""

    file: str
    device: str
    reads: float
    """How many; 0 where the file does not say."""
    share: float | None
    """Of the reads of all devices of the file; None where there were none."""
    wait: float | None
    """Mean ns per read."""
    seconds: float | None
    """Between the two dumps, where both bear a time."""
    since_mount: bool
    """Whether it counts from the mount: there is but one dump, or the counters began anew."""


def served(stats: Sequence[DeviceStats]) -> tuple[Served, ...]:
    """Return each device of each file. A counter that fell was reset: then only its last value is known."""
    dumps = grouped(stats, lambda dump: (dump.place.file, dump.device))
    devices = [_between(of_device[0], of_device[-1]) for of_device in dumps.values()]
    totals: defaultdict[str, float] = defaultdict(float)
    for device in devices:
        totals[device.file] += device.reads
    return tuple(_with_share(device, totals[device.file]) for device in devices)


def _with_share(device: Served, total: float) -> Served:
    share = device.reads / total if total else None
    return msgspec.structs.replace(device, share=share)


def _between(first: DeviceStats, last: DeviceStats) -> Served:
    """The reads of a device from the first to the last dump of a file; both may be the same dump."""
    since_mount = first is last or (
        (_counter(first, "ios") or 0) > (_counter(last, "ios") or 0)
    )
    if since_mount:
        reads, wait, seconds = _counter(last, "ios"), _counter(last, "wait"), None
    else:
        reads, wait = _growth(first, last, "ios"), _growth(first, last, "wait")
        if first.at is None or last.at is None:
            seconds = None
        else:
            seconds = last.at - first.at
    return Served(
        file=last.place.file,
        device=last.device,
        reads=reads or 0.0,
        share=None,
        wait=wait / reads if wait is not None and reads else None,
        seconds=seconds,
        since_mount=since_mount,
    )


def _growth(first: DeviceStats, last: DeviceStats, name: str) -> float | None:
    after = _counter(last, name)
    if after is None:
        return None
    return after - (_counter(first, name) or 0.0)


def _counter(stats: DeviceStats, name: str) -> float | None:
    """Return the counter that only grows: ``cumulative_NAME`` or ``NAME``, depending on the kernel's version."""
    return stats.fields.get(f"cumulative_{name}", stats.fields.get(name))
