"""Build kernels: of revisions in a worktree, or of a tree as it is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence

from iodelta.bisect.git import Repository
from iodelta.bisect.tree import Unbuildable, Worktree
from iodelta.errors import RequestError
from iodelta.machine import Machine
from iodelta.tools.cache import cache, held
from iodelta.vm.builds import BuildError, OnStep, Recipe, Source, build
from iodelta.vm.kernels import Kernel

TREES = "kernel-trees"
"""Directory of worktrees in the cache, one for each repository: successive revisions recompile only what differs."""


def as_it_lies(machine: Machine, tree: str) -> Source:
    """Return a tree with its present content, and its commit if there are no other changes. Raises RequestError."""
    place = os.path.realpath(tree)
    try:
        repository = Repository.open(machine, place)
    except RequestError:
        return Source(place)
    if os.path.realpath(repository.path) != place or repository.is_dirty():
        return Source(place)
    return Source(place, repository.resolve("HEAD", tree))


def revisions(repository: Repository, asked: Sequence[str]) -> tuple[str, ...]:
    """Return the commits of revisions and ranges: of ``A..B`` both ends, and those between along first parents.

    Raises RequestError.
    """
    commits: list[str] = []
    for text in asked:
        first, dots, last = text.partition("..")
        if not dots:
            commits.append(repository.resolve(text, "--rev"))
            continue
        ends = [repository.resolve(end or "HEAD", "--rev") for end in (first, last)]
        commits += repository.line(*ends).items
    return tuple(dict.fromkeys(commits))


def build_revisions(
    machine: Machine,
    repository: Repository,
    commits: Sequence[str],
    recipe: Recipe,
    on_step: OnStep,
    again: bool,
) -> Iterator[tuple[str, Kernel | BuildError, list[str]]]:
    """Build each commit in a worktree. Yields the commit, its kernel or the error, and the options that it lacks.

    Raises MeasureError if no commit can be built.
    """
    key = hashlib.sha256(repository.path.encode()).hexdigest()[:16]
    place = cache(TREES, key)
    place.mkdir(parents=True, exist_ok=True)
    tree = Worktree(repository, place / "tree")
    with held(place, lambda text: on_step(text, None)):
        for number, commit in enumerate(commits, 1):

            def step(text: str, share: float | None, number: int = number) -> None:
                # Of several kernels each step says which one it is of.
                which = (
                    f"kernel {number} of {len(commits)}: " if len(commits) > 1 else ""
                )
                on_step(f"{which}{text}", share)

            def reach(commit: str = commit) -> None:
                try:
                    tree.checkout(commit)
                except Unbuildable as error:
                    raise BuildError(str(error), place=commit[:12]) from error

            try:
                source = Source(str(tree.path), commit)
                yield commit, *build(source, recipe, step, reach=reach, again=again)
            except BuildError as error:
                yield commit, error, []
