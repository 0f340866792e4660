"""What a message quotes stays a quotation: no name from a command line or a file makes a line or moves the cursor."""

from __future__ import annotations

import sys

import pytest

from iodelta.cli.main import main
from iodelta.cli.progress import Progress, say_line
from iodelta.errors import MeasureError, RequestError
from iodelta.study.words import inert, inert_message

NAME = "a\niodelta: done\r\x1b[31m\x9bK\x07b"
SHOWN = r"a\x0aiodelta: done\x0d\x1b[31m\x9bK\x07b"
FIO = ("--", "--rw=randread")

CALLS: dict[str, tuple[str, ...]] = {
    "show": (NAME,),
    "compare": (NAME, "c"),
    "audit": (NAME,),
    "report": (NAME,),
    "pack": (NAME,),
    "rebuild": (NAME,),
    "reproduce": (NAME,),
    "run": (f"{NAME}.toml",),
    "prepare": (NAME,),
    "restore": (NAME,),
    "serve": (NAME,),
    "env": (NAME,),
    NAME: (),
}
MORE = [
    ("run", "--target", NAME, "--variant", "a:fio.bs=4k", *FIO),
    ("run", "--variant", f"{NAME}:fio.bs=4k", *FIO),
    ("run", "--variant", f"a:{NAME}=4k", *FIO),
    ("run", "--machine", f"ssh:{NAME}", *FIO),
    ("run", "--destroy", NAME, "--target", "x", *FIO),
    ("run", f"--{NAME}"),
    ("run", "--design", NAME, *FIO),
    ("scenario", "run", NAME),
    ("policy", "mirror", NAME, "c"),
    ("policy", "explain", NAME),
    ("history", "show", NAME),
    ("fleet", "report", NAME),
    ("attribute", NAME, "--patch", "c", "--measure", "x", "--better", "higher"),
    ("bisect", "--item", NAME, "--item", "c", "--measure", NAME, "--better", "higher"),
    ("kernel", "fetch", NAME),
    ("fio", "build", NAME),
]


@pytest.mark.parametrize("words", [*((name, *rest) for name, rest in CALLS.items()), *MORE])
def test_a_name_is_quoted_in_one_line_and_without_control_characters(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.chdir(str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["iodelta", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    told = "".join(capsys.readouterr())
    assert ended.value.code not in (0, 1)
    assert told.strip()
    assert "\niodelta: done" not in told
    assert [char for char in told if char != "\n" and not char.isprintable()] == []


def test_the_place_of_an_error_is_one_line_and_its_own_further_lines_stay() -> None:
    error = RequestError("cannot read it", place="a\nb", remedy="name a file")
    assert str(error) == "a\\x0ab: cannot read it\n  name a file"
    broken = MeasureError("does not build\n  cc: error\x1b[0m\nsh: forged", place="log")
    assert inert_message(str(broken)) == "log: does not build\n  cc: error\\x1b[0m\\x0ash: forged"


def test_a_byte_of_a_file_name_is_shown_as_that_byte() -> None:
    assert inert(b"a\x9b\xff".decode(errors="surrogateescape")) == r"a\x9b\xff"


def test_lines_of_progress_are_inert(capsys: pytest.CaptureFixture[str]) -> None:
    say_line(NAME)
    with Progress(log=True) as progress:
        progress.note(NAME)
        progress.step(NAME)
    assert capsys.readouterr().err.splitlines() == [SHOWN] * 3
