"""Charts: one specification each, and what they show is what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import altair as alt
import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from prepared_disk import disk
from test_console import account, experiment, trials

from iodelta.lab.plan import make_plan
from iodelta.report.formats.charts import Figure, Source, changes, depths, figures, values
from iodelta.report.formats.charts import trials as by_trial
from iodelta.report.formats.charts.model import labels
from iodelta.report.formats.charts.sources import of_account
from iodelta.report.formats.charts.specs import CHARTS, SCALES, alone, export, stored
from iodelta.study.views import views
from iodelta.trial import Background, Histogram, Trial, bin_index

DEPTHS = (1, 2, 4, 8, 16, 32)


@cache
def source(
    change: float = 0.0, *, sd: float = 0.01, blocks: int = 10, variants: tuple[str, ...] = ("old", "new")
) -> Source:
    """A depth sweep of two variants whose trials carry latencies, counters, clocks and a background load; ``change`` is
    that of the deepest cell."""
    question = experiment(DEPTHS, variants)
    rise = {(f"iodepth={depth}", v): min(depth, 8) - 1.0 for depth in DEPTHS for v in variants}
    rise["iodepth=32", variants[-1]] = 8 * (1 + change) - 1
    told, plan = account(question, rise, sd=sd, blocks=blocks), make_plan(question)
    made = [dressed(trial) for trial in trials(plan, rise, blocks, sd)]
    told = replace(told, views=views(plan, told.judgement, made))
    environment = {"target": {"device": "md0"}, "devices": [{"name": "md0"}, {"name": "sda"}, {"name": "sdb"}]}
    found = of_account(told, made, environment)
    return replace(found, backgrounds=dict.fromkeys(found.cells, "defrag"), prepared=(disk(),))


def dressed(trial: Trial) -> Trial:
    """With a histogram, 60 % of the reads on sda, a clock, and a background load."""
    rng = np.random.default_rng(trial.number)
    (read,) = trial.directions
    assert read.lat is not None
    counts: dict[int, int] = {}
    for value in read.lat.mean.value * rng.lognormal(0, 0.5, 2000):
        counts[bin_index(int(value))] = counts.get(bin_index(int(value)), 0) + 10
    latency = replace(read.lat, histogram=Histogram.from_counts(counts))
    shares = {"disk.sda.read_ios": 600.0, "disk.sdb.read_ios": 400.0}
    clock = {"cpu.mhz_mean": 2000.0 + trial.number, "cpu.mhz_min": 1800.0, "cpu.mhz_max": 3000.0}
    return replace(
        trial,
        directions=(replace(read, lat=latency),),
        counters={**shares, **clock, "cpu.interrupts": 30_000.0},
        background=Background(("dd", "if=/dev/zero"), 1.0, rate=5e7),
        context_switches=1000,
        series={"read.iops": (read.iops.value,) * 6},
    )


@pytest.fixture(scope="module")
def drawn() -> dict[str, Figure]:
    return {figure.name: figure for _, own in figures(source(-0.05, blocks=20)) for figure in own}


def test_every_specification_is_valid_vega_lite_on_every_scale() -> None:
    for kind in msgspec.json.decode(CHARTS.read_bytes())["charts"]:
        for scale in ("", *(f"-{scale}" for scale in SCALES)):
            alt.LayerChart.from_dict(stored(f"{kind.removesuffix('-log')}{scale}"))


def test_every_chart_says_in_words_and_numbers_what_it_shows(drawn: dict[str, Figure]) -> None:
    for figure in drawn.values():
        assert figure.alt, figure.name
        assert figure.about, figure.name
        assert figure.table, figure.name
        assert {len(row) for row in figure.table} == {len(figure.head)}, figure.name


def test_rows_whose_names_are_cut_to_the_same_stay_apart() -> None:
    names = ["x" * 500 + f"{n}" + "y" * 500 for n in range(3)]
    assert len(set(labels(names))) == 3
    assert max(map(len, labels(names))) < 90


def test_a_name_that_looks_numbered_stays_a_row_of_its_own() -> None:
    assert len(set(labels(["randread", "randread", "randread (2)"]))) == 3


def test_a_forest_has_every_comparison_with_its_word_and_interval() -> None:
    found = source(-0.05, blocks=20)
    (iops, *_) = changes.changes(found)
    assert [row["row"] for row in iops.rows] == [f"iodepth={depth}" for depth in DEPTHS]
    assert iops.rows[-1]["word"] == "regression"
    assert iops.rows[-1]["low"] < -5 < iops.rows[-1]["high"] < 0


def test_the_axis_of_changes_holds_every_interval_but_for_the_absurd() -> None:
    found = source()
    own = [effect for effect in found.effects if effect.metric.name == "read.iops"]
    for bound, end in ((0.9, 90), (40.0, 1000)):
        wild = [replace(one, low=-0.99, high=bound) if one.cell == "iodepth=1" else one for one in own]
        (figure,) = changes.changes(replace(found, effects=tuple(wild)))
        low, high = figure.texts["frame"]
        assert low < -99
        assert end < high < 1.2 * end
        assert f"+{100 * bound:.0f} %" in str(figure.table[0])


@pytest.mark.parametrize("change", [-0.8, -0.05])
def test_no_value_lies_beyond_the_axis_it_is_drawn_on(change: float) -> None:
    for figure in (figure for _, own in figures(source(change)) for figure in own):
        if "frame" not in figure.texts:
            continue
        low, high = figure.texts["frame"]
        measure = "change" if "change" in figure.rows[0] else "value"
        drawn = [row[measure] for row in figure.rows if row[measure] is not None]
        if figure.spec.startswith("knee"):  # the frame is that of the rate
            drawn = [row["rate"] for row in figure.rows]
        assert low <= min(drawn) <= max(drawn) <= high, figure.name


def test_the_knee_of_a_sweep_is_marked_on_its_curve() -> None:
    (rate, latency, _) = depths.curves(source(sd=0.002))
    knee = next(row for row in rate.extra["knees"] if row["variant"] == "old")
    assert 6 < knee["knee"] < 10
    plateau = max(row["value"] for row in rate.rows)
    assert 0.85 * plateau < knee["level"] <= plateau
    assert latency.extra["knees"] == []


def test_the_shares_of_a_distribution_are_all_its_ios() -> None:
    figure = next(values.distributions(source()))
    for variant in ("old", "new"):
        shares = [row["share"] for row in figure.rows if row["variant"] == variant]
        assert sum(shares) == pytest.approx(100, abs=0.1)


def test_a_percentile_that_too_few_ios_bear_is_not_shown() -> None:
    figure = next(values.percentiles(source()))
    assert {row["point"] for row in figure.rows} == {"mean", "p50", "p99"}  # 20 000 I/Os a trial
    assert {row[-1] for row in figure.table} == {"-"}


def test_an_unknown_order_is_not_drawn_as_one() -> None:
    assert list(by_trial.in_order(replace(source(), ordered=False))) == []


def test_pictures_are_files_that_show_their_titles(drawn: dict[str, Figure], tmp_path: Path) -> None:
    chosen: Sequence[Figure] = [drawn["change-read.iops"], drawn["over-depth-1-read-iops"]]
    made = export(chosen, tmp_path / "pictures")
    assert [path.name for path in made] == [f"{one.name}.{end}" for one in chosen for end in ("svg", "png")]
    assert "Change of IOPS" in made[0].read_text()
    assert made[1].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_picture_never_leaves_its_folder(drawn: dict[str, Figure], tmp_path: Path) -> None:
    hostile = replace(drawn["change-read.iops"], name="../../x/../y")
    assert {path.parent for path in export([hostile], tmp_path)} == {tmp_path}


def test_a_picture_names_no_colour_of_a_page(drawn: dict[str, Figure]) -> None:
    for figure in drawn.values():
        assert "var(--" not in str(alone(figure))
