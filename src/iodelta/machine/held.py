"""What a path leads to, opened once: a command gets what was checked, although another user may rename it meanwhile.

A name is safe where only root and we can change each directory on the way. Elsewhere a process on that machine keeps
the file or directory open, the kernel says where it really is, and commands open it again as ``/proc/PID/fd/0``,
whatever its name leads to by then. See docs/decisions/machine.md#what-is-written-to-is-opened-once-where-another-user-may-rename-it.
"""

from __future__ import annotations

import contextlib
import posixpath
import stat
import time
from collections.abc import Iterator, Mapping
from itertools import accumulate, takewhile

import msgspec

from iodelta.errors import MachineError, RefusedError
from iodelta.machine.base import Machine

MOST_LINKS = 40
PATIENCE = 30.0
"""Seconds that a loaded machine may take to open a file."""

KEEP = 'cd -P -- "$1" && exec dd if="$2" iflag=nofollow,nonblock of="$3" status=none'
"""For sh. dd opens its input first, never through a link, and then waits for a reader of the FIFO that never comes."""


class Way(msgspec.Struct, frozen=True):
    """Where a path leads: the same path without links, and who could exchange what is there; empty for nobody."""

    path: str
    exposed: str = ""


def way_to(machine: Machine, path: str) -> Way:
    """Follow ``path`` from the root of the machine. Raises RefusedError for a link that another user may have made.

    A directory is safe if root or we own it and nobody else may write to it, or only as in a sticky one.
    """
    if not path.startswith("/"):
        path = f"{machine.directory}/{path}"
    todo = [name for name in path.split("/") if name not in ("", ".")]
    ways = [Way("/")]
    followed = 0
    while todo:
        if todo[0] == "..":
            ways, todo = ways[:-1] or ways, todo[1:]
            continue
        ahead = list(takewhile(lambda name: name != "..", todo))
        names = list(accumulate(ahead, posixpath.join, initial=ways[-1].path))
        asked = machine.run(  # /proc/self/ belongs to the user who runs it
            ["stat", "-c", "%u %f %n", "--", "/proc/self/", *names], env={"LC_ALL": "C"}
        )
        lines = [
            line.split(" ", 2)
            for line in asked.stdout.decode(errors="surrogateescape").splitlines()
        ]
        if [words[-1] for words in lines[1:]] != names:
            raise RefusedError(
                "cannot be followed from the root: part of it is missing", place=path
            )
        (user, _), *owners = ((int(owner), int(mode, 16)) for owner, mode, _ in lines)
        us = {0, user}
        for name, above, (owner, mode) in zip(
            names[1:], owners, owners[1:], strict=False
        ):
            exposed = ways[-1].exposed or _shared(
                ways[-1].path, *above, us, by_us=owner in us
            )
            todo = todo[1:]
            if not stat.S_ISLNK(mode):
                ways.append(Way(name, exposed))
                continue
            followed += 1
            if exposed or followed > MOST_LINKS:
                raise RefusedError(
                    f"a link on its way may lead elsewhere at any time: {exposed or 'it leads in a circle'}",
                    place=name,
                    remedy="name what the link leads to",
                )
            leads = (
                machine.run(["readlink", "--", name])
                .stdout.decode(errors="surrogateescape")
                .removesuffix("\n")
            )
            todo = [part for part in leads.split("/") if part not in ("", ".")] + todo
            if leads.startswith("/"):
                ways = [Way("/")]
            break
    return ways[-1]


def way_inside(machine: Machine, directory: str) -> Way:
    """Return the same for what we make in ``directory``."""
    way = way_to(machine, directory)
    asked = machine.run(["stat", "-c", "%u %f", "--", "/proc/self/", way.path])
    (user, _), (owner, mode) = (
        (int(words[0]), int(words[1], 16))
        for words in map(str.split, asked.text.splitlines())
    )
    return Way(
        way.path, way.exposed or _shared(way.path, owner, mode, {0, user}, by_us=True)
    )


def _shared(directory: str, owner: int, mode: int, us: set[int], *, by_us: bool) -> str:
    """Who besides us may rename an entry of a directory, which belongs to us or not; empty for nobody."""
    if owner not in us:
        return f"user {owner} owns {directory}"
    if mode & 0o022 and not (mode & stat.S_ISVTX and by_us):
        return f"others may write to {directory}"
    return ""


@contextlib.contextmanager
def kept_open(
    machine: Machine, way: Way, place: str, env: Mapping[str, str]
) -> Iterator[str]:
    """A path of the file or directory at ``way`` that nobody can lead elsewhere meanwhile: its name where that is safe.

    ``place`` is a directory of ours, ``env`` marks what is started. Raises RefusedError if ``way`` leads elsewhere now.
    """
    if not way.exposed:
        yield way.path
        return
    fifo = f"{place}/held-{time.monotonic_ns()}"
    folder, name = posixpath.split(way.path)
    if machine.run(["mkfifo", "-m", "600", "--", fifo]).returncode != 0:
        raise MachineError(
            "cannot make a FIFO", place=place, remedy="free some space there"
        )
    keeper = machine.start(["sh", "-c", KEEP, "sh", folder, f"./{name}", fifo], env=env)
    try:
        held = f"/proc/{keeper.pid}/fd/0"
        limit = time.monotonic() + PATIENCE
        while (
            found := machine.run(["readlink", "--", held])
            .stdout.decode(errors="surrogateescape")
            .removesuffix("\n")
        ) == "/dev/null" or not found.startswith("/"):  # dd has not opened it yet
            if keeper.poll() is not None or time.monotonic() > limit:
                break
            time.sleep(0.01)
        if found != way.path:
            raise RefusedError(
                f"was exchanged while it was opened: {way.exposed}",
                place=way.path,
                remedy="choose a place where nobody else may rename or replace it, or run as its owner",
            )
        yield held
    finally:
        keeper.stop(1.0)
        machine.run(["rm", "-f", "--", fifo])


def locker(machine: Machine, inode: str) -> int:
    """Return the process that took the lock on a file, by /proc/locks; 0 where the kernel names none."""
    try:
        lines = machine.read("/proc/locks").splitlines()
    except MachineError:
        return 0
    for words in map(str.split, lines):  # 1: FLOCK ADVISORY WRITE 4711 00:19:1234 0 EOF
        if words[1:2] == ["FLOCK"] and words[5].rpartition(":")[2] == inode:
            return max(0, int(words[4]))
    return 0
