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

from iodelta.cli.delivery import FORMATS, deliver
from iodelta.cli.files import check_free, print_document, write
from iodelta.cli.files import force as force_option
from iodelta.cli.groups import Group
from iodelta.cli.progress import say_line
from iodelta.cli.search_options import together
from iodelta.cli.shared_options import in_console_or_json, in_formats
from iodelta.cli.turn import in_turn, waits
from iodelta.cli.typed import SHOWING, typed
from iodelta.errors import RequestError
from iodelta.experiment.values import size_bytes
from iodelta.parts.mirrors.catalogue import POLICIES, check_policy
from iodelta.report.stories.story import Detail

FORMAT = in_formats(FORMATS)
BS = click.option(
    "--bs", default="4k", show_default=True, help="Block size, in fio's units."
)
JOBS = click.option(
    "--jobs",
    default=1,
    show_default=True,
    help="Number of jobs, each with its own pid and that depth.",
)
workload = together(
    click.option(
        "--policy",
        "policies",
        multiple=True,
        metavar="NAME[:KEY=VALUE,...]",
        help="A read policy. Repeatable.",
    ),
    click.option(
        "--rw",
        type=click.Choice(["randread", "read", "randrw", "rw"]),
        default="randread",
        show_default=True,
        help="Access pattern, with fio's names.",
    ),
    click.option(
        "--read-percent",
        type=click.IntRange(0, 100),
        help="Share of reads in mixed workloads (default: 70).",
    ),
    BS,
    click.option(
        "--iodepth",
        "iodepths",
        default="1,32",
        show_default=True,
        metavar="N,N",
        help="I/Os in flight of each job; a list measures each depth.",
    ),
    JOBS,
)
"""Policies x workloads, in this order in the help."""


@click.group(
    "policy",
    cls=Group,
    epilog="""
\b
Examples:
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
def command() -> None:
    """Read policies: which member of a mirror serves a read, and how fast the disks are with each policy."""


@command.command("list")
@FORMAT
def list_(format_: str) -> None:
    """List the read policies: rule, source, tie-break, parameters."""
    from iodelta.parts.mirrors.answers import PolicyListAnswer
    from iodelta.parts.mirrors.catalogue import policies

    deliver(PolicyListAnswer(policies()), tuple, format_)


@command.command("explain")
@click.argument("policies", nargs=-1, required=True)
@click.option(
    "--copies",
    default=2,
    show_default=True,
    help="Copies of each byte, one for each --rate.",
)
@click.option(
    "--rate",
    "rates",
    type=float,
    multiple=True,
    help="I/Os per second of one member alone. Repeatable.",
)
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    help="Instead of --rate: rates from `iodelta policy calibrate` at this depth, for 4k or (from --bs 128k) 1m.",
)
@BS
@click.option(
    "--iodepth", default=1, show_default=True, help="I/Os in flight of each job."
)
@JOBS
@click.option(
    "--raid10",
    is_flag=True,
    help="The mirror is also striped (RAID10): btrfs splits reads at 64 KiB.",
)
@click.option(
    "--iops",
    type=float,
    help="I/Os per second of the array, to convert times into decisions.",
)
@FORMAT
def explain(
    policies: tuple[str, ...],
    copies: int,
    rates: tuple[float, ...],
    calibration: Path | None,
    bs: str,
    iodepth: int,
    jobs: int,
    raid10: bool,
    iops: float | None,
    format_: str,
) -> None:
    """Explain why a policy behaves as it does, and how to see it. Does not need the native core."""
    from iodelta.cli.search_question import given_options
    from iodelta.parts.mirrors.answers import ExplainAnswer, PolicyExplanation
    from iodelta.parts.mirrors.calibrate import load, rates_of
    from iodelta.parts.mirrors.explain import Array, explain

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
    length = size_of(bs, "--bs")
    if calibration:
        rates = rates_of(load(calibration), length, iodepth * jobs)
    if rates and not given_options({"copies"}):
        copies = len(rates)
    array = Array(
        copies=copies,
        rates=rates,
        length=length,
        iodepth=iodepth,
        jobs=jobs,
        raid10=raid10,
        iops=iops,
    )
    explanations = tuple(
        PolicyExplanation(policy, explain(policy, array))
        for policy in once(policies, "policies")
    )
    deliver(ExplainAnswer(array, explanations, typed()), tuple, format_)


@command.command("simulate")
@click.option(
    "--member",
    "members",
    multiple=True,
    metavar="MODEL",
    help="hdd:7200, hdd:5400:90 (MiB/s), hdd:7200:170:4t (size; 1t if left out), ssd, ssd:stalls.",
)
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    help="Members measured by `iodelta policy calibrate`.",
)
@click.option(
    "--layout",
    type=click.Choice(["mirror", "raid1", "raid1c3", "raid1c4", "raid10"]),
    help="Layout of the copies (default: mirror; raid1 for modelled members).",
)
@workload
@click.option(
    "--rate",
    "arrivals",
    metavar="N,N",
    help="An open load instead of --iodepth: requests per second of all jobs, arriving at random (Poisson).",
)
@click.option(
    "--size",
    default="",
    help="Working set; 50g if left out. Modelled disks seek within it: a mirror at the beginning, others in 1g chunks.",
)
@click.option(
    "--load",
    is_flag=True,
    help="Add a defragmentation: reads, and bursts of writes to all copies.",
)
@click.option(
    "--cache",
    type=click.Choice(["none", "array", "members"]),
    default="none",
    show_default=True,
    help="Where a cache keeps blocks that were read: before the whole array, or before each member.",
)
@click.option(
    "--worlds",
    default=5,
    show_default=True,
    help="Number of random layouts and pids; the spread is over these.",
)
@click.option(
    "--seconds", default=30.0, show_default=True, help="Simulated seconds per layout."
)
@click.option(
    "--seed", default=1, show_default=True, help="Seed of the random numbers."
)
@FORMAT
def simulate(
    members: tuple[str, ...],
    calibration: Path | None,
    layout: str | None,
    policies: tuple[str, ...],
    rw: str,
    read_percent: int | None,
    bs: str,
    iodepths: str,
    jobs: int,
    arrivals: str | None,
    size: str,
    load: bool,
    cache: str,
    worlds: int,
    seconds: float,
    seed: int,
    format_: str,
) -> None:
    """Predict policies on modelled or calibrated members, by discrete-event simulation."""
    from iodelta.cli.search_question import given_options
    from iodelta.parts.mirrors.answers import SimulationAnswer
    from iodelta.parts.mirrors.calibrate import load as load_calibration
    from iodelta.parts.mirrors.predict import (
        CACHES,
        LAYOUTS,
        Asked,
        members_of,
        predict,
    )

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
    if arrivals and given_options({"iodepths"}):
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
    asked = Asked(
        members=models,
        policies=_checked(policies),
        iodepths=() if arrivals else numbers(iodepths),
        rates=rates_per_second(arrivals) if arrivals else (),
        layout=LAYOUTS[layout or ("mirror" if measured else "raid1")],
        random=rw.startswith("rand"),
        length=size_of(bs, "--bs"),
        jobs=jobs,
        read_percent=reads_percent(rw, read_percent),
        size=size_of(size, "--size") if size else None,
        loaded=load,
        cache=CACHES[cache],
        seconds=seconds,
        seeds=tuple(range(seed, seed + worlds)),
    )
    predictions = predict(asked)
    closure = None
    if measured:
        closure = max((member.closure for member in measured.members), default=0.0)
        members = tuple(member.path for member in measured.members)
    held_out = measured.held_out if measured else ()
    deliver(
        SimulationAnswer(predictions, asked.seeds, closure, held_out, members, typed()),
        tuple,
        format_,
    )


@command.command("calibrate")
@click.argument("members", nargs=-1, required=True)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    required=True,
    help="The file to write.",
)
@force_option
@click.option(
    "--seconds",
    default=2.0,
    show_default=True,
    help="Duration at each depth, in seconds.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the offsets.")
@click.option(
    "--destroy",
    multiple=True,
    metavar="MEMBER",
    help="Allow this member to be overwritten, to measure writes too.",
)
@waits
@FORMAT
def calibrate(
    members: tuple[str, ...],
    output: Path,
    force: bool,
    seconds: float,
    seed: int,
    destroy: tuple[str, ...],
    format_: str,
) -> None:
    """Measure each member alone at depths 1 to 64, then the mirror, to check the prediction.

    Reads only, unless --destroy names each member: then writes too.
    """
    from iodelta.parts.mirrors.calibrate import calibrate, stored

    check_free(output, force=force)
    if not 0.1 <= seconds <= 3600:
        raise RequestError("0.1 to 3600 seconds at each depth", place="--seconds")
    _alone(members)
    calibration = calibrate(
        members,
        seconds=seconds,
        seed=seed,
        destroy=destroy,
        said=say_line,
    )
    write(output, stored(calibration), "the calibration", force=force)
    deliver(
        calibration,
        tuple,
        format_,
        detail=Detail(again=typed(SHOWING - {"output", "force"})),
    )


def _no_open_load(
    context: click.Context, parameter: click.Parameter, value: str
) -> None:
    """Of ``simulate`` somebody knows --rate; on real members there is none."""
    if value:
        raise RequestError(
            "the mirror keeps iodepth x jobs requests in flight; it cannot submit at a rate of its own",
            place="--rate",
            remedy="set the load by --iodepth and --jobs; `iodelta policy simulate --rate` predicts an open load",
        )


@command.command("mirror")
@click.argument("members", nargs=-1, required=True)
@workload
@click.option(
    "--size", default="", help="How much of each member to use, from its beginning."
)
@click.option(
    "--seconds",
    default=5.0,
    show_default=True,
    help="Duration of each run, in seconds.",
)
@click.option(
    "--ramp",
    default=0.5,
    show_default=True,
    help="Warm-up before each trial, which is not counted.",
)
@click.option(
    "--stall",
    default=10.0,
    show_default=True,
    help="Seconds after which a member that does not answer is skipped.",
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    help="Seed of the offsets and pids, which are new in each run.",
)
@click.option(
    "--buffered", is_flag=True, help="Use the page cache instead of O_DIRECT."
)
@click.option(
    "--rate",
    "arrivals",
    default="",
    hidden=True,
    expose_value=False,
    callback=_no_open_load,
)
@click.option(
    "--compare-all",
    is_flag=True,
    help="Compare all bytes of the members first, instead of a sample.",
)
@click.option(
    "--destroy",
    multiple=True,
    metavar="MEMBER",
    help="Allow this member to be overwritten.",
)
@waits
@click.option(
    "--experiment",
    is_flag=True,
    help="Print the `iodelta run` command that measures this with blocks and verdicts.",
)
@FORMAT
def mirror(
    members: tuple[str, ...],
    policies: tuple[str, ...],
    rw: str,
    read_percent: int | None,
    bs: str,
    iodepths: str,
    jobs: int,
    size: str,
    seconds: float,
    ramp: float,
    stall: float,
    seed: int,
    buffered: bool,
    compare_all: bool,
    destroy: tuple[str, ...],
    experiment: bool,
    format_: str,
) -> None:
    """Read real members once through each policy. For a verdict, --experiment prints the `iodelta run` command.

    MEMBERS are block devices or files that hold the same bytes. Nothing is written unless the workload is mixed and
    --destroy names each member.
    """
    import msgspec

    from iodelta.cli.progress import Progress
    from iodelta.parts.mirrors.answers import MirrorAnswer, mirrored
    from iodelta.parts.mirrors.mirror import Request, run
    from iodelta.probe.members import SAMPLE, inspect

    chosen = _checked(policies)
    depths = numbers(iodepths)
    reads = reads_percent(rw, read_percent)
    if experiment and format_ != "console":
        raise RequestError(
            "--experiment prints a command",
            place="--format",
            remedy="leave --format out",
        )
    if experiment:
        click.echo(
            experiment_command(
                members, chosen, rw, bs, iodepths, jobs, reads, size, buffered
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
    length = size_of(bs, "--bs")
    used = size_of(size, "--size") if size else None
    _, findings = inspect(
        members, pieces=0 if compare_all else SAMPLE, size=used, seed=seed
    )
    _alone(members)
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
        direct=not buffered,
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
            runs.append(mirrored(policy, depth, run(request, destroy=destroy)))
    deliver(MirrorAnswer(tuple(runs), findings, members, typed()), tuple, format_)
    seen = chain.from_iterable(each.findings for each in runs)
    sys.exit(4 if any(finding.severity == "hard" for finding in seen) else 0)


@command.command("defrag")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--size",
    default="64m",
    show_default=True,
    help="Size of the file to defragment; needs three times the space.",
)
@in_console_or_json
def defrag(directory: Path, size: str, format_: str) -> None:
    """Defragment on a btrfs until stopped: a background load that does the same work in every pass.

    It keeps a file of small extents in DIRECTORY, repeatedly defragments a clone of it, and deletes both at the end. As
    the background load of a condition its rate is recorded, and it does not touch the file under test:

    background = "iodelta policy defrag {target.mount}"
    """
    from iodelta.lab.signals import stop_on_signals
    from iodelta.parts.mirrors.answers import DefragAnswer
    from iodelta.parts.mirrors.defrag import keep_defragmenting

    with stop_on_signals() as stop:
        passes = keep_defragmenting(directory, size_of(size, "--size"), stop)
    if format_ == "json":
        print_document(DefragAnswer(passes, size_of(size, "--size")))
    else:
        click.echo(f"{passes} passes of {size}", err=True)


def _alone(members: Sequence[str]) -> None:
    """Let nobody else measure the members' devices until the command ends. Raises BusyError, RequestError."""
    from iodelta.lab.turns import alone
    from iodelta.machine import LocalMachine
    from iodelta.probe.members import targets_of

    machine = LocalMachine()
    in_turn(
        lambda: click.get_current_context().with_resource(
            alone(machine, targets_of(members, machine), Path.cwd())
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
