"""``iodelta history`` on folders that iodelta itself measured."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from test_foreign import result

from iodelta.cli.history import tell
from iodelta.cli.main import cli
from iodelta.errors import RequestError
from iodelta.history.answers import NightAdded
from iodelta.report.documents import schema

FOLDER = "night"


def surroundings(place: Path) -> dict[str, str]:
    """With a state directory in ``place``: no other test holds the disk there."""
    return {**os.environ, "IODELTA_STATE": str(place / "state")}


def iodelta(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in that directory."""
    return subprocess.run(
        [sys.executable, "-c", "from iodelta.cli.main import main; main()", *words],
        cwd=place,
        env=surroundings(place),
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the folder of a short experiment with a reference."""
    place = tmp_path_factory.mktemp("measured")
    (place / "nightly.toml").write_text("""
[target]
size = "4m"
[workload]
rw = "randread"
bs = "4k"
ioengine = "psync"
[variant.old]
role = "reference"
[variant.new]
"fio.ioengine" = "sync"
[design]
trial = "0.2s"
ramp = "0s"
blocks = 3
budget = "10m"
metrics = ["read.iops"]
[subject]
repo = "linux"
commit = "4f2a1c9d0b7e"
describe = "v6.12"
""")
    done = iodelta(place, "run", "nightly.toml", "--folder", FOLDER)
    assert done.returncode in (0, 1, 3), done.stderr
    return place


@pytest.fixture
def place(measured: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copytree(measured, tmp_path / "place"))


def points(place: Path) -> list[tuple[object, ...]]:
    """All points, read without iodelta."""
    with sqlite3.connect(place / "iodelta-history" / "history.db") as connection:
        return connection.execute("SELECT * FROM point ORDER BY series").fetchall()


@pytest.mark.fio
@pytest.mark.beside
@pytest.mark.xdist_group("command")
def test_a_folder_is_added_once_found_when_moved_and_rebuilt(place: Path) -> None:
    done = iodelta(place, "history", "add", FOLDER)
    assert (done.returncode, done.stdout) == (0, "added: night, 2 points\n")
    before = points(place)
    assert iodelta(place, "history", "add", FOLDER).stdout == "known: night, 2 points\n"
    assert points(place) == before
    shown = iodelta(place, "history", "show").stdout
    assert shown.startswith("2 series, 1 night\n")
    assert "against the reference" in shown
    assert iodelta(place, "history", "scan").stdout == "no candidate\n"
    assert iodelta(place, "history", "check").returncode == 0

    (place / FOLDER).rename(place / "elsewhere")
    done = iodelta(place, "history", "check")
    assert done.returncode == 4
    assert "cannot be read" in done.stdout
    assert iodelta(place, "history", "rebuild").returncode == 2
    assert points(place) == before
    assert iodelta(place, "history", "add", "elsewhere").stdout == "moved: elsewhere, 2 points\n"
    (place / "iodelta-history" / "history.db").write_bytes(b"overwritten" * 1000)
    assert "history rebuild" in iodelta(place, "history", "show").stderr
    assert iodelta(place, "history", "rebuild").returncode == 0
    assert points(place) == before
    assert iodelta(place, "history", "check").returncode == 0

    (place / "elsewhere").rename(place / FOLDER)  # back to where the log knew it before
    assert iodelta(place, "history", "add", FOLDER).stdout == "moved: night, 2 points\n"
    assert iodelta(place, "history", "rebuild").returncode == 0


@pytest.mark.fio
@pytest.mark.beside
@pytest.mark.xdist_group("command")
def test_a_folder_that_was_changed_is_refused_and_leaves_no_trace(place: Path) -> None:
    raw = next((place / FOLDER / "raw").glob("*.fio.json.zst"))
    raw.write_bytes(raw.read_bytes()[:-1])
    done = iodelta(place, "history", "add", FOLDER)
    assert done.returncode == 2
    assert "not what was measured" in done.stderr
    assert not (place / "iodelta-history" / "decisions.jsonl").exists()


@pytest.mark.fio
@pytest.mark.beside
@pytest.mark.xdist_group("command")
def test_what_the_log_alone_knows_is_said_and_rebuilt(place: Path) -> None:
    """As after a kill between the log and the database."""
    iodelta(place, "history", "add", FOLDER)
    before = points(place)
    with sqlite3.connect(place / "iodelta-history" / "history.db") as connection:
        connection.execute("DELETE FROM point")
        connection.execute("DELETE FROM experiment")
    (place / FOLDER).rename(place / "away")
    done = iodelta(place, "history", "check")
    assert (done.returncode, "not in the database" in done.stdout) == (4, True)
    (place / "away").rename(place / FOLDER)
    done = iodelta(place, "history", "check")
    assert (done.returncode, "finished adding" in done.stderr) == (0, True)
    assert points(place) == before
    assert iodelta(place, "history", "rebuild").returncode == 0
    assert points(place) == before


def test_requests_that_are_wrong_say_what_to_do(tmp_path: Path) -> None:
    for words, said in [
        (["show"], "there is no history"),
        (["show", "-o", "page.csv"], "use one of .html"),
        (["show", "-o", "page.html", "--format", "console"], "the console format cannot be written to a file"),
        (["add", "nothing"], "nothing: cannot read it: No such file"),
        (["show", "--history", "mysql://x/y", "--log", "l"], "not a database that a history can use"),
        (["show", "--history", "postgresql://x/y"], "give --log FILE"),
    ]:
        done = iodelta(tmp_path, "history", *words)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_a_directory_may_have_any_name_that_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result(tmp_path / "one.json", iops=5000.0)
    for name in ("a?mode=memory", "b#c", "d%20e", "é ü"):
        for words in (["add", "one.json", "--machine", "stor3"], ["rebuild"], ["check"]):
            done = CliRunner().invoke(cli, ["history", *words, "--history", name])
            assert done.exit_code == 0, done.output
        assert (tmp_path / name / "history.db").is_file()


def test_bytes_that_are_not_text_are_refused_and_leave_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell passes any bytes; the log is UTF-8."""
    monkeypatch.chdir(tmp_path)
    odd = os.fsdecode(b"\xff")
    result(tmp_path / "one.json", iops=5000.0)
    shutil.copy(tmp_path / "one.json", tmp_path / odd)
    for words, said in (
        (["add", "one.json", "--machine", odd], "not text in UTF-8"),
        (["add", "one.json", "--machine", "stor3", "--describe", odd], "not text in UTF-8"),
        (["add", odd, "--machine", "stor3"], "not text in UTF-8"),
        (["import", "one.json", "--from", "bmf", "--machine", odd], "not text in UTF-8"),
        (["add", "one.json", "--machine", "stor3", "--history", odd], "not text in UTF-8"),
        (["annotate", odd], "not text in UTF-8"),
        (["annotate", " "], "a note without text"),
    ):
        done = CliRunner().invoke(cli, ["history", *words])
        assert isinstance(done.exception, RequestError)
        assert said in str(done.exception)
    assert not (tmp_path / "iodelta-history" / "decisions.jsonl").exists()


@pytest.mark.fio
@pytest.mark.beside
@pytest.mark.xdist_group("command")
def test_every_command_prints_a_document(place: Path) -> None:
    """What a program reads says the same as what a person reads."""
    documents = {}
    for words in (("add", FOLDER), ("show",), ("scan",), ("check",), ("rebuild",)):
        done = iodelta(place, "history", *words, "--format", "json")
        assert done.returncode == 0, done.stderr
        documents[words[0]] = json.loads(done.stdout)
    assert all(documents[name]["schema"] == f"iodelta.history-{name}/1" for name in documents)
    for name, document in documents.items():
        Draft202012Validator(schema(f"iodelta.history-{name}/1")).validate(document)
    points = documents["add"]["added"][0]["points"]
    assert points == sum(len(series["points"]) for series in documents["show"]["series"]) == 2
    assert {series["metric"] for series in documents["show"]["series"]} == {"read.iops"}
    assert (documents["scan"]["candidates"], documents["check"]["problems"]) == ([], [])
    assert documents["rebuild"]["folders"] == 1


@pytest.mark.parametrize("words", [("add", "night"), ("show",), ("scan",), ("check",), ("rebuild",)])
def test_without_the_extra_every_command_names_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A module that is None in ``sys.modules`` cannot be imported, as if it were not installed."""
    code = "import sys; sys.modules['sqlalchemy'] = None; from iodelta.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "history", *words], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert "iodelta[history]" in done.stderr


def test_a_night_says_why_a_series_has_no_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    variants = "[variant.reference]\nrole = 'reference'\n[variant.tonight]\n'fio.ioengine' = 'sync'\n"
    (tmp_path / "nightly.toml").write_text(f"[workload]\nrw = 'randread'\n{variants}")
    why = {"randread 4k, tonight, read.iops": "fewer than two blocks"}
    monkeypatch.setattr("iodelta.cli.history_night.measure", lambda *words, **options: None)
    monkeypatch.setattr("iodelta.history.adding.add", lambda *words: NightAdded("runs/1", "added", 0, why))
    done = CliRunner().invoke(cli, ["history", "night", "nightly.toml"])
    assert done.exit_code == 0, done.exc_info
    assert "added: runs/1, 0 points\n" in done.stderr
    assert "  left out: randread 4k, tonight, read.iops: fewer than two blocks\n" in done.stderr


def test_a_mistake_in_the_file_is_named_there_and_begins_no_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nightly.toml").write_text("[workload]\nrw = 'randread'\n[bild]\nrepo = '.'\n")
    done = CliRunner().invoke(cli, ["history", "night", "nightly.toml"])
    assert isinstance(done.exception, RequestError)
    assert str(done.exception).startswith("nightly.toml:3: the experiment file has no key 'bild'")
    assert not (tmp_path / "iodelta-history").exists()


def test_a_long_line_is_wrapped_between_words_in_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "  stor3  randread 4k: " + "between v6.12-rc1 and v6.12-rc2 " * 4 + "(/runs/" + "x" * 60 + ")"
    tell(line)
    assert capsys.readouterr().out == line + "\n"
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    tell(line)
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("  stor3  randread 4k: between")
    assert all(one.startswith("      ") and not one[6].isspace() for one in others)
    assert max(map(len, (first, *others))) <= 80
    assert " ".join([first, *(one.strip() for one in others)]) == line
