"""Settings that are small text files of the kernel: one reader and one writer for apply, verify and restore."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from iodelta.decoding import active
from iodelta.errors import KnobError, MachineError
from iodelta.knob.base import (
    EMPTY,
    Knob,
    Saved,
    attachment,
    check_text,
    describe,
    reason_of,
    refuse,
    retry_busy,
)
from iodelta.knob.shell import Line, NoScript, Script, Shell
from iodelta.machine import Machine
from iodelta.probe.sysfs import attribute, is_root, status, sysfs_name
from iodelta.probe.topology import Target

ROOTS = ("/sys/", "/proc/sys/", "/proc/irq/")
"""Where the kernel's settings are; nothing is written anywhere else."""


class FileKnob(Knob):
    """A value that is the same text in each of ``paths``."""

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._pinned: tuple[tuple[str, str], ...] = ()

    @abstractmethod
    def paths(self) -> tuple[str, ...]:
        """The files that ``apply`` writes; empty when this machine or target has none."""

    @abstractmethod
    def absent(self) -> str:
        """Why ``paths`` is empty or its files are not there."""

    @classmethod
    @abstractmethod
    def script_files(cls, name: str) -> Line | NoScript:
        """The words by which a script finds ``paths`` on the machine where it runs. Raises RequestError."""

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script | NoScript:
        files = cls.script_files(name)
        if isinstance(files, NoScript):
            return files
        return Script(
            keep=(("keep", *files),),
            values={value: (("put_all", value, *files),) for value in values},
            release=(("put_back_all", *files),),
        )

    @classmethod
    def undo_lines(cls, saved: Saved) -> Iterator[Line]:
        for path, text in saved.values:
            if path.startswith(ROOTS):
                yield ("printf", "%s", text, Shell(">"), path)

    def also(self) -> tuple[str, ...]:
        """Files that a write to ``paths`` changes as a side effect. They are saved, and restored after ``paths``."""
        return ()

    @classmethod
    def parse(cls, text: str) -> str:
        """Return the value in a file's text; in a list the kernel puts the active one in brackets."""
        return active(text)

    def same(self, path: str, wanted: str, present: str) -> bool:
        """Return whether ``present`` is what the kernel shows after ``wanted`` was written."""
        return wanted == present

    def disks(self) -> tuple[str, ...]:
        """Kernel names of the disks that the paths belong to."""
        return ()

    def available(self) -> str | None:
        paths = self.paths()
        if not paths:
            return self.absent()
        return unusable(self.machine, paths[0], self.absent())

    def read(self) -> str:
        return " | ".join(dict.fromkeys([self._value(path) for path in self.paths()]))

    def save(self, values: Sequence[str] = ()) -> Saved:
        originals = [(path, self._value(path)) for path in self.paths()]
        for path in self.also():
            text = attribute(self.machine, path)
            if text is not None:
                originals.append((path, self.parse(text)))
        saved = self.record(originals, disks=self.disks())
        self._pinned = saved.disks
        return saved

    def takes(self, value: str) -> bool:
        """Return whether ``value`` is allowed, as far as that can be known before it is written."""
        allowed = self.allowed()
        return isinstance(allowed, str) or value in allowed

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        check_text(self.name, value)
        if not self.takes(value):
            raise refuse(self.name, value, self.allowed())

    def apply(self, value: str) -> None:
        for path in self.paths():
            if self.same(path, value, self._value(path)):
                continue
            renumbered = _another_disk(self.machine, self._pinned, path)
            if renumbered:
                raise KnobError(
                    renumbered,
                    place=path,
                    remedy="start a new experiment on the disk you mean",
                )
            put(self.machine, path, value, f"allowed: {describe(self.allowed())}")

    def verify(self, value: str) -> None:
        for path in self.paths():
            present = self._value(path)
            if not self.same(path, value, present):
                raise KnobError(
                    f"requested {value!r}; the kernel accepted the write and shows {present!r}",
                    place=path,
                    remedy=f"allowed: {describe(self.allowed())}",
                )

    def _value(self, path: str) -> str:
        """Return the present value of one file. Raises KnobError."""
        return self.parse(text_of(self.machine, path))

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        # A dict keeps the order and drops repeats.
        accounts: dict[str, None] = {}
        errors: list[str] = []
        for path, text in saved.values:
            if not is_setting(path):
                raise KnobError(
                    f"the record names {path!r}, which is not a kernel setting",
                    place=saved.knob,
                )
            other = _another_disk(machine, saved.disks, path)
            if other:
                absent = f"{path} left as it is: {other}"
            elif machine.glob(path):
                absent = ""
            else:
                absent = f"{path} no longer exists, nor does its setting"
            if absent:
                accounts[absent] = None
                continue
            try:
                if cls.parse(text_of(machine, path)) != text:
                    put(machine, path, text, f"by hand: echo {text} > {path}")
                    accounts[f"{path} = {text} again"] = None
            except KnobError as error:
                errors.append(error.sentence)
        # After a failed write, what the files show would only repeat the error.
        if not errors:
            errors += _differing(cls, machine, saved)
        if errors:
            raise KnobError(
                "; ".join(errors),
                place=saved.knob,
                remedy="iodelta restore tries again",
            )
        return "; ".join(accounts) or "is at its original value"


class ResettingKnob(FileKnob):
    """A setting whose change makes the kernel reset others.

    A variant must mean the same in every block. So the original value always comes back with the other settings as they
    were at ``save``, and any other value with those that the kernel chose when it was first applied.
    """

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._states: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}

    @abstractmethod
    def resets(self, path: str) -> tuple[str, ...]:
        """The files that a write to ``path`` resets, in the order in which they must be restored."""

    @classmethod
    @abstractmethod
    def script_resets(cls, name: str) -> Line:
        """The words by which a script finds the files that a write to ``script_files`` resets."""

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script | NoScript:
        script = super().script(name, values)
        if isinstance(script, NoScript):
            return script
        resets = cls.script_resets(name)
        keep = (*script.keep, ("keep", *resets))
        return msgspec.structs.replace(
            script, keep=keep, release=(*script.release, ("put_back_all", *resets))
        )

    def also(self) -> tuple[str, ...]:
        return tuple(chain.from_iterable(self.resets(path) for path in self.paths()))

    def save(self, values: Sequence[str] = ()) -> Saved:
        saved = super().save(values)
        for path in self.paths():
            self._states[path, self._value(path)] = self._state(path)
        return saved

    def apply(self, value: str) -> None:
        super().apply(value)
        for path in self.paths():
            present = self._state(path)
            # The first time that a value is applied decides what the other settings are under it.
            wanted = self._states.setdefault((path, value), present)
            for other, text in wanted:
                if attribute(self.machine, other) != text:
                    put(self.machine, other, text, f"as it was under {value} before")

    def _state(self, path: str) -> tuple[tuple[str, str], ...]:
        """Return the files that a write to ``path`` resets, each with its present text."""
        state: list[tuple[str, str]] = []
        for other in self.resets(path):
            text = attribute(self.machine, other)
            if text is not None:
                state.append((other, text))
        return tuple(state)


def is_setting(path: str) -> bool:
    """Return whether a path in a record is a kernel setting: a forged record must not write anywhere else."""
    return path.startswith(ROOTS) and ".." not in path.split("/")


def _differing(family: type[FileKnob], machine: Machine, saved: Saved) -> Iterable[str]:
    """Yield the settings that do not read back as saved after everything was written, in sentences."""
    # A path that is named twice must show the last value written.
    for path, text in dict(saved.values).items():
        if not machine.glob(path) or _another_disk(machine, saved.disks, path):
            continue
        present = family.parse(text_of(machine, path))
        if present != text:
            yield f"{path}: wrote {text!r}, the kernel shows {present!r}"


def _another_disk(
    machine: Machine, pinned: tuple[tuple[str, str], ...], path: str
) -> str:
    """Return a message if ``path`` now belongs to a disk other than the one whose setting was saved; else empty."""
    for disk, before in pinned:
        if f"/{sysfs_name(disk)}/" not in path:
            continue
        now = attachment(machine, disk)
        if now != before and machine.glob(path):
            return f"{disk} is another disk now ({now or 'nothing attached'}; it was {before})"
    return ""


def put(machine: Machine, path: str, text: str, remedy: str) -> None:
    """Write one value. Raises KnobError with path, value and the kernel's reason."""
    try:
        retry_busy(lambda: machine.write(path, text))
    except MachineError as error:
        raise KnobError(
            f"cannot set {text!r}: {reason_of(error)}", place=path, remedy=remedy
        ) from error


def text_of(machine: Machine, path: str) -> str:
    """Text of a setting. Raises KnobError."""
    try:
        return machine.read(path)
    except MachineError as error:
        raise KnobError(
            f"cannot be read: {reason_of(error)}",
            place=path,
            remedy="did the device or filesystem go away?",
        ) from error


def choices(text: str) -> tuple[str, ...]:
    """``none [mq-deadline]`` -> both names; empty for a text without brackets, which is not a list."""
    words = text.split()
    if not any(word.startswith("[") for word in words):
        return ()
    return tuple(word.strip("[]") for word in words)


def in_all(offers: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the words that every file offers, in the order of the first."""
    if not offers:
        return ()
    common = set(offers[0]).intersection(*offers[1:])
    return tuple(word for word in offers[0] if word in common)


def unusable(machine: Machine, path: str, absent: str) -> str | None:
    """Return why a file cannot be set, or None. Writes nothing."""
    stat = status(machine, path)
    if stat is None:
        return absent
    try:
        machine.read(path)
    except MachineError as error:
        return f"{path} cannot be read back: {reason_of(error)}"
    if not stat.mode & 0o222:
        return f"the kernel offers {path} for reading only"
    return needs_write(machine, path)


def needs_write(machine: Machine, path: str) -> str | None:
    """Return why this user cannot write there, or None."""
    if machine.run(["test", "-w", path]).returncode == 0:
        return None
    if not is_root(machine):
        return f"needs root: {path}"
    return f"{path} is on a read-only filesystem (in a container?)"
