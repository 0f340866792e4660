"""The verdict on a terminal: 80 columns, every word readable without colour."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from iodelta.errors import pasted
from iodelta.report.formats.columns import columns, cut
from iodelta.report.stories.instruments import looked
from iodelta.report.stories.statements import (
    all_findings,
    beyond,
    findings,
    method,
    not_measured,
    open_questions,
    recommendation,
)
from iodelta.study.confounders import said
from iodelta.study.experiment import Account, headline
from iodelta.study.words import inert, interval, metric_name, percent, quantity, wrap
from iodelta.verdict import Verdict

WIDTH = 80
STYLES = {"regression": "bold red", "improvement": "bold green", "equivalent": "green", "inconclusive": "yellow"}
NARROW, WIDE = 60, 120
ALIGN, FOLD = "<>>><<", 3
"""Of name, baseline, variant, change, interval and verdict; and from where a narrow terminal gets two lines."""

NAMED = 24
"""Columns of a variant's name in a heading."""


def show(console: Console, account: Account) -> None:
    """Print the whole account."""
    for line in lines(account, width_of(console)):
        console.print(line, soft_wrap=True, highlight=False)


def width_of(console: Console) -> int:
    """Columns for a table: those of a terminal, between 60 and 120; 80 elsewhere."""
    return min(max(console.width, NARROW), WIDE) if console.is_terminal else WIDTH


def lines(account: Account, width: int = WIDTH) -> Iterator[Text]:
    """The account, line by line, none wider than ``width``."""
    experiment = account.plan.experiment
    prose = min(width, WIDTH)
    if experiment.question:
        yield from _wrapped(prose, inert(experiment.question), style="bold")
    yield from _wrapped(prose, headline(account), style="bold")
    yield Text()
    for variant in [v.name for v in experiment.variants if v.name != experiment.baseline]:
        yield from _table(account, variant, width)
    for sentence in not_measured(account):
        yield from _wrapped(prose, sentence)
    if sentence := recommendation(account):
        yield from _wrapped(prose, sentence, style="bold")
    for sentence in (
        *beyond(account),
        *open_questions(account),
        " ".join(method(account, inert(pasted(account.folder)))),
    ):
        yield from _wrapped(prose, sentence)
    for sentence in looked(account.instruments, account.plan.experiment):
        yield from _wrapped(prose, sentence)
    for _, why, differing in said(account.changed):
        reason = f" ({why})" if why else ""
        yield from _wrapped(prose, f"The machine changed between the sessions: {'; '.join(differing)}{reason}.")
    for sentence in findings(all_findings(account)):
        yield from _wrapped(prose, sentence)
    yield Text(f"Folder: {inert(pasted(account.folder))}")


def _table(account: Account, variant: str, width: int) -> Iterator[Text]:
    baseline = account.plan.experiment.baseline
    by_cell: dict[str, list[Verdict]] = {}
    for verdict in account.judgement.verdicts:
        if verdict.variant == variant:
            by_cell.setdefault(verdict.cell, []).append(verdict)
    shown = [cell.name for cell in account.plan.experiment.cells if by_cell.get(cell.name)]
    head = ("", cut(inert(baseline), NAMED), cut(inert(variant), NAMED), "change", "interval", "verdict")
    several = {cell: len({v.metric.kind for v in by_cell[cell]}) > 1 for cell in shown}
    rows = [_row(verdict, several[cell]) for cell in shown for verdict in by_cell[cell]]
    made = iter(columns([head, *rows], ALIGN, width, indent=2, fold=FOLD))
    yield Text(next(made), style="dim")
    for cell in shown:
        blocks = sorted({v.blocks for v in by_cell[cell]})
        counted = f"{blocks[0]} blocks" if len(blocks) == 1 else f"{blocks[0]}-{blocks[-1]} blocks"
        yield Text(f"{cut(inert(cell), min(width, WIDTH) - 16)} ({counted})")
        for verdict in by_cell[cell]:
            yield Text(next(made).removesuffix(verdict.word)).append(verdict.word, style=STYLES[verdict.word])
    yield Text()


def _row(verdict: Verdict, several: bool) -> tuple[str, ...]:
    change = verdict.change
    half = (change.high - change.low) / 2 if change and change.low is not None and change.high is not None else None
    return (
        metric_name(verdict.metric, with_kind=several),
        quantity(verdict.baseline_value, verdict.metric.unit),
        quantity(verdict.variant_value, verdict.metric.unit),
        percent(change.value if change else None, half),
        interval(change.low, change.high) if change else "-",
        verdict.word,
    )


def _wrapped(width: int, text: str, style: str = "") -> Iterator[Text]:
    yield from (Text(line, style=style) for line in wrap(text, width, "  "))
