"""A file of JSON lines that only grows: one writer at a time, each line on disk before the next thing happens.

A torn last line (a kill while it was written) is ignored by readers and cut by the next writer.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from iodelta.errors import MeasureError, RequestError

_T = TypeVar("_T")


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


class LineWriter:
    """Writes to the lines of ``path``, in a folder that is whose who holds them; ``failed`` says what an error means
    to who reads it."""

    def __init__(self, path: Path, failed: Callable[[OSError], MeasureError]) -> None:
        self._path, self._failed = path, failed
        self._descriptor: int | None = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder for writing; a torn last line is cut. Raises RequestError when another run holds it."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._failed(error) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RequestError(
                    "another iodelta is writing to this folder",
                    place=str(self._path.parent),
                    remedy="wait for it, or end it",
                ) from error
            os.ftruncate(descriptor, self._path.read_bytes().rfind(b"\n") + 1)
            self._descriptor = descriptor
            yield
        finally:
            self._descriptor = None
            os.close(descriptor)

    def append(self, event: Any, *, sync: bool = True) -> None:
        """Append a line and sync it. Raises MeasureError (a full disk) and leaves whole lines only.

        A line that may be lost with what comes after it, as that of a trial in flight, needs no ``sync`` of its own.
        """
        if self._descriptor is None:
            raise RuntimeError("append() outside held()")
        line = msgspec.json.encode(event) + b"\n"
        end = os.fstat(self._descriptor).st_size
        try:
            if os.write(self._descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if sync:
                os.fdatasync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, end)
            raise self._failed(error) from error
