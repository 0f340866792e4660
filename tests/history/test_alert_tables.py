"""Alerts as commands: shown, decided, noted, kept in tables that can be made again."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from nights import filled, having, night, opened, stepping
from test_command import iodelta

from iodelta.cli.history import recorded
from iodelta.history import kept
from iodelta.history.log import Confirmed, Log
from iodelta.history.store import Store, url_of
from iodelta.report.documents import schema


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a history of 40 nights, of which the last 20 are 2 % worse."""
    filled(tmp_path / "iodelta-history", stepping(0.02))
    return tmp_path


def document(place: Path, *words: str) -> Any:
    """What a command prints for programs."""
    return json.loads(iodelta(place, "history", *words, "--format", "json").stdout)


def rows(place: Path) -> list[Any]:
    """The tables of alerts, read without iodelta."""
    with sqlite3.connect(place / "iodelta-history" / "history.db") as connection:
        found = connection.execute("SELECT * FROM alert ORDER BY id").fetchall()
        return found + connection.execute("SELECT * FROM step ORDER BY alert, series").fetchall()


def test_an_alert_is_found_decided_and_stays_what_it_is(place: Path) -> None:
    done = iodelta(place, "history", "scan")
    assert done.returncode == 3, done.stderr
    assert "(worse) against the reference" in done.stdout
    assert "false alarms: 1.4 expected in 1000 points" in done.stdout
    assert "this series: 1 candidate in 40 nights, 25 in 1000" in done.stdout
    (alert,) = document(place, "scan")["alerts"]
    name = alert["id"]
    assert done.stdout.startswith(f"alert {name}: candidate")
    assert rows(place)[0][0] == name

    assert iodelta(place, "history", "decide", name[:4], "expected", "--why", "fixes data loss").returncode == 0
    done = iodelta(place, "history", "scan")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "no candidate")
    assert f"{name}: candidate, expected: fixes data loss" in done.stdout
    shown = document(place, "alert", name)
    Draft202012Validator(schema("iodelta.history-alert/1")).validate(shown)
    assert (shown["triage"], shown["why"]) == ("expected", "fixes data loss")
    before = rows(place)
    with sqlite3.connect(place / "iodelta-history" / "history.db") as connection:
        connection.execute("DROP TABLE alert")
        connection.execute("DROP TABLE step")
    iodelta(place, "history", "scan")
    assert rows(place) == before
    assert iodelta(place, "history", "decide", name, "new").returncode == 0
    assert iodelta(place, "history", "scan").returncode == 3


def test_an_alert_is_told_as_a_mail(place: Path) -> None:
    (alert,) = document(place, "scan")["alerts"]
    done = iodelta(place, "history", "alert", alert["id"], "--format", "mail")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 72
    assert done.stdout.startswith(f"Alert {alert['id']} (step): candidate.")
    for words in ("Series that step together", "Commits in range", "False alarms", f"decide {alert['id']} WORD"):
        assert words in done.stdout
    done = iodelta(place, "history", "alert", alert["id"], "--format", "markdown")
    assert (done.returncode, "Commits in range" in done.stdout) == (0, True)


@pytest.mark.night
def test_every_view_calls_a_step_what_its_alert_is(place: Path) -> None:
    def views() -> list[str]:
        pages = [iodelta(place, "history", "show", "--format", form).stdout for form in ("console", "markdown", "mail")]
        return [re.sub(r"\s+", " ", page) for page in pages]

    assert all(re.search("candidate, alert [0-9a-f]{8}: -2", page) for page in views())
    (alert,) = document(place, "scan")["alerts"]
    name = alert["id"]
    assert all(f"candidate, alert {name}: -2" in page for page in views())
    log = Log(place / "iodelta-history" / "decisions.jsonl")
    log.append(Confirmed(1.0, name, "/c/1", "c-1", "sha", "regression"))
    assert all(f"confirmed, alert {name}: -2" in page for page in views())
    assert not any("candidate" in page or "suspected" in page for page in views()[:1])
    assert "suspected" not in iodelta(place, "history", "alert", name).stdout
    iodelta(place, "history", "decide", name, "expected")
    assert all(f"confirmed, alert {name}, expected: -2" in page for page in views())


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_history_of_few_nights_is_shown_and_has_no_alert(tmp_path: Path, count: int) -> None:
    """Also where the second night is 2 % worse and no error is known to be above zero."""
    nights = [night(number, r=0.02 * number) for number in range(count)]
    filled(tmp_path / "iodelta-history", [having(one, se=0.0, r_se=0.0) for one in nights])
    done = iodelta(tmp_path, "history", "scan")
    assert (done.returncode, done.stdout) == (0, "no candidate\n")
    assert iodelta(tmp_path, "history", "show").stdout.startswith(f"{count and 1} series, {count} night")
    assert iodelta(tmp_path, "history", "show", "-o", "page.html").returncode == 0
    assert "no step" in (tmp_path / "page.html").read_text()


def test_words_that_are_wrong_say_what_to_do(place: Path) -> None:
    for words, said in [
        (["decide", "zzzz", "fixed"], "not an alert: 'zzzz'"),
        (["alert", "zzzz"], "`iodelta history scan` lists them"),
        (["decide", "zzzz", "whatever"], "not a decision: 'whatever'"),
        (["annotate", "x", "--at", "yesterday"], "write it as 2026-11-22T02:00Z"),
        (["annotate", "x", "--at", "2026-11-22", "--commit", "4f2a1c9"], "omit one of them"),
        (["annotate", "x", "--commit", "HEAD"], "not the hash of a commit"),
    ]:
        done = iodelta(place, "history", *words)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_a_note_is_kept_at_its_time_or_commit(place: Path) -> None:
    assert iodelta(place, "history", "annotate", "new firmware", "--at", "2026-11-22T03:00").returncode == 0
    assert iodelta(place, "history", "annotate", "revert", "--commit", "4f2a1c9").returncode == 0
    first, second = map(json.loads, (place / "iodelta-history" / "decisions.jsonl").read_text().splitlines())
    assert (first["text"], first["t"]) == ("new firmware", 1795316400.0)
    assert (second["text"], second["t"], second["commit"]) == ("revert", None, "4f2a1c9")


def test_alerts_of_a_history_that_cannot_be_written_are_shown(
    unprivileged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(unprivileged, stepping(0.02))
    (unprivileged / "history.db").chmod(0o444)
    unprivileged.chmod(0o555)
    assert callable(kept.told)  # loaded before: this user may not read the files of the interpreter
    (alert,) = recorded(Store(url_of(unprivileged / "history.db")), Log(unprivileged / "decisions.jsonl")).alerts
    unprivileged.chmod(0o755)
    assert alert.state == "candidate"
    assert "alerts were not recorded" in capsys.readouterr().err


def test_a_full_disk_loses_no_alert(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log cannot grow: the alert is shown, and recorded when there is room."""
    store, log = opened(place / "iodelta-history"), Log(place / "full")

    def full(handle: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("iodelta.lab.journal.os.write", full)
        (shown,) = recorded(store, log).alerts
    assert "No space left on device" in capsys.readouterr().err
    assert (place / "full").read_bytes() == b""
    (again,) = recorded(store, log).alerts
    assert again.id == shown.id
    assert len(log.entries()[0]) == 1
