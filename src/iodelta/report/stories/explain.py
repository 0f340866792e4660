"""One cell explained: every block, the order in it, the interval, the rule that fired, what would change it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from iodelta.errors import RequestError, pasted
from iodelta.plural import plural
from iodelta.report.stories.evidence import blocks_of, evidence
from iodelta.report.stories.statements import relative
from iodelta.stats.shift import ShiftFunction
from iodelta.study.experiment import Account
from iodelta.study.words import (
    inert,
    interval,
    measured,
    metric_name,
    percent,
    quantity,
)
from iodelta.verdict import Verdict

BAR = 21
"""Columns of the picture of a block's change; the middle one is no change."""


def explain(account: Account, cell: str) -> Iterator[str]:
    """Lines for every verdict of ``cell``. Raises RequestError for a cell that is not there."""
    verdicts = account.judgement.of(cell)
    if not verdicts:
        names = [planned.name for planned in account.plan.experiment.cells]
        if cell in names:
            remedy = f"`iodelta run {pasted(account.folder)}` continues it"
            raise RequestError(
                f"nothing was measured in the cell {inert(cell)!r}", remedy=remedy
            )
        raise RequestError(
            f"there is no cell {inert(cell)!r}",
            remedy=f"cells: {', '.join(map(inert, names))}",
        )
    for verdict in verdicts:
        yield from _verdict(verdict)
        yield ""
    for name, variant, shift in account.views.shifts:
        if name == cell:
            yield from _shift(variant, shift)


def _shift(variant: str, shift: ShiftFunction) -> Iterator[str]:
    """Yield how far each percentile of latency moved: the band holds for all of them together."""
    if shift.shifts:
        band = f"{100 * shift.level:g} % band over {plural(shift.blocks, 'block')}"
        yield f"latency of {inert(variant)}, percentile by percentile ({band})"
    for point in shift.shifts:
        low, high = map(relative, (point.low, point.high))
        pooled = "  pooled over blocks" if point.pooled else ""
        limit = percent(math.expm1(point.smallest)).lstrip("+")
        name = f"p{100 * point.p:g}"
        bounds = interval(low, high)
        yield f"  {name:<6} {measured(math.expm1(point.change), low, high):>8}  {bounds:<18} seen from {limit} on{pooled}"
    for finding in shift.refused:
        yield f"  {inert(finding.explanation)}"


def _verdict(verdict: Verdict) -> Iterator[str]:
    name = metric_name(verdict.metric, with_kind=True)
    yield f"{inert(verdict.cell)}: {name}, {inert(verdict.variant)} against {inert(verdict.baseline)}: {verdict.word}"
    yield f"  {inert(verdict.phrase)}"
    if verdict.change is not None:
        bounds = interval(verdict.change.low, verdict.change.high)
        yield f"  {verdict.estimand} change: {percent(verdict.change.value, 0.0005)} ({bounds})"
    yield from _blocks(verdict)
    unit = verdict.metric.unit
    values = f"{quantity(verdict.baseline_value, unit)} and {quantity(verdict.variant_value, unit)}"
    yield f"  {verdict.central}s as measured: {values}"
    for sentence in evidence(verdict):
        yield f"  {sentence}"
    if verdict.sd is not None:
        yield f"  spread of a block's change: {100 * verdict.sd:.2f} %"
    if verdict.p is not None:
        parts = [
            f"{name} {value:.3g}"
            for name, value in (
                (
                    ("at this look", verdict.p),
                    ("over all looks", verdict.p_looks),
                    ("with Holm over the family", verdict.p_family),
                    ("q for lists", verdict.q),
                )
            )
            if value is not None
        ]
        yield f"  p: {', '.join(parts)}"
    yield f"  rule: {verdict.rule}"
    yield f"  what would change it: {verdict.would_change}"
    for finding in verdict.findings:
        yield f"  {finding.severity}: {inert(finding.explanation)} [{finding.rule}]"


def _blocks(verdict: Verdict) -> Iterator[str]:
    """Yield every block with its change; one in which a trial did no I/O has none, and counts as the worst or the best."""
    blocks = list(blocks_of(verdict))
    if not blocks:
        return
    sizes = [abs(block.change) for block in blocks if not block.idle]
    largest = max([*sizes, 1e-9])
    yield f"  block  first        change  {'-' * (BAR // 2)}0{'-' * (BAR // 2)} {percent(largest)} at the edge"
    for block in blocks:
        first = inert(verdict.baseline if block.baseline_first else verdict.variant)
        bar = _bar(max(-1.0, min(1.0, block.change / largest)))
        row = f"  {block.number + 1:>5}  {first[:10]:<10}"
        if block.idle:
            trials = "trial" if len(block.idle) == 1 else "trials"
            numbers = " and ".join(map(str, block.idle))
            yield f"{row} {'-':>9}  {bar:<{BAR}} no I/O completed in {trials} {numbers}"
        else:
            yield f"{row} {100 * block.change:>+7.2f} %  {bar}"


def _bar(share: float) -> str:
    """Return a picture of -1..1 around a middle column."""
    half = BAR // 2
    length = round(abs(share) * half)
    left = ("#" * length).rjust(half) if share < 0 else " " * half
    right = ("#" * length).ljust(half) if share > 0 else " " * half
    return f"{left}|{right}".rstrip()
