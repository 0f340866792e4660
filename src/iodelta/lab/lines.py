"""A file of JSON lines that only grows: one writer at a time, each line on disk before the next thing happens.

A torn last line (a kill while it was written) is ignored by readers and cut by the next writer. Every line carries the
chain of the seal (``lab/seal.py``).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from iodelta.errors import MeasureError, RequestError
from iodelta.lab.seal import FileSeal, Seal, body_of, chained, read_seal

_T = TypeVar("_T")
NO_FILES: Mapping[str, FileSeal] = MappingProxyType({})

READINGS = 3
"""Times that lines which do not hold together are read: a writer may have cut a torn line while they were read."""


def whole(data: bytes) -> list[bytes]:
    """The lines that were written to their end."""
    return data[: data.rfind(b"\n") + 1].splitlines()


def decoded(data: bytes, decoder: msgspec.json.Decoder[_T], *, place: Path, remedy: str) -> list[_T]:
    """Every whole line, in order. Raises MeasureError naming a damaged line of ``place``, with ``remedy``."""
    found: list[_T] = []
    for number, line in enumerate(whole(data), 1):
        try:
            found.append(decoder.decode(line))
        except msgspec.MsgspecError as error:
            raise MeasureError(f"damaged: {error}", place=f"{place}:{number}", remedy=remedy) from error
    return found


def sealed_lines(read: Callable[[], bytes]) -> tuple[bytes, Seal]:
    """What ``read`` returns of a file that may grow meanwhile, and its seal."""
    data = read()
    seal = read_seal(whole(data))
    for _ in range(READINGS):
        if not seal.broken or (again := read()) == data:
            break
        data, seal = again, read_seal(whole(again))
    return data, seal


def broken_line(place: Path, seal: Seal) -> MeasureError:
    """The error of lines that are not what was written."""
    return MeasureError(
        "not the line that was written there: a line was edited, removed, doubled or moved",
        place=f"{place}:{seal.broken}",
        remedy="put back a copy of the folder, if there is one; iodelta never changes a line it has written",
    )


class LineWriter:
    """Writes to the lines of ``path``, in a folder that is whose who holds them; ``failed`` says what an error means
    to who reads it."""

    def __init__(self, path: Path, failed: Callable[[OSError], MeasureError]) -> None:
        self._path, self._failed = path, failed
        self._descriptor: int | None = None
        self._chain = ""
        self._end = 0

    @contextlib.contextmanager
    def held(self, *, wait: bool = False) -> Iterator[None]:
        """Hold the folder for writing; a torn last line is cut. Raises RequestError when another run holds it, unless
        it shall ``wait``, and MeasureError when a line is not what was written: nothing is added to such a file."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._failed(error) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RequestError(
                    "another iodelta is writing to this folder",
                    place=str(self._path.parent),
                    remedy="wait for it, or end it",
                ) from error
            data = self._path.read_bytes()
            seal = read_seal(whole(data))
            if seal.broken:
                raise broken_line(self._path, seal)
            self._chain, self._end = seal.digest, data.rfind(b"\n") + 1
            os.ftruncate(descriptor, self._end)
            self._descriptor = descriptor
            yield
        finally:
            self._descriptor = None
            os.close(descriptor)

    def append(self, event: Any, *, files: Mapping[str, FileSeal] = NO_FILES, sync: bool = True) -> None:
        """Append a line that seals ``files``, and sync it. Raises MeasureError (a full disk), leaves whole lines only.

        A line that may be lost with what comes after it, as that of a trial in flight, needs no ``sync`` of its own.
        """
        if self._descriptor is None:
            raise RuntimeError("append() outside held()")
        line, chain = chained(self._chain, body_of(event, files))
        line += b"\n"
        try:
            # What an earlier failure left there, if it could not be cut then.
            if os.fstat(self._descriptor).st_size > self._end:
                os.ftruncate(self._descriptor, self._end)
            if os.write(self._descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if sync:
                os.fdatasync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
            raise self._failed(error) from error
        self._chain, self._end = chain, self._end + len(line)
