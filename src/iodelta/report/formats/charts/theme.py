"""Theme: the looks of all charts, in light and dark. Colours differ in lightness too, and never stand alone."""

from __future__ import annotations

from typing import Any

FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Helvetica, Arial, sans-serif"

STACKED = {"top": {"anchor": "start", "direction": "vertical", "margin": 4}}
"""Legends of one chart below each other."""

PLAIN_ZERO = "datum.label === '0k' || datum.label === '0M' ? '0' : datum.label"
"""Vega writes the unit of the other ticks behind 0 too."""

FLUSH = 18
"""Pixels from the end of an axis within which a label stands left or right of its tick: in the middle it would be cut
off where the chart ends."""

LIGHT = {
    "ink": "#1c1b19",
    "soft": "#5c5952",
    "hair": "#dedbd2",
    "paper": "#fdfcf9",
    "variants": [
        "#1c1b19",
        "#0a66b0",
        "#c2541d",
        "#3c8d6b",
        "#8764b8",
        "#a3861c",
        "#b0457b",
    ],
    "words": ["#b02a1c", "#1c7048", "#5f6a72", "#8a6d00", "#77736b"],
    "heat": ["#e8f0f4", "#bfd9e6", "#8fbdd6", "#5799c0", "#2a6f9f", "#0f4570"],
    "on-heat": ["#1c1b19", "#1c1b19", "#1c1b19", "#1c1b19", "#ffffff", "#ffffff"],
}
DARK = {
    "ink": "#e9e6df",
    "soft": "#a5a196",
    "hair": "#3a3833",
    "paper": "#171614",
    "variants": [
        "#f1eee7",
        "#6cb4ee",
        "#f09a6a",
        "#79cfa9",
        "#c3abec",
        "#dcc25c",
        "#ee93bf",
    ],
    "words": ["#ff8d7e", "#7cd6a3", "#abb6be", "#e2c25e", "#9c978d"],
    "heat": ["#1b2a35", "#1f435a", "#2b6385", "#4b8bb2", "#84b9d8", "#cfe6f2"],
    "on-heat": ["#f1eee7", "#f1eee7", "#f1eee7", "#171614", "#171614", "#171614"],
}


def config(colors: dict[str, Any]) -> dict[str, Any]:
    """Vega-Lite's ``config`` for one set of colours."""
    ink, soft, hair = colors["ink"], colors["soft"], colors["hair"]
    text = {
        "labelFont": FONT,
        "titleFont": FONT,
        "labelColor": soft,
        "titleColor": soft,
    }
    return {
        "background": None,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            **text,
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "domainColor": soft,
            "tickColor": soft,
            "tickSize": 4,
            "gridColor": hair,
            "titlePadding": 8,
        },
        "legend": {
            **text,
            "labelColor": ink,
            "labelFontSize": 11.5,
            "labelLimit": 240,
            "columnPadding": 18,
            "layout": STACKED,
        },
        "title": {
            "font": FONT,
            "color": ink,
            "anchor": "start",
            "fontSize": 13,
            "fontWeight": 600,
            "offset": 12,
        },
        "axisX": {"labelFlush": FLUSH},
        "axisY": {"labelLimit": 420},
        "axisQuantitative": {
            # Every second label, or fourth: gaps of different lengths would look like a scale that is not even.
            "labelOverlap": "parity",
            "labelSeparation": 6,
            "labelExpr": PLAIN_ZERO,
        },
        "line": {"strokeWidth": 2},
        "point": {"opacity": 1},
        "range": {
            "category": colors["variants"],
            "ordinal": colors["words"],
            "heatmap": colors["heat"],
            "ramp": colors["on-heat"],
        },
        "style": {
            "zero": {"color": ink, "strokeWidth": 1},
            "margin": {"color": ink, "opacity": 0.07},
            "trend": {"color": ink},
            "paper": {"color": colors["paper"]},
            "member": {"color": ink, "stroke": colors["paper"], "strokeWidth": 1.5},
            "whisker": {"color": ink, "opacity": 0.75},
            "tile": {"stroke": colors["paper"], "strokeWidth": 1.5},
            "label": {"color": ink, "font": FONT, "fontSize": 11},
        },
    }


def named() -> dict[str, Any]:
    """Return the colours by the names of the page's custom properties, which change between light, dark and print."""
    return {name: _variables(name, value) for name, value in LIGHT.items()}


def _variables(name: str, value: Any) -> str | list[str]:
    if isinstance(value, list):
        return [f"var(--{name}-{at})" for at in range(len(value))]
    return f"var(--{name})"
