"""Seed report of 2010-01: 64k random reads through mmap, 8 processes on 8 files of each partition of a JBOD."""

from __future__ import annotations

from iodelta.machine import Machine
from iodelta.parts.scenarios.model import Scenario, Values
from iodelta.parts.scenarios.needs import partitions
from iodelta.parts.scenarios.stage import Stage, part_of
from iodelta.probe.topology import Target

TEMPLATE = """
question = "Do many mmap readers of many partitions lose under bfq, which idles for each of them as cfq did?"
baseline = "none"
margin = "1%"

# One directory for each process, which leads to its partition; the processes of a partition share its files.
[target]
path = "@TARGET@"
files = "$jobnum/@NAMES@"
size = "@SIZE@"

[workload]
ioengine = "mmap"
numjobs = @JOBS@
nrfiles = @FILES@

[workload.mmap-randread-64k]
rw = "randread"
bs = "64k"

[workload.mmap-randread-4k]
rw = "randread"
bs = "4k"

[workload.mmap-randwrite-64k]
rw = "randwrite"
bs = "64k"

@TIOBENCH@
[variant.none]
"block.scheduler" = "none"
"memory.drop_caches" = "1"

[variant.bfq]
"block.scheduler" = "bfq"
"memory.drop_caches" = "1"

[design]
trial = "@TRIAL@"
ramp = "0s"
budget = "@BUDGET@"
metrics = ["read.iops", "write.iops"]
"""

TIOBENCH = """# tiobench's four phases, with its threads as jobs and its 4k blocks through the page cache.
[workload.tiobench-write]
rw = "write"
bs = "4k"
ioengine = "psync"

[workload.tiobench-random-write]
rw = "randwrite"
bs = "4k"
ioengine = "psync"

[workload.tiobench-read]
rw = "read"
bs = "4k"
ioengine = "psync"

[workload.tiobench-random-read]
rw = "randread"
bs = "4k"
ioengine = "psync"
"""

PARTS = 2
PROCESSES = 8
FILES = 8


def _sizes(full: bool) -> tuple[int, int, int]:
    """Disks, bytes of a file, and of a partition."""
    disks, file_size = (12, 1 << 30) if full else (2, 16 << 20)
    used_by_ext4 = 64 << 20 if file_size < 1 << 30 else 1 << 30
    return disks, file_size, FILES * file_size + used_by_ext4


def foreseen(machine: Machine, full: bool, target: Target | None) -> Values:
    """As ``prepare``."""
    disks, file_size, _ = _sizes(full)
    jobs, size = str(PROCESSES * PARTS * disks), str(FILES * file_size)
    return {
        "target": "/tree",
        "names": "iodelta.0.$filenum",
        "jobs": jobs,
        "size": size,
    }


def _space(full: bool) -> int:
    disks, _, room = _sizes(full)
    return disks * PARTS * room


def prepare(stage: Stage) -> Values:
    """Disks with two partitions each, on every partition a filesystem with files, and a directory for each process."""
    disks, file_size, room = _sizes(stage.full)
    stage.room(disks * PARTS * room)
    points = []
    for number in range(1, disks + 1):
        disk = stage.disk(f"disk{number}", PARTS * room, parts=PARTS)
        for part in range(1, PARTS + 1):
            points.append(stage.mount(part_of(disk, part), f"disk{number}p{part}"))
    for point in points:
        names = stage.files(point, FILES, file_size)
    tree = stage.tree()
    for job in range(PROCESSES * len(points)):
        stage.run(["ln", "-s", "--", points[job % len(points)], f"{tree}/{job}"])
    return {
        "target": tree,
        "names": names,
        "jobs": str(PROCESSES * len(points)),
        "size": str(FILES * file_size),
    }


SCENARIO = Scenario(
    name="jbod-mmap",
    title="8 processes on 8 files of each of two partitions of many disks: mmap readers and writers, tiobench",
    about="After the report of 2010-01: 12 disks of a JBOD with two partitions each lost more than 40 % of 64k random"
    " reads through mmap between two kernels, by several patches to the idling of cfq. cfq is gone; bfq is its"
    " successor. A small run leaves tiobench out. The disks are loop devices here, or a guest's, whose files share one real"
    " disk: what differs between schedulers is found, what would differ between real spindles is not.",
    makes="2 loop devices (--full: 12; with --vm disks of the guest) with two partitions each, a filesystem on every"
    " partition, and 8 files of 16 MiB (--full: 1 GiB) on each: 0.5 GiB (--full: 192 GiB) of real data.",
    template=TEMPLATE,
    small={
        "disks": ",".join(["disk=384m:kept"] * 2),
        "files": str(FILES),
        "trial": "400ms",
        "budget": "2m",
        "tiobench": "# --full adds the four phases of tiobench.",
    },
    full={
        "disks": ",".join(["disk=18g:kept"] * 12),
        "files": str(FILES),
        "tiobench": TIOBENCH.rstrip(),
        "trial": "30s",
        "budget": "8h",
    },
    prepare=prepare,
    foreseen=foreseen,
    space=(_space(False), _space(True)),
    building=partitions,
    guest="cpus=2,memory=1024,modules=ext4,programs=addpart:mkfs.ext4,@DISKS@",
)
