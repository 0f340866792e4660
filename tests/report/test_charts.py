"""Charts: one specification each, and what they show is what was measured."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from prepared_disk import disk
from test_console import account, experiment, trials

from iodelta.lab.plan import make_plan
from iodelta.report.formats.charts import (
    Figure,
    Source,
    distribution,
    figures,
    forest,
    order,
    percentiles,
    shift,
    sweep,
)
from iodelta.report.formats.charts.__main__ import specifications
from iodelta.report.formats.charts.export import export
from iodelta.report.formats.charts.model import labels
from iodelta.report.formats.charts.sources import of_account
from iodelta.report.formats.charts.specs import FOLDER, alone, filled
from iodelta.study.values import cell_places, of_samples
from iodelta.study.views import views
from iodelta.trial import Background, Direction, Histogram, Latency, Quantity, Trial, bin_index

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
    told = msgspec.structs.replace(told, views=views(plan, told.judgement, made))
    environment = {"target": {"device": "md0"}, "devices": [{"name": "md0"}, {"name": "sda"}, {"name": "sdb"}]}
    found = of_account(told, made, environment)
    return msgspec.structs.replace(found, backgrounds=dict.fromkeys(found.cells, "defrag"), prepared=(disk(),))


def dressed(trial: Trial) -> Trial:
    """With a histogram, 60 % of the reads on sda, a clock, and a background load."""
    rng = np.random.default_rng(trial.number)
    (read,) = trial.directions
    assert read.lat is not None
    counts: dict[int, int] = {}
    for value in read.lat.mean.value * rng.lognormal(0, 0.5, 2000):
        counts[bin_index(int(value))] = counts.get(bin_index(int(value)), 0) + 10
    latency = msgspec.structs.replace(read.lat, histogram=Histogram.from_counts(counts))
    shares = {"disk.sda.read_ios": 600.0, "disk.sdb.read_ios": 400.0}
    clock = {"cpu.mhz_mean": 2000.0 + trial.number, "cpu.mhz_min": 1800.0, "cpu.mhz_max": 3000.0}
    return msgspec.structs.replace(
        trial,
        directions=(msgspec.structs.replace(read, lat=latency),),
        counters={**shares, **clock, "cpu.interrupts": 30_000.0},
        background=Background(("dd", "if=/dev/zero"), 1.0, rate=5e7),
        context_switches=1000,
        series={"read.iops": (read.iops.value,) * 6},
    )


@pytest.fixture(scope="module")
def drawn() -> dict[str, Figure]:
    return {figure.name: figure for _, own in figures(source(-0.05, blocks=20)) for figure in own}


def strings(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for value in part.values():
            yield from strings(value)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from strings(value)


def test_the_stored_specifications_are_what_altair_makes_of_the_charts() -> None:
    made = specifications()
    assert {path.stem for path in FOLDER.glob("*.json")} == made.keys()
    for name, specification in made.items():
        assert msgspec.json.decode((FOLDER / f"{name}.json").read_bytes()) == specification, name


def test_every_family_draws_where_the_data_has_it(drawn: dict[str, Figure]) -> None:
    families = {figure.spec for figure in drawn.values()}
    of_histories, of_other_cells = (
        {"course"},
        {"grid", "values-log", "knee-wide"},
    )  # depth by jobs, and values far apart
    of_logs = {"timeline-log"}
    asked_for = {"knee-linear", "knee-wide-linear", "percentiles-linear", "rounds-log"}
    others = of_histories | of_other_cells | of_logs | asked_for
    assert families == {path.stem for path in FOLDER.glob("*.json")} - others


def test_every_chart_says_in_words_and_numbers_what_it_shows(drawn: dict[str, Figure]) -> None:
    for figure in drawn.values():
        assert figure.alt, figure.name
        assert figure.about, figure.name
        assert figure.table, figure.name
        assert {len(row) for row in figure.table} == {len(figure.head)}, figure.name


def test_nothing_is_left_to_be_filled_in_and_no_text_is_filled_in_twice() -> None:
    found = msgspec.structs.replace(source(), cells=tuple(f"iodepth={depth}" for depth in DEPTHS))
    hostile = [msgspec.structs.replace(effect, variant="@alt") for effect in found.effects]
    found = msgspec.structs.replace(found, variants=("old", "@alt"), effects=tuple(hostile))
    (figure, *_) = forest.figures(found)
    specification = filled(figure)
    specification.pop("datasets")
    assert [text for text in strings(specification) if text.startswith("@")] == []
    others = next(order.figures(msgspec.structs.replace(found, trials=source().trials)))
    domain = filled(others)["layer"][1]["encoding"]["color"]["scale"]["domain"]
    assert domain == ["old", "@alt"]


def test_rows_whose_names_are_cut_to_the_same_stay_apart() -> None:
    names = ["x" * 500 + f"{n}" + "y" * 500 for n in range(3)]
    assert len(set(labels(names))) == 3
    assert max(map(len, labels(names))) < 90


def test_a_name_that_looks_numbered_stays_a_row_of_its_own() -> None:
    assert len(set(labels(["randread", "randread", "randread (2)"]))) == 3


def test_a_forest_has_every_comparison_with_its_word_and_interval() -> None:
    found = source(-0.05, blocks=20)
    (iops, *_) = forest.figures(found)
    assert [row["row"] for row in iops.rows] == [f"iodepth={depth}" for depth in DEPTHS]
    assert iops.rows[-1]["word"] == "regression"
    assert iops.rows[-1]["low"] < -5 < iops.rows[-1]["high"] < 0


def test_the_axis_of_changes_holds_every_interval_but_for_the_absurd() -> None:
    found = source()
    own = [effect for effect in found.effects if effect.metric.name == "read.iops"]
    for bound, end in ((0.9, 90), (40.0, 1000)):
        wild = [msgspec.structs.replace(one, low=-0.99, high=bound) if one.cell == "iodepth=1" else one for one in own]
        (figure,) = forest.figures(msgspec.structs.replace(found, effects=tuple(wild)))
        low, high = figure.texts["frame"]
        assert low < -99
        assert end < high < 1.2 * end
        assert f"+{100 * bound:.0f} %" in str(figure.table[0])


def test_a_forest_promises_no_interval_where_there_is_none() -> None:
    found = source(-0.05, blocks=20)
    bare = tuple(msgspec.structs.replace(one, low=None, high=None) for one in found.effects)
    for figure in forest.figures(msgspec.structs.replace(found, effects=bare)):
        assert "no change has an interval" in figure.about
        assert "with its interval" not in figure.about
    assert all("with its interval" in figure.about for figure in forest.figures(found))


def test_a_shift_that_runs_off_its_chart_ends_in_an_arrowhead() -> None:
    found = source(-0.05)
    cell, variant, moved = next(one for one in found.shifts if one[2].shifts)
    first, *others = moved.shifts
    wild = msgspec.structs.replace(first, low=-9.0, high=9.0)
    one = (cell, variant, msgspec.structs.replace(moved, shifts=(wild, *others)))
    (figure,) = shift.figures(msgspec.structs.replace(found, shifts=(one,)))
    for side, end in zip(("below", "above"), figure.texts["frame"], strict=True):
        marks = [mark for mark in figure.extra[side] if mark["percentile"] == f"p{100 * wild.p:g}"]
        assert [mark["at"] for mark in marks] == [end]
    assert len(figure.extra["above"]) < len(figure.rows), "only where an interval is cut"


@pytest.mark.parametrize("change", [-0.8, -0.05])
def test_no_value_lies_beyond_the_axis_it_is_drawn_on(change: float) -> None:
    for figure in (figure for _, own in figures(source(change)) for figure in own):
        if "frame" not in figure.texts:
            continue
        low, high = figure.texts["frame"]
        measure = "change" if "change" in figure.rows[0] else "value"
        drawn = [row[measure] for row in figure.rows if row[measure] is not None]
        if figure.spec == "knee":  # the frame is that of the rate
            drawn = [row["rate"] for row in figure.rows]
        assert low <= min(drawn) <= max(drawn) <= high, figure.name


def test_the_knee_of_a_sweep_is_marked_on_its_curve() -> None:
    (rate, latency) = [f for f in sweep.figures(source(sd=0.002)) if "p99" not in f.name]
    knee = next(row for row in rate.extra["knees"] if row["variant"] == "old")
    assert 6 < knee["knee"] < 10
    plateau = max(row["value"] for row in rate.rows)
    assert 0.85 * plateau < knee["level"] <= plateau
    assert latency.extra["knees"] == []


def test_the_shares_of_a_distribution_are_all_its_ios() -> None:
    figure = next(distribution.figures(source()))
    for variant in ("old", "new"):
        shares = [row["share"] for row in figure.rows if row["variant"] == variant]
        assert sum(shares) == pytest.approx(100, abs=0.1)


def test_a_percentile_that_too_few_ios_bear_is_not_shown() -> None:
    figure = next(percentiles.figures(source()))
    assert {row["point"] for row in figure.rows} == {"mean", "p50", "p99"}  # 20 000 I/Os a trial
    assert {row[-1] for row in figure.table} == {"-"}


def test_drift_over_the_run_is_said_and_drawn() -> None:
    found = source(sd=0.002)
    slowing = []
    for place, trial in enumerate(found.trials):
        (read,) = trial.directions
        rate = Quantity.exact(read.iops.value * (1 - 0.1 * place / len(found.trials)), "IOPS")
        slowing.append(msgspec.structs.replace(trial, directions=(msgspec.structs.replace(read, iops=rate),)))
    figure = next(order.figures(msgspec.structs.replace(found, trials=tuple(slowing))))
    level = [row["value"] for row in figure.extra["level"]]
    assert level[0] > 4 > -4 > level[-1]
    assert re.search(r"moved by -[67]\.", figure.alt)


@pytest.mark.parametrize("family", ["order", "frequency", "background"])
def test_trials_are_counted_in_whole_numbers(family: str) -> None:
    stored = json.loads((FOLDER / f"{family}.json").read_text())
    placed = [layer["encoding"]["x"] for layer in stored["layer"] if "x" in layer.get("encoding", {})]
    placed = [x for x in placed if x.get("field") == "trial"]
    assert placed
    assert {(x["axis"]["format"], x["axis"]["tickMinStep"]) for x in placed} == {("d", 1)}


def test_an_unknown_order_is_not_drawn_as_one() -> None:
    assert list(order.figures(msgspec.structs.replace(source(), ordered=False))) == []


def test_pictures_are_files_that_show_their_titles(drawn: dict[str, Figure], tmp_path: Path) -> None:
    chosen: Sequence[Figure] = [drawn["change-read.iops"], drawn["sweep-read.iops"]]
    made = export(chosen, tmp_path / "pictures")
    assert [path.name for path in made] == [f"{one.name}.{end}" for one in chosen for end in ("svg", "png")]
    assert "Change of IOPS" in made[0].read_text()
    assert made[1].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_picture_never_leaves_its_folder(drawn: dict[str, Figure], tmp_path: Path) -> None:
    hostile = msgspec.structs.replace(drawn["change-read.iops"], name="../../x/../y")
    assert {path.parent for path in export([hostile], tmp_path)} == {tmp_path}


def test_a_picture_names_no_colour_of_a_page(drawn: dict[str, Figure]) -> None:
    for figure in drawn.values():
        assert "var(--" not in str(alone(figure))


def test_writes_and_reads_are_drawn_apart() -> None:
    found = source()
    both = []
    for trial in found.trials:
        (read,) = trial.directions
        both.append(msgspec.structs.replace(trial, directions=(read, write_of(read))))
    samples = ((trial.cell, trial.variant, trial.directions) for trial in both)
    measured = of_samples(cell_places(experiment(DEPTHS)), samples)
    names = [figure.name for figure in percentiles.figures(msgspec.structs.replace(found, values=measured))]
    assert {name.split("-")[1] for name in names} == {"read", "write"}


def write_of(read: Direction) -> Direction:
    quantity = Quantity.exact(1e6, "ns")
    latency = Latency(20_000, quantity, quantity, quantity, quantity, {50.0: quantity, 99.0: quantity})
    assert math.isfinite(latency.quantile(0.5))
    return msgspec.structs.replace(read, kind="write", lat=latency)
