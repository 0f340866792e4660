"""Bundles hold no name of a machine: those of strangers are never one machine's series."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from test_command import FOLDER, iodelta, measured

__all__ = ["measured"]

pytestmark = [pytest.mark.fio, pytest.mark.beside, pytest.mark.xdist_group("nameless")]  # they share what was measured


@pytest.fixture(scope="module")
def bundles(measured: Path) -> Path:
    """A directory with the bundles of two experiments, and the second one unpacked."""
    done = iodelta(measured, "run", "nightly.toml", "--folder", "other")
    assert done.returncode in (0, 1, 3), done.stderr
    for name, bundle in ((FOLDER, "one.tar.zst"), ("other", "two.tar.zst")):
        done = iodelta(measured, "pack", name, "-o", bundle)
        assert done.returncode == 0, done.stderr
    (measured / "unpacked").mkdir()
    subprocess.run(["tar", "--zstd", "-xf", "two.tar.zst", "-C", "unpacked"], cwd=measured, check=True)
    return measured


def machines(place: Path, history: str) -> dict[str, int]:
    """Machine -> nights of its series."""
    shown = json.loads(iodelta(place, "history", "show", "--history", history, "--format", "json").stdout)
    return {series["machine"]: len(series["points"]) for series in shown["series"]}


def test_two_strangers_are_two_machines(bundles: Path) -> None:
    for path in ("one.tar.zst", "two.tar.zst"):
        assert iodelta(bundles, "history", "add", path, "--history", "a").returncode == 0
    first = machines(bundles, "a")
    assert list(first.values()) == [1, 1]
    assert iodelta(bundles, "history", "rebuild", "--history", "a").returncode == 0
    assert machines(bundles, "a") == first
    assert iodelta(bundles, "history", "check", "--history", "a").returncode == 0


def test_a_bundle_that_was_unpacked_is_a_strangers_too(bundles: Path) -> None:
    unpacked = next((bundles / "unpacked").rglob("journal.jsonl")).parent
    for path in ("one.tar.zst", str(unpacked)):
        done = iodelta(bundles, "history", "add", path, "--history", "b")
        assert done.returncode == 0, done.stderr
    assert list(machines(bundles, "b").values()) == [1, 1]


def test_the_nights_of_a_stranger_whom_you_know_are_one_series(bundles: Path) -> None:
    assert iodelta(bundles, "history", "add", "one.tar.zst", "--history", "c").returncode == 0
    words = ("history", "add", "one.tar.zst", "two.tar.zst", "--machine", "friend", "--history", "c")
    done = iodelta(bundles, *words)
    assert done.stdout == "replaced: one.tar.zst, 2 points\nadded: two.tar.zst, 2 points\n", done.stderr
    assert iodelta(bundles, *words).stdout == "known: one.tar.zst, 2 points\nknown: two.tar.zst, 2 points\n"
    assert machines(bundles, "c") == {"friend": 2}
    assert iodelta(bundles, "history", "rebuild", "--history", "c").returncode == 0
    assert machines(bundles, "c") == {"friend": 2}
    assert iodelta(bundles, "history", "check", "--history", "c").returncode == 0
