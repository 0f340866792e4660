"""``history confirm`` measures both builds of an alert; ``history night`` does a whole night, also after a kill."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nights import filled, having
from nights import stepping as nights_of_a_step
from test_alerts import alerts, line, stepping
from test_command import iodelta, surroundings
from test_commits import commit, git
from waiting import LIMIT, journals, until

from iodelta.experiment import parse
from iodelta.history.confirm import bisect_line, measured_in
from iodelta.history.log import Added, Confirmed, Confirming, Log, NightBegun, NightEnded
from iodelta.lab.plan import make_plan
from iodelta.lab.seal import sha256

pytestmark = [pytest.mark.fio, pytest.mark.beside, pytest.mark.xdist_group("confirm")]  # they share what was measured

NIGHTLY = """
margin = "5%"
[target]
size = "4m"
[workload]
rw = "randread"
bs = ["4k", "16k"]
ioengine = "psync"
[variant.old]
role = "reference"
"fio.rate_iops" = "500"
[variant.new]
"fio.rate_iops" = "{rate}"
[design]
trial = "0.2s"
ramp = "0s"
blocks = 2
budget = "{budget}"
metrics = ["read.iops"]
[subject]
repo = "linux"
commit = "{commit}"
"""
GOOD, BAD = f"{19:040x}", f"{20:040x}"


def measured(place: Path, name: str, rate: int, commit: str, budget: str = "300s") -> None:
    """A folder with a short experiment."""
    (place / f"{name}.toml").write_text(NIGHTLY.format(rate=rate, commit=commit, budget=budget))
    done = iodelta(place, "run", f"{name}.toml", "--folder", name, "--wait")
    assert done.returncode in (0, 1, 3), done.stderr


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nights: 500 reads a second, then 200, which no machine is too loaded to tell; and the second once more with
    the settings of the first."""
    place = tmp_path_factory.mktemp("nights")
    measured(place, "good", 500, GOOD, budget="12s")
    measured(place, "bad", 200, BAD)
    measured(place, "same", 500, BAD, budget="12s")
    return place


def with_alert(place: Path, bad: str) -> str:
    """A history of 40 nights whose 20th and 21st are those folders; the name of its alert."""
    nights = [having(one, cell="bs=4k") for one in nights_of_a_step(0.2)]
    for number, name in ((19, "good"), (20, bad)):
        nights[number] = msgspec.structs.replace(nights[number], folder=str(place / name))
    filled(place / "iodelta-history", nights)
    (alert,) = json.loads(iodelta(place, "history", "scan", "--format", "json").stdout)["alerts"]
    return str(alert["id"])


@pytest.fixture
def place(folders: Path, tmp_path: Path) -> Path:
    """A copy of the folders for one test."""
    return Path(shutil.copytree(folders, tmp_path / "place"))


def entries(place: Path, *kinds: type) -> list[Any]:
    """Of the log."""
    return [one for one in Log(place / "iodelta-history" / "decisions.jsonl").entries()[0] if isinstance(one, kinds)]


@pytest.mark.night
def test_a_slower_build_is_confirmed_with_its_neighbour_and_the_way_to_its_commit(place: Path) -> None:
    name = with_alert(place, "bad")
    done = iodelta(place, "history", "confirm", name, "--wait")
    assert done.returncode == 1, done.stderr + done.stdout
    assert f"alert {name}: confirmed" in done.stdout
    for cell in ("bs=4k", "bs=16k"):
        assert re.search(rf"{cell}  read.iops: regression, -[4-7]\d(\.\d)? ", done.stdout)
    assert "iodelta bisect" not in done.stdout  # the nights differ in an option that no commit has
    (one,) = entries(place, Confirmed)
    assert (one.alert, one.word, Path(one.folder).is_dir()) == (name, "regression", True)
    mail = iodelta(place, "history", "alert", name, "--format", "mail").stdout
    changes = [float(found) for found in re.findall(r"^ +\d+ +(?:earlier|later) +([-+][\d.]+) %$", mail, re.MULTILINE)]
    assert len(changes) >= 6, mail
    assert -75 < statistics.median(changes) < -40  # a single block of a loaded machine may lie anywhere
    assert iodelta(place, "history", "scan").returncode == 1
    iodelta(place, "history", "decide", name, "investigating")
    assert iodelta(place, "history", "scan").returncode == 1
    iodelta(place, "history", "decide", name, "wontfix")
    assert iodelta(place, "history", "scan").returncode == 0


def test_check_names_a_confirmation_that_is_missing_or_not_what_was_measured(place: Path) -> None:
    """An alert rests on it as on its nights."""
    measured(place, "confirmation", 500, GOOD, budget="6s")
    folder = place / "confirmation"
    digest = sha256((folder / "journal.jsonl").read_bytes())
    log = Log(place / "iodelta-history" / "decisions.jsonl")
    assert iodelta(place, "history", "add", "good").returncode == 0
    log.append(Confirmed(1.0, "3f2a91c4", str(folder), "experiment", digest, "regression"))
    done = iodelta(place, "history", "check")
    assert (done.returncode, done.stdout) == (0, "the database, the log and the folders agree\n")

    (folder / "journal.jsonl").rename(place / "journal")
    (folder / "journal.jsonl").write_bytes((place / "journal").read_bytes().replace(b'"finished"', b'"finishes"', 1))
    done = iodelta(place, "history", "check")
    assert (done.returncode, "the confirmation of alert 3f2a91c4" in done.stdout) == (4, True), done.stdout
    folder.rename(place / "away")
    done = iodelta(place, "history", "check")
    assert done.returncode == 4
    assert f"the confirmation of alert 3f2a91c4 cannot be read: {folder}: " in done.stdout


def test_builds_that_something_else_installed_need_put_and_an_inconclusive_night_is_retried(place: Path) -> None:
    name = with_alert(place, "same")
    done = iodelta(place, "history", "confirm", name)
    assert done.returncode == 2
    assert "give --put COMMAND" in done.stderr
    put = f"sh -c 'echo $0 > {place}/installed' {{commit}}"
    for number in (1, 2):
        done = iodelta(place, "history", "confirm", name, "--put", put, "--wait")
        assert done.returncode == 3, done.stderr + done.stdout
        assert len(entries(place, Confirmed)) == number
    assert {one.word for one in entries(place, Confirmed)} == {"inconclusive"}
    assert len({one.folder for one in entries(place, Confirmed)}) == 2
    assert (place / "installed").read_text() == f"{BAD}\n"
    for one in entries(place, Confirmed):  # the night's 12 s are for two blocks, of which nothing could be said
        plan = make_plan(parse((Path(one.folder) / "experiment.toml").read_text()))
        assert plan.experiment.design.budget > 12
        # As many as the first look needs, by what a trial is expected to take: a loaded machine may need more time.
        assert plan.budget_rounds >= plan.rules.looks[0]


def kill_when(place: Path, condition: Callable[[], object], *words: str) -> None:
    """Begin this command of a history, and kill it and all that it started as soon as that holds."""
    command = [sys.executable, "-c", "from iodelta.cli.main import main; main()", "history", *words, "--wait"]
    with open(place / "said", "wb") as said:
        running = subprocess.Popen(
            command, cwd=place, env=surroundings(place), stdout=said, stderr=said, start_new_session=True
        )
    until(condition)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait(LIMIT)


def test_a_killed_confirmation_goes_on_where_it_was(place: Path) -> None:
    name = with_alert(place, "bad")
    journal = place / "iodelta-history" / "confirmations" / f"{name}-1" / "journal.jsonl"
    kill_when(place, lambda: journal.exists() and journal.read_bytes().count(b'"finished"') >= 2, "confirm", name)
    assert entries(place, Confirmed) == []
    done = iodelta(place, "history", "confirm", name, "--wait")
    assert done.returncode == 1, done.stderr + done.stdout
    assert len(entries(place, Confirming)) == 1
    assert [one.word for one in entries(place, Confirmed)] == ["regression"]


@pytest.fixture
def nightly(tmp_path: Path) -> Path:
    """A repository whose one file is built into the tree, and an experiment of it."""
    git(tmp_path, "init", "-q", "linux")
    (tmp_path / "linux" / "level").write_text("1\n")
    git(tmp_path / "linux", "add", "level")
    commit(tmp_path / "linux", "one")
    (tmp_path / "nightly.toml").write_text(f"""
[target]
size = "4m"
[workload]
rw = "randread"
bs = "4k"
ioengine = "psync"
[build]
repo = "{tmp_path}/linux"
command = "cp level made"
artifacts = ["made"]
[variant.old]
role = "reference"
[variant.new]
command = {{ apply = ["cp", "{{built}}/made", "{tmp_path}/now"], restore = ["rm", "-f", "{tmp_path}/now"] }}
[design]
trial = "0.2s"
ramp = "0s"
blocks = 2
budget = "10m"
metrics = ["read.iops"]
""")
    return tmp_path


def test_nights_of_two_commits_are_one_series_and_a_killed_one_goes_on(nightly: Path) -> None:
    done = iodelta(nightly, "history", "night", "nightly.toml", "--wait")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("nothing waits for you\n")
    first = git(nightly / "linux", "rev-parse", "HEAD")
    second = commit(nightly / "linux", "two")
    runs = nightly / "iodelta-history" / "runs"
    kill_when(nightly, lambda: len(entries(nightly, NightBegun)) == 2 and _begun(runs) == 2, "night", "nightly.toml")
    done = iodelta(nightly, "history", "night", "nightly.toml", "--wait")
    assert done.returncode == 0, done.stderr
    assert "continuing the night" in done.stderr
    assert [one.commit for one in entries(nightly, NightBegun)] == [first, second]
    assert (len(entries(nightly, NightEnded)), len(entries(nightly, Added))) == (2, 2)
    assert not list(runs.glob("*/report.html"))  # of hundreds of nights; `iodelta report` makes one
    with sqlite3.connect(nightly / "iodelta-history" / "history.db") as connection:
        counts = connection.execute("SELECT count(*) FROM point GROUP BY series").fetchall()
    assert counts == [(2,), (2,)]
    assert iodelta(nightly, "history", "check").returncode == 0
    assert sorted(path.name for path in (nightly / "iodelta-history" / "built").iterdir()) == sorted([first, second])
    assert git(nightly / "linux", "status", "--porcelain") == ""
    assert git(nightly / "linux", "worktree", "list").count("\n") == 0
    assert not (nightly / "now").exists()


def test_the_command_for_the_commit_is_one_that_bisect_takes(nightly: Path) -> None:
    commits = [git(nightly / "linux", "rev-parse", "HEAD"), commit(nightly / "linux", "two")]
    for one in commits:
        git(nightly / "linux", "checkout", "-q", one)
        assert iodelta(nightly, "history", "night", "nightly.toml", "--wait").returncode == 0
    good, bad = (measured_in(one.folder, "new") for one in entries(nightly, NightBegun))
    (alert,) = alerts([line("one", stepping(20), cell="randread 4k")])
    words = shlex.split(bisect_line(alert, good, bad))
    assert words[:8] == ["iodelta", "bisect", "--repo", f"{nightly}/linux", "--good", commits[0], "--bad", commits[1]]
    assert shlex.split(words[words.index("--put") + 1]) == ["cp", "{built}/made", f"{nightly}/now"]
    done = iodelta(nightly, *words[1 : words.index("--")], "--dry-run", *words[words.index("--") :])
    assert done.returncode == 0, done.stderr
    assert "1 candidate between" in done.stderr


def _begun(runs: Path) -> int:
    """Folders in which a trial has ended."""
    return sum(b'"finished"' in journal.read_bytes() for journal in journals(runs))


def test_a_commit_that_does_not_build_is_said_and_the_next_one_is_measured(nightly: Path) -> None:
    (nightly / "linux" / "level").unlink()
    git(nightly / "linux", "add", "-A")
    broken = commit(nightly / "linux", "broken")
    done = iodelta(nightly, "history", "night", "nightly.toml")
    assert done.returncode == 4
    assert broken[:12] in done.stderr
    assert "cannot build" in done.stderr
    assert "Traceback" not in done.stderr
    (nightly / "linux" / "level").write_text("2\n")
    git(nightly / "linux", "add", "-A")
    fixed = commit(nightly / "linux", "fixed")
    done = iodelta(nightly, "history", "night", "nightly.toml", "--format", "json", "--wait")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == "iodelta.history-night/1"
    assert [one.commit for one in entries(nightly, NightBegun)] == [broken, fixed]


def test_an_alert_that_needs_the_user_is_shown_once_and_then_waits_in_a_line(place: Path) -> None:
    """What its builds differed by was installed by something else: no night can confirm it alone, and none fails."""
    name = with_alert(place, "same")
    (place / "iodelta-history" / "decisions.jsonl").unlink()  # no scan has seen it before the first night
    (place / "nightly.toml").write_text(NIGHTLY.format(rate=500, commit=f"{40:040x}", budget="6s"))
    told = []
    for _ in range(2):
        done = iodelta(place, "history", "night", "nightly.toml", "--wait")
        assert done.returncode == 3, done.stderr + done.stdout
        assert "could not measure" not in done.stdout
        assert f"waits for a confirmation: alert {name}: " in done.stdout
        assert "give --put COMMAND" in done.stdout
        told.append([line for line in done.stdout.splitlines() if line.startswith(f"alert {name}: candidate")])
    assert ["between" in line for (line,) in told] == [True, False]
    assert f"`iodelta history alert {name}` shows it" in told[1][0]
