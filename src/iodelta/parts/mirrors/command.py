"""``iodelta policy``: read policies of mirrors listed, explained, simulated, and run for real on members."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path

import click

from iodelta.cli.commands import SHOWING, Asked, declared, group
from iodelta.cli.files import check_free, write
from iodelta.cli.progress import say_line
from iodelta.errors import RequestError
from iodelta.experiment.values import size_bytes
from iodelta.parts.mirrors.catalogue import POLICIES, check_policy
from iodelta.report.stories.story import Detail

BS = "--bs SIZE [4k]        Block size, in fio's units."

JOBS = "--jobs NUMBER [1]     Number of jobs, each with its own pid and that depth."

WORKLOAD = f"""
--policy NAME[:KEY=VALUE,...]*
                      A read policy. Repeatable.
--rw randread|read|randrw|rw [randread]
                      Access pattern, with fio's names.
--read-percent NUMBER:0..100
                      Share of reads in mixed workloads (default: 70).
{BS}
--iodepth N,N [1,32]  I/Os in flight of each job; a list measures each depth.
{JOBS}
""".strip()
"""Policies x workloads, in this order in the help."""


command = group(
    "policy",
    "Read policies: which member of a mirror serves a read, and how fast the disks are with each policy.",
    """
  iodelta policy list
  iodelta policy explain round-robin pid --bs 1m --rate 900 --rate 300
  iodelta policy simulate --member hdd:7200 --member hdd:5400 --member ssd --layout raid1
  iodelta policy calibrate /dev/sdb /dev/sdc --output members.json
  iodelta policy explain sed zfs --calibration members.json --iodepth 32
  iodelta policy simulate --calibration members.json --policy queue --policy zfs
  iodelta policy simulate --member hdd:7200 --member hdd:5400 --size 4g --rate 50,100,150
  iodelta policy mirror /dev/sdb /dev/sdc --policy queue --policy pid --iodepth 32
  iodelta policy defrag /mnt/pool --size 256m
""",
)


@declared("list", "", "--format REPORT [console]", into=command)
def list_(asked: Asked) -> None:
    """List the read policies: rule, source, tie-break, parameters."""
    from iodelta.parts.mirrors.answers import PolicyListAnswer
    from iodelta.parts.mirrors.catalogue import policies

    asked.deliver(PolicyListAnswer(policies()))


@declared(
    "explain",
    "policies...",
    f"""
--copies NUMBER [2]   Copies of each byte, one for each --rate.
--rate TIMES*         I/Os per second of one member alone. Repeatable.
--calibration FILE    Instead of --rate: rates from `iodelta policy calibrate` at this depth, for 4k or (from --bs 128k)
                      1m.
{BS}
--iodepth NUMBER [1]  I/Os in flight of each job.
{JOBS}
--raid10              The mirror is also striped (RAID10): btrfs splits reads at 64 KiB.
--iops TIMES          I/Os per second of the array, to convert times into decisions.
--format REPORT [console]
""",
    into=command,
)
def explain(asked: Asked) -> None:
    """Explain why a policy behaves as it does, and how to see it. Does not need the native core."""
    from iodelta.parts.mirrors.answers import ExplainAnswer, PolicyExplanation
    from iodelta.parts.mirrors.calibrate import load, rates_of
    from iodelta.parts.mirrors.explain import Array, explain

    rates, calibration, copies = asked.rate, asked.calibration, asked.copies
    iodepth, jobs, iops = asked.iodepth, asked.jobs, asked.iops
    if (
        any(rate <= 0 for rate in rates)
        or iodepth < 1
        or jobs < 1
        or (iops is not None and iops <= 0)
    ):
        raise RequestError(
            "rates, depth, jobs and iops must be above 0", place="command line"
        )
    if rates and calibration:
        raise RequestError("rates are either given or calibrated", place="command line")
    length = size_of(asked.bs, "--bs")
    if calibration:
        rates = rates_of(load(calibration), length, iodepth * jobs)
    if rates and not asked.given("copies"):
        copies = len(rates)
    array = Array(
        copies=copies,
        rates=rates,
        length=length,
        iodepth=iodepth,
        jobs=jobs,
        raid10=asked.raid10,
        iops=iops,
    )
    explanations = tuple(
        PolicyExplanation(policy, explain(policy, array))
        for policy in once(asked.policies, "policies")
    )
    asked.deliver(ExplainAnswer(array, explanations, asked.typed()))


@declared(
    "simulate",
    "",
    f"""
--member MODEL*       hdd:7200, hdd:5400:90 (MiB/s), hdd:7200:170:4t (size; 1t if left out), ssd, ssd:stalls.
--calibration FILE    Members measured by `iodelta policy calibrate`.
--layout mirror|raid1|raid1c3|raid1c4|raid10
                      Layout of the copies (default: mirror; raid1 for modelled members).
{WORKLOAD}
--rate N,N            An open load instead of --iodepth: requests per second of all jobs, arriving at random (Poisson).
--size SIZE           Working set; 50g if left out. Modelled disks seek within it: a mirror at the beginning, others in
                      1g chunks.
--load                Add a defragmentation: reads, and bursts of writes to all copies.
--cache none|array|members [none]
                      Where a cache keeps blocks that were read: before the whole array, or before each member.
--worlds NUMBER [5]   Number of random layouts and pids; the spread is over these.
--seconds TIMES [30]  Simulated seconds per layout.
--seed NUMBER [1]     Seed of the random numbers.
--format REPORT [console]
""",
    into=command,
)
def simulate(asked: Asked) -> None:
    """Predict policies on modelled or calibrated members, by discrete-event simulation."""
    from iodelta.parts.mirrors.answers import SimulationAnswer
    from iodelta.parts.mirrors.calibrate import load as load_calibration
    from iodelta.parts.mirrors.predict import (
        CACHES,
        LAYOUTS,
        members_of,
        predict,
    )
    from iodelta.parts.mirrors.predict import Asked as Request

    members, calibration, arrivals = asked.member, asked.calibration, asked.rate
    worlds, seconds, jobs, seed = asked.worlds, asked.seconds, asked.jobs, asked.seed

    if bool(members) == bool(calibration):
        raise RequestError(
            "members are either modelled or calibrated",
            place="command line",
            remedy="--member ..., or --calibration",
        )
    if worlds < 1 or seconds <= 0 or jobs < 1:
        raise RequestError(
            "worlds, seconds and jobs must be above 0", place="command line"
        )
    if arrivals and asked.given("iodepth"):
        raise RequestError(
            "an open load has no depth: requests arrive regardless of how many are in flight",
            place="command line",
            remedy="--rate or --iodepth",
        )
    measured = load_calibration(calibration) if calibration else None
    models = (
        tuple(member.member for member in measured.members)
        if measured
        else members_of(members)
    )
    request = Request(
        members=models,
        policies=_checked(asked.policy),
        iodepths=() if arrivals else numbers(asked.iodepth),
        rates=rates_per_second(arrivals) if arrivals else (),
        layout=LAYOUTS[asked.layout or ("mirror" if measured else "raid1")],
        random=asked.rw.startswith("rand"),
        length=size_of(asked.bs, "--bs"),
        jobs=jobs,
        read_percent=reads_percent(asked.rw, asked.read_percent),
        size=size_of(asked.size, "--size") if asked.size else None,
        loaded=asked.load,
        cache=CACHES[asked.cache],
        seconds=seconds,
        seeds=tuple(range(seed, seed + worlds)),
    )
    predictions = predict(request)
    closure = None
    if measured:
        closure = max((member.closure for member in measured.members), default=0.0)
        members = tuple(member.path for member in measured.members)
    held_out = measured.held_out if measured else ()
    asked.deliver(
        SimulationAnswer(
            predictions, request.seeds, closure, held_out, members, asked.typed()
        )
    )


@declared(
    "calibrate",
    "members...",
    """
-o, --output FILE!    The file to write.
--force
--seconds TIMES [2]   Duration at each depth, in seconds.
--seed NUMBER [1]     Seed of the offsets.
--destroy MEMBER*     Allow this member to be overwritten, to measure writes too.
--wait
--format REPORT [console]
""",
    into=command,
)
def calibrate(asked: Asked) -> None:
    """Measure each member alone at depths 1 to 64, then the mirror, to check the prediction.

    Reads only, unless --destroy names each member: then writes too.
    """
    from iodelta.parts.mirrors.calibrate import calibrate, stored

    members, output, seconds = asked.members, asked.output, asked.seconds
    check_free(output, force=asked.force)
    if not 0.1 <= seconds <= 3600:
        raise RequestError("0.1 to 3600 seconds at each depth", place="--seconds")
    _alone(asked)
    calibration = calibrate(
        members,
        seconds=seconds,
        seed=asked.seed,
        destroy=asked.destroy,
        said=say_line,
    )
    write(output, stored(calibration), "the calibration", force=asked.force)
    again = asked.typed(SHOWING - {"output", "force"})
    asked.output = None  # which the calibration is in
    asked.deliver(calibration, detail=Detail(again=again))


@declared(
    "mirror",
    "members...",
    f"""
{WORKLOAD}
--size SIZE           How much of each member to use, from its beginning.
--seconds TIMES [5]   Duration of each run, in seconds.
--ramp TIMES [0.5]    Warm-up before each trial, which is not counted.
--stall TIMES [10]    Seconds after which a member that does not answer is skipped.
--seed NUMBER [1]     Seed of the offsets and pids, which are new in each run.
--buffered            Use the page cache instead of O_DIRECT.
--rate N,N            .
--compare-all         Compare all bytes of the members first, instead of a sample.
--destroy MEMBER*     Allow this member to be overwritten.
--wait
--experiment          Print the `iodelta run` command that measures this with blocks and verdicts.
--format REPORT [console]
""",
    into=command,
)
def mirror(asked: Asked) -> None:
    """Read real members once through each policy. For a verdict, --experiment prints the `iodelta run` command.

    MEMBERS are block devices or files that hold the same bytes. Nothing is written unless the workload is mixed and
    --destroy names each member.
    """
    import msgspec

    from iodelta.cli.progress import Progress
    from iodelta.parts.mirrors.answers import MirrorAnswer, mirrored
    from iodelta.parts.mirrors.mirror import Request, run
    from iodelta.probe.members import SAMPLE, inspect

    members, rw, jobs, seed = asked.members, asked.rw, asked.jobs, asked.seed
    seconds, ramp, stall = asked.seconds, asked.ramp, asked.stall
    if asked.rate:
        raise RequestError(
            "the mirror keeps iodepth x jobs requests in flight; it cannot submit at a rate of its own",
            place="--rate",
            remedy="set the load by --iodepth and --jobs; `iodelta policy simulate --rate` predicts an open load",
        )
    chosen = _checked(asked.policy)
    depths = numbers(asked.iodepth)
    reads = reads_percent(rw, asked.read_percent)
    if asked.experiment and asked.format != "console":
        raise RequestError(
            "--experiment prints a command",
            place="--format",
            remedy="leave --format out",
        )
    if asked.experiment:
        click.echo(
            experiment_command(
                members,
                chosen,
                rw,
                asked.bs,
                asked.iodepth,
                jobs,
                reads,
                asked.size,
                asked.buffered,
            )
        )
        return
    if (
        not 0 < seconds <= 1e6
        or not 0 <= ramp <= 1e6
        or not 0 < stall <= 1e6
        or jobs < 1
    ):
        raise RequestError(
            "seconds, stall and jobs must be above 0", place="command line"
        )
    length = size_of(asked.bs, "--bs")
    used = size_of(asked.size, "--size") if asked.size else None
    _, findings = inspect(
        members, pieces=0 if asked.compare_all else SAMPLE, size=used, seed=seed
    )
    _alone(asked)
    first = Request(
        members=members,
        policy="",
        random=rw.startswith("rand"),
        length=length,
        iodepth=0,
        jobs=jobs,
        read_percent=reads,
        size=used,
        seed=seed,
        ramp=ramp,
        seconds=seconds,
        direct=not asked.buffered,
        stall=stall,
        trace=seconds / 100,
    )
    runs, cases = [], list(product(depths, chosen))
    with Progress() as progress:
        for number, (depth, policy) in enumerate(cases):
            progress.step(
                "measuring", number / len(cases), f"{policy} at iodepth {depth}"
            )
            request = msgspec.structs.replace(
                first, policy=policy, iodepth=depth, seed=seed + number
            )
            runs.append(mirrored(policy, depth, run(request, destroy=asked.destroy)))
    asked.deliver(MirrorAnswer(tuple(runs), findings, members, asked.typed()))
    seen = chain.from_iterable(each.findings for each in runs)
    sys.exit(4 if any(finding.severity == "hard" for finding in seen) else 0)


@declared(
    "defrag",
    "directory",
    """
--size SIZE [64m]     Size of the file to defragment; needs three times the space.
--format
""",
    into=command,
)
def defrag(asked: Asked) -> None:
    """Defragment on a btrfs until stopped: a background load that does the same work in every pass.

    It keeps a file of small extents in DIRECTORY, repeatedly defragments a clone of it, and deletes both at the end. As
    the background load of a condition its rate is recorded, and it does not touch the file under test:

    background = "iodelta policy defrag {target.mount}"
    """
    from iodelta.lab.signals import stop_on_signals
    from iodelta.parts.mirrors.answers import DefragAnswer
    from iodelta.parts.mirrors.defrag import keep_defragmenting

    with stop_on_signals() as stop:
        size = size_of(asked.size, "--size")
        passes = keep_defragmenting(asked.directory, size, stop)
    asked.answer(DefragAnswer(passes, size), ())
    if asked.format == "console":
        say_line(f"{passes} passes of {asked.size}")


def _alone(asked: Asked) -> None:
    """Let nobody else measure the members' devices until the command ends. Raises BusyError, RequestError."""
    from iodelta.lab.turns import alone
    from iodelta.machine import LocalMachine
    from iodelta.probe.members import targets_of

    machine = LocalMachine()
    asked.in_turn(
        lambda: click.get_current_context().with_resource(
            alone(machine, targets_of(asked.members, machine), Path.cwd())
        )
    )


def _checked(policies: Sequence[str]) -> tuple[str, ...]:
    """Return the read policies that were named, else those of the benchmark. Raises RequestError."""
    return tuple(map(check_policy, once(policies, "--policy") or POLICIES))


def experiment_command(
    members: Sequence[str],
    policies: Sequence[str],
    rw: str,
    bs: str,
    iodepths: str,
    jobs: int,
    reads: int,
    size: str,
    buffered: bool,
) -> str:
    """Return the ``iodelta run`` that measures this with blocks and verdicts."""
    paths = [os.path.abspath(member) for member in members]
    words = [
        "iodelta",
        "run",
        "--target",
        paths[0],
        *(("--size", size) if size else ()),
    ]
    for policy in policies:
        name = re.sub(r"[^A-Za-z0-9._+-]", "-", policy)
        words += [
            "--variant",
            f"{name}:mirror.read_policy={shlex.join([policy, *paths])}",
        ]
    words += [
        "--placebo",
        "--",
        f"--rw={rw}",
        f"--bs={bs}",
        f"--iodepth={iodepths}",
        f"--direct={int(not buffered)}",
    ]
    words += ["--ioengine=io_uring", *((f"--numjobs={jobs}",) if jobs > 1 else ())]
    words += [f"--rwmixread={reads}"] if reads < 100 else []
    return shlex.join(words)


def reads_percent(rw: str, percent: int | None) -> int:
    """Percent of reads: only a mixed workload has others."""
    if rw not in ("randrw", "rw"):
        return 100
    return 70 if percent is None else percent


def once(values: Sequence[str], place: str) -> Sequence[str]:
    """Return the values. Raises RequestError for one that is given twice: its results could not be distinguished."""
    for at, value in enumerate(values):
        if value in values[:at]:
            raise RequestError(f"{value!r} is given twice", place=place)
    return values


def numbers(text: str) -> tuple[int, ...]:
    """Depths. Raises RequestError."""
    depths = tuple(
        int(part)
        for part in once(text.split(","), "--iodepth")
        if part.strip().isdecimal()
    )
    if not depths or len(depths) != len(text.split(",")) or min(depths) < 1:
        raise RequestError(
            f"not a list of depths: {text!r}", place="--iodepth", remedy="as in 1,32"
        )
    return depths


def rates_per_second(text: str) -> tuple[float, ...]:
    """Arrivals of open loads. Raises RequestError."""
    try:
        rates = tuple(float(part) for part in once(text.split(","), "--rate"))
    except ValueError as error:
        raise RequestError(
            f"not a list of rates: {text!r}", place="--rate", remedy="as in 200,400"
        ) from error
    if not all(0 < rate <= 1e8 for rate in rates):
        raise RequestError(
            f"a rate is above 0 and at most 100 million: {text!r}", place="--rate"
        )
    return rates


def size_of(text: str, place: str) -> int:
    """Bytes. Raises RequestError."""
    try:
        size = size_bytes(text)
    except ValueError as error:
        raise RequestError(str(error), place=place) from error
    if not size:
        raise RequestError(f"a size is above 0: {text!r}", place=place)
    return size
