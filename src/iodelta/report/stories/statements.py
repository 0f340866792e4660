"""An account in sentences: what every format says, in the same words; nothing here knows about lines or markup.

Names and texts from outside come out inert (``words.inert``); a format still has to escape them in its own way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain

from iodelta.lab.plan import carry_over
from iodelta.plural import listed, plural
from iodelta.report.stories.calibration import QUOTED, quoted
from iodelta.report.stories.evidence import (
    CANNOT_TELL,
    MORE,
    Interval,
    carried,
    course_says,
    first_look,
    stalls_not_excluded,
    visible,
)
from iodelta.study.experiment import Account
from iodelta.study.views import Cost
from iodelta.study.words import (
    duration,
    inert,
    interval,
    metric_name,
    percent,
    quantity,
)
from iodelta.trial import Finding
from iodelta.verdict import Verdict
from iodelta.verdict.derived import KneeMove

CARRY = {
    "superblocks": "Every counted trial followed a trial of its own variant; the change is the deployed one.",
    "ignored": "The workload leaves state behind and superblocks are turned off: carry-over may be part of any change.",
}
"""What the plan decided about carry-over, where it is not simply tested."""

WHOLE = 1.0
"""A margin of 100 % or more is no advice."""

MANY = 6
"""With more open comparisons than this, what they still need is summed up."""


def not_measured(account: Account) -> Iterator[str]:
    """Cells that were given up, and why; cells that the run did not come to."""
    for cell, reason in account.abandoned.items():
        yield f"Cell {inert(cell)} could not be measured: {inert(reason)}"
    missing = [
        inert(cell) for cell in account.unmeasured if cell not in account.abandoned
    ]
    if missing:
        yield f"No block was finished of {plural(len(missing), 'cell')}: {listed(missing, MANY)}."


def recommendation(account: Account) -> str:
    """Return the one sentence about which variant to choose; empty where there is nothing to choose."""
    advice = account.views.recommendation
    if advice is None:
        return ""
    return f"All cells together (exploratory): {inert(advice.sentence)}"


def beyond(account: Account) -> Iterator[str]:
    """Yield what the primary verdicts do not show: spread, pooled tails, knee, cost per I/O."""
    views = account.views
    yield from by_total(account)
    yield from _not_excluded(account)
    yield from _false_equivalents(account)
    for spread in views.spread:
        if spread.word in ("regression", "improvement"):
            name = metric_name(spread.metric, with_kind=False)
            yield f"Spread (exploratory): {inert(spread.cell)}, {inert(spread.variant)}, {name}: {spread.word}: {spread.phrase}."
    yield from _held(account)
    yield from _pooled(account)
    for move in views.knees:
        yield from _knee(move)
    yield from _costs(account)


def _place(cell: str, variant: str) -> str:
    return f"{inert(cell)} ({inert(variant)})"


def _held(account: Account) -> Iterator[str]:
    """Comparisons that are a change on their own, but not after the correction for the family."""
    held = dict.fromkeys(
        _place(verdict.cell, verdict.variant)
        for verdict in account.judgement.verdicts
        if held_back(verdict, account)
    )
    if held:
        yield (
            "Changes on their own, but not yet certain among "
            f"{plural(account.judgement.family.comparisons, 'comparison')}: {listed([*held], MANY)}."
        )


def by_total(account: Account) -> Iterator[str]:
    """Verdicts that rest on the total change, that are withheld because of carry-over, or whose change begins or ends."""
    names: dict[tuple[str, str], list[str]] = {}
    for verdict in account.judgement.verdicts:
        says = (
            [verdict.phrase] if verdict.basis == "total" or verdict.is_withheld else []
        )
        for phrase in filter(None, (*says, course_says(verdict))):
            metrics = names.setdefault((verdict.cell, phrase), [])
            metrics.append(metric_name(verdict.metric, with_kind=False))
    for cell, phrase in list(names)[:MANY]:
        yield f"{inert(cell)}, {', '.join(names[cell, phrase])}: {inert(phrase)}."
    if len(names) > MANY:
        yield f"{len(names) - MANY} more rest on the total, are withheld, or begin or end: see the table."


def _not_excluded(account: Account) -> Iterator[str]:
    """Yield what the verdicts do not exclude: the largest bounds of stalls and of carry-over."""
    verdicts = account.judgement.verdicts
    yield from stalls_not_excluded(verdicts, account.judgement.rules)
    unknown = []
    for verdict in verdicts:
        if verdict.carry is not None and CANNOT_TELL in carried(
            verdict.carry, verdict.typical
        ):
            unknown.append(_place(verdict.cell, verdict.variant))
    if unknown:
        yield f"{CANNOT_TELL[:1].upper()}{CANNOT_TELL[1:]}: {listed([*dict.fromkeys(unknown)], MANY)}; {MORE}."


def _false_equivalents(account: Account) -> Iterator[str]:
    """Yield how many of many cells would be called equivalent in error."""
    verdicts = [v for v in account.judgement.verdicts if v.look is not None]
    called = sum(v.word == "equivalent" for v in verdicts)
    if called > MANY:
        share = account.judgement.rules.alpha / 2
        yield (
            f"{called} of {plural(len(verdicts), 'comparison')} are called equivalent: if each had "
            "changed by exactly the "
            f"margin, {share * len(verdicts):.1f} of them would be called so by mistake."
        )


def held_back(verdict: Verdict, account: Account) -> str:
    """Return why an interval that excludes 0 is not a verdict: one of many comparisons, corrected for the family."""
    if verdict.word == verdict.alone or verdict.is_withheld:
        return ""
    count = account.judgement.family.comparisons
    return (
        f"{verdict.alone} on its own, but not yet certain among {plural(count, 'comparison')}: "
        "more blocks can settle it"
    )


def _pooled(account: Account) -> Iterator[str]:
    """Yield a percentile that single trials cannot carry, from the counts of all blocks together."""
    refused = set()
    for verdict in account.judgement.verdicts:
        if any(finding.rule == "verdict.tail-too-thin" for finding in verdict.findings):
            refused.add(
                (verdict.cell, verdict.variant, verdict.metric.name.rpartition(".p")[2])
            )
    several = len(account.plan.experiment.variants) > 2
    for cell, variant, shift in account.views.shifts:
        for point in shift.shifts:
            if point.pooled and (cell, variant, f"{100 * point.p:g}") in refused:
                low, high = map(relative, (point.low, point.high))
                name = f"{inert(cell)}, {inert(variant)}" if several else inert(cell)
                yield (
                    f"Pooled over {plural(shift.blocks, 'block')}, {name}: p{100 * point.p:g} latency "
                    f"{percent(math.expm1(point.change), 0.01)} ({interval(low, high)}); no verdict."
                )


def _knee(move: KneeMove) -> Iterator[str]:
    """Where each variant saturates, and whether that moved."""
    if move.before is None or move.after is None:
        return
    before, after = (
        f"{knee.depth:.3g} ({knee.low:.3g}-{knee.high:.3g})"
        for knee in (move.before, move.after)
    )
    moved = ""
    if move.shift is not None:
        how = "moved" if move.shift.excludes_zero else "did not move measurably"
        low, high = move.shift.low or 0.0, move.shift.high or 0.0
        moved = f"; it {how}, by a factor of {1 + move.shift.value:.2f} ({1 + low:.2f}-{1 + high:.2f})"
    yield (
        f"Saturation: at {before} I/Os in flight for {inert(move.baseline)}, {after} for {inert(move.variant)}{moved}."
    )


def relative(log_ratio: float | None) -> float | None:
    """Return a log-ratio as a relative change; None stays None."""
    if log_ratio is None:
        return None
    return math.expm1(log_ratio)


def _costs(account: Account) -> Iterator[str]:
    """Kernel time and context switches per I/O, where they were measured."""
    cells = [cell.name for cell in account.plan.experiment.cells]
    if len(cells) > MANY:
        return
    for cell in cells:
        costs = [
            _cost_of(cost)
            for cost in account.views.costs
            if cost.cell == cell and cost.system_ns is not None
        ]
        if costs:
            yield f"Kernel time per I/O (half of the trials), {inert(cell)}: {'; '.join(costs)}."


def _cost_of(cost: Cost) -> str:
    """``new 1.2 us (1.1 us to 1.3 us), 0.98 switches``."""
    text = f"{inert(cost.variant)} {quantity(cost.system_ns, 'ns', 3)}"
    if cost.system_quartiles:
        low, high = (quantity(end, "ns", 3) for end in cost.system_quartiles)
        text += f" ({low} to {high})"
    if cost.switches is not None:
        text += f", {cost.switches:.2f} switches"
    return text


def open_questions(account: Account) -> Iterator[str]:
    """Yield what the open comparisons still need: a sentence for each cell, or one for all where there are many."""
    waiting: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in account.judgement.verdicts:
        if verdict.word == "inconclusive":
            waiting.setdefault((verdict.cell, verdict.variant), []).append(verdict)
    open_verdicts = list(chain.from_iterable(waiting.values()))
    first = _same_first_look(open_verdicts, account)
    if first and len(waiting) > 1:
        yield f"Open: {first}."
        return
    if len(waiting) > MANY:
        blocks: dict[str, int] = {}  # a block of a cell serves all its comparisons
        for verdict in open_verdicts:
            needed = more_blocks(verdict)
            blocks[verdict.cell] = max(needed, blocks.get(verdict.cell, 0))
        more = sum(blocks.values())
        yield (
            f"Open: {len(blocks)} of "
            f"{plural(len(account.plan.experiment.cells), 'cell')}; to decide "
            f"them all takes about {plural(more, 'more block')}, {duration(more * account.block_seconds)}."
        )
        return
    several = len(account.plan.experiment.variants) > 2
    for (cell, variant), verdicts in waiting.items():
        name = f"{inert(cell)}, {inert(variant)}" if several else inert(cell)
        needs = _same_first_look(verdicts, account) or "; ".join(
            f"{metric_name(verdict.metric, with_kind=False)} {_needs(verdict, account)}"
            for verdict in verdicts
        )
        yield f"Open: {name}: {needs}."


def _first_look(verdict: Verdict, account: Account) -> str:
    return first_look(verdict, account.judgement, account.kept, account.block_seconds)


def _same_first_look(verdicts: Sequence[Verdict], account: Account) -> str:
    """Return the first look of all these comparisons; empty where they differ or were looked at."""
    looks = {_first_look(verdict, account) for verdict in verdicts}
    return looks.pop() if len(looks) == 1 else ""


def _needs(verdict: Verdict, account: Account) -> str:
    """Return what one open comparison still needs."""
    first = _first_look(verdict, account)
    if first:
        return first
    needed = verdict.needed
    if needed is None:
        return _unsettled(verdict)
    replays = f"in {100 * needed.share:.0f} % of replays"
    least = max(0, needed.low - verdict.blocks)
    if needed.high is None:
        return f"needs {plural(least, 'more block')} at least, perhaps more than are planned ({replays})"
    more = more_blocks(verdict)
    if not more:
        return inert(verdict.phrase)
    most = max(0, needed.high - verdict.blocks)
    seconds = more * account.block_seconds
    return f"needs about {plural(more, 'more block')} ({least}-{most} {replays}), {duration(seconds)}"


def _unsettled(verdict: Verdict) -> str:
    """That the planned blocks will probably not decide this, and which margin they can decide."""
    if verdict.open_share is None:
        return inert(verdict.phrase)
    text = (
        "will probably not be settled in the planned blocks "
        f"({100 * verdict.open_share:.0f} % of replays)"
    )
    margin = verdict.reachable_margin
    if margin is None:
        return text
    if margin >= WHOLE:
        return f"{text}; reduce the noise"
    return f"{text}; a margin of {margin_of(margin)} % can"


def margin_of(value: float) -> str:
    """Return a margin in percent, with one decimal below 10 %."""
    return f"{100 * value:.0f}" if value >= 0.1 else f"{100 * value:.1f}"


def more_blocks(verdict: Verdict) -> int:
    """Blocks to go; before the first look those up to it, since nothing else is known."""
    end = verdict.needed.blocks if verdict.needed else None
    if verdict.look is None:
        end = verdict.next_look
    return max(0, (end or 0) - verdict.blocks)


def _hosts(account: Account) -> str:
    names = account.plan.experiment.machines
    if len(names) > 1:
        return (
            f" on {plural(len(names), 'host')} in turn, whose own effects are averaged"
        )
    return ""


def _length(account: Account) -> str:
    """Return how long a trial is, where that is planned: a command ends by itself."""
    design = account.plan.experiment.design
    if account.plan.experiment.of_command:
        return " of a command"
    return f" of {design.trial:g} s after a ramp of {design.ramp:g} s"


def method(account: Account, folder: str = "FOLDER") -> Iterator[str]:
    """Yield how it was measured and decided: what was fixed in advance, what could have been seen, how it ended.

    ``folder`` is its name in commands.
    """
    rules = account.plan.rules
    looks = ", ".join([*map(str, rules.looks[:-1]), plural(rules.looks[-1], "block")])
    yield (
        f"{plural(account.trials, 'trial')}{_length(account)} in "
        f"{duration(account.spent)}{_hosts(account)}; margin {100 * rules.margin:g} %, "
        f"level {100 * (1 - rules.alpha):g} %, order randomised in blocks (seed {account.plan.seed}), "
        f"looks at {looks}."
    )
    yield "Order and rules were fixed before the first trial."
    carry = CARRY.get(rules.carry)
    if carry:
        yield carry
    carry = carry_over(account.plan)
    if carry:
        yield f"Carry-over: {inert(carry)}."
    yield from (
        f"{inert(note[:1].upper() + note[1:])}."
        for note in account.plan.experiment.notes
    )
    if account.repeated:
        yield f"{plural(account.repeated, 'trial')} failed or ended early; the block was repeated each time."
    seen = visible(intervals(account))
    if seen:
        yield f"Smallest change this could have seen: {seen}."
    for calibration in account.calibrations[:QUOTED]:
        yield quoted(calibration)
    if not account.calibrations:
        yield "Not calibrated here for these workloads: `iodelta calibrate` says what this machine can see."
    # `iodelta run` refuses to continue a folder that was changed.
    if account.state != "complete" and not account.broken:
        yield {
            "running": f"It is still running, or was killed: `iodelta run {folder}` continues it.",
            "budget": f"The budget ended it: `iodelta run {folder} --budget TIME` extends it once.",
            "interrupted": f"It was interrupted: `iodelta run {folder}` continues it.",
        }.get(account.state, f"It ended early: {inert(account.state)}.")


def intervals(account: Account) -> Iterator[Interval]:
    """Yield the changes of all verdicts that have one."""
    several = len({verdict.metric.kind for verdict in account.judgement.verdicts}) > 1
    for verdict in account.judgement.verdicts:
        change = verdict.change
        if change is not None:
            name = inert(metric_name(verdict.metric, with_kind=several))
            yield Interval(
                metric=name,
                better=verdict.metric.better,
                value=change.value,
                low=change.low,
                high=change.high,
            )


def all_findings(account: Account) -> list[Finding]:
    """Return the findings of folder, judgement and verdicts together."""
    judgement = account.judgement
    judged = chain.from_iterable(verdict.findings for verdict in judgement.verdicts)
    return [*account.findings, *judgement.findings, *judged]
