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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, BinaryIO, Literal, TypeVar

import msgspec
import zstandard

from iodelta import __version__
from iodelta.decoding import decoder, from_json
from iodelta.errors import MeasureError, RequestError, pasted
from iodelta.lab.journal import Journal
from iodelta.lab.opened import has_member, read_member
from iodelta.lab.seal import FileSeal, Seal, altered, file_seal, sha256

Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
"""Of a journal that may come from a stranger."""


class Planned(msgspec.Struct, frozen=True, tag="planned"):
    """The plan is on disk: order, rules and experiment are fixed from here on."""

    at: float
    plan_sha256: str
    experiment_sha256: str
    version: str


class Session(msgspec.Struct, frozen=True, tag="session"):
    """A run (or its continuation) began on a booted machine."""

    at: float
    boot_id: str
    pid: int
    target: dict[str, Any]
    environment: str
    """The environment file of this session."""
    machine: str = ""
    """Its name, as in ``ssh:HOST``; of several hosts each has a session of its own."""
    disk: dict[str, Any] | None = None
    """What was known of the state of a disk that is written to; None where that was not asked."""


class KnobSaved(msgspec.Struct, frozen=True, tag="knob-saved"):
    """The original value of a knob, on disk before the first write to it."""

    at: float
    saved: dict[str, Any]


class KnobRestored(msgspec.Struct, frozen=True, tag="knob-restored"):
    """A knob has its original value again."""

    at: float
    knob: str


class Started(msgspec.Struct, frozen=True, tag="started"):
    """A trial is about to run."""

    at: Seconds
    trial: Number
    cell: str
    block: Number
    attempt: Number
    position: Number
    variant: str
    seed: int
    conditioning: bool = False
    """Its variant's first trial of a superblock, which does not count."""


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """A trial is over and its raw record is on disk; ``problem`` is empty for a usable one."""

    at: Seconds
    trial: Number
    seconds: Seconds
    """Wall time since the trial before it ended, or the session began: iodelta's own work is in it."""
    problem: str = ""


class Repeated(msgspec.Struct, frozen=True, tag="repeated"):
    """A block is repeated: a trial was ``spoilt`` and cannot be used.

    Folders made by 0.1 also have blocks that were repeated for ``noise``; of those the first attempt counts.
    """

    at: float
    cell: str
    block: int
    attempt: int
    """The attempt that is given up."""
    why: Literal["spoilt", "noise"]
    reason: str


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A trial that could not be run at all (a knob, the machine, the guard), with the reason."""

    at: float
    trial: int
    reason: str


class Abandoned(msgspec.Struct, frozen=True, tag="abandoned"):
    """A cell that could not be measured, with its reason; the experiment went on without it."""

    at: float
    cell: str
    reason: str


class LeftOut(msgspec.Struct, frozen=True, tag="left-out"):
    """A variant whose kernel did not come up, with the reason; the experiment went on without it."""

    at: float
    variant: str
    reason: str


class Extended(msgspec.Struct, frozen=True, tag="extended"):
    """The user asked for more blocks or budget after the end; they are judged with the alpha held in reserve."""

    at: float
    budget: float
    blocks: int


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A session ended by itself: ``complete``, ``budget``, ``interrupted`` or ``failed: ...``."""

    at: float
    reason: str


class Kept(msgspec.Struct, frozen=True, tag="kept"):
    """Files that belong to no trial were written; the line seals them."""

    at: float


class Booted(msgspec.Struct, frozen=True, tag="booted"):
    """A guest of path mode ended and what it wrote is on disk; ``problem`` is empty when it came to its own end."""

    at: float
    boot: int
    seconds: float
    problem: str = ""
    console: tuple[str, ...] = ()
    """The last lines of its console, when there was a problem."""


class Rebooted(msgspec.Struct, frozen=True, tag="rebooted"):
    """A host was rebooted for a variant and came up as requested."""

    at: float
    machine: str
    variant: str
    boot_id: str
    release: str
    cmdline: str
    way: str
    seconds: float
    """Until it was back."""


class Preparing(msgspec.Struct, frozen=True, tag="preparing"):
    """The preparation of a disk began, or goes on; all that was on the disk is given up from here on."""

    at: float
    boot_id: str
    pid: int
    target: dict[str, Any]
    size: int
    """Bytes that are prepared, from the beginning of the disk."""
    workload: tuple[tuple[str, str | None], ...]
    """fio options of the rounds."""
    machine: str = ""


class StepBegun(msgspec.Struct, frozen=True, tag="step-begun"):
    """A step of a preparation is about to run."""

    at: float
    number: int
    """Of all steps in this folder, from 1."""
    step: Literal["purge", "fill", "round"]
    machine: str = ""


class StepDone(msgspec.Struct, frozen=True, tag="step-done"):
    """A step of a preparation is over and its raw output is on disk."""

    at: float
    number: int
    step: Literal["purge", "fill", "round"]
    started: float
    """Unix seconds."""
    seconds: float
    written: int
    """Bytes."""
    machine: str = ""


class Settled(msgspec.Struct, frozen=True, tag="settled"):
    """A preparation came to its end: the disk is steady, or did not become so within the limit of rounds."""

    at: float
    steady: bool
    rounds: int
    """Made until then."""
    machine: str = ""


Event = (
    Planned
    | Session
    | KnobSaved
    | KnobRestored
    | Started
    | Finished
    | Repeated
    | Failed
    | Abandoned
    | LeftOut
    | Extended
    | Ended
    | Kept
    | Booted
    | Rebooted
    | Preparing
    | StepBegun
    | StepDone
    | Settled
)


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


def room_for(error: OSError) -> str:
    """Return what to do about a file that cannot be written, in the same words everywhere."""
    return "free some space" if error.errno in FULL else "make it writable"


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
        self._place = path
        """The folder by its descriptor while it is written to."""
        self._number: tuple[int, int] | None = None
        """Device and inode of the folder when it was first seen."""
        self._is_draft = False
        with contextlib.suppress(OSError):
            self._number = _number_of(os.stat(path))

    @contextlib.contextmanager
    def _entered(self) -> Iterator[Path]:
        """Open the folder for what is written meanwhile: another user may exchange its name for a link at any time.

        Raises MeasureError where the name leads to another directory than when it was first seen."""
        if self._place != self.path:
            yield self._place
            return
        try:
            flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
            descriptor = os.open(self.path, flags)
        except OSError as error:
            raise self._failed(error) from error
        try:
            number = _number_of(os.fstat(descriptor))
            is_ours = self._is_draft or has_member(
                f"/proc/self/fd/{descriptor}", EXPERIMENT
            )
            if self._number not in (None, number) or not is_ours:
                raise MeasureError(
                    "another directory has this name by now: somebody exchanged it",
                    place=str(self.path),
                    remedy="choose a directory in which only you may rename anything",
                )
            self._number, self._place = number, Path(f"/proc/self/fd/{descriptor}")
            self._journal.at = self._place / JOURNAL
            yield self._place
        finally:
            self._place, self._journal.at = self.path, self.path / JOURNAL
            os.close(descriptor)

    def remove(self) -> None:
        """Delete the folder with what is in it; nothing that has its name by now."""
        with self._entered() as place:
            _empty(place)
        with contextlib.suppress(OSError):
            self.path.rmdir()

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
        name, made, descriptors = (
            f".{path.name}.{uuid.uuid4().hex[:8]}",
            False,
            list[int](),
        )
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptors.append(parent := os.open(path.parent, flags))
            if not os.geteuid() and not _is_there(parent, path.parent.absolute()):
                raise MeasureError(
                    "a link on its way was made or exchanged by another user"
                )
            os.mkdir(name, dir_fd=parent)
            inside = os.open(name, flags | os.O_NOFOLLOW, dir_fd=parent)
            descriptors.append(inside)
            if os.listdir(inside):
                raise MeasureError("somebody exchanged it while it was made")
            os.mkdir(RAW, dir_fd=inside)
            draft = cls(path.with_name(name))
            draft._number, draft._is_draft = _number_of(os.fstat(inside)), True
            yield draft
            os.fsync(inside)
            os.rename(name, path.name, src_dir_fd=parent, dst_dir_fd=parent)
            made = True
            os.fsync(parent)
        except (OSError, MeasureError) as error:
            what = error.what if isinstance(error, MeasureError) else error.strerror
            raise MeasureError(
                f"cannot make the folder: {what}",
                place=str(path),
                remedy="nothing was started; free some space, or name another folder with --folder",
            ) from error
        finally:
            if len(descriptors) == 2 and not made:
                _empty(Path(f"/proc/self/fd/{descriptors[1]}"))
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=descriptors[0])
            for descriptor in descriptors:
                os.close(descriptor)

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
        folder = KINDS[getattr(plan, "clock", WALL)](path)
        folder._number = draft._number
        return folder

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
        with self._entered() as place:
            temporary = place / f".{name}.{os.getpid()}"
            try:
                with new_file(temporary) as file:
                    file.write(data)
                    file.flush()
                    os.fdatasync(file.fileno())
                temporary.replace(place / name)
                descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as error:
                with contextlib.suppress(OSError):
                    temporary.unlink()
                raise self._failed(error) from error
        if name not in DERIVED:
            self._unsealed[name] = file_seal(data)

    def has(self, name: str) -> bool:
        """Return whether there is such a file."""
        return has_member(self._place, name)

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
            return read_member(self._place, name, shown=self.path)
        except FileNotFoundError as error:
            raise MeasureError(
                f"cannot read: {error.strerror}",
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

    def read_plan(self, kind: type[_T], events: Sequence[Event] | None = None) -> _T:
        """Return the plan, with the experiment unchanged since it was fixed; ``events``, where they were read already.

        Raises MeasureError."""
        events = self.events() if events is None else events
        planned = next(
            (event for event in reversed(events) if isinstance(event, Planned)),
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
        with self._entered() as place, contextlib.ExitStack() as stack:
            try:
                # Through no link that somebody made of the directory.
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                raw = os.open(place / RAW, flags)
                stack.callback(os.close, raw)
                files = [
                    stack.enter_context(
                        new_file(
                            Path(f"/proc/self/fd/{raw}", _raw_name(trial, kind)[4:]),
                        )
                    )
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
                os.fsync(raw)
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
            return [f"{RAW}/{name}" for name in os.listdir(self._place / RAW)]
        return []

    # ----------------------------------------------------------------------------------------------- journal

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder for writing; a torn last line is cut. Raises RequestError when another run holds it."""
        with self._entered(), self._journal.held():
            yield

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


def _number_of(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def _is_there(descriptor: int, path: Path) -> bool:
    """Return whether what is open is what the path leads to, by no link that a user other than root may have made."""
    from iodelta.machine import LocalMachine
    from iodelta.machine.held import way_to

    try:
        way = way_to(LocalMachine(), str(path))
    except RequestError:
        return False
    return os.readlink(f"/proc/self/fd/{descriptor}") == way.path


def new_file(path: Path) -> BinaryIO:
    """Make a file anew, in place of one that has the name: no link is followed, and no other name of it is written to."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o666), "wb")


def _empty(place: Path) -> None:
    for entry in os.scandir(place):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)


def _raw_name(trial: int | str, kind: str) -> str:
    stem = trial if isinstance(trial, str) else f"{trial:06d}"
    return f"{RAW}/{stem}.{kind}.zst"


def now() -> float:
    """Unix seconds."""
    return time.time()
