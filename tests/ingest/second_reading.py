"""A second reading of results, by a few regular expressions and the json and csv modules: what a sceptic would write.

It knows nothing of the readers: no version, no rounding, no merging. So it gives what stands there, and how far its
digits may be off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_RATE = re.compile(
    r"\b(?P<kind>read|write|trim) ?: ?IOPS= ?(?P<iops>[\d.]+)(?P<iops_unit>[kM]?), "
    r"BW= ?(?P<bw>[\d.]+)(?P<bw_unit>[KMGT]?i?B)/s.*?/(?P<ms>\d+)msec\)"
)
_OLD_RATE = re.compile(
    r"\b(?P<kind>read|write|trim) ?: ?io= *[\d.]+ ?[KMG]?i?B?, bw= *(?P<bw>[\d.]+) ?(?P<bw_unit>[KMG]?i?B)/s, "
    r"iops= *(?P<iops>[\d.]+)(?P<iops_unit>[kKM]?) *, runt= *(?P<ms>\d+) *msec"
)
_CLAT = re.compile(r"^\W*clat \((?P<unit>[num])sec\): min= ?[\d.]+k?, max= ?[\d.]+[kM]?, avg= ?(?P<avg>[\d.]+),", re.M)
_P99 = re.compile(r"99\.00th=\[ ?(\d+)\]")
_P99_HEAD = re.compile(r"clat percentiles \(([num])sec\)")
_UNITS = {"n": 1.0, "u": 1e3, "m": 1e6}
_BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}


class Rate(NamedTuple):
    """A direction of a job: what was printed of it."""

    kind: str
    iops: float
    bandwidth: float
    """Bytes per second."""
    clat: float | None
    """Mean completion latency in ns."""
    spare: float
    """Share by which the printed digits may be off."""


def text(data: str) -> Iterator[Rate]:
    """Every line with a rate in normal reports, and the mean of clat in the lines below it."""
    found = sorted([*_RATE.finditer(data), *_OLD_RATE.finditer(data)], key=lambda match: match.start())
    ends = [match.start() for match in found[1:]] + [len(data)]
    for match, end in zip(found, ends, strict=bool(found)):
        block = data[match.end() : end][:3000]
        block = re.split(r"\(groupid=|Run status group|\n\s*(?:read|write|trim)\s*:", block)[0]
        clat = _CLAT.search(block)
        kilo = 1024 if match.re is _OLD_RATE else None
        bandwidth = float(match["bw"]) * _bytes(match["bw_unit"], kilo)
        yield Rate(
            match["kind"],
            float(match["iops"]) * {"": 1, "k": 1e3, "K": 1e3, "M": 1e6}[match["iops_unit"]],
            bandwidth,
            float(clat["avg"]) * _UNITS[clat["unit"]] if clat else None,
            max(_spare(match["iops"], match["iops_unit"]), _spare(match["bw"], match["bw_unit"])),
        )


def _bytes(unit: str, kilo: int | None) -> float:
    return float(kilo) ** "BKMG".index(unit[0]) if kilo and "i" not in unit else _BYTES[unit]


def _spare(digits: str, unit: str) -> float:
    """A unit and a half of the last digit, as a share; fio of some versions is off by a whole one before the point."""
    places = len(digits.partition(".")[2])
    last = 10.0**-places if unit in ("", "B") or not places else 1.0
    return 1.5 * last / float(digits) if float(digits) else 1.0


def documents(data: str) -> Iterator[dict[str, Any]]:
    """Every JSON document with jobs, wherever it stands."""
    decoder = json.JSONDecoder(strict=False)
    at = 0
    while (at := data.find("{", at)) >= 0:
        try:
            found, end = decoder.raw_decode(data, at)
        except ValueError:
            at += 1
            continue
        if isinstance(found, dict) and ("jobs" in found or "client_stats" in found):
            yield found
            at = end
        else:
            at += 1


def jobs(document: dict[str, Any]) -> Iterator[tuple[str, Rate]]:
    """Name and rates of each job of a document, without fio's own sum over its clients."""
    for job in document.get("jobs") or document.get("client_stats") or []:
        if not isinstance(job, dict) or job.get("jobname") == "All clients":
            continue
        for kind in ("read", "write", "trim"):
            part = job.get(kind)
            if not isinstance(part, dict) or not part.get("iops") or not part.get("runtime"):
                continue
            in_ns = "clat_ns" in part
            clat = part.get("clat_ns") or part.get("clat") or {}
            mean = float(clat.get("mean", 0)) * (1 if in_ns else 1000)
            bandwidth = float(part.get("bw_bytes") or part["bw"] * 1024)
            yield job.get("jobname", ""), Rate(kind, float(part["iops"]), bandwidth, mean or None, 0.005)


class Volume(NamedTuple):
    """What a direction of a job moved."""

    kind: str
    ios: int
    least: int
    most: int
    """Bytes: some versions of fio cut them to KiB."""


def volumes(data: str) -> Iterator[Volume]:
    """I/Os and bytes of each job of every document. The unit is the one in which bandwidth times run time gives them:
    io_bytes counts KiB in some versions, a thousand times fewer."""
    for document in documents(data):
        for job in document.get("jobs") or document.get("client_stats") or []:
            for kind in ("read", "write", "trim"):
                part = job.get(kind) if isinstance(job, dict) else None
                is_sum = isinstance(job, dict) and job.get("jobname") == "All clients"
                if is_sum or not isinstance(part, dict) or not part.get("total_ios") or not part.get("io_bytes"):
                    continue
                moved = 1024 * part.get("bw", 0) * part.get("runtime", 0) / 1000
                in_kib = part["io_bytes"] * 32 < moved
                low = part["io_bytes"] * 1024 if in_kib else part["io_bytes"]
                yield Volume(kind, part["total_ios"], low, low + 1023 if in_kib else low)


def terse(data: str) -> Iterator[Rate]:
    """Every terse record of version 3 and later, by the places of its fields."""
    for line in data.splitlines():
        match = re.search(r"(?:^|\s|\|)([345]);fio-[\d.]+[^;]*;(.+)", line)
        if match is None:
            continue
        fields = [match[1], "fio", *match[2].split(";")]
        if len(fields) < 100:
            continue
        step = 47 if match[1] in "45" and len(fields) > 150 else 41
        for kind, first in (("read", 5), ("write", 5 + step)):
            bandwidth, rate, runtime = fields[first + 1 : first + 4]
            if runtime.isdigit() and int(runtime) and rate.replace(".", "").isdigit() and float(rate):
                yield Rate(kind, float(rate), float(bandwidth) * 1024, None, 1.5 / float(rate))


def log_values(data: str) -> dict[str, list[tuple[int, float]]]:
    """Time in ms and value of each row of a log, by direction."""
    found: dict[str, list[tuple[int, float]]] = {}
    for line in data.splitlines():
        cells = [part.strip() for part in line.split(",")]
        if len(cells) >= 4 and all(re.fullmatch(r"\d+", part) for part in cells[:4]) and cells[2] in "012":
            found.setdefault(("read", "write", "trim")[int(cells[2])], []).append((int(cells[0]), float(cells[1])))
    return found


def pairs(data: str) -> Iterator[tuple[str, str, float, float]]:
    """kbench's summary: measure, pattern, read and write, in 1/s, B/s and ns."""
    measure = ""
    scales = {"IOPS": 1.0, "Bandwidth": 1024.0, "Latency": 1.0}
    for line in data.splitlines():
        if match := re.match(r"(IOPS|Bandwidth|Latency)\b.*\(Read/Write\)", line.strip()):
            measure = match[1]
        elif match := re.search(r"(Random|Sequential): +([\d,]+) / ([\d,]+)", line):
            read, write = (float(text.replace(",", "")) * scales[measure] for text in match.groups()[1:])
            yield measure, match[1], read, write


class DiskCount(NamedTuple):
    """A disk's counters over a run: reads and writes, their merges and milliseconds, and milliseconds in the queue."""

    name: str
    counts: tuple[int, ...]
    util: float
    """Percent."""


_DISK = re.compile(
    r"^[>\s]*(?P<name>[\w!/-]+): ios=(\d+)/(\d+),(?: sectors=\d+/\d+,)? merge=(\d+)/(\d+), ticks=(\d+)/(\d+), "
    r"in_queue=(\d+), util=(?P<util>[\d.]+)%",
    re.M,
)
_DISK_NAMES = ("read_ios", "write_ios", "read_merges", "write_merges", "read_ticks", "write_ticks", "in_queue")


def disks_of_text(data: str) -> Iterator[DiskCount]:
    """Every line of disk statistics in normal reports."""
    for found in _DISK.finditer(data):
        yield DiskCount(found["name"], tuple(map(int, found.groups()[1:-1])), float(found["util"]))


def disks_of_json(data: str) -> Iterator[DiskCount]:
    """Every entry of disk_util."""
    for document in documents(data):
        for disk in document.get("disk_util", []):
            yield DiskCount(disk["name"], tuple(disk[name] for name in _DISK_NAMES), disk["util"])


class Sync(NamedTuple):
    """Latency of fsync: mean and slowest in ns, and 99th percentile where it stands there."""

    mean: float
    slowest: float
    p99: float | None


_SYNC = re.compile(
    r"^\W*sync \((?P<unit>[num])sec\): min= ?[\d.]+k?, max= ?(?P<max>[\d.]+k?), avg= ?(?P<avg>[\d.]+),", re.M
)
_SYNC_HEAD = re.compile(r"sync percentiles \(([num])sec\)")


def syncs_of_text(data: str) -> Iterator[Sync]:
    """The mean, the maximum and p99 under every "fsync/fdatasync/sync_file_range"."""
    for found in _SYNC.finditer(data):
        after = data[found.end() : found.end() + 1200]
        head, p99 = _SYNC_HEAD.search(after), _P99.search(after)
        scale = _UNITS[found["unit"]]
        slowest = float(found["max"].rstrip("k")) * (1000 if found["max"].endswith("k") else 1)
        tail = float(p99[1]) * _UNITS[head[1]] if head and p99 else None
        yield Sync(float(found["avg"]) * scale, slowest * scale, tail)


def syncs_of_json(data: str) -> Iterator[Sync]:
    """The latency of each job's syncs, where it made some."""
    for document in documents(data):
        for job in document.get("jobs") or document.get("client_stats") or []:
            part = job.get("sync", {}).get("lat_ns", {})
            if part.get("max") and job.get("jobname") != "All clients":
                yield Sync(part["mean"], part["max"], part.get("percentile", {}).get("99.000000"))
