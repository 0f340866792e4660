"""Seed report of 2017-06: an md RAID10 of SSDs lost up to a quarter, and was unsteady, under another CPU governor."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping

from iodelta.lab.account import Account
from iodelta.lab.folder import Folder
from iodelta.lab.judged import usable_trials
from iodelta.machine import Machine, throw_away
from iodelta.parts.scenarios.model import Need, Scenario, Values
from iodelta.parts.scenarios.needs import governors, loops, md
from iodelta.parts.scenarios.stage import Stage
from iodelta.plural import plural
from iodelta.probe.sysfs import attribute
from iodelta.probe.topology import Target

TEMPLATE = """
question = "What does the CPU governor cost an md RAID10 (@LAYOUT@, chunk 32k), and is it less steady under it?@WHERE@"
baseline = "performance"
margin = "2%"

[target]
path = "@TARGET@"

[workload]
rw = ["randread", "randwrite"]
bs = ["512k", "1024k"]
ioengine = "libaio"
direct = 1
iodepth = 8

[variant.performance]
"cpu.governor" = "performance"

[variant.@OTHER@]
"cpu.governor" = "@OTHER@"

[design]
trial = "@TRIAL@"
ramp = "@RAMP@"
budget = "@BUDGET@"
settle = "200ms"
"""

COUNTED = """
question = "How long is the path of an I/O through an md RAID10 (LAYOUT), by block size, from @BASELINE@ to @NEW@?"
baseline = "@BASELINE@"

[target]
path = "md-raid10:layout=LAYOUT:chunk=32"

[workload]
rw = "randread"
bs = ["4k", "512k"]
ioengine = "libaio"
direct = 1
iodepth = 1

@VARIANTS@
"""

DISKS = 4
PREFERRED = ("powersave", "ondemand", "schedutil", "conservative")
"""What a distribution may have as its default instead of ``performance``, the report's own first."""


SIZES = (256 << 20, 16 << 30)
"""Bytes of each disk, small and in full."""


def other_governor(machine: Machine) -> str:
    """Return the governor to compare with ``performance``."""
    files = machine.glob(
        "/sys/devices/system/cpu/cpufreq/policy*/scaling_available_governors"
    )
    offered = (attribute(machine, files[0]) or "").split() if files else []
    return next(
        (
            name
            for name in (*PREFERRED, *offered)
            if name in offered and name != "performance"
        ),
        "powersave",
    )


def building(machine: Machine) -> Iterator[Need]:
    """Disks, and md at level 10."""
    yield from loops(machine)
    yield from md(machine)


def _foreseen(layout: str, machine: Machine, target: Target | None) -> Values:
    """Return all that is known before there is an array."""
    where = (
        " In this guest it sets no clock, so the true difference is zero."
        if throw_away(machine)
        else ""
    )
    path = target.path if target else "/dev/mdN"
    return {
        "other": other_governor(machine),
        "layout": layout,
        "where": where,
        "target": path,
    }


def prepare_with(layout: str) -> Callable[[Stage], Values]:
    """Return an array of that layout, as mdadm spells it, unless the user has one."""

    def prepare(stage: Stage) -> Values:
        values = _foreseen(layout, stage.machine, stage.target)
        if stage.target is not None:
            return values
        size = SIZES[stage.full]
        stage.room(DISKS * size)
        disks = [stage.disk(f"disk{n}", size) for n in range(1, DISKS + 1)]
        taken = set(stage.machine.glob("/sys/block/md*"))
        array = next(
            f"/dev/md{n}"
            for n in range(127, -1, -1)
            if f"/sys/block/md{n}" not in taken
        )
        words = [
            "mdadm",
            "--create",
            array,
            "--run",
            "--assume-clean",
            "--level=10",
            f"--layout={layout}",
        ]
        stage.run(
            [*words, "--chunk=32", "--bitmap=none", f"--raid-devices={DISKS}", *disks]
        )
        return {**values, "target": array}

    return prepare


def tell(folder: Folder) -> Iterator[str]:
    """Yield the clocks that were seen while trials ran, which the posted report could only guess."""
    seen: dict[str, list[Mapping[str, float]]] = {}
    for trial in usable_trials(folder, Account(folder.events())).values():
        if "cpu.mhz_mean" in trial.counters:
            seen.setdefault(trial.variant, []).append(trial.counters)
    for variant, counters in sorted(seen.items()):
        low, high = (
            min(counts["cpu.mhz_min"] for counts in counters),
            max(counts["cpu.mhz_max"] for counts in counters),
        )
        mean = statistics.median(counts["cpu.mhz_mean"] for counts in counters)
        yield (
            f"CPU clock, {variant}: {mean:.0f} MHz, from {low:.0f} to {high:.0f}, in {plural(len(counters), 'trial')}."
        )


def _scenario(name: str, layout: str, title: str) -> Scenario:
    return Scenario(
        name=name,
        title=f"{title}: the CPU governor as the variant, how fast and how steady",
        about="After the report of 2017-06 of four SSDs under md RAID10, chunk 32k, no bitmap: random reads and writes"
        " of 512k and 1024k lost 10 to 25 %, and varied more from run to run, under intel_pstate's powersave than under"
        " performance. Every trial records the clocks that it saw; how steady a variant is has a verdict of its own.",
        makes="4 loop devices over files of 256 MiB (--full: 16 GiB) and an array of them, unless --target names one.",
        template=TEMPLATE,
        small={"trial": "500ms", "ramp": "100ms", "budget": "3m"},
        full={"trial": "10s", "ramp": "2s", "budget": "4h"},
        prepare=prepare_with(layout),
        foreseen=lambda machine, full, target: _foreseen(layout, machine, target),
        space=(DISKS * SIZES[False], DISKS * SIZES[True]),
        needs=governors,
        building=building,
        guest=f"cpus=2,memory=768,cpufreq=3000:2000:1000,target=md-raid10:layout={layout}:chunk=32:size=64",
        counted=COUNTED.replace("LAYOUT", layout),
        measures=("block",),
        tell=tell,
    )


NEAR = _scenario("raid10-governor", "n2", "md RAID10, two near copies (N2)")
FAR = _scenario("raid10-governor-far", "f2", "md RAID10, two far copies (F2)")
