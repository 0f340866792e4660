"""Pages of results as a browser shows them: legible on every screen, from one run to hundreds of cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from browsers import resize
from fio_files import write
from msgspec.structs import replace
from playwright.sync_api import Browser
from test_charts import source
from test_html import Watched, file, html, told
from test_html_everywhere import COLLIDING, NAMELESS
from test_inert import hostile_account
from waiting import until

from iodelta.audit import audit
from iodelta.ingest.layouts import Layout, read_layout
from iodelta.report.formats.charts import changes, figures
from iodelta.report.formats.charts.sources import of_layout
from iodelta.report.formats.html.page import MANY
from iodelta.report.formats.html.pages import charts_of, charts_of_runs, html_of
from iodelta.study.comparison import compare
from iodelta.study.runs import shown
from iodelta.study.values import Place, of_samples
from iodelta.trial import Direction, Quantity

__all__ = ["file", "told"]

WIDTHS = (320, 390, 768, 1280, 1920)

ALIKE = """
() => {
  const names = [...document.querySelectorAll("[role=region][aria-label]")].map((one) => one.ariaLabel);
  return names.filter((name, at) => names.indexOf(name) !== at);
}
"""
"""Regions that a screen reader cannot tell apart: axe's rule landmark-unique."""

CUT_OFF = """
() => [...document.querySelectorAll(".plot")].flatMap((plot) => {
  const edge = plot.getBoundingClientRect().right + 1;
  return [...plot.querySelectorAll(".role-legend text, .role-axis-label text, .role-axis-title text")]
    .filter((text) => text.textContent && text.getBoundingClientRect().right > edge)
    .map((text) => `${plot.id}: ${text.textContent}`);
})
"""
"""Words of a legend or an axis that leave their chart."""

COVERED = """
() => [...document.querySelectorAll(".copied")].flatMap((frame) => {
  const button = frame.querySelector("button").getBoundingClientRect();
  const range = document.createRange();
  const pre = frame.querySelector("pre");
  range.selectNodeContents(pre);
  const end = pre.getBoundingClientRect().right;  // what runs on beyond it is scrolled to
  return [...range.getClientRects()]
    .filter((line) => line.top < button.bottom && line.bottom > button.top)
    .map((line) => Math.min(line.right, end) - button.left)
    .filter((covered) => covered > 0);
})
"""
"""How far lines of commands reach under the button that copies them."""

UNEVEN = """
() => [...document.querySelectorAll(".plot svg .role-axis-label")].flatMap((axis) => {
  const seen = (one) => one.textContent && one.getAttribute("opacity") !== "0";
  const shown = [...axis.querySelectorAll("text")].filter(seen).map((one) => one.textContent);
  if (!shown.some((text) => parseFloat(text) === 0)) return [];
  const unit = { k: 1e3, M: 1e6 };
  const number = (text) => parseFloat(text.replace("\u2212", "-").replaceAll(",", "")) * (unit[text.at(-1)] ?? 1);
  const values = shown.map(number).sort((one, other) => one - other);
  const steps = values.slice(1).map((value, at) => value - values[at]);
  return Math.max(...steps) > 1.01 * Math.min(...steps) ? [`${axis.closest(".plot").id}: ${shown}`] : [];
})
"""
"""Linear axes, which have a 0, whose numbers stand at uneven steps, as if the scale were bent."""

LABELS = """
(button) => {
  window.labels = [];
  new MutationObserver(() => window.labels.push(button.textContent)).observe(button, { childList: true });
}
"""
"""Keeps every label that a button gets: *Copied* is gone after 2 s, in which a busy machine need not look at it."""

POINTS = COLLIDING.replace(".plot svg .role-axis-label", "[id^=plot-knee] svg .mark-text")
"""Labels of points that meet."""

SEEN = """() => [...document.querySelectorAll(".plot")].filter((one) => one.checkVisibility()).length"""
"""How many charts can be seen."""

POWERS = """
() => [...document.querySelectorAll(".plot svg .role-axis-label text")].map((one) => one.textContent)
  .filter((text) => /\\de\\+?\\d/.test(text))
"""
"""Numbers of an axis with a power of ten: ``3e+1`` is neither 25 nor 30 to a reader."""


RAGGED = """
() => [...document.querySelectorAll("table")].flatMap((table) => {
  const at = [...table.querySelectorAll("thead th")].findIndex((one) => one.textContent === "variant");
  const cells = [...table.rows].map((row) => row.cells[at]).filter((one) => one?.textContent);
  const lefts = cells.map((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return Math.round(range.getBoundingClientRect().left);
  });
  return new Set(lefts).size > 1 ? [[...new Set(lefts)]] : [];
})
"""
"""Columns of names that do not begin below each other: next to a long name a short one is off a phone's screen."""

TWINS = """
() => [...document.querySelectorAll(".plot svg .role-axis-label")].flatMap((axis) => {
  const shown = [...axis.querySelectorAll("text")].map((one) => one.textContent).filter(Boolean);
  return shown.filter((text, at) => shown.indexOf(text) !== at).map((text) => `${axis.closest(".plot").id}: ${text}`);
})
"""
"""Labels of one axis that read alike, as names do that were cut where they differ."""


def page_of(layout: Layout, path: Path) -> Path:
    found = shown(layout, audit(entry.run for entry in layout.entries), each=True, paths=["results"])
    path.write_bytes(html_of(found, charts_of_runs(layout)))
    return path


def runner(root: Path, devices: int, depths: Sequence[int], jobs: Sequence[int]) -> Layout:
    for device in range(devices):
        for depth in depths:
            for count in jobs:
                name = f"randread-{depth}-{count}.json"
                write(root / f"nvme{device}n1" / "4k" / name, 1000.0 * depth * count + device, depth=depth, jobs=count)
    return read_layout(root)


INPUTS = {
    "one run": (1, (1,), (1,)),
    "a grid of depth and jobs": (1, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048), (1, 2, 16)),
    "twelve devices": (12, (1, 32), (1,)),
    "200 cells": (1, range(1, 21), range(1, 11)),
}


@pytest.mark.night
@pytest.mark.parametrize("name", INPUTS)
def test_results_can_be_read_from_a_phone_to_a_wide_screen(browser: Browser, tmp_path: Path, name: str) -> None:
    path = page_of(runner(tmp_path / "results", *INPUTS[name]), tmp_path / "page.html")
    for width in WIDTHS if name != "200 cells" else (320, 1280):
        legible(browser, path, width)


def legible(browser: Browser, path: Path, width: int) -> None:
    """Every chart of a page is drawn and named; nothing collides, is cut off or takes sideways scrolling; no two
    regions have one name."""
    watched = Watched(browser.new_page(viewport={"width": width, "height": 900}))
    page = watched.open(path)
    assert page.locator(".plot").count() == page.locator(".plot.drawn svg").count() >= 4
    for script in (COLLIDING, NAMELESS, ALIKE, CUT_OFF, TWINS, POWERS, RAGGED, UNEVEN):
        assert page.evaluate(script) == [], width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.wrong == []
    page.close()


@pytest.mark.night
def test_rates_of_nine_decades_can_be_read_and_no_label_of_a_point_meets_another(
    browser: Browser, tmp_path: Path
) -> None:
    for at in range(10):
        write(tmp_path / "results" / f"r{at}.json", 0.1 * 10**at, depth=2**at, seconds=100)
    path = page_of(read_layout(tmp_path / "results"), tmp_path / "page.html")
    for width in (320, 1280):
        legible(browser, path, width)
        page = Watched(browser.new_page(viewport={"width": width, "height": 900})).open(path)
        assert page.locator("[id^=plot-knee] .mark-text text").count() >= 15
        assert page.evaluate(POINTS) == [], width
        page.close()


@pytest.fixture(scope="module")
def hundreds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of 160 cells: only one has changed much."""
    folder = tmp_path_factory.mktemp("hundreds")
    for side in ("a", "b"):
        for rw, depth, jobs in product(("randread", "randwrite"), range(1, 9), range(1, 11)):
            changed = side == "b" and (rw, depth, jobs) == CHANGED
            rate = 1000.0 * depth * jobs * (2.0 if changed else 1.0)
            write(folder / side / f"{rw}-{depth}-{jobs}.json", rate, rw=rw, depth=depth, jobs=jobs)
    layouts = [read_layout(folder / side) for side in ("a", "b")]
    found = compare(layouts, ["a", "b"])
    path = folder / "page.html"
    path.write_bytes(html_of(found, charts_of(found, layouts, ["a", "b"])))
    return path


CHANGED = ("randwrite", 7, 9)


@pytest.mark.night
def test_a_page_of_hundreds_of_cells_is_folded_and_opens_by_keyboard(browser: Browser, hundreds: Path) -> None:
    page = Watched(browser.new_page(viewport={"width": 1440, "height": 900})).open(hundreds)
    height = "document.documentElement.scrollHeight"
    folded = page.evaluate(height)
    assert page.evaluate(SEEN) <= MANY * page.locator(".chapter").count()
    assert page.locator(".plot").count() == page.locator(".plot.drawn svg").count() > 60, "those that are folded too"
    shown = page.locator("[id^=charts-]:not(:has(.more[open])) > .plates .plot[id*=values-write-iops]")
    names = shown.first.locator("xpath=ancestor::figure").locator("tbody th").all_text_contents()
    assert any("iodepth 7 9 jobs" in name for name in names), "the chart with the cell that changed stands open"
    summary = page.locator("details.more > summary").first
    summary.focus()
    before = page.evaluate(SEEN)
    page.keyboard.press("Enter")
    assert page.evaluate(SEEN) > before
    page.locator("details.more").evaluate_all("all => all.forEach(one => { one.open = true; })")
    assert 3 * folded < 2 * page.evaluate(height)
    for script in (COLLIDING, NAMELESS, ALIKE, CUT_OFF, TWINS, POWERS, RAGGED, UNEVEN):
        assert page.evaluate(script) == []
    page.close()


@pytest.mark.night
def test_paper_shows_what_is_folded_and_a_page_without_scripts_opens(browser: Browser, hundreds: Path) -> None:
    page = Watched(browser.new_page(viewport={"width": 1000, "height": 900})).open(hundreds)
    page.emulate_media(media="print")
    assert page.evaluate(SEEN) == page.locator(".plot").count()
    page.close()
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(hundreds.as_uri())
    hidden = plain.locator("details.more figure").first
    assert not hidden.is_visible()
    plain.locator("details.more > summary").first.click()
    assert hidden.is_visible()
    hidden.locator("summary").click()
    assert hidden.locator("table").is_visible(), "the numbers need no script"
    context.close()


def test_names_in_charts_of_values_come_out_as_letters(browser: Browser, tmp_path: Path) -> None:
    evil = ("</script><script>document.title='owned'</script>", "<img src=x onerror=document.title='owned'>", "@rows")
    rate, bandwidth = Quantity.exact(1000.0, "IOPS"), Quantity.exact(4e6, "B/s")
    one = Direction("read", 0, 0, 1000, rate, bandwidth)
    places = [Place(cell=name, panel=name, depth=depth) for depth, name in enumerate(evil, 1)]
    values = of_samples(places, ((cell, variant, [one]) for cell in evil for variant in evil))
    bare = replace(of_layout(Layout("content", ())), values=values, variants=evil, cells=evil)
    path = tmp_path / "evil.html"
    path.write_bytes(html(hostile_account(evil[0]), tuple(figures(bare))))
    watched = Watched(browser.new_page())
    page = watched.open(path)
    assert page.locator(".plot.drawn svg").count() == page.locator(".plot").count() >= 2
    assert page.title() != "owned"
    assert watched.wrong == []
    page.close()


def test_the_matrix_shows_value_change_and_interval(browser: Browser, file: Path) -> None:
    page = browser.new_page()
    Watched(page).open(file)
    cell = page.locator(".matrix td.regression").first
    text = cell.inner_text().replace("\u00a0", " ")
    assert "regression" in (cell.text_content() or "")
    for part in (" %", " .. ", "\u2192"):
        assert part in text
    page.close()


@pytest.mark.night
def test_an_interval_that_runs_off_the_chart_ends_in_an_arrowhead(browser: Browser, tmp_path: Path) -> None:
    found = source()
    wild = [replace(one, low=-0.99, high=40.0) for one in found.effects[:1]]
    effects = (*wild, *found.effects[1:])
    (figure, *_) = changes.changes(replace(found, effects=effects))
    cut = {side: [row["row"] for row in figure.extra[side]] for side in ("below", "above")}
    assert cut == {"below": [wild[0].cell], "above": [wild[0].cell]}
    path = tmp_path / "page.html"
    path.write_bytes(html(hostile_account("plain"), (("Change", (figure,)),)))
    page = browser.new_page()
    Watched(page).open(path)
    # Points of all comparisons, and one head at each end.
    marks = page.locator(".mark-symbol.role-mark path").count()
    assert marks == len(figure.rows) + 2
    page.close()


@pytest.mark.night
def test_commands_are_copied_by_a_button(browser: Browser, tmp_path: Path) -> None:
    path = page_of(runner(tmp_path / "results", 1, (1,), (1,)), tmp_path / "page.html")
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    Watched(page).open(path)
    button = page.locator(".copied button").first
    button.evaluate(LABELS)
    button.click()
    until(lambda: page.evaluate("labels"))
    assert page.evaluate("labels[0]") == "Copied"
    assert page.evaluate("navigator.clipboard.readText()") == "iodelta show results"
    page.locator("pre.commands").first.evaluate(
        "one => one.textContent = 'iodelta compare results/ --margin 1% '.repeat(4)"
    )
    for width in (*WIDTHS[:2], 1440):
        resize(page, width)
        assert page.evaluate(COVERED) == [], f"the button hides a part of the command at {width} pixels"
    page.emulate_media(media="print")
    assert page.locator(".copied button").first.is_hidden()
    context.close()
