"""Seed report of 2026-03: t/io_uring on a ublk null device of 16 queues, and the CPUs that its tasks were bound to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iodelta.errors import MachineError, MeasureError
from iodelta.experiment.io_uring import IO_URING
from iodelta.machine import Machine
from iodelta.parts.scenarios.model import Need, Scenario, Values
from iodelta.parts.scenarios.needs import loops, root
from iodelta.parts.scenarios.stage import Stage
from iodelta.probe.queues import Cpus, first_cpus, nodes, numbers, queues, spelled
from iodelta.probe.sysfs import attribute, boot_id
from iodelta.probe.topology import Target
from iodelta.tools.fio import built_fio
from iodelta.vm.boot import why_no_kvm
from iodelta.vm.guest import has_program
from iodelta.vm.kernels import find, here, is_absent
from iodelta.vm.targets import PLACE

TEMPLATE = """
question = "What do @WHAT@ change on @DEVICE@, by 1 job and by 16?"
baseline = "@BASELINE@"
margin = "2%"

[target]
path = "@TARGET@"

[workload]
rw = "randread"
bs = "4k"
ioengine = "io_uring"
direct = 1
hipri = 0
fixedbufs = 1
registerfiles = 1
iodepth = 128
iodepth_batch_submit = 32
iodepth_batch_complete_min = 32
numjobs = [1, 16]
@TOOL@

@VARIANTS@
@CONDITIONS@
[design]
trial = "@TRIAL@"
ramp = "0s"
budget = "@BUDGET@"
metrics = ["read.iops"]
"""

COUNTED = """
question = "What does @NEW@ cost a read of a ublk null device, in instructions?"
baseline = "@BASELINE@"

[target]
path = "ublk-null:queues=1"

[workload]
rw = "randread"
bs = "4k"
ioengine = "io_uring"
direct = 1
iodepth = 1

@VARIANTS@
"""

CPU_SETS = """
[condition.anywhere]
[condition.node-0]
cpus = "node:0"
"""
"""Where kernels are the variants: everywhere, and on one of a guest's two NUMA nodes."""

NAME = "ublk-null-affinity"
QUEUES = 16
NULL = "null_blk"
MORE_CPUS = "run it with --vm (a guest of several CPUs), or on a machine with more CPUs"
SECONDS_A_SET = 90
"""Of a small run, for each set of CPUs: t/io_uring counts whole seconds, and drops one at either end."""
CONFIGFS = "/sys/kernel/config/nullb"

REMOVE_NULL = '[ ! -d "$1" ] || { echo 0 >"$1/power"; rmdir -- "$1"; }'
THIS_BOOT = '[ "$(cat /proc/sys/kernel/random/boot_id)" = "$1" ] || exit 0; shift; '
UNLOAD = THIS_BOOT + "[ ! -d /sys/module/null_blk ] || modprobe -r null_blk"
REMOVE_UBLK = THIS_BOOT + '[ ! -e "$1" ] || { shift; "$@"; }'
"""Constants for sh: what they are about comes as arguments. After a reboot a number or module is not ours."""

UBLK_NUMBERS = range(1000, 1 << 20)
"""Far from those that are given one after the other, and minor numbers of the kernel's."""

SERVERS = {"kublk": ("-t", "null"), "rublk": ("null",)}
"""Servers of a ublk null device: the kernel's own selftest, and rublk; how to start each."""


def prepare(stage: Stage) -> Values:
    """ublk's null device where it can be had, else null_blk, else a loop device; and the sets of CPUs."""
    if stage.target is not None:
        return _of_target(stage.machine, stage.target, stage.full)
    path, device = _ublk(stage) or _null(stage) or (stage.disk("disk", 1 << 30), LOOP)
    feeding = queues(stage.machine, path.removeprefix("/dev/")).feeding
    return {
        "target": path,
        "device": device,
        **_asked(stage.machine, feeding, stage.full),
    }


def _of_target(machine: Machine, target: Target, full: bool) -> Values:
    device = f"{target.device}"
    return {
        "target": target.path,
        "device": device,
        **_asked(machine, queues(machine, device).feeding, full),
    }


def _asked(machine: Machine, feeding: Sequence[Cpus], full: bool) -> Values:
    """Return the question on a device whose queues are fed by these CPUs. Raises MeasureError where there is one CPU."""
    for need in needs(machine):
        raise MeasureError(need.reason, place=NAME, remedy=need.remedy)
    tool = built_fio() is not None
    sets = _sets(machine, feeding)
    small = {"budget": f"{SECONDS_A_SET * len(sets)}s"} if tool else {"trial": "400ms"}
    return {
        "tool": 'tool = "t/io_uring"'
        if tool
        else "# `iodelta fio build` makes t/io_uring; until then this is fio.",
        "what": "the CPUs of the tasks",
        "baseline": "anywhere",
        "variants": "\n".join(
            f"[variant.{name}]\n{line}\n" for name, line in sets.items()
        ),
        **({} if full else small),
    }


def foreseen(machine: Machine, full: bool, target: Target | None) -> Values:
    """As ``prepare``; which CPUs feed a queue is not known yet, and is taken to be even."""
    if target is not None:
        return _of_target(machine, target, full)
    device = (
        ublk_device(machine)
        if _server(machine)
        else null_device(machine)
        if _has_null(machine)
        else LOOP
    )
    feeding = _even(machine, 1 if device == LOOP else _most(machine))
    return {
        "target": "/dev/null-device",
        "device": device,
        **_asked(machine, feeding, full),
    }


def _even(machine: Machine, count: int) -> tuple[Cpus, ...]:
    """Return the CPUs dealt to so many queues, neighbours to the same one."""
    cpus = sorted(_online(machine))
    return tuple(
        frozenset(cpus[len(cpus) * n // count : len(cpus) * (n + 1) // count])
        for n in range(count)
    )


LOOP = (
    "a loop device over an empty file, used in place of ublk's null device (neither ublk nor null_blk is here;"
    " a guest has them: --vm --kernel 6.12)"
)


def ublk_device(machine: Machine) -> str:
    """Return what ublk's device is called."""
    return f"a ublk null device of {_counted(_most(machine))}"


def null_device(machine: Machine) -> str:
    """Return what null_blk's device is called."""
    return f"a null_blk device of {_counted(_most(machine))} (there is no ublk)"


def _most(machine: Machine) -> int:
    """Queues that a device gets here: a kernel gives it no more than there are CPUs."""
    return min(QUEUES, len(_online(machine)))


def _online(machine: Machine) -> Cpus:
    return numbers(attribute(machine, "/sys/devices/system/cpu/online") or "0")


def _counted(queues: int) -> str:
    short = "" if queues == QUEUES else f", not {QUEUES}: one for each CPU"
    return f"{queues} queue{'s' * (queues != 1)}{short}"


def _server(machine: Machine) -> str:
    """Return a server of ublk devices that is here, where the kernel has ublk; empty where not."""
    if not machine.glob("/dev/ublk-control"):
        return ""
    for name in SERVERS:
        try:
            machine.run([name, "--help"], timeout=10)
        except MachineError:
            continue
        return name
    return ""


def _ublk(stage: Stage) -> tuple[str, str] | None:
    server = _server(stage.machine)
    if not server:
        return None
    number = str(UBLK_NUMBERS[int(stage.token, 16) % len(UBLK_NUMBERS)])
    control = f"/dev/ublkc{number}"
    if stage.machine.glob(control):
        raise MeasureError(
            "exists already, and does not belong to this scenario",
            place=control,
            remedy="run a new scenario",
        )
    make = [
        server,
        "add",
        *SERVERS[server],
        "-q",
        str(_most(stage.machine)),
        "-n",
        number,
    ]
    undo = [
        "sh",
        "-c",
        REMOVE_UBLK,
        "sh",
        boot_id(stage.machine),
        control,
        server,
        "del",
        "-n",
        number,
    ]
    stage.make(make, undo)
    return f"/dev/ublkb{number}", ublk_device(stage.machine)


def _has_null(machine: Machine) -> bool:
    """Return whether null_blk is here, or can be loaded."""
    try:
        return (
            bool(machine.glob("/sys/module/null_blk"))
            or not machine.run(["modprobe", "-n", "-q", NULL]).returncode
        )
    except MachineError:
        return False


def _null(stage: Stage) -> tuple[str, str] | None:
    machine = stage.machine
    if not _has_null(machine):
        return None
    if not machine.glob("/sys/module/null_blk"):
        stage.make(
            ["modprobe", "null_blk", "nr_devices=0"],
            ["sh", "-c", UNLOAD, "sh", boot_id(machine)],
        )
    if not machine.glob(CONFIGFS):
        return None
    place = f"{CONFIGFS}/{stage.token}"
    stage.make(["mkdir", "--", place], ["sh", "-c", REMOVE_NULL, "sh", place])
    queues = str(_most(machine))
    for name, value in (
        ("submit_queues", queues),
        ("queue_mode", "2"),
        ("irqmode", "0"),
        ("power", "1"),
    ):
        machine.write(f"{place}/{name}", value)
    own = f"/dev/{place.rsplit('/', 1)[1]}"
    path = (
        own
        if machine.glob(own)
        else f"/dev/nullb{(attribute(machine, f'{place}/index') or '0')}"
    )
    return path, null_device(machine)


def _sets(machine: Machine, feeding: Sequence[Cpus]) -> dict[str, str]:
    """Return a variant for each set of CPUs that is another one, and its line: anywhere, the CPUs of the queues, of
    the first two nodes, of each half."""
    everywhere = _online(machine)
    sets: dict[str, tuple[str, Cpus]] = {
        "device-queues": ("device-queues", first_cpus(feeding))
    }
    sets |= {
        f"node-{node}": (f"node:{node}", cpus)
        for node, cpus in list(nodes(machine).items())[:2]
    }
    ordered, middle = sorted(everywhere), len(everywhere) // 2
    for name, half in (
        ("first-half", ordered[:middle]),
        ("other-half", ordered[middle:]),
    ):
        sets[name] = (spelled(half), frozenset(half))
    seen: list[Cpus] = [frozenset(), everywhere]
    lines = {"anywhere": ""}
    for name, (value, cpus) in sets.items():
        if cpus not in seen:
            seen.append(cpus)
            lines[name] = f'cpus = "{value}"\n'
    return lines


def of_guest(kernels: Sequence[str]) -> Values:
    """ublk's null device where every kernel has ublk and rublk is here, else null_blk. A kernel gives a device as many
    queues as it has CPUs, and sixteen emulated ones do not come up (they panicked): four then."""
    cpus = 4 if why_no_kvm() else QUEUES
    known = [find(name) for name in kernels if not is_absent(name)]
    booted = known or here()[-1:]
    without = [
        kernel.release
        for kernel in booted
        if kernel.loadable().needed(["ublk_drv"]).missing
    ]
    lacks = lacking_for_ublk(has_program("rublk"), without)
    made = f"null_blk:submit_queues={cpus}" if lacks else f"ublk-null:queues={cpus}"
    name = f"a null_blk device ({lacks})" if lacks else "a ublk null device"
    return {"cpus": str(cpus), "made": made, "device": f"{name} of {_counted(cpus)}"}


def lacking_for_ublk(has_rublk: bool, without: Sequence[str]) -> str:
    """Return why a guest gets no ublk device: each thing that is missing, ``without`` being the kernels that lack ublk."""
    reasons = [] if has_rublk else ["rublk is not installed here"]
    if without:
        reasons.append(f"ublk is not in kernel {', '.join(without)}")
    return "; ".join(reasons)


def building(machine: Machine) -> Iterator[Need]:
    """Root, and at least a loop device."""
    made = machine.glob("/dev/ublk-control") or machine.glob("/sys/module/null_blk")
    yield from (root if made else loops)(machine)


def needs(machine: Machine) -> Iterator[Need]:
    """Two CPUs at least: with one there is nothing to compare."""
    if len(_online(machine)) < 2:
        yield Need(
            "CPUs", "there is one CPU: tasks cannot be bound elsewhere", MORE_CPUS
        )


SCENARIO = Scenario(
    name=NAME,
    title="1 and 16 jobs on a null device with 16 queues: the CPUs of the tasks as the variant",
    about="After the report of 2026-03: t/io_uring on a ublk null device fell from 36M to 13M IOPS by a change to slab,"
    " and another machine saw 0.9M until its tasks were bound to the CPUs of the device's queues, then 19M and 14M."
    " This scenario measures what binding changes; it compares two kernels in guests: --vm --kernel 6.1 --kernel 6.12.",
    makes="A ublk null device of 16 queues where the kernel has ublk, and kublk or rublk is installed, else a null_blk"
    " device, else a loop device over an empty file of 1 GiB.",
    template=TEMPLATE,
    small={"trial": "2s", "budget": "2m", "conditions": ""},
    full={"trial": "20s", "budget": "2h", "conditions": ""},
    prepare=prepare,
    foreseen=foreseen,
    needs=needs,
    building=building,
    guest="cpus=@CPUS@,nodes=2,memory=768,target=@MADE@",
    of_guest=of_guest,
    in_guest={
        "target": PLACE,
        "what": "kernels",
        "tool": f'tool = "{IO_URING}"',
        "conditions": CPU_SETS,
    },
    small_boots=lambda kernels: {"budget": f"{10 * kernels}m"},
    counted=COUNTED,
    measures=("block",),
)
