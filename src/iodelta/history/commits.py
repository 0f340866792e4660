"""The commits that were measured, by first parent: read from a repository once, then kept in the log."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Sequence

import msgspec

from iodelta.bisect.git import Repository
from iodelta.history.answers import HistoryPoint
from iodelta.history.log import Entry, LoggedCommit, Ordered

FULL = 40
"""Hex digits of a whole SHA-1."""

BY_TIME = "time"
BY_COMMITS = "commits"

ONE_COMMIT = "both nights measured one commit: what changed is not in this repository"
REVERTED = "the slower build is the older one: the commits between them were reverted"

Place = tuple[int, float]
"""Rank on the line of commits (0 where it is not known), then time."""


class Span(msgspec.Struct, frozen=True):
    """From after the good night up to the bad one, on the line of a repository or in time."""

    repo: str | None
    """None where the commits of the nights are not on one line."""
    after: Place
    until: Place
    began: float
    ended: float
    machine: str = ""
    builds: tuple[str, ...] = ()
    """Those that were measured after the good night up to the bad one."""

    def meets(self, other: Span) -> bool:
        """Return whether one change may lie in both. On one line of commits these say so, otherwise the times, and of
        two machines, which follow builds at times of their own, the builds."""
        if self.repo is not None and self.repo == other.repo:
            return max(self.after, other.after) < min(self.until, other.until)
        if self.machine != other.machine and self.machine and other.machine:
            return not set(self.builds).isdisjoint(other.builds)
        return max(self.began, other.began) < min(self.ended, other.ended)


class Mark(msgspec.Struct, frozen=True):
    """The commits of a line up to ``rank``, and a commit that is not on it, with the reason."""

    repo: str
    rank: int
    digest: str
    lacks: str
    word: str


class Arranged(msgspec.Struct, frozen=True):
    """Points in the order in which builds followed each other, and why it is not that of commits."""

    points: tuple[HistoryPoint, ...]
    by: str
    word: str = ""


class Order:
    """Lines of commits, as the log has them."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._lines: dict[str, list[LoggedCommit]] = {}
        self._words: dict[tuple[str, str], str] = {}
        for entry in entries:
            if isinstance(entry, Ordered):
                self._take(entry)
        self._ranks = {repo: _ranks(line) for repo, line in self._lines.items()}
        self._prefixes: dict[str, list[str]] = {}

    def mark(self, points: Iterable[HistoryPoint]) -> tuple[Mark, ...]:
        """Return what the order of these points rests on: a mark for each repository that their builds are of."""
        newest: dict[str, int] = {}
        lacking: dict[str, str] = {}
        for point in points:
            if point.commit and (
                point.repo not in newest or self._ranks.get(point.repo)
            ):
                rank = self._rank(point)
                newest[point.repo] = max(newest.get(point.repo, 0), rank)
                if not rank:
                    lacking.setdefault(point.repo, point.commit)
        return tuple(
            self._marked(repo, rank, lacking.get(repo, ""))
            for repo, rank in newest.items()
        )

    def has(self, marks: Iterable[Mark]) -> bool:
        """Return whether points with these marks still have the order that they had."""
        return all(
            mark == self._marked(mark.repo, mark.rank, mark.lacks) for mark in marks
        )

    def _marked(self, repo: str, rank: int, lacks: str) -> Mark:
        word = (
            f"{self._rank_of(repo, lacks)} {self._words.get((repo, lacks), '')}"
            if lacks
            else ""
        )
        if repo not in self._prefixes:
            digest, self._prefixes[repo] = hashlib.sha256(), [""]
            for commit in self._lines.get(repo, ()):
                digest.update(commit.sha.encode())
                self._prefixes[repo].append(digest.hexdigest()[:16])
        known = self._prefixes[repo]
        return Mark(repo, rank, known[rank] if rank < len(known) else "", lacks, word)

    def arranged(self, points: Sequence[HistoryPoint]) -> Arranged:
        """Points of one epoch by their commits where all of them are on one line, else by time."""
        by_time = tuple(sorted(points, key=lambda point: (point.t, point.experiment)))
        word = self._why_not(by_time)
        if word or not points:
            return Arranged(by_time, BY_TIME, word)
        return Arranged(tuple(sorted(by_time, key=self._place)), BY_COMMITS)

    def span(
        self,
        good: HistoryPoint,
        bad: HistoryPoint,
        machine: str = "",
        inside: Sequence[HistoryPoint] = (),
    ) -> Span:
        """Return what lies between two nights of a machine, with the nights ``inside`` that are not before the change."""
        after, until = sorted((self._place(good), self._place(bad)))
        known = self._rank(good) and self._rank(bad) and good.repo == bad.repo
        began, ended = sorted((good.t, bad.t))
        builds = tuple(
            dict.fromkeys(
                filter(None, (point.commit or point.describe for point in inside))
            )
        )
        return Span(
            good.repo if known else None, after, until, began, ended, machine, builds
        )

    def between(
        self, good: HistoryPoint, bad: HistoryPoint
    ) -> tuple[tuple[LoggedCommit, ...], str]:
        """Return the commits after the good night's up to the bad night's, oldest first; or why they cannot be listed."""
        same_build = good.commit == bad.commit and good.repo == bad.repo
        if good.commit and same_build:
            return (), ONE_COMMIT
        word = self._why_not((good, bad))
        if word:
            return (), word
        first, last = self._rank(good), self._rank(bad)
        if first > last:
            return (), REVERTED
        return tuple(self._lines[good.repo][first:last]), ""

    def is_known(self, commit: str, repo: str) -> bool:
        """Return whether the commit is on the line of that repository."""
        return self._rank_of(repo, commit) > 0

    def holds(self, point: HistoryPoint, commit: str) -> bool:
        """Return whether a night measured that commit, or a later one of its line."""
        # Either may be abbreviated.
        is_same = point.commit.startswith(commit) or commit.startswith(point.commit)
        if point.commit and is_same:
            return True
        return 0 < self._rank_of(point.repo, commit) <= self._rank(point)

    def extended(
        self, repository: Repository, name: str, measured: Sequence[str]
    ) -> Ordered | None:
        """Return what the log is to hold of the commits ``measured`` of the repository called ``name``; None for
        nothing new. Raises RequestError, MeasureError."""
        full_names = _full(repository, list(dict.fromkeys(measured)))
        if not name and not any(full_names.values()):
            return None  # nights that do not name their repository are of another one
        line = _line(repository, [full for full in full_names.values() if full])
        places = {sha: number for number, sha in enumerate(line)}
        on_line: list[int] = []
        news: dict[str, str] = {}
        for sha, full in full_names.items():
            if full in places:
                on_line.append(places[full])
                continue
            word = _why(repository, full, line)
            if self._words.get((name, sha)) != word:
                news[sha] = word
        wanted = line[min(on_line) : max(on_line) + 1] if on_line else []
        known = self._ranks.get(name, {})
        if all(sha in known for sha in wanted):
            wanted = []
        if not wanted and not news:
            return None
        known_here = [sha for sha in wanted if sha in known]
        after = known_here[-1] if known_here else ""
        fresh = wanted[wanted.index(after) + 1 :] if after else wanted
        described = tuple(_described(repository, fresh))
        return Ordered(time.time(), name, after, described, news)

    def _take(self, entry: Ordered) -> None:
        """Add what an entry says: commits after one that is on the line, or a line of their own."""
        line = self._lines.setdefault(entry.repo, [])
        shas = [commit.sha for commit in line]
        if entry.after in shas:
            line = line[: shas.index(entry.after) + 1]
        elif entry.commits:
            line = []
        self._lines[entry.repo] = [*line, *entry.commits]
        for sha, word in entry.words.items():
            self._words[entry.repo, sha] = word

    def _why_not(self, points: Sequence[HistoryPoint]) -> str:
        """Return why these points have no order by commits; empty when they have."""
        repos = {point.repo for point in points}
        if len(repos) > 1:
            names = sorted(repo or "unnamed" for repo in repos)
            return f"commits of {len(repos)} repositories: {', '.join(names)}"
        for point in points:
            if not point.commit:
                return "the commit of a night is not known"
            if not self._rank(point):
                word = self._words.get(
                    (point.repo, point.commit),
                    "its repository was not read: `iodelta history scan --repo PATH` reads it",
                )
                return f"commit {point.commit[:12]}: {word}"
        return ""

    def _rank(self, point: HistoryPoint) -> int:
        return self._rank_of(point.repo, point.commit)

    def _rank_of(self, repo: str, commit: str) -> int:
        """Return the place of a commit on the line of a repository; 0 where it is not on it."""
        ranks = self._ranks.get(repo, {})
        is_full = len(commit) >= FULL
        if commit not in ranks and commit and ranks and not is_full:
            ranks[commit] = next(
                (rank for sha, rank in ranks.items() if sha.startswith(commit)), 0
            )
        return ranks.get(commit, 0)

    def _place(self, point: HistoryPoint) -> Place:
        return self._rank(point), point.t


def _ranks(line: Sequence[LoggedCommit]) -> dict[str, int]:
    """Return each commit's place on its line."""
    return {commit.sha: rank for rank, commit in enumerate(line, 1)}


def _full(repository: Repository, measured: Sequence[str]) -> dict[str, str]:
    """Return the whole name of each commit; empty where the repository does not have it."""
    asked = [sha for sha in measured if re.fullmatch("[0-9a-f]{4,64}", sha)]
    stdin = "".join(f"{sha}^{{commit}}\n" for sha in asked).encode()
    done = repository.git(
        "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=stdin
    )
    lines = [line.split() for line in done.text.splitlines()]
    names = [words[0] if words[-1:] == ["commit"] else "" for words in lines]
    return dict.fromkeys(measured, "") | dict(zip(asked, names, strict=False))


def _line(repository: Repository, measured: Sequence[str]) -> list[str]:
    """Return the first-parent line, oldest first, that holds most of the measured commits: of HEAD, or of the last one."""
    best: list[str] = []
    most = 0
    for tip in dict.fromkeys(["HEAD", *measured[-1:]]):
        done = repository.git("rev-list", "--first-parent", "--reverse", tip, "--")
        line = [] if done.returncode else done.text.split()
        count = len(set(measured).intersection(line))
        # HEAD's line where both hold as many.
        if not best or count > most:
            best, most = line, count
    return best


def _why(repository: Repository, full: str, line: Sequence[str]) -> str:
    """Return why a commit is not on the line."""
    if not full:
        return "not in the repository: fetch it, or it was rebased away"
    lost = _identity(repository, full)
    tip = line[-1] if line else "HEAD"
    done = repository.git(
        "log", "--first-parent", "--format=%H%x00%an%x00%at%x00%s", tip
    )
    # A rebase keeps author, author's time and subject.
    for text in done.text.splitlines():
        sha, _, identity = text.partition("\0")
        if identity == lost:
            return f"rebased: it is {sha[:12]} now"
    return "not on the line of first parents: it came in by a merge, or is on another branch"


def _identity(repository: Repository, sha: str) -> str:
    done = repository.git("log", "-1", "--format=%an%x00%at%x00%s", sha, "--")
    return done.text.rstrip("\n")


def _described(repository: Repository, shas: Sequence[str]) -> Iterable[LoggedCommit]:
    if not shas:
        return
    asked = "".join(f"{sha}\n" for sha in shas).encode()
    done = repository.git(
        "log",
        "--no-walk=unsorted",
        "--stdin",
        "--format=%H%x00%ct%x00%an%x00%s",
        stdin=asked,
    )
    for text in done.text.splitlines():
        sha, at, author, subject = text.split("\0", 3)
        yield LoggedCommit(sha, float(at), author, subject)
