"""Seed report of 2025-05: btrfs read policies, with and without defragmentation, as an experiment with a placebo.

Two disks of unequal pace, each with a member of a btrfs raid1 and next to it, on the same disk, a member of the
user-space mirror: the policies of this kernel are measured on the filesystem, the others on the mirror, and ``pid`` on
both, so that one can be held against the other. The defragmentation runs on the filesystem, hence on the disks of both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

from iodelta.lab.account import Account
from iodelta.lab.folder import Folder
from iodelta.lab.judged import counted_trials, read_plan, usable_trials
from iodelta.machine import Machine
from iodelta.parts.mirrors.catalogue import POLICIES
from iodelta.parts.scenarios import slowing
from iodelta.parts.scenarios.model import Need, Scenario, Values
from iodelta.parts.scenarios.needs import loops, programs
from iodelta.parts.scenarios.policy_tables import tables
from iodelta.parts.scenarios.slowing import Pace, slow
from iodelta.parts.scenarios.stage import Stage, part_of
from iodelta.probe.devices import btrfs_of
from iodelta.probe.made import record
from iodelta.probe.native import INSTALL, installed
from iodelta.probe.sysfs import attribute
from iodelta.probe.topology import Target

MIB = 1 << 20
PACES = (Pace(900, 90 * MIB), Pace(300, 30 * MIB))
"""Of the two disks."""

COMMAND = (sys.executable, "-c", "from iodelta.cli.main import main; main()")
"""This very iodelta, also where it is not in the path."""

TEMPLATE = """
question = "Which read policy suits a mirror of two unequal disks, idle and during a defragmentation?"
baseline = "pid"
margin = "5%"

[target]
path = "@TARGET@"

[workload]
ioengine = "libaio"
direct = 1

[workload.randread-4k-qd1]
rw = "randread"
bs = "4k"
iodepth = 1
numjobs = [1, 4]

[workload.randread-4k-qd32]
rw = "randread"
bs = "4k"
iodepth = 32
numjobs = [1, 4]

[workload.seqread-1m-qd16]
rw = "read"
bs = "1m"
iodepth = 16
numjobs = [1, 4]

[workload.mix-70-30-4k-qd32]
rw = "randrw"
rwmixread = 70
bs = "4k"
iodepth = 32

# Policies of this kernel on the filesystem; the others, and pid again, by the mirror next to it on the same disks.
@VARIANTS@
[condition.idle]
[condition.defrag]
background = @DEFRAG@

[design]
trial = "@TRIAL@"
ramp = "@RAMP@"
budget = "@BUDGET@"
blocks = @BLOCKS@
metrics = ["read.iops"]
placebo = true
"""


def needs(machine: Machine) -> Iterator[Need]:
    """Yield what this machine lacks for it."""
    yield from loops(machine)
    yield from slowing.needs(machine)
    yield from programs(
        machine,
        ("mkfs.btrfs", "btrfs-progs"),
        ("addpart", "util-linux"),
        ("filefrag", "e2fsprogs"),
    )
    if "btrfs" not in (attribute(machine, "/proc/filesystems") or "").split():
        yield Need(
            "btrfs",
            "the kernel does not offer btrfs (/proc/filesystems)",
            "modprobe btrfs",
        )
    if not installed():
        yield Need("iodelta-native", "the mirror is part of the native core", INSTALL)


DISK = (640 * MIB, 64 << 30)
"""Bytes of each disk, small and in full."""


def foreseen(machine: Machine, full: bool, target: Target | None) -> Values:
    """As ``prepare``, for a kernel that has the policy ``pid`` alone."""
    variants = variants_of(("pid",), ("/dev/loopN", "/dev/loopM"))
    tables = "".join(variant_table(name, knobs) for name, knobs in variants.items())
    return {
        "target": "/btrfs/measured/file",
        "variants": tables,
        "defrag": json.dumps([*COMMAND, "policy", "defrag"]),
    }


def prepare(stage: Stage) -> Values:
    """Two slow disks, a filesystem with a file on their first halves, the mirror's members on the second ones."""
    size = (DISK[stage.full], 24 << 30 if stage.full else 96 * MIB)
    disks = [
        stage.disk(f"disk{number}", size[0], parts=2) for number in range(len(PACES))
    ]
    first, *_ = halves = [part_of(disk, 1) for disk in disks]
    members = [
        stage.steady(part_of(disk, 2), f"member{number}")
        for number, disk in enumerate(disks)
    ]
    stage.run(
        [
            "mkfs.btrfs",
            "--quiet",
            "--force",
            "--data",
            "raid1",
            "--metadata",
            "raid1",
            *halves,
        ]
    )
    point = stage.place("mounts/btrfs")
    stage.run(["mount", "--", first, point])
    home = f"{point}/measured"
    stage.run(["mkdir", "--", home])
    # Not copied on write: the mix would fragment the file under all that is measured after it.
    stage.run(["touch", "--", f"{home}/file"])
    record(stage.machine, f"{home}/file")
    stage.run(["chattr", "+C", "--", f"{home}/file"])
    stage.run(
        [
            "dd",
            "if=/dev/urandom",
            f"of={home}/file",
            "bs=1M",
            f"count={size[1] // MIB}",
            "conv=notrunc,fsync",
        ]
    )
    slow(stage, dict(zip(disks, PACES, strict=True)))
    variants = variants_of(_offered(stage, first), members)
    load = [
        *COMMAND,
        "policy",
        "defrag",
        point,
        "--size",
        "1g" if stage.full else "16m",
    ]
    return {
        "target": f"{home}/file",
        "variants": "".join(
            variant_table(name, knobs) for name, knobs in variants.items()
        ),
        "defrag": json.dumps(load),
    }


def variants_of(
    offered: Sequence[str], members: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Name -> knobs: what the kernel has is measured on btrfs, the rest by the mirror, and ``pid`` on both."""
    variants = {
        policy: {"btrfs.read_policy": policy}
        for policy in POLICIES
        if policy in offered
    }
    for policy in (
        "pid",
        *(policy for policy in POLICIES if policy not in offered),
        "queue-reads",
    ):
        name = f"{policy}.mirror" if policy in variants else policy
        variants[name] = {"mirror.read_policy": " ".join((policy, *members))}
    return variants


def _offered(stage: Stage, node: str) -> tuple[str, ...]:
    fsid = btrfs_of(stage.machine, node.removeprefix("/dev/"))
    text = attribute(stage.machine, f"/sys/fs/btrfs/{fsid}/read_policy") or "[pid]"
    return tuple(word.strip("[]").partition(":")[0] for word in text.split())


def variant_table(name: str, knobs: Values) -> str:
    """Return a variant of an experiment file."""
    return f"[variant.{json.dumps(name)}]\n" + "".join(
        f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in knobs.items()
    )


def tell(folder: Folder) -> Iterator[str]:
    """Yield the seed's own tables, then what each device did."""
    plan = read_plan(folder)
    journal = Account(folder.events())
    yield from tables(
        plan.experiment, counted_trials(plan, journal, usable_trials(folder, journal))
    )


SCENARIO = Scenario(
    name="btrfs-read-policy",
    title="Five btrfs read policies and the thread's wishes, idle and during a defragmentation, with a placebo",
    about="After the benchmark of May 2025 of pid, round-robin, latency, latency-rr and queue: random 4k reads at depth"
    " 1 and 32, sequential 1M at 16, 1 and 4 jobs, with and without defragmentation; and what its readers asked for:"
    " a 70/30 mix, a queue that counts reads only, two devices. Policies that this kernel has are measured on btrfs,"
    " the others by a mirror in user space on the same disks. A small run is of paces, not of disks: limits that the"
    " kernel keeps, without seeks; it takes half an hour and more, and can say equivalent but no change: six blocks are"
    " too few for 98 comparisons.",
    makes="Two loop devices of 640 MiB (--full: 64 GiB), slowed to 900 and 300 I/Os and 90 and 30 MiB a second, with a"
    " btrfs raid1 on their first halves and members of the mirror on the second.",
    template=TEMPLATE,
    small={"trial": "1s", "ramp": "200ms", "budget": "38m", "blocks": "6"},
    full={"trial": "30s", "ramp": "5s", "budget": "48h", "blocks": "30"},
    prepare=prepare,
    foreseen=foreseen,
    space=(2 * DISK[False], 2 * DISK[True]),
    needs=needs,
    tell=tell,
)
