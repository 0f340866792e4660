"""Frequency settings of the CPUs. Source: Documentation/admin-guide/pm/{cpufreq,intel_pstate,amd-pstate}.rst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iodelta.errors import RequestError
from iodelta.knob.base import EMPTY
from iodelta.knob.files import FileKnob, ResettingKnob, in_all, text_of
from iodelta.knob.shell import Line, Pattern, Script
from iodelta.probe.sysfs import attribute

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
            text = text_of(self.machine, path.replace(self.file, self.offers))
            offers.append(text.split())
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
