"""The verdict on a terminal: 80 columns, every word readable without colour."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from iodelta.report.account.model import Account, headline
from iodelta.report.environment.confounders import said
from iodelta.report.formats.statements import (
    all_findings,
    beyond,
    findings,
    method,
    not_measured,
    open_questions,
    recommendation,
)
from iodelta.report.instruments import looked
from iodelta.report.words import inert, interval, metric_name, percent, quantity
from iodelta.verdict import Verdict

WIDTH = 80
STYLES = {"regression": "bold red", "improvement": "bold green", "equivalent": "green", "inconclusive": "yellow"}
_ROW = "  {:<16}{:>11}{:>11}{:>9}  {:<17}"


def show(console: Console, account: Account) -> None:
    """Print the whole account."""
    for line in lines(account):
        console.print(line, soft_wrap=True, highlight=False)


def lines(account: Account) -> Iterator[Text]:
    """The account, line by line, none wider than 80 columns."""
    experiment = account.plan.experiment
    if experiment.question:
        yield from _wrapped(inert(experiment.question), style="bold")
    yield from _wrapped(headline(account), style="bold")
    yield Text()
    for variant in [v.name for v in experiment.variants if v.name != experiment.baseline]:
        yield from _table(account, variant)
    for sentence in not_measured(account):
        yield from _wrapped(sentence)
    if sentence := recommendation(account):
        yield from _wrapped(sentence, style="bold")
    for sentence in (*beyond(account), *open_questions(account), " ".join(method(account))):
        yield from _wrapped(sentence)
    for sentence in looked(account.instruments, account.plan.experiment):
        yield from _wrapped(sentence)
    for _, why, differing in said(account.changed):
        reason = f" ({why})" if why else ""
        yield from _wrapped(f"The machine changed between the sessions: {'; '.join(differing)}{reason}.")
    for sentence in findings(all_findings(account)):
        yield from _wrapped(sentence)
    yield from _wrapped(f"Folder: {inert(account.folder)}")


def _table(account: Account, variant: str) -> Iterator[Text]:
    baseline = account.plan.experiment.baseline
    head = _ROW.format("", _cut(inert(baseline), 10), _cut(inert(variant), 10), "change", "  interval")
    yield Text(f"{head}verdict", style="dim")
    by_cell: dict[str, list[Verdict]] = {}
    for verdict in account.judgement.verdicts:
        if verdict.variant == variant:
            by_cell.setdefault(verdict.cell, []).append(verdict)
    for cell in account.plan.experiment.cells:
        own = by_cell.get(cell.name)
        if not own:
            continue
        blocks = sorted({v.blocks for v in own})
        counted = f"{blocks[0]} blocks" if len(blocks) == 1 else f"{blocks[0]}-{blocks[-1]} blocks"
        yield Text(f"{_cut(inert(cell.name), WIDTH - 16)} ({counted})")
        several = len({v.metric.kind for v in own}) > 1
        for verdict in own:
            yield _row(verdict, several)
    yield Text()


def _row(verdict: Verdict, several: bool) -> Text:
    change = verdict.change
    half = (change.high - change.low) / 2 if change and change.low is not None and change.high is not None else None
    line = Text(
        _ROW.format(
            _cut(metric_name(verdict.metric, with_kind=several), 16),
            quantity(verdict.baseline_value, verdict.metric.unit),
            quantity(verdict.variant_value, verdict.metric.unit),
            percent(change.value if change else None, half),
            interval(change.low, change.high) if change else "-",
        )
    )
    line.append(verdict.word, style=STYLES[verdict.word])
    return line


def _wrapped(text: str, style: str = "") -> Iterator[Text]:
    for line in textwrap.wrap(text, WIDTH, subsequent_indent="  "):
        yield Text(line, style=style)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "~"
