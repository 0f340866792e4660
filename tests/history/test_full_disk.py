"""A disk that fills up at any step of a command: what is said of it is true, and the command repeated is as if it had
never failed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_foreign import result
from workshop import Workshop

from iodelta.cli.main import cli
from iodelta.errors import IodeltaError
from iodelta.history.store import UNCHANGED

PAGE = 4096
FREE = (0, 1, 2, 4, 6, 9, 14)
"""Pages that are left when a command begins: it fails at another step with each number, and not at all in the end."""

AHEAD = "The log has this step already"
NIGHTS = 6
TABLE = "cell,metric,value,time,machine,better\n" + "".join(
    f"c{number % 20},m,{100 + number},2026-01-{1 + number // 20:02}T00:00Z,s,higher\n" for number in range(60)
)


def dump(history: Path, copy: Path) -> tuple[int, str]:
    """Lines of the log, and all rows of the database, read by SQLite's own shell of a copy elsewhere."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(history, copy)
    with sqlite3.connect(copy / "history.db") as connection:
        rows = "\n".join(line for line in connection.iterdump() if "INSERT" in line)
    connection.close()
    return len((copy / "decisions.jsonl").read_bytes().splitlines()), rows


def iodelta(*words: str) -> IodeltaError | None:
    """The error of a command that failed as commands fail."""
    found = CliRunner().invoke(cli, ["history", *words])
    if isinstance(found.exception, IodeltaError):
        return found.exception
    assert found.exit_code in (0, 3), (words, found.output, found.exc_info)
    return None


@pytest.mark.root
@pytest.mark.parametrize(
    "words",
    [
        ("add", "night.json", "--machine", "stor3"),
        ("add", "night.json", "old.json", "--machine", "another"),
        ("import", "table.csv", "--from", "csv"),
        ("prune", "--keep", "2"),
        ("rebuild",),
        ("annotate", "new firmware " * 400, "--at", "2026-01-01"),
        ("show",),
    ],
    ids=lambda words: "-".join(words)[:12],
)
def test_what_is_said_of_a_full_disk_is_true(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(workshop.place)
    disk = workshop.mount("none", "-t", "tmpfs", "-o", "size=4M")
    for number in range(NIGHTS + 2):
        name = {NIGHTS: "night", NIGHTS + 1: "old"}.get(number, f"{number}")
        result(Path(f"{name}.json"), iops=5000.0 + number, ended=1.7e9 + 86400 * number)
    history, place = Path("kept"), ("--history", str(disk / "history"))
    assert iodelta("add", *(f"{n}.json" for n in range(NIGHTS)), "--machine", "stor3", "--history", "kept") is None
    Path("table.csv").write_text(TABLE)
    failed = 0
    for free in FREE:
        shutil.rmtree(disk / "history", ignore_errors=True)
        shutil.copytree(history, disk / "history")
        before = dump(disk / "history", Path("copy"))
        filler = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT)
        there = os.fstatvfs(filler)
        os.posix_fallocate(filler, 0, max(PAGE, (there.f_bavail - free) * there.f_frsize))
        os.close(filler)
        error = iodelta(*words, *place)
        (disk / "filler").unlink()
        after = dump(disk / "history", Path("copy"))
        if error is None:
            continue
        failed += 1
        said = error.sentence
        is_later = "1 of 2 paths were added" in said
        assert "free some space" in said, said
        assert after[1] == before[1] or is_later, said
        assert after[0] == before[0] or AHEAD in said or is_later, said
        assert UNCHANGED in said or "this step was not recorded" in said, said
        assert iodelta(*words, *place) is None, said
        again = dump(disk / "history", Path("copy"))
        assert iodelta("check", *place) is None
        assert dump(disk / "history", Path("copy"))[1] == again[1]
    assert failed or words == ("show",)
