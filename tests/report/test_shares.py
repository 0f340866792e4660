"""fio's coarse histogram as a chart: the shares of its report, weighted by I/Os, and only where no finer one is."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from fio_files import document, write

from iodelta.ingest.layouts import read_layout
from iodelta.report.formats.charts import Figure, figures
from iodelta.report.formats.charts.sources import of_layout

CORPUS = Path(__file__).parents[1] / "data" / "fio-3.33"


def drawn(root: Path) -> list[Figure]:
    return [figure for title, own in figures(of_layout(read_layout(root))) for figure in own if "histogram" in title]


def coarse(path: Path, iops: float, **buckets: dict[str, float]) -> None:
    """A result whose I/Os took as long as ``buckets`` say."""
    made = document(iops)
    made["jobs"][0] |= buckets
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(made, indent=1))


def test_shares_are_weighted_by_the_ios_of_each_run(tmp_path: Path) -> None:
    coarse(tmp_path / "a-1.json", 1000, latency_us={"2": 0.0, "50": 40.0, "100": 60.0})
    coarse(tmp_path / "a-2.json", 3000, latency_us={"50": 80.0}, latency_ms={"2": 20.0, ">=2000": 0.0})
    (figure,) = drawn(tmp_path)
    shares = {row["row"]: row["value"] for row in figure.rows}
    assert shares == {
        "to 50 us": pytest.approx((40 * 1000 + 80 * 3000) / 4000),
        "to 100 us": pytest.approx(15),
        "to 250 us": 0,
        "to 500 us": 0,
        "to 750 us": 0,
        "to 1 ms": 0,
        "to 2 ms": pytest.approx(15),
    }


def test_the_last_bucket_has_no_end(tmp_path: Path) -> None:
    coarse(tmp_path / "a.json", 1000, latency_ms={"2000": 99.0, ">=2000": 1.0})
    (figure,) = drawn(tmp_path)
    assert [row["row"] for row in figure.rows] == ["to 2 s", "above 2 s"]


@pytest.mark.parametrize(
    "buckets",
    [{}, {"x": 5.0}, {"50": -1.0}, {"50": 1e9}, {">=x": 0.0}, {"9" * 400: 1.0}],
    ids=lambda one: str(one)[:12],
)
def test_what_fio_does_not_write_is_not_drawn_and_breaks_nothing(tmp_path: Path, buckets: dict[str, float]) -> None:
    coarse(tmp_path / "a.json", 1000, latency_us=buckets)
    for figure in drawn(tmp_path):
        assert all(math.isfinite(row["value"]) for row in figure.rows)
    assert len(read_layout(tmp_path).entries) == 1


def test_a_file_without_it_or_with_a_finer_one_has_no_such_chart(tmp_path: Path) -> None:
    write(tmp_path / "plain.json", 1000.0)
    assert drawn(tmp_path) == []
    fine = tmp_path / "fine"
    fine.mkdir()
    (fine / "jp1.json").write_bytes((CORPUS / "jp1.json").read_bytes())
    assert drawn(fine) == []
    titles = [title for title, _ in figures(of_layout(read_layout(fine)))]
    assert "Latency: distribution" in titles, "fio keeps bins of completion latency unless it is asked for others"


def test_of_many_cells_the_first_the_last_and_some_between_are_drawn_and_that_is_said(tmp_path: Path) -> None:
    for depth in range(1, 21):
        made = document(1000, depth=depth)
        made["jobs"][0]["latency_us"] = {"50": 100.0}
        (tmp_path / f"{depth}.json").write_text(json.dumps(made))
    own = drawn(tmp_path)
    depths = [int(figure.title.rpartition(" ")[2]) for figure in own]
    assert depths == [1, 5, 9, 12, 16, 20]
    assert {figure.note for figure in own} == {"Shown: 6 of 20 cells, from the first to the last."}
