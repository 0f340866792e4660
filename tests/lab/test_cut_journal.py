"""A journal whose end was cut off is never taken for that of a killed run, however often the run was killed."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from iodelta.errors import MeasureError
from iodelta.lab.account import Account
from iodelta.lab.folder import (
    EXPERIMENT,
    JOURNAL,
    RAW,
    Finished,
    Folder,
    Preparing,
    Session,
    Started,
    StepBegun,
    StepDone,
)
from iodelta.lab.integrity import check_uncut, integrity

KINDS = ("fio.json", "record")


def started(number: int) -> Started:
    return Started(1.0, number, "cell", 0, 0, 0, "a", 1)


def killed(path: Path, sessions: int, rng: random.Random) -> Folder:
    """A folder of sessions that were all killed: before the raw files of their last trial, amid them or after them."""
    with Folder.making(path) as draft:
        draft.write(EXPERIMENT, b'question = "?"\n')
    for session in range(sessions):
        folder = Folder.open(path)
        with folder.writing():
            number = Account(folder.events()).next_trial
            folder.append(Session(1.0, "boot", session, {}, "environment.json"))
            for last in range(number, number + rng.randrange(3)):
                folder.append(started(last), sync=False)
                folder.write_raw(last, dict.fromkeys(KINDS, str(last).encode()))
                folder.append(Finished(2.0, last, 1.0))
                number = last + 1
            folder.append(started(number), sync=False)
            folder.write_raw(number, dict.fromkeys(KINDS[: rng.randrange(3)], b"%d of a killed trial" % number))
    return Folder.open(path)


def rules_of(path: Path) -> list[str]:
    folder = Folder.open(path)
    return [finding.rule for finding in integrity(folder, Account(folder.events()))]


def raw_beyond(path: Path, kept: Sequence[bytes]) -> bool:
    """By the bytes alone: whether a raw file belongs to a trial that no kept line begins."""
    events = [json.loads(line) for line in kept]
    begun = {event["trial"] for event in events if event["type"] == "started"}
    return any(int(name.split(".")[0]) not in begun for name in os.listdir(path / RAW))


@pytest.mark.parametrize("sessions", [1, 2, 3, 5, 9])
def test_a_cut_at_any_line_after_any_number_of_kills_is_seen_or_costs_one_trial(sessions: int, tmp_path: Path) -> None:
    rng = random.Random(sessions)
    path = killed(tmp_path / "folder", sessions, rng).path
    assert rules_of(path) == [], "kills alone are no cut"
    check_uncut(Folder.open(path))
    lines = (path / JOURNAL).read_bytes().splitlines(keepends=True)
    assert sum(b'"session"' in line for line in lines) == sessions
    for length in range(1, len(lines)):
        (path / JOURNAL).write_bytes(b"".join(lines[:length]))
        seen = rules_of(path) == ["folder.cut"]
        assert seen == raw_beyond(path, lines[:length]), f"cut after line {length} of {len(lines)}"
        if seen:
            with pytest.raises(MeasureError, match="lines were cut off its end"):
                check_uncut(Folder.open(path))
        else:
            lost = [json.loads(line) for line in lines[length:]]
            assert sum(event["type"] == "finished" for event in lost) <= 1, f"cut after line {length}"


def test_steps_of_a_preparation_that_were_cut_off_are_seen(tmp_path: Path) -> None:
    with Folder.making(tmp_path / "folder") as draft:
        draft.write(EXPERIMENT, b'question = "?"\n')
    folder = Folder.open(tmp_path / "folder")
    with folder.writing():
        folder.append(Preparing(1.0, "boot", 1, {}, 1, ()))
        for number in (1, 2):
            folder.append(StepBegun(1.0, number, "round"))
            folder.write_raw(f"step-{number:06d}", {"record": b"%d" % number})
            folder.append(StepDone(2.0, number, "round", 1.0, 1.0, 1))
    assert rules_of(folder.path) == []
    lines = (folder.path / JOURNAL).read_bytes().splitlines(keepends=True)
    for length, rules in ((4, []), (3, ["folder.cut"]), (2, ["folder.cut"]), (1, ["folder.cut"])):
        (folder.path / JOURNAL).write_bytes(b"".join(lines[:length]))
        assert rules_of(folder.path) == rules, length


def test_a_run_that_goes_on_while_its_folder_is_read_is_not_cut(tmp_path: Path) -> None:
    """What was read of the journal is older than the raw files that are looked at."""
    folder = killed(tmp_path / "folder", 2, random.Random(1))
    reader = Folder.open(folder.path)
    before = Account(reader.events())
    with folder.writing():
        for number in range(before.next_trial, before.next_trial + 9):
            folder.append(started(number), sync=False)
            folder.write_raw(number, {"record": b"%d later" % number})
            folder.append(Finished(2.0, number, 1.0))
    assert integrity(reader, before) == []
