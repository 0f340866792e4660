"""Whatever a stranger's folder holds, a command ends with a message: no traceback, no waiting, nothing of outside."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from carried import QUESTION, carried
from click.testing import CliRunner

from iodelta.cli.main import cli
from iodelta.errors import IodeltaError
from iodelta.lab.seal import chained, file_seal

WRONG: list[Any] = [
    *(None, True, -1, 0, 1.5, 1e308, -1e308, 2**63, 2**64, 10**30, "", "x", "\0", "../../etc/passwd", "/etc/passwd"),
    *([], {}, [[]], [None], {"": ""}, "A" * 5000, "!!not base64!!", "\x1b[2J", "9" * 5000, "nan", "-1", "1e999"),
]
COMMANDS = [
    *(["report"], ["report", "--verbose"], ["report", "--format", "json"], ["report", "--format", "csv"]),
    *(["audit"], ["show"], ["pack", "--output", "PACKED"], ["rebuild"], ["compare", "TWICE"]),
]
MEMBERS = ["journal.jsonl", "plan.json", "environment.json", "calibration.json", "experiment.toml"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that nobody forged."""
    place = tmp_path_factory.mktemp("forged") / "folder"
    carried(place, text=QUESTION.format(path="", blocks=2).replace('path = ""', 'size = "1m"'), blocks=2, secret=False)
    return place


@pytest.fixture
def folder(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "folder"
    shutil.copytree(whole, place)
    return place


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    """A command that waits ends the test by an alarm, whatever it waits for."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError("a command waits")

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def ask(words: list[str], folder: Path) -> tuple[int, str]:
    """Exit code and all that was said. Anything but an answer or a message is a defect, and raised."""
    named = {"PACKED": str(folder.with_name("packed")), "TWICE": str(folder)}
    signal.alarm(240)
    done = CliRunner().invoke(cli, [*(named.get(word, word) for word in words), str(folder)])
    signal.alarm(0)
    shutil.rmtree(folder.with_name("packed"), ignore_errors=True)
    folder.with_name("packed").unlink(missing_ok=True) if not folder.with_name("packed").is_dir() else None
    if isinstance(done.exception, IodeltaError):
        return done.exception.exit_code, f"{done.output}{done.exception}"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def places_of(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key and index of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*at, key)
        yield from places_of(inner, (*at, key))


def forged(document: Any, chance: random.Random) -> Any:
    """The document with one value of another kind, one that is missing, or one more."""
    places = list(places_of(document))
    if not places:
        return chance.choice(WRONG)
    *way, last = chance.choice(places)
    inner = document
    for key in way:
        inner = inner[key]
    if isinstance(inner, dict) and chance.random() < 0.15:
        del inner[last]
    elif isinstance(inner, dict) and chance.random() < 0.1:
        inner[chance.choice(["x", "", "type", "files"])] = chance.choice(WRONG)
    else:
        inner[last] = chance.choice(WRONG)
    return document


def resealed(folder: Path, lines: list[Any]) -> None:
    """Write the journal with a chain that fits, and with seals and digests that fit the files as they are now."""
    chain, written = "", []
    digests = {name: file_seal((folder / name).read_bytes()) for name in MEMBERS if (folder / name).is_file()}
    for event in lines:
        if isinstance(event, dict):
            event = {key: value for key, value in event.items() if key != "chain"}
            if event.get("type") == "planned" and isinstance(event.get("plan_sha256"), str):
                event |= {"plan_sha256": digests["plan.json"].sha256}
                event |= {"experiment_sha256": digests["experiment.toml"].sha256}
            if isinstance(event.get("files"), dict):
                for name in event["files"]:
                    if "/../" not in f"/{name}/" and not name.startswith("/") and "\0" not in name:
                        data = (folder / name).read_bytes() if (folder / name).is_file() else b""
                        event["files"][name] = {"size": len(data), "sha256": file_seal(data).sha256}
        line = json.dumps(event).encode()
        if line.startswith(b"{") and len(line) > 2:
            line, chain = chained(chain, line)
        written.append(line + b"\n")
    (folder / "journal.jsonl").write_bytes(b"".join(written))


def forge(folder: Path, chance: random.Random) -> str:
    """Forge one document of the folder, so that the chain fits; what was done."""
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_bytes().splitlines()]
    raw = sorted((folder / "raw").iterdir())
    kind = chance.choice(["journal", "journal", "plan.json", "environment.json", "calibration.json", "raw", "bytes"])
    if kind == "journal":
        number = chance.randrange(len(lines))
        lines[number] = forged(lines[number], chance)
        kind = f"line {number}: {json.dumps(lines[number])[:300]}"
    elif kind == "raw":
        file = chance.choice(raw)
        document = json.loads(zstandard.ZstdDecompressor().decompress(file.read_bytes()))
        data = json.dumps(forged(document, chance)).encode()
        file.write_bytes(zstandard.ZstdCompressor().compress(data))
    elif kind == "bytes":
        file = chance.choice([folder / name for name in MEMBERS[1:]] + raw)
        flipped = bytearray(file.read_bytes())
        flipped[chance.randrange(len(flipped))] = chance.randrange(256)
        file.write_bytes(flipped)
    else:
        (folder / kind).write_text(json.dumps(forged(json.loads((folder / kind).read_text()), chance)))
    resealed(folder, lines)
    return kind


def fuzz(whole: Path, folder: Path, times: int, seed: int) -> None:
    failed = []
    for number in range(times):
        chance = random.Random(seed + number)
        shutil.rmtree(folder)
        shutil.copytree(whole, folder)
        done = forge(folder, chance)
        words = chance.choice(COMMANDS)
        try:
            code, _ = ask(words, folder)
            assert code in (0, 1, 2, 3, 4)
        except Exception as error:  # noqa: BLE001
            failed.append((seed + number, words, done, f"{type(error).__name__}: {error}"[:300]))
    assert failed == []


def test_a_forged_record_is_a_message_in_every_command(whole: Path, folder: Path) -> None:
    fuzz(whole, folder, 100, 0)


@pytest.mark.night
@pytest.mark.parametrize("seed", range(1000, 11000, 1000))
def test_ten_thousand_forged_records_are_messages(whole: Path, folder: Path, seed: int) -> None:
    fuzz(whole, folder, 1000, seed)


@pytest.mark.parametrize(
    "name",
    [
        *("/etc/passwd", "../outside", "raw/../../outside", "raw/../journal.jsonl", "/dev/zero", "\0", "a\0b", "", "."),
        *("raw/", "..", "raw/a/b", "A" * 5000, "/proc/self/environ", "link", "raw/link", "lost"),
    ],
)
def test_a_journal_names_members_and_never_paths(folder: Path, name: str) -> None:
    folder.with_name("outside").write_text("root:secret")
    for link in (folder / "link", folder / "raw" / "link"):
        link.symlink_to(folder.with_name("outside"))
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_bytes().splitlines()]
    data = Path(name).read_bytes() if name == "/etc/passwd" else b"root:secret"
    chain, written = "", []
    for event in lines:
        event.pop("chain")
        event.setdefault("files", {})[name] = {"size": len(data), "sha256": file_seal(data).sha256}
        line, chain = chained(chain, json.dumps(event).encode())
        written.append(line + b"\n")
    (folder / "journal.jsonl").write_bytes(b"".join(written))
    for words in COMMANDS:
        code, said = ask(words, folder)
        assert "secret" not in said
        assert code in (3, 4) or words[0] in ("show", "audit"), (words, said)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_a_file(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def directory(path: Path) -> None:
    path.mkdir()


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def huge(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize("name", MEMBERS + "verdict.json report.cache bundle.json raw/000001.record.zst raw".split())
@pytest.mark.parametrize("kind", [fifo, link_to_a_file, endless, directory, bound, huge])
def test_a_member_is_a_regular_file(folder: Path, name: str, kind: Callable[[Path], None]) -> None:
    place = folder / name
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    kind(place)
    for words in (["report"], ["audit"], ["show"], ["pack", "--output", "PACKED"]):
        code, said = ask(words, folder)
        assert code in (0, 1, 2, 3, 4), said
        assert "root:" not in said
    assert threading.active_count() < 20


HISTORY = [
    *(
        ["history", "show"],
        ["history", "check"],
        ["history", "rebuild"],
        ["history", "scan"],
        ["history", "alert", "1"],
    ),
    *(["history", "show", "--format", "json"], ["history", "annotate", "--at", "2026-01-02", "x"]),
]


def test_a_forged_history_is_a_message_in_every_command(folder: Path, tmp_path: Path) -> None:
    place, sound = tmp_path / "history", tmp_path / "sound"
    assert ask(["history", "add", "--history", str(sound)], folder)[0] == 0
    (log,) = sound.glob("*.jsonl")
    failed = []
    for number in range(60):
        chance = random.Random(number)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(sound, place)
        lines, chain, written = [json.loads(line) for line in log.read_bytes().splitlines()], "", []
        at = chance.randrange(len(lines))
        lines[at] = forged(lines[at], chance)
        for event in lines:
            if isinstance(event, dict):
                event.pop("chain", None)
            line = json.dumps(event).encode()
            if line.startswith(b"{") and len(line) > 2:
                line, chain = chained(chain, line)
            written.append(line + b"\n")
        (place / log.name).write_bytes(b"".join(written))
        words = chance.choice(HISTORY)
        signal.alarm(240)
        done = CliRunner().invoke(cli, [*words, "--history", str(place)])
        signal.alarm(0)
        if done.exception is not None and not isinstance(done.exception, IodeltaError | SystemExit):
            failed.append((number, words, lines[at], repr(done.exception)[:300]))
    assert failed == []
