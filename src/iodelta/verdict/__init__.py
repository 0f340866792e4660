"""Verdicts: from trials and pre-registered rules to regression, improvement, equivalent or inconclusive."""

from iodelta.verdict.judge import judge, judge_all, judge_series, next_step, select_cells
from iodelta.verdict.metrics import Metric, metric, metrics_for, value_of
from iodelta.verdict.model import Change, FamilySummary, Judgement, Look, Needed, Step, Verdict, Word
from iodelta.verdict.rules import LOOKS, Rules, Screen
from iodelta.verdict.series import Series, series_of

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
    "judge",
    "judge_all",
    "judge_series",
    "metric",
    "metrics_for",
    "next_step",
    "select_cells",
    "series_of",
    "value_of",
]
