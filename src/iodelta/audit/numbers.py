"""Numbers as people write them into tables, and as findings print them."""

from __future__ import annotations

import math

from iodelta.ingest.model import Run
from iodelta.ingest.table_cells import cell
from iodelta.trial import Direction, Latency, Quantity


def number(text: str) -> tuple[float, str] | None:
    """A cell's number and what stands behind it (``261M``: 261, ``M``); None where it is none (``~0``, ``high``)."""
    parsed = cell(text)
    if parsed is None or math.isinf(parsed[0].value):
        return None
    return parsed[0].value, parsed[1]


def blank(cell: str) -> bool:
    """Whether a cell says that there is no number: empty, a dash, n/a."""
    return cell.strip().casefold() in (
        "",
        "-",
        "--",
        "–",
        "—",
        "n/a",
        "na",
        "none",
        "?",
    )


def latency(direction: Direction) -> Latency | None:
    """Total latency where the source has it, else completion latency."""
    return direction.lat or direction.clat


def parts(run: Run) -> tuple[Direction, ...]:
    """The directions of a run without the sum over all of them (``mixed``), where it stands beside them."""
    for direction in run.directions:
        if direction.kind == "mixed":
            return (
                tuple(
                    direction
                    for direction in run.directions
                    if direction.kind != "mixed"
                )
                or run.directions
            )
    return run.directions


def known(quantity: Quantity | None) -> bool:
    """Whether the source gives this number at all."""
    return (
        quantity is not None
        and quantity.value == quantity.value
        and quantity.high != math.inf
    )


def span(ns: float) -> str:
    """A time for a reader: ``13.8 ms``, ``77.1 us``, ``22 s``."""
    size, unit = next(
        (
            (size, unit)
            for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us"))
            if ns >= size
        ),
        (1.0, "ns"),
    )
    return f"{ns / size:.3g} {unit}"


def count(value: float) -> str:
    """A number of things for a reader: ``3.98``, ``96``, ``2,131``."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
