"""Seed report of 2025-05: five read policies, 18-fold apart at depth 1. How much of that does the order make?

Members are loop devices over slow loop devices: the upper one reads the lower one through the page cache, which so is a
cache below the mirror that warms, as bcache was; direct I/O does not go round it. First the benchmark as it was made,
by ``iodelta.parts.mirrors.order``; then the experiment, in which the same mirror behind the same cache is measured in
randomised blocks with fresh seeds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from iodelta.errors import MeasureError
from iodelta.lab.folder import EXPERIMENT, Folder
from iodelta.machine import Machine
from iodelta.parts.mirrors.catalogue import POLICIES
from iodelta.parts.mirrors.mirror import Request
from iodelta.parts.mirrors.order import (
    DEPTHS,
    SERIES,
    Rates,
    Series,
    measured,
    requests,
    simulated,
)
from iodelta.parts.scenarios import slowing
from iodelta.parts.scenarios.model import Need, Scenario, Values
from iodelta.parts.scenarios.needs import loops
from iodelta.parts.scenarios.slowing import Pace, slow
from iodelta.parts.scenarios.stage import Stage
from iodelta.probe.native import INSTALL, installed
from iodelta.probe.sysfs import attribute
from iodelta.probe.topology import Target

PACES = (600, 200)
"""Reads a second of the two disks."""

SIZE = 16 << 30
"""Bytes of each; they take no room. So large that fresh offsets hit nothing that was read before."""

DETACH = """losetup --list --noheadings --output NAME,BACK-FILE | while read -r name file; do
[ "$file" != "$0" ] || losetup -d "$name"; done"""

TEMPLATE = """
# Before this experiment the mirror was measured as the benchmark had been, in one order and by the clock:
@AS_MADE@

question = "Which read policy suits this mirror, when order and repeated offsets cannot decide it?"
# Not pid, whose rate is a lottery: against it everything would be uncertain.
baseline = "round-robin"
margin = "5%"

[target]
path = "@TARGET@"

[workload]
rw = "randread"
bs = "4k"
ioengine = "io_uring"
direct = 1
iodepth = [1, 32]

@VARIANTS@
[design]
trial = "@TRIAL@"
ramp = "300ms"
budget = "@BUDGET@"
metrics = ["read.iops"]
placebo = true
"""

MARK = "# as made: "

ATTEMPTS = 5
"""For a series during which somebody empties the caches of the machine."""


def needs(machine: Machine) -> Iterator[Need]:
    """Yield what this machine lacks for it."""
    yield from loops(machine)
    yield from slowing.needs(machine)
    if not installed():
        yield Need("iodelta-native", "the mirror is part of the native core", INSTALL)


def prepare(stage: Stage) -> Values:
    """Two slow disks, each below a cache; then the benchmark as it was made, on them, unless its rates are known."""
    lower = [stage.disk(f"disk{number}", SIZE) for number in range(len(PACES))]
    upper = [
        stage.make(
            ["losetup", "--find", "--show", "--", disk], ["sh", "-c", DETACH, disk]
        ).strip()
        for disk in lower
    ]
    members = [
        stage.steady(disk, f"member{number}") for number, disk in enumerate(upper)
    ]
    slow(
        stage,
        {disk: Pace(pace, 1 << 30) for disk, pace in zip(lower, PACES, strict=True)},
    )
    lines = re.findall(rf"^{MARK}.*$", stage.asked, re.MULTILINE) or benchmark(
        stage, members, [*members, *lower]
    )
    return {
        "target": members[0],
        "as_made": "\n".join(lines),
        "variants": _variants(members),
    }


def _variants(members: Sequence[str]) -> str:
    return "".join(
        f'[variant.{policy}]\n"mirror.read_policy" = "{policy} {" ".join(members)}"\n\n'
        for policy in POLICIES
    )


def foreseen(machine: Machine, full: bool, target: Target | None) -> Values:
    """As ``prepare``, without the benchmark that it makes."""
    return {
        "target": "/dev/loopN",
        "as_made": "",
        "variants": _variants(("/dev/loopN", "/dev/loopM")),
    }


def benchmark(
    stage: Stage, members: Sequence[str], devices: Sequence[str]
) -> list[str]:
    """Return a line for each series as it was measured, in one order and by the clock; ``devices`` have the caches."""
    lines = []
    for number, series in enumerate(SERIES):
        runs = requests(series, members, seconds=20.0 if stage.full else 2.0, seed=4243)
        rates = warming(stage, devices, runs, series, number)
        lines.append(
            MARK
            + json.dumps(
                [series.name, series.slots, rates, simulated(runs, PACES, size=SIZE)]
            )
        )
    return lines


def warming(
    stage: Stage,
    devices: Sequence[str],
    runs: Sequence[Request],
    series: Series,
    number: int,
) -> Rates:
    """Return one series from a cold cache on, repeated if somebody on the machine emptied all caches meanwhile."""

    def begin(part: float) -> None:
        if stage.stop():
            raise MeasureError("stopped before the first trial")
        stage.watcher.preparing(
            f"the benchmark, {series.name}", (number + part) / len(SERIES)
        )

    for _ in range(ATTEMPTS):
        for device in devices:
            stage.run(["blockdev", "--flushbufs", device])
        before = _drops(stage.machine)
        rates = measured(runs, begin)
        if _drops(stage.machine) == before:
            return rates
    remedy = "end the process that writes to /proc/sys/vm/drop_caches"
    raise MeasureError(
        "all caches of this machine were dropped repeatedly",
        place=series.name,
        remedy=remedy,
    )


def _drops(machine: Machine) -> str:
    match = re.search(
        r"^drop_pagecache (\d+)$",
        attribute(machine, "/proc/vmstat") or "",
        re.MULTILINE,
    )
    if not match:
        return ""
    return match[1]


def tell(folder: Folder) -> Iterator[str]:
    """Yield the benchmark as published, real and simulated, and the result of the blocks."""
    yield ""
    yield "The same mirror measured as the benchmark was made, in one order and by the clock."
    yield f"IOPS of its five slots, measured / simulated; disks of {PACES[0]} and {PACES[1]} reads/s:"
    for name, slots, rates, predicted in as_made(folder.read(EXPERIMENT).decode()):
        yield f"{name} (at depth 1 the last is {rates[1][-1] / rates[1][0]:.1f} times the first):"
        yield f"  {', '.join(slots)}"
        for depth in DEPTHS:
            pairs = zip(rates[depth], predicted[depth], strict=True)
            yield f"  depth {depth:<2}" + "".join(
                f" {f'{real:,.0f} / {model:,.0f}':>13}" for real, model in pairs
            )
    yield "What the placebo gains is the order's: no policy differs there. The report above"
    yield "is of the same mirror behind the same cache, in randomised blocks, fresh seeds."


def as_made(text: str) -> Iterator[tuple[str, tuple[str, ...], Rates, Rates]]:
    """Name, slots, measured and simulated rates of each series, from an experiment's text."""
    for line in re.findall(rf"^{MARK}(.*)$", text, re.MULTILINE):
        name, slots, rates, predicted = json.loads(line)
        yield name, tuple(slots), _by_depth(rates), _by_depth(predicted)


def _by_depth(rates: dict[str, list[float]]) -> Rates:
    return {int(depth): tuple(of_slots) for depth, of_slots in rates.items()}


SCENARIO = Scenario(
    name="read-policy-order",
    title="How the order of runs and repeated offsets alone rank five read policies, and what blocks say instead",
    about="After the benchmark of May 2025 of btrfs read policies: an 18-fold gain at depth 1, in one fixed order on"
    " the same offsets above a bcache. This repeats it with the same policies, with a placebo that is the same"
    " random choice in each of its slots, in reversed order, and with fresh offsets, on a real mirror and simulated."
    " Then the same mirror behind the same cache is measured in randomised blocks with fresh seeds.",
    makes="Two loop devices of 16 GiB that take no room, slowed to 600 and 200 reads/s, and one above each, whose page"
    " cache is the cache.",
    template=TEMPLATE,
    small={"trial": "1s", "budget": "6m"},
    full={"trial": "5s", "budget": "1h"},
    prepare=prepare,
    foreseen=foreseen,
    needs=needs,
    tell=tell,
)
