"""What each device of a btrfs served, from its ``read_stats`` dumps: between the first and the last of a file."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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
    """Each device of each file. A counter that fell was reset: what it shows last is all that is known."""
    ends: dict[tuple[str, str], list[DeviceStats]] = {}
    for dump in stats:
        ends.setdefault((dump.place.file, dump.device), []).append(dump)
    devices = [_between(dumps[0], dumps[-1]) for dumps in ends.values()]
    totals: dict[str, float] = {}
    for device in devices:
        totals[device.file] = totals.get(device.file, 0.0) + device.reads
    return tuple(
        msgspec.structs.replace(
            device,
            share=device.reads / totals[device.file] if totals[device.file] else None,
        )
        for device in devices
    )


def _between(first: DeviceStats, last: DeviceStats) -> Served:
    ios, wait = (_counter(last, name) for name in ("ios", "wait"))
    since = first is last or (_counter(first, "ios") or 0) > (ios or 0)
    if not since:
        ios, wait = (
            None if after is None else after - (_counter(first, name) or 0.0)
            for name, after in (("ios", ios), ("wait", wait))
        )
    seconds = (
        None if since or first.at is None or last.at is None else last.at - first.at
    )
    return Served(
        file=last.place.file,
        device=last.device,
        reads=ios or 0.0,
        share=None,
        wait=wait / ios if wait is not None and ios else None,
        seconds=seconds,
        since_mount=since,
    )


def _counter(stats: DeviceStats, name: str) -> float | None:
    """The one that only grows, by its name of 6.12 or of 6.18."""
    return stats.fields.get(f"cumulative_{name}", stats.fields.get(name))
