"""Charts of values: what a folder of results shows, from one run to hundreds of cells."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import vl_convert
from fio_files import document, write
from scipy.stats import binom

from iodelta.audit import audit
from iodelta.ingest.layouts import Layout, read_layout
from iodelta.report.formats.charts import Figure, Scale, figures
from iodelta.report.formats.charts.cells import MOST
from iodelta.report.formats.charts.export import VEGA_LITE
from iodelta.report.formats.charts.percentiles import SHOWN
from iodelta.report.formats.charts.sources import of_comparison, of_layout
from iodelta.report.formats.charts.specs import alone, filled, fold_legends
from iodelta.study.comparison import compare
from iodelta.study.runs import shown
from iodelta.study.values import Place, Values, of_entries, of_samples, order_statistic, ordered, spread
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
    source = msgspec.structs.replace(of_layout(layout), scale=scale)
    return {figure.name: figure for _, own in figures(source) for figure in own}


def families(layout: Layout) -> set[str]:
    return {title for title, _ in figures(of_layout(layout))}


def direction(rate: float) -> Direction:
    return Direction("read", 0, 0, 1000, Quantity.exact(rate, "IOPS"), Quantity.exact(4096 * rate, "B/s"))


def values(rates: dict[str, list[float]]) -> Values:
    """Cells called by their names, each with the rates of its runs."""
    places = [Place(cell=cell, panel="randread 4k", depth=at) for at, cell in enumerate(rates, 1)]
    return of_samples(places, ((cell, "a", [direction(rate)]) for cell, own in rates.items() for rate in own))


def test_a_folder_of_fio_plots_runner_gives_all_its_pictures(tmp_path: Path) -> None:
    layout = bench(tmp_path, (1, 2, 4, 8), (1, 2, 4))
    assert {"Values", "Latency: percentiles", "Depth and jobs", "Depth by jobs", "Latency against IOPS"} <= families(
        layout
    )


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


def test_the_jobs_of_one_file_share_charts(tmp_path: Path) -> None:
    """A chart of a single bar for each job would say less than the table."""
    jobs = [document(1000.0 + at, name=f"job{at}")["jobs"][0] for at in range(64)]
    (tmp_path / "all.json").write_text(json.dumps(document() | {"jobs": jobs}))
    layout = read_layout(tmp_path)
    made = [figure for figure in drawn(layout).values() if figure.name.startswith("values-read-iops")]
    assert [len(figure.rows) for figure in made] == [MOST, 64 - MOST]
    assert len({figure.title for figure in made}) == 2, "regions need names of their own"
    rows = sorted(row["value"] for figure in made for row in figure.rows)
    assert rows == [1000.0 + at for at in range(64)]
    groups = {row.group for row in shown(layout, audit(entry.run for entry in layout.entries)).rows}
    assert {group.count("randread") for group in groups} == {1}, "what a job and its workload both say is said once"


def test_cells_stand_in_numeric_order_whatever_order_files_have() -> None:
    names = ["randread 64k iodepth 16", "randread 4k iodepth 128", "randread 4k iodepth 2", "randread 1m iodepth 1"]
    places = [
        Place(cell=name, panel=name.rpartition(" iodepth")[0], depth=int(name.rpartition(" ")[2])) for name in names
    ]
    assert [place.cell for place in ordered(places)] == [names[2], names[1], names[0], names[3]]


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


def test_many_cells_are_parted_by_their_jobs_and_each_chart_says_which_it_shows(tmp_path: Path) -> None:
    found = drawn(bench(tmp_path, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048), (1, 2, 4, 8)))
    own = [figure for name, figure in found.items() if name.startswith("values-read-iops")]
    assert [figure.title for figure in own] == ["IOPS: randread 4k, 1 to 4 jobs", "IOPS: randread 4k, 8 jobs"]
    shown = [row["cell"] for figure in own for row in figure.rows]
    assert len(shown) == len(set(shown)) == 48


@pytest.mark.parametrize("cells", [1, 40, 41, 200, 500])
def test_no_chart_has_more_rows_than_can_be_read_and_no_cell_is_lost(cells: int) -> None:
    source = of_layout(Layout("content", ()))
    made = values({f"c{at:03d}": [1000.0 + at] for at in range(cells)})
    source = msgspec.structs.replace(source, values=made, variants=("a",), cells=tuple(p.cell for p in made.places))
    own = [figure for _, group in figures(source) for figure in group if figure.name.startswith("values-read-iops")]
    assert max(len(figure.rows) for figure in own) <= MOST
    assert sorted(row["cell"] for figure in own for row in figure.rows) == sorted(p.cell for p in made.places)
    assert all(figure.table for figure in own)


def test_nothing_measured_gives_no_chart() -> None:
    assert families(Layout("content", ())) == set()
    assert values({"nan": [math.nan], "negative": [-1.0]}).values == ()


def test_values_of_nine_decades_and_zeros_are_all_drawn_or_said() -> None:
    made = values({"zero": [0.0], "least": [1.0], "most": [1e9]})
    source = msgspec.structs.replace(of_layout(Layout("content", ())), values=made, variants=("a",))
    figure = next(figure for _, own in figures(source) for figure in own if figure.name == "values-read-iops")
    assert figure.spec == "values-log"
    assert {row["cell"] for row in figure.rows} == {"least", "most"}
    assert [row[2] for row in figure.table] == ["0", "1", "1,000,000,000"]
    assert "table" in figure.note
    low, high = figure.texts["frame"]
    assert 0 < low < 1
    assert high >= 1e9


@pytest.mark.parametrize(("factor", "spec"), [(2, "sweep"), (10, "sweep-log")])
def test_rates_over_depth_are_on_the_axis_on_which_each_can_be_read(tmp_path: Path, factor: int, spec: str) -> None:
    for at in range(6):
        write(tmp_path / f"{at}.json", float(factor**at), depth=2**at, seconds=100)
    figure = drawn(read_layout(tmp_path))["over-depth-1-read-iops"]
    assert figure.spec == spec
    assert [row["value"] for row in figure.rows] == [factor**at for at in range(6)]


def test_latency_against_rates_of_nine_decades_shows_each_and_labels_do_not_meet(tmp_path: Path) -> None:
    for at in range(10):
        write(tmp_path / f"r{at}.json", 0.1 * 10**at, depth=2**at, seconds=100)
    found = drawn(read_layout(tmp_path))
    mean, p99 = found["knee-1-read-mean"], found["knee-1-read-p99"]
    assert (mean.spec, p99.spec) == ("knee-wide", "knee-wide-linear"), "one p99 has no logarithmic axis"
    assert [row["depth"] for row in mean.extra["marks"]] == [2**at for at in reversed(range(10))]
    linear = drawn(read_layout(tmp_path), scale="linear")["knee-1-read-mean"]
    assert len(linear.extra["marks"]) < 10, "on a linear axis most points lie on each other"


@pytest.mark.parametrize("scale", ["auto", "log", "linear"])
@pytest.mark.parametrize("numbers", [[], [0.0], [7.0], [7.0, 7.0, 0.0]])
def test_no_axis_is_logarithmic_for_a_single_value(scale: Scale, numbers: list[float]) -> None:
    source = msgspec.structs.replace(of_layout(Layout("content", ())), scale=scale)
    assert not source.logarithmic(True, numbers)


def test_files_named_after_what_they_measured_are_one_variant_in_order_of_size(tmp_path: Path) -> None:
    """1m.json and 4k.json are cells; a variant of its own for each would draw curves of single points."""
    for depth in (1, 4, 16):
        for size, bs in (("1m", "1m"), ("4k", "4k")):
            write(tmp_path / f"{depth}-{size}.json", 1000.0 * depth, depth=depth, bs=bs)
    layout = read_layout(tmp_path)
    made = of_layout(layout).values
    assert made is not None
    assert made.variants == ("runs",)
    assert list(made.panels()) == ["randread 4k", "randread 1m"]
    rows = shown(layout, audit(entry.run for entry in layout.entries)).rows
    assert [(row.bs, row.iodepth) for row in rows] == [(4096, 1), (4096, 4), (4096, 16)] + [
        (1 << 20, depth) for depth in (1, 4, 16)
    ]


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


def test_only_zeros_are_bars_without_length() -> None:
    made = values({"one": [0.0], "two": [0.0]})
    source = msgspec.structs.replace(of_layout(Layout("content", ())), values=made, variants=("a",))
    figure = next(figure for _, own in figures(source) for figure in own if figure.name == "values-read-iops")
    assert figure.spec == "values"
    assert [row["value"] for row in figure.rows] == [0, 0]
    assert figure.texts["frame"][1] > 0


def test_more_variants_than_colours_are_told_apart_by_the_names_of_their_rows(tmp_path: Path) -> None:
    for place in range(12):
        write(tmp_path / f"sd{place}" / "4k" / "randread-1-1.json", 1000.0 + place, depth=1)
    figure = drawn(read_layout(tmp_path))["values-read-iops"]
    assert len({row["row"] for row in figure.rows}) == 12
    assert len({row["variant"] for row in figure.rows}) == 1


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


def test_every_mark_says_interval_runs_and_unit(tmp_path: Path) -> None:
    for name, figure in drawn(bench(tmp_path, (1, 2, 4, 8), (1, 2, 4))).items():
        if name.startswith(("values", "percentiles", "over", "grid", "knee")):
            assert {"said", "interval", "runs"} <= figure.rows[0].keys(), name
        for time in (row["said"] for row in figure.rows if re.search("lat|mean|p99", name) and "said" in row):
            assert re.search(r" (ns|us|ms|s)$", str(time)), (name, time)


def test_a_legend_has_as_many_columns_as_fit() -> None:
    spec: dict[str, Any] = {
        "encoding": {"color": {"legend": {"values": ["iodepth 1", "iodepth 128"]}}, "x": {"axis": None}}
    }
    fold_legends(spec, 100)
    assert spec["encoding"]["color"]["legend"]["columns"] == 1
    fold_legends(spec, 1000)
    assert spec["encoding"]["color"]["legend"]["columns"] > 2


def test_the_picture_of_a_chart_has_the_data_of_the_page(tmp_path: Path) -> None:
    for figure in drawn(bench(tmp_path, (1, 2, 4), (1, 2))).values():
        assert alone(figure)["datasets"] == filled(figure)["datasets"]


def test_cells_with_one_place_on_the_axes_keep_apart_by_their_names(tmp_path: Path) -> None:
    for engine in ("libaio", "psync"):
        for depth in (1, 2, 4):
            write(tmp_path / f"{engine}-{depth}.json", 1000.0 * depth, depth=depth, engine=engine)
    layout = read_layout(tmp_path)
    made = of_entries([(entry.cell, entry.variant, entry) for entry in layout.entries])
    rates = [value for value in made.values if value.metric == "iops"]
    assert len({(value.cell, value.variant) for value in rates}) == len(rates) == 6
    assert sorted(value.value for value in rates) == [1000, 1000, 2000, 2000, 4000, 4000]


def test_a_legend_of_percentiles_names_those_that_are_drawn(tmp_path: Path) -> None:
    figure = drawn(bench(tmp_path, (1, 2), (1,)))["percentiles-read"]
    shapes = [part["encoding"]["shape"] for part in filled(figure)["layer"] if "shape" in part["encoding"]]
    held = {row["point"] for row in figure.rows}
    assert len(shapes) == 1
    assert shapes[0]["legend"]["values"] == [point for point in SHOWN if point in held]


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
        (999.4, "", "999.4"),
        (999.96, "IOPS", "1,000"),
        (1023.4 * 2**20, "B/s", "1,023 MiB/s"),
        (20_000 * 2.0**30, "B/s", "20,000 GiB/s"),
        (12_345e9, "ns", "12,345 s"),
        (12_800.0, "%", "12,800 %"),
        (-1575.3, "", "-1,575"),
        (0.00001, "", "1e-05"),
    ],
)
def test_numbers_from_a_thousand_on_have_their_digits_in_groups(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_numbers_at_bars_are_those_of_the_table(tmp_path: Path) -> None:
    for rate in (1575.3, 157.53, 1.5, 2_000_000.0):
        write(tmp_path / f"{rate}.json", rate, depth=int(rate))
    figure = drawn(read_layout(tmp_path))["values-read-iops"]
    assert {row["text"] for row in figure.rows} == {row[2] for row in figure.table}
    assert "1,575" in {row["text"] for row in figure.rows}


def test_cells_that_sync_are_in_every_chart_under_the_name_that_the_table_has(tmp_path: Path) -> None:
    """They were called "write 4k" by the bars and "write 4k fsync=1" by the verdicts, and were missing elsewhere."""
    for side, rate in (("a", 1000.0), ("b", 200.0)):
        for run in range(3):
            place = tmp_path / side / f"{run}.json"
            write(place, rate + run, rw="write", depth=1, options={"fsync": "1"}, ended=1.7e9 + 10 * run + rate)
    paths = [str(tmp_path / side) for side in ("a", "b")]
    layouts = [read_layout(Path(path)) for path in paths]
    source = of_comparison(compare(layouts, paths), layouts, paths, None)
    (name,) = source.cells
    assert name.endswith(" fsync=1")
    found = {figure.name: figure for _, own in figures(source) for figure in own}
    assert {row["cell"] for row in found["values-write-iops"].rows} == {name}
    assert {"order-write.iops", "spread-write.iops"} <= found.keys()
    shown = drawn(read_layout(tmp_path / "a"))["values-write-iops"]
    assert all(row["cell"].endswith(" fsync=1") for row in shown.rows)


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("width", [150, 300, 720])
def test_the_numbers_at_bars_are_inside_the_picture_however_narrow_it_is(
    scale: Any, width: int, tmp_path: Path
) -> None:
    """On a phone the last digits were cut off: the room for them was a share of the axis."""
    source = msgspec.structs.replace(of_layout(bench(tmp_path, (1, 8, 64), (1,))), scale=scale)
    figure = next(f for _, own in figures(source) for f in own if f.name == "values-read-iops")
    svg = vl_convert.vegalite_to_svg(alone(figure, width), vl_version=VEGA_LITE)
    begun = re.findall(r'="text mark"[^>]*translate\(([\d.]+),[^>]*>([\d,]+)<', svg)
    assert sorted(text for _, text in begun) == ["1,000", "64,000", "8,000"]
    for place, text in begun:
        assert float(place) + 5.6 * len(text) <= width
