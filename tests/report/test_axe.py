"""Every kind of page, as a screen reader and a small screen need it: axe (public rules for accessibility) finds nothing
wrong, and each page needs only its own file, on a phone, on a wide screen, in light, in the dark and on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest
from browsers import PATIENCE
from playwright.sync_api import Browser, Page
from prepared_disk import disk
from test_course import NIGHTS, history, line, point
from test_html import Watched, file, outward, told
from test_html_everywhere import COLLIDING
from test_values_in_browser import ALIKE, CUT_OFF, POWERS, TWINS
from tiers import one_at_push

from benchmarks.gallery.__main__ import unpacked
from benchmarks.gallery.theirs import DISKS
from iodelta.audit import audit
from iodelta.report.formats.charts.course import charts_of as charts_of_history
from iodelta.report.formats.charts.times import rounds_of
from iodelta.report.formats.html.page import LONG, MANY
from iodelta.report.formats.html.page import page as page_of
from iodelta.report.formats.html.pages import charts_of, charts_of_runs, html_of
from iodelta.report.formats.html.write import report
from iodelta.report.stories.course import of_courses
from iodelta.report.stories.preparation import of_preparation
from iodelta.study.comparison import compare
from iodelta.study.paths import read_one
from iodelta.study.preparation import PrepareAnswer
from iodelta.study.runs import shown

__all__ = ["file", "told"]

KINDS = ("report", "show", "compare", "prepare", "history", "folded")

DESK = 1440

SCREENS = {"phone": (320, "light"), "phone in the dark": (390, "dark"), "desk": (DESK, "light")}

BROKEN = """
async () => {
  const found = await axe.run({ exclude: [".plot svg"] }, { resultTypes: ["violations"] });
  return found.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes[0].html.slice(0, 160)}`);
}
"""
"""Rules of axe that a page breaks, each with the first element that does. The inside of a chart is hidden from screen
readers: the element around it has its name."""


@pytest.fixture(scope="module")
def pages(file: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind: of fio's results, of two disks, of an experiment, of a preparation, of a history, and one
    with more charts and rows than stand open."""
    folder = tmp_path_factory.mktemp("pages")
    results = unpacked(folder / "results")
    for path in results.rglob(
        "randread-*.json"
    ):  # axe looks at every element, and a third of the runs has all charts too
        if not re.fullmatch(r"randread-(1|4|16)-[12]\.json", path.name):
            path.unlink()
    paths = [str(results / name) for name in DISKS[:2]]
    layouts = [read_one(path) for path in paths]
    one = shown(layouts[0], audit(entry.run for entry in layouts[0].entries), each=False, paths=["disk-a"])
    several = compare(layouts, paths)
    prepared = of_preparation(PrepareAnswer("one", disk(), "1"))
    many = disk(tuple(1000.0 + at for at in range(LONG + 1)))
    drawn = [msgspec.structs.replace(rounds_of(many), name=f"rounds-{at}") for at in range(MANY + 1)]
    courses = history(line([point(number) for number in range(NIGHTS)]))
    made = {
        "show": html_of(one, charts_of_runs(layouts[0])),
        "compare": html_of(several, charts_of(several, layouts, paths)),
        "prepare": report(page_of(prepared, None, (("Preparation", (rounds_of(disk()),)),))),
        "history": report(page_of(of_courses(courses, NIGHTS), None, charts_of_history(courses))),
        "report": file.read_bytes(),
        "folded": report(page_of(of_preparation(PrepareAnswer("one", many, "1")), None, (("Rounds", tuple(drawn)),))),
    }
    for name, data in made.items():
        (folder / f"{name}.html").write_bytes(data)
    return {name: folder / f"{name}.html" for name in KINDS}


@pytest.fixture(params=SCREENS)
def screen(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Watched]:
    width, scheme = SCREENS[request.param]
    dark = "dark" if scheme == "dark" else "light"
    watched = Watched(browser.new_page(viewport={"width": width, "height": 900}, color_scheme=dark))  # type: ignore[arg-type]
    yield watched
    watched.page.close()


def violations(page: Page) -> list[str]:
    """What axe says of the page as it is."""
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text())
    found: list[str] = page.evaluate(BROKEN)
    return found


@pytest.mark.parametrize("kind", one_at_push(KINDS))
def test_no_rule_of_accessibility_is_broken_and_nothing_is_cut_off(
    screen: Watched, pages: dict[str, Path], kind: str
) -> None:
    page = screen.open(pages[kind])
    folds = page.locator("details.more")
    assert kind != "folded" or folds.count() == 2
    folds.evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert page.locator(".plot").count() == page.locator(".plot.drawn svg").count() >= 1
    assert violations(page) == []
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate(TWINS) == []
    assert kind == "folded" or page.evaluate(ALIKE) == []  # its charts are copies of one
    assert page.evaluate(POWERS) == []
    assert page.evaluate(COLLIDING) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert outward(page) == []
    if page.viewport_size == {"width": DESK, "height": 900}:
        page.emulate_media(media="print")
        assert violations(page) == [], "on paper"
    assert screen.wrong == [], "errors, or requests to others"


def test_axe_finds_what_is_broken(browser: Browser, pages: dict[str, Path]) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(pages["prepare"].as_uri())
    page.evaluate("document.documentElement.removeAttribute('lang')")
    assert [one.partition(":")[0] for one in violations(page)] == ["html-has-lang"]
    page.close()
