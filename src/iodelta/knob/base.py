"""What every knob can do, and the record from which its original value is restored.

Order of use: ``save`` every knob of an experiment and make the records durable before the first ``apply``; then
``iodelta.knob.turn`` before each trial; at the end, after a crash or at the next start ``iodelta.knob.restore_all``.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

import msgspec

from iodelta.errors import KnobError, MachineError, RequestError
from iodelta.knob.shell import Line, NoScript, Script
from iodelta.machine import Machine
from iodelta.probe.sysfs import attribute, boot_id, sysfs_name
from iodelta.probe.topology import Target
from iodelta.trial import Finding

EMPTY: Mapping[str, str] = MappingProxyType({})

NOT_ONLY_IO = "not among the settings that can only change how I/O is done"

IDENTITIES = (
    "wwid",
    "device/wwid",
    "serial",
    "device/serial",
    "md/uuid",
    "dm/uuid",
    "loop/backing_file",
)
"""Attributes of a disk that identify it, the most reliable first."""


class Saved(msgspec.Struct, frozen=True):
    """The original of one knob: restoring needs this record and the machine, nothing else."""

    knob: str
    target: str
    """Path of the target as the user wrote it."""
    values: tuple[tuple[str, str], ...]
    """Pairs of path (or what the knob calls it) and text."""
    boot: str
    volatile: bool = True
    """A reboot has undone the setting already."""
    disks: tuple[tuple[str, str], ...] = ()
    """Kernel name and identity of each disk that ``values`` name: a renumbered disk must not be written to."""


class KnobInfo(msgspec.Struct, frozen=True):
    """One line of ``iodelta knobs``. ``reason`` says why it cannot be set here; empty when it can."""

    name: str
    present: str
    allowed: str
    reason: str = ""


class Knob(ABC):
    """One setting of a machine. Nothing is written except by ``apply`` and ``restore``."""

    names: ClassVar[tuple[str, ...]]
    """Names of the family; a last part ``*`` stands for any text."""

    harmless: ClassVar[bool] = False
    """Whether no value of it can do more than change how I/O is done: a stranger may set it without asking."""

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        self.machine = machine
        self.target = target
        self.name = name

    @classmethod
    def matches(cls, name: str) -> bool:
        """Whether ``name`` is of this family."""
        return any(_fits(name, pattern) for pattern in cls.names)

    @classmethod
    def catalogue(cls, machine: Machine, target: Target) -> tuple[KnobInfo, ...]:
        """The lines of ``iodelta knobs``."""
        return tuple(cls(machine, target, name).info() for name in cls.names)

    def info(self) -> KnobInfo:
        """Its line in ``iodelta knobs``."""
        try:
            reason = self.available()
            if reason:
                return KnobInfo(self.name, "", "", reason)
            return KnobInfo(self.name, self.read(), describe(self.allowed()))
        except (KnobError, MachineError, RequestError) as error:
            # A knob that cannot be read must not hide the others.
            return KnobInfo(self.name, "", "", error.sentence)

    @classmethod
    def covers(cls, name: str, other: str) -> bool:
        """Whether ``apply`` and the record of ``name``, of this family, also decide the state of knob ``other``."""
        return False

    @classmethod
    def danger(cls, name: str) -> str:
        """Why its use by a stranger needs separate consent; empty if it can only change how I/O is done."""
        if cls.harmless:
            return ""
        return NOT_ONLY_IO

    @classmethod
    @abstractmethod
    def script(cls, name: str, values: Sequence[str]) -> Script | NoScript:
        """How a plain shell script does the same with ``values`` on a machine without iodelta. Raises RequestError."""

    @classmethod
    @abstractmethod
    def undo_lines(cls, saved: Saved) -> Iterator[Line]:
        """Lines of shell that do what ``restore`` does, for a machine without iodelta."""

    @abstractmethod
    def available(self) -> str | None:
        """Why this cannot be set on this machine for this target, or None."""

    @abstractmethod
    def allowed(self) -> tuple[str, ...] | str:
        """The allowed values, or a description of their range."""

    @abstractmethod
    def read(self) -> str:
        """The present value. Raises KnobError."""

    @abstractmethod
    def save(self, values: Sequence[str] = ()) -> Saved:
        """The record that ``restore`` needs. ``values`` are all the values that will be applied. Raises KnobError."""

    @abstractmethod
    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        """Raises RequestError that names the allowed values. Writes nothing.

        ``beside`` are the settings of the same variant, for a value that only goes with another one.
        """

    def findings(
        self, values: Sequence[str], size: int | None = None
    ) -> Mapping[str, tuple[Finding, ...]]:
        """What is suspicious about ``values`` although they can be set. Asked once per session, before its first trial.

        May read the first ``size`` bytes of what is measured, all of them with None. Raises RequestError.
        """
        return {}

    @abstractmethod
    def apply(self, value: str) -> None:
        """Set it. Writes only what differs, since a write to a queue attribute drains the queue. Raises KnobError."""

    @abstractmethod
    def verify(self, value: str) -> None:
        """Read back and compare. Raises KnobError with the requested and the actual value."""

    def record(
        self,
        values: Sequence[tuple[str, str]],
        *,
        volatile: bool = True,
        disks: Sequence[str] = (),
    ) -> Saved:
        """What ``save`` returns, with the present boot and the present identity of ``disks``."""
        pinned = tuple((disk, attachment(self.machine, disk)) for disk in disks)
        return Saved(
            self.name,
            self.target.path,
            tuple(values),
            boot_id(self.machine),
            volatile,
            pinned,
        )

    def launcher(self, value: str) -> tuple[str, ...]:
        """Words to put in front of the load's command."""
        return ()

    def release(self, saved: Saved) -> None:
        """Back to the original between trials, for a variant that does not set it. Raises KnobError."""
        self.restore(self.machine, saved)

    @classmethod
    @abstractmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        """Put the original back, idempotently; says what was done. Raises KnobError."""


class Transient(Knob):
    """A knob that leaves nothing behind on the machine: it acts before a trial, or on the load alone."""

    nothing_to_restore: ClassVar[str]
    """What ``iodelta restore`` says of its record."""

    def save(self, values: Sequence[str] = ()) -> Saved:
        return self.record(())

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        return cls.nothing_to_restore

    @classmethod
    def undo_lines(cls, saved: Saved) -> Iterator[Line]:
        yield from ()


def _fits(name: str, pattern: str) -> bool:
    """Whether ``name`` is of a pattern in ``Knob.names``; ``*`` stands for at least one character."""
    if not pattern.endswith("*"):
        return name == pattern
    return name.startswith(pattern[:-1]) and len(name) >= len(pattern)


def attachment(machine: Machine, disk: str) -> str:
    """What distinguishes, within one boot, the disk now called ``disk`` from another that gets the name later.

    The kernel counts every attachment in ``diskseq`` (since 5.15); before that, what the hardware or metadata says.
    """
    base = f"/sys/block/{sysfs_name(disk)}"
    sequence = attribute(machine, f"{base}/diskseq")
    if sequence:
        return f"attachment {sequence}"
    for name in IDENTITIES:
        text = attribute(machine, f"{base}/{name}")
        if text:
            return f"{name} {text}"
    return ""


def check_text(name: str, value: str) -> None:
    """A value is one line of text: a newline or NUL would be a second setting. Raises RequestError."""
    if not value.strip() or not value.isprintable():
        raise RequestError(
            f"{value!r} cannot be a value",
            place=name,
            remedy="a value is one line of printable text, not empty",
        )


def whole(value: str) -> bool:
    """Whether it is a whole number, from 0, that a kernel could hold."""
    digits = value.isascii() and value.isdecimal()
    return digits and len(value) <= 20


def refuse(name: str, value: str, allowed: tuple[str, ...] | str) -> RequestError:
    """The error for a value that is not allowed."""
    return RequestError(
        f"{value!r} cannot be set", place=name, remedy=f"allowed: {describe(allowed)}"
    )


def describe(allowed: tuple[str, ...] | str) -> str:
    """Allowed values for a reader."""
    if isinstance(allowed, str):
        return allowed
    return ", ".join(allowed)


def reason_of(error: MachineError) -> str:
    """The kernel's word out of a machine's message: ``Device or resource busy (EBUSY)``."""
    return error.what.rsplit(": ", 1)[-1]


def retry_busy(
    attempt: Callable[[], None], *, seconds: float = 1.0, pause: float = 0.02
) -> None:
    """Repeat for a while what fails with EBUSY, as a scheduler does on a queue that is just being set up."""
    end = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except MachineError as error:
            if "EBUSY" not in error.what or time.monotonic() >= end:
                raise
        time.sleep(pause)
