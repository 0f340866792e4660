"""The worktree in which commits are built. The user's checkout and index are never changed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from iodelta.bisect.git import Repository, said
from iodelta.errors import MeasureError

ROOM = 16 << 20
"""Bytes of free space below which a failure is blamed on the disk, not on the commit."""


class Unbuildable(Exception):  # noqa: N818  # an outcome of an item, which is not an error of the program
    """This item cannot be tested, with the reason; the search goes on without it."""


class Worktree:
    """A detached worktree of a repository, created on first use and reused after a kill."""

    def __init__(self, repository: Repository, path: Path) -> None:
        self._repository = repository
        self.path = path

    def checkout(self, commit: str) -> None:
        """Bring the tree to ``commit``, including submodules. Build products that git ignores stay.

        Raises Unbuildable if that commit cannot be checked out, MeasureError if none can.
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
            reason = said(done)
            # git lists each file with conflicts as "U FILE".
            conflict = re.search(r"^U (.*)", done.stderr.decode(errors="replace"), re.M)
            if conflict:
                reason = f"conflicts in {conflict[1]}"
            raise Unbuildable(f"does not apply: {reason}")

    def remove(self) -> None:
        """Remove the worktree, and its entry in the repository."""
        if self.path.exists():
            self._repository.git(
                "worktree", "remove", "--force", "--force", str(self.path)
            )
            shutil.rmtree(self.path, ignore_errors=True)
        self._repository.git("worktree", "prune")

    def _make(self, commit: str) -> None:
        # A kill during its creation may have left a part of it.
        shutil.rmtree(self.path, ignore_errors=True)
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
        # A kill during a checkout leaves a lock. Nothing else uses this worktree.
        if lock and Path(self.path, lock).exists():
            Path(self.path, lock).unlink()
            done = self._repository.git(*args, cwd=str(self.path))
            if not done.returncode:
                return
        check_room(self.path)
        raise Unbuildable(f"git {args[0]}: {said(done)}")


def check_room(path: Path, text: str = "") -> None:
    """Raise MeasureError if the disk is full, or a command's output says so: that is not the fault of a commit."""
    place = next(parent for parent in (path, *path.parents) if parent.exists())
    room = os.statvfs(place)
    # strerror(3) of ENOSPC and EDQUOT.
    said_full = re.search("No space left on device|Disk quota exceeded", text)
    if said_full or room.f_bavail * room.f_frsize < ROOM:
        raise MeasureError(
            "the disk is full",
            place=str(path),
            remedy="free some space, then give the folder again to continue; no commit was skipped for it",
        )


def keep_artifacts(tree: Path, names: Sequence[str], place: Path) -> None:
    """Copy build products to ``place``, all or nothing. Raises Unbuildable if one is missing, MeasureError."""
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
