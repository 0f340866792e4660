"""``python -m benchmarks.gallery.history``: draw ``docs/pictures/history.png`` of 120 simulated nights in two epochs,
of which those from the 80th on are 2 % slower. ``--sweep FOLDER`` also draws ``history-sweep.png`` of a folder of
``iodelta kernel sweep``. Both show the top of the page of ``iodelta history show`` in Chromium."""

from __future__ import annotations

import argparse
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from iodelta.experiment import Subject
from iodelta.history.points import Key, Night, Point
from iodelta.history.store import Store

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"

NIGHTS, EPOCH, STEP = 120, 40, 80
SIZE = 0.02

HISTORY = (sys.executable, "-c", "from iodelta.cli.main import main; main()", "history")


def night(number: int) -> Night:
    """Reads of 4 KiB against a reference build in the same twelve blocks; what the night adds to both cancels."""
    rng = np.random.default_rng([7, number])
    session, noise, error = 0.01 * rng.standard_normal(), 0.004 * rng.standard_normal(), 0.014 / math.sqrt(12)
    cost = SIZE * (number >= STEP) + noise
    options = (("tool", "fio"), ("bs", "4k"), ("rw", "randread"))
    key = Key("stor3", options, (), (), "", "read.iops", "block", "")
    y = math.log(60_000) + session - cost
    point = Point(key, "randread 4k", "tonight", "higher", "IOPS", y, error, 12, 0.0, cost, error)
    is_new = number >= EPOCH
    return Night(
        identifier=f"night-{number}",
        sha=f"sha-{number}",
        t=1.7647e9 + 86400.0 * number,
        machine="stor3",
        epoch="new" if is_new else "old",
        facts={"fio.version": "fio-3.36" if is_new else "fio-3.33"},
        subject=Subject("linux", f"{number:040x}", f"v6.12-{number}"),
        folder=f"/runs/{number}",
        state="complete",
        points=(point,),
    )


def simulated(place: Path) -> None:
    """The nights, as a history below ``place``."""
    (place / "iodelta-history").mkdir()
    store = Store(f"sqlite:///{place / 'iodelta-history' / 'history.db'}")
    store.prepare()
    for number in range(NIGHTS):
        store.add(night(number))
    store.close()


def drawn(place: Path, picture: Path) -> None:
    """The picture of the history below ``place``."""
    from playwright.sync_api import sync_playwright

    subprocess.run([*HISTORY, "show", "-o", "page.html"], cwd=place, check=True, stdout=subprocess.DEVNULL)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=120_000)
        opened = browser.new_page(viewport={"width": 1000, "height": 760})
        opened.set_default_timeout(120_000)
        opened.goto((place / "page.html").as_uri())
        opened.wait_for_selector("html[data-charts=drawn]")
        opened.screenshot(path=picture)
        browser.close()
    print(f"{picture}: {picture.stat().st_size >> 10} KiB")


def main() -> None:
    """Draw what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gallery.history", description=__doc__)
    parser.add_argument("--sweep", type=Path, help="a folder of `iodelta kernel sweep`")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        simulated(Path(name))
        drawn(Path(name), PICTURES / "history.png")
    if chosen.sweep is not None:
        with tempfile.TemporaryDirectory() as name:
            subprocess.run([*HISTORY, "add", str(chosen.sweep.absolute())], cwd=name, check=True)
            drawn(Path(name), PICTURES / "history-sweep.png")


if __name__ == "__main__":
    main()
