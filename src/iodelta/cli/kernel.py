"""``iodelta kernel``: kernels for virtual machines, and the path's history through a row of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.commands import Asked, declared, fresh, group
from iodelta.cli.progress import Progress, say_line
from iodelta.errors import MeasureError, RequestError
from iodelta.plural import plural
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.vm.builds import BuildError, OnStep, Recipe
    from iodelta.vm.kernels import Kernel

command = group(
    "kernel",
    "List, fetch and build kernels that a virtual machine can boot as variants, and follow an I/O's path through them.",
    """
  iodelta kernel list
  iodelta kernel fetch 6.1 6.12
  iodelta kernel build linux --rev v6.18 --rev v6.19
  iodelta kernel sweep 6.12.100..6.12.117 -- --rw=randread --bs=4k --direct=1 --ioengine=io_uring
""",
)


@declared("list", "", "--format", "  iodelta kernel list", into=command)
def list_(asked: Asked) -> None:
    """List the kernels that were fetched or built, and those that the system's package manager offers."""
    from iodelta.report.answers import KernelsAnswer
    from iodelta.vm import kernels, packages

    here, built = tuple(kernels.here()), tuple(kernels.built())
    try:
        available, reason = tuple(packages.available()), ""
    except MeasureError as error:
        available, reason = (), str(error)
    known = {kernel.release for kernel in here}
    rows = [("here", one.release, one.package or one.image) for one in here]
    rows += [("built", one.name, one.image) for one in built]
    rows += [
        ("available", one.release, f"{one.package} {one.version}")
        for one in packages.for_guests(available)
        if one.release not in known
    ]
    asked.answer(
        KernelsAnswer(here, available, built),
        (f"{state:<9}  {inert(name):<34} {inert(what)}" for state, name, what in rows),
    )
    said = reason or packages.left_out(available)
    if said and asked.format == "console":
        say_line(said)


@declared(
    "fetch",
    "names...",
    "--format",
    "  iodelta kernel fetch 6.12\n  iodelta kernel fetch 6.1.170..6.1.180",
    into=command,
)
def fetch(asked: Asked) -> None:
    """Download kernels from the system's package manager: releases, versions or their beginnings, or FIRST..LAST.

    A package is verified by the package list's checksum and unpacked into ~/.cache/iodelta; nothing is installed. A
    version chooses the small kernels made for guests (Debian: cloud). Get another one, as of rt, by its whole release.
    """
    from iodelta.report.answers import KernelsAnswer
    from iodelta.vm import packages

    available = packages.available()
    wanted = []
    for name in asked.names:
        ends = _ends(name)
        wanted += (
            packages.between(*ends, available)
            if ends
            else [packages.choose(name, available)]
        )
    kernels = []
    for package in dict.fromkeys(wanted):
        kernels.append(packages.fetch(package))
        if asked.format == "console":
            what = f"({inert(package.package)} {inert(package.version)})"
            click.echo(f"{inert(kernels[-1].release)}  {what}")
    asked.answer(KernelsAnswer(tuple(kernels), (), ()), ())


@declared(
    "build",
    "tree",
    """
--config FILE         Lines of a kernel configuration, added to the small one for guests; they take precedence.
--rev REV|A..B*       Build this commit, or A, B and all between (default: the current state of TREE). Repeatable.
--compiler NAME [gcc]  The C compiler.
--jobs NUMBER:1..     How many compilers run at once (default: the number of CPUs).
--into DIR            Also put the kernel there: for bisect --artifact.
--again               Build even if the cache has the kernel.
--format
""",
    """
  iodelta kernel build linux
  iodelta kernel build linux --rev v6.18 --rev v6.19 --config debug.config
  iodelta kernel build linux --rev v6.18~8..v6.18
""",
    into=command,
)
def build(asked: Asked) -> None:
    """Build kernels for guests from a source tree of Linux, and print the name of each.

    Use that name after kernel= in `run`, `bisect` and `scenario`. The configuration is small: CPUs and NUMA nodes,
    null_blk, ublk, io_uring, AIO, a serial console, no modules. The files of TREE stay as they are: objects and kernels
    are kept in ~/.cache/iodelta, by commit, configuration and compiler. With --rev, git notes a worktree in TREE/.git
    until the build ends. Another commit compiles only what it changes.

    Exit codes: 0 success, 2 a kernel does not build: iodelta prints the errors and the last lines of make's log.
    """
    from iodelta.experiment.source import text_of
    from iodelta.report.answers import KernelsAnswer
    from iodelta.vm.builds import BuildError, Recipe

    into = asked.into
    text = text_of(asked.config, "the kernel configuration") if asked.config else ""
    jobs = asked.jobs or len(os.sched_getaffinity(0))
    _check_into(into)
    built, failed = [], []
    with Progress(log=True) as progress:
        for commit, kernel, lacking in _built(
            asked, Recipe(text, asked.compiler, jobs), progress.step
        ):
            if isinstance(kernel, BuildError):
                failed.append(kernel)
                continue
            built.append(kernel)
            if not commit:
                say_line(
                    "the tree has uncommitted changes: the next build with uncommitted changes gets the same name"
                )
            for line in lacking:
                say_line(
                    f"{kernel.name}: does not have {line}, which --config asks for"
                )
            if asked.format == "console":
                click.echo(inert(kernel.name))
    _check_into(into)
    for kernel in built if into is not None else ():
        shutil.rmtree(into, ignore_errors=True)
        shutil.copytree(Path(kernel.image).parent, into, symlinks=True)
    asked.answer(KernelsAnswer((), (), tuple(built)), ())
    for error in failed[:-1]:
        say_line(str(error))
    if failed:
        raise failed[-1]


def _built(
    asked: Asked, recipe: Recipe, step: OnStep
) -> Iterator[tuple[str, Kernel | BuildError, list[str]]]:
    """Yield each kernel as it is built. Raises RequestError for several revisions where only one can be kept."""
    from iodelta.bisect.git import Repository
    from iodelta.bisect.kernels import as_it_lies, build_revisions, revisions
    from iodelta.machine import LocalMachine
    from iodelta.vm.builds import build

    machine, tree = LocalMachine(), str(asked.tree)
    if not asked.rev:
        source = as_it_lies(machine, tree)
        yield source.commit, *build(source, recipe, step, again=asked.again)
        return
    repository = Repository.open(machine, tree)
    commits = revisions(repository, asked.rev)
    if asked.into is not None and len(commits) > 1:
        raise RequestError(
            f"--rev names {plural(len(commits), 'commit')}, and one kernel goes there",
            place="--into",
            remedy="omit --into: kernel= takes the names that are printed",
        )
    yield from build_revisions(machine, repository, commits, recipe, step, asked.again)


def _check_into(into: Path | None) -> None:
    """Raise RequestError for a directory that contains anything but a built kernel."""
    if into is not None and into.exists() and not (into / "built.json").exists():
        raise RequestError(
            "exists already, and iodelta did not make it",
            place=str(into),
            remedy="name a directory that does not exist",
        )


@declared(
    "sweep",
    "row [fio...]",
    """
--condition NAME:KNOB=VALUE,...*
                      A condition kept constant, as in `iodelta run`.
--target PATH         What the guest measures (default: null_blk).
--anatomy path|sharing?
                      Also count locked instructions, fences and the memory that an I/O touches; sharing: moved cache
                      lines instead.
--folder
--format
""",
    "  iodelta kernel sweep 6.12.100..6.12.117 -- --rw=randread --bs=4k --direct=1",
    metavar="FIRST..LAST",
    into=command,
)
def sweep(asked: Asked) -> None:
    """Count the instructions of an I/O under every fetched kernel from FIRST to LAST, and compare each with the one
    before."""
    from iodelta.api.measuring import Question
    from iodelta.cli.counting import begin
    from iodelta.experiment import parse
    from iodelta.experiment.shorthand import shorthand
    from iodelta.path.plan import check_programs
    from iodelta.vm import kernels

    ends = _ends(asked.row)
    if ends is None:
        raise RequestError(
            "give the range as FIRST..LAST",
            place=asked.row,
            remedy="as in 6.12.100..6.12.117",
        )
    members = [
        kernel
        for kernel in kernels.here()
        if kernel.package
        and kernels.within(kernels.order(kernel.package), *map(kernels.order, ends))
    ]
    if len(members) < 2:
        said = f"{len(members)} of the kernels {asked.row} are here; a sweep needs two"
        remedy = f"`iodelta kernel fetch {asked.row}` gets those that the package manager has"
        try:  # with everything else that its guests lack here
            check_programs(asked.target, asked.anatomy or "")
        except MeasureError as error:
            said, remedy = f"{said}; {error.what}", f"{remedy}; {error.remedy}"
        raise MeasureError(said, place="iodelta kernel sweep", remedy=remedy)
    # 6.12.117-1 of a package's version names its variant.
    versions = (one.package.partition(" ")[2].partition("~")[0] for one in members)
    text = shorthand(
        variants=[
            f"{version}:kernel={kernel.release}"
            for version, kernel in zip(versions, members, strict=True)
        ],
        fio=asked.fio,
        conditions=asked.condition,
        top={
            "question": f"How long was the path from {ends[0]} to {ends[1]}?",
            "machine": "vm",
            "clock": "instructions",
            "anatomy": asked.anatomy,
        },
        target={"path": asked.target},
    )
    experiment = parse(text, "command line", strict=True, same=True)
    place = asked.folder or fresh("iodelta-sweep")
    begin(Question(text, experiment), place, asked, row=True)


def _ends(text: str) -> tuple[str, str] | None:
    first, dots, last = text.partition("..")
    return (first, last) if dots and first and last else None
