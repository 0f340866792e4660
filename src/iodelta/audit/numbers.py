"""Numbers as people write them into tables, and as findings print them."""

from __future__ import annotations

import math

from iodelta.ingest.model import Run
from iodelta.ingest.table_cells import cell
from iodelta.trial import Direction, Latency, Quantity


def number(text: str) -> tuple[float, str] | None:
    """Return a cell's number and the letters after it (``261M``: 261, ``M``); None for other text (``~0``, ``high``)."""
    parsed = cell(text)
    if parsed is None or math.isinf(parsed[0].value):
        return None
    return parsed[0].value, parsed[1]


_BLANK = frozenset(("", "-", "--", "–", "—", "n/a", "na", "none", "?"))


def blank(cell: str) -> bool:
    """Return whether a cell stands for a missing number: empty, a dash, n/a."""
    return cell.strip().casefold() in _BLANK


def latency(direction: Direction) -> Latency | None:
    """Total latency if the source has it, else completion latency."""
    return direction.lat or direction.clat


def parts(run: Run) -> tuple[Direction, ...]:
    """Return the directions of a run, without their sum (``mixed``) if the run also has the single ones."""
    without_sum = tuple(filter(_is_no_sum, run.directions))
    return without_sum or run.directions


def _is_no_sum(direction: Direction) -> bool:
    return direction.kind != "mixed"


def known(quantity: Quantity | None) -> bool:
    """Return whether the source gives this number."""
    if quantity is None:
        return False
    return not math.isnan(quantity.value) and quantity.high != math.inf


def all_known(*quantities: Quantity | None) -> bool:
    """Return whether the source gives all these numbers."""
    return all(map(known, quantities))


def span(ns: float) -> str:
    """Return a time for a reader: ``13.8 ms``, ``77.1 us``, ``22 s``."""
    fitting = (unit for unit in _UNITS if ns >= unit[0])
    size, name = next(fitting, (1.0, "ns"))
    return f"{ns / size:.3g} {name}"


_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))


def count(value: float) -> str:
    """Return a number of things for a reader: ``3.98``, ``96``, ``2,131``."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
