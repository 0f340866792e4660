"""Real members to mirror: files, loop devices, and loop devices that the kernel throttles for this process."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from workshop import Attached

MIB = 1 << 20


def contents(mib: int, seed: int = 1) -> bytes:
    """Bytes that differ from place to place."""
    return b"".join((seed * 1_000_003 + block).to_bytes(8, "little") * 512 for block in range(mib * 256))


def files(place: Path, count: int, mib: int = 8) -> tuple[str, ...]:
    """Files of equal contents."""
    data = contents(mib)
    paths = [place / f"member{number}" for number in range(count)]
    for path in paths:
        path.write_bytes(data)
    return tuple(map(str, paths))


@contextlib.contextmanager
def loops(place: Path, count: int, mib: int = 32, *options: str) -> Iterator[tuple[str, ...]]:
    """Loop devices over such files."""
    made: list[Attached] = []
    try:
        for path in files(place, count, mib):
            made.append(Attached.to(path, *options))
        yield tuple(one.node for one in made)
    finally:
        for one in made:
            one.release()


@contextlib.contextmanager
def throttled(limits: Mapping[str, int]) -> Iterator[None]:
    """This process reads those devices at most so many times a second."""
    parent, unified = _hierarchy()
    group = parent / f"iodelta-test-{uuid.uuid4().hex[:8]}"
    enabled = False
    if unified and "io" not in (parent / "cgroup.subtree_control").read_text().split():
        (parent / "cgroup.subtree_control").write_text("+io")
        enabled = True
    own = _own_group(unified)
    group.mkdir()
    try:
        for node, limit in limits.items():
            number = os.stat(node).st_rdev
            name = f"{os.major(number)}:{os.minor(number)}"
            if unified:
                (group / "io.max").write_text(f"{name} riops={limit}")
            else:
                (group / "blkio.throttle.read_iops_device").write_text(f"{name} {limit}")
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (parent / own / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()
        if enabled:
            (parent / "cgroup.subtree_control").write_text("-io")


def _hierarchy() -> tuple[Path, bool]:
    for line in Path("/proc/mounts").read_text().splitlines():
        _, point, fstype, options = line.split()[:4]
        if fstype == "cgroup2" and "io" in (Path(point) / "cgroup.controllers").read_text().split():
            return Path(point), True
        throttles = Path(point) / "blkio.throttle.read_iops_device"
        if fstype == "cgroup" and "blkio" in options.split(",") and throttles.exists():
            return Path(point), False
    pytest.skip("no control group here can limit I/O (no io controller, no blkio throttle)")


def _own_group(unified: bool) -> str:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, names, path = line.split(":", 2)
        if (number == "0" and unified) or "blkio" in names.split(","):
            return path.lstrip("/")
    return ""
