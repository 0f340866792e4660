"""A result in Bencher's metric format: a benchmark for each cell and variant, its medians, and its changes.

Bencher draws the bounds of a value. The median of a variant has none here: the interval belongs to the change, which is
a measure of its own. https://bencher.dev/docs/reference/bencher-metric-format/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from iodelta.errors import RequestError
from iodelta.part import kind_of, load
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.path.judge import PathAccount
    from iodelta.report.stories.kinds import Result
    from iodelta.study.comparison import Comparison
    from iodelta.study.experiment import Account


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value of one measure, with its interval."""

    value: float
    lower_value: float | None = None
    upper_value: float | None = None


Named = tuple[str, str, str, Measured]
"""Cell, variant, measure, value."""


def bmf(result: Result) -> bytes:
    """Return the document. Raises RequestError for a result without values of variants."""
    place = kind_of(result).values
    if not place:
        raise RequestError(
            "this result has no values of variants, which Bencher needs",
            remedy="choose another format",
        )
    results: dict[str, dict[str, Measured]] = {}
    for cell, variant, measure, measured in load(place)(result):
        results.setdefault(f"{inert(cell)} / {inert(variant)}", {})[measure] = measured
    return msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n"


def of_account(account: Account) -> Iterator[Named]:
    for verdict in account.judgement.verdicts:
        measure = inert(verdict.metric.name)
        if verdict.baseline_value is not None:
            yield (
                verdict.cell,
                verdict.baseline,
                measure,
                Measured(verdict.baseline_value),
            )
        if verdict.variant_value is not None:
            yield (
                verdict.cell,
                verdict.variant,
                measure,
                Measured(verdict.variant_value),
            )
        if verdict.change is not None:
            yield (
                verdict.cell,
                verdict.variant,
                f"{measure} change (%)",
                _percent(*_ends(verdict.change)),
            )


def of_comparison(comparison: Comparison) -> Iterator[Named]:
    for row in comparison.compared:
        measure = inert(row.metric)
        for side, value in zip(
            (comparison.baseline, row.variant), row.values, strict=True
        ):
            yield row.cell, side, measure, Measured(value)
        if row.change is not None:
            yield (
                row.cell,
                row.variant,
                f"{measure} change (%)",
                _percent(*_ends(row.change)),
            )


def _ends(change: Any) -> tuple[float, float | None, float | None]:
    return change.value, change.low, change.high


def _percent(value: float, low: float | None, high: float | None) -> Measured:
    bounds = (
        None if bound is None or abs(bound) == float("inf") else 100 * bound
        for bound in (low, high)
    )
    return Measured(100 * value, *bounds)


def of_path(account: PathAccount) -> Iterator[Named]:
    for count in account.counts:
        yield (
            count.cell,
            count.variant,
            f"{count.kind} instructions",
            Measured(count.median),
        )
    for cell in account.sharing.cells:
        yield cell.cell, cell.variant, "moved lines", Measured(cell.median)
