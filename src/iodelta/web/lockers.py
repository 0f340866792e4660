"""Who holds the locks of files, as the kernel lists them."""

from __future__ import annotations

from pathlib import Path


def lockers() -> dict[int, int]:
    """Inode of a file that somebody holds a lock on -> the process that took it; 0 where the kernel names none."""
    try:
        text = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return {}
    words = (line.split() for line in text.splitlines())
    # 1: FLOCK ADVISORY WRITE 4711 00:19:1234 0 EOF
    return {
        int(one[5].rpartition(":")[2]): max(0, int(one[4]))
        for one in words
        if one[1:2] == ["FLOCK"]
    }
