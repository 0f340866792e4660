"""Charts of values: what a folder of results shows, from one run to hundreds of cells."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from fio_files import document, write
from msgspec.structs import replace
from scipy.stats import binom

from iodelta.audit import audit
from iodelta.ingest.layouts import Layout, read_layout
from iodelta.report.formats.charts import Figure, Scale, figures
from iodelta.report.formats.charts.cells import MOST
from iodelta.report.formats.charts.sources import of_layout
from iodelta.report.formats.charts.specs import VEGA_LITE, alone
from iodelta.study.runs import shown
from iodelta.study.values import Place, Values, of_entries, of_samples, order_statistic, spread
from iodelta.study.words import quantity
from iodelta.trial import Direction, Quantity


def bench(root: Path, depths: Sequence[int], jobs: Sequence[int], rw: str = "randread") -> Layout:
    """A folder as fio-plot's runner names it; a device that saturates at 64 I/Os in flight."""
    for depth in depths:
        for count in jobs:
            flight = depth * count
            write(
                root / "nvme0n1" / "4k" / f"{rw}-{depth}-{count}.json",
                1000.0 * min(flight, 64),
                depth=depth,
                jobs=count,
                rw=rw,
            )
    return read_layout(root)


def drawn(layout: Layout, scale: Scale = "auto") -> dict[str, Figure]:
    source = replace(of_layout(layout), scale=scale)
    return {figure.name: figure for _, own in figures(source) for figure in own}


def families(layout: Layout) -> set[str]:
    return {title for title, _ in figures(of_layout(layout))}


def direction(rate: float) -> Direction:
    return Direction("read", 0, 0, 1000, Quantity.exact(rate, "IOPS"), Quantity.exact(4096 * rate, "B/s"))


def values(rates: dict[str, list[float]]) -> Values:
    """Cells called by their names, each with the rates of its runs."""
    places = [Place(cell=cell, panel="randread 4k", depth=at) for at, cell in enumerate(rates, 1)]
    return of_samples(places, ((cell, "a", [direction(rate)]) for cell, own in rates.items() for rate in own))


def test_bars_show_what_the_files_say(tmp_path: Path) -> None:
    figure = drawn(bench(tmp_path, (1, 2, 4, 8), (1,)))["values-read-iops"]
    assert [(row["row"], row["value"]) for row in figure.rows] == [
        ("iodepth 1", 1000),
        ("iodepth 2", 2000),
        ("iodepth 4", 4000),
        ("iodepth 8", 8000),
    ]
    assert figure.texts["frame"][0] == 0


def test_a_heat_map_has_a_tile_for_each_depth_and_jobs_in_numeric_order(tmp_path: Path) -> None:
    figure = drawn(bench(tmp_path, (16, 1, 2, 128), (8, 1, 16)))["grid-1-read-iops-1"]
    assert figure.texts["depths"] == ["1", "2", "16", "128"]
    assert figure.texts["jobs"] == ["1", "8", "16"]
    assert len(figure.rows) == 12
    order = [
        figure.texts["levels"].index(row["level"])
        for row in sorted(figure.rows, key=lambda row: int(row["said"].replace(",", "")))
    ]
    assert order == sorted(order)


def test_the_knee_is_where_more_depth_brings_latency_alone(tmp_path: Path) -> None:
    figure = drawn(bench(tmp_path, (1, 4, 16, 64, 256), (1,)))["knee-1-read-mean"]
    rates = [row["rate"] for row in figure.rows]
    times = [row["value"] for row in figure.rows]
    assert rates == [1000, 4000, 16_000, 64_000, 64_000]
    assert times == pytest.approx([1, 1, 1, 1, 4])


def test_what_a_job_and_its_workload_both_say_is_said_once(tmp_path: Path) -> None:
    jobs = [document(1000.0 + at, name=f"job{at}")["jobs"][0] for at in range(64)]
    (tmp_path / "all.json").write_text(json.dumps(document() | {"jobs": jobs}))
    layout = read_layout(tmp_path)
    groups = {row.group for row in shown(layout, audit(entry.run for entry in layout.entries)).rows}
    assert {group.count("randread") for group in groups} == {1}


@pytest.mark.parametrize("count", [6, 7, 8, 10, 12, 20, 50, 200])
def test_the_interval_covers_the_median_with_95_percent_and_no_narrower_one_does(count: int) -> None:
    k = order_statistic(count)
    assert 1 - 2 * binom.cdf(k - 1, count, 0.5) >= 0.95
    assert 1 - 2 * binom.cdf(k, count, 0.5) < 0.95


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_few_runs_have_a_range_and_one_run_has_nothing(count: int) -> None:
    assert order_statistic(count) == 0
    numbers = [float(at) for at in range(count)]
    assert spread(numbers) == ((None, None) if count == 1 else (0.0, float(count - 1)))


def test_a_chart_says_what_its_intervals_are() -> None:
    made = values({"few": [1.0, 3.0, 2.0], "many": [float(at) for at in range(1, 9)], "single": [5.0]})
    bases = {value.cell: value.basis for value in made.values if value.metric == "iops"}
    assert bases == {"few": "range of the runs", "many": "95 % interval of the median", "single": ""}


def test_cpu_time_is_that_of_a_run_whatever_it_does(tmp_path: Path) -> None:
    found = drawn(bench(tmp_path, (1, 2), (1,), rw="randrw"))
    (figure,) = (figure for name, figure in found.items() if name.startswith("values-cpu"))
    assert [(row["row"], row["value"], row["said"]) for row in figure.rows] == [
        ("iodepth 1", 30, "30 %"),
        ("iodepth 2", 30, "30 %"),
    ]


@pytest.mark.parametrize("cells", [1, 40, 41, 200, 500])
def test_no_chart_has_more_rows_than_can_be_read_and_no_cell_is_lost(cells: int) -> None:
    source = of_layout(Layout("content", ()))
    made = values({f"c{at:03d}": [1000.0 + at] for at in range(cells)})
    source = replace(source, values=made, variants=("a",), cells=tuple(p.cell for p in made.places))
    own = [figure for _, group in figures(source) for figure in group if figure.name.startswith("values-read-iops")]
    assert max(len(figure.rows) for figure in own) <= MOST
    assert sorted(row["cell"] for figure in own for row in figure.rows) == sorted(p.cell for p in made.places)
    assert all(figure.table for figure in own)


def test_nothing_measured_gives_no_chart() -> None:
    assert families(Layout("content", ())) == set()
    assert values({"nan": [math.nan], "negative": [-1.0]}).values == ()


@pytest.mark.parametrize("sizes", ["bsrange=4k-64k", "bssplit=4k/50:64k/50", "bs=4k,64k"])
def test_a_cell_with_several_block_sizes_says_which(tmp_path: Path, sizes: str) -> None:
    option, _, value = sizes.partition("=")
    for depth in (1, 4, 16):
        write(tmp_path / f"{depth}.json", 1000.0, depth=depth, rw="randrw", options={option: value})
    layout = read_layout(tmp_path)
    made = of_layout(layout).values
    assert made is not None
    assert list(made.panels()) == [f"randrw {sizes}"]
    rows = shown(layout, audit(entry.run for entry in layout.entries)).rows
    assert all(row.group.startswith(f"randrw {sizes} iodepth") for row in rows)


def test_many_curves_are_thinned_evenly_and_the_chart_says_so(tmp_path: Path) -> None:
    figure = drawn(bench(tmp_path, (1, 2, 4), range(1, 21)))["over-depth-1-read-iops"]
    names = figure.texts["variants"]
    assert len(names) == 7
    assert (names[0], names[-1]) == ("1 job", "20 jobs")
    assert figure.note == "Shown: 7 of 20 curves of each variant."


def test_runs_of_one_cell_are_one_mark_with_their_range(tmp_path: Path) -> None:
    for run, rate in enumerate((900.0, 1000.0, 1300.0), 1):
        write(tmp_path / "sda" / "4k" / f"run-{run}" / "randread-1-1.json", rate, depth=1)
    figure = drawn(read_layout(tmp_path))["values-read-iops"]
    (row,) = figure.rows
    assert (row["value"], row["low"], row["high"], row["runs"]) == (1000, 900, 1300, "3")
    assert figure.extra["spans"] == [row]
    assert "range of the runs" in figure.table[0][3]


def test_cells_with_one_place_on_the_axes_keep_apart_by_their_names(tmp_path: Path) -> None:
    for engine in ("libaio", "psync"):
        for depth in (1, 2, 4):
            write(tmp_path / f"{engine}-{depth}.json", 1000.0 * depth, depth=depth, engine=engine)
    layout = read_layout(tmp_path)
    made = of_entries([(entry.cell, entry.variant, entry) for entry in layout.entries])
    rates = [value for value in made.values if value.metric == "iops"]
    assert len({(value.cell, value.variant) for value in rates}) == len(rates) == 6
    assert sorted(value.value for value in rates) == [1000, 1000, 2000, 2000, 4000, 4000]


def test_zero_on_an_axis_has_no_unit_of_the_other_ticks(tmp_path: Path) -> None:
    figure = drawn(bench(tmp_path, (1, 2), (1,)))["values-read-iops"]
    words = re.findall(r"<text[^>]*>([^<]*)</text>", vl_convert.vegalite_to_svg(alone(figure), vl_version=VEGA_LITE))
    assert "0" in words
    assert "0k" not in words
    assert "1k" in words


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1575.3, "", "1,575"),
        (999.96, "IOPS", "1,000"),
        (1023.4 * 2**20, "B/s", "1,023 MiB/s"),
        (12_345e9, "ns", "12,345 s"),
        (-1575.3, "", "-1,575"),
        (0.00001, "", "1e-05"),
    ],
)
def test_numbers_from_a_thousand_on_have_their_digits_in_groups(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("width", [150, 300, 720])
def test_the_numbers_at_bars_are_inside_the_picture_however_narrow_it_is(
    scale: Any, width: int, tmp_path: Path
) -> None:
    """On a phone the last digits were cut off: the room for them was a share of the axis."""
    source = replace(of_layout(bench(tmp_path, (1, 8, 64), (1,))), scale=scale)
    figure = next(f for _, own in figures(source) for f in own if f.name == "values-read-iops")
    svg = vl_convert.vegalite_to_svg(alone(figure, width), vl_version=VEGA_LITE)
    begun = re.findall(r'="text mark"[^>]*translate\(([\d.]+),[^>]*>([\d,]+)<', svg)
    assert sorted(text for _, text in begun) == ["1,000", "64,000", "8,000"]
    for place, text in begun:
        assert float(place) + 5.6 * len(text) <= width
