"""What is said to somebody who waits while much is read."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from waiting import until

from iodelta.cli import awaiting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(3):
        (tmp_path / f"{number}.log").write_bytes(b"x" * 1_000_000)
    return tmp_path


def waited(folder: Path, stderr: io.StringIO, monkeypatch: pytest.MonkeyPatch, *paths: str) -> str:
    """What is said while two files of three are read."""
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(awaiting, "EVERY", 0.01)
    with awaiting.awaited(paths or [str(folder)]):
        for number in range(2):
            (folder / f"{number}.log").read_bytes()
        if stderr.isatty() and not paths:
            until(lambda: "2 of 3 MB" in stderr.getvalue())
    return stderr.getvalue()


def test_a_terminal_is_told_how_much_is_read_and_the_line_is_taken_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaiting, "AT_ONCE", 0.01)
    said = waited(folder, Terminal(), monkeypatch)
    assert "2 of 3 MB read" in said
    assert said.endswith("\r\x1b[K")


def test_what_takes_no_second_says_nothing_nor_does_what_goes_to_a_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaiting, "AT_ONCE", 60)
    assert waited(folder, Terminal(), monkeypatch, str(folder)) == ""
    monkeypatch.setattr(awaiting, "AT_ONCE", 0)
    assert waited(folder, io.StringIO(), monkeypatch) == ""


@pytest.mark.parametrize(
    ("read", "total", "said"),
    [
        (0, 1_000_000_000, "0 of 1,000 MB read"),
        (250_000_000, 1_000_000_000, "250 of 1,000 MB read, about 30 s left"),
        (40_000_000, 0, "40 MB read, 10 s"),
        (40_000_000, 30_000_000, "40 MB read, 10 s"),
    ],
)
def test_how_far_it_is_in_words(read: int, total: int, said: str) -> None:
    assert awaiting.how_far(read, total, 10.0) == said
