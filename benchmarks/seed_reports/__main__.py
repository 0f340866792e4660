"""``python -m benchmarks.seed_reports [--device /dev/loopN]``: make the pictures in ``docs/pictures`` again, and beside
this file the same reports as mail (``reports/NNN.txt``) and Markdown.

Two of the five questions can be measured on any machine (000: a depth sweep, 001: mmap readers); with ``--device`` they
are, for ten minutes, by reads only, into folders that ``--folders`` keeps. Of the others the numbers that their authors
posted are read, as they are transcribed in this directory; 003, which is long, from its text where that is at hand
(``003.md`` is its first table, for the gallery).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from iodelta.lab.folder import Folder
from iodelta.report.derived import charted
from iodelta.report.formats.charts.model import Charts
from iodelta.report.formats.html.pages import charts_of, html_of
from iodelta.report.formats.render import rendered
from iodelta.study.comparison import compare
from iodelta.study.paths import read_one

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Result

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PICTURES = ROOT / "docs" / "pictures"
REPORTS = HERE / "reports"
MEASURED = ("000", "001")
GIST = "../shared/seeds/003_32c9d470c4ad77c4.txt"
POSTED = ("002", "003", "004")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WIDTH, HEIGHT = 1180, 1080


def result_of(name: str, folders: Path) -> tuple[Result, Charts]:
    """What there is to tell of a measured folder where there is one, else of the posted numbers."""
    folder = folders / name
    if folder.is_dir():
        return charted(Folder.open(folder))
    path = GIST if name == "003" else str((HERE / f"{name}.md").relative_to(ROOT))
    layouts = [read_one(path)]
    found = compare(layouts, [path])
    return found, charts_of(found, layouts, [path])


def measure(device: str, folders: Path) -> None:
    """Run the questions that this machine can answer."""
    for name in MEASURED:
        question = folders / f"{name}.toml"
        question.write_text((HERE / f"{name}.toml").read_text().replace("@TARGET@", device))
        words = ["run", str(question), "--folder", str(folders / name)]
        subprocess.run([sys.executable, "-c", "from iodelta.cli.main import main; main()", *words], check=False)


def main() -> None:
    """Measure if asked, then take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="a block device to read from")
    parser.add_argument("--folders", type=Path, default=Path(tempfile.gettempdir()) / "iodelta-seed-reports")
    given = parser.parse_args()
    given.folders.mkdir(parents=True, exist_ok=True)
    if given.device:
        measure(given.device, given.folders)
    PICTURES.mkdir(exist_ok=True)
    REPORTS.mkdir(exist_ok=True)
    os.chdir(ROOT)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        for name in (*MEASURED, *POSTED):
            if name == "003" and not Path(GIST).exists():
                print(f"{GIST} is not here: seed-003.png is left as it is")
                continue
            if name in MEASURED and not (given.folders / name).is_dir():
                print(f"{name} was not measured here: seed-{name}.png is left as it is")
                continue
            path = given.folders / f"{name}.html"
            result, charts = result_of(name, given.folders)
            path.write_bytes(html_of(result, charts))
            for format_, ending in (("mail", "txt"), ("markdown", "md")):
                (REPORTS / f"{name}.{ending}").write_bytes(rendered(result, format_))
            dark = name == "001"
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark" if dark else "light"
            )
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-charts=drawn]", timeout=120_000)
            picture = PICTURES / f"seed-{name}.png"
            page.screenshot(path=picture)
            page.close()
            print(f"{picture}: {picture.stat().st_size >> 10} KiB")
        browser.close()


if __name__ == "__main__":
    main()
