"""A folder whose run was killed before its first trial ended says so to every command that reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from carried import BY_ID, QUESTION, carried
from test_strangers import ask as asked

from iodelta.experiment import parse
from iodelta.lab.folder import Folder
from iodelta.lab.plan import make_plan
from iodelta.report.derived import derive


def ask(*words: str) -> tuple[int, str]:
    """Exit code and everything said, wherever the lines were broken."""
    code, said = asked(*words)
    return code, " ".join(said.split())


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Killed after the order was written down and before the machine was described."""
    text = QUESTION.format(path=BY_ID, blocks=8)
    return Folder.begin(tmp_path / "killed", text, make_plan(parse(text))).path


@pytest.mark.parametrize("command", ["audit", "show", "compare"])
def test_it_is_said_to_hold_no_trial_and_not_to_lack_a_file(command: str, killed: Path) -> None:
    more = [str(killed)] if command == "compare" else []
    code, said = ask(command, str(killed), *more)
    assert code == 4, "there was nothing to judge"
    assert "no trial ended" in said
    assert "iodelta run" in said
    assert "cannot read" not in said


def test_what_was_changed_in_it_is_still_a_hard_finding(killed: Path) -> None:
    (killed / "raw" / "000001.record.zst").write_bytes(b"from elsewhere")
    journal = killed / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() * 2)
    code, said = ask("audit", str(killed))
    assert code == 1
    assert "folder.line" in said


def test_a_cell_that_was_not_measured_yet_is_not_said_to_be_missing(killed: Path) -> None:
    code, said = ask("report", str(killed), "--explain", "iodepth=1")
    assert code == 2
    assert "nothing was measured in the cell" in said
    assert "there is no cell" not in said


@pytest.mark.parametrize("words", [("--dry-run",), ("--leave-out",)], ids=" ".join)
def test_an_option_of_a_new_experiment_measures_nothing_in_an_old_one(
    words: tuple[str, ...], killed: Path, tmp_path: Path
) -> None:
    ended = derive(carried(tmp_path / "ended", blocks=8, secret=False)).folder
    for folder in (killed, Path(ended)):
        before = (folder / "journal.jsonl").read_bytes()
        code, said = ask("run", str(folder), *words)
        assert code == 2
        assert "the folder already defines the question and its rules" in said
        assert (folder / "journal.jsonl").read_bytes() == before
