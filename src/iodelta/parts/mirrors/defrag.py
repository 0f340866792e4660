"""A defragmentation that finds as much to do in its hundredth pass as in its first: a background load for measuring
policies.

``btrfs filesystem defrag -r`` of a benchmark's own directory moves the very file that is measured, and has nothing
left to do after a pass. Here a file of small extents is kept, and each pass defragments a clone of it, which shares its
extents until then: all bytes are read, written to every copy, and deleted again. The kernel counts both in
/proc/PID/io, so the rate of the load is known. Source: btrfs_defrag_file in fs/btrfs/defrag.c; uapi/linux/btrfs.h and
fs.h for the ioctls.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from iodelta.errors import MeasureError, RequestError
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

EXTENT = 16 << 10
"""Bytes of an extent of the kept file."""

PIECE = 4 << 20
"""Bytes that are defragmented and written back at a time."""

PREFIX = ".iodelta-defrag-"
_FICLONE = 0x40049409
_DEFRAG_RANGE = 0x40309410
_START_IO = 2


def keep_defragmenting(directory: Path, size: int, stop: Callable[[], bool]) -> int:
    """Run until ``stop``, then clean up and return the number of passes begun. Raises RequestError, MeasureError."""
    passes = 0
    with workplace(directory, size) as place:
        kept = place / "kept"
        fragment(kept, size)
        while not stop():
            passes += 1
            defragment(clone(kept, place / "clone"), size, stop)
    return passes


@contextlib.contextmanager
def workplace(directory: Path, size: int) -> Iterator[Path]:
    """A temporary directory on that btrfs, with room for a pass. Directories of killed runs are removed."""
    target = resolve(LocalMachine(), str(directory))
    if target.kind != "directory" or target.fstype != "btrfs":
        where = (
            f"is on {target.fstype or 'no filesystem'}"
            if target.kind == "directory"
            else "is not a directory"
        )
        raise RequestError(
            where, place=str(directory), remedy="name a directory on a mounted btrfs"
        )
    if size < EXTENT:
        raise RequestError(
            f"{size} bytes hold not one extent",
            place="--size",
            remedy=f"at least {EXTENT >> 10}k",
        )
    try:
        _sweep(directory)
        space = os.statvfs(directory)
        if 3 * size > space.f_bavail * space.f_frsize:
            text = f"a pass needs {3 * size >> 20} MiB, {space.f_bavail * space.f_frsize >> 20} MiB are free"
            raise RequestError(
                text, place=str(directory), remedy="give a smaller --size"
            )
        place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=directory))
        held = LocalMachine().lock(str(place))
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)
            if held is not None:
                held.release()
    except OSError as error:
        raise MeasureError(
            f"cannot defragment here: {error.strerror}",
            place=str(error.filename or directory),
        ) from error


def fragment(path: Path, size: int) -> None:
    """Create a file in extents of 16 KiB that are not adjacent: the even ones are written first, then the odd ones."""
    with open(path, "xb", buffering=0) as file:
        for first in (0, 1):
            for offset in range(first * EXTENT, size - EXTENT + 1, 2 * EXTENT):
                os.pwrite(file.fileno(), os.urandom(EXTENT), offset)
            os.fsync(file.fileno())


def clone(path: Path, copy: Path) -> Path:
    """Create a copy that shares all extents with ``path``: no data is copied, and none is in the page cache."""
    copy.unlink(missing_ok=True)
    with open(path, "rb") as source, open(copy, "xb") as target:
        fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
    return copy


def defragment(path: Path, size: int, stop: Callable[[], bool] = lambda: False) -> None:
    """Rewrite its extents as long ones, piece by piece; each piece is on the medium before the next one begins."""
    with open(path, "r+b") as file:
        for offset in range(0, size, PIECE):
            if stop():
                return
            wanted = struct.pack(
                "=QQQII16x", offset, min(PIECE, size - offset), _START_IO, PIECE, 0
            )
            try:
                fcntl.ioctl(file.fileno(), _DEFRAG_RANGE, wanted)
            except OSError as error:
                # A signal interrupts the ioctl; its handler has run by now.
                if error.errno != errno.EAGAIN:
                    raise
            os.fsync(file.fileno())


def _sweep(directory: Path) -> None:
    for left in directory.glob(f"{PREFIX}*"):
        if (
            left.is_dir()
            and not left.is_symlink()
            and (held := LocalMachine().lock(str(left)))
        ):
            shutil.rmtree(left, ignore_errors=True)
            held.release()
