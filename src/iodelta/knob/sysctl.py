"""Kernel settings below /proc/sys. Source: sysctl(8), Documentation/admin-guide/sysctl/."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from iodelta.errors import RequestError
from iodelta.knob.base import EMPTY, NOT_ONLY_IO, KnobInfo, Saved
from iodelta.knob.files import (
    ROOTS,
    FileKnob,
    ResettingKnob,
    choices,
    in_all,
    is_setting,
    text_of,
)
from iodelta.knob.shell import Line, NoScript, Output, Pattern, Script
from iodelta.machine import Machine
from iodelta.probe.sysfs import attribute, attribute_text
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
        return replace(script, keep=keep, release=(("put_back_either", *both),))

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
        return replace(saved, values=tuple(originals))


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


WITH_OWN_KNOB = {
    "/queue/scheduler": "block.scheduler",
    "/queue/nr_requests": "block.nr_requests",
    "/scaling_governor": "cpu.governor",
    **{
        f"{ROOT}/{path}": f"sysctl.{path.replace('/', '.')}"
        for path in chain.from_iterable(EITHER)
    },
}
"""End of a path -> the knob for it: a write to these files changes other settings too."""


class Sysfs(FileKnob):
    """``sysfs:PATH``. The path is resolved when the knob is created: only files below /sys or /proc/sys are written."""

    names = ("sysfs:*",)

    def __init__(self, machine: Machine, target: Target, name: str) -> None:
        super().__init__(machine, target, name)
        # The real path of the file
        path = name.removeprefix("sysfs:")
        if not is_setting(path):
            raise _outside(name)
        real = machine.run(["readlink", "-f", "--", path]).text.rstrip("\n")
        # A path with wildcards would match other files where it is used as a pattern.
        plain = real.isprintable() and set("*?[]").isdisjoint(real)
        if not plain or not real.startswith(ROOTS):
            raise _outside(name)
        for end, better in WITH_OWN_KNOB.items():
            if real.endswith(end):
                raise RequestError(
                    "a write there resets other settings",
                    place=name,
                    remedy=f"use {better}, which restores them",
                )
        self.path = real

    @classmethod
    def catalogue(cls, machine: Machine, target: Target) -> tuple[KnobInfo, ...]:
        return (
            KnobInfo(
                "sysfs:PATH",
                "",
                "any one-line file below /sys or /proc/sys that can be read back, by its path",
            ),
        )

    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    @classmethod
    def script_files(cls, name: str) -> Line:
        path = name.removeprefix("sysfs:")
        if not is_setting(path) or not path.isprintable():
            raise _outside(name)
        return (path,)

    def disks(self) -> tuple[str, ...]:
        directories = self.path.split("/")[2:-1]
        return tuple(
            name for name in directories if self.machine.glob(f"/sys/block/{name}")
        )

    def absent(self) -> str:
        return f"there is no {self.path}"

    def available(self) -> str | None:
        if len(attribute_text(self.machine, self.path).splitlines()) > 1:
            return f"{self.path} has several lines: it is not one setting"
        return super().available()

    def allowed(self) -> tuple[str, ...] | str:
        return (
            choices(attribute_text(self.machine, self.path))
            or "what the kernel accepts"
        )


def _outside(name: str) -> RequestError:
    return RequestError(
        "is not a path below /sys or /proc/sys",
        place=name,
        remedy="as in sysfs:/sys/block/sda/queue/add_random",
    )


CPUFREQ = "/sys/devices/system/cpu/cpufreq"
NO_TURBO = "/sys/devices/system/cpu/intel_pstate/no_turbo"


class PolicyKnob(FileKnob):
    """A file of every cpufreq policy: set and read back on each."""

    file: str
    offers: str
    harmless = True

    def paths(self) -> tuple[str, ...]:
        return tuple(self.machine.glob(f"{CPUFREQ}/policy*/{self.file}"))

    @classmethod
    def script_files(cls, name: str) -> Line:
        return (Pattern(f"{CPUFREQ}/policy*/{cls.file}"),)

    def absent(self) -> str:
        if self.machine.glob(f"{CPUFREQ}/policy*"):
            driver = attribute(self.machine, f"{CPUFREQ}/policy0/scaling_driver")
            return f"the cpufreq driver ({driver or 'unknown'}) has no {self.file}"
        return f"needs cpufreq: no {CPUFREQ}/policy* (a virtual machine, or no driver for this CPU)"

    def allowed(self) -> tuple[str, ...]:
        offers: list[list[str]] = []
        for path in self.paths():
            offers.append(
                text_of(self.machine, path.replace(self.file, self.offers)).split()
            )
        return in_all(offers)


class Governor(PolicyKnob, ResettingKnob):
    """``cpu.governor``. ``performance`` also forces the energy preference of intel_pstate and amd_pstate."""

    names = ("cpu.governor",)
    file = "scaling_governor"
    offers = "scaling_available_governors"

    @classmethod
    def covers(cls, name: str, other: str) -> bool:
        return other in EnergyPreference.names

    @classmethod
    def script_resets(cls, name: str) -> Line:
        return EnergyPreference.script_files("cpu.epp")

    def resets(self, path: str) -> tuple[str, ...]:
        return tuple(self.machine.glob(path.replace(self.file, EnergyPreference.file)))


class EnergyPreference(PolicyKnob):
    """``cpu.epp``: how the hardware weighs energy against performance."""

    names = ("cpu.epp",)
    file = "energy_performance_preference"
    offers = "energy_performance_available_preferences"

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        super().check(value, beside)
        if value != "performance" and "performance" in self._governors(beside):
            raise RequestError(
                f"{value!r} is refused by the kernel (EBUSY) while the governor is performance",
                place=self.name,
                remedy="set cpu.governor = powersave in the same variant",
            )

    def _governors(self, beside: Mapping[str, str]) -> set[str | None]:
        """Return the governors that will be active: the one that the variant sets, else those of the machine."""
        if "cpu.governor" in beside:
            return {beside["cpu.governor"]}
        paths = self.machine.glob(f"{CPUFREQ}/policy*/scaling_governor")
        return {attribute(self.machine, path) for path in paths}


class Boost(FileKnob):
    """``cpu.boost``: 1 lets the CPUs run above their nominal frequency, 0 does not."""

    names = ("cpu.boost",)
    harmless = True

    def paths(self) -> tuple[str, ...]:
        return tuple(
            self.machine.glob(f"{CPUFREQ}/boost") or self.machine.glob(NO_TURBO)
        )

    def absent(self) -> str:
        return (
            f"needs {CPUFREQ}/boost or {NO_TURBO}: this CPU or its driver has neither"
        )

    def allowed(self) -> tuple[str, ...]:
        return ("0", "1")

    def read(self) -> str:
        return self._raw(super().read())

    def apply(self, value: str) -> None:
        super().apply(self._raw(value))

    def verify(self, value: str) -> None:
        super().verify(self._raw(value))

    @classmethod
    def script_files(cls, name: str) -> Line:
        return (f"{CPUFREQ}/boost", NO_TURBO)

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script:
        files = cls.script_files(name)
        return Script(
            keep=(("keep", *files),),
            values={value: (("boost", value),) for value in values},
            release=(("put_back_all", *files),),
        )

    def _raw(self, value: str) -> str:
        """Return the text of the file for a value, and back: intel_pstate's ``no_turbo`` has the opposite meaning."""
        if NO_TURBO not in self.paths():
            return value
        return {"0": "1", "1": "0"}.get(value, value)
