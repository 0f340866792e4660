"""The experiment folder survives kills, full disks and damage, and says which file is damaged and where."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from iodelta.errors import MeasureError, RequestError
from iodelta.lab.folder import EXPERIMENT, JOURNAL, CountFolder, DiskFolder, Ended, Finished, Folder, Started
from iodelta.lab.journal import sealed_lines


def started(trial: int) -> Started:
    return Started(1.0, trial, "cell", 0, 0, 0, "a", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    with Folder.making(tmp_path / "experiment") as draft:
        draft.write(EXPERIMENT, b'question = "?"\n')
    return Folder.open(tmp_path / "experiment")


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def interrupted() -> None:
        with Folder.making(tmp_path / "new") as draft:
            draft.write(EXPERIMENT, b"")
            assert not (tmp_path / "new").exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == [], "nothing is left of a folder that was not finished"


def test_a_folder_that_exists_is_never_taken_for_a_new_one(folder: Folder) -> None:
    with pytest.raises(RequestError, match="this path exists already"), Folder.making(folder.path):
        pass
    assert folder.read(EXPERIMENT) == b'question = "?"\n'


def test_events_come_back_in_order_while_another_reads(folder: Folder) -> None:
    with folder.writing():
        folder.append(started(1), sync=False)
        folder.append(Finished(2.0, 1, 1.5))
        assert Folder.open(folder.path).events() == [started(1), Finished(2.0, 1, 1.5)]


@pytest.mark.parametrize("torn", [b"{", b'{"type":"finished","at":1.0,"tri', b'{"type":"ended"}', b"\0\0\0"])
def test_a_last_line_torn_by_a_kill_is_ignored_by_readers_and_cut_by_the_next_writer(
    folder: Folder, torn: bytes
) -> None:
    with folder.writing():
        folder.append(started(1))
    with open(folder.path / JOURNAL, "ab") as file:
        file.write(torn)
    assert folder.events() == [started(1)]
    with folder.writing():
        folder.append(Ended(3.0, "complete"))
    assert folder.events() == [started(1), Ended(3.0, "complete")]


@pytest.mark.parametrize("line", [b'{"type":"finished","at":"yesterday"}', b'{"type":"finis', b"\0\0\0"])
def test_no_line_counts_from_a_damaged_one_on_and_it_is_named_by_file_and_line(folder: Folder, line: bytes) -> None:
    with folder.writing():
        folder.append(started(1))
    with open(folder.path / JOURNAL, "ab") as file:
        file.write(line + b"\n")
    assert folder.events() == [started(1)]
    with pytest.raises(MeasureError, match=r"journal\.jsonl:2: not the original line"):
        folder.check_journal()


def test_a_line_that_no_seal_covers_and_nobody_can_read_is_named_by_file_and_line(folder: Folder) -> None:
    (folder.path / JOURNAL).write_bytes(b'{"type":"ended","at":1.0,"reason":"complete"}\n{"type":"finis\n')
    with pytest.raises(MeasureError, match=r"journal\.jsonl:2: damaged"):
        folder.events()


def test_one_writer_at_a_time_and_who_it_is(folder: Folder) -> None:
    why = rf"another iodelta \(process {os.getpid()}\) is writing to this folder"
    with folder.writing(), pytest.raises(RequestError, match=why), Folder(folder.path).writing():
        pass


def test_a_disk_that_fills_up_leaves_whole_lines_and_a_way_on(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        return write(descriptor, data[: len(data) // 2])

    with folder.writing():
        folder.append(started(1))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            with pytest.raises(MeasureError, match=r"(?s)No space left.*free some space.*iodelta run"):
                folder.append(started(2))
        folder.append(started(3))
    assert folder.events() == [started(1), started(3)]


def test_a_disk_so_full_that_a_torn_line_cannot_be_cut_breaks_no_seal(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        return write(descriptor, data[: len(data) // 2])

    def stuck(descriptor: int, length: int) -> None:
        raise OSError(errno.EIO, "")

    with folder.writing():
        folder.append(started(1))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            patch.setattr(os, "ftruncate", stuck)
            with pytest.raises(MeasureError, match="No space left"):
                folder.append(started(2))
        assert Folder.open(folder.path).events() == [started(1)]
        folder.append(started(3))
    assert folder.events() == [started(1), started(3)]
    assert not folder.seal.broken


def test_a_line_that_was_not_synced_and_then_cut_breaks_no_seal(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "")

    with folder.writing():
        folder.write_raw(1, {"fio.json": b"{}"})
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", full)
            with pytest.raises(MeasureError, match="No space left"):
                folder.append(Finished(2.0, 1, 1.5))
        folder.append(Finished(3.0, 1, 1.5))
    assert folder.events() == [Finished(3.0, 1, 1.5)]
    assert list(folder.seal.files) == ["raw/000001.fio.json.zst"], "sealed by the line that was written"
    assert not folder.seal.broken


def test_a_reader_whom_a_writer_overtakes_reads_again(folder: Folder) -> None:
    """Its first reading ends in a torn line, goes on in the line that was written in its place, and is no alarm."""
    with folder.writing():
        folder.append(started(1))
        before = (folder.path / JOURNAL).read_bytes()
        folder.append(started(2))
    after = (folder.path / JOURNAL).read_bytes()
    readings = [before + b'{"type":"fin' + after[len(before) + 12 :], after]
    data, seal = sealed_lines(lambda: readings.pop(0))
    assert (data, seal.broken, seal.lines) == (after, 0, 2)
    changed = after.replace(b'"block":0', b'"block":9', 1)
    assert sealed_lines(lambda: changed)[1].broken == 1, "what stays as it is was changed"


def test_every_line_seals_the_files_that_were_written_before_it(folder: Folder) -> None:
    with folder.writing():
        folder.write("environment.json", b"{}")
        folder.append(started(1))
        folder.write_raw(1, {"fio.json": b"{}", "record": b"{}"})
        folder.append(Finished(2.0, 1, 1.5))
        folder.write("verdict.json", b"{}")
        folder.append(Ended(3.0, "complete"))
    lines = [json.loads(line) for line in (folder.path / JOURNAL).read_bytes().splitlines()]
    raw = ["raw/000001.fio.json.zst", "raw/000001.record.zst"]
    assert [list(line.get("files", {})) for line in lines] == [["environment.json"], raw, []]
    for name, seal in lines[1]["files"].items():
        data = (folder.path / name).read_bytes()
        assert seal == {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def test_a_trial_s_beginning_its_raw_files_their_names_and_its_end_come_to_disk_in_this_order(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a loss of power, too, no raw files are without the line that their trial began."""
    synced: list[str] = []

    def note(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)

    with folder.writing():
        monkeypatch.setattr(os, "fdatasync", note)
        monkeypatch.setattr(os, "fsync", note)
        folder.append(started(1), sync=False)
        assert synced == [], "nothing waits for the disk right before a trial"
        folder.write_raw(1, {"fio.json": b"{}", "record": b"{}"})
        folder.append(Finished(2.0, 1, 1.5))
    assert synced == [JOURNAL, "000001.fio.json.zst", "000001.record.zst", "raw", JOURNAL]


def test_raw_bytes_come_back_as_they_were(folder: Folder) -> None:
    data = bytes(range(256)) * 100
    folder.write_raw(7, {"fio.json": data})
    assert folder.read_raw(7, "fio.json") == data


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped"])
def test_a_raw_file_that_is_not_what_was_written_is_never_read_as_if_it_were(folder: Folder, damage: str) -> None:
    folder.write_raw(7, {"fio.json": os.urandom(5000)})
    path = folder.path / "raw" / "000007.fio.json.zst"
    data = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[:-100])
    else:
        data[2500] ^= 0xFF
        path.write_bytes(data)
    with pytest.raises(MeasureError, match=r"000007\.fio\.json\.zst"):
        folder.read_raw(7, "fio.json")


def test_a_file_is_written_whole_or_stays_as_it_was(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("verdict.json", b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "fdatasync", full)
    with pytest.raises(MeasureError, match="No space left"):
        folder.write("verdict.json", b"new")
    assert folder.read("verdict.json") == b"old"
    assert sorted(path.name for path in folder.path.iterdir()) == [EXPERIMENT, "raw", "verdict.json"]


@pytest.mark.parametrize(("clock", "kind"), [("instructions", CountFolder), ("rounds", DiskFolder), ("wall", Folder)])
def test_a_folder_is_of_the_kind_that_its_plan_says(clock: str, kind: type[Folder], tmp_path: Path) -> None:
    made = Folder.begin(tmp_path / "one", "", {"clock": clock} if clock != "wall" else {})
    (tmp_path / "one" / "plan.json").write_text(json.dumps({"clock": clock}))
    found = Folder.open(made.path)
    assert type(found) is kind
    if kind is Folder:
        found.check_times()
    else:
        with pytest.raises(RequestError, match="this folder contains"):
            found.check_times()


def test_a_folder_whose_plan_cannot_be_read_is_opened_and_refused_by_whoever_reads_it(tmp_path: Path) -> None:
    made = Folder.begin(tmp_path / "one", "", {})
    (made.path / "plan.json").write_text("{")
    found = Folder.open(made.path)
    found.check_times()
    with pytest.raises(MeasureError, match="changed since the run began"):
        found.read_plan(dict)
