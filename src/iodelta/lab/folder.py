"""The experiment folder: raw apart from derived, and a journal that survives a kill at any moment.

A folder appears whole, with question, plan and journal, or not at all. ``journal.jsonl`` is append-only; what a line
states is on disk before the line, and the line before the next step. A torn last line (a kill while it was written) is
ignored by readers and cut by the next writer. A reader may open a folder while it is written. Lines and files are
sealed (``lab/seal.py``), so a change to them is reported.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
import zstandard

from iodelta import __version__
from iodelta.decoding import decoder, from_json
from iodelta.errors import MeasureError, RequestError, pasted
from iodelta.lab.events import (
    Abandoned,
    Booted,
    Ended,
    Event,
    Extended,
    Failed,
    Finished,
    Kept,
    KnobRestored,
    KnobSaved,
    LeftOut,
    Planned,
    Preparing,
    Rebooted,
    Repeated,
    Session,
    Settled,
    Started,
    StepBegun,
    StepDone,
)
from iodelta.lab.journal import Journal
from iodelta.lab.opened import has_member, read_member
from iodelta.lab.seal import FileSeal, Seal, altered, file_seal, sha256

__all__ = [
    "Abandoned",
    "Booted",
    "CountFolder",
    "DiskFolder",
    "Ended",
    "Event",
    "Extended",
    "Failed",
    "Finished",
    "Folder",
    "Kept",
    "KnobRestored",
    "KnobSaved",
    "LeftOut",
    "Planned",
    "Preparing",
    "Rebooted",
    "Repeated",
    "Session",
    "Settled",
    "Started",
    "StepBegun",
    "StepDone",
    "now",
]

EXPERIMENT = "experiment.toml"
ENVIRONMENT = "environment.json"
CALIBRATION = "calibration.json"
PLAN = "plan.json"
JOURNAL = "journal.jsonl"
RAW = "raw"
DERIVED = frozenset({"verdict.json", "trials.parquet", "report.html", "report.cache"})
"""Files that are made from the others, and never sealed."""
NOTHING: Mapping[str, bytes] = MappingProxyType({})

FULL = (errno.ENOSPC, errno.EDQUOT)

LARGEST_RAW = 256 << 20
"""Bytes that a raw file may unpack to: a folder may come from a stranger. fio writes tens of kilobytes."""


_DAMAGED = "restore a copy of the folder, if you have one; iodelta never changes a file that it has sealed"

_decoder: msgspec.json.Decoder[Event] = decoder(Event)
_T = TypeVar("_T")


class Folder:
    """One experiment folder, with trials unless its class says otherwise. Reading needs no lock; ``writing`` takes
    it."""

    again = "iodelta run"
    """The command that continues it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = Journal(
            path / JOURNAL, _decoder, self._failed, read=self._journal_bytes
        )
        self._unsealed: dict[str, FileSeal] = {}
        """Written since the last line of the journal, which the next one seals."""
        self._read: set[str] = set()
        """Names of the files that were read and found to be as they were sealed."""
        self._unpacker: zstandard.ZstdDecompressor | None = None

    @classmethod
    @contextlib.contextmanager
    def making(cls, path: Path) -> Iterator[Folder]:
        """A draft next to ``path`` to be filled; it becomes ``path`` at the end, and is deleted after an error.

        Raises RequestError when the path exists already, MeasureError when no folder can be made there.
        """
        if path.exists() or path.is_symlink():
            raise RequestError(
                "this path exists already",
                place=str(path),
                remedy="name a new folder with --folder",
            )
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
        try:
            (draft / RAW).mkdir(parents=True)
            yield cls(draft)
            _sync_directory(draft)
            draft.rename(path)
            _sync_directory(path.parent)
        except (OSError, MeasureError) as error:
            what = (
                error.what
                if isinstance(error, MeasureError)
                else os.strerror(error.errno or 0)
            )
            raise MeasureError(
                f"cannot make the folder: {what}",
                place=str(path),
                remedy="nothing was started; free some space, or name another folder with --folder",
            ) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    @classmethod
    def begin(
        cls, path: Path, text: str, plan: Any, beside: Mapping[str, bytes] = NOTHING
    ) -> Folder:
        """Return a new folder with question and plan on disk before the first trial. Raises RequestError, MeasureError.

        ``beside`` are further files of it, by name.
        """
        with cls.making(path) as draft:
            draft.write(EXPERIMENT, text.encode())
            for name, data in beside.items():
                draft.write(name, data)
            written = draft.write_struct(PLAN, plan)
            with draft.writing():
                draft.append(
                    Planned(now(), sha256(written), sha256(text.encode()), __version__)
                )
        return KINDS[getattr(plan, "clock", WALL)](path)

    @classmethod
    def open(cls, path: Path) -> Folder:
        """Return an existing folder. Raises RequestError when ``path`` is not one."""
        if not has_member(path, EXPERIMENT):
            raise RequestError(
                "not an experiment folder: it has no experiment.toml",
                place=str(path),
                remedy="give the folder that `iodelta run` printed, or an experiment file",
            )
        return kind_of(cls(path))(path)

    def check_times(self) -> None:
        """Raises RequestError for a folder without trials."""

    # ------------------------------------------------------------------------------------------------- files

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all: a reader never sees half of it. Synced. Raises MeasureError."""
        final = self.path / name
        temporary = final.with_name(f".{final.name}.{os.getpid()}")
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fdatasync(file.fileno())
            temporary.replace(final)
            _sync_directory(final.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise self._failed(error) from error
        if name not in DERIVED:
            self._unsealed[name] = file_seal(data)

    def has(self, name: str) -> bool:
        """Return whether there is such a file."""
        return has_member(self.path, name)

    def read(self, name: str) -> bytes:
        """Return a file's bytes, as they were sealed if they were. Raises MeasureError."""
        data = self._bytes(name)
        why = altered(name, data, self.seal)
        if why:
            raise MeasureError(why, place=str(self.path / name), remedy=_DAMAGED)
        self._read.add(name)
        return data

    def _bytes(self, name: str) -> bytes:
        try:
            return read_member(self.path, name)
        except FileNotFoundError as error:
            raise MeasureError(
                f"cannot read: {os.strerror(error.errno or 0)}",
                place=str(self.path / name),
            ) from error

    def write_struct(self, name: str, value: Any) -> bytes:
        """Write a struct as indented JSON; returns the bytes written."""
        data = msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
        self.write(name, data)
        return data

    def read_struct(self, name: str, kind: type[_T]) -> _T:
        """Read a struct back. Raises MeasureError naming the file when it does not fit."""
        try:
            return from_json(self.read(name), kind)
        except msgspec.MsgspecError as error:
            raise MeasureError(
                f"damaged: {error}", place=str(self.path / name), remedy=_DAMAGED
            ) from error

    def read_plan(self, kind: type[_T]) -> _T:
        """Return the plan, with the experiment unchanged since it was fixed. Raises MeasureError."""
        planned = next(
            (event for event in reversed(self.events()) if isinstance(event, Planned)),
            None,
        )
        if planned is None:
            self.check_journal()  # a plan whose line was removed must not pass for one that was never made
            raise MeasureError(
                "the journal has no plan: the run was killed before it began",
                place=str(self.path),
            )
        for name, digest in (
            (PLAN, planned.plan_sha256),
            (EXPERIMENT, planned.experiment_sha256),
        ):
            if sha256(self._bytes(name)) != digest:
                raise MeasureError(
                    "changed since the run began: order and rules were fixed before the first trial",
                    place=str(self.path / name),
                    remedy="put the original back, or begin a new experiment",
                )
        for name in self.seal.files:
            if not name.startswith(f"{RAW}/"):
                self.read(name)
        return self.read_struct(PLAN, kind)

    def write_raw(self, trial: int | str, kinds: Mapping[str, bytes]) -> None:
        """Keep raw bytes of a trial, zstd-compressed: ``raw/000123.KIND.zst``. On disk, names included, on return.

        What is not of a trial has a name in place of a number (``lab.preparing.step_name``).

        Half-written files do no harm: raw files without a ``finished`` line are not read. Raises MeasureError.
        """
        # With the ``started`` line on disk first, raw files without one prove that the journal was cut
        # (``lab/integrity.py``).
        self._journal.sync()
        compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
        try:
            with contextlib.ExitStack() as stack:
                files = [
                    stack.enter_context(open(self.path / _raw_name(trial, kind), "wb"))
                    for kind in kinds
                ]
                written = {
                    kind: compressor.compress(data) for kind, data in kinds.items()
                }
                for file, data in zip(files, written.values(), strict=True):
                    file.write(data)
                    file.flush()
                for file in files:
                    os.fdatasync(file.fileno())
            # A new file's name is its directory's data: on btrfs the journal's own sync would not bring it along.
            _sync_directory(self.path / RAW)
        except OSError as error:
            raise self._failed(error) from error
        self._unsealed |= {
            _raw_name(trial, kind): file_seal(data) for kind, data in written.items()
        }

    def read_raw(self, trial: int | str, kind: str) -> bytes:
        """Raw bytes of a trial. Raises MeasureError when they are missing or damaged."""
        name = _raw_name(trial, kind)
        data = self.read(name)
        try:
            if zstandard.frame_content_size(data) > LARGEST_RAW:
                raise zstandard.ZstdError(
                    f"it unpacks to more than {LARGEST_RAW >> 20} MiB"
                )
            # To make one takes longer than to unpack what a trial wrote.
            if self._unpacker is None:
                self._unpacker = zstandard.ZstdDecompressor()
            return self._unpacker.decompress(data)
        except zstandard.ZstdError as error:
            raise MeasureError(
                f"damaged: {error}", place=str(self.path / name), remedy=_DAMAGED
            ) from error

    def has_raw(self, trial: int | str, kind: str) -> bool:
        """Return whether raw bytes of that kind were kept of a trial."""
        return self.has(_raw_name(trial, kind))

    def raw_names(self) -> list[str]:
        """Return names of the raw files, ``raw/`` included."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return [f"{RAW}/{name}" for name in os.listdir(self.path / RAW)]
        return []

    # ----------------------------------------------------------------------------------------------- journal

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """Hold the folder for writing; a torn last line is cut. Raises RequestError when another run holds it."""
        return self._journal.held()

    def append(self, event: Event, *, sync: bool = True) -> None:
        """Append to the journal and sync it; the line seals every file that was written since the one before.

        Raises MeasureError (a full disk) and leaves whole lines only. A line that may be lost together with what comes
        after it, such as that of a trial in flight, needs no ``sync`` at once: ``write_raw`` syncs it.
        """
        self._journal.append(event, files=self._unsealed, sync=sync)
        self._unsealed = {}

    def events(self) -> list[Event]:
        """Return every whole line of the journal, in order, up to the first that is not what was written there.

        Raises MeasureError naming a damaged line.
        """
        return self._journal.events()

    def events_now(self) -> list[Event]:
        """Return the events as they are now; ``seal`` stays that of the last ``events``. Raises MeasureError."""
        return self._journal.events_now()

    @property
    def seal(self) -> Seal:
        """Return what the journal vouches for, as of the last time that its events were read. Raises MeasureError."""
        return self._journal.seal

    def _journal_bytes(self) -> bytes:
        try:
            return self._bytes(JOURNAL)
        except MeasureError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return b""
            raise

    def check_journal(self) -> None:
        """Raises MeasureError when a line of the journal is not what was written there."""
        self._journal.check()

    def chain_at(self, lines: int) -> str:
        """Return the chain of the journal's line of that number. Raises MeasureError."""
        return self._journal.chain_at(lines)

    def altered(self) -> dict[str, str]:
        """Name -> reason of every sealed file that is missing or not what was written; what was read is not read
        again."""
        changed: dict[str, str] = {}
        for name in sorted(self.seal.files.keys() - self._read):
            try:
                self.read(name)
            except MeasureError as error:
                changed[name] = error.what
        return changed

    def _failed(self, error: OSError) -> MeasureError:
        remedy = (
            f"free some space, then `iodelta run {pasted(self.path)}` continues it"
            if error.errno in FULL
            else ""
        )
        return MeasureError(
            f"cannot write to the experiment folder: {os.strerror(error.errno or 0)}",
            place=str(self.path),
            remedy=remedy
            or f"make it writable, then `iodelta run {pasted(self.path)}` continues it",
        )


class CountFolder(Folder):
    """Counts of instructions (``clock = "instructions"``)."""

    def check_times(self) -> None:
        raise RequestError(
            "this folder contains instruction counts, not times",
            place=str(self.path),
            remedy="`iodelta run`, `iodelta report` and `iodelta rebuild` read it",
        )


class DiskFolder(Folder):
    """The preparation of a disk alone."""

    again = "iodelta prepare"

    def check_times(self) -> None:
        raise RequestError(
            "this folder contains the preparation of a disk, not trials",
            place=str(self.path),
            remedy="`iodelta prepare` continues it and `iodelta report` shows it",
        )


WALL = "wall"

KINDS: Mapping[str, type[Folder]] = MappingProxyType(
    {WALL: Folder, "instructions": CountFolder, "rounds": DiskFolder}
)
"""Clock of a plan -> its class of folder."""


class _Clock(msgspec.Struct, frozen=True):
    """Of a plan, whichever it is."""

    clock: str = WALL


def kind_of(folder: Folder) -> type[Folder]:
    """Return the class of folder that its plan makes it; that with trials where no plan can be read, which then says
    so.
    """
    try:
        clock = (
            from_json(folder._bytes(PLAN), _Clock).clock if folder.has(PLAN) else WALL
        )
    except (MeasureError, msgspec.MsgspecError):
        return Folder
    return KINDS.get(clock, Folder)


def holds_trials(path: Path) -> bool:
    """Return whether an experiment folder lies here that is neither of the two below."""
    return _class_at(path) is Folder


def holds_counts(path: Path) -> bool:
    """Return whether a folder of counted instructions lies here."""
    return _class_at(path) is CountFolder


def holds_preparation(path: Path) -> bool:
    """Return whether the folder of a prepared disk lies here."""
    return _class_at(path) is DiskFolder


def _class_at(path: Path) -> type[Folder] | None:
    return kind_of(Folder(path)) if (path / EXPERIMENT).is_file() else None


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _raw_name(trial: int | str, kind: str) -> str:
    stem = trial if isinstance(trial, str) else f"{trial:06d}"
    return f"{RAW}/{stem}.{kind}.zst"


def now() -> float:
    """Unix seconds."""
    return time.time()
