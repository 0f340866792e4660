"""A search and an attribution as CSV: a row per item, and one per figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from iodelta.report.formats.spreadsheet import records_text

if TYPE_CHECKING:
    from iodelta.study.attribution import AttributionAccount
    from iodelta.study.search import Changed, Level, SearchAccount, Skipped, Spoken

SEARCHED = tuple(
    """
    item title place runs metric unit better median change low high culprit
    said_good said_bad skipped state margin seed schema
    """.split()
)
"""Of a search: one row per item that was measured, answered for, or skipped."""


def of_search(account: SearchAccount) -> str:
    """Return one row per item, in the order of the line; then those that were skipped."""
    return records_text(SEARCHED, _searched(account))


def _searched(account: SearchAccount) -> Iterator[dict[str, object]]:
    of_all = _of_search(account)
    culprits = {culprit.item for culprit in account.culprits}
    items: list[Level | Spoken | Skipped] = []
    items += account.levels
    items += account.answers
    items += account.skipped
    for item in items:
        yield {
            **of_all,
            **_of_item(item),
            "item": item.item,
            "title": item.title,
            "culprit": int(item.item in culprits),
        }


def _of_search(account: SearchAccount) -> dict[str, object]:
    """Return every column: what is the same in all rows, and nothing in the others."""
    question = account.question
    return {
        **dict.fromkeys(SEARCHED),
        "metric": question.metric,
        "unit": question.unit,
        "better": question.better,
        "state": account.state,
        "margin": math.expm1(question.rules.margin),
        "seed": question.rules.seed,
        "schema": "iodelta.bisect.csv/1",
    }


def _of_item(item: Level | Spoken | Skipped) -> dict[str, object]:
    """Return what became of an item, besides its name."""
    from iodelta.study.search import Level, Spoken

    if isinstance(item, Level):
        return {
            "place": item.place,
            "runs": item.runs,
            "median": item.value,
            **_ends(item.change),
        }
    if isinstance(item, Spoken):
        return {"place": item.place, "said_good": item.good, "said_bad": item.bad}
    return {"skipped": item.reason}


ATTRIBUTED = tuple(
    """
    kind patches over name metric change low high p shown runs median reason
    blocks state schema
    """.split()
)
"""Of an attribution. Kind: whole, alone, on top, share, together, combination; patches are numbered from 1."""


def of_attribution(account: AttributionAccount) -> str:
    """Return one row per figure, then one per combination that was to be run."""
    of_all = {
        **dict.fromkeys(ATTRIBUTED),
        "metric": account.question.metric,
        "blocks": account.blocks,
        "state": account.state,
        "schema": "iodelta.attribution.csv/1",
    }
    figures = chain(_steps(account), _shares(account), _combinations(account))
    return records_text(ATTRIBUTED, (of_all | figure for figure in figures))


def _steps(account: AttributionAccount) -> Iterator[dict[str, object]]:
    """Yield the whole series, and what each patch does alone and on top of those before it."""
    if account.whole:
        everything = _numbered(range(1, len(account.patches) + 1))
        yield {"kind": "whole", "patches": everything, **_ends(account.whole)}
    for kind, steps in (("alone", account.alone), ("on top", account.on_top)):
        for step in filter(None, steps):
            yield {
                "kind": kind,
                "patches": _numbered(step.patches),
                "over": _numbered(step.over),
                "name": step.name,
                **_ends(step.change),
                "p": step.p,
                "shown": int(step.real),
            }


def _shares(account: AttributionAccount) -> Iterator[dict[str, object]]:
    """Yield the share of each patch in the whole, and what patches do together only."""
    for number, share in enumerate(account.shares, 1):
        if share:
            name = account.patches[number - 1]
            yield {"kind": "share", "patches": number, "name": name, **_ends(share)}
    for part in account.parts:
        yield {
            "kind": "together",
            "patches": _numbered(part.patches),
            **_ends(part.change),
            "p": part.p,
            "shown": int(part.real),
        }


def _combinations(account: AttributionAccount) -> Iterator[dict[str, object]]:
    for run in account.combinations:
        yield {
            "kind": "combination",
            "patches": run.item,
            "name": run.title,
            "runs": run.runs,
            "median": run.value,
            "reason": run.reason,
        }


def _numbered(patches: Iterable[int]) -> str:
    return " ".join(map(str, patches))


def _ends(change: Changed | None) -> dict[str, object]:
    if change is None:
        return {}
    return {"change": change.value, "low": change.low, "high": change.high}
