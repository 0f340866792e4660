"""Export: every chart as SVG and PNG, for mail, Markdown and slides."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from iodelta.errors import MeasureError, needs_extra
from iodelta.report.formats.charts.model import Figure
from iodelta.report.formats.charts.specs import alone

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
            svg = drawn(figure)
            for path, data in (
                (folder / f"{_file(figure)}.svg", svg.encode()),
                (
                    folder / f"{_file(figure)}.png",
                    vl_convert.svg_to_png(svg, scale=PIXELS),
                ),
            ):
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


def _file(figure: Figure) -> str:
    """File names are made of our own words and numbers; nothing else can become part of a path."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", figure.name)
