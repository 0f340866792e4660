"""Specifications: stored as altair made them, filled with a figure's data and words when a report is written.

altair takes 0.3 s to import and 10-20 ms for a chart, a third of what a whole report takes. So each family's ``chart``
is run when the project is built (``python -m iodelta.report.formats.charts``), a test holds the stored files to it, and
a report only puts values where the specification says ``@name``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from iodelta.report.formats.charts.model import Figure
from iodelta.report.formats.charts.theme import LIGHT, config

FOLDER = Path(__file__).with_name("specs")


@lru_cache(maxsize=32)
def stored(name: str) -> dict[str, Any]:
    """Return the specification of a family, unfilled."""
    spec = msgspec.json.decode((FOLDER / f"{name}.json").read_bytes())
    assert isinstance(spec, dict)
    return spec


def filled(figure: Figure) -> dict[str, Any]:
    """Return the Vega-Lite specification of a figure, without looks: texts in their places, its data inside."""
    spec = _fill(stored(figure.spec), texts_of(figure))
    assert isinstance(spec, dict)
    return {**spec, "datasets": {**spec.get("datasets", {}), **data_of(figure)}}


def texts_of(figure: Figure) -> dict[str, Any]:
    """Return what stands at the names in the specification of the figure's family."""
    return {"alt": figure.alt, **figure.texts}


def data_of(figure: Figure) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Return the figure's data by the names under which the specification draws them."""
    return {"rows": figure.rows, **figure.extra}


def alone(figure: Figure, width: int = 720) -> dict[str, Any]:
    """Return the specification of a picture that stands alone: with title, size, light colours and a background."""
    looks = {**config(LIGHT), "background": "#ffffff"}
    made = filled(figure)
    fold_legends(made, width)
    return {
        **made,
        "width": width,
        "title": figure.title,
        "padding": 12,
        "config": looks,
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
            part["legend"] = {
                **legend,
                "columns": max(
                    1, int(width / (LETTER * max(map(len, names)) + SYMBOL))
                ),
            }
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
            if (
                isinstance(value, str)
                and value.startswith("@")
                and isinstance(new, list)
            ):
                out += new
            else:
                out.append(new)
        return out
    if isinstance(part, str) and part.startswith("@"):
        return texts[part[1:]]
    return part
