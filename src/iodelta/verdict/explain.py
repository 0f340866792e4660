"""Explain: what a verdict says in words, which rule made it, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from iodelta.trial import Finding
from iodelta.verdict.model import Change, Look, Needed, Word


def percent(change: float | None) -> str:
    """``-2.03 %``; digits enough to tell it from 0; ``unbounded`` for None."""
    if change is None:
        return "unbounded"
    size = abs(100.0 * change)
    return f"{100.0 * change:+.{1 if size >= 10 else 2 if size >= 0.1 or size == 0 else 3}f} %"


def interval(change: Change) -> str:
    """``[-2.9 %, -1.1 %] at 98.7 %``."""
    return f"[{percent(change.low)}, {percent(change.high)}] at {100.0 * change.level:.4g} %"


def phrase_of(word: Word, low: float, high: float, margin: float) -> str:
    """The finer statement behind a word, from the bounds of theta (positive = worse) and the margin as log-ratio."""
    if word == "regression":
        return "regressed by at least the margin" if low > margin else "regressed"
    if word == "improvement":
        return "improved by at least the margin" if high < -margin else "improved"
    if word == "equivalent":
        if low > 0:
            return "worse, but by less than the margin: real but below the margin"
        if high < 0:
            return "better, but by less than the margin: real but below the margin"
        return "equivalent within the margin"
    if high < margin:
        return "not regressed; an improvement is not excluded"
    if low > -margin:
        return "not improved; a regression is not excluded"
    return "neither a change nor equivalence is shown"


def rule_of(word: Word, change: Change, margin: float, look: Look, looks: int, unit: str) -> str:
    """The rule that fired, with its numbers."""
    where = f"at look {look.index + 1} of {looks} ({look.blocks} {unit}{'' if look.planned else ', unplanned end'})"
    bounds = interval(change)
    limit = f"{100.0 * margin:.3g} %"
    if word == "equivalent":
        return f"the interval {bounds} lies within the margin of {limit} both ways, {where}"
    if word in ("regression", "improvement"):
        side = "worse" if word == "regression" else "better"
        return f"the interval {bounds} lies wholly on the {side} side of 0 and reaches the margin of {limit}, {where}"
    return f"the interval {bounds} settles neither 0 nor the margin of {limit}, {where}"


def would_change(
    word: Word, change: Change | None, margin: float, needed: Needed | None, findings: Sequence[Finding]
) -> str:
    """What would have to be different for another word."""
    hard = next((finding for finding in findings if finding.severity == "hard"), None)
    if hard is not None:
        return hard.remedy
    low = -math.inf if change is None or change.low is None else change.low
    high = math.inf if change is None or change.high is None else change.high
    if word in ("regression", "improvement"):
        nearest, farthest = (low, high) if abs(low) < abs(high) else (high, low)
        return (
            f"an interval that reaches 0 (its nearer end is {percent(nearest)}) "
            f"or stays within the margin (its farther end is {percent(farthest)})"
        )
    if word == "equivalent":
        return f"a margin tighter than {100.0 * max(-low, high):.2g} %"
    if needed is None:
        return "more blocks"
    return f"about {needed.blocks} blocks in all (20-80 % range {needed.low} to {needed.high}) at this spread"
