"""``iodelta kernel build``: build kernels from a source tree, print their names, and report what failed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from iodelta.bisect.git import Repository
from iodelta.bisect.kernels import as_it_lies, build_revisions, revisions
from iodelta.cli.files import print_document
from iodelta.cli.progress import Progress
from iodelta.errors import RequestError
from iodelta.experiment.source import text_of
from iodelta.machine import LocalMachine
from iodelta.plural import plural
from iodelta.report.answers import KernelsAnswer
from iodelta.study.words import inert
from iodelta.vm.builds import BuildError, OnStep, Recipe
from iodelta.vm.builds import build as build_kernel
from iodelta.vm.kernels import Kernel

Built = tuple[str, Kernel | BuildError, list[str]]


def kernels_of(
    tree: Path,
    config: Path | None,
    revs: Sequence[str],
    into: Path | None,
    format_: str,
    *,
    compiler: str,
    jobs: int | None,
    again: bool,
) -> None:
    """Build kernels and print the name of each when it is built; report failures at the end. Raises IodeltaError."""
    text = text_of(config, "the kernel configuration") if config else ""
    recipe = Recipe(text, compiler, jobs or len(os.sched_getaffinity(0)))
    if into is not None:
        _check_into(into)
    built, failed = [], []
    with Progress(log=True) as progress:
        making = _built(tree, revs, recipe, progress.step, again, one=into is not None)
        for commit, kernel, lacking in making:
            if isinstance(kernel, BuildError):
                failed.append(kernel)
                continue
            built.append(kernel)
            _say(commit, kernel, lacking, format_)
    if into is not None:
        _put(built, into)
    if format_ == "json":
        print_document(KernelsAnswer((), (), tuple(built)))
    for error in failed[:-1]:
        click.echo(inert(str(error)), err=True)
    if failed:
        raise failed[-1]


def _built(
    tree: Path,
    revs: Sequence[str],
    recipe: Recipe,
    on_step: OnStep,
    again: bool,
    *,
    one: bool,
) -> Iterator[Built]:
    """Yield each kernel as it is built. Raises RequestError for several revisions where only ``one`` is wanted."""
    machine = LocalMachine()
    if not revs:
        source = as_it_lies(machine, str(tree))
        yield source.commit, *build_kernel(source, recipe, on_step, again=again)
        return
    repository = Repository.open(machine, str(tree))
    commits = revisions(repository, revs)
    if one and len(commits) > 1:
        raise RequestError(
            f"--rev names {plural(len(commits), 'commit')}, and one kernel goes there",
            place="--into",
            remedy="omit --into: kernel= takes the names that are printed",
        )
    yield from build_revisions(machine, repository, commits, recipe, on_step, again)


def _say(commit: str, kernel: Kernel, lacking: Sequence[str], format_: str) -> None:
    if not commit:
        click.echo(
            "the tree has uncommitted changes: the next build with uncommitted changes gets the same name",
            err=True,
        )
    for line in lacking:
        click.echo(
            f"{inert(kernel.name)}: does not have {inert(line)}, which --config asks for",
            err=True,
        )
    if format_ == "console":
        click.echo(inert(kernel.name))


def _check_into(into: Path) -> None:
    """Raise RequestError for a directory that contains anything but a built kernel."""
    if into.exists() and not (into / "built.json").exists():
        raise RequestError(
            "exists already, and iodelta did not make it",
            place=str(into),
            remedy="name a directory that does not exist",
        )


def _put(kernels: Sequence[Kernel], into: Path) -> None:
    """Copy the one kernel that was built. Raises RequestError for a directory in use."""
    _check_into(into)
    for kernel in kernels:
        shutil.rmtree(into, ignore_errors=True)
        shutil.copytree(Path(kernel.image).parent, into, symlinks=True)
