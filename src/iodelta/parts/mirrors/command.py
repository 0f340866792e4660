"""``iodelta policy``: read policies of mirrors listed, explained, simulated and run for real."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from iodelta.cli.delivery import deliver
from iodelta.cli.groups import Group
from iodelta.cli.typed import typed
from iodelta.errors import RequestError
from iodelta.parts.mirrors.member_commands import calibrate, defrag, mirror
from iodelta.parts.mirrors.options import BS, FIVE, FORMAT, JOBS, workload
from iodelta.parts.mirrors.words import (
    numbers,
    once,
    rates_per_second,
    reads_percent,
    size_of,
)


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
    from iodelta.parts.mirrors.answers import SimulationAnswer
    from iodelta.parts.mirrors.calibrate import load as load_calibration
    from iodelta.parts.mirrors.catalogue import check_policy
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
    _check_load(arrivals)
    measured = load_calibration(calibration) if calibration else None
    models = (
        tuple(member.member for member in measured.members)
        if measured
        else members_of(members)
    )
    asked = Asked(
        members=models,
        policies=tuple(
            check_policy(policy) for policy in once(policies, "--policy") or FIVE
        ),
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
        answer = SimulationAnswer(
            predictions, asked.seeds, closure, measured.held_out, paths, typed()
        )
    else:
        answer = SimulationAnswer(predictions, asked.seeds, None, (), members, typed())
    deliver(answer, tuple, format_)


def _check_load(arrivals: str | None) -> None:
    """Raises RequestError if both a rate and a depth were given."""
    depth_given = (
        click.get_current_context().get_parameter_source("iodepths")
        is not ParameterSource.DEFAULT
    )
    if arrivals and depth_given:
        raise RequestError(
            "an open load has no depth: requests arrive regardless of how many are in flight",
            place="command line",
            remedy="--rate or --iodepth",
        )


for subcommand in (calibrate, mirror, defrag):
    command.add_command(subcommand)
