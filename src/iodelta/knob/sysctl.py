"""Kernel settings below /proc/sys. Source: sysctl(8), Documentation/admin-guide/sysctl/."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from iodelta.errors import RequestError
from iodelta.knob.base import NOT_ONLY_IO, KnobInfo, Saved
from iodelta.knob.files import FileKnob
from iodelta.knob.shell import NoScript, Output, Script
from iodelta.machine import Machine
from iodelta.probe.topology import Target

ROOT = "/proc/sys"
EITHER = (
    ("vm/dirty_bytes", "vm/dirty_ratio"),
    ("vm/dirty_background_bytes", "vm/dirty_background_ratio"),
    ("vm/overcommit_kbytes", "vm/overcommit_ratio"),
)
"""Two files of one setting: a write to one makes the other read 0, and the kernel refuses a write of that 0."""

HARMLESS = re.compile(
    r"sysctl\.vm\.(dirty_\w+|swappiness|vfs_cache_pressure)|sysctl\.kernel\.(numa_balancing|timer_migration)",
    re.ASCII,
)
"""Others can be dangerous: ``sysctl.kernel.core_pattern`` names a program that the kernel runs as root."""


class Sysctl(FileKnob):
    """``sysctl.NAME``, as in ``sysctl.vm.dirty_ratio``; ``net/ipv4/conf/eth0.7/forwarding`` for names with dots."""

    names = ("sysctl.*",)

    @classmethod
    def catalogue(cls, machine: Machine, target: Target) -> tuple[KnobInfo, ...]:
        return (
            KnobInfo(
                "sysctl.NAME",
                "",
                f"any setting below {ROOT} that can be read back, as in sysctl.vm.dirty_ratio",
            ),
        )

    @classmethod
    def parse(cls, text: str) -> str:
        return " ".join(text.split())

    @classmethod
    def covers(cls, name: str, other: str) -> bool:
        if not cls.matches(other):
            return False
        return f"{ROOT}/{_relative(other)}" in _other_spellings(name)

    @classmethod
    def danger(cls, name: str) -> str:
        if HARMLESS.fullmatch(name):
            return ""
        return NOT_ONLY_IO

    @classmethod
    def script_files(cls, name: str) -> tuple[str, ...]:
        return (f"{ROOT}/{_relative(name)}",)

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script | NoScript:
        script, others = super().script(name, values), _other_spellings(name)
        if not others:
            return script
        both = (*cls.script_files(name), *others)
        # Files are restored in the order in which they are kept: first the one in force, which makes the other 0.
        keep = (("keep", Output(("in_force", *both))), ("keep", *both))
        return msgspec.structs.replace(
            script, keep=keep, release=(("put_back_either", *both),)
        )

    def paths(self) -> tuple[str, ...]:
        return (f"{ROOT}/{_relative(self.name)}",)

    def absent(self) -> str:
        return f"this kernel has no {self.paths()[0]}"

    def also(self) -> tuple[str, ...]:
        return _other_spellings(self.name)

    def allowed(self) -> str:
        return "what the kernel accepts (Documentation/admin-guide/sysctl/)"

    def same(self, path: str, wanted: str, present: str) -> bool:
        return self.parse(wanted) == present

    def save(self, values: Sequence[str] = ()) -> Saved:
        saved = super().save(values)
        # The file in force first: 0 in a file means that the other one is in force, and cannot be written.
        originals = sorted(saved.values, key=lambda pair: pair[1] == "0")
        return msgspec.structs.replace(saved, values=tuple(originals))


def _other_spellings(name: str) -> tuple[str, ...]:
    """Return the other files of the same setting, which a write to this one changes."""
    path = _relative(name)
    for spellings in EITHER:
        if path in spellings:
            return tuple(f"{ROOT}/{other}" for other in spellings if other != path)
    return ()


def _relative(name: str) -> str:
    """Return the path below /proc/sys. As in sysctl(8) dots separate and a slash stands for a dot, unless a slash
    comes first.

    Raises RequestError.
    """
    text = name.removeprefix("sysctl.")
    separator = re.search("[./]", text)
    path = text
    if separator and separator[0] == ".":
        path = text.translate(str.maketrans("./", "/."))
    leaves_root = not {"", ".", ".."}.isdisjoint(path.split("/"))
    is_pattern = not set("*?[]").isdisjoint(path)
    if leaves_root or is_pattern:
        raise RequestError(
            f"{text!r} is not the name of a setting",
            place=name,
            remedy="as in sysctl.vm.dirty_ratio",
        )
    return path
