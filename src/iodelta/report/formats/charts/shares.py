"""Shares: which share of I/Os took how long, in the buckets of fio's own report, the variants below each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from iodelta.report.formats.charts.bars import frame, room
from iodelta.report.formats.charts.cells import COLORS, colored
from iodelta.report.formats.charts.distribution import place
from iodelta.report.formats.charts.model import Figure, Source, label, number, some
from iodelta.study.shares import BOUNDS, Shares
from iodelta.study.words import quantity

ABOUT = (
    "Completion latency of all I/Os of a cell, reads and writes together, in the buckets of fio's own report; "
    "--output-format=json+ gives finer ones."
)


def figures(source: Source) -> Iterator[Figure]:
    """One for each telling cell, with as many variants as colours tell apart."""
    by_cell_shares: dict[str, list[Shares]] = {}
    for shares in source.shares:
        by_cell_shares.setdefault(shares.cell, []).append(shares)
    shown = source.telling(among=list(by_cell_shares))
    note = some("cells", len(shown), len(by_cell_shares), compared=bool(source.effects))
    for cell in shown:
        yield _figure(source, by_cell_shares[cell][:COLORS], note)


def _figure(source: Source, held: Sequence[Shares], note: str) -> Figure:
    names = [label(shares.variant) for shares in held]
    known = [dict(shares.percents) for shares in held]
    held_by_any = set(chain.from_iterable(known))
    bounds = [bound for bound in BOUNDS if bound in held_by_any]
    most = max(max(percents_by_bound.values()) for percents_by_bound in known)
    rows, table = [], []
    for bound in bounds:
        percents = [percents_by_bound.get(bound, 0.0) for percents_by_bound in known]
        for shares, name, percent in zip(held, names, percents, strict=True):
            rows.append(_row(shares, name, bound, percent))
        table.append((_bucket(bound), *(f"{percent:.4g} %" for percent in percents)))
    return Figure(
        name=f"shares-{place(source, held[0].cell)}",
        spec="values",
        title=label(held[0].cell),
        alt=" ".join(map(_seen, held)),
        about=ABOUT,
        rows=rows,
        extra={"spans": []},
        texts={
            "x": "share of I/Os, %",
            "name": "share",
            "frame": frame([most], [0.0], log=False),
            "room": room([row["text"] for row in rows]),
            "format": "~f",
            "variants": colored(names),
            "legend": names,
        },
        head=("latency", *names),
        table=table,
        note=note,
    )


def _row(shares: Shares, name: str, bound: float, percent: float) -> dict[str, Any]:
    return {
        "row": _bucket(bound),
        "cell": label(shares.cell),
        "variant": name,
        "value": number(percent),
        "end": number(percent),
        "low": number(percent),
        "high": number(percent),
        "said": f"{percent:.4g} %",
        "text": f"{percent:.3g}",
        "interval": f"all of {shares.ios:,} I/Os",
        "runs": str(shares.runs),
    }


def _bucket(bound: float) -> str:
    if math.isinf(bound):
        return f"above {quantity(BOUNDS[-2], 'ns')}"
    return f"to {quantity(bound, 'ns')}"


def _seen(shares: Shares) -> str:
    bound, percent = max(shares.percents, key=lambda entry: entry[1])
    where = f"{label(shares.variant)}: " if shares.variant else ""
    return f"{where}{percent:.3g} % in the bucket {_bucket(bound)}."
