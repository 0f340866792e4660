"""The worktree in which commits are built: beside the user's checkout, which it never touches, nor its index."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from iodelta.bisect.git import Repository, said
from iodelta.errors import MeasureError

ROOM = 16 << 20
"""Bytes of free space below which a failure is the disk's, not the commit's."""


class Unbuildable(Exception):  # noqa: N818  # an outcome of an item, which is not an error of the program
    """This item cannot be tested, with the reason; the search goes on without it."""


class Worktree:
    """One detached worktree of a repository, made on first use and used again after a kill."""

    def __init__(self, repository: Repository, path: Path) -> None:
        self._repository = repository
        self.path = path

    def checkout(self, commit: str) -> None:
        """Bring the tree to ``commit``, submodules included; what builds left stays where git ignores it.

        Raises Unbuildable when that commit cannot be checked out, MeasureError when none can.
        """
        if not (self.path / ".git").exists():
            self._make(commit)
        for args in (
            ("checkout", "--force", "--detach", commit, "--"),
            ("clean", "-ffdq"),
        ):
            self._inside(*args)
        if (self.path / ".gitmodules").exists():
            self._inside("submodule", "sync", "--quiet", "--recursive")
            self._inside(
                "submodule", "update", "--init", "--recursive", "--force", "--quiet"
            )

    def apply(self, patch: bytes, *, reverse: bool = False) -> None:
        """Apply a patch to tree and index, three-way. Raises Unbuildable when it does not apply."""
        words = ["apply", "--index", "--3way", *(["--reverse"] if reverse else []), "-"]
        done = self._repository.git(*words, cwd=str(self.path), stdin=patch)
        if done.returncode:
            unmerged = [
                line[2:]
                for line in done.stderr.decode(errors="replace").splitlines()
                if line.startswith("U ")
            ]
            raise Unbuildable(
                f"does not apply: {f'conflicts in {unmerged[0]}' if unmerged else said(done)}"
            )

    def remove(self) -> None:
        """Take the worktree away, and the repository's note of it."""
        if self.path.exists():
            self._repository.git(
                "worktree", "remove", "--force", "--force", str(self.path)
            )
            shutil.rmtree(self.path, ignore_errors=True)
        self._repository.git("worktree", "prune")

    def _make(self, commit: str) -> None:
        shutil.rmtree(self.path, ignore_errors=True)  # a kill while it was made
        self._repository.git("worktree", "prune")
        done = self._repository.git(
            "worktree",
            "add",
            "--force",
            "--detach",
            "--no-checkout",
            str(self.path),
            commit,
        )
        if done.returncode:
            raise MeasureError(
                f"cannot make a worktree: {said(done)}",
                place=str(self.path),
                remedy="the repository's .git directory and this place must be writable, with room for a checkout",
            )

    def _inside(self, *args: str) -> None:
        done = self._repository.git(*args, cwd=str(self.path))
        if not done.returncode:
            return
        lock = self._repository.git(
            "rev-parse", "--git-path", "index.lock", cwd=str(self.path)
        ).text.strip()
        if (
            lock and Path(self.path, lock).exists()
        ):  # a kill during a checkout; the worktree is ours alone
            Path(self.path, lock).unlink()
            done = self._repository.git(*args, cwd=str(self.path))
            if not done.returncode:
                return
        check_room(self.path)
        raise Unbuildable(f"git {args[0]}: {said(done)}")


def check_room(path: Path, text: str = "") -> None:
    """Raises MeasureError when the disk is full, by itself or by what a command said: no commit is to blame for it."""
    place = next(parent for parent in (path, *path.parents) if parent.exists())
    room = os.statvfs(place)
    if (
        room.f_bavail * room.f_frsize < ROOM
        or "No space left on device" in text
        or "Disk quota exceeded" in text
    ):
        raise MeasureError(
            "the disk is full",
            place=str(path),
            remedy="free some space, then give the folder again to continue; no commit was skipped for it",
        )


def keep_artifacts(tree: Path, names: Sequence[str], place: Path) -> None:
    """Copy what a build left to ``place``, whole or not at all. Raises Unbuildable when it is missing, MeasureError."""
    draft = place.with_name(f".{place.name}")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        for name in names:
            source, target = tree / name, draft / name
            if not source.resolve().is_relative_to(tree.resolve()):
                raise Unbuildable(f"the artifact {name} is outside the tree")
            if not source.exists():
                raise Unbuildable(f"the build left no {name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copy2(source, target)
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
    except OSError as error:
        check_room(place)
        raise MeasureError(
            f"cannot store the build result: {error}", place=str(place)
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
