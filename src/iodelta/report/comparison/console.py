"""A comparison on a terminal: 80 columns, the word last, and what else differs before anybody believes it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from iodelta.report.foreign.table import WIDTH, findings, not_read, wrapped
from iodelta.report.formats.columns import columns, cut
from iodelta.report.stories.comparison import bounds_of, change_of, headline, name_of, says_of
from iodelta.study.comparison import Compared, Comparison
from iodelta.study.confounders import said
from iodelta.study.words import inert, quantity, scatter

STYLES = {
    "regression": "bold red",
    "improvement": "bold green",
    "equivalent": "green",
    "inconclusive": "yellow",
    "no verdict": "dim",
}
ALIGN, FOLD = "<>>><<", 3
"""Of name, both values, change, interval and word; and from where a narrow terminal gets two lines."""

NAMED = 24
"""Columns of a side's name in a heading."""

SHOWN = 12
"""Cells of one side only that are listed."""


def lines(found: Comparison, width: int = WIDTH) -> Iterator[Text]:
    """All of it, none wider than ``width``."""
    prose = min(width, WIDTH)
    for variant in found.variants:
        own = [one for one in found.compared if one.variant == variant]
        yield from wrapped(headline(found, variant, own), style="bold", width=prose)
        yield Text()
        if own:
            yield from _table(found, variant, own, width)
        yield from _differences(found, variant, prose)
    if found.unmatched:
        more = f" and {len(found.unmatched) - SHOWN} more" if len(found.unmatched) > SHOWN else ""
        yield from wrapped(f"On one side only: {'; '.join(map(inert, found.unmatched[:SHOWN]))}{more}.", width=prose)
    yield from findings(found.findings, width=prose)
    yield from not_read(found.refusals, width=prose)


def _table(found: Comparison, variant: str, own: Sequence[Compared], width: int) -> Iterator[Text]:
    told = "interval" if any(one.basis != "single runs" for one in own) else ""
    head = ("", cut(inert(found.baseline), NAMED), cut(inert(variant), NAMED), "change", told, "")
    lines_: list[tuple[str, ...]] = [head]
    for one in own:
        several = len({other.metric.partition(".")[0] for other in rows_of(own, one.cell)}) > 1
        values = [quantity(value, one.unit) for value in one.values]
        lines_.append((name_of(one, several), *values, change_of(one.change)[0], bounds_of(one), one.word))
        lines_.append(("", *(f"±{scatter(s)}" if s is not None else "" for s in one.spread), "", "", ""))
    made = iter(columns(lines_, ALIGN, width, indent=2, fold=FOLD))
    yield Text(next(made), style="dim")
    for (cell, runs), rows in groupby(own, key=lambda one: (one.cell, one.runs)):
        counted = "one run each" if runs == (1, 1) else f"{runs[0]} and {runs[1]} runs"
        yield Text(f"{cut(inert(cell), min(width, WIDTH) - 20)} ({counted})")
        for one in rows:
            yield Text(next(made).removesuffix(one.word)).append(one.word, style=STYLES[one.word])
            if spread := next(made):
                yield Text(spread, style="dim")
            for note in textwrap.wrap(says_of(one), min(width, WIDTH) - 4):
                yield Text(f"    {note}", style="dim")
    yield Text()


def rows_of(own: Sequence[Compared], cell: str) -> list[Compared]:
    """The comparisons of one cell."""
    return [one for one in own if one.cell == cell]


def _differences(found: Comparison, variant: str, width: int) -> Iterator[Text]:
    differing = found.differences.get(variant, ())
    if not differing:
        yield from wrapped("Nothing else is known to differ between the sides.", style="dim", width=width)
        return
    yield from wrapped(f"Differs too: ({inert(found.baseline)} | {inert(variant)})", width=width)
    likely = {one.group for one in differing if one.likely}
    for group, why, lines_ in said(differing):
        reason = f" ({why})" if why else ""
        mark, style = ("? ", "yellow") if group in likely else ("  ", "")
        yield from wrapped(f"{mark}{'; '.join(lines_)}{reason}", style=style, width=width)
