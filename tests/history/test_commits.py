"""Nights in the order of their commits, read from a real repository; what cannot be ordered is said in a word."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from test_alerts import alerts, line, number, stepping

from iodelta.bisect.git import Repository
from iodelta.history.commits import Order
from iodelta.history.log import Entry
from iodelta.history.store import Line
from iodelta.machine import LocalMachine

NIGHTS = 40


def git(place: Path, *words: str) -> str:
    """What git says."""
    own = ["-c", "user.name=A. Author", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *own, *words], cwd=place, check=True, capture_output=True, text=True).stdout.strip()


def commit(place: Path, subject: str) -> str:
    """A commit with that subject; its hash."""
    git(place, "commit", "-q", "--allow-empty", "-m", subject)
    return git(place, "rev-parse", "HEAD")


def repository(place: Path) -> Path:
    """A repository of 40 commits, one a night."""
    place.mkdir()
    git(place, "init", "-q")
    for one in range(NIGHTS):
        commit(place, f"change {one}")
    return place


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Such a repository."""
    return repository(tmp_path / "linux")


def hashes(repo: Path) -> list[str]:
    """By first parent, oldest first."""
    return git(repo, "rev-list", "--first-parent", "--reverse", "HEAD").split()


def measured(commits: Sequence[str], *, days: Sequence[float] | None = None) -> Line:
    """A series that is slower from the 21st commit on."""
    bare = line("one", stepping(20), days=days)
    by_name = {f"v6.{one}": sha for one, sha in enumerate(commits)}
    points = tuple(msgspec.structs.replace(point, commit=by_name[point.describe]) for point in bare.points)
    return msgspec.structs.replace(bare, points=points)


def read(repo: Path, commits: Sequence[str], log: Sequence[Entry] = ()) -> list[Entry]:
    """The log after the repository was read."""
    entry = Order(log).extended(Repository.open(LocalMachine(), str(repo)), "linux", commits)
    return [*log, *([entry] if entry else [])]


def test_an_alert_lists_the_commits_of_its_range(repo: Path) -> None:
    own = hashes(repo)
    (alert,) = alerts([measured(own)], read(repo, own))
    assert [(one.sha, one.subject, one.author) for one in alert.commits] == [(own[20], "change 20", "A. Author")]
    assert alert.steps[0].order == "commits"


def test_an_older_commit_that_was_measured_later_stands_where_it_belongs(repo: Path) -> None:
    """Night 10 was made last; by time the series would end with a good night."""
    own = hashes(repo)
    days = [float(n) if n != 10 else 99.0 for n in range(NIGHTS)]
    (alert,) = alerts([measured(own, days=days)], read(repo, own))
    assert (number(alert.last_good), number(alert.first_bad)) == (19, 20)
    assert [one.sha for one in alert.commits] == [own[20]]


def test_the_log_takes_only_what_is_new(repo: Path) -> None:
    own = hashes(repo)
    log = read(repo, own[:30])
    assert len(log[0].commits) == 30  # type: ignore[union-attr]
    assert read(repo, own[:30], log) == log
    log = read(repo, own, log)
    assert len(log[1].commits) == 10  # type: ignore[union-attr]
    (alert,), (other,) = alerts([measured(own)], log), alerts([measured(own)], read(repo, own))
    assert (alert.id, alert.commits) == (other.id, other.commits)


def test_commits_between_two_measured_ones_are_listed_too(repo: Path) -> None:
    own = hashes(repo)
    extra = [commit(repo, f"later {one}") for one in range(5)]
    series = measured([*own[:39], extra[-1]])
    _, word = Order(read(repo, [*own[:39], extra[-1]])).between(series.points[38], series.points[39])
    commits, _ = Order(read(repo, [*own[:39], extra[-1]])).between(series.points[38], series.points[39])
    assert word == ""
    assert [one.sha for one in commits] == [own[39], *extra]


def test_a_commit_that_is_not_there_or_was_rebased_is_said(repo: Path) -> None:
    own = hashes(repo)
    old = own[39]
    git(repo, "reset", "-q", "--hard", own[37])
    commit(repo, "slipped in")
    new = git(repo, "rev-parse", "HEAD")
    git(repo, "cherry-pick", "--allow-empty", old)
    now = git(repo, "rev-parse", "HEAD")
    series = measured([*own[:39], old])
    (alert,) = alerts([series], read(repo, [*own[:38], old, new, now]))
    assert alert.steps[0].order == "time"
    assert (
        alert.steps[0].order_word
        == f"commit {own[38][:12]}: its repository was not read: `iodelta history scan --repo PATH` reads it"
    )
    (alert,) = alerts([series], read(repo, [*own[:39], old, new, now]))
    assert "not on the line of first parents" in alert.steps[0].order_word
    words = Order(read(repo, [*own[:38], old, new, now]))._words
    assert words["linux", old] == f"rebased: it is {now[:12]} now"
    gone = "f" * 40
    words = Order(read(repo, [*own, gone]))._words
    assert words["linux", gone] == "not in the repository: fetch it, or it was rebased away"


def test_commits_of_two_repositories_are_ordered_by_time(repo: Path) -> None:
    own = hashes(repo)
    bare = measured(own)
    points = (*bare.points[:-1], msgspec.structs.replace(bare.points[-1], repo="fork"))
    (alert,) = alerts([msgspec.structs.replace(bare, points=points)], read(repo, own))
    assert alert.steps[0].order == "time"
    assert alert.steps[0].order_word == "commits of 2 repositories: fork, linux"


def test_nights_of_one_commit_blame_no_commit(repo: Path) -> None:
    own = hashes(repo)
    (alert,) = alerts([measured([*own[:20], *[own[19]] * 20])], read(repo, own))
    assert alert.commits == ()
    assert alert.range_word == "both nights measured one commit: what changed is not in this repository"


def test_a_merged_branch_is_one_commit_of_the_line(repo: Path) -> None:
    own = hashes(repo)
    git(repo, "checkout", "-q", "-b", "side", own[10])
    side = commit(repo, "on the side")
    git(repo, "checkout", "-q", "main")
    git(repo, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    merge = git(repo, "rev-parse", "HEAD")
    order = Order(read(repo, [own[39], merge, side]))
    first = measured([*own[:39], own[39]]).points[39]
    commits, _ = order.between(first, msgspec.structs.replace(first, commit=merge))
    assert [one.sha for one in commits] == [merge]
    assert "came in by a merge" in order._words["linux", side]
