"""``iodelta kernel``: kernels for virtual machines, and the path's history through a row of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iodelta.cli.files import print_document
from iodelta.cli.groups import Group
from iodelta.cli.progress import say_line
from iodelta.cli.shared_options import with_anatomy
from iodelta.errors import MeasureError, RequestError
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.vm.kernels import Kernel
    from iodelta.vm.packages import Package

_EXAMPLES = """
\b
Examples:
  iodelta kernel list
  iodelta kernel fetch 6.1 6.12
  iodelta kernel build linux --rev v6.18 --rev v6.19
  iodelta kernel sweep 6.12.100..6.12.117 -- --rw=randread --bs=4k --direct=1 --ioengine=io_uring
"""
_FORMAT = click.option(
    "--format", "format_", type=click.Choice(["console", "json"]), default="console"
)


@click.group("kernel", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """List, fetch and build kernels that a virtual machine can boot as variants, and follow an I/O's path through them."""


@command.command("list", epilog="\b\nExamples:\n  iodelta kernel list\n")
@_FORMAT
def list_(format_: str) -> None:
    """List the kernels that were fetched or built, and those that the system's package manager offers."""
    from iodelta.vm import kernels, packages

    here, built = tuple(kernels.here()), tuple(kernels.built())
    try:
        available, reason = tuple(packages.available()), ""
    except MeasureError as error:
        available, reason = (), str(error)
    if format_ == "json":
        _json(here, available, built)
        return
    for kernel in here:
        click.echo(
            f"here       {inert(kernel.release):<34} {inert(kernel.package or kernel.image)}"
        )
    for kernel in built:
        click.echo(f"built      {inert(kernel.name):<34} {inert(kernel.image)}")
    known = {kernel.release for kernel in here}
    for package in packages.for_guests(available):
        if package.release not in known:
            click.echo(
                f"available  {inert(package.release):<34} {inert(package.package)} {inert(package.version)}"
            )
    if said := reason or packages.left_out(available):
        say_line(said)


@command.command(
    "fetch",
    epilog="\b\nExamples:\n  iodelta kernel fetch 6.12\n  iodelta kernel fetch 6.1.170..6.1.180\n",
)
@click.argument("names", nargs=-1, required=True)
@_FORMAT
def fetch(names: tuple[str, ...], format_: str) -> None:
    """Download kernels from the system's package manager: releases, versions or their beginnings, or FIRST..LAST.

    A package is verified by the package list's checksum and unpacked into ~/.cache/iodelta; nothing is installed. A
    version chooses the small kernels made for guests (Debian: cloud). Get another one, as of rt, by its whole release.
    """
    from iodelta.vm import packages

    available = packages.available()
    wanted = []
    for name in names:
        ends = _ends(name)
        wanted += (
            packages.between(*ends, available)
            if ends
            else [packages.choose(name, available)]
        )
    kernels = []
    for package in dict.fromkeys(wanted):
        kernel = packages.fetch(package)
        kernels.append(kernel)
        if format_ == "console":
            click.echo(
                f"{inert(kernel.release)}  ({inert(package.package)} {inert(package.version)})"
            )
    if format_ == "json":
        _json(tuple(kernels), ())


@command.command(
    "build",
    epilog="""\b
Examples:
  iodelta kernel build linux
  iodelta kernel build linux --rev v6.18 --rev v6.19 --config debug.config
  iodelta kernel build linux --rev v6.18~8..v6.18
""",
)
@click.argument("tree", type=click.Path(path_type=Path))
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Lines of a kernel configuration, added to the small one for guests; they take precedence.",
)
@click.option(
    "--rev",
    "revs",
    multiple=True,
    metavar="REV|A..B",
    help="Build this commit, or A, B and all between (default: the current state of TREE). Repeatable.",
)
@click.option("--compiler", default="gcc", show_default=True, help="The C compiler.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="How many compilers run at once (default: the number of CPUs).",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also put the kernel there: for bisect --artifact.",
)
@click.option("--again", is_flag=True, help="Build even if the cache has the kernel.")
@_FORMAT
def build(tree: Path, config: Path | None, revs: tuple[str, ...], into: Path | None, format_: str,
          **options: Any) -> None:  # fmt: skip
    """Build kernels for guests from a source tree of Linux, and print the name of each.

    Use that name after kernel= in `run`, `bisect` and `scenario`. The configuration is small: CPUs and NUMA nodes,
    null_blk, ublk, io_uring, AIO, a serial console, no modules. The files of TREE stay as they are: objects and kernels
    are kept in ~/.cache/iodelta, by commit, configuration and compiler. With --rev, git notes a worktree in TREE/.git
    until the build ends. Another commit compiles only what it changes.

    Exit codes: 0 success, 2 a kernel does not build: iodelta prints the errors and the last lines of make's log.
    """
    from iodelta.cli.building import kernels_of

    kernels_of(tree, config, revs, into, format_, **options)


@command.command(
    "sweep",
    epilog="\b\nExamples:\n  iodelta kernel sweep 6.12.100..6.12.117 -- --rw=randread --bs=4k --direct=1\n",
)
@click.argument("row", metavar="FIRST..LAST")
@click.argument("fio", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    metavar="NAME:KNOB=VALUE,...",
    help="A condition kept constant, as in `iodelta run`.",
)
@click.option(
    "--target", default="", help="What the guest measures (default: null_blk)."
)
@with_anatomy(
    "Also count locked instructions, fences and the memory that an I/O touches; sharing: moved cache lines instead."
)
@click.option(
    "--folder",
    "place",
    type=click.Path(path_type=Path),
    help="Name of the experiment folder to create.",
)
@click.option(
    "--format", "format_", type=click.Choice(["console", "json"]), default="console"
)
def sweep(
    row: str,
    fio: tuple[str, ...],
    conditions: tuple[str, ...],
    target: str,
    anatomy: str | None,
    place: Path | None,
    format_: str,
) -> None:
    """Count the instructions of an I/O under every fetched kernel from FIRST to LAST, and compare each with the one
    before."""
    from iodelta.cli.counting import begin
    from iodelta.experiment import parse, shorthand
    from iodelta.vm import kernels

    ends = _ends(row)
    if ends is None:
        raise RequestError(
            "give the range as FIRST..LAST",
            place=row,
            remedy="as in 6.12.100..6.12.117",
        )
    members = [
        kernel
        for kernel in kernels.here()
        if kernel.package
        and kernels.within(kernels.order(kernel.package), *map(kernels.order, ends))
    ]
    if len(members) < 2:
        raise _too_few(len(members), row, target, anatomy or "")
    text = shorthand(
        variants=[f"{_short(kernel)}:kernel={kernel.release}" for kernel in members],
        fio=fio,
        conditions=conditions,
        top={
            "question": f"How long was the path from {ends[0]} to {ends[1]}?",
            "machine": "vm",
            "clock": "instructions",
            "anatomy": anatomy,
        },
        target={"path": target},
    )
    path = place or Path(time.strftime("iodelta-sweep-%Y%m%d-%H%M%S"))
    begin(
        parse(text, "command line", strict=True, same=True),
        text,
        path,
        format_,
        row=True,
    )


def _too_few(count: int, row: str, target: str, anatomy: str) -> MeasureError:
    """Return the message if a row of kernels has fewer than two, with everything else that its guests lack here."""
    from iodelta.path.plan import check_programs

    said = f"{count} of the kernels {row} are here; a sweep needs two"
    remedy = f"`iodelta kernel fetch {row}` gets those that the package manager has"
    try:
        check_programs(target, anatomy)
    except MeasureError as error:
        said, remedy = f"{said}; {error.what}", f"{remedy}; {error.remedy}"
    return MeasureError(said, place="iodelta kernel sweep", remedy=remedy)


def _ends(text: str) -> tuple[str, str] | None:
    first, dots, last = text.partition("..")
    if dots and first and last:
        return first, last
    return None


def _short(kernel: Kernel) -> str:
    """6.12.117-1 of a package's version: the name of its variant."""
    return kernel.package.partition(" ")[2].partition("~")[0]


def _json(
    here: tuple[Kernel, ...],
    available: tuple[Package, ...],
    built: tuple[Kernel, ...] = (),
) -> None:
    from iodelta.report.answers import KernelsAnswer

    print_document(KernelsAnswer(here, available, built))
