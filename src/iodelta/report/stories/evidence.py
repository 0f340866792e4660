"""What stands behind a verdict, in sentences: bound, estimands, carry-over, stalls, flags, speeds; no layout here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from iodelta.figures import share, two_digits
from iodelta.plural import listed, plural
from iodelta.study.words import duration, inert, interval, measured, percent
from iodelta.verdict import Judgement, Rules, Verdict
from iodelta.verdict.explain import INSIDE, left_open
from iodelta.verdict.explain import not_excluded as leaving_stalls
from iodelta.verdict.model import Carry, Change, Flags

NAMED = 12
"""Stalled trials that are named."""

CANNOT_TELL = "too few blocks to tell whether one run slows the next"

EQUAL = 0.15
"""The rest of a run counts as equal if it changed by at most this share of what a stretch did."""

MORE = (
    'more blocks can, or [design] carry-over = "superblocks" keeps it out of the change'
)

DIRECT_SHARE = 0.5
"""The share of a carry-over that enters a change if orders are drawn independently; assumed where the two estimates
do not give it."""


class Block(NamedTuple):
    """One block of a comparison."""

    number: int
    """From 0."""
    change: float
    """Relative; without a meaning where a trial was idle."""
    baseline_first: bool
    idle: tuple[int, ...]
    """Numbers of its trials in which no I/O completed."""


def evidence(verdict: Verdict) -> Iterator[str]:
    """Everything a reader may want to check, one sentence each."""
    yield from _estimates(verdict)
    if verdict.apart:
        yield f"the change is not the ratio of the two {verdict.central}s: {verdict.apart}"
    if verdict.corrected is not None:
        yield (
            f"corrected for stopping at a look, the typical change is {percent(verdict.corrected, 0.005)} "
            "(median-unbiased)"
        )
    if verdict.course is not None:
        yield course_says(verdict)
    if verdict.direct is not None:
        yield (
            f"deployed change {_sized(verdict.deployed or verdict.typical)}: what you get by switching; direct change "
            f"{_sized(verdict.direct)}: between neighbouring trials that followed the same variant"
        )
    if verdict.deployed is not None:
        yield _deployed(verdict, verdict.deployed)
    if verdict.carry is not None:
        yield carried(verdict.carry, verdict.typical)
    elif verdict.blocks and verdict.direct is None:
        yield "carry-over: the orders of these blocks do not allow an estimate"
    yield from _stalls(verdict)
    yield from _flagged(verdict)
    if verdict.two_speeds:
        yield "the machine runs at two speeds: blocks are compared within a speed"
    if verdict.smallest_p is not None:
        yield f"smallest p that {plural(verdict.blocks, 'block')} can reach: {verdict.smallest_p:.2g}"


def _deployed(verdict: Verdict, deployed: Change) -> str:
    """Return what the change may become once the variant has reached its state."""
    variant = inert(verdict.variant)
    reached = interval(deployed.low, deployed.high)
    if any(finding.rule == "verdict.state-not-reached" for finding in verdict.findings):
        return f"the counted trials had not reached the state of {variant}: deployed, it may be {reached}"
    return (
        f"that {variant} reaches its state later than in its counted trials is not excluded: deployed, it may be "
        f"{reached}; more blocks or uncounted trials narrow this"
    )


def _flagged(verdict: Verdict) -> Iterator[str]:
    """Yield how many blocks have a flagged trial, the change without them, and every flag by itself."""
    if not verdict.flagged:
        return
    text = f"{verdict.flagged} of {plural(verdict.blocks, 'block')} with a trial that was flagged as disturbed"
    if verdict.unflagged:
        text += f"; without them the typical change is {_sized(verdict.unflagged)}"
    yield text
    yield from (_flags(flags, verdict) for flags in verdict.flags)


def _flags(flags: Flags, verdict: Verdict) -> str:
    differs = "not a difference" if flags.p >= 0.05 else "a difference"
    return (
        f"{flags.rule}: {flags.variant} {verdict.variant} runs, {flags.baseline} {verdict.baseline} runs of "
        f"{flags.trials} each; {differs} (p = {flags.p:.2g})"
    )


def blocks_of(verdict: Verdict) -> Iterator[Block]:
    """Yield every block that was judged, in the order of the run."""
    idle = verdict.idle or ((),) * len(verdict.changes)
    yield from map(
        Block,
        verdict.block_numbers,
        verdict.changes,
        verdict.baseline_first,
        idle,
    )


def apart(verdict: Verdict, printed: str = "") -> str:
    """Return why the change, ``printed`` or as a table has it, is not the ratio of the two values by more than
    rounding; empty where it is. A total says so in any case."""
    change, old, new = verdict.change, verdict.baseline_value, verdict.variant_value
    if change is None or not verdict.apart or not old or new is None:
        return "total" * (change is not None and verdict.estimand == "total")
    text = printed or measured(change.value, change.low, change.high)
    number = re.fullmatch(r"([+-]?\d+(?:\.(\d+))?) %", text)
    if number is None:
        return verdict.apart
    half = 0.005 * 10.0 ** -len(number[2] or "")
    rounding = 2e-4 * new / old
    away = abs(new / old - 1.0 - float(number[1]) / 100.0)
    return verdict.apart * (away > half + rounding)


def too_thin(verdict: Verdict) -> str:
    """``too few I/Os for p99`` where its percentile cannot be read; empty elsewhere."""
    thin = any(finding.rule == "verdict.tail-too-thin" for finding in verdict.findings)
    return f"too few I/Os for {verdict.metric.name.rpartition('.')[2]}" * thin


def course_says(verdict: Verdict) -> str:
    """Where a change begins or ends: ``slower from block 15 on (at 14:32): -21 %; equal before``."""
    course = verdict.course
    if course is None:
        return ""
    change, rest = course.inside, course.outside
    first, last = course.first, course.last
    starts, ends = course.starts, course.ends
    numbers = verdict.block_numbers
    # Of a beginning and an end, either may be the part that changed.
    if abs(rest) > abs(change) and starts != ends:
        change, rest = rest, change
        if starts:
            first, last = numbers[numbers.index(last) + 1], numbers[-1]
        else:
            first, last = numbers[0], numbers[numbers.index(first) - 1]
        starts, ends = ends, starts
    worse = (change < 0.0) == (verdict.metric.better == "higher")
    at = ""
    if course.since is not None:
        at = f" ({'until' if starts else 'at'} {datetime.fromtimestamp(course.since, UTC):%H:%M} UTC)"
    if starts:
        where, other = f"only in the first {plural(last - first + 1, 'block')}", "after"
    elif ends:
        where, other = f"from block {first + 1} on", "before"
    else:
        where, other = f"in blocks {first + 1} to {last + 1}", "elsewhere"
    left = "equal" if abs(rest) <= EQUAL * abs(change) else percent(rest, 0.005)
    return f"{'slower' if worse else 'faster'} {where}{at}: {percent(change, 0.005)}; {left} {other}"


def stalls_open(verdict: Verdict, rules: Rules) -> str:
    """Return the stalls that an improvement does not exclude; empty for other words, and after enough trials."""
    return left_open(verdict.word, verdict.stalls, rules.stalls)


def stalls_not_excluded(verdicts: Iterable[Verdict], rules: Rules) -> Iterator[str]:
    """For each word that later stalls would make wrong, the largest share of stalls that its trials do not exclude:
    of "equivalent" always, of an improvement where its trials exclude too few."""
    bounds: dict[str, tuple[float, int]] = {}
    for verdict in verdicts:
        if verdict.stalls is None:
            continue
        if verdict.word == "equivalent" or stalls_open(verdict, rules):
            bound = verdict.stalls.not_excluded, verdict.stalls.longest
            bounds[verdict.word] = max(bound, bounds.get(verdict.word, (0.0, 0)))
    words: dict[tuple[float, int], list[str]] = {}
    for word in sorted(bounds):
        words.setdefault(bounds[word], []).append(word)
    for open_, alike in words.items():
        yield f"Where it says {' or '.join(alike)}, {leaving_stalls(*open_)}."


def note(verdict: Verdict, rules: Rules) -> str:
    """Return what a reader of the word must know at once; empty where the row says it all."""
    says = stalls_open(verdict, rules)
    if (
        verdict.word == "equivalent"
        or verdict.basis == "total"
        or verdict.is_withheld
        or _says_more(verdict)
    ):
        says = inert(verdict.phrase)
    parts = (apart(verdict), too_thin(verdict), course_says(verdict), says)
    return "; ".join(filter(None, parts))


def _says_more(verdict: Verdict) -> bool:
    """Return whether the interval of an inconclusive row looks like a verdict: then the phrase says what is missing."""
    if verdict.word != "inconclusive" or verdict.change is None:
        return False
    return verdict.change.excludes_zero or verdict.phrase.startswith(INSIDE)


def carried(carry: Carry, typical: Change | None) -> str:
    """Return the carry-over with its interval, the change without it, and what the interval leaves open."""
    change = carry.change
    most = not_excluded(carry)
    part = None if most is None else most * share_of(carry, typical)
    # A bound larger than the change says nothing about it.
    if part is None or typical is None or part >= abs(typical.value):
        return f"carry-over: {CANNOT_TELL}; {MORE}"
    return (
        f"carry-over {_sized(change)}; the typical change without it: {percent(carry.adjusted, 0.005)}; up to "
        f"{share(most or 0.0)} is not excluded: {two_digits(100 * part)} points of this"
    )


def not_excluded(carry: Carry) -> float | None:
    """Return the largest carry-over, as a share, that its interval leaves open; None where it has no bound."""
    low, high = carry.change.low, carry.change.high
    if low is None or high is None:
        return None
    return max(abs(low), abs(high))


def share_of(carry: Carry, typical: Change | None) -> float:
    """Return the share of the carry-over that is in the change: the adjusted change differs from the typical one by it."""
    if typical is None:
        return DIRECT_SHARE
    ends = (carry.change.value, carry.adjusted, typical.value)
    if min(ends) <= -1.0 or abs(carry.change.value) < 1e-9:
        return DIRECT_SHARE
    left, adjusted, seen = map(math.log1p, ends)
    return min(1.0, abs((seen - adjusted) / left))


def first_look(
    verdict: Verdict, judgement: Judgement, cells: Iterable[str], each: float
) -> str:
    """When the first look will be; empty after it.

    A round holds a block of every open cell, so the time counts all of them. ``cells`` are those that were not
    given up, ``each`` is the duration of a block of one cell in seconds.
    """
    if verdict.look is not None or verdict.next_look is None:
        return ""
    to_come = blocks_to_look(verdict.next_look, judgement, cells)
    more, open_ = sum(to_come), len(to_come)
    look = f"first look after {plural(verdict.next_look, 'block')}"
    if open_ <= 1:
        return f"{look}, {more} more, {duration(more * each)}"
    return (
        f"{look} of each of {open_} cells, {more} more in all, {duration(more * each)}"
    )


def blocks_to_look(look: int, judgement: Judgement, cells: Iterable[str]) -> list[int]:
    """Return how many blocks each open cell still needs for a look; all of them for a cell that was not measured yet."""
    missing = []
    for cell in cells:
        verdicts = judgement.of(cell)
        done = max((verdict.blocks for verdict in verdicts), default=0)
        if not verdicts or any(verdict.step == "continue" for verdict in verdicts):
            missing.append(max(0, look - done))
    return missing


def _estimates(verdict: Verdict) -> Iterator[str]:
    for what, change in (("typical", verdict.typical), ("total", verdict.total)):
        if change is None:
            continue
        text = (
            f"{what} change as measured {_sized(change)} at {100 * change.level:.4g} %"
        )
        if verdict.basis == what and verdict.total is not None:
            text += "; the verdict rests on this"
        yield text


def _stalls(verdict: Verdict) -> Iterator[str]:
    stalls = verdict.stalls
    if stalls is None:
        return
    yield from _stalled(verdict, verdict.variant, stalls.variant)
    yield from _stalled(verdict, verdict.baseline, stalls.baseline)
    held = f", {stalls.stalled} of which stalled," if stalls.stalled else ""
    yield (
        f"after {plural(stalls.trials, 'trial')} of {inert(verdict.variant)}{held} stalls are not excluded in up to "
        f"{100 * stalls.not_excluded:.0f} % of its trials, if stalls come singly; "
        "the total change includes those that were seen"
    )


def _stalled(verdict: Verdict, name: str, trials: Sequence[int]) -> Iterator[str]:
    """Yield which trials of one side stalled, by their numbers."""
    if trials:
        numbers = listed(list(map(str, trials)), NAMED)
        yield f"{len(trials)} of {plural(verdict.blocks, 'trial')} of {inert(name)} stalled: number {numbers}"


def _sized(change: Change | None) -> str:
    if change is None:
        return "-"
    return f"{percent(change.value, 0.005)} ({interval(change.low, change.high)})"


LOPSIDED = 3.0
"""An end that is so many times farther away than the other one is shown by saying which way the change goes."""


class Interval(NamedTuple):
    """A relative change of a metric and its interval; an end that is not known is None or infinite."""

    metric: str
    """What a reader calls it."""
    better: str
    """``higher`` or ``lower``."""
    value: float
    low: float | None
    high: float | None


class Smallest(NamedTuple):
    """The smallest change that could be seen, relative, and which way: ``worse``, ``better`` or either (empty)."""

    size: float
    way: str


def smallest(bounds: Interval) -> Smallest | None:
    """Return what one interval could show; None where it has no end, or no width."""
    down = _distance(bounds.value, bounds.low)
    up = _distance(bounds.value, bounds.high)
    near, far = sorted((down, up))
    if not 0.0 < near < math.inf:
        return None
    size = math.expm1(near)
    if far <= LOPSIDED * near:
        return Smallest(size, "")
    # A decrease has to bring the upper end below 0.
    shows_decreases = up == near
    if shows_decreases == (bounds.better == "higher"):
        return Smallest(size, "worse")
    return Smallest(size, "better")


def _distance(value: float, end: float | None) -> float:
    """From the estimate to an end, as a log-ratio."""
    if end is None or not math.isfinite(end) or min(value, end) <= -1.0:
        return math.inf
    return abs(math.log1p(end) - math.log1p(value))


def visible(intervals: Iterable[Interval]) -> str:
    """Return the smallest changes by metric, from the best cell to the worst: ``IOPS 0.6 to 12 %; p99 latency 4.0 %
    for the worse``. Empty where no interval could show any."""
    by_metric: dict[str, list[Smallest]] = {}
    for bounds in intervals:
        least = smallest(bounds)
        if least is not None:
            by_metric.setdefault(bounds.metric, []).append(least)
    return "; ".join(_of_metric(name, least) for name, least in by_metric.items())


def _of_metric(name: str, changes: Sequence[Smallest]) -> str:
    said = f"{name} {sizes(change.size for change in changes)}"
    ways = {change.way for change in changes} - {""}
    if not ways:
        return said
    if len(ways) > 1:
        return f"{said} one way"
    return f"{said} for the {ways.pop()}"


def sizes(values: Iterable[float]) -> str:
    """Return the least and the largest of some changes: ``0.6 to 12 %``."""
    return f"{' to '.join(dict.fromkeys(_percents(values)))} %"


def _percents(values: Iterable[float]) -> Iterator[str]:
    ordered = sorted(values)
    for size in (ordered[0], ordered[-1]):
        yield f"{100 * size:.0f}" if size >= 0.1 else f"{100 * size:.1f}"
