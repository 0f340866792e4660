"""``python -m iodelta.report.formats.charts``: store every family's altair specification where reports take it from."""

from __future__ import annotations

from itertools import product
from typing import Any

import altair as alt
import msgspec

from iodelta.report.formats.charts import (
    FAMILIES,
    bars,
    course,
    curves,
    heat,
    knee,
    percentiles,
    rounds,
    sweep,
    timeline,
)
from iodelta.report.formats.charts.specs import FOLDER

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""Whatever release of altair made them."""


def specifications() -> dict[str, dict[str, Any]]:
    """Name -> specification, validated by altair against Vega-Lite's schema, without looks."""
    with_one_chart = [
        family for family in FAMILIES.values() if family not in (bars, curves, heat)
    ]
    made = {
        family.__name__.rpartition(".")[2]: family.chart() for family in with_one_chart
    }
    made["values"], made["values-log"] = bars.chart(), bars.chart(log=True)
    made["grid"] = heat.chart()
    made["sweep-log"], made["timeline-log"] = (
        sweep.chart(log=True),
        timeline.chart(log=True),
    )
    made["rounds-log"] = rounds.chart(log=True)
    made["percentiles-linear"] = percentiles.chart(log=False)
    for log, wide in product((True, False), repeat=2):
        made[knee.spec_of(log=log, wide=wide)] = knee.chart(log=log, wide=wide)
    made["course"] = course.chart()
    return {name: _plain(chart) for name, chart in made.items()}


def _plain(chart: alt.LayerChart) -> dict[str, Any]:
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)  # altair's own looks; the theme gives ours
    return {**spec, "$schema": SCHEMA}


def main() -> None:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for name, specification in specifications().items():
        data = msgspec.json.format(
            msgspec.json.encode(specification, order="deterministic"), indent=1
        )
        (FOLDER / f"{name}.json").write_bytes(data + b"\n")


if __name__ == "__main__":
    main()
