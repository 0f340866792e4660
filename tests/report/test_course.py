"""The series of a history in a terminal and as a page: its points, steps and epochs are all there, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from playwright.sync_api import Browser, Page
from test_html import Watched, outward
from test_html_everywhere import COLLIDING, NAMELESS

from iodelta.history.answers import HistoryPoint
from iodelta.history.commits import Order
from iodelta.history.courses import Course, courses_of
from iodelta.history.points import Key
from iodelta.history.scan import scanned
from iodelta.history.store import Line
from iodelta.report.formats.charts.course import charts_of
from iodelta.report.formats.html.page import page
from iodelta.report.formats.html.write import report
from iodelta.report.formats.spark import spark
from iodelta.report.stories.course import day, of_courses

NIGHTS, STEP, EPOCH = 60, 40, 20
HOSTILE = "</script><script>document.title='owned'</script>"


FACTS = {f"x{number}": {"fio.version": "fio-3.33" if number < EPOCH else "fio-3.36"} for number in range(NIGHTS)}


def point(number: int, *, ratio: bool = True) -> HistoryPoint:
    """The night of that number: 2 % slower from ``STEP`` on, another epoch from ``EPOCH`` on."""
    noise = 0.001 * float(np.random.default_rng(number).standard_normal())
    cost = 0.02 * (number >= STEP) + noise
    epoch = "old" if number < EPOCH else "new"
    ratios = (cost, 0.002) if ratio else (None, None)
    return HistoryPoint(1.7e9 + 86400 * number, f"x{number}", epoch, "", f"v{number}", 11.0 - cost, 0.01, *ratios)


def line(points: list[HistoryPoint], *, cell: str = "randread 4k", role: str = "") -> Line:
    """A series of those points."""
    key = Key("stor3", (("cell", cell),), (), (), role, "read.iops", "block")
    return Line(key, cell, "new", "higher", "IOPS", tuple(points))


def history(*found: Line) -> list[Course]:
    return courses_of(found, scanned(found, Order()), facts=FACTS)


@pytest.fixture(scope="module")
def found() -> list[Course]:
    """A series with a reference, one without, and one whose cell has a hostile name."""
    whole = [point(number) for number in range(NIGHTS)]
    alone = [point(number, ratio=False) for number in range(NIGHTS)]
    return history(line(whole), line(alone, cell="randwrite 4k"), line(whole[:2], cell=HOSTILE))


def test_bars_marks_and_epochs_stand_above_each_other(found: list[Course]) -> None:
    bars, marks = spark(found[0])
    assert len(bars) == NIGHTS + 1
    assert bars.index("|") == EPOCH
    assert marks.index("^") == STEP + 1  # one column more: the bar of the epoch stands before it
    assert set(bars[:STEP]) - {"|"} <= set("▅▆▇█")
    assert set(bars[STEP + 1 :]) <= set("▁▂▃▄")
    assert spark(found[0], "12345678")[0].isascii()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_short_series_are_told_too(count: int) -> None:
    (course,) = history(line([point(number) for number in range(count)]))
    bars, marks = spark(course)
    assert (len(bars), marks) == (count, "")
    story = of_courses([course], count)
    assert "no step" in story.answer
    assert b"<main>" in report(page(story, None, charts_of([course])))


def moved(one: HistoryPoint, by: float) -> HistoryPoint:
    """The same night with another ratio."""
    return msgspec.structs.replace(one, r=(one.r or 0.0) + by)


@pytest.mark.parametrize("by", [0.5, -0.5])
def test_a_lone_night_does_not_stretch_the_scale_and_is_marked(by: float) -> None:
    """Its neighbours stay as far apart as without it, and a step beside it stays as large."""
    points = [point(number) for number in range(NIGHTS)]
    bars, marks = spark(history(line(points))[0], "12345678")
    points[30] = moved(points[30], by)
    drawn, marked = spark(history(line(points))[0], "12345678")
    place = 31  # a column more: the bar of the epoch
    assert drawn[:place] + drawn[place + 1 :] == bars[:place] + bars[place + 1 :]
    assert drawn[place] == ("1" if by > 0 else "8")  # positive is worse, and the bar goes where the number does
    assert (marked[place], marked.count("!"), marks.count("!")) == ("!", 1, 0)


def test_a_step_is_told_once_with_size_and_range_and_an_epoch_with_what_differs(found: list[Course]) -> None:
    story = of_courses(found[:1], NIGHTS)
    (step,) = story.lead[0].items
    for expected in ("(worse) against the reference", "-1.9", "v39", "v40"):
        assert expected in step.text
    epochs = next(section for section in story.sections if section.title == "Epochs")
    start = day(1.7e9 + 86400 * EPOCH)
    assert [item.text for item in epochs.items] == [f"stor3, from {start}: fio.version: fio-3.33 -> fio-3.36."]


def test_charts_have_every_point_with_its_interval_and_the_levels_between_steps(found: list[Course]) -> None:
    ratio, value = charts_of(found[:1])[0][1]
    assert len(ratio.rows) == len(value.rows) == len(value.table) == NIGHTS
    for row, own in zip(value.rows, found[0].line.points, strict=True):
        assert row["low"] == pytest.approx(math.exp(own.y - 1.96 * own.se), rel=1e-4)
        assert row["value"] == pytest.approx(math.exp(own.y), rel=1e-4)
        assert row["t"] == round(1000 * own.t)
    # Fewer IOPS are worse, and the chart goes down where the number does.
    assert [round(flat["value"]) for flat in ratio.extra["flats"]] == [0, 0, -2]
    assert len(ratio.extra["steps"]) == 1
    assert value.extra["steps"] == []


def test_two_series_of_one_name_are_told_apart_by_their_role() -> None:
    own, foreign = line([point(1)]), line([point(1)], role="foreign")
    assert [course.name.endswith("(foreign)") for course in history(own, foreign)] == [False, True]


@pytest.fixture(scope="module")
def file(found: list[Course], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("series") / "page.html"
    path.write_bytes(report(page(of_courses(found, NIGHTS), None, charts_of(found))))
    return path


@pytest.fixture(params=[320, 768, 1440])
def watched(browser: Browser, file: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    made = Watched(browser.new_page(viewport={"width": request.param, "height": 900}))
    made.open(file)
    yield made
    made.page.close()


DRAWN = "all => all.map(one => one.querySelectorAll('.mark-symbol path').length)"


def test_the_page_draws_every_night_asks_nobody_and_fits(watched: Watched, found: list[Course]) -> None:
    shown: Page = watched.page
    expected = [len(figure.rows) for _, own in charts_of(found) for figure in own]
    assert shown.locator(".plot").evaluate_all(DRAWN) == expected
    assert watched.wrong == []
    assert outward(shown) == []
    assert shown.title() != "owned"
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.evaluate(NAMELESS) == []
    assert shown.evaluate(COLLIDING) == []
