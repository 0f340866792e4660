"""A stranger's bundle at the command line: whatever is in it, one message or an inert report, and nothing happens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from carried import ENVIRONMENT, QUESTION, carried, forged
from click.testing import CliRunner

from iodelta.bundle.archive import packed
from iodelta.bundle.packed import Packed
from iodelta.bundle.packing import pack
from iodelta.cli.main import cli
from iodelta.errors import IodeltaError
from iodelta.lab.folder import Folder
from iodelta.lab.seal import sha256

EVIL = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\u202e"


def ask(*args: str) -> tuple[int, str]:
    """Exit code and everything said. Anything but an answer or a message is a defect, and raised."""
    done = CliRunner().invoke(cli, args)
    if isinstance(done.exception, IodeltaError):
        return done.exception.exit_code, f"{done.output}{done.exception}"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place with a target, where the command is given."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    (place / "target").write_bytes(bytes(1 << 20))
    return place


def attack(sentinel: str) -> dict[str, Callable[[str], str]]:
    """Ways to have ``sentinel`` made, as changes of a harmless question."""
    knob = '"cgroup.io_max" = "riops=4000"'
    command = f'command = {{apply = ["touch", "{sentinel}"], restore = ["touch", "{sentinel}"]}}'
    return {
        "a command knob": lambda text: text.replace(knob, command),
        "a background load": lambda text: text + f'[condition.x]\nbackground = ["touch", "{sentinel}"]\n',
        "a fio background": lambda text: (
            text + f'[condition.x]\nbackground = {{rw = "write", filename = "{sentinel}"}}\n'
        ),
        "a program before fio": lambda text: text.replace(knob, f'"fio.exec_prerun" = "touch {sentinel}"'),
        "memory in a file": lambda text: text.replace(knob, f'"fio.mem" = "mmap:{sentinel}"'),
        "a library for an engine": lambda text: text.replace('"psync"', f'"external:{sentinel}.so"'),
        "a door of the kernel": lambda text: text.replace(knob, f'"sysctl.kernel.core_pattern" = "|{sentinel}"'),
    }


@pytest.mark.parametrize("how", attack(""))
def test_nothing_of_an_attack_happens_before_its_own_word(how: str, tmp_path: Path, here: Path) -> None:
    sentinel = tmp_path / "owned"
    text = attack(str(sentinel))[how](QUESTION.format(path="", blocks=1).replace('path = ""', 'size = "1m"'))
    place = bundle(carried(tmp_path / "folder", text=text, blocks=1, secret=False))
    code, said = ask("reproduce", str(place), "--target", "target", "--yes")
    assert code == 2, said
    assert "DANGER" in said or "never allows" in said or "remove filename" in said
    code, said = ask("reproduce", str(place), "--target", "target", "--allow-commands")
    assert code == 2, said
    assert not sentinel.exists()
    assert [path.name for path in here.iterdir()] == ["target"]
    assert (here / "target").read_bytes() == bytes(1 << 20)


@pytest.mark.fio
@pytest.mark.parametrize(
    ("sound", "wrong", "said_by_fio"),
    [
        ('rw = "randread"', 'rw = "randraed"', "randraed"),
        ('bs = "4k"', 'bs = "4k"\nverify = "crc33c"', "crc33c"),
        ('"cgroup.io_max" = "riops=4000"', '"fio.rwmixread" = 140', "140"),
    ],
)
def test_a_plan_that_fio_would_refuse_is_not_shown_as_one(
    sound: str, wrong: str, said_by_fio: str, tmp_path: Path, here: Path
) -> None:
    """As ``run --dry-run`` does: one misspelt word fails every trial, hours after the plan was accepted."""
    text = QUESTION.format(path="", blocks=1).replace('path = ""', 'size = "1m"')
    place = bundle(carried(tmp_path / "sound", text=text, blocks=1, secret=False))
    assert ask("reproduce", str(place), "--target", "target", "--dry-run")[0] == 0
    place = bundle(carried(tmp_path / "wrong", text=text.replace(sound, wrong), blocks=1, secret=False))
    for words in (("--dry-run",), ("--yes",), ("--dry-run", "--format", "json")):
        code, said = ask("reproduce", str(place), "--target", "target", *words)
        assert (code, "fio does not accept these options" in said, said_by_fio in said) == (2, True, True), said
    assert [path.name for path in here.iterdir()] == ["target"]


def test_a_program_of_fio_is_refused_whatever_is_allowed(tmp_path: Path, here: Path) -> None:
    sentinel = tmp_path / "owned"
    text = QUESTION.format(path="", blocks=1).replace('path = ""', 'size = "1m"')
    text = text.replace('"cgroup.io_max" = "riops=4000"', f'"fio.exec_prerun" = "touch {sentinel}"')
    place = bundle(carried(tmp_path / "folder", text=text, blocks=1, secret=False))
    code, said = ask("reproduce", str(place), "--target", "target", "--yes", "--allow-commands")
    assert code == 2
    assert "exec_prerun runs the command" in said
    assert "never allows" in said
    assert not sentinel.exists()


def test_a_workload_that_writes_needs_the_same_consent_as_ones_own(tmp_path: Path, here: Path) -> None:
    text = QUESTION.format(path="/dev/sda", blocks=1).replace('"randread"', '"randwrite"')
    text = text.replace('"cgroup.io_max" = "riops=5000"', '"fio.fsync" = "1"')
    text = text.replace('"cgroup.io_max" = "riops=4000"', '"fio.fsync" = "2"').replace("read.", "write.")
    place = bundle(carried(tmp_path / "folder", text=text, blocks=1, secret=False))
    (here / "target").write_bytes(b"precious" * 131072)
    code, said = ask("reproduce", str(place), "--target", "target", "--yes", "--folder", "mine")
    assert code == 2, said
    assert "--destroy" in said
    assert (here / "target").read_bytes() == b"precious" * 131072
    assert not (here / "mine").exists()


def test_a_folder_that_is_there_is_not_written_into(tmp_path: Path, here: Path) -> None:
    (here / "mine").mkdir()
    text = QUESTION.format(path="/dev/sda", blocks=1).replace('"cgroup.io_max"', '"fio.iodepth_low"')
    text = text.replace("riops=5000", "1").replace("riops=4000", "2")
    place = bundle(carried(tmp_path / "folder", text=text, blocks=1))
    code, said = ask("reproduce", str(place), "--target", "target", "--yes", "--folder", "mine")
    assert code == 2
    assert "this path exists already" in said
    assert list((here / "mine").iterdir()) == []


@pytest.mark.parametrize("end", ["interrupted", "failed: no space", None])
def test_an_unfinished_experiment_can_be_read_and_not_reproduced(end: str | None, tmp_path: Path, here: Path) -> None:
    place = bundle(carried(tmp_path / "folder", blocks=6, end=end))
    assert ask("report", str(place))[0] in (0, 1, 3)
    code, said = ask("reproduce", str(place), "--target", "target", "--yes")
    assert code == 2
    assert "is not complete" in said


def test_what_holds_no_experiment_is_refused_with_what_to_do(tmp_path: Path, here: Path) -> None:
    (here / "table.md").write_text("| a | IOPS |\n|---|---|\n| x | 1 |\n| y | 2 |\n")
    for path, words in (("table.md", "--against"), ("nowhere", "nothing at this path"), (".", "not a bundle")):
        code, said = ask("reproduce", path, "--target", "target")
        assert code == 2
        assert words in said
    code, said = ask("pack", ".")
    assert code == 2
    assert "not an experiment folder" in said
    assert ask("pack", "table.md")[0] == 2


STRANGE: dict[str, Any] = {
    "a list": [],
    "a text": "x",
    "numbers for sections": {**ENVIRONMENT, "host": 5, "target": [1], "devices": {"name": 3}, "fio": None},
    "terminal escapes": {"host": {"name": EVIL, EVIL: EVIL}, "devices": [{"name": EVIL}], "fio": {"version": EVIL}},
    "numbers for texts": {"kernel": {"release": 6.1, "tainted": True}, "devices": [3, None, "x"], "absent": 7},
    "nested as deep as a well": msgspec.Raw(b"[" * 500 + b"]" * 500),
}


@pytest.mark.parametrize("what", STRANGE)
def test_an_environment_that_is(what: str, tmp_path: Path, here: Path) -> None:
    """...is read as far as it can be, or refused; no escape reaches a terminal, nothing ends in a traceback."""
    sound = Packed(bundle(carried(tmp_path / "folder", blocks=6)))
    place = rewritten(sound, {"environment.json": msgspec.json.encode(STRANGE[what])}, tmp_path)
    folder = str(carried(tmp_path / "other", blocks=6).path)
    for words in (
        ("report",),
        ("show",),
        ("audit",),
        ("env",),
        ("env", "--diff", folder),
        ("reproduce", "--against", folder),
    ):
        code, said = ask(words[0], str(place), *words[1:])
        assert code in (0, 1, 2, 3, 4)
        assert "\x1b" not in said
        assert "\u202e" not in said


def test_a_plan_full_of_escapes_stays_inert(tmp_path: Path, here: Path) -> None:
    sound = Packed(bundle(carried(tmp_path / "folder", blocks=6)))
    evil = msgspec.json.encode(EVIL)[1:-1]
    plan = sound.read("plan.json").replace(b"Is slow slower?", evil).replace(b"iodepth=4", b"iodepth=4" + evil)
    journal = sound.read("journal.jsonl").replace(b"iodepth=4", b"iodepth=4" + evil)
    planned = msgspec.json.decode(journal.splitlines()[0])
    planned["plan_sha256"] = sha256(plan)
    lines = [msgspec.json.encode(planned), *journal.splitlines()[1:]]
    files = {entry.name: sound.read(entry.name) for entry in sound.manifest.members} | {"plan.json": plan}
    place = rewritten(sound, {"plan.json": plan, "journal.jsonl": forged(lines, files)}, tmp_path)
    for words in (("report",), ("show",), ("audit",), ("reproduce", "--target", "target", "--dry-run")):
        code, said = ask(words[0], str(place), *words[1:])
        assert code in (0, 1, 2, 3)
        assert "\x1b" not in said
        assert "\u202e" not in said
        assert "owned" in said or words[0] in ("audit", "reproduce")
    code, said = ask("reproduce", str(place), "--target", "target", "--dry-run")
    assert code == 2
    assert "no experiment file can contain" in said or "--target" in said


def bundle(folder: Folder) -> Path:
    place = folder.path.with_suffix(".iodelta.tar.zst")
    place.write_bytes(pack(folder, machine={}).data)
    return place


def rewritten(sound: Packed, changed: dict[str, bytes], tmp_path: Path) -> Path:
    """A bundle whose list fits what was changed: made by somebody who knows how."""
    members = {entry.name: sound.read(entry.name) for entry in sound.manifest.members} | changed
    place = tmp_path / "strange.iodelta.tar.zst"
    place.write_bytes(packed(sound.manifest, members))
    return place
