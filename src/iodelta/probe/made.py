"""Files that iodelta made itself and may therefore overwrite: known by a record of the inode, never by name.

The record of ``DIR/NAME`` is ``DIR/.NAME.iodelta``: inode and time of birth. A copy, a file that took the name, and one
that reuses the inode are other files. File and record must be regular files of our own with a single link.
"""

from __future__ import annotations

import json
import posixpath
import tempfile
from pathlib import Path

import msgspec

from iodelta.errors import MachineError
from iodelta.machine import Machine, throw_away
from iodelta.probe.devices import device, loop_backing, loop_files
from iodelta.probe.topology import Target


class _Seen(msgspec.Struct, frozen=True):
    """What identifies a file on its filesystem; ``born`` is ``-`` where the filesystem does not record it."""

    owner: str
    kind: str
    links: str
    filesystem: str
    inode: str
    born: str


def record_path(path: str) -> str:
    """Where the record of a file is."""
    folder, name = posixpath.split(path)
    return f"{folder}/.{name}.iodelta"


def record(machine: Machine, path: str, draft: str = "") -> None:
    """Record that iodelta made the file ``path``; ``draft`` is its present path, if it is still to be renamed.

    Raises MachineError.
    """
    (seen,) = _look(machine, draft or path) or (None,)
    if seen is None:
        raise MachineError("no longer exists", place=draft or path)
    text = (
        json.dumps({"made by": "iodelta", "inode": seen.inode, "born": seen.born})
        + "\n"
    )
    with tempfile.TemporaryDirectory(prefix="iodelta-") as here:
        local = Path(here, "file")
        local.write_text(text)
        machine.put(str(local), record_path(path))


def made_file(machine: Machine, path: str) -> bool:
    """Return whether iodelta made the file at ``path``, a real path, as the user that we are on that machine."""
    seen = _look(machine, "/proc/self/", path, record_path(path))
    if len(seen) < 3:
        return False
    ourselves, file, note = seen
    plain = all(
        stat.kind in ("regular file", "regular empty file") and stat.links == "1"
        for stat in (file, note)
    )
    ours = (
        file.owner == note.owner == ourselves.owner
        and file.filesystem == note.filesystem
    )
    return (
        plain
        and ours
        and _recorded(machine, record_path(path)) == (file.inode, file.born)
    )


def made(machine: Machine, target: Target) -> bool:
    """Return whether ``target`` holds only what iodelta made: such a file, or a device whose bytes are in such files.
    Always true in a throw-away guest: its disks end with it.
    """
    if throw_away(machine):
        return True
    if target.kind == "block":
        return _made_device(machine, target.device or "")
    return target.kind == "file" and made_file(machine, target.real_path)


def _made_device(machine: Machine, name: str) -> bool:
    """Return a loop device over such a file, a partition of one, an array on such devices alone."""
    this = device(machine, name)
    if this.partition:
        return _made_device(machine, this.disk)
    if this.slaves:
        return all(_made_device(machine, slave) for slave in this.slaves)
    backing = loop_backing(machine, name)
    return (
        backing is not None
        and _is_behind(machine, name, backing)
        and made_file(machine, backing)
    )


def _is_behind(machine: Machine, name: str, backing: str) -> bool:
    """Return whether the loop device writes to the file that has that path now, and not to one that had it before."""
    seen = _look(machine, backing)
    return bool(seen) and loop_files(machine).get(name, "").endswith(
        f" {seen[0].inode}"
    )


def _look(machine: Machine, *paths: str) -> list[_Seen]:
    """Return those of ``paths`` that exist, in order; links are not followed."""
    done = machine.run(
        ["stat", "-c", "%u|%F|%h|%d|%i|%w", "--", *paths],
        env={"LC_ALL": "C", "TZ": "UTC"},
    )
    lines = [line.split("|") for line in done.text.splitlines()]
    return [_Seen(*fields) for fields in lines if len(fields) == 6]


def _recorded(machine: Machine, path: str) -> tuple[str, str] | None:
    try:
        entry = json.loads(machine.read(path))
        return str(entry["inode"]), str(entry["born"])
    except (ValueError, KeyError, TypeError):
        return None  # a file of that name which is not our record: then the other one is not ours either
