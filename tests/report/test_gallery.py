"""The gallery: every picture of the page comes from the recorded files, and shows what they say."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec
import pytest

from benchmarks.gallery import theirs
from benchmarks.gallery.__main__ import (
    DIGESTS,
    FILESYSTEMS,
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
from benchmarks.gallery.theirs import DISKS
from iodelta.report.formats.charts import Figure
from iodelta.report.formats.charts.specs import filled
from iodelta.report.formats.html.result import charts_of_runs
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


def test_another_number_is_another_caption_or_another_digest(drawn: dict[str, Figure]) -> None:
    figure = drawn["percentiles"]
    moved = [{**figure.rows[0], "value": 1.01 * figure.rows[0]["value"]}, *figure.rows[1:]]
    assert digest(msgspec.structs.replace(figure, rows=moved)) != digest(figure)
    other = msgspec.structs.replace(figure, alt="Mean, p50, p99 and p99.9.")
    assert captions({**drawn, "percentiles": other}) != captions(drawn)


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


def test_the_table_of_times_says_what_each_picture_of_fio_plot_took() -> None:
    table = (ROOT / "benchmarks" / "gallery" / "results.md").read_text().splitlines()
    rows = {line.split("`")[1]: line.rsplit("|", 2)[1].strip() for line in table if line.startswith("| `fio-plot")}
    assert rows == {f"fio-plot {' '.join(one.options)}": f"{one.cpu:.1f}" for one in theirs.recorded().values()}


def test_the_numbers_of_a_report_are_drawn_as_they_were_posted(drawn: dict[str, Figure]) -> None:
    merge = {(row["cell"], row["variant"]): row["value"] for row in drawn["posted-merge"].rows}
    assert sorted(merge.values()) == [13e6, 14e6, 19e6, 36e6]
    policies = {(row["cell"], row["variant"]): row["value"] for row in drawn["posted-policies"].rows}
    assert len(policies) == 3 * 5
    assert policies["RandRead 4k QD32", "queue"] == 3647


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


def test_bars_of_filesystems_are_the_medians_of_their_runs_and_each_has_an_interval(
    drawn: dict[str, Figure], folder: Path
) -> None:
    names = {"randwrite 4k fsync=1": "write-fsync", "write 4k fsync=1": "append-fsync"}
    others = "write-16"
    rates = {}
    for row in drawn["filesystems"].rows:
        files = (folder / row["variant"]).glob(f"{names.get(row['cell'], others)}-*.json")
        said = [json.loads(path.read_text())["jobs"][0]["write"]["iops"] for path in files]
        assert len(said) == 6
        assert row["value"] == pytest.approx(median(said), rel=1e-4)
        assert min(said) * 0.999 <= row["low"] < row["high"] <= max(said) * 1.001
        rates[row["cell"], row["variant"]] = row["value"]
    assert len(rates) == 3 * len(FILESYSTEMS)
    for cell in names:
        assert rates[cell, "xfs"] == pytest.approx(1000, rel=0.1), "the data and the log: two I/Os a write"
        assert rates[cell, "btrfs"] < 0.3 * rates[cell, "xfs"], "its trees are written too"


def test_the_picture_of_a_preparation_is_what_was_measured(drawn: dict[str, Figure]) -> None:
    said = json.loads((ROOT / "benchmarks" / "gallery" / "rounds.json").read_text())["disk"]
    figure = drawn["rounds"]
    assert [row["iops"] for row in figure.rows] == pytest.approx([one["iops"] for one in said["rounds"]], rel=1e-5)
    (window,) = figure.extra["window"]
    inside = [row["iops"] for row in figure.rows if window["first"] < row["round"] < window["last"]]
    assert len(inside) == 5
    assert max(inside) < 400 < 900 < figure.rows[0]["iops"]


def test_a_stall_is_drawn_as_zero_for_as_long_as_the_log_has_no_row(drawn: dict[str, Figure]) -> None:
    figure = drawn["stall"]
    path = ROOT / "tests" / "data" / "fio-3.33" / "stall_iops.1.log"
    times = sorted({int(line.split(",")[0]) for line in path.read_text().splitlines()})
    window = times[0]
    stalls = [(begin, end - window) for begin, end in pairwise(times) if end - begin > window + 10]
    assert len(stalls) == 3
    for begin, end in stalls:  # its row stands at the end of a window
        within = [row["value"] for row in figure.rows if begin + 100 < 1000 * row["t"] < end - 100]
        assert within
        assert set(within) == {0}


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
