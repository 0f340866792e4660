"""A git repository, read by git itself: revisions, the line between two of them, the commits that a merge brought in.

Nothing here writes to the repository's checkout, index or refs. Hooks are disabled, and variables of the caller that
redirect git (``GIT_DIR`` and the like, as inside a hook) are removed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain

import msgspec

from iodelta.bisect.model import Line
from iodelta.errors import MeasureError, RequestError
from iodelta.machine import Completed, Machine
from iodelta.stats.bisection import even_odds

FAVOUR = 3.0
"""Prior weight of a commit that touches the given paths."""

_SCRUBBED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE",
             "GIT_PREFIX", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_EXTERNAL_DIFF")  # fmt: skip
_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "advice.detachedHead=false", "gc.auto=0",
             "color.ui=false", "core.quotePath=true", "submodule.recurse=false")  # fmt: skip
_PATIENCE = 1800.0


class Commit(msgspec.Struct, frozen=True):
    """A commit as reports show it."""

    sha: str
    """Full hash."""
    subject: str
    """First line of its message."""
    author: str
    """Name of the author."""
    email: str
    """The author's e-mail address."""
    date: str
    """Date of authorship, as ISO 8601 in git's form."""
    parents: tuple[str, ...]
    """Full hashes of its parents; empty for a first commit."""


class Repository:
    """A repository: the top of a checkout, a bare one, or a worktree of another."""

    def __init__(self, machine: Machine, path: str) -> None:
        self._machine = machine
        self.path = path
        self._known: dict[str, Commit] = {}

    @classmethod
    def open(cls, machine: Machine, path: str) -> Repository:
        """Return the repository that contains ``path``. Raises RequestError if there is none, or git refuses it."""
        repository = cls(machine, os.path.abspath(path))
        done = repository.git("rev-parse", "--show-toplevel")
        if done.returncode:
            done = repository.git("rev-parse", "--absolute-git-dir")
        if done.returncode:
            raise RequestError(
                said(done) or "not a git repository",
                place=path,
                remedy="name a directory in a git repository",
            )
        return cls(machine, done.text.rstrip("\n"))

    def git(
        self,
        *args: str,
        cwd: str | None = None,
        stdin: bytes = b"",
        timeout: float = _PATIENCE,
    ) -> Completed:
        """git with these arguments. Raises MachineError when it cannot be started."""
        scrub = list(chain.from_iterable(("-u", name) for name in _SCRUBBED))
        settings = list(chain.from_iterable(("-c", setting) for setting in _SETTINGS))
        return self._machine.run(
            ["env", *scrub, "git", "-C", cwd or self.path, *settings, *args],
            env={
                "LC_ALL": "C",
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_OPTIONAL_LOCKS": "0",
                "GIT_PAGER": "cat",
            },
            stdin=stdin,
            timeout=timeout,
        )

    def resolve(self, revision: str, place: str) -> str:
        """Return the full hash of a commit. Raises RequestError."""
        done = self.git(
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{revision}^{{commit}}",
        )
        if done.returncode:
            shallow = ""
            if self.is_shallow():
                shallow = (
                    " (the clone is shallow: `git fetch --unshallow` brings the rest)"
                )
            raise RequestError(
                f"{revision!r} is not a commit of this repository{shallow}",
                place=place,
                remedy="`git log --oneline` shows what there is; `git fetch` brings what is missing",
            )
        return done.text.strip()

    def is_shallow(self) -> bool:
        """Return whether history is cut off somewhere."""
        return self.git("rev-parse", "--is-shallow-repository").text.strip() == "true"

    def line(self, good: str, bad: str, paths: Sequence[str] = ()) -> Line:
        """Return the first-parent line from ``good`` to ``bad``. Raises RequestError when there is none."""
        if good == bad:
            raise RequestError("good and bad are the same commit", place=self.path)
        done = self.git("merge-base", "--is-ancestor", good, bad)
        # git exits with 1 both if it is not an ancestor and, with an error, if it cannot read the history.
        unreadable = done.returncode == 1 and b"error: " in done.stderr
        if unreadable or done.returncode not in (0, 1):
            raise self._broken(done)
        if done.returncode:
            raise RequestError(self._not_an_ancestor(good, bad))
        items = (good, *self._between(good, bad))
        return Line(items, self._prior(items, good, bad, paths))

    def inside(self, merge: str, paths: Sequence[str] = ()) -> list[Line]:
        """For a merge: the line from where each branch left to what it brought in. Raises RequestError."""
        lines = []
        first, *others = self.commit(merge).parents
        for other in others:
            done = self.git("merge-base", first, other)
            # It prints nothing for unrelated histories.
            base = done.text.strip()
            if base and base != other:
                items = (base, *self._between(base, other))
                lines.append(Line(items, self._prior(items, base, other, paths), merge))
        return lines

    def commit(self, sha: str) -> Commit:
        """Return what is known of a commit. Raises RequestError."""
        if sha not in self._known:
            done = self.git(
                "log",
                "-1",
                "--format=%s%x00%an%x00%ae%x00%ad%x00%P",
                "--date=iso",
                sha,
                "--",
            )
            parts = done.text.rstrip("\n").split("\0")
            if done.returncode or len(parts) != 5:
                raise self._broken(done)
            subject, author, email, date, parents = parts
            self._known[sha] = Commit(
                sha, subject, author, email, date, tuple(parents.split())
            )
        return self._known[sha]

    def oneline(self, sha: str) -> str:
        """As ``git log -1 --oneline`` with a hash of 12 digits, as kernel lists want it."""
        return f'{sha[:12]} ("{self.commit(sha).subject}")'

    def patch(self, sha: str) -> bytes:
        """Return what a commit changes, against its first parent, so that it applies anywhere. Raises MeasureError."""
        if not self.commit(sha).parents:
            raise RequestError(
                "the first commit of a repository is not a patch", place=sha[:12]
            )
        return self.difference(f"{sha}^1", sha)

    def difference(self, parent: str, commit: str) -> bytes:
        """Return what changes from one commit to the other, as a patch. Raises RequestError."""
        done = self.git(
            "diff-tree",
            "-p",
            "--binary",
            "--full-index",
            "--no-ext-diff",
            parent,
            commit,
            "--",
        )
        if done.returncode:
            raise self._broken(done)
        return done.stdout

    def is_dirty(self) -> bool:
        """Return whether the user's checkout has uncommitted changes: they are not part of what is measured."""
        done = self.git("status", "--porcelain", "--untracked-files=no")
        return not done.returncode and bool(done.text.strip())

    def _between(self, good: str, bad: str) -> list[str]:
        done = self.git(
            "rev-list", "--first-parent", "--reverse", bad, f"^{good}", "--"
        )
        if done.returncode:
            raise self._broken(done)
        return done.text.split()

    def _prior(
        self, items: Sequence[str], good: str, bad: str, paths: Sequence[str]
    ) -> tuple[float, ...]:
        if not paths:
            return (1.0,) * (len(items) - 1)
        done = self.git("rev-list", "--first-parent", bad, f"^{good}", "--", *paths)
        # With --first-parent a merge is compared with that parent alone: it touches what it brings in.
        if done.returncode:
            raise self._broken(done)
        touching = set(done.text.split())
        return tuple(
            even_odds(len(items), [n for n, item in enumerate(items) if item in touching], FAVOUR).tolist()
        )  # fmt: skip

    def _not_an_ancestor(self, good: str, bad: str) -> str:
        """Explains why no line of commits leads from good to bad, and what to do."""
        short_good, short_bad = good[:12], bad[:12]
        if self.is_shallow():
            return (
                f"no way from {short_good} to {short_bad} is known here: the clone is shallow. "
                "`git fetch --unshallow` brings the rest"
            )
        if not self.git("merge-base", "--is-ancestor", bad, good).returncode:
            return f"bad ({short_bad}) is older than good ({short_good}): exchange --good and --bad"
        what = f"good ({short_good}) is not an ancestor of bad ({short_bad})"
        base = self.git("merge-base", good, bad).text.strip()
        if not base:
            return f"{what}, and they have no common history"
        return f"{what}: they parted at {base[:12]}; ask with that as --good"

    def _broken(self, done: Completed) -> MeasureError:
        return MeasureError(
            f"git cannot read the history: {said(done)}",
            place=self.path,
            remedy="`git fsck` says what is missing; `git fetch` or `git fetch --unshallow` may bring it back",
        )


def said(done: Completed) -> str:
    """Return the first error of git's output, else its last line; empty if it printed nothing."""
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    errors = [line for line in lines if line.startswith(("error:", "fatal:"))]
    return next(iter(errors or lines[-1:]), "")
