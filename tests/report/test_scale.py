"""The axis of values: the chart chooses between linear and logarithmic, unless the user does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fio_files import write
from msgspec.structs import replace
from test_charts import source as experiment_source
from test_command_options import call
from test_timelines import drawn as timelines_of
from test_timelines import write as write_log
from test_values import bench, values

from iodelta.ingest.layouts import Layout
from iodelta.report.formats.charts import Figure, Source, figures
from iodelta.report.formats.charts.sources import of_layout
from iodelta.report.formats.charts.specs import filled

VALUES = ("values", "percentiles", "over", "knee", "timeline", "seconds-read-", "rounds")
"""How the names of figures begin that show values as measured; "values-cpu" is one of them."""

ACROSS = ("values", "percentiles")
"""These have their values on the x axis."""


def of_values(source: Source) -> list[Figure]:
    return [figure for _, own in figures(source) for figure in own if figure.name.startswith(VALUES)]


def axes(part: Any, channel: str) -> Iterator[dict[str, Any]]:
    """Every scale of ``channel`` in a specification, those of its layers too."""
    own = part.get("encoding", {}).get(channel, {})
    if own.get("scale"):
        yield own["scale"]
    for layer in part.get("layer", ()):
        yield from axes(layer, channel)


def kinds(figure: Figure) -> set[str]:
    """``log`` or ``linear``: the axes of a figure's values."""
    channel = "x" if figure.name.startswith(ACROSS) else "y"
    return {scale.get("type", "linear") for scale in axes(filled(figure), channel)}


def logs(folder: Path) -> Source:
    write_log(folder, "randread_iops.1.log", [1000, 0, 900, 1100, 1000])
    write_log(folder, "randread_lat.1.log", [100, 90, 500_000, 110, 100])
    return Source(baseline="", variants=(), cells=(), margin=0.01, timelines=tuple(timelines_of(one=folder)))


@pytest.fixture
def sources(tmp_path: Path) -> list[Source]:
    """Files, logs, an experiment and a prepared disk."""
    return [of_layout(bench(tmp_path, (1, 2, 4, 8), (1, 2, 4))), experiment_source(-0.05), logs(tmp_path / "logs")]


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_every_chart_of_values_has_the_axis_that_is_asked_for(scale: Any, sources: list[Source]) -> None:
    drawn = [(at, figure) for at, one in enumerate(sources) for figure in of_values(replace(one, scale=scale))]
    assert {figure.name.partition("-")[0] for _, figure in drawn} >= {name.partition("-")[0] for name in VALUES}
    found = {(at, figure.name): kinds(figure) for at, figure in drawn}
    # The CPU and the latency of the files are one number each, which no logarithmic axis can show.
    latencies = (f"{chart}-1-read-{of}" for chart in ("over-depth", "knee") for of in ("mean", "p99"))
    alike = {(0, name): {"linear"} for name in ("values-cpu", "values-read-mean", *latencies)}
    assert found == {(at, figure.name): {scale} for at, figure in drawn} | alike


def test_without_a_wish_each_chart_chooses(sources: list[Source]) -> None:
    found = {kind for one in sources for figure in of_values(one) for kind in kinds(figure)}
    assert found == {"log", "linear"}


def test_a_logarithmic_axis_shows_nothing_at_or_below_zero_and_says_so(sources: list[Source]) -> None:
    held = values({"zero": [0.0], "from zero": [0.0, 5.0, 9.0], "most": [70.0]})
    some = replace(of_layout(Layout("content", ())), values=held, variants=("a",))
    for one in (some, *sources):
        for figure in of_values(replace(one, scale="log")):
            for row in (*figure.rows, *figure.extra.get("spans", ())):
                shown = [row[name] for name in ("value", "low", "high", "iops") if row.get(name) is not None]
                assert shown, figure.name
                assert min(shown) > 0, (figure.name, row)
    bars = next(f for f in of_values(replace(some, scale="log")) if f.name == "values-read-iops")
    assert [row["cell"] for row in bars.rows] == ["from zero", "most"]
    assert "zeros" in bars.note
    assert len(bars.table) == 3


def test_numbers_and_tables_do_not_depend_on_the_axis(sources: list[Source]) -> None:
    for one in sources:
        log, linear = (of_values(replace(one, scale=scale)) for scale in ("log", "linear"))
        assert [(f.name, f.title, f.alt, f.table) for f in log] == [(f.name, f.title, f.alt, f.table) for f in linear]


@pytest.mark.parametrize("command", [("show", "A"), ("compare", "A", "B"), ("report", "A")])
def test_the_scale_reaches_the_page_and_the_pictures(command: tuple[str, ...], tmp_path: Path) -> None:
    for side in ("A", "B"):
        for depth in (1, 2, 4):
            write(tmp_path / side / f"{depth}.json", 1000.0 * depth, depth=depth)
    assert call(*command, "-o", "page.html", "--scale", "log", "--charts", "own", cwd=tmp_path).code in (0, 3)
    assert '"type":"log"' in (tmp_path / "page.html").read_text()
    picture = (tmp_path / "own" / "values-read-iops.svg").read_text()
    assert call(*command, "--charts", "chosen", cwd=tmp_path).code in (0, 3)
    assert (tmp_path / "chosen" / "values-read-iops.svg").read_text() != picture


def test_a_scale_without_charts_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "A/x.json", 1000)
    done = call("show", "A", "--scale", "log", cwd=tmp_path)
    assert done.code == 2
    assert "--scale" in done.error
    assert "--charts" in done.error
