"""``iodelta policy``: read policies of mirrors listed, explained, simulated and run for real."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from iodelta.cli.delivery import FORMATS, deliver
from iodelta.cli.files import check_free, write
from iodelta.cli.files import force as force_option
from iodelta.cli.groups import Group
from iodelta.cli.policy_words import experiment_command, numbers, once, rates_per_second, reads_percent, size_of
from iodelta.cli.turn import in_turn, waits
from iodelta.cli.typed import SHOWING, typed
from iodelta.errors import RequestError
from iodelta.report.stories.story import Detail

if TYPE_CHECKING:
    from iodelta.policy.answers import Mirrored
    from iodelta.policy.mirror import Request

FIVE = ("pid", "round-robin", "latency", "latency-rr", "queue")
"""The policies of the original benchmark: the default."""

_format = click.option("--format", "format_", type=click.Choice(FORMATS), default="console", show_default=True)
_bs = click.option("--bs", default="4k", show_default=True, help="Block size, in fio's units.")
_jobs = click.option(
    "--jobs", default=1, show_default=True, help="Number of jobs, each with its own pid and that depth."
)
_WORKLOAD = (
    click.option(
        "--policy", "policies", multiple=True, metavar="NAME[:KEY=VALUE,...]", help="A read policy. Repeatable."
    ),
    click.option(
        "--rw", type=click.Choice(["randread", "read", "randrw", "rw"]), default="randread", show_default=True
    ),
    click.option(
        "--read-percent", type=click.IntRange(0, 100), help="Share of reads in mixed workloads (default: 70)."
    ),
    _bs,
    click.option("--iodepth", "iodepths", default="1,32", show_default=True, metavar="N,N"),
    _jobs,
)


def _workload(command: Callable[..., None]) -> Callable[..., None]:
    """The options of policies x workloads, in this order in the help."""
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_WORKLOAD), command)


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
@_format
def list_(format_: str) -> None:
    """List the read policies: rule, source, tie-break, parameters."""
    from iodelta.policy.answers import PolicyListAnswer
    from iodelta.policy.catalogue import policies

    deliver(PolicyListAnswer(policies()), tuple, format_)


@command.command("explain")
@click.argument("policies", nargs=-1, required=True)
@click.option("--copies", default=2, show_default=True, help="Copies of each byte.")
@click.option("--rate", "rates", type=float, multiple=True, help="I/Os per second of one member alone. Repeatable.")
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    help="Instead of --rate: rates from `iodelta policy calibrate` at this depth, for 4k or (from --bs 128k) 1m.",
)
@_bs
@click.option("--iodepth", default=1, show_default=True)
@_jobs
@click.option("--raid10", is_flag=True, help="Striped: btrfs cuts reads at 64 KiB.")
@click.option("--iops", type=float, help="I/Os per second of the array, to convert times into decisions.")
@_format
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
    from iodelta.policy.answers import ExplainAnswer, PolicyExplanation
    from iodelta.policy.calibrate import load, rates_of
    from iodelta.policy.explain import Array, explain

    if any(rate <= 0 for rate in rates) or iodepth < 1 or jobs < 1 or (iops is not None and iops <= 0):
        raise RequestError("rates, depth, jobs and iops must be above 0", place="command line")
    if rates and calibration:
        raise RequestError("rates are either given or calibrated", place="command line")
    length = size_of(bs, "--bs")
    if calibration:
        rates = rates_of(load(calibration), length, iodepth * jobs)
    copies = len(rates) or copies
    array = Array(copies=copies, rates=rates, length=length, iodepth=iodepth, jobs=jobs, raid10=raid10, iops=iops)
    found = tuple(PolicyExplanation(policy, explain(policy, array)) for policy in once(policies, "policies"))
    deliver(ExplainAnswer(array, found, typed()), tuple, format_)


@command.command("simulate")
@click.option(
    "--member",
    "members",
    multiple=True,
    metavar="MODEL",
    help="hdd:7200, hdd:5400:90 (MiB/s), hdd:7200:170:4t (size; 1t if left out), ssd, ssd:stalls.",
)
@click.option("--calibration", type=click.Path(path_type=Path), help="Members measured by `iodelta policy calibrate`.")
@click.option(
    "--layout",
    type=click.Choice(["mirror", "raid1", "raid1c3", "raid1c4", "raid10"]),
    help="mirror, or raid1 for models.",
)
@_workload
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
@click.option("--load", is_flag=True, help="Add a defragmentation: reads, and bursts of writes to all copies.")
@click.option("--cache", type=click.Choice(["none", "array", "members"]), default="none", show_default=True)
@click.option(
    "--worlds", default=5, show_default=True, help="Number of random layouts and pids; the spread is over these."
)
@click.option("--seconds", default=30.0, show_default=True, help="Simulated seconds per layout.")
@click.option("--seed", default=1, show_default=True)
@_format
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
    from iodelta.policy.answers import SimulationAnswer
    from iodelta.policy.calibrate import load as load_calibration
    from iodelta.policy.catalogue import check_policy
    from iodelta.policy.predict import CACHES, LAYOUTS, Asked, members_of, predict

    if bool(members) == bool(calibration):
        raise RequestError(
            "members are either modelled or calibrated", place="command line", remedy="--member ..., or --calibration"
        )
    if worlds < 1 or seconds <= 0 or jobs < 1:
        raise RequestError("worlds, seconds and jobs must be above 0", place="command line")
    _check_load(arrivals)
    measured = load_calibration(calibration) if calibration else None
    models = tuple(member.member for member in measured.members) if measured else members_of(members)
    asked = Asked(
        members=models,
        policies=tuple(check_policy(policy) for policy in once(policies, "--policy") or FIVE),
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
    if measured:
        closure = max((member.closure for member in measured.members), default=0.0)
        paths = tuple(member.path for member in measured.members)
        answer = SimulationAnswer(predictions, asked.seeds, closure, measured.held_out, paths, typed())
    else:
        answer = SimulationAnswer(predictions, asked.seeds, None, (), members, typed())
    deliver(answer, tuple, format_)


def _check_load(arrivals: str | None) -> None:
    """Raises RequestError if both a rate and a depth were given."""
    depth_given = click.get_current_context().get_parameter_source("iodepths") is not ParameterSource.DEFAULT
    if arrivals and depth_given:
        raise RequestError(
            "an open load has no depth: requests arrive regardless of how many are in flight",
            place="command line",
            remedy="--rate or --iodepth",
        )


@command.command("calibrate")
@click.argument("members", nargs=-1, required=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="The file to write.")
@force_option
@click.option("--seconds", default=2.0, show_default=True, help="Duration at each depth, in seconds.")
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--destroy", multiple=True, metavar="MEMBER", help="Allow this member to be overwritten, to measure writes too."
)
@waits
@_format
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
    from iodelta.policy.calibrate import calibrate, stored

    check_free(output, force=force)
    if not 0.1 <= seconds <= 3600:
        raise RequestError("0.1 to 3600 seconds at each depth", place="--seconds")
    click.get_current_context().with_resource(_alone(members))
    found = calibrate(
        members, seconds=seconds, seed=seed, destroy=destroy, said=lambda text: click.echo(text, err=True)
    )
    write(output, stored(found), "the calibration", force=force)
    deliver(found, tuple, format_, detail=Detail(again=typed(SHOWING - {"output", "force"})))


def _no_open_load(context: click.Context, parameter: click.Parameter, value: str) -> None:
    """Of ``simulate`` somebody knows --rate; on real members there is none."""
    if value:
        raise RequestError(
            "the mirror keeps iodepth x jobs requests in flight; it cannot submit at a rate of its own",
            place="--rate",
            remedy="set the load by --iodepth and --jobs; `iodelta policy simulate --rate` predicts an open load",
        )


@command.command("mirror")
@click.argument("members", nargs=-1, required=True)
@_workload
@click.option("--size", default="", help="How much of each member to use, from its beginning.")
@click.option("--seconds", default=5.0, show_default=True, help="Duration of each run, in seconds.")
@click.option("--ramp", default=0.5, show_default=True, help="Warm-up before each trial, which is not counted.")
@click.option(
    "--stall", default=10.0, show_default=True, help="Seconds after which a member that does not answer is skipped."
)
@click.option("--seed", default=1, show_default=True, help="Seed of the offsets and pids, which are new in each run.")
@click.option("--buffered", is_flag=True, help="Use the page cache instead of O_DIRECT.")
@click.option("--rate", "arrivals", default="", hidden=True, expose_value=False, callback=_no_open_load)
@click.option("--compare-all", is_flag=True, help="Compare all bytes of the members first, instead of a sample.")
@click.option("--destroy", multiple=True, metavar="MEMBER", help="Allow this member to be overwritten.")
@waits
@click.option(
    "--experiment", is_flag=True, help="Print the `iodelta run` command that measures this with blocks and verdicts."
)
@_format
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
    from iodelta.policy.answers import MirrorAnswer
    from iodelta.policy.catalogue import check_policy
    from iodelta.policy.mirror import Request
    from iodelta.probe.members import SAMPLE, inspect

    chosen = tuple(check_policy(policy) for policy in once(policies, "--policy") or FIVE)
    depths = numbers(iodepths)
    reads = reads_percent(rw, read_percent)
    if experiment and format_ != "console":
        raise RequestError("--experiment prints a command", place="--format", remedy="leave --format out")
    if experiment:
        click.echo(experiment_command(members, chosen, rw, bs, iodepths, jobs, reads, size, buffered))
        return
    if not 0 < seconds <= 1e6 or not 0 <= ramp <= 1e6 or not 0 < stall <= 1e6 or jobs < 1:
        raise RequestError("seconds, stall and jobs must be above 0", place="command line")
    length = size_of(bs, "--bs")
    used = size_of(size, "--size") if size else None
    _, findings = inspect(members, pieces=0 if compare_all else SAMPLE, size=used, seed=seed)
    click.get_current_context().with_resource(_alone(members))
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
    runs = tuple(_mirror_each(first, list(product(depths, chosen)), destroy))
    deliver(MirrorAnswer(runs, findings, members, typed()), tuple, format_)
    severities = {finding.severity for finding in chain.from_iterable(run.findings for run in runs)}
    sys.exit(4 if "hard" in severities else 0)


def _mirror_each(first: Request, cases: Sequence[tuple[int, str]], destroy: tuple[str, ...]) -> Iterator[Mirrored]:
    """A run of the mirror for every depth and policy, each with its own seed."""
    import msgspec

    from iodelta.cli.progress import Progress
    from iodelta.policy.answers import mirrored
    from iodelta.policy.mirror import run

    with Progress() as progress:
        for number, (depth, policy) in enumerate(cases):
            progress.step("measuring", number / len(cases), f"{policy} at iodepth {depth}")
            request = msgspec.structs.replace(first, policy=policy, iodepth=depth, seed=first.seed + number)
            yield mirrored(policy, depth, run(request, destroy=destroy))


@command.command("defrag")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--size", default="64m", show_default=True, help="Size of the file to defragment; needs three times the space."
)
@click.option("--format", "format_", type=click.Choice(["console", "json"]), default="console", show_default=True)
def defrag(directory: Path, size: str, format_: str) -> None:
    """Defragment on a btrfs until stopped: a background load that does the same work in every pass.

    It keeps a file of small extents in DIRECTORY, repeatedly defragments a clone of it, and deletes both at the end. As
    the background load of a condition its rate is recorded, and it does not touch the file under test:

    background = "iodelta policy defrag {target.mount}"
    """
    from iodelta.lab.signals import stop_on_signals
    from iodelta.policy.answers import DefragAnswer
    from iodelta.policy.defrag import keep_defragmenting

    with stop_on_signals() as stop:
        passes = keep_defragmenting(directory, size_of(size, "--size"), stop)
    if format_ == "json":
        _json(DefragAnswer(passes, size_of(size, "--size")))
    else:
        click.echo(f"{passes} passes of {size}", err=True)


@contextlib.contextmanager
def _alone(members: Sequence[str]) -> Iterator[None]:
    """While the members' devices are measured by nobody else. Raises BusyError, RequestError."""
    from iodelta.lab.turns import alone
    from iodelta.machine import LocalMachine
    from iodelta.probe.members import targets_of

    machine = LocalMachine()
    with contextlib.ExitStack() as stack:
        in_turn(lambda: stack.enter_context(alone(machine, targets_of(members, machine), Path.cwd())))
        yield


def _json(document: object) -> None:
    from iodelta.report.documents import written

    sys.stdout.buffer.write(written(document))
