"""Specifications of Vega-Lite, filled with a figure's data and words: on a page, or alone as SVG and PNG.

``charts.json`` has each kind of chart once. What charts share stands there as ``parts``: ``{"is": PART, ...}`` is the part
with what follows put into it. The parts NAME-log take the place of NAME where an axis is logarithmic. A tooltip is one
text, ``field=title; field``. A report only puts values where a specification says ``@name``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from iodelta.errors import MeasureError, needs_extra
from iodelta.report.formats.charts.model import Figure

CHARTS = Path(__file__).with_name("charts.json")

COMMON = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "data": {"name": "rows"},
    "datasets": {"empty": [{}]},
    "description": "@alt",
    "width": "container",
}
"""What every chart has; ``empty`` is one row without a field, for marks that show no data."""

SCALES = {"log": ("bar", "latency", "level", "time"), "wide": ("rate",)}
"""Ending of a chart's name -> the parts that are logarithmic then."""


@lru_cache(maxsize=32)
def stored(name: str) -> dict[str, Any]:
    """Return the specification of a kind of chart, unfilled: ``knee-log-wide`` is ``knee`` with two other scales."""
    source = msgspec.json.decode(CHARTS.read_bytes())
    kind, *scales = name.split("-")
    parts: dict[str, Any] = source["parts"]
    for scale in scales:
        parts |= {part: parts[f"{part}-log"] for part in SCALES[scale]}
    chart = source["charts"].get(name) or source["charts"][kind]
    return {**COMMON, **_expanded(chart, parts)}


def _expanded(part: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(part, list):
        return [_expanded(value, parts) for value in part]
    if not isinstance(part, dict):
        return part
    made: dict[str, Any] = {}
    names = part.get("is", ())
    for name in [names] if isinstance(names, str) else names:
        made = _merged(made, _expanded(parts[name], parts))
    own = {key: _expanded(value, parts) for key, value in part.items() if key != "is"}
    if "tooltip" in own:
        fields = (field.partition("=") for field in own["tooltip"].split("; "))
        own["tooltip"] = [
            {"field": field, "title": title or field, "type": "nominal"}
            for field, _, title in fields
        ]
    return _merged(made, own)


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(first)
    for key, value in second.items():
        deep = isinstance(value, dict) and isinstance(made.get(key), dict)
        made[key] = _merged(made[key], value) if deep else value
    return made


def filled(figure: Figure) -> dict[str, Any]:
    """Return the Vega-Lite specification of a figure, without looks: texts in their places, its data inside."""
    spec: dict[str, Any] = _fill(stored(figure.spec), texts_of(figure))
    return {**spec, "datasets": {**spec["datasets"], **data_of(figure)}}


def texts_of(figure: Figure) -> dict[str, Any]:
    """Return what stands at the names in the specification of the figure's family."""
    return {"alt": figure.alt, **figure.texts}


def data_of(figure: Figure) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Return the figure's data by the names under which the specification draws them."""
    return {"rows": figure.rows, **figure.extra}


def alone(figure: Figure, width: int = 720) -> dict[str, Any]:
    """Return the specification of a picture that stands alone: with title, size, light colours and a background."""
    made = filled(figure)
    fold_legends(made, width)
    return {
        **made,
        "width": width,
        "title": figure.title,
        "padding": 12,
        "config": {**config(LIGHT), "background": "#ffffff"},
    }


LETTER, SYMBOL = 6.4, 42
"""Pixels of a letter in a legend, and of the symbol and the space around it. The page's script has the same."""


def fold_legends(part: Any, width: float) -> None:
    """Give every legend as many columns as fit into ``width`` pixels: in one row its end would be cut off."""
    if isinstance(part, list):
        for value in part:
            fold_legends(value, width)
    elif isinstance(part, dict):
        legend = part.get("legend")
        names = legend.get("values") if isinstance(legend, dict) else None
        if isinstance(legend, dict) and names:
            columns = int(width / (LETTER * max(map(len, names)) + SYMBOL))
            part["legend"] = {**legend, "columns": max(1, columns)}
        for key, value in part.items():
            if key not in ("data", "datasets"):
                fold_legends(value, width)


def _fill(part: Any, texts: Mapping[str, Any]) -> Any:
    """``part`` with every string ``@name`` replaced; in a list, a name that stands for a list gives its members.

    What is put in is data to Vega, never looked into again: a text that begins with @ stays itself.
    """
    if isinstance(part, dict):
        return {key: _fill(value, texts) for key, value in part.items()}
    if isinstance(part, list):
        out: list[Any] = []
        for value in part:
            new = _fill(value, texts)
            named = isinstance(value, str) and value.startswith("@")
            out += new if named and isinstance(new, list) else [new]
        return out
    if isinstance(part, str) and part.startswith("@"):
        return texts[part[1:]]
    return part


PIXELS = 2.0
"""Pixels of a PNG for each of its units: legible on a dense screen, and in print."""

VEGA_LITE = "6.1"
"""The Vega-Lite that draws them: fixed, so that the pictures do not change with what is installed."""


def export(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write ``NAME.svg`` and ``NAME.png`` for each figure that draws something. Raises MeasureError."""
    with needs_extra("pictures", "drawing a chart as SVG or PNG"):
        import vl_convert

    made = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            if not figure.rows:
                continue
            # File names are made of our own words and numbers; nothing else can become part of a path.
            name = re.sub(r"[^A-Za-z0-9._-]", "_", figure.name)
            svg = drawn(figure)
            png = vl_convert.svg_to_png(svg, scale=PIXELS)
            for ending, data in (("svg", svg.encode()), ("png", png)):
                path = folder / f"{name}.{ending}"
                path.write_bytes(data)
                made.append(path)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise MeasureError(
            f"cannot write the charts: {why}",
            place=str(folder),
            remedy="name another folder",
        ) from error
    return made


def drawn(figure: Figure) -> str:
    """Return a figure as SVG. Raises RequestError without the extra."""
    with needs_extra("pictures", "drawing a chart as SVG or PNG"):
        import vl_convert

    return str(vl_convert.vegalite_to_svg(alone(figure), vl_version=VEGA_LITE))


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
