"""What stands behind a verdict, in sentences: bound, estimands, carry-over, stalls, flags, speeds; no layout here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from iodelta.figures import share, two_digits
from iodelta.plural import plural
from iodelta.study.words import duration, inert, interval, percent
from iodelta.verdict import Judgement, Rules, Verdict
from iodelta.verdict.explain import INSIDE, left_open
from iodelta.verdict.explain import not_excluded as leaving_stalls
from iodelta.verdict.model import Carry, Change, Flags

NAMED = 12
"""Stalled trials that are named."""

CANNOT_TELL = 1.0
"""A carry-over of 100 % or more that is not excluded says nothing of what trials leave behind."""

MORE = (
    'more blocks can, or [design] carry-over = "superblocks" keeps it out of the change'
)

DIRECT_SHARE = 0.5
"""Share of a carry-over that is in a change under independent draws, where the two estimates do not tell it."""


def evidence(verdict: Verdict) -> Iterator[str]:
    """Everything a reader may want to check, one sentence each."""
    bound = at_least(verdict)
    if bound:
        yield bound
    yield from _estimates(verdict)
    if verdict.direct is not None:
        yield (
            f"deployed change {_sized(verdict.change)}: what you get by switching; direct change "
            f"{_sized(verdict.direct)}: between neighbouring trials that followed the same variant"
        )
    if verdict.deployed is not None:
        yield _deployed(verdict, interval(verdict.deployed.low, verdict.deployed.high))
    if verdict.carry is not None:
        yield carried(verdict.carry, verdict.typical)
    elif verdict.blocks and verdict.direct is None:
        yield "carry-over: the orders of these blocks do not allow an estimate"
    yield from _stalls(verdict)
    if verdict.flagged:
        without = (
            f"; without them the typical change is {_sized(verdict.unflagged)}"
            if verdict.unflagged
            else ""
        )
        yield (
            f"{verdict.flagged} of {plural(verdict.blocks, 'block')} with a trial that was "
            f"flagged as disturbed{without}"
        )
        yield from (_flagged(flags, verdict) for flags in verdict.flags)
    if verdict.two_speeds:
        yield "the machine runs at two speeds: blocks are compared within a speed"
    if verdict.smallest_p is not None:
        yield f"smallest p that {plural(verdict.blocks, 'block')} can reach: {verdict.smallest_p:.2g}"


def _deployed(verdict: Verdict, reached: str) -> str:
    """What the change may become once the variant's state is reached."""
    variant = inert(verdict.variant)
    if any(finding.rule == "verdict.state-not-reached" for finding in verdict.findings):
        return f"the counted trials had not reached the state of {variant}: deployed, it may be {reached}"
    return (
        f"that {variant} reaches its state later than in its counted trials is not excluded: deployed, it may be "
        f"{reached}; more blocks or uncounted trials narrow this"
    )


def _flagged(flags: Flags, verdict: Verdict) -> str:
    return (
        f"{flags.rule} flagged {flags.variant} of {plural(flags.trials, 'trial')} of {verdict.variant} and {flags.baseline} of "
        f"{flags.trials} of {verdict.baseline} (alike at p = {flags.p:.2g})"
    )


def at_least(verdict: Verdict) -> str:
    """The bound of a change that was called one; empty for other words."""
    least = least_change(verdict)
    if least is None:
        return ""
    return f"a change of at least {share(least)}"


def least_change(verdict: Verdict) -> float | None:
    """The nearer end of a change that was called one, as a share; None for other words."""
    change = verdict.change
    if (
        verdict.word not in ("regression", "improvement")
        or change is None
        or change.low is None
        or change.high is None
    ):
        return None
    return min(abs(change.low), abs(change.high))


def stalls_open(verdict: Verdict, rules: Rules) -> str:
    """Which stalls an improvement does not exclude; empty for other words, and after trials enough."""
    stalls = verdict.stalls
    bound = None if stalls is None else stalls.not_excluded
    return left_open(verdict.word, bound, rules.stalls)


def stalls_not_excluded(verdicts: Iterable[Verdict], rules: Rules) -> Iterator[str]:
    """The largest bound of stalls of each word that stalls to come would make wrong: of "equivalent" always, of an
    improvement where its trials exclude too few."""
    bounds: dict[str, float] = {}
    for verdict in verdicts:
        open_ = verdict.word == "equivalent" or stalls_open(verdict, rules)
        if open_ and verdict.stalls is not None:
            bound = verdict.stalls.not_excluded
            bounds[verdict.word] = max(bound, bounds.get(verdict.word, 0.0))
    words: dict[float, list[str]] = {}
    for word in sorted(bounds):
        words.setdefault(bounds[word], []).append(word)
    for bound, named in words.items():
        yield f"Where it says {' or '.join(named)}, {leaving_stalls(bound)}."


def note(verdict: Verdict, rules: Rules) -> str:
    """What a reader of the word must know at once; empty where the row says it all."""
    if (
        verdict.word == "equivalent"
        or verdict.basis == "total"
        or verdict.is_withheld
        or _says_more(verdict)
    ):
        return inert(verdict.phrase)
    return "; ".join(filter(None, (at_least(verdict), stalls_open(verdict, rules))))


def _says_more(verdict: Verdict) -> bool:
    """Whether the interval of an inconclusive row looks like a verdict: the phrase says what is missing."""
    if verdict.word != "inconclusive" or verdict.change is None:
        return False
    return verdict.change.excludes_zero or verdict.phrase.startswith(INSIDE)


def carried(carry: Carry, typical: Change | None) -> str:
    """The carry-over with its interval, the change without it, and what the interval leaves open."""
    change = carry.change
    text = f"carry-over {_sized(change)}; the typical change without it: {percent(carry.adjusted, 0.005)}"
    most = not_excluded(carry)
    if most is None:
        return text
    if most > CANNOT_TELL:
        return f"the data do not determine the carry-over: {MORE}"
    points = 100 * most * share_of(carry, typical)
    return (
        f"{text}; a carry-over of up to {share(most)} is not excluded: it could account for "
        f"{two_digits(points)} points of this"
    )


def not_excluded(carry: Carry) -> float | None:
    """The largest carry-over, as a share, that its interval leaves open; None where it has no bound."""
    low, high = carry.change.low, carry.change.high
    if low is None or high is None:
        return None
    return max(abs(low), abs(high))


def share_of(carry: Carry, typical: Change | None) -> float:
    """Which share of the carry-over is in the change: that by which the adjusted change differs."""
    ends = (
        carry.change.value,
        carry.adjusted,
        typical.value if typical is not None else -1.0,
    )
    if min(ends) <= -1.0 or abs(carry.change.value) < 1e-9:
        return DIRECT_SHARE
    left, adjusted, seen = map(math.log1p, ends)
    return min(1.0, abs((seen - adjusted) / left))


def first_look(
    verdict: Verdict, judgement: Judgement, cells: Iterable[str], each: float
) -> str:
    """Before the first look: when it will be, and nothing else; empty after it.

    A round holds a block of every cell that is open, so the time counts all of them. ``cells`` are those that were not
    given up, ``each`` are the seconds of a block of one cell.
    """
    if verdict.look is not None or verdict.next_look is None:
        return ""
    to_come = blocks_to_look(verdict.next_look, judgement, cells)
    more, open_ = sum(to_come), len(to_come)
    every, all_ = (f" of each of {open_} cells", " in all") if open_ > 1 else ("", "")
    blocks = plural(verdict.next_look, "block")
    return (
        f"first look after {blocks}{every}, {more} more{all_}, {duration(more * each)}"
    )


def blocks_to_look(look: int, judgement: Judgement, cells: Iterable[str]) -> list[int]:
    """The blocks that each open cell lacks to a look; all of them for a cell that was not measured yet."""
    lacking = []
    for cell in cells:
        own = judgement.of(cell)
        if not own or any(verdict.step == "continue" for verdict in own):
            lacking.append(
                max(0, look - max((verdict.blocks for verdict in own), default=0))
            )
    return lacking


def _estimates(verdict: Verdict) -> Iterator[str]:
    for what, change in (("typical", verdict.typical), ("total", verdict.total)):
        if change is not None:
            rests = (
                "; the verdict rests on this"
                if verdict.basis == what and verdict.total is not None
                else ""
            )
            yield f"{what} change as measured {_sized(change)} at {100 * change.level:.4g} %{rests}"


def _stalls(verdict: Verdict) -> Iterator[str]:
    stalls = verdict.stalls
    if stalls is None:
        return
    for name, numbers in (
        (verdict.variant, stalls.variant),
        (verdict.baseline, stalls.baseline),
    ):
        if numbers:
            more = f" and {len(numbers) - NAMED} more" if len(numbers) > NAMED else ""
            named = ", ".join(map(str, numbers[:NAMED]))
            yield f"{len(numbers)} of {plural(verdict.blocks, 'trial')} of {inert(name)} stalled: number {named}{more}"
    held = f", {stalls.stalled} of which stalled," if stalls.stalled else ""
    yield (
        f"after {plural(stalls.trials, 'trial')} of {inert(verdict.variant)}{held} stalls are not excluded in up to "
        f"{100 * stalls.not_excluded:.0f} % of its trials, if stalls come singly; "
        "the total change includes those that were seen"
    )


def _sized(change: Change | None) -> str:
    if change is None:
        return "-"
    return f"{percent(change.value, 0.005)} ({interval(change.low, change.high)})"
