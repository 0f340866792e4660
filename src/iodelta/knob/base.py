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

IDENTITIES = tuple(
    "wwid device/wwid serial device/serial md/uuid dm/uuid loop/backing_file".split()
)
"""Attributes of a disk that identify it, the most reliable first."""


class Saved(msgspec.Struct, frozen=True):
    """The original value of one knob: this record and the machine are enough to restore it."""

    knob: str
    target: str
    """Path of the target as the user wrote it."""
    values: tuple[tuple[str, str], ...]
    """Pairs of path (or what the knob calls it) and text."""
    boot: str
    volatile: bool = True
    """Whether a reboot undoes the setting, so that nothing is left to restore."""
    disks: tuple[tuple[str, str], ...] = ()
    """Kernel name and identity of each disk in ``values``: after a renumbering, nothing is written to another disk."""


class KnobInfo(msgspec.Struct, frozen=True):
    """One line of ``iodelta knobs``. ``reason`` says why it cannot be set here; empty when it can."""

    name: str
    present: str
    allowed: str
    reason: str = ""


class Knob(ABC):
    """One setting of a machine. Nothing is written except by ``apply`` and ``restore``."""

    names: ClassVar[tuple[str, ...]]
    """Names of the family; ``*`` at the end stands for any text."""

    harmless: ClassVar[bool] = False
    """Whether its values can only change how I/O is done: then a stranger's experiment may set it without consent."""

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        self.machine = machine
        self.target = target
        self.name = name

    @classmethod
    def matches(cls, name: str) -> bool:
        """Return whether ``name`` is of this family."""
        return any(_fits(name, pattern) for pattern in cls.names)

    @classmethod
    def catalogue(cls, machine: Machine, target: Target) -> tuple[KnobInfo, ...]:
        """Return the lines of ``iodelta knobs``."""
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
        """Return whether ``apply`` and the record of ``name`` (of this family) also set and restore knob ``other``."""
        return False

    @classmethod
    def danger(cls, name: str) -> str:
        """Return why you must consent before a stranger's experiment sets it; empty if it can only change how I/O is
        done.
        """
        if cls.harmless:
            return ""
        return NOT_ONLY_IO

    @classmethod
    @abstractmethod
    def script(cls, name: str, values: Sequence[str]) -> Script | NoScript:
        """How a shell script sets ``values`` on a machine without iodelta. Raises RequestError."""

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
        """Raise RequestError, with the allowed values, for a value that cannot be set. Writes nothing.

        ``beside`` are all settings of the variant, for values that depend on each other.
        """

    def findings(
        self, values: Sequence[str], size: int | None = None
    ) -> Mapping[str, tuple[Finding, ...]]:
        """Return what is suspicious about ``values`` although they can be set. Called once per session, before any
        trial.

        May read the first ``size`` bytes of the target; all of it if None. Raises RequestError.
        """
        return {}

    @abstractmethod
    def apply(self, value: str) -> None:
        """Set the value. Writes only what differs: a write to a queue attribute drains the queue. Raises KnobError."""

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
        """Return what ``save`` returns, with the present boot and the present identity of ``disks``."""
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
        """Restore the original between trials, for a variant that does not set the knob. Raises KnobError."""
        self.restore(self.machine, saved)

    @classmethod
    @abstractmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        """Restore the original and return what was done. Idempotent. Raises KnobError."""


class Transient(Knob):
    """A knob that changes no state of the machine: it acts before a trial, or on the load only."""

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
    """Return whether ``name`` is of a pattern in ``Knob.names``; ``*`` stands for at least one character."""
    if not pattern.endswith("*"):
        return name == pattern
    return name.startswith(pattern[:-1]) and len(name) >= len(pattern)


def attachment(machine: Machine, disk: str) -> str:
    """Text that identifies, within one boot, the disk that is now called ``disk``; empty if nothing identifies it.

    The kernel numbers every attached disk in ``diskseq`` (since 5.15). Before that, hardware or metadata identify it.
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
    """Raise RequestError unless ``value`` is one line of text: a newline or NUL would start a second setting."""
    if not value.strip() or not value.isprintable():
        raise RequestError(
            f"{value!r} cannot be a value",
            place=name,
            remedy="a value is one line of printable text, not empty",
        )


def whole(value: str) -> bool:
    """Return whether ``value`` is a decimal number, 0 or more, of at most 20 digits (2**64 - 1 has 20)."""
    return (value.isascii() and value.isdecimal()) and len(value) <= 20


def refuse(name: str, value: str, allowed: tuple[str, ...] | str) -> RequestError:
    """Return the error for a value that is not allowed."""
    return RequestError(
        f"{value!r} cannot be set", place=name, remedy=f"allowed: {describe(allowed)}"
    )


def describe(allowed: tuple[str, ...] | str) -> str:
    """Allowed values as text."""
    if isinstance(allowed, str):
        return allowed
    return ", ".join(allowed)


def reason_of(error: MachineError) -> str:
    """Return the kernel's part of a machine's message: ``Device or resource busy (EBUSY)``."""
    return error.what.rsplit(": ", 1)[-1]


def retry_busy(
    attempt: Callable[[], None], *, seconds: float = 1.0, pause: float = 0.02
) -> None:
    """Call ``attempt`` again while it fails with EBUSY, as a write of a scheduler does while its queue is set up."""
    end = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except MachineError as error:
            if "EBUSY" not in error.what or time.monotonic() >= end:
                raise
        time.sleep(pause)
