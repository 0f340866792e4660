"""``iodelta doctor``: with nothing in the path everything is missing, each with its use and its package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def iodelta(*words: str, path: Path | None = None) -> str:
    code = "from iodelta.cli.main import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    if path is not None:
        environment["PATH"] = str(path)
    done = subprocess.run([sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A path with apt-get and an fio that is too old."""
    for name, text in (("apt-get", "exit 0"), ("fio", "echo fio-3.1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_everything_that_is_missing_is_named_at_once(bare: Path) -> None:
    found = json.loads(iodelta("doctor", "--format", "json", path=bare))
    missing = {one["what"]: one for one in found["missing"]}
    assert missing["git"]["remedy"] == "apt-get install git"
    assert missing["perf"]["needed_for"] == "[instrument] perf"
    assert "fio 3.1 is too old" in missing["fio 3.16"]["remedy"]
    (packages, *_) = (line for line in found["install"] if line.startswith("apt-get install "))
    assert {"git", "openssh-client", "qemu-system-x86", "linux-perf"} <= set(packages.split())
    text = iodelta("doctor", path=bare)
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("  apt-get"))
    assert "To install all of it:\n  apt-get install " in text


def test_what_is_here_is_not_missing() -> None:
    found = json.loads(iodelta("doctor", "--format", "json"))
    here = {one["name"]: one["version"] for one in found["here"]}
    assert here["polars"] == version("polars")
    assert here["Python"] == ".".join(map(str, sys.version_info[:3]))
    assert not {one["what"] for one in found["missing"]} & set(here)


def test_a_verbose_version_names_the_parts() -> None:
    assert len(iodelta("--version").splitlines()) == 1
    first, *others = iodelta("--version", "--verbose").splitlines()
    assert first == iodelta("--version").strip()
    assert f"polars {version('polars')}" in others
