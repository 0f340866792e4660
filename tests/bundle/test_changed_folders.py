"""A folder that is not what was measured never passes for one: whatever was exchanged, edited, removed or doubled."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from carried import carried, forge
from test_strangers import ask

from iodelta.bundle.archive import packed
from iodelta.bundle.packed import Packed
from iodelta.bundle.packing import pack
from iodelta.errors import MeasureError
from iodelta.lab.folder import Ended, Folder, Started
from iodelta.report.derived import derive, load

BLOCKS = 8
Change = Callable[[Path], object]


def lines(path: Path) -> list[bytes]:
    return (path / "journal.jsonl").read_bytes().splitlines()


def write_lines(path: Path, new: list[bytes]) -> None:
    (path / "journal.jsonl").write_bytes(b"".join(line + b"\n" for line in new))


def trial_of(path: Path, variant: str, place: int = 0) -> int:
    """The number of the ``place``-th trial of a variant."""
    started = [json.loads(line) for line in lines(path) if b'"type":"started"' in line]
    return [int(one["trial"]) for one in started if one["variant"] == variant][place]


def raw(path: Path, trial: int, kind: str = "fio.json") -> Path:
    return path / "raw" / f"{trial:06d}.{kind}.zst"


def exchange_arms(*kinds: str) -> Change:
    """Every raw file of one arm for that of the other: all blocks change their sign."""

    def change(path: Path) -> None:
        for place in range(2 * BLOCKS):
            for kind in kinds:
                one, other = (raw(path, trial_of(path, variant, place), kind) for variant in ("fast", "slow"))
                first, second = one.read_bytes(), other.read_bytes()
                one.write_bytes(second)
                other.write_bytes(first)

    return change


def edit_result(path: Path) -> None:
    place = raw(path, trial_of(path, "slow"))
    document = json.loads(zstandard.ZstdDecompressor().decompress(place.read_bytes()))
    document["jobs"][0]["read"]["iops"] *= 2
    place.write_bytes(zstandard.ZstdCompressor().compress(json.dumps(document).encode()))


def edit(name: str, old: bytes, new: bytes) -> Change:
    def change(path: Path) -> None:
        data = (path / name).read_bytes()
        assert old in data
        (path / name).write_bytes(data.replace(old, new, 1))

    return change


def move(path: Path) -> None:
    found = lines(path)
    found[9], found[11] = found[11], found[9]
    write_lines(path, found)


def relabel(path: Path) -> None:
    """The arms of the journal exchanged instead of the raw files."""
    data = (path / "journal.jsonl").read_bytes()
    data = data.replace(b'"variant":"fast"', b'"variant":"?"').replace(b'"variant":"slow"', b'"variant":"fast"')
    (path / "journal.jsonl").write_bytes(data.replace(b'"variant":"?"', b'"variant":"slow"'))


def strip_chain(path: Path) -> None:
    """As if it had never been sealed; but the digests of the files stand in it."""
    write_lines(path, [line.split(b',"chain":"')[0] + b"}" for line in lines(path)])


def reprinted(path: Path) -> None:
    """Through a JSON tool that prints spaces."""
    write_lines(path, [json.dumps(json.loads(line)).encode() for line in lines(path)])


def cut_off(path: Path) -> None:
    """The last four trials and the end, as if the run had been interrupted before them."""
    write_lines(path, lines(path)[:-9])
    for number in range(29, 33):
        for kind in ("fio.json", "record"):
            raw(path, number, kind).unlink()


CHANGES: dict[str, Change] = {
    "raw files of the two arms exchanged": exchange_arms("fio.json", "record"),
    "results of the two arms exchanged": exchange_arms("fio.json"),
    "records of the two arms exchanged": exchange_arms("record"),
    "a result edited": edit_result,
    "a raw file removed": lambda path: raw(path, 3).unlink(),
    "a record removed": lambda path: raw(path, 3, "record").unlink(),
    "a raw file in place of another": lambda path: shutil.copy(raw(path, 1), raw(path, 2)),
    "a raw file doubled": lambda path: shutil.copy(raw(path, 1), raw(path, 99)),
    "a raw file doubled under a name of no trial": lambda path: shutil.copy(raw(path, 1), path / "raw/copy.zst"),
    "a raw file of another folder added": lambda path: raw(path, 99).write_bytes(b"from elsewhere"),
    "a raw file added to a trial": lambda path: raw(path, 1, "more").write_bytes(b"from elsewhere"),
    "a raw file cut": lambda path: raw(path, 5).write_bytes(raw(path, 5).read_bytes()[:-1]),
    "a byte after a raw file": lambda path: raw(path, 5).write_bytes(raw(path, 5).read_bytes() + b"\0"),
    "a line removed": lambda path: write_lines(path, [*lines(path)[:9], *lines(path)[10:]]),
    "the first line removed": lambda path: write_lines(path, lines(path)[1:]),
    "a line doubled": lambda path: write_lines(path, [*lines(path)[:9], *lines(path)[8:]]),
    "a line torn": lambda path: write_lines(path, [*lines(path)[:9], lines(path)[9][:30], *lines(path)[10:]]),
    "the first line torn": lambda path: write_lines(path, [lines(path)[0][:30], *lines(path)[1:]]),
    "a line of zeros": lambda path: write_lines(path, [*lines(path)[:9], bytes(30), *lines(path)[10:]]),
    "lines in another order": move,
    "a word of a line edited": edit("journal.jsonl", b'"problem":""', b'"problem":"x"'),
    "the arms of the journal exchanged": relabel,
    "a line without its chain": lambda path: write_lines(
        path, [line.split(b',"chain":"')[0] + b"}" if n == 9 else line for n, line in enumerate(lines(path))]
    ),
    "all lines without their chain": strip_chain,
    "all lines printed anew": reprinted,
    "a line added": lambda path: write_lines(path, [*lines(path), b'{"type":"ended","at":9.0,"reason":"complete"}']),
    "the last trials cut off": lambda path: write_lines(path, lines(path)[:-9]),
    "the last trials cut off with their raw files": cut_off,
    "the environment edited": edit("environment.json", b"performance", b"powersave  "),
    "the environment removed": lambda path: (path / "environment.json").unlink(),
    "the calibrations removed": lambda path: (path / "calibration.json").unlink(),
    "the calibrations edited": lambda path: (path / "calibration.json").write_text("[ ]\n"),
    "the question edited": edit("experiment.toml", b"Is slow slower?", b"Is slow faster?"),
    "the plan edited": edit("plan.json", b'"alpha": 0.05', b'"alpha": 0.95'),
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole folder with its derived files: slow is slower by half."""
    folder = carried(tmp_path_factory.mktemp("measured") / "folder", -0.5, blocks=BLOCKS, secret=False)
    derive(folder)
    return folder.path


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    shutil.copytree(measured, tmp_path / "folder")
    return tmp_path / "folder"


def test_an_unchanged_folder_is_believed(folder: Path) -> None:
    assert load(Folder.open(folder)).broken == ()
    assert ask("report", str(folder), "--exit-code")[0] == 1, "a regression"
    assert "folder." not in ask("audit", str(folder))[1]
    assert ask("rebuild", str(folder))[0] == 0
    assert ask("show", str(folder))[0] == 0
    assert ask("pack", str(folder), "-o", str(folder.parent / "x.iodelta.tar.zst"))[0] == 0


@pytest.mark.parametrize("what", CHANGES)
def test_no_command_blesses_a_changed_folder(what: str, folder: Path) -> None:
    CHANGES[what](folder)
    derived = (folder / "verdict.json").stat().st_mtime_ns
    for command in ("report", "audit", "rebuild", "show"):
        code, said = ask(command, str(folder))
        assert code not in (0, 3), f"{command}: {said}"
        wrong = r"folder\.|not what was measured|not the original line|changed since|cannot read|damaged"
        assert re.search(wrong, said), said
        assert "improvement" not in said
    assert (folder / "verdict.json").stat().st_mtime_ns == derived, "evidence of what it was"
    place = folder.parent / "x.iodelta.tar.zst"
    code, said = ask("pack", str(folder), "-o", str(place))
    assert code == 4, said
    assert not place.exists()
    if "removed" not in what:
        with pytest.raises(MeasureError):
            pack(Folder.open(folder), machine={})


@pytest.mark.parametrize("what", ["raw files of the two arms exchanged", "a line removed", "the environment edited"])
def test_a_changed_folder_is_no_side_of_a_comparison(what: str, measured: Path, folder: Path) -> None:
    assert ask("compare", str(measured), str(folder))[0] in (0, 1, 3)
    CHANGES[what](folder)
    for sides in ((measured, folder), (folder, measured)):
        code, said = ask("compare", *map(str, sides))
        assert code == 4, said
        assert "not what was measured" in said or "changed since" in said


@pytest.mark.parametrize(
    "name", ["journal.jsonl", "raw/000005.fio.json.zst", "raw/000006.record.zst", "environment.json"]
)
def test_no_single_byte_can_be_changed_unseen(name: str, folder: Path) -> None:
    rng = random.Random(name)
    sound = (folder / name).read_bytes()
    for place in [*(rng.randrange(len(sound)) for _ in range(24)), 0, len(sound) - 1]:
        data = bytearray(sound)
        data[place] ^= rng.choice([1, 2, 4, 8, 16, 32, 64, 128])
        (folder / name).write_bytes(data)
        try:
            seen = bool(load(Folder.open(folder)).broken)
        except MeasureError:
            seen = True
        assert seen, f"byte {place}"


@pytest.mark.parametrize("what", ["raw files of the two arms exchanged", "a line removed", "a word of a line edited"])
def test_the_answer_at_the_top_says_so(what: str, folder: Path) -> None:
    CHANGES[what](folder)
    for format_ in ("console", "mail", "markdown", "json"):
        code, said = ask("report", str(folder), "--format", format_)
        assert code == 4
        if format_ == "json":
            assert json.loads(said)["headline"].startswith("No answer: this folder is not what was measured.")
            assert json.loads(said)["account"]["findings"][0]["severity"] == "hard"
        else:
            assert "No answer" in said
            assert "%" not in said[: said.index("No answer")]


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_said_of_a_changed_folder_is_one_line_that_names_each_place_once(what: str, folder: Path) -> None:
    """It said ``trial 3: trial 3: ...: changed\\x0a  restore ...``: an error's two lines as a reason."""
    CHANGES[what](folder)
    for words in (("report",), ("report", "--verbose"), ("audit",), ("show",)):
        _, said = ask(words[0], str(folder), *words[1:])
        flat = " ".join(said.split())
        assert "\\x0a" not in flat
        assert not re.search(r"\b(trial \d+|\S+\.zst|journal\.jsonl:\d+): \1", flat), flat


def test_a_changed_folder_is_neither_explained_nor_said_to_be_continued(folder: Path) -> None:
    CHANGES["a line torn"](folder)
    code, said = ask("report", str(folder), "--explain", "iodepth=1")
    assert code == 4
    assert said.startswith(f"{folder}: journal.jsonl:10: not what was measured")
    for command in (("report",), ("report", "--verbose")):
        assert "continues it" not in ask(command[0], str(folder), *command[1:])[1]


def test_pages_and_sheets_say_so_too(folder: Path) -> None:
    CHANGES["a line removed"](folder)
    code, page = ask("report", str(folder), "--format", "html")
    assert code == 4
    assert page.index("this folder is not what was measured") < page.index("<table")
    code, sheet = ask("report", str(folder), "--format", "csv")
    assert code == 4
    rows = sheet.splitlines()[1:]
    assert rows
    assert all("folder.line" in row for row in rows)


@pytest.mark.parametrize("what", [name for name in CHANGES if "cut off" not in name])
def test_a_bundle_that_was_changed_is_not_reproduced(
    what: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changed after it was packed, by somebody who makes the list of members fit."""
    made = tmp_path / "sound.iodelta.tar.zst"
    made.write_bytes(pack(Folder.open(folder), machine={}).data)
    sound = Packed(made)
    inside = tmp_path / "inside"
    (inside / "raw").mkdir(parents=True)
    for entry in sound.manifest.members:
        (inside / entry.name).write_bytes(sound.read(entry.name))
    CHANGES[what](inside)
    names = [path.relative_to(inside).as_posix() for path in inside.rglob("*") if path.is_file()]
    place = tmp_path / "strange.iodelta.tar.zst"
    place.write_bytes(packed(sound.manifest, {name: (inside / name).read_bytes() for name in names}))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "target").write_bytes(bytes(1 << 20))
    code, said = ask("reproduce", str(place), "--target", "target", "--dry-run")
    refused = "not a bundle that can be trusted" in said  # a name that no bundle has
    assert code == (2 if refused else 4), said
    assert "Run this here" not in said
    assert ask("report", str(place))[0] == code


def test_a_cut_journal_is_not_gone_on_with(folder: Path) -> None:
    """Whoever does not like the last trials shall not have others in their place."""
    cut_off(folder)
    before = (folder / "journal.jsonl").read_bytes()
    code, said = ask("run", str(folder))
    assert code == 4
    assert "verdict.json was made from 67 lines" in said
    assert (folder / "journal.jsonl").read_bytes() == before


def test_a_journal_that_another_line_was_chained_to_is_not_gone_on_with(folder: Path) -> None:
    edit("journal.jsonl", b'"problem":""', b'"problem":"x"')(folder)
    before = (folder / "journal.jsonl").read_bytes()
    with pytest.raises(MeasureError, match=r"journal\.jsonl:4: not the original line"), Folder.open(folder).writing():
        pass
    assert (folder / "journal.jsonl").read_bytes() == before


def test_a_folder_of_before_the_seal_is_said_to_be_unsealed_and_judged_as_ever(folder: Path) -> None:
    account = load(Folder.open(folder))
    write_lines(folder, [unsealed(line) for line in lines(folder)])
    (folder / "verdict.json").unlink()
    old = load(Folder.open(folder))
    assert [(one.rule, one.severity) for one in old.findings if one.rule.startswith("folder.")] == [
        ("folder.unsealed", "note")
    ]
    assert old.seal is None
    assert (old.judgement, old.exit_code) == (account.judgement, account.exit_code)
    code, said = ask("report", str(folder), "--exit-code")
    assert code == 1
    assert "not seen [folder.unsealed]" in " ".join(said.split()) or "folder.unsealed" in said
    assert "folder.unsealed" in ask("audit", str(folder))[1]
    place = folder.parent / "old.iodelta.tar.zst"
    assert ask("pack", str(folder), "-o", str(place))[0] == 0
    assert not Packed(place).seal.sealed, "packing seals nothing that nobody vouched for"


def unsealed(line: bytes) -> bytes:
    """As it was written before there were seals."""
    event = json.loads(line)
    event.pop("chain")
    event.pop("files", None)
    return json.dumps(event, separators=(",", ":")).encode()


def test_an_exchange_in_an_unsealed_folder_is_seen_by_the_seeds(folder: Path) -> None:
    write_lines(folder, [unsealed(line) for line in lines(folder)])
    exchange_arms("fio.json", "record")(folder)
    code, said = ask("report", str(folder))
    assert code == 4
    assert "fio ran with seed" in said
    assert "improvement" not in said


def test_an_old_folder_that_goes_on_is_sealed_with_all_that_was_before(tmp_path: Path) -> None:
    made = carried(tmp_path / "folder", blocks=2, end=None, secret=False)
    write_lines(made.path, [unsealed(line) for line in lines(made.path)])
    again = Folder.open(made.path)
    with again.writing():
        again.append(Ended(9000.0, "interrupted"))
    assert again.events()[-1] == Ended(9000.0, "interrupted")
    assert load(again).broken == ()
    assert (again.seal.unsealed, again.seal.lines) == (len(lines(made.path)) - 1, len(lines(made.path)))
    edit("journal.jsonl", b'"problem":""', b'"problem":"x"')(made.path)
    assert [one.rule for one in load(Folder.open(made.path)).broken] == ["folder.line"]


def test_the_chain_is_what_the_documentation_says_it_is(folder: Path) -> None:
    """Made anew by another hand from the same lines and files, it is the same to the byte."""
    before = (folder / "journal.jsonl").read_bytes()
    forge(Folder.open(folder))
    assert (folder / "journal.jsonl").read_bytes() == before


def test_a_forger_who_seals_everything_anew_is_not_seen_and_the_quoted_seal_tells(folder: Path) -> None:
    quoted = load(Folder.open(folder)).seal
    assert quoted is not None
    edit_result(folder)
    forge(Folder.open(folder))
    (folder / "verdict.json").unlink()
    forged = load(Folder.open(folder))
    assert forged.broken == ()
    assert forged.seal is not None
    assert forged.seal.chain != quoted.chain


def test_the_raw_files_of_one_trial_in_flight_are_no_sign_of_a_cut_journal(tmp_path: Path) -> None:
    made = carried(tmp_path / "folder", blocks=2, end=None, secret=False)
    with made.writing():
        made.append(Started(9000.0, 99, "iodepth=1", 9, 0, 0, "fast", 1))
    made.write_raw(99, {"fio.json": b"{}", "record": b"{}"})
    assert load(Folder.open(made.path)).broken == ()
    made.write_raw(100, {"fio.json": b"{}", "record": b"{}"})
    assert [one.rule for one in load(Folder.open(made.path)).broken] == ["folder.cut"]


def test_a_bundle_names_the_seal_of_the_folder_it_was_made_of(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "x.iodelta.tar.zst"
    place.write_bytes(pack(Folder.open(folder), machine={}).data)
    account = load(Folder.open(folder))
    assert account.seal is not None
    assert Packed(place).manifest.seal == account.seal.chain
    assert load(Packed(place)).judgement == account.judgement
