"""Who holds the locks of files, as the kernel lists them."""

from __future__ import annotations

from pathlib import Path

READINGS = 3
"""Times that the list is read. The kernel hands it out a page at a time, and where locks come and go in between, the next
page begins too late."""


def lockers() -> dict[int, int]:
    """Inode of a file that somebody holds a lock on -> the process that took it; 0 where the kernel names none."""
    held: dict[int, int] = {}
    for _ in range(READINGS):
        held |= _listed()
    return held


def _listed() -> dict[int, int]:
    try:
        text = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return {}
    words = (line.split() for line in text.splitlines())
    # 1: FLOCK ADVISORY WRITE 4711 00:19:1234 0 EOF
    return {
        int(word[5].rpartition(":")[2]): max(0, int(word[4]))
        for word in words
        if word[1:2] == ["FLOCK"]
    }
