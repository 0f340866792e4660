"""What a first screen says below its table: what speaks against the result, what is open, and the next command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iodelta.errors import pasted
from iodelta.plural import listed, plural
from iodelta.report.stories.evidence import course_says
from iodelta.report.stories.sources import findings
from iodelta.report.stories.statements import (
    WHOLE,
    all_findings,
    margin_of,
    more_blocks,
    not_measured,
)
from iodelta.study.confounders import said
from iodelta.study.experiment import Account
from iodelta.study.findings import grouped
from iodelta.study.words import duration, inert, metric_name, percent
from iodelta.verdict import Verdict

NAMED = 3
"""Cells, metrics and rules that are named; more are counted."""


def failures(account: Account) -> Iterator[str]:
    """Yield what was not measured or cannot be believed; never left out."""
    yield from findings(
        finding for finding in all_findings(account) if finding.severity == "hard"
    )
    yield from not_measured(account)


def statements(account: Account) -> Iterator[str]:
    """Yield what a reader would act on, the most important first."""
    yield from _by_total(account)
    yield from dict.fromkeys(
        f"{inert(said_[:1].upper() + said_[1:])}."
        for verdict in account.judgement.verdicts
        if (said_ := course_says(verdict))
    )
    yield from machine_changed(account)
    advised = account.views.recommendation
    if advised is not None and advised.variants:
        yield inert(advised.sentence[:1].upper() + advised.sentence[1:])
    # The plan said its own warnings before the run.
    warned = {
        finding.rule: finding.explanation
        for finding, _ in grouped(all_findings(account))
        if finding.severity == "warning"
        and not finding.rule.startswith(("plan.", "verdict."))
    }
    for rule, explanation in warned.items():
        yield f"{inert(explanation[:1].upper() + explanation[1:])} [{rule}]."


def machine_changed(account: Account) -> Iterator[str]:
    """Yield what differed between the sessions of an experiment, and why that matters."""
    for _, why, differing in said(account.changed):
        reason = f" ({why})" if why else ""
        yield f"The machine changed between the sessions: {'; '.join(differing)}{reason}."


def _by_total(account: Account) -> Iterator[str]:
    """Verdicts that rest on stalls, and those that one run's effect on the next takes back; a sentence a variant."""
    seen = set()
    for verdict in account.judgement.verdicts:
        stalls, name = verdict.stalls, inert(verdict.variant)
        place = (
            f" in {inert(verdict.cell)}"
            if len(account.plan.experiment.cells) > 1
            else ""
        )
        if verdict.is_withheld and ("withheld", verdict.variant) not in seen:
            seen.add(("withheld", verdict.variant))
            yield f"{name} affects the run after it{place}, which alone could explain the change. Use --superblocks."
        elif (
            verdict.estimand == "total"
            and verdict.total
            and (verdict.cell, verdict.variant) not in seen
        ):
            seen.add((verdict.cell, verdict.variant))
            total = percent(verdict.total.value)
            if stalls is not None and stalls.variant:
                share = f"{len(stalls.variant)} of {verdict.blocks} runs"
                yield f"Stalls: {name} had {share} far slower than the rest{place} (total {total})."
            elif verdict.typical is not None:
                yield f"In total {name} changed by {total}{place}; a typical run by {percent(verdict.typical.value)}."


def next_step(account: Account) -> tuple[str, str]:
    """Return how the run ended and what is open, in a sentence or two, and the command that goes on; each may be empty."""
    folder = inert(pasted(account.folder))
    waiting = [
        verdict
        for verdict in account.judgement.verdicts
        if verdict.word == "inconclusive"
    ]
    ended = {
        "complete": "",
        "budget": "Budget spent",
        "interrupted": "Interrupted",
        "running": "Still running, or killed",
    }.get(account.state, f"The run ended early: {inert(account.state)}")
    if account.broken:  # `iodelta run` refuses to continue it
        return "", ""
    if account.state != "budget" and account.state != "complete":
        return f"{ended}; to continue:", f"iodelta run {folder}"
    if not waiting:
        return "", ""
    more = max(map(more_blocks, waiting))
    seconds = (
        sum(_blocks_of(waiting, cell) for cell in {verdict.cell for verdict in waiting})
        * account.block_seconds
    )
    if not more or account.state == "complete":
        margins = [
            verdict.reachable_margin for verdict in waiting if verdict.reachable_margin
        ]
        wider = (
            f" A margin of {margin_of(max(margins))} % could be decided;"
            if margins and len(margins) == len(waiting) and max(margins) < WHOLE
            else ""
        )
        less = (
            " less noise or longer trials help too."
            if wider
            else " Less noise or longer trials help."
        )
        return (
            f"{ended + '. ' if ended else ''}Still open: {_open(account, waiting)}.{wider}{less}",
            "",
        )
    return (
        f"{ended}; {_about(more, account)} ({duration(seconds)}) would settle {_open(account, waiting)}:",
        f"iodelta run {folder} --budget {_option(1.2 * seconds)}",
    )


def _about(more: int, account: Account) -> str:
    of_each = " of each cell" if len(account.plan.experiment.cells) > 1 else ""
    return f"about {plural(more, 'more block')}{of_each}"


def _option(seconds: float) -> str:
    """Return a duration as an option has it, rounded up."""
    return f"{int(seconds) + 1}s" if seconds < 100 else f"{int(seconds / 60) + 1}m"


def _open(account: Account, waiting: Sequence[Verdict]) -> str:
    """Return the open cells with their metrics; all metrics of all cells are no list."""
    metrics = {verdict.metric.name for verdict in account.judgement.verdicts}
    cells: dict[str, dict[str, None]] = {}
    for verdict in waiting:
        cells.setdefault(verdict.cell, {})[
            metric_name(verdict.metric, with_kind=False).removesuffix(" latency")
        ] = None
    names = [list(own) for own in cells.values()]
    variants = {verdict.variant for verdict in account.judgement.verdicts}
    open_ = dict.fromkeys(verdict.variant for verdict in waiting)
    if len(open_) < len(variants) and len(cells) == 1:
        return listed([*map(inert, open_)], NAMED)
    if len(account.plan.experiment.cells) == 1:
        return (
            "every metric" if len(names[0]) == len(metrics) else listed(names[0], NAMED)
        )
    each = [
        "all metrics" if len(own) == len(metrics) else listed(own, NAMED)
        for own in names
    ]
    if len(set(each)) == 1:
        return f"{listed([*map(inert, cells)], NAMED)} ({each[0]})"
    return listed(
        [f"{inert(cell)} ({own})" for cell, own in zip(cells, each, strict=True)], NAMED
    )


def _blocks_of(waiting: Sequence[Verdict], cell: str) -> int:
    """Return how many more blocks a cell takes."""
    return max(more_blocks(verdict) for verdict in waiting if verdict.cell == cell)
