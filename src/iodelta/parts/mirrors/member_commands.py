"""``iodelta policy`` on real members: measured one by one, read as a mirror, defragmented under load."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.delivery import deliver
from iodelta.cli.files import check_free, print_document, write
from iodelta.cli.files import force as force_option
from iodelta.cli.progress import say_line
from iodelta.cli.shared_options import in_console_or_json
from iodelta.cli.turn import in_turn, waits
from iodelta.cli.typed import SHOWING, typed
from iodelta.errors import RequestError
from iodelta.parts.mirrors.options import FIVE, FORMAT, workload
from iodelta.parts.mirrors.words import (
    experiment_command,
    numbers,
    once,
    reads_percent,
    size_of,
)
from iodelta.report.stories.story import Detail

if TYPE_CHECKING:
    from iodelta.parts.mirrors.answers import Mirrored
    from iodelta.parts.mirrors.mirror import Request


@click.command("calibrate")
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
    click.get_current_context().with_resource(_alone(members))
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


@click.command("mirror")
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
    from iodelta.parts.mirrors.answers import MirrorAnswer
    from iodelta.parts.mirrors.catalogue import check_policy
    from iodelta.parts.mirrors.mirror import Request
    from iodelta.probe.members import SAMPLE, inspect

    chosen = tuple(
        check_policy(policy) for policy in once(policies, "--policy") or FIVE
    )
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
    seen = chain.from_iterable(run.findings for run in runs)
    severities = {finding.severity for finding in seen}
    sys.exit(4 if "hard" in severities else 0)


def _mirror_each(
    first: Request, cases: Sequence[tuple[int, str]], destroy: tuple[str, ...]
) -> Iterator[Mirrored]:
    """Yield a run of the mirror for every depth and policy, each with its own seed."""
    import msgspec

    from iodelta.cli.progress import Progress
    from iodelta.parts.mirrors.answers import mirrored
    from iodelta.parts.mirrors.mirror import run

    with Progress() as progress:
        for number, (depth, policy) in enumerate(cases):
            progress.step(
                "measuring", number / len(cases), f"{policy} at iodepth {depth}"
            )
            request = msgspec.structs.replace(
                first, policy=policy, iodepth=depth, seed=first.seed + number
            )
            yield mirrored(policy, depth, run(request, destroy=destroy))


@click.command("defrag")
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


@contextlib.contextmanager
def _alone(members: Sequence[str]) -> Iterator[None]:
    """While the members' devices are measured by nobody else. Raises BusyError, RequestError."""
    from iodelta.lab.turns import alone
    from iodelta.machine import LocalMachine
    from iodelta.probe.members import targets_of

    machine = LocalMachine()
    with contextlib.ExitStack() as stack:
        in_turn(
            lambda: stack.enter_context(
                alone(machine, targets_of(members, machine), Path.cwd())
            )
        )
        yield
