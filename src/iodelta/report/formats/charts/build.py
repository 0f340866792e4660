"""Building blocks of the altair specifications: the same axes, marks and channels in every chart.

Only the specifications' own tests and ``python -m iodelta.report.formats.charts`` import altair: a report fills
stored ones.
"""

from __future__ import annotations

from typing import Any

import altair as alt

WORDS = ("regression", "improvement", "equivalent", "inconclusive", "no verdict")
SHAPES = ("triangle-down", "triangle-up", "square", "circle", "diamond")
VARIANT_SHAPES = (
    "circle",
    "diamond",
    "square",
    "triangle-up",
    "cross",
    "triangle-down",
    "triangle-right",
)
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3], [10, 3])

Encoding = dict[str, Any]

LEGEND: dict[str, Any] = {
    "title": None,
    "orient": "top",
    "symbolSize": 70,
    "symbolOpacity": 1,
}

TALL = 26
"""Pixels that a title above the y axis needs below the legend."""

NUMBERED = "datum.label !== ''"
"""Whether a line of an axis has a number at its end."""

ONCE = alt.InlineData(values=[{}])
"""One empty row, for marks that show no data."""


def data(name: str = "rows") -> alt.NamedData:
    """Data that a report puts in: ``rows``, or one of a figure's extra data."""
    return alt.NamedData(name)


def x(
    field: str,
    title: str = "@x",
    *,
    zero: bool = False,
    log: bool = False,
    framed: bool = False,
    **axis: Any,
) -> alt.X:
    """Return a quantitative x axis; ``framed`` ones have their ends from the figure."""
    return alt.X(
        field=field,
        type="quantitative",
        title=title,
        scale=_scale(zero, log, framed),
        axis=alt.Axis(**{"grid": True, **_ticks(log), **axis}),
    )


def trials() -> alt.X:
    """Return the place of each trial in the run: whole numbers."""
    title = "trial, in the order in which they were run"
    return x("trial", title, grid=False, tickMinStep=1, format="d")


def y(
    field: str,
    title: str = "@y",
    *,
    zero: bool = False,
    log: bool = False,
    framed: bool = False,
    **axis: Any,
) -> alt.Y:
    """Return a quantitative y axis, its title above it and upright."""
    placed = {
        "titleAngle": 0,
        "titleAlign": "left",
        "titleAnchor": "start",
        "titleX": 0,
        "titleY": -8,
        "grid": True,
        **_ticks(log),
        **axis,
    }
    return alt.Y(
        field=field,
        type="quantitative",
        title=title,
        scale=_scale(zero, log, framed),
        axis=alt.Axis(titleBaseline="bottom", **placed),
    )


def logarithmic(log: bool) -> Encoding:
    """Settings of a logarithmic axis: lines without a number are faint, and labels that would overlap are left out."""
    if not log:
        return {}
    faint = {"condition": {"test": NUMBERED, "value": 1}, "value": 0.3}
    return {"gridOpacity": faint, "labelOverlap": "greedy"}


def _ticks(log: bool) -> Encoding:
    """On a logarithmic axis of many decades only these have a number."""
    if not log:
        return {}
    return {"tickCount": 5, **logarithmic(log)}


def _scale(zero: bool, log: bool, framed: bool) -> alt.Scale:
    if framed:
        return alt.Scale(domain=["@frame"], nice=False, zero=False)
    return alt.Scale(type="log", nice=False, padding=8) if log else alt.Scale(zero=zero)


def names(field: str, domain: str = "") -> alt.Y:
    """Return names down the left, in the order of the data; or of ``domain``, where a layer lacks some of them."""
    axis = alt.Axis(ticks=False, domain=False, grid=False)
    scale = alt.Scale(domain=[domain]) if domain else alt.Undefined
    return alt.Y(
        field=field, type="nominal", sort=None, title=None, axis=axis, scale=scale
    )


def by_variant(
    *, line: bool = False, shape: bool = True, names: str = "@variants", gap: int = 12
) -> Encoding:
    """Colour and shape of a variant, or the dash of its line, so that variants differ in greyscale too.

    ``gap`` are the pixels between legend and plot; a title of the y axis stands in it.
    """
    common: dict[str, Any] = {"field": "variant", "type": "nominal", "sort": None}
    # Where points carry the legend, its symbols need no dashes.
    bare: Encoding = {"symbolStrokeWidth": 0} if shape else {}
    legend = alt.Legend(values=[names], offset=gap, **LEGEND, **bare)
    domain = ["@variants"]
    encoding: Encoding = {
        "color": alt.Color(
            scale=alt.Scale(domain=domain, range="category"), legend=legend, **common
        )
    }
    if line:
        dashes = alt.Scale(domain=domain, range=list(map(list, DASHES)))
        encoding["strokeDash"] = alt.StrokeDash(
            scale=dashes, legend=None if shape else legend, **common
        )
    elif shape:
        shapes = alt.Scale(domain=domain, range=list(VARIANT_SHAPES))
        encoding["shape"] = alt.Shape(scale=shapes, legend=legend, **common)
    return encoding


def offset(names: str = "@variants") -> alt.YOffset:
    """Variants side by side on one line."""
    return alt.YOffset(
        field="variant", type="nominal", sort=None, scale=alt.Scale(domain=[names])
    )


def tips(*fields: str) -> list[alt.Tooltip]:
    """Return what a pointer shows: nominal fields that hold text already."""
    parts = (field.partition("=") for field in fields)
    return [
        alt.Tooltip(field=name, type="nominal", title=title or name)
        for name, _, title in parts
    ]


def rule_at(value: float, axis: str = "x") -> alt.Chart:
    """Return a line across the plot."""
    line = alt.Chart(ONCE).mark_rule(style="zero")
    at: Encoding = (
        {"x": alt.XDatum(value, type="quantitative")}
        if axis == "x"
        else {"y": alt.YDatum(value, type="quantitative")}
    )
    placed: alt.Chart = line.encode(**at)
    return placed


def band(axis: str = "x") -> alt.Chart:
    """Return the margin, shaded: inside it a change does not matter."""
    shade = alt.Chart(ONCE).mark_rect(style="margin")
    ends: Encoding = {
        "y": alt.YDatum("@-margin", type="quantitative"),
        "y2": alt.Y2Datum("@+margin"),
    }
    if axis == "x":
        ends = {
            "x": alt.XDatum("@-margin", type="quantitative"),
            "x2": alt.X2Datum("@+margin"),
        }
    placed: alt.Chart = shade.encode(**ends)
    return placed


def layered(*layers: alt.Chart, height: float | alt.Step = 220) -> alt.LayerChart:
    """Layers over one data set, as wide as the page."""
    return alt.LayerChart(
        layer=list(layers),
        data=data(),
        width="container",
        height=height,
        description="@alt",
    )
