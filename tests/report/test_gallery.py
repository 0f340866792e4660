"""The gallery: every picture of the page comes from the recorded files, and shows what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.gallery.__main__ import DISKS, OF_ONE, OF_THREE, pictures, unpacked
from iodelta.report.formats.charts import Figure

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(tmp_path_factory.mktemp("gallery"))


@pytest.fixture(scope="module")
def drawn(folder: Path) -> dict[str, Figure]:
    return pictures(folder)


def test_the_page_shows_every_picture_that_is_drawn_and_no_other(drawn: dict[str, Figure]) -> None:
    page = (ROOT / "docs" / "gallery.md").read_text()
    shown = re.findall(r"\(pictures/gallery-(.*)\.png\)", page)
    assert sorted(shown) == sorted(drawn) == sorted([*OF_ONE, *OF_THREE])
    assert all((ROOT / "docs" / "pictures" / f"gallery-{name}.png").is_file() for name in shown)


def test_bars_of_several_disks_are_what_each_file_says(drawn: dict[str, Figure], folder: Path) -> None:
    figure = drawn["devices"]
    assert {row["variant"] for row in figure.rows} == set(DISKS)
    for row in figure.rows:
        depth, jobs = re.findall(r"iodepth (\d+) (\d+) jobs", row["cell"])[0]
        path = folder / row["variant"] / "4k" / f"randread-{depth}-{jobs}.json"
        said = json.loads(path.read_text())["jobs"][0]["read"]["iops"]
        assert row["value"] == pytest.approx(said, rel=1e-4)
    assert len(figure.rows) == len(DISKS) * 6


def test_the_fall_of_the_write_rate_is_seen_over_what_had_been_written(drawn: dict[str, Figure]) -> None:
    figure = drawn["written"]
    for disk in DISKS:
        line = [row for row in figure.rows if row["variant"] == disk]
        first, last = (sum(row["value"] for row in part) / len(part) for part in (line[:8], line[-8:]))
        assert last < 0.6 * first, "the throttle became four times as strict"
        assert [row["t"] for row in line] == sorted(row["t"] for row in line)
