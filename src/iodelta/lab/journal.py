"""A journal: a file of JSON lines that only grows. One writer at a time; each line is on disk before the next step.

A torn last line (a kill while it was written) is ignored by readers and cut by the next writer. Every line carries the
chain of the seal (``lab/seal.py``).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Generic, TypeVar

import msgspec

from iodelta.errors import MeasureError, RequestError
from iodelta.lab.opened import read_member
from iodelta.lab.seal import FileSeal, Seal, body_of, chained, read_seal

Event = TypeVar("Event")
"""What a line says: a struct, or a union of tagged ones."""

NO_FILES: Mapping[str, FileSeal] = MappingProxyType({})

READINGS = 3
"""How often a journal with a broken chain is read again: a writer may have cut a torn line during the reading."""


def whole(data: bytes) -> list[bytes]:
    """Return the lines that were written to their end."""
    return data[: data.rfind(b"\n") + 1].splitlines()


def readable(
    data: bytes, decoder: msgspec.json.Decoder[Event]
) -> tuple[dict[int, Event], dict[int, str]]:
    """Return every whole line by its number, and why the others cannot be read."""
    events: dict[int, Event] = {}
    damaged: dict[int, str] = {}
    for number, line in enumerate(whole(data), 1):
        try:
            events[number] = decoder.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            damaged[number] = str(error)
    return events, damaged


def sealed_lines(read: Callable[[], bytes]) -> tuple[bytes, Seal]:
    """Return the bytes that ``read`` returns, of a file that may grow during the reading, and their seal."""
    data = read()
    seal = read_seal(whole(data))
    for _ in range(READINGS):
        if not seal.broken:
            break
        later = read()
        if later == data:
            break
        data, seal = later, read_seal(whole(later))
    return data, seal


class Journal(Generic[Event]):
    """One journal. Reading needs no lock; ``held`` takes it.

    ``failed`` makes the message of a write error, ``owner`` is the user's word for what the journal belongs to, and
    ``read`` gets its bytes another way, as from a folder in an archive.
    """

    def __init__(
        self,
        path: Path,
        decoder: msgspec.json.Decoder[Event],
        failed: Callable[[OSError], MeasureError],
        *,
        owner: str = "folder",
        read: Callable[[], bytes] | None = None,
    ) -> None:
        self.path = self.at = path
        """The name for messages, and the path by which it is opened."""
        self._decoder = decoder
        self._failed = failed
        self._bytes = read or self._file
        self._owner = owner
        self._remedy = f"restore a copy of the {owner}, if you have one; iodelta never changes a line it has written"
        self._descriptor: int | None = None
        self._chain = ""
        self._end = 0
        self._unsynced = False
        self._seal: Seal | None = None

    # ----------------------------------------------------------------------------------------------- reading

    def readable(self) -> tuple[dict[int, Event], dict[int, str]]:
        """Return every whole line by its number, and why the others cannot be read. Raises MeasureError."""
        data, self._seal = sealed_lines(self._bytes)
        return readable(data, self._decoder)

    def events(self) -> list[Event]:
        """Return every whole line, in order, up to the first that is not what was written there; none before there is
        a file.

        Raises MeasureError naming a line that is as it was written, or that no seal covers, and cannot be read.
        """
        events, damaged = self.readable()
        lines = self.seal.lines
        for number, why in damaged.items():
            if number <= lines:
                raise MeasureError(
                    f"damaged: {why}",
                    place=f"{self.path}:{number}",
                    remedy=self._remedy,
                )
        return [event for number, event in events.items() if number <= lines]

    def events_now(self) -> list[Event]:
        """Return the events as they are now; ``seal`` stays that of the last ``events``. Raises MeasureError."""
        data, seal = sealed_lines(self._bytes)
        events, _ = readable(data, self._decoder)
        return [event for number, event in events.items() if number <= seal.lines]

    @property
    def seal(self) -> Seal:
        """Return what the lines vouch for, as of the last time that they were read. Raises MeasureError."""
        if self._seal is None:
            self.readable()
        return self._seal or Seal()

    def check(self) -> None:
        """Raises MeasureError when a line is not what was written there."""
        self._refuse_broken(self.seal)

    def chain_at(self, lines: int) -> str:
        """Return the chain of the line of that number. Raises MeasureError."""
        return read_seal(whole(self._bytes())[:lines]).digest

    def _file(self) -> bytes:
        try:
            return read_member(self.at.parent, self.at.name, shown=self.path.parent)
        except FileNotFoundError:
            return b""

    def _refuse_broken(self, seal: Seal) -> None:
        if seal.broken:
            raise MeasureError(
                "not the original line: a line was edited, removed, doubled or moved",
                place=f"{self.path}:{seal.broken}",
                remedy=self._remedy,
            )

    # ----------------------------------------------------------------------------------------------- writing

    @contextlib.contextmanager
    def held(self, *, wait: bool = False) -> Iterator[None]:
        """Hold it for writing; a torn last line is cut. Raises RequestError when another process holds it, unless it
        shall ``wait``, and MeasureError when a line is not what was written: nothing is added to such a file."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            descriptor = os.open(self.at, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        except OSError as error:
            raise self._failed(error) from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise MeasureError(
                    "is no regular file", place=str(self.path), remedy=self._remedy
                )
            self._lock(descriptor, wait)
            seal, self._end = self._written()
            self._refuse_broken(seal)
            self._chain = seal.digest
            os.ftruncate(descriptor, self._end)
            self._descriptor = descriptor
            yield
        finally:
            self._descriptor = None
            os.close(descriptor)

    def _written(self) -> tuple[Seal, int]:
        """Return what the whole lines vouch for, and where they end. Nobody else writes meanwhile."""
        data = self._file()
        return read_seal(whole(data)), data.rfind(b"\n") + 1

    def _lock(self, descriptor: int, wait: bool) -> None:
        try:
            fcntl.flock(
                descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
            )
        except OSError as error:
            # Imported here: who only reads a journal does without.
            from iodelta.machine import LocalMachine
            from iodelta.machine.held import locker

            holder = locker(LocalMachine(), str(os.fstat(descriptor).st_ino))
            who = f" (process {holder})" if holder else ""
            raise RequestError(
                f"another iodelta{who} is writing to this {self._owner}",
                place=str(self.path.parent),
                remedy="wait for it, or end it",
            ) from error

    def append(
        self,
        event: Event,
        *,
        files: Mapping[str, FileSeal] = NO_FILES,
        sync: bool = True,
    ) -> None:
        """Append a line that seals ``files``, and sync it. Raises MeasureError (a full disk), leaves whole lines only.

        A line that may be lost with what comes after it, as that of a trial in flight, needs no ``sync`` at once.
        """
        descriptor = self._writer()
        line, chain = chained(self._chain, body_of(event, files))
        line += b"\n"
        try:
            # An earlier failure may have left part of a line that could not be cut then.
            if os.fstat(descriptor).st_size > self._end:
                os.ftruncate(descriptor, self._end)
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if sync:
                os.fdatasync(descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, self._end)
            raise self._failed(error) from error
        self._chain, self._end = chain, self._end + len(line)
        self._unsynced = not sync

    def sync(self) -> None:
        """Sync lines that were appended without. Raises MeasureError. Without a writer there are none."""
        if self._descriptor is None or not self._unsynced:
            return
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise self._failed(error) from error
        self._unsynced = False

    def append_all(self, events: Iterable[Event]) -> None:
        """Append these lines and sync them. Raises MeasureError (a full disk), and then none of them is left."""
        before = self._chain, self._end
        try:
            for event in events:
                self.append(event, sync=False)
            self.sync()
        except MeasureError:
            self._chain, self._end = before
            with contextlib.suppress(OSError):
                os.ftruncate(self._writer(), self._end)
            raise

    def _writer(self) -> int:
        if self._descriptor is None:
            raise RuntimeError("a line is appended outside held()")
        return self._descriptor
