"""The HTML report on a phone, on a wide screen, on paper, in a capture and to a screen reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import PATIENCE
from playwright.sync_api import Browser, Page
from test_html import Watched, file, told
from tiers import one_at_push

__all__ = ["file", "told"]

NAMELESS = """
() => [...document.querySelectorAll('svg, svg [role], svg[role]')]
  .filter((one) => one.namespaceURI === "http://www.w3.org/2000/svg" && !one.closest("[aria-hidden=true]"))
  .filter((one) => ["img", "graphics-symbol", "graphics-document"].includes(one.getAttribute("role") || "img"))
  .filter((one) => !(one.getAttribute("aria-label") || "").trim() && !one.getAttribute("aria-labelledby")
    && !one.querySelector(":scope > title"))
  .map((one) => one.outerHTML.slice(0, 120))
"""
"""Graphics without an accessible name: axe's rule svg-img-alt."""

COLLIDING = """
() => [...document.querySelectorAll(".plot svg .role-axis-label")].flatMap((axis) => {
  const all = [...axis.querySelectorAll("text")];
  const shown = all.filter((one) => one.textContent && getComputedStyle(one).opacity > 0);
  const boxes = shown.map((one) => [one.textContent, one.getBoundingClientRect()]);
  return boxes.flatMap(([text, a], at) => boxes.slice(at + 1)
    .filter(([, b]) => a.left < b.right + 2 && b.left < a.right + 2 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
    .map(([other]) => `${axis.closest(".plot").id}: ${text} | ${other}`));
})
"""

ORPHANED = """
(height) => {
  const main = document.querySelector("main");
  Object.assign(main.style, { columnWidth: "640px", columnFill: "auto", columnGap: "40px", width: "640px" });
  main.style.height = `${height}px`;
  const text = (one) => one.checkVisibility() && one.getBoundingClientRect().height > 0;
  const column = (box) => Math.round(box.left / 680 - 0.2);
  const next = (one) => {
    const walker = document.createTreeWalker(main, NodeFilter.SHOW_ELEMENT);
    walker.currentNode = one;
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      if (!one.contains(node) && text(node) && (node.matches("p, li, tr, pre, .plot, dl, table"))) return node;
    return null;
  };
  return [...main.querySelectorAll("h2, h3, p.about, .legend")].filter(text).flatMap((head) => {
    const below = next(head);
    if (!below) return [];
    const own = head.getClientRects(), first = below.getClientRects()[0];
    return column(own[own.length - 1]) === column(first) ? [] : [`${head.tagName} ${head.textContent.slice(0, 40)}`];
  });
}
"""
"""Headings whose text begins on another page; columns of a page's size are broken by the same rules as pages."""


def opened(browser: Browser, file: Path, width: int, scheme: str = "light") -> Page:
    dark = "dark" if scheme == "dark" else "light"
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=dark)  # type: ignore[arg-type]
    return Watched(page).open(file)


@pytest.fixture(params=[390, 1440])
def page(browser: Browser, file: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    made = opened(browser, file, request.param)
    yield made
    made.close()


def test_every_graphic_has_a_name_or_is_hidden_behind_one_that_has(page: Page) -> None:
    assert page.locator(".plot").count() > 10
    assert page.evaluate(NAMELESS) == []
    assert page.locator(".plot").evaluate_all("all => all.filter(one => !one.ariaLabel).length") == 0


def test_everything_is_drawn_once_the_page_is_loaded_wherever_it_is_scrolled(browser: Browser, file: Path) -> None:
    """Whoever captures a whole page waits for nothing but its loading."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.add_init_script(
        "addEventListener('load', () => { window.seen = document.querySelectorAll('.plot svg').length })"
    )
    page.goto(file.as_uri())
    assert page.evaluate("window.seen") == page.locator(".plot").count() > 10
    skipped = page.locator("*").evaluate_all(
        "all => all.filter(one => getComputedStyle(one).contentVisibility !== 'visible').length"
    )
    assert skipped == 0
    page.close()


@pytest.mark.parametrize("height", one_at_push([640, 760, 900, 1010]))
def test_no_heading_is_left_at_the_bottom_of_a_sheet(browser: Browser, file: Path, height: int) -> None:
    page = opened(browser, file, 1440)
    page.emulate_media(media="print")
    assert page.evaluate(ORPHANED, height) == []
    page.close()
