"""Seed report of 2026-01: 4k random reads lost 1 to 3.5 % between two kernels, at every depth from 1 to 2048."""

from __future__ import annotations

from iodelta.parts.scenarios.model import Scenario, Values
from iodelta.parts.scenarios.needs import loops, root
from iodelta.parts.scenarios.stage import Stage
from iodelta.vm.targets import PLACE

TEMPLATE = """
question = "What does @NEW@ cost random reads, at which depth, and where does the device saturate?"
baseline = "@BASELINE@"
margin = "1%"

[target]
path = "@TARGET@"

[workload]
rw = "randread"
bs = "4k"
ioengine = "libaio"
direct = 1
norandommap = 1
scramble_buffers = 1
thread = 1
iodepth = @DEPTHS@

@VARIANTS@

[design]
trial = "@TRIAL@"
ramp = "@RAMP@"
budget = "@BUDGET@"
"""

COUNTED = """
question = "What does @NEW@ cost a random read in instructions, at which depth and under which scheduler?"
baseline = "@BASELINE@"

[workload]
rw = "randread"
bs = "4k"
ioengine = "libaio"
direct = 1
norandommap = 1
iodepth = [1, 32]

@VARIANTS@
[condition.none]
"block.scheduler" = "none"

[condition.mq-deadline]
"block.scheduler" = "mq-deadline"
"""

SCHEDULERS = {
    "new": "mq-deadline",
    "baseline": "none",
    "variants": """[variant.none]
"block.scheduler" = "none"

[variant.mq-deadline]
"block.scheduler" = "mq-deadline\"""",
}

DEPTHS = "[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]"


SPACE = (512 << 20, 16 << 30)


def prepare(stage: Stage) -> Values:
    """Return the user's own device or file, else a loop device over a file that was really written."""
    if stage.target is not None:
        return {"target": stage.target.path}
    return {"target": stage.disk("disk", SPACE[stage.full], filled=True)}


SCENARIO = Scenario(
    name="queue-depth-sweep",
    title="A depth sweep 1..2048 of 4k random reads, two schedulers or kernels: change per depth, knee, tails",
    about="After the report of 2026-01 of a loss of 1 to 3.5 % of 4k random reads on a RAID controller, from depth 1 to"
    " 2048, between two kernels; the scheduler was the suspect. A small run shows knee and tails and the noise of this"
    " machine; to see 1 % it takes --full on the disk in question (--target /dev/disk/by-id/...; it is only read).",
    makes="A loop device over a file of 512 MiB (--full: 16 GiB), unless --target names what to read.",
    template=TEMPLATE,
    small={
        **SCHEDULERS,
        "depths": "[1, 8, 32, 128, 512, 2048]",
        "trial": "400ms",
        "ramp": "0s",
        "budget": "2m",
    },
    full={
        **SCHEDULERS,
        "depths": DEPTHS,
        "trial": "30s",
        "ramp": "5s",
        "budget": "12h",
    },
    prepare=prepare,
    foreseen=lambda machine, full, target: {
        "target": target.path if target else "/dev/loopN"
    },
    space=SPACE,
    needs=root,
    building=loops,
    guest="cpus=2,memory=512,target=null_blk:size=512:irqmode=2:completion_nsec=100000",
    in_guest={"target": PLACE},
    small_boots=lambda kernels: {"depths": "[1, 32, 512]", "budget": f"{8 * kernels}m"},
    counted=COUNTED,
    measures=("block", "file"),
)
