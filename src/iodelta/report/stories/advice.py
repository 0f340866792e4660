"""What to do next, in at most five lines: what speaks against the result, what is open, where the rest is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iodelta.errors import pasted
from iodelta.plural import listed, plural
from iodelta.report.stories.evidence import first_look, note, stalls_open
from iodelta.report.stories.sources import findings
from iodelta.report.stories.statements import (
    WHOLE,
    all_findings,
    by_total,
    margin_of,
    more_blocks,
    not_measured,
    recommendation,
)
from iodelta.study.confounders import said
from iodelta.study.experiment import Account
from iodelta.study.findings import grouped
from iodelta.study.words import duration, inert, wrap
from iodelta.verdict import Rules, Verdict
from iodelta.verdict.explain import not_excluded, open_stalls

LINES = 5
"""Lines of advice at most."""

LEAST = 3
"""Lines of advice that are shown however little room is left on the screen."""

NAMED = 3
"""Cells and rules that are named; more are counted."""


def advice(account: Account, width: int, lines: int = LINES) -> Iterator[str]:
    """All failures in full; then other statements while they fit into ``lines``, five at most. The last line is the
    command that shows everything."""
    folder = inert(pasted(account.folder))
    rest = f"`iodelta report {folder} --verbose`"
    shown: list[str] = []
    for failure in _failures(account):
        shown += wrap(failure, width, "  ")
    statements = list(_statements(account))
    last = wrap(f"{plural(len(statements), 'more statement')}: {rest}", width, "  ")
    room = max(LEAST, min(lines, LINES)) - len(last)
    while statements:
        lines_of_next = wrap(statements[0], width, "  ")
        if shown and len(shown) + len(lines_of_next) > room:
            break
        shown += lines_of_next
        del statements[0]
    yield from shown
    label = "All details"
    if statements:
        label = f"{plural(len(statements), 'more statement')} and all details"
    yield from wrap(f"{label}: {rest}", width, "  ")


def _failures(account: Account) -> Iterator[str]:
    """What was not measured or cannot be believed, and the command that continues a run that ended early."""
    yield from findings(
        finding for finding in all_findings(account) if finding.severity == "hard"
    )
    yield from not_measured(account)
    yield from _continued(account)


def machine_changed(account: Account) -> Iterator[str]:
    """What differed between the sessions of an experiment, and why that matters."""
    for _, why, differing in said(account.changed):
        reason = f" ({why})" if why else ""
        yield f"The machine changed between the sessions: {'; '.join(differing)}{reason}."


def _statements(account: Account) -> Iterator[str]:
    """Everything else that you may have to act on, the most important first."""
    yield from by_total(account)
    yield from machine_changed(account)
    advised = account.views.recommendation
    if advised is not None and advised.variants:
        yield recommendation(account)
    yield from _inconclusive(account)
    yield from _limits(account)
    warnings = [
        finding.rule
        for finding, _ in grouped(all_findings(account))
        if finding.severity == "warning"
    ]
    if warnings:
        yield f"{plural(len(warnings), 'warning')}: {listed([*dict.fromkeys(warnings)], NAMED)}."


def _inconclusive(account: Account) -> Iterator[str]:
    """What is open, and what an answer needs: more blocks where they can decide it, else a larger margin."""
    verdicts = account.judgement.verdicts
    waiting = [verdict for verdict in verdicts if verdict.word == "inconclusive"]
    if not waiting:
        return
    each = account.block_seconds
    every = [cell.name for cell in account.plan.experiment.cells]
    open_ = {verdict.cell for verdict in waiting}
    cells = [cell for cell in every if cell in open_]
    name = "Inconclusive"
    if cells != every:
        name += f" ({listed([*map(inert, cells)], NAMED)})"
    looks = [
        first_look(verdict, account.judgement, account.kept, each)
        for verdict in waiting
    ]
    first = next(filter(None, looks), "")
    yield f"{name}: {first or _takes(waiting, cells, each, account.judgement.rules)}."


def _takes(
    waiting: Sequence[Verdict], cells: Sequence[str], each: float, rules: Rules
) -> str:
    """What an answer needs; ``each`` is the duration of a block in seconds."""
    known = [verdict.reachable_margin for verdict in waiting]
    margin = max(filter(None, known), default=0.0)
    # A margin of 100 % is no advice.
    accept = []
    if 0 < margin < WHOLE:
        accept.append(f"accept a margin of {margin_of(margin)} %")
    more = max(map(more_blocks, waiting))
    if more:
        seconds = sum(_blocks_of(waiting, cell) for cell in cells) * each
        of_each = " of each cell" if len(cells) > 1 else ""
        needed = f"about {plural(more, 'more block')}{of_each} ({duration(seconds)}) would decide"
        return ", or ".join((needed, *accept))
    if not margin:
        return note(waiting[0], rules) or inert(waiting[0].phrase)
    remedy = ", or ".join((*accept, "reduce the noise"))
    if all(verdict.step == "exhausted" for verdict in waiting):
        return f"all planned blocks were run; {remedy}"
    return f"the planned blocks will probably not decide this; {remedy}"


def _blocks_of(verdicts: Sequence[Verdict], cell: str) -> int:
    """How many more blocks a cell takes."""
    return max(more_blocks(verdict) for verdict in verdicts if verdict.cell == cell)


def _continued(account: Account) -> Iterator[str]:
    """How to continue a run that ended early."""
    # `iodelta run` refuses to continue a folder that was changed.
    if account.broken or account.state == "complete":
        return
    folder = inert(pasted(account.folder))
    words = {verdict.word for verdict in account.judgement.verdicts}
    if account.state == "budget":
        if "inconclusive" in words:
            yield f"The budget ended the run; `iodelta run {folder} --budget TIME` continues it."
    elif account.state == "interrupted":
        yield f"The run was interrupted; `iodelta run {folder}` continues it."
    elif account.state == "running":
        yield f"The run is not complete; `iodelta run {folder}` continues it."
    else:
        yield f"The run ended early: {inert(account.state)}."


def _limits(account: Account) -> Iterator[str]:
    """What "equivalent", and an improvement after few trials, leave open."""
    rules = account.judgement.rules
    same: list[tuple[float, int]] = []
    better: list[tuple[float, int]] = []
    for verdict in account.judgement.verdicts:
        stalls = verdict.stalls
        if stalls is None:
            continue
        bound = stalls.not_excluded, stalls.longest
        if verdict.word == "equivalent":
            same.append(bound)
        elif stalls_open(verdict, rules):
            better.append(bound)
    if same:
        yield f"Equivalent does not exclude {open_stalls(*max(same))}."
    if better:
        yield f"Where it says improvement, {not_excluded(*max(better))}."
