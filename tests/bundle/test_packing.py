"""What travels says the same, and does not say who and where."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
from pathlib import Path

import msgspec
import pytest
import zstandard
from carried import BY_ID, ENVIRONMENT, QUESTION, SECRETS, carried, forge, held, plain

from iodelta.bundle.identity import of_this_machine
from iodelta.bundle.packed import Packed, opened
from iodelta.bundle.packing import pack
from iodelta.errors import RequestError
from iodelta.lab.folder import Finished, Folder, Session, Started
from iodelta.lab.record import RECORD, Record
from iodelta.report.derived import load

NOBODY: dict[str, str] = {}


def test_no_identity_is_left_in_any_byte_of_a_bundle(tmp_path: Path) -> None:
    folder = carried(tmp_path / "folder", blocks=3)
    kept = pack(folder, keep_identity=True, machine={"ernst": "user name"})
    assert set(held(kept.data, SECRETS)) == set(SECRETS)
    made = pack(folder, machine={"ernst": "user name"})
    assert held(made.data, SECRETS) == []
    assert {one.kind for one in made.manifest.removed} >= {"host name", "serial", "disk name", "home", "IP address"}


def test_no_identity_is_left_in_further_runs_of_a_boot(tmp_path: Path) -> None:
    folder = carried(tmp_path / "folder", blocks=1)
    record = msgspec.json.decode(folder.read_raw(1, RECORD), type=Record)
    again = msgspec.structs.replace(record.run, output=f"fio: host blofeld on {BY_ID}\n".encode())
    folder.write_raw(1, {RECORD: msgspec.json.encode(msgspec.structs.replace(record, more=(again,)))})
    folder = forge(folder)
    assert held(pack(folder, keep_identity=True).data, SECRETS)
    made = pack(folder, machine={"ernst": "user name"})
    assert held(made.data, SECRETS) == []
    packed = msgspec.json.decode(_packed(tmp_path, folder).read_raw(1, RECORD), type=Record)
    assert b"fio: host " in packed.more[0].output
    assert b"blofeld" not in packed.more[0].output


def test_a_sender_keeps_more_out(tmp_path: Path) -> None:
    folder = carried(tmp_path / "folder", blocks=1, text=_asking("Does Project Nautilus get faster?"))
    assert held(pack(folder, machine=NOBODY).data, ["Nautilus"]) == ["Nautilus"]
    made = pack(folder, machine=NOBODY, remove=["Project Nautilus"])
    assert held(made.data, ["Nautilus"]) == []
    assert ("secret", "secret-1", "Project Nautilus") in made.replaced
    with pytest.raises(RequestError, match="a bundle keeps it in running text"):
        pack(folder, machine=NOBODY, remove=["fio"])


def test_this_machine_is_in_no_byte_of_a_bundle_of_its_own(tmp_path: Path) -> None:
    """With all that is found here put where text may stand; short names and plain words only stand as names."""
    mine = {word: kind for word, kind in of_this_machine().items() if len(word) > 3 and word.isascii()}
    text = " ".join(mine)
    folder = carried(tmp_path / "folder", blocks=1, text=_asking(text))
    made = pack(folder)
    whole = plain(made.data).decode(errors="replace")
    told = [word for word in mine if re.search(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", whole)]
    assert set(told) <= set(made.words)


def test_a_placeholder_stands_for_the_same_thing_everywhere(tmp_path: Path) -> None:
    packed = _packed(tmp_path, carried(tmp_path / "folder", blocks=1))
    environment = msgspec.json.decode(packed.read("environment.json"))
    session = next(event for event in packed.events() if isinstance(event, Session))
    serial = environment["target"]["serial"]
    assert re.fullmatch(r"serial-\d+", serial)
    assert session.target["identity"]["serial"] == serial
    disk = re.fullmatch(r"/dev/disk/by-id/(disk-\d+)", environment["target"]["path"])
    assert disk is not None
    assert session.target["identity"]["by_id"] == [f"/dev/disk/by-id/{disk[1]}-part1"]
    assert json.loads(packed.read_raw(1, "fio.json"))["jobs"][0]["job options"]["filename"].endswith(disk[1])
    assert session.boot_id == environment["now"]["boot_id"]


def test_what_is_no_identity_stays_as_it_was(tmp_path: Path) -> None:
    packed = _packed(tmp_path, carried(tmp_path / "folder", blocks=1))
    environment = msgspec.json.decode(packed.read("environment.json"))
    assert environment["devices"][0]["firmware"] == "5.2.1.0"
    assert environment["host"]["product"] == "Lair 9.1.2.3"
    assert environment["kernel"]["release"] == "6.18.1"
    assert environment["cpu"] == ENVIRONMENT["cpu"]
    folder = carried(tmp_path / "other", blocks=1, secret=False)
    made = pack(folder, machine=NOBODY)
    (tmp_path / "other.iodelta.tar.zst").write_bytes(made.data)
    again = Packed(tmp_path / "other.iodelta.tar.zst")
    assert again.read("raw/000001.fio.json.zst") == folder.read("raw/000001.fio.json.zst")


def test_a_bundle_says_what_its_folder_says(tmp_path: Path) -> None:
    folder = carried(tmp_path / "folder")
    assert load(_packed(tmp_path, folder)).judgement == load(folder).judgement
    assert {verdict.word for verdict in load(folder).judgement.verdicts} == {"regression"}


def test_conditioning_trials_travel_and_count_neither_here_nor_there(tmp_path: Path) -> None:
    """In a superblock the first trial of each variant does not count; here it is the one that would raise an alarm."""
    text = QUESTION.format(path=BY_ID, blocks=12) + 'carry-over = "superblocks"\n'
    folder = carried(tmp_path / "folder", 0.0, text=text)
    packed = _packed(tmp_path, folder)
    for place in (folder, packed):
        made = [event for event in place.events() if isinstance(event, Started)]
        assert [event.conditioning for event in made] == [True, False] * (len(made) // 2)
        assert {verdict.word for verdict in load(place).judgement.verdicts} == {"inconclusive"}
        assert all(abs(v.change.value) < 0.03 for v in load(place).judgement.verdicts if v.change)
    assert load(packed).judgement == load(folder).judgement
    spent = [event.seconds for event in folder.events() if isinstance(event, Finished)]
    assert load(folder).block_seconds == pytest.approx(sum(spent) / (12 * 2)), (
        "a block of each of two cells costs four trials"
    )


def test_a_host_called_like_an_ordinary_word_leaves_that_word_alone(tmp_path: Path) -> None:
    folder = carried(tmp_path / "folder", blocks=1)
    environment = {**ENVIRONMENT, "host": {"name": "slow"}, "kernel": {"note": "a slow kernel"}}
    folder.write_struct("environment.json", environment)
    made = pack(forge(folder), machine={"slow": "host name"})
    (tmp_path / "x").write_bytes(made.data)
    found = msgspec.json.decode(Packed(tmp_path / "x").read("environment.json"))
    assert found["host"]["name"].startswith("host-")
    assert found["kernel"]["note"] == "a slow kernel"
    assert "slow" in made.words


def test_the_same_folder_gives_the_same_bytes_wherever_it_lies_and_whenever(tmp_path: Path) -> None:
    first = carried(tmp_path / "folder", blocks=2)
    one = pack(first, machine=NOBODY)
    (tmp_path / "elsewhere").mkdir()
    shutil.copytree(first.path, tmp_path / "elsewhere" / "folder")
    other = pack(Folder.open(tmp_path / "elsewhere" / "folder"), machine=NOBODY)
    assert one.data == other.data
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompress(one.data))) as tar:
        members = tar.getmembers()
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode) for m in members} == {(0, 0, 0, "", "", 0o644)}
    names = [member.name for member in members]
    assert names[0] == "bundle.json"
    assert names[1:] == sorted(names[1:])


def test_tar_makes_an_ordinary_folder_of_a_bundle(tmp_path: Path) -> None:
    folder = carried(tmp_path / "folder", blocks=2)
    data = zstandard.ZstdDecompressor().decompress(pack(folder, machine=NOBODY).data)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    assert load(opened(tmp_path / "unpacked")).trials == load(folder).trials


def test_only_files_of_the_experiment_travel(tmp_path: Path) -> None:
    folder = carried(tmp_path / "folder", blocks=1)
    (folder.path / "notes.txt").write_text("my password")
    with folder.writing():
        folder.append(Started(0.0, 99, "iodepth=1", 9, 0, 0, "slow", 1, False))
    (folder.path / "raw" / "000099.fio.json.zst").write_bytes(b"a trial that never finished")
    (folder.path / "environment-2.json").symlink_to("/etc/passwd")
    made = pack(folder, machine=NOBODY)
    assert set(made.left_out) == {"notes.txt", "raw/000099.fio.json.zst", "environment-2.json"}
    assert held(made.data, ("my password", "never finished", "daemon")) == []


def test_a_line_that_a_kill_tore_stays_behind(tmp_path: Path) -> None:
    folder = carried(tmp_path / "folder")
    before = pack(folder).data
    with open(folder.path / "journal.jsonl", "ab") as journal:
        journal.write(b'{"type":"started","at":1')
    assert pack(folder).data == before


def test_a_folder_that_is_being_measured_is_not_packed(tmp_path: Path) -> None:
    folder = carried(tmp_path / "folder", blocks=1)
    with folder.writing(), pytest.raises(RequestError, match="is being measured"):
        pack(Folder.open(folder.path), machine=NOBODY)


def _asking(text: str) -> str:

    return QUESTION.format(path=BY_ID, blocks=1).replace("Is slow slower?", text.replace("\\", "").replace('"', ""))


def _packed(tmp_path: Path, folder: Folder) -> Packed:
    place = tmp_path / f"{folder.path.name}.iodelta.tar.zst"
    place.write_bytes(pack(folder, machine=NOBODY).data)
    return Packed(place)
