"""The wheel holds all of iodelta: what git has, and a program that starts and draws a report from it alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fio_files import write

ROOT = Path(__file__).parents[2]


def test_a_report_is_made_from_the_installed_wheel(tmp_path: Path) -> None:
    place = tmp_path / "site"
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*words, "--target", str(place), str(ROOT)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(["git", "ls-files", "src/iodelta"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [line.removeprefix("src/") for line in listed.stdout.splitlines()]
    assert len(files) > 400
    assert [name for name in files if not (place / name).is_file()] == []

    write(tmp_path / "A/x.json", 1000)
    write(tmp_path / "B/x.json", 900)
    environment = {**os.environ, "PYTHONPATH": str(place)}
    code = "import iodelta; print(iodelta.__file__); print(iodelta.compare('A', 'B').report('html')[:15])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(place / "iodelta/__init__.py"), "<!doctype html>"]
    done = subprocess.run([place / "bin/iodelta", "--version"], env=environment, capture_output=True, text=True)
    assert done.stdout.startswith("iodelta, version "), done.stderr
