"""The cpio archive of an initramfs, byte for byte the same for the same files: names sorted, no times, owner root.

Source: the kernel's ``Documentation/driver-api/early-userspace/buffer-format.rst`` ("newc").
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import PurePosixPath

import msgspec

ALIGNED = 512
"""Archives are padded to this, so that another can follow in the same initramfs."""


class Entry(msgspec.Struct, frozen=True):
    """A file, directory, link or device node; ``mode`` holds its kind as in ``st_mode``."""

    data: bytes = b""
    mode: int = stat.S_IFREG | 0o644
    device: tuple[int, int] = (0, 0)


def program(data: bytes) -> Entry:
    """Return a file that can be run."""
    return Entry(data, stat.S_IFREG | 0o755)


def link(target: str) -> Entry:
    """Return a symbolic link."""
    return Entry(target.encode(), stat.S_IFLNK | 0o777)


def node(major: int, minor: int) -> Entry:
    """Return a character device."""
    return Entry(b"", stat.S_IFCHR | 0o600, (major, minor))


def archive(entries: Mapping[str, Entry]) -> bytes:
    """Return the archive of ``entries`` by path (a leading slash does not matter); directories above them are made."""
    whole = {path.strip("/"): entry for path, entry in entries.items()}
    for path in list(whole):
        for parent in list(PurePosixPath(path).parents)[:-1]:
            whole.setdefault(str(parent), Entry(b"", stat.S_IFDIR | 0o755))
    parts = [
        _record(number, path, whole[path])
        for number, path in enumerate(sorted(whole), 1)
    ]
    data = b"".join([*parts, _record(0, "TRAILER!!!", Entry(b"", 0))])
    return data + bytes(-len(data) % ALIGNED)


def _record(inode: int, path: str, entry: Entry) -> bytes:
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (
        inode,
        entry.mode,
        0,
        0,
        links,
        0,
        len(entry.data),
        0,
        0,
        *entry.device,
        len(name),
        0,
    )
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name
    return head + bytes(-len(head) % 4) + entry.data + bytes(-len(entry.data) % 4)
