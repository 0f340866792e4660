"""What to do next, in at most five lines: what speaks against the result, what is open, where the rest is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from iodelta.errors import pasted
from iodelta.figures import share, two_digits
from iodelta.plural import plural
from iodelta.report.stories.evidence import (
    CANNOT_TELL,
    first_look,
    least_change,
    not_excluded,
    share_of,
)
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
from iodelta.verdict.explain import left_open

LINES = 5
LEAST = 3
"""However little of a screen is left."""

NAMED = 3
"""Cells and rules that are named; more are counted."""


def advice(account: Account, width: int, lines: int = LINES) -> Iterator[str]:
    """What went wrong, in full; then the rest while ``lines``, five at most, hold it. The last says where all is."""
    folder = inert(pasted(account.folder))
    rest = f"`iodelta report {folder} --verbose`"
    shown = list(
        chain.from_iterable(
            wrap(sentence, width, "  ") for sentence in _failures(account)
        )
    )
    statements = list(_statements(account))
    room = max(LEAST, min(lines, LINES)) - len(
        wrap(f"{plural(len(statements), 'more statement')}: {rest}", width, "  ")
    )
    while statements and (
        not shown or len(shown) + len(wrap(statements[0], width, "  ")) <= room
    ):
        shown += wrap(statements.pop(0), width, "  ")
    yield from shown
    label = (
        f"{plural(len(statements), 'more statement')} and all details"
        if statements
        else "All details"
    )
    yield from wrap(f"{label}: {rest}", width, "  ")


def _failures(account: Account) -> Iterator[str]:
    """What was not measured or cannot be believed, and how a run that ended early goes on."""
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
    """Everything else that a reader may have to act on, the most important first."""
    yield from by_total(account)
    yield from machine_changed(account)
    advised = account.views.recommendation
    if advised is not None and advised.variants:
        yield recommendation(account)
    yield from _called(account)
    yield from _inconclusive(account)
    yield from _limits(account)
    warnings = [
        finding.rule
        for finding, _ in grouped(all_findings(account))
        if finding.severity == "warning"
    ]
    if warnings:
        yield f"{plural(len(warnings), 'warning')}: {_some(list(dict.fromkeys(warnings)))}."


def _inconclusive(account: Account) -> Iterator[str]:
    """What is open, and what an answer takes: blocks where more can decide it, else the margin that is within reach."""
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
        name += f" ({_some([*map(inert, cells)])})"
    looks = [
        first_look(verdict, account.judgement, account.kept, each)
        for verdict in waiting
    ]
    first = next(filter(None, looks), "")
    yield f"{name}: {first or _takes(waiting, cells, each)}."


def _takes(waiting: Sequence[Verdict], cells: Sequence[str], each: float) -> str:
    """What an answer takes; ``each`` block takes so many seconds."""
    known = [verdict.reachable_margin for verdict in waiting]
    margin = max(filter(None, known), default=0.0)
    accept = f"accept a margin of {margin_of(margin)} %" if 0 < margin < WHOLE else ""
    more = max(map(more_blocks, waiting))
    if more:
        seconds = sum(_blocks_of(waiting, cell) for cell in cells) * each
        of_each = " of each cell" if len(cells) > 1 else ""
        needed = f"about {plural(more, 'more block')}{of_each} ({duration(seconds)})"
        alternative = f", or {accept}" if accept else ""
        return f"{needed} would decide{alternative}"
    if not margin:
        return inert(waiting[0].phrase)
    remedy = f"{accept}, or reduce the noise" if accept else "reduce the noise"
    return f"the planned blocks will probably not decide this; {remedy}"


def _blocks_of(verdicts: Sequence[Verdict], cell: str) -> int:
    """How many more blocks a cell takes."""
    return max(more_blocks(verdict) for verdict in verdicts if verdict.cell == cell)


def _continued(account: Account) -> Iterator[str]:
    """How to go on with what ended early."""
    if account.broken:  # nothing is added to it
        return
    folder = inert(pasted(account.folder))
    if account.state == "budget" and any(
        verdict.word == "inconclusive" for verdict in account.judgement.verdicts
    ):
        yield f"The budget ended the run; `iodelta run {folder} --budget TIME` continues it."
    elif account.state == "interrupted":
        yield f"The run was interrupted; `iodelta run {folder}` continues it."
    elif account.state == "running":
        yield f"The run is not complete; `iodelta run {folder}` continues it."
    elif account.state not in ("complete", "budget"):
        yield f"The run ended early: {inert(account.state)}."


def _called(account: Account) -> Iterator[str]:
    """How large the changes are at least, and what carry-over may have put into one."""
    called = [
        verdict
        for verdict in account.judgement.verdicts
        if least_change(verdict) is not None
    ]
    if not called:
        return
    smallest = min(called, key=lambda verdict: least_change(verdict) or 0.0)
    least = f"at least {share(least_change(smallest) or 0.0)}"
    what = (
        f"The {smallest.word} is {least}"
        if len(called) == 1
        else f"Each of the {len(called)} changes is {least}"
    )
    yield f"{what}{_stalls_in(called, account.judgement.rules)}{_carry_in(called)}."


def _stalls_in(called: Sequence[Verdict], rules: Rules) -> str:
    """Which stalls the improvements among these changes do not exclude; empty where they exclude enough."""
    bounds = [
        verdict.stalls.not_excluded
        for verdict in called
        if verdict.word == "improvement" and verdict.stalls is not None
    ]
    open_ = left_open("improvement", max(bounds, default=None), rules.stalls)
    where = "" if len(called) == 1 else "where it says improvement, "
    return f"; {where}{open_}" if open_ else ""


def _carry_in(called: Sequence[Verdict]) -> str:
    """The most that a carry-over could account for in one of these changes; empty where none was estimated."""
    known = [
        (most * share_of(v.carry, v.typical), most)
        for v in called
        if v.carry and (most := not_excluded(v.carry))
    ]
    if not known:
        return ""
    part, most = max(known)
    if most > CANNOT_TELL:
        return "; the data do not show how much of it is carry-over"
    return f"; a carry-over of up to {share(most)} is not excluded and could make up {two_digits(100 * part)} points of it"


def _limits(account: Account) -> Iterator[str]:
    """What "equivalent" leaves open."""
    verdicts = account.judgement.verdicts
    same = [verdict for verdict in verdicts if verdict.word == "equivalent"]
    stalls = [verdict.stalls.not_excluded for verdict in same if verdict.stalls]
    carries = [not_excluded(verdict.carry) for verdict in same if verdict.carry]
    carried = [bound for bound in carries if bound is not None]
    parts = []
    if stalls:
        parts.append(f"stalls in up to {100 * max(stalls):.0f} % of trials")
    if carried:
        most = max(carried)
        size = "any size" if most > CANNOT_TELL else f"up to {share(most)}"
        parts.append(f"a carry-over of {size}")
    if parts:
        yield f"Equivalent does not exclude {' or '.join(parts)}."


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
