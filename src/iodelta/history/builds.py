"""Builds of commits for nights and their confirmations, each kept once under its hash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from iodelta.bisect.commands import Stopped, carry_out
from iodelta.bisect.git import Repository
from iodelta.bisect.tree import Unbuildable, Worktree, keep_artifacts
from iodelta.errors import MeasureError
from iodelta.experiment.build import Build
from iodelta.lab.folder import room_for
from iodelta.machine import Machine


def kept_build(
    machine: Machine,
    build: Build,
    commit: str,
    place: Path,
    *,
    stop: Callable[[], bool],
    say: Callable[[str], None],
) -> Path:
    """Where the artifacts of a commit are, built when they are not there yet. The checkout of ``build.repo`` stays as
    it is. Raises RequestError, MeasureError."""
    kept = place.absolute() / "built" / commit
    if kept.is_dir():
        return kept
    repository = Repository.open(machine, build.repo)
    tree = Worktree(repository, place.absolute() / "tree")
    output = place.absolute() / "output"
    say(f"building {repository.oneline(repository.resolve(commit, '[build] repo'))}")
    try:
        output.mkdir(parents=True, exist_ok=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        tree.checkout(commit)
        carry_out(
            machine,
            build.command,
            what="the build",
            timeout=build.timeout,
            output=output / commit[:12],
            cwd=str(tree.path),
            env={"IODELTA_COMMIT": commit, "IODELTA_TREE": str(tree.path)},
            stop=stop,
        )
        keep_artifacts(tree.path, build.artifacts, kept)
    except OSError as error:
        raise MeasureError(
            f"cannot store the build: {error.strerror}",
            place=str(place),
            remedy=f"{room_for(error)}, then repeat the command",
        ) from error
    except Unbuildable as error:
        raise MeasureError(
            f"cannot build: {error}",
            place=commit[:12],
            remedy=f"{output} contains the output of the build",
        ) from error
    except Stopped as error:
        raise MeasureError(
            "stopped while it was building", place=commit[:12], remedy="call it again"
        ) from error
    finally:
        tree.remove()
    return kept
