"""The gallery: every picture of the page comes from the recorded files, and shows what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from benchmarks.gallery import theirs
from benchmarks.gallery.__main__ import (
    DIGESTS,
    HEADINGS,
    OF_FILES,
    OF_FILESYSTEMS,
    OF_ONE,
    OF_THREE,
    captioned,
    captions,
    digest,
    pictures,
    unpacked,
)
from iodelta.report.formats.charts import Figure
from iodelta.report.formats.charts.specs import filled
from iodelta.report.formats.html.pages import charts_of_runs
from iodelta.study.paths import read_all

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT.parent / "shared" / "fio-corpus"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(tmp_path_factory.mktemp("gallery"))


@pytest.fixture(scope="module")
def drawn(folder: Path) -> dict[str, Figure]:
    return pictures(folder)


def test_the_page_shows_every_picture_that_is_drawn_and_no_other(drawn: dict[str, Figure]) -> None:
    page = (ROOT / "docs" / "gallery.md").read_text()
    shown = re.findall(r"\(pictures/gallery-(.*)\.png\)", captioned(page))
    assert sorted(shown) == sorted(drawn) == sorted([*OF_ONE, *OF_THREE, *OF_FILESYSTEMS, *OF_FILES, "rounds"])
    assert all((ROOT / "docs" / "pictures" / f"gallery-{name}.png").is_file() for name in shown)


def test_every_caption_is_what_its_chart_says_and_no_picture_is_older_than_its_data(drawn: dict[str, Figure]) -> None:
    assert captioned((ROOT / "docs" / "gallery.md").read_text()) == captions(drawn)
    assert json.loads(DIGESTS.read_text()) == {name: digest(figure) for name, figure in drawn.items()}
    below = [name for names in HEADINGS.values() for name in names]
    assert sorted(below) == sorted(drawn)


def test_the_page_shows_fio_plots_picture_of_the_same_files_next_to_each_of_ours(drawn: dict[str, Figure]) -> None:
    page, found = (ROOT / "docs" / "gallery.md").read_text(), theirs.recorded()
    assert theirs.in_page(page) == theirs.part(found)
    assert theirs.written(page) == page
    assert list(found) == list(theirs.PAIRS)
    for name, one in found.items():
        pair = theirs.PAIRS[name]
        assert one.files == theirs.files_digest(), f"fio-plot's picture {name} is of older files"
        assert one.options == pair.options
        assert pair.ours in drawn
        written = (ROOT / "docs" / "pictures" / f"fio-plot-{name}.png").read_bytes()
        assert written.startswith(b"\x89PNG")
        assert len(written) < 150_000


def test_the_numbers_of_a_report_are_drawn_as_they_were_posted(drawn: dict[str, Figure]) -> None:
    merge = {(row["cell"], row["variant"]): row["value"] for row in drawn["posted-merge"].rows}
    assert sorted(merge.values()) == [13e6, 14e6, 19e6, 36e6]
    policies = {(row["cell"], row["variant"]): row["value"] for row in drawn["posted-policies"].rows}
    assert len(policies) == 3 * 5
    assert policies["RandRead 4k QD32", "queue"] == 3647


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not beside this checkout (../shared/fio-corpus)")
def test_every_file_of_the_samples_gives_charts_that_say_what_they_show() -> None:
    """Also of results by other people, which are read where they lie."""
    seen: set[str] = set()
    for path in sorted(one for one in SAMPLES.iterdir() if one.is_dir()):
        layout, _ = read_all([str(path)])
        for title, own in charts_of_runs(layout):
            seen.add(title)
            for figure in own:
                assert figure.alt, (path.name, figure.name)
                assert figure.table, (path.name, figure.name)
                assert {len(row) for row in figure.table} == {len(figure.head)}, (path.name, figure.name)
                assert not re.search(r"\bnan\b|\binf\b", msgspec.json.encode(filled(figure)).decode()), figure.name
    assert seen >= {"Values", "Latency: percentiles", "Over time"}
