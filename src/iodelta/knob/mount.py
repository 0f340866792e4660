"""Options of the mounted filesystem that holds the target, changed by remounting.

Source: mount(8), Documentation/admin-guide/ext4.rst, btrfs(5). Of the options that a remount does not name, it keeps
the filesystem's own and clears those of the VFS. The kernel does not show an option at its default. So only options
whose default is listed here can be set: only they can be restored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from iodelta.errors import KnobError, RequestError
from iodelta.knob.base import EMPTY, Knob, Saved
from iodelta.knob.shell import Line, NoScript
from iodelta.machine import Machine
from iodelta.probe.mounts import Mount, mounts
from iodelta.probe.sysfs import is_root
from iodelta.probe.topology import Target

VFS = frozenset("rw ro nosuid nodev noexec nosymfollow sync dirsync mand".split())
"""Flags that a remount clears unless it names them. They are kept, and cannot be set."""


class Option(msgspec.Struct, frozen=True):
    """An option that can be set and restored."""

    default: str
    """The word for the state in which the kernel shows nothing."""
    pattern: str
    """Regular expression of the words that set it."""
    spelled: str
    """The same words for a reader."""


def _flag(name: str, *, on: bool) -> Option:
    return Option(name if on else f"no{name}", f"(no)?{name}", f"{name}, no{name}")


def _number(name: str, default: int) -> Option:
    return Option(f"{name}={default}", rf"{name}=\d{{1,9}}", f"{name}=N")


ANY = {
    "atime": Option(
        "strictatime", "noatime|relatime|strictatime", "noatime, relatime, strictatime"
    ),
    "diratime": _flag("diratime", on=True),
    "lazytime": _flag("lazytime", on=False),
}
OWN = {
    "ext4": {
        "barrier": _flag("barrier", on=True),
        "discard": _flag("discard", on=False),
        "auto_da_alloc": _flag("auto_da_alloc", on=True),
        "commit": _number("commit", 5),
        "inode_readahead_blks": _number("inode_readahead_blks", 32),
        "max_batch_time": _number("max_batch_time", 15000),
        "min_batch_time": _number("min_batch_time", 0),
    },
    "btrfs": {
        "autodefrag": _flag("autodefrag", on=False),
        "barrier": _flag("barrier", on=True),
        "commit": _number("commit", 30),
        "compress": Option(
            "compress=no",
            r"compress(-force)?=(no|lzo|zlib(:\d+)?|zstd(:-?\d+)?)",
            "compress=ALGORITHM[:LEVEL]",
        ),
        "discard": Option(
            "nodiscard",
            "nodiscard|discard(=async)?",
            "nodiscard, discard, discard=async",
        ),
        "flushoncommit": _flag("flushoncommit", on=False),
        "metadata_ratio": _number("metadata_ratio", 0),
        "ssd": _flag("ssd", on=False),
    },
}


class MountOptions(Knob):
    """``mount.options``: ``noatime,commit=30``, in addition to the original options, which a variant without it has."""

    names = ("mount.options",)
    harmless = True

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        self._original: Mount | None = None

    def available(self) -> str | None:
        if not self.target.mount:
            return f"needs a mounted filesystem: {self.target.path} is on none"
        if not self.target.devices:
            return f"needs a filesystem on a block device: {self.target.reason}"
        if {"ro", "rw"} <= set(self._mount().options):
            return f"{self.target.mount} is a read-only view of a writable filesystem: a remount would change both"
        if not is_root(self.machine):
            return "needs root, to remount"
        return None

    def allowed(self) -> str:
        return ", ".join(
            option.spelled for option in _options(self.target.fstype).values()
        )

    def read(self) -> str:
        return ",".join(self._mount().options)

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        words = value.split(",")
        keys = [_key(self.target.fstype, word) for word in words]
        for key, word in zip(keys, words, strict=True):
            if key is None:
                raise RequestError(
                    f"{word!r} cannot be set by a remount that can be undone",
                    place=self.name,
                    remedy=f"allowed on {self.target.fstype}: {self.allowed()}",
                )
            if keys.count(key) > 1:
                raise RequestError(
                    f"{value!r} sets {key} twice",
                    place=self.name,
                    remedy="keep one of them",
                )

    def save(self, values: Sequence[str] = ()) -> Saved:
        self._original = mount = self._mount()
        record = (
            ("point", mount.point),
            ("devno", mount.devno),
            ("options", ",".join(mount.options)),
        )
        return self.record(record)

    def apply(self, value: str) -> None:
        mount = self._mount()
        if not _holds(_shown(mount.fstype, mount.options), self._wanted(value)):
            _remount(self.machine, mount, self._wanted(value))

    def verify(self, value: str) -> None:
        mount, wanted = self._mount(), self._wanted(value)
        if not _holds(_shown(mount.fstype, mount.options), wanted):
            raise KnobError(
                f"requested {value!r}; the filesystem accepted the remount and shows {','.join(mount.options)}",
                place=mount.point,
                remedy="it may not change this option while mounted: mount it with the option before the experiment",
            )

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        record = dict(saved.values)
        mount = _find(machine, record["point"])
        if mount is None or mount.devno != record["devno"]:
            return f"nothing to do: the filesystem on {record['point']} was unmounted, and its options with it"
        options = tuple(record["options"].split(","))
        if set(mount.options) == set(options):
            return "has its original options"
        _remount(machine, mount, _shown(mount.fstype, options))
        now = _find(machine, mount.point)
        if now is None or set(now.options) != set(options):
            shown = ",".join(now.options) if now else "nothing"
            raise KnobError(
                f"remounted, and shows {shown} instead of {record['options']}",
                place=mount.point,
                remedy=f"by hand: mount -o remount,{record['options']} {mount.source} {mount.point}",
            )
        return f"{mount.point} is mounted with {record['options']} again"

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> NoScript:
        return NoScript("what a remount undoes depends on the filesystem")

    @classmethod
    def undo_lines(cls, saved: Saved) -> Iterator[Line]:
        record = dict(saved.values)
        yield ("mount", "-o", f"remount,{record['options']}", "--", record["point"])

    def _mount(self) -> Mount:
        mount = _find(self.machine, self.target.mount)
        if mount is None:
            raise KnobError(
                "is no longer mounted", place=self.target.mount, remedy="mount it again"
            )
        return mount

    def _wanted(self, value: str) -> dict[str, str]:
        """Return the options that the kernel should show: the original ones and those of ``value``, without defaults."""
        mount = self._original or self._mount()
        return _shown(mount.fstype, (*mount.options, *value.split(",")))


def _find(machine: Machine, point: str) -> Mount | None:
    """Return the mount at a mount point: of several, the latest hides the others."""
    for mount in reversed(mounts(machine)):
        if mount.point == point:
            return mount
    return None


def _options(fstype: str) -> dict[str, Option]:
    return ANY | OWN.get(fstype, {})


def _key(fstype: str, word: str) -> str | None:
    """Return the name of the settable option that a word sets, or None."""
    for key, option in _options(fstype).items():
        if re.fullmatch(option.pattern, word, re.ASCII):
            return key
    return None


def _shown(fstype: str, words: Sequence[str]) -> dict[str, str]:
    """Settable options by key, without those at their default; of two words for one option the later counts."""
    options = _options(fstype)
    latest: dict[str, str] = {}
    for word in words:
        key = _key(fstype, word)
        if key:
            latest[key] = word
    return {key: word for key, word in latest.items() if word != options[key].default}


def _holds(present: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Return whether the options shown are those wanted: ``compress=zstd`` is shown as ``compress=zstd:3``."""
    if present.keys() != wanted.keys():
        return False
    return all(f"{present[key]}:".startswith(f"{wanted[key]}:") for key in wanted)


def _remount(machine: Machine, mount: Mount, wanted: Mapping[str, str]) -> None:
    """Remount with exactly the ``wanted`` settable options, and the flags that are set now. Raises KnobError."""
    options = _options(mount.fstype)
    present = _shown(mount.fstype, mount.options)
    words = [word for word in mount.options if word in VFS]
    for key, word in wanted.items():
        # A remount clears options of the VFS that it does not name, and keeps the filesystem's own.
        if key in ANY or present.get(key) != word:
            words.append(word)
    words += [options[key].default for key in present if key not in wanted]
    # With both source and mount point given, mount(8) does not add the options in fstab.
    remount = ",".join(["remount", *words])
    done = machine.run(["mount", "-o", remount, "--", mount.source, mount.point])
    if done.returncode != 0:
        raise KnobError(
            f"cannot be remounted with {','.join(words)}: {done.error_text}",
            place=mount.point,
            remedy="dmesg may say more",
        )
