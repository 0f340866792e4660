"""Screenshots of a page on a phone, a tablet and a wide screen."""

from __future__ import annotations

import shutil
from pathlib import Path

SCREENS = {"phone": (320, 1000), "tablet": (768, 1000), "desk": (1440, 1000)}
"""Width and height in pixels of what is shown."""

START = "#charts-1"
"""The first charts are at the top of each screenshot."""


def screenshots(page: Path, folder: Path) -> None:
    """``screen-NAME.png`` of the page on every screen, in Chromium."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=120_000)
        for name, (width, height) in SCREENS.items():
            opened = browser.new_page(viewport={"width": width, "height": height})
            opened.set_default_timeout(120_000)
            opened.goto(page.resolve().as_uri())
            opened.wait_for_selector("html[data-charts=drawn]")
            opened.locator(START).evaluate("one => one.scrollIntoView({ behavior: 'instant' })")
            opened.screenshot(path=folder / f"screen-{name}.png")
            opened.close()
        browser.close()
