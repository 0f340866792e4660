"""The gallery: every picture of the page comes from the recorded files, and shows what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from benchmarks.gallery.__main__ import (
    DIGESTS,
    DISKS,
    HEADINGS,
    OF_ONE,
    OF_THREE,
    captioned,
    captions,
    digest,
    pictures,
    unpacked,
)
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


def test_every_caption_is_what_its_chart_says_and_no_picture_is_older_than_its_data(drawn: dict[str, Figure]) -> None:
    assert captioned((ROOT / "docs" / "gallery.md").read_text()) == captions(drawn)
    assert json.loads(DIGESTS.read_text()) == {name: digest(figure) for name, figure in drawn.items()}
    below = [name for names in HEADINGS.values() for name in names]
    assert sorted(below) == sorted(drawn)


def test_another_number_is_another_caption_or_another_digest(drawn: dict[str, Figure]) -> None:
    figure = drawn["percentiles"]
    moved = [{**figure.rows[0], "value": 1.01 * figure.rows[0]["value"]}, *figure.rows[1:]]
    assert digest(msgspec.structs.replace(figure, rows=moved)) != digest(figure)
    other = msgspec.structs.replace(figure, alt="Mean, p50, p99 and p99.9.")
    assert captions({**drawn, "percentiles": other}) != captions(drawn)


def test_rates_level_off_where_the_throttle_of_each_disk_is(drawn: dict[str, Figure]) -> None:
    deepest = {row["variant"]: row["value"] for row in drawn["devices"].rows if "iodepth 32" in row["cell"]}
    for disk, limit in zip(DISKS, (1000, 2000, 3000), strict=True):
        assert deepest[disk] == pytest.approx(limit, rel=0.03)


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
