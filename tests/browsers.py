"""One browser for all tests of a process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from waiting import LIMIT, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Locator, Page

ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()

PATIENCE = 1000 * LIMIT
"""Milliseconds: only a browser that hangs takes so long, whatever else the machine does."""


def _patient(make: Callable[..., Any]) -> Callable[..., Any]:
    """Makes pages, or contexts and so their pages, that wait so long: by themselves they give up after 30 s."""

    def made(**options: Any) -> Any:
        page = make(**options)
        page.set_default_timeout(PATIENCE)
        return page

    return made


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, started once."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no Chromium here: scripts/setup test installs it")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS, timeout=PATIENCE)
        for name in ("new_page", "new_context"):
            setattr(opened, name, _patient(getattr(opened, name)))
        yield opened
        opened.close()


def is_wrong(said: ConsoleMessage) -> bool:
    """Whether a page must not write this to its console: errors, and that Vega-Lite drops a part of a size."""
    return said.type == "error" or said.text.startswith("WARN Dropping")


def point_at(mark: Locator, shown: Locator) -> None:
    """Point at ``mark`` until ``shown`` is seen: the scroll event of a busy browser comes later, and hides it again."""
    mark.scroll_into_view_if_needed()

    def pointed() -> bool:
        box = mark.bounding_box()
        assert box is not None, "a mark without a place cannot be pointed at"
        mark.page.mouse.move(0, 0)
        mark.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        return shown.is_visible()

    until(pointed)


FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def resize(shown: Page, width: int, height: int = 900) -> None:
    """Give a page another size, and time for what watches its size (ResizeObserver): that is called with a frame."""
    shown.set_viewport_size({"width": width, "height": height})
    shown.evaluate(FRAMES)
