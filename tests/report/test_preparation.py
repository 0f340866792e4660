"""What is said of the preparation of a disk, and its picture."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from pages import whole
from prepared_disk import FALLING, disk
from test_console import account, experiment

from iodelta.experiment import Prepare
from iodelta.lab.account import Account
from iodelta.lab.folder import StepBegun, StepDone
from iodelta.report.formats.charts.specs import filled
from iodelta.report.formats.charts.times import rounds_of
from iodelta.report.formats.console import lines
from iodelta.report.formats.terminal import lines as of_story
from iodelta.report.stories.preparation import DRAWN, answer, of_preparation, pictures
from iodelta.report.stories.story import Detail, Section
from iodelta.study.preparation import DiskAccount, PrepareAnswer

ROOT = Path(__file__).parents[2]


def test_the_answer_names_the_window_and_both_limits() -> None:
    said = answer(disk())
    assert said.startswith("Steady after 10 rounds: rounds 6 to 10 range over 3.3 % of their average of 3,002 IOPS")
    assert "(20 % allowed) and change by -0.7 % (10 % allowed)" in said


@pytest.mark.parametrize(
    ("values", "state", "words"),
    [
        (FALLING[:6], "not steady", "Not steady after 6 rounds: the last 5 range over"),
        (FALLING[:3], "running", "Not finished: 3 complete rounds so far."),
        (FALLING[:3], "not steady", "no 5 in a row without a pause"),
        ((), "running", "Not finished: 0 complete rounds so far."),
    ],
)
def test_a_disk_that_is_not_steady_is_never_called_so(values: tuple[float, ...], state: str, words: str) -> None:
    said = answer(disk(values, state=state))
    assert words in said
    assert not said.startswith("Steady")


def section_of(prepared: DiskAccount, title: str) -> Section:
    (found,) = [one for one in of_preparation(PrepareAnswer("one", prepared, "1")).sections if one.title == title]
    return found


@pytest.mark.parametrize("state", ["steady", "not steady", "running"])
def test_a_preparation_says_what_the_machine_was_and_how_to_do_it_again(state: str) -> None:
    machine = (("kernel", "6.18.1"), ("fio", "3.39"))
    story = of_preparation(PrepareAnswer("one", disk(state=state), "1", machine))
    texts = {section.title: [item.text for item in section.items] for section in story.sections}
    assert texts["System"] == ["kernel: 6.18.1", "fio: 3.39"]
    assert texts["To do it again"] == ["iodelta prepare FOLDER/experiment.toml --destroy /dev/sdb"]
    to_go_on = ["iodelta prepare FOLDER --destroy /dev/sdb"]
    assert texts.get("To go on", []) == ([] if state == "steady" else to_go_on)


@pytest.mark.parametrize(("kind", "noun"), [("purge", "purges"), ("fill", "parts"), ("round", "rounds")])
def test_what_a_step_without_an_end_wrote_is_called_unknown_never_nothing(kind: str, noun: str) -> None:
    whole = disk((), state="running")
    asked = Prepare(purge="discard")
    killed = replace(whole, prepare=asked, filled=0, purged=False, unfinished={kind: 2})
    method = " ".join(item.text for item in section_of(killed, "Method").items)
    assert method.count(f"not known: what 2 {noun} without an end did") == 1
    assert "wrote 0 B" not in method


def test_steps_without_an_end_are_those_that_began_once_more_than_they_ended() -> None:
    """A step that is made again has the number of the one that was killed."""
    again = StepBegun(0.0, 2, "fill", "m")
    begun = (StepBegun(0.0, 1, "purge", "m"), again, again, StepBegun(0.0, 3, "round", "m"))
    done = (StepDone(0.0, 1, "purge", 0.0, 1.0, 5, "m"), StepDone(0.0, 2, "fill", 0.0, 1.0, 5, "m"))
    other = StepBegun(0.0, 4, "purge", "another")
    account = Account((*begun, *done, other))
    assert account.unfinished("m") == {"fill": 1, "round": 1}
    assert account.unfinished("another") == {"purge": 1}


def test_rounds_that_look_steady_but_wrote_too_little_say_why_they_do_not_count() -> None:
    said = answer(disk((9000.0,) * 6, state="not steady"))
    assert "but complete rounds had written only 10 % of the size before them, and up to 30 % a disk may still" in said


@pytest.mark.parametrize("count", [1, 4, 5, 10, 28, 29, 200])
def test_the_picture_of_characters_fits_a_mail_at_every_length(count: int) -> None:
    values = [1000.0 + at for at in range(count)]
    story = of_preparation(PrepareAnswer("one", disk(values), "1"))
    (drawn,) = [one for one in story.sections if one.drawing]
    widths = {len(item.text) for item in drawn.items}
    assert len(widths) == 1
    assert widths.pop() <= 70
    assert sum(row.cells[-1].text == "*" for row in story.tables[0].rows) == (5 if count >= 5 else 0)


@pytest.mark.parametrize(
    ("more", "said"), [(0, ""), (1, "The first round is left out."), (3, "The first 3 rounds are left out.")]
)
def test_rounds_that_the_picture_leaves_out_are_counted(more: int, said: str) -> None:
    _, how = pictures(disk([500.0] * (DRAWN + more)))
    assert how.items[0].text.endswith(said or "marked *.")


def test_the_chart_shades_the_window_of_five_rounds() -> None:
    made = rounds_of(disk())
    (window,) = made.extra["window"]
    assert (window["first"], window["last"]) == (5.5, 10.5)
    assert window["average"] == pytest.approx(sum(FALLING[5:]) / 5, rel=1e-5)
    assert [row["iops"] for row in made.rows] == list(FALLING)
    assert len(made.table) == 10
    assert not re.search(r'"@', str(filled(made)))


def test_everything_about_an_experiment_says_how_its_disk_was_prepared() -> None:
    prepared = disk()
    found = replace(account(experiment(), {}), prepared=(prepared,))
    told = " ".join(" ".join(line.plain for line in lines(found, 80, verbose=True)).split())
    assert f"Preparation of the disk {prepared.path}: {answer(prepared)}" in told
    assert "Round by round" in told
    assert told.count("o o o") > 3
    assert "Preparation of the disk" not in " ".join(line.plain for line in lines(found, 80)), "it fits one screen"


def test_the_example_in_the_documentation_is_what_was_measured() -> None:
    measured = msgspec.json.decode((ROOT / "benchmarks/gallery/rounds.json").read_bytes(), type=PrepareAnswer)
    page = whole("prepare-a-disk")
    (drawn,) = [one for one in of_preparation(measured).sections if one.drawing]
    printed = [line.strip() for line in page.splitlines()]
    begin = printed.index(drawn.items[0].text.strip())
    assert printed[begin : begin + len(drawn.items)] == [item.text.strip() for item in drawn.items]
    assert answer(measured.disk) in " ".join(page.split())


def test_one_screen_holds_the_rounds_and_names_the_command_for_the_method() -> None:
    story = of_preparation(PrepareAnswer("prep", disk(), "1"), Detail(folder="prep"))
    screen, whole = ([line.plain for line in of_story(story, whole=each)] for each in (False, True))
    assert "All details: `iodelta report prep --verbose`" in screen
    assert not any("SNIA" in line for line in screen)
    assert any("SNIA" in line for line in whole)
    assert len(screen) < len(whole)
