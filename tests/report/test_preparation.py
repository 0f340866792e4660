"""What is said of the preparation of a disk, and its picture."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from prepared_disk import FALLING, disk

from iodelta.report.formats.charts.rounds import figure
from iodelta.report.formats.charts.specs import filled
from iodelta.report.stories.preparation import answer, of_preparation
from iodelta.study.preparation import PrepareAnswer

ROOT = Path(__file__).parents[2]


def test_the_answer_names_the_window_and_both_limits() -> None:
    said = answer(disk())
    assert said.startswith("Steady after 10 rounds: rounds 6 to 10 range over 3.3 % of their average of 3,002 IOPS")
    assert "(20 % allowed) and change by -0.7 % (10 % allowed)" in said


@pytest.mark.parametrize(
    ("values", "state", "words"),
    [
        (FALLING[:6], "not steady", "Not steady after 6 rounds: the last 5 range over"),
        (FALLING[:3], "running", "Not finished: 3 rounds so far."),
        (FALLING[:3], "not steady", "no 5 in a row without a rest"),
        ((), "running", "Not finished: 0 rounds so far."),
    ],
)
def test_a_disk_that_is_not_steady_is_never_called_so(values: tuple[float, ...], state: str, words: str) -> None:
    said = answer(disk(values, state=state))
    assert words in said
    assert not said.startswith("Steady")


def test_rounds_that_look_steady_but_wrote_too_little_say_why_they_do_not_count() -> None:
    said = answer(disk((9000.0,) * 6, state="not steady"))
    assert "but rounds had written only 10 % of the size before them, and up to 30 % a disk may still" in said


@pytest.mark.parametrize("count", [1, 4, 5, 10, 28, 29, 200])
def test_the_picture_of_characters_fits_a_mail_at_every_length(count: int) -> None:
    values = [1000.0 + at for at in range(count)]
    story = of_preparation(PrepareAnswer("one", disk(values), "1"))
    (drawn,) = [one for one in story.sections if one.drawing]
    widths = {len(item.text) for item in drawn.items}
    assert len(widths) == 1
    assert widths.pop() <= 70
    assert sum(row.cells[-1].text == "*" for row in story.tables[0].rows) == (5 if count >= 5 else 0)


def test_the_heights_of_the_picture_are_those_of_the_values() -> None:
    story = of_preparation(PrepareAnswer("one", disk((800.0, 400.0, 100.0, 800.0, 800.0)), "1"))
    (drawn,) = [one for one in story.sections if one.drawing]
    columns = [[line.text[12 + 2 * at] for line in drawn.items[:-1]] for at in range(5)]
    assert [sum(mark != " " for mark in column) for column in columns] == [8, 4, 1, 8, 8]


def test_the_chart_shades_the_window_of_five_rounds() -> None:
    made = figure(disk())
    (window,) = made.extra["window"]
    assert (window["first"], window["last"]) == (5.5, 10.5)
    assert window["average"] == pytest.approx(sum(FALLING[5:]) / 5, rel=1e-5)
    assert [row["iops"] for row in made.rows] == list(FALLING)
    assert len(made.table) == 10
    assert not re.search(r'"@', str(filled(made)))


def test_the_example_in_the_documentation_is_what_was_measured() -> None:
    measured = msgspec.json.decode((ROOT / "benchmarks/gallery/rounds.json").read_bytes(), type=PrepareAnswer)
    page = (ROOT / "docs/prepare-a-disk.md").read_text()
    (drawn,) = [one for one in of_preparation(measured).sections if one.drawing]
    lines = [line.strip() for line in page.splitlines()]
    begin = lines.index(drawn.items[0].text.strip())
    assert lines[begin : begin + len(drawn.items)] == [item.text.strip() for item in drawn.items]
    assert answer(measured.disk) in " ".join(page.split())
