"""Verdicts: from trials and pre-registered rules to regression, improvement, equivalent or inconclusive.

The functions that judge are imported on first use: a plan needs none of them."""

from typing import TYPE_CHECKING

from iodelta.lazily import found_in
from iodelta.verdict.metrics import Metric, metric, metrics_for, value_of
from iodelta.verdict.model import (
    Change,
    FamilySummary,
    Judgement,
    Look,
    Needed,
    Step,
    Verdict,
    Word,
)
from iodelta.verdict.rules import LOOKS, Rules, Screen
from iodelta.verdict.series import Series, series_of

if TYPE_CHECKING:
    from iodelta.verdict.judge import judge_all, judge_series, next_step

__all__ = [
    "LOOKS",
    "Change",
    "FamilySummary",
    "Judgement",
    "Look",
    "Metric",
    "Needed",
    "Rules",
    "Screen",
    "Series",
    "Step",
    "Verdict",
    "Word",
    "judge_all",
    "judge_series",
    "metric",
    "metrics_for",
    "next_step",
    "series_of",
    "value_of",
]

if not TYPE_CHECKING:  # else mypy would take every name for one of this module's
    __getattr__ = found_in(__name__, "judge")
