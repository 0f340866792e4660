"""Governor, energy preference and boost, on CPUs as the kernel's drivers show them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from iodelta import knob
from iodelta.errors import KnobError, RequestError

from .rooted import Rooted, on_sda, target

CPUFREQ = "/sys/devices/system/cpu/cpufreq"
NO_TURBO = "/sys/devices/system/cpu/intel_pstate/no_turbo"


class Pstate(Rooted):
    """intel_pstate in active mode: performance forces the energy preference, and powersave brings the last one back."""

    def __init__(self, root: Path, governor: str = "powersave", preference: str = "balance_performance") -> None:
        files = {NO_TURBO: "0"}
        for cpu in (0, 1, 10):
            policy = f"{CPUFREQ}/policy{cpu}"
            files |= {
                f"{policy}/scaling_governor": governor,
                f"{policy}/scaling_available_governors": "performance powersave",
                f"{policy}/scaling_driver": "intel_pstate",
                f"{policy}/energy_performance_preference": preference,
                f"{policy}/energy_performance_available_preferences": "default performance balance_performance power",
            }
        super().__init__(root, files, self.respond)
        self.preferences = {f"{CPUFREQ}/policy{cpu}": preference for cpu in (0, 1, 10)}

    def respond(self, path: str, text: str) -> str | None:
        policy, _, file = path.rpartition("/")
        preference = f"{policy}/energy_performance_preference"
        if file == "scaling_governor":
            self.show(preference, "performance" if text == "performance" else self.preferences[policy])
        if path == preference:
            if "performance" in self.read(f"{policy}/scaling_governor") and text != "performance":
                self.refuse(path, text, "Device or resource busy (EBUSY)")
            self.preferences[policy] = text
        return None


def preferences(machine: Rooted) -> set[tuple[str, str]]:
    names = ("scaling_governor", "energy_performance_preference")
    return {(path, machine.read(path).strip()) for name in names for path in machine.glob(f"{CPUFREQ}/policy*/{name}")}


def test_the_governor_is_set_on_every_policy_and_read_back_on_each(tmp_path: Path) -> None:
    machine = Pstate(tmp_path)
    governor = on_sda("cpu.governor", machine)
    assert governor.available() is None
    assert governor.allowed() == ("performance", "powersave")
    governor.apply("performance")
    governor.verify("performance")
    assert len([path for path, _ in machine.writes if path.endswith("scaling_governor")]) == 3
    machine.show(f"{CPUFREQ}/policy10/scaling_governor", "powersave")
    with pytest.raises(KnobError, match=r"policy10/scaling_governor: requested 'performance'.* shows 'powersave'"):
        governor.verify("performance")


def test_a_governor_means_the_same_beside_variants_with_preferences(tmp_path: Path) -> None:
    machine = Pstate(tmp_path)
    before = preferences(machine)
    variants = {
        "as it is": {},
        "fast": {"cpu.governor": "performance"},
        "saving": {"cpu.governor": "powersave"},
        "saving, power": {"cpu.governor": "powersave", "cpu.epp": "power"},
        "power": {"cpu.epp": "power"},
    }
    knobs = {name: on_sda(name, machine) for name in ("cpu.epp", "cpu.governor")}
    saved = {name: one.save() for name, one in knobs.items()}
    seen: dict[str, set[tuple[str, str]]] = {}
    order = random.Random(7)
    for _ in range(20):
        name = order.choice(sorted(variants))
        knob.turn(knobs, saved, variants[name])
        assert seen.setdefault(name, preferences(machine)) == preferences(machine), name
    assert seen.keys() == variants.keys()
    assert [one.error for one in knob.restore_all(machine, saved.values()) if one.error] == []
    assert preferences(machine) == before


def test_a_preference_that_the_kernel_would_refuse_is_refused_before(tmp_path: Path) -> None:
    machine = Pstate(tmp_path, "performance", "performance")
    preference = on_sda("cpu.epp", machine)
    with pytest.raises(RequestError, match=r"EBUSY[^$]*powersave in the same variant"):
        preference.check("power")
    preference.check("power", {"cpu.governor": "powersave"})
    with pytest.raises(RequestError, match="default, performance, balance_performance, power"):
        preference.check("fastest", {"cpu.governor": "powersave"})


def test_boost_is_the_opposite_of_no_turbo(tmp_path: Path) -> None:
    machine = Pstate(tmp_path)
    boost = on_sda("cpu.boost", machine)
    assert boost.read() == "1"
    saved = boost.save()
    boost.apply("0")
    boost.verify("0")
    assert boost.read() == "0"
    assert machine.read(NO_TURBO) == "1\n"
    knob.restore(machine, saved)
    assert machine.read(NO_TURBO) == "0\n"


def test_boost_of_other_drivers_is_one_switch(tmp_path: Path) -> None:
    machine = Rooted(tmp_path, {f"{CPUFREQ}/boost": "0"})
    boost = on_sda("cpu.boost", machine)
    boost.apply("1")
    assert machine.writes == [(f"{CPUFREQ}/boost", "1")]


@pytest.mark.parametrize("name", ["cpu.governor", "cpu.epp"])
def test_a_driver_without_the_file_is_named(tmp_path: Path, name: str) -> None:
    machine = Rooted(tmp_path, {f"{CPUFREQ}/policy0/scaling_driver": "acpi-cpufreq"})
    reason = on_sda(name, machine).available()
    assert reason is not None
    assert "(acpi-cpufreq) has no" in reason


def test_one_file_that_cannot_be_read_does_not_hide_the_other_knobs(tmp_path: Path) -> None:
    files = {f"{CPUFREQ}/policy0/scaling_governor": "schedutil", f"{CPUFREQ}/boost": "1"}
    machine = Rooted(tmp_path, files | {"/proc/self/mountinfo": "", "/proc/self/status": "Cpus_allowed_list:\t0"})
    infos = {info.name: info for info in knob.catalogue(machine, target())}
    assert "scaling_available_governors: cannot be read" in infos["cpu.governor"].reason
    assert infos["cpu.boost"].present == "1"


def test_a_machine_without_cpufreq_says_so(tmp_path: Path) -> None:
    machine = Rooted(tmp_path, {})
    assert "needs cpufreq" in str(on_sda("cpu.governor", machine).available())
    assert "has neither" in str(on_sda("cpu.boost", machine).available())
