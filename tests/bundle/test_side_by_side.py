"""Both sides of a reproduction: matched, judged, explained by what differs, and fit for any terminal."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import pytest
from carried import BY_ID, ENVIRONMENT, QUESTION, carried, forge

from iodelta.bundle.packed import Packed
from iodelta.bundle.packing import pack
from iodelta.lab.folder import Folder
from iodelta.report.documents import written
from iodelta.report.formats.html.pages import html_of
from iodelta.report.formats.render import TEXTS, rendered
from iodelta.report.formats.terminal import lines
from iodelta.report.stories.reproduction import headline, of_reproduction
from iodelta.study.reproduction import (
    Effect,
    Reproduced,
    Side,
    own_side,
    side_at,
    side_by_side,
)

THERE = "| kernel | IOPS |\n|---|---|\n| v6.19 | 36M |\n| sheaves | 13M |\n"
HERE = "| kernel | IOPS |\n|---|---|\n| before the merge | 19M |\n| 815c8e35 merged | 14M |\n"


def text_of(found: Reproduced) -> str:
    told = "\n".join(line.plain for line in lines(of_reproduction(found)))
    assert max(map(len, told.splitlines())) <= 80
    return told


def test_64_percent_there_and_26_here_is_the_same_direction_and_not_the_same_size(tmp_path: Path) -> None:
    """The slab report and its confirmation on another machine, as their mails give the numbers."""
    (tmp_path / "there.md").write_text(THERE)
    (tmp_path / "here.md").write_text(HERE)
    found = side_by_side(side_at(str(tmp_path / "there.md")), side_at(str(tmp_path / "here.md")), 0.01)
    (one,) = found.matched
    assert one.found.word == "same direction, not the same size"
    assert headline(found) == "Same direction, not the same size, as printed."
    assert "30 % of it" in " ".join(text_of(found).split())
    assert "single run, of unknown spread" in " ".join(text_of(found).split())
    assert found.exit_code == 3


def test_the_same_on_the_same_machine_is_reproduced(tmp_path: Path) -> None:
    there = own_side(bundle(tmp_path, carried(tmp_path / "there", -0.2)))
    here = own_side(carried(tmp_path / "here", -0.2, seed=2))
    found = side_by_side(there, here, 0.01)
    assert {one.found.word for one in found.matched} == {"reproduced"}
    assert found.exit_code == 0
    assert "No likely confounder is known to differ" in " ".join(text_of(found).split())
    assert {one.there.cell for one in found.matched} == {"iodepth=1", "iodepth=4"}


def test_a_change_without_a_counterpart_is_not_reproduced(tmp_path: Path) -> None:
    """A run that was ended before it came to a cell said ``reproduced`` with exit code 0."""
    there = own_side(bundle(tmp_path, carried(tmp_path / "there", -0.2)))
    here = own_side(carried(tmp_path / "here", -0.2, seed=2))
    kept = tuple(effect for effect in here.effects if effect.cell != "iodepth=4")
    found = side_by_side(there, msgspec.structs.replace(here, effects=kept), 0.01)
    assert {one.found.word for one in found.matched} == {"reproduced"}
    missing = len(there.effects) - len(kept)
    assert headline(found).endswith(f" Nothing here answers {missing} changes shown there.")
    assert found.exit_code == 3


def test_what_does_not_reproduce_comes_with_what_could_explain_it(tmp_path: Path) -> None:
    there = own_side(bundle(tmp_path, carried(tmp_path / "there", {"iodepth=1": -0.2, "iodepth=4": -0.2})))
    folder = carried(tmp_path / "here", {"iodepth=1": -0.05, "iodepth=4": -0.2}, seed=2)
    kernel = {**ENVIRONMENT["kernel"], "clocksource": "hpet"}
    folder.write_struct("environment.json", {**ENVIRONMENT, "kernel": kernel, "host": {"name": "elsewhere"}})
    found = side_by_side(there, own_side(forge(folder)), 0.01)
    told = {(one.there.cell, one.there.metric): one.found.word for one in found.matched}
    assert told["iodepth=1", "read.iops"] == "same direction, not the same size"
    assert told["iodepth=4", "read.iops"] == "reproduced"
    assert found.exit_code == 1
    text = text_of(found)
    assert "What could explain it" in text
    assert "kernel.clocksource: tsc | hpet" in text
    assert "elsewhere" not in text


def test_cells_and_variants_of_one_side_are_named(tmp_path: Path) -> None:
    there = own_side(carried(tmp_path / "there"))
    short = QUESTION.format(path=BY_ID, blocks=12).replace("iodepth = [1, 4]", "iodepth = [1, 8]")
    here = own_side(carried(tmp_path / "here", text=short))
    found = side_by_side(there, here, 0.01)
    assert "iodepth=4, slow, read.iops" in found.only_there
    assert "iodepth=8, slow, read.iops" in found.only_here
    assert "There: iodepth=4" in text_of(found)


def test_every_format_says_the_word_both_systems_and_how_to_do_it_again(tmp_path: Path) -> None:
    again = "iodelta reproduce theirs.iodelta.tar.zst --against here"
    sides = own_side(carried(tmp_path / "there", -0.2)), own_side(carried(tmp_path / "here", -0.2, seed=2))
    found = side_by_side(*sides, 0.01, again=[again])
    texts = {format_: rendered(found, format_).decode() for format_ in TEXTS} | {"html": html_of(found, ()).decode()}
    texts["console"] = text_of(found)
    assert "System: kernel 6.18.1, fio 3.33" in texts["console"], "both are alike, and one line says so"
    for format_, text in texts.items():
        flat = " ".join(text.replace("\\", "").split())
        assert "reproduced" in flat
        assert again in flat
        if format_ not in ("csv", "json", "console"):
            assert flat.count("Testor 3000") == 2
    rows = list(csv.DictReader(texts["csv"].splitlines()))
    assert [row["found.word"] for row in rows] == [one.word for one in found.matched]
    assert float(rows[0]["there.value"]) == found.matched[0].there.value


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text(THERE)
    found = side_by_side(side_at(str(tmp_path / "t.md")), own_side(carried(tmp_path / "here")), 0.01)
    assert headline(found) == "The two sides have no measurement in common."
    assert found.exit_code == 4


@pytest.mark.parametrize(
    "evil", ["\x1b[2J\x1b]0;owned\x07", "<script>alert(1)</script>", "[red]x[/red]", "\u202eabc", "=1+1"]
)
def test_names_of_strangers_are_inert(evil: str) -> None:
    effect = Effect(evil, evil, "read.iops", -0.2, -0.21, -0.19, 12, "blocks")
    environment = {"kernel": {"release": evil}, "devices": 5, "cpu": [evil], evil: {evil: evil}}
    side = Side(evil, evil, (effect,), environment, evil, evil)
    other = Side("here", "a", (effect,), {"kernel": {"release": "6.1"}, "devices": [{"name": evil}]}, "", "")
    found = side_by_side(side, other, 0.01, (evil,))
    text = "\n".join((text_of(found), *(rendered(found, name).decode() for name in ("mail", "markdown", "csv"))))
    assert not any(ord(char) < 32 and char != "\n" for char in text)
    assert "\u202e" not in text
    assert "\x1b" not in written(found).decode()
    assert msgspec.json.decode(written(found))["matched"][0]["found"]["word"] == "reproduced"


def bundle(tmp_path: Path, folder: Folder) -> Packed:
    place = tmp_path / "x.iodelta.tar.zst"
    place.write_bytes(pack(folder, machine={}).data)
    return Packed(place)


def test_what_carry_over_may_have_made_on_a_side_is_not_called_reproduced() -> None:
    """It makes the same change on both: an improvement of 2 % that is in truth a debt left to the next trial."""
    clean = Effect("c", "new", "read.iops", 0.02, 0.018, 0.022, 80, "blocks", None, 80)
    why = "improvement is withheld: what a trial of new leaves to the next trial could make it"
    held = msgspec.structs.replace(clean, withheld=why)

    def word(there: Effect, here: Effect) -> tuple[str, str]:
        found = side_by_side(Side("there", "old", (there,)), Side("here", "old", (here,)), 0.01)
        return found.matched[0].word, found.matched[0].found.says

    assert word(clean, clean)[0] == "reproduced"
    assert word(held, held) == ("inconclusive", f"there, {why}")
    assert word(clean, held) == ("inconclusive", f"here, {why}")
    gone = msgspec.structs.replace(held, value=0.0, low=-0.002, high=0.002)
    assert word(clean, gone)[0] == "not seen here", "what is not there needs no excuse"
