"""Results of others as CSV: a row for each change of a comparison, and one for each run of an import."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from iodelta.errors import pasted
from iodelta.report.formats.spreadsheet import records_text

if TYPE_CHECKING:
    from iodelta.study.comparison import Comparison
    from iodelta.study.rows import Number, Point, Row, Shown

COMPARED = tuple(
    """
    cell metric unit better baseline variant verdict says basis baseline_runs
    variant_runs baseline_median variant_median baseline_spread variant_spread
    change low high resolved margin findings differs_in repeat schema
    """.split()
)
"""Of a comparison. Shares are fractions."""


def of_comparison(comparison: Comparison) -> str:
    """Return one row per cell, variant and metric."""
    return records_text(COMPARED, _compared(comparison))


def _compared(comparison: Comparison) -> Iterator[dict[str, object]]:
    rules = dict.fromkeys(finding.rule for finding in comparison.findings)
    of_all = {
        "baseline": comparison.baseline,
        "margin": comparison.margin,
        "findings": " ".join(rules),
        "repeat": f"iodelta compare {' '.join(map(pasted, comparison.paths))}",
        "schema": "iodelta.compare.csv/1",
    }
    for row in comparison.compared:
        change = row.change
        differences = comparison.differences.get(row.variant, ())
        groups = dict.fromkeys(difference.group for difference in differences)
        baseline_runs, variant_runs = row.runs
        baseline_value, variant_value = row.values
        baseline_spread, variant_spread = row.spread
        yield {
            **of_all,
            "cell": row.cell,
            "metric": row.metric,
            "unit": row.unit,
            "better": row.better,
            "variant": row.variant,
            "verdict": row.word,
            "says": row.says,
            "basis": row.basis,
            "baseline_runs": baseline_runs,
            "variant_runs": variant_runs,
            "baseline_median": baseline_value,
            "variant_median": variant_value,
            "baseline_spread": baseline_spread,
            "variant_spread": variant_spread,
            "change": change.value if change else None,
            "low": change.low if change else None,
            "high": change.high if change else None,
            "resolved": int(row.resolved),
            "differs_in": ", ".join(groups),
        }


SHOWN = tuple(
    """
    group name kind runs rw bs iodepth jobs ioengine direct fio_version format
    iops iops_low iops_high bytes_per_s latency mean_ns p50_ns p99_ns p99.9_ns
    p99_low p99_high error short dropped severity rules file line
    metric unit value value_low value_high
    """.split()
)
"""Of an import; the last columns are of a command that is not fio, which has a row for each of its numbers."""

_FIELDS = tuple(
    """
    group name kind runs rw bs iodepth jobs ioengine fio_version format
    latency error short dropped severity file line
    """.split()
)
"""The columns that have the name of what they hold."""

_OF_NO_COMMAND = dict.fromkeys(
    ("metric", "unit", "value", "value_low", "value_high"), ""
)


def of_shown(results: Shown) -> str:
    """Return all rows as CSV with a heading; empty where unknown."""
    return records_text(SHOWN, chain.from_iterable(map(_shown, results.rows)))


def _shown(row: Row) -> Iterator[dict[str, object]]:
    """Yield one row; of a command, one for each of its numbers."""
    of_run = _of_run(row)
    if not row.measured:
        yield of_run | _OF_NO_COMMAND
    for name, number in row.measured.items():
        yield {
            **of_run,
            "metric": name,
            "unit": number.unit,
            "value": number.value,
            "value_low": number.low,
            "value_high": number.high,
        }


def _of_run(row: Row) -> dict[str, object]:
    from iodelta.study.rows import POINTS

    p50, p99, p999 = map(row.point, POINTS)
    iops_low, iops_high = _ends(row.iops)
    p99_low, p99_high = _ends(p99)
    return {
        **{name: getattr(row, name) for name in _FIELDS},
        "direct": None if row.direct is None else int(row.direct),
        "iops": _value(row.iops),
        "iops_low": iops_low,
        "iops_high": iops_high,
        "bytes_per_s": _value(row.bandwidth),
        "mean_ns": _value(row.mean),
        "p50_ns": _value(p50),
        "p99_ns": _value(p99),
        "p99.9_ns": _value(p999),
        "p99_low": p99_low,
        "p99_high": p99_high,
        "rules": " ".join(row.rules),
    }


def _value(number: Number | Point | None) -> float | None:
    return number.value if number else None


def _ends(number: Number | Point | None) -> tuple[float | None, float | None]:
    return (number.low, number.high) if number else (None, None)
