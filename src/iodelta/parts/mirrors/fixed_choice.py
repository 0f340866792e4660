"""Policies that only consider the reader, the count of reads, or chance: pid, devid, round-robin, random."""

from __future__ import annotations

import math
from collections import Counter

from iodelta.parts.mirrors.mechanism import (
    READS,
    SECTOR,
    Array,
    Explanation,
    alone,
    contig,
    number,
    only,
    percentages,
    size,
    together,
)

SIZES = tuple(4096 << shift for shift in range(11))
"""Block sizes from 4 KiB to 4 MiB that are tried for aliasing."""

APART = (
    "another process that starts in between, and the wrap-around of pids, break the row"
)


def lottery(given: str, array: Array) -> Explanation:
    """Return the mirrors that the pids of the jobs select. fio forks its jobs one after another, so pids are
    consecutive.
    """
    fewest, rest = divmod(array.jobs, array.copies)
    most = fewest + bool(rest)
    independent = float(array.copies) ** (1 - array.jobs)
    numbers = {
        "odds of one mirror for all jobs": float(array.jobs == 1),
        "most jobs on one mirror": float(most),
        "fewest jobs on one mirror": float(fewest),
    }
    if array.jobs == 1:
        text = "the job's reads of a chunk all go to one mirror, decided when the process is forked: "
        text += f"{array.copies} outcomes, equally likely"
    else:
        numbers["odds of one mirror for jobs started apart"] = independent
        text = f"fio forks its jobs in a row, so their pids are consecutive and {_spread(array, fewest, most)}; {APART}"
        text += f". Jobs started apart read from one mirror, all of them, with odds of {100 * independent:.3g} %"
    if array.rates:
        totals = outcomes(array)
        listed = (
            f"{rate:,.0f}/s with {100 * count / array.copies:.3g} %"
            for rate, count in sorted(totals.items())
        )
        in_a_row = " and pids in a row" if array.jobs > 1 else ""
        text += f". With these members{in_a_row}: {', '.join(listed)}"
        numbers |= {"slowest outcome": min(totals), "quickest outcome": max(totals)}
    confirm = "run it again: the rate jumps between these values, and with the pid modulo the copies the mirror changes"
    if array.jobs % array.copies == 0:
        confirm = f"{READS}: no member is idle, in any run"
    return Explanation("pid lottery", text, confirm, numbers)


def _spread(array: Array, fewest: int, most: int) -> str:
    """Return how consecutive pids spread the jobs over the mirrors of a chunk."""
    if fewest == most:
        return f"each mirror of a chunk serves {most} of the {array.jobs} jobs: nothing is left to chance"
    chance = "the first pid decides which"
    if not fewest:
        return f"each of the {array.jobs} jobs reads from a mirror of its own, {array.jobs} of {array.copies}: {chance}"
    return f"each mirror of a chunk serves {fewest} or {most} of the {array.jobs} jobs: {chance}"


def outcomes(array: Array) -> Counter[float]:
    """Rate of a closed loop in which each job stays with its mirror -> number of first pids that lead to it."""
    counts: Counter[float] = Counter()
    for first in range(array.copies):
        mirrors = {(first + job) % array.copies for job in range(array.jobs)}
        counts[round(sum(array.rates[mirror] for mirror in mirrors), 6)] += 1
    return counts


def preferred(given: str, array: Array) -> Explanation:
    devid = number(given, "id", 0, 1)
    if 1 <= devid <= array.copies:
        return alone(
            "preferred member",
            f"every read goes to devid {devid}, at any depth",
            devid - 1,
            array,
        )
    why = f"no copy is on devid {devid}, so every read goes to the first stripe"
    return alone("preferred member", why, 0, array)


def shares(length: int, min_contig: int, copies: int) -> tuple[float, ...]:
    """Return the part of equal reads that each rank of a round-robin gets, exact over one whole period."""
    step, unit = max(length // SECTOR, 1), max(min_contig // SECTOR, 1)
    period = unit * copies // math.gcd(step, unit * copies)
    counts = Counter(read * step // unit % copies for read in range(period))
    return tuple(counts[rank] / period for rank in range(copies))


def never_switching(min_contig: int, copies: int) -> tuple[int, ...]:
    """Return the usual block sizes at which all reads go to the same mirror."""
    return tuple(
        length for length in SIZES if max(shares(length, min_contig, copies)) == 1.0
    )


def aliasing(given: str, array: Array) -> Explanation:
    unit = contig(given)
    parts = shares(array.bio, unit, array.copies)
    run = max(1, unit // array.bio)
    split = percentages(parts)
    stuck = never_switching(unit, array.copies)
    numbers = {f"share of rank {rank}": part for rank, part in enumerate(parts)} | {
        "reads in a row": float(run)
    }
    if max(parts) == 1.0:
        text = f"reads of {size(array.bio)} are a whole number of rounds of {array.copies} x {size(unit)}, "
        text += "so every read goes to the same mirror; only metadata reads in between shift which one"
    elif run > 1:
        text = f"{run} reads in a row go to one mirror before the next has its turn (split {split})"
        if unit % array.bio == 0:
            at_work, words = _at_work(run, array)
            text += words
            numbers |= at_work
    else:
        text = f"reads of {size(array.bio)} are split {split} by devid"
    if stuck:
        text += f". With min_contig {size(unit)} these sizes never switch: {', '.join(map(size, stuck))}"
    return Explanation(
        "round-robin aliasing",
        text,
        "read bytes per member in /sys/block/DEVICE/stat, before and after: their ratio is the split",
        numbers,
    )


def _at_work(run: int, array: Array) -> tuple[dict[str, float], str]:
    """Return how many members work at a time when each gets ``run`` reads in a row, for members of one speed.

    What is queued on the last member is worked off while the next one has its turn. With n in flight two work for n - 1
    of the ``run`` reads of a turn, so a turn takes run - n + 1 service times: run / (run - n + 1) members work. Beyond
    run / 2 + 1 in flight a third has something left, and all have from run x (copies - 1) / 2 + 1 on.
    """
    flying, whole = array.flying, run * (array.copies - 1) // 2 + 1
    numbers = {"in flight for all members": float(whole)}
    if flying == 1:
        return numbers | {
            "members at work": 1.0
        }, "; with one in flight, one mirror works at a time"
    if flying <= run // 2 + 1:
        numbers["members at work"] = min(float(array.copies), run / (run - flying + 1))
        text = f"; with {flying} in flight {numbers['members at work']:.3g} of {array.copies} members of one speed work "
        return numbers, f"{text}at a time, and all of them from about {whole} in flight"
    if flying < whole:
        text = f"; with {flying} in flight at least 2 of {array.copies} members of one speed work at a time"
        return numbers, f"{text}, all from about {whole}"
    return (
        numbers,
        f"; with {flying} in flight all members have work all the time, if their speeds are equal",
    )


def aliasing_within_limit(given: str, array: Array) -> Explanation:
    """Of latency-rr: only while all members are within the limit."""
    explanation = aliasing(only(given, "min_contig"), array)
    text = f"while all members are within the limit: {explanation.prediction}"
    return Explanation(
        explanation.mechanism, text, explanation.confirm, explanation.numbers
    )


def convoy_of_turns(given: str, array: Array) -> Explanation | None:
    parts = shares(array.bio, contig(given), array.copies)
    if max(parts) - min(parts) < 0.01:
        return convoy(given, array)
    return None


def convoy(given: str, array: Array) -> Explanation:
    """Every member gets the same part, regardless of its speed."""
    if array.flying == 1:
        return _one_after_another(array)
    bound = f"{array.copies} x the slowest member"
    numbers = {}
    if array.rates:
        # Not above the second: no read takes less than its service time, so by Little's law n / mean service time.
        least = min(array.copies * min(array.rates), array.flying * array.even)
        numbers = {"bound": least, "most at this depth": array.most}
        bound += (
            f", with {array.flying} in flight {least:,.0f}/s, where {together(array)}"
        )
    return Explanation(
        "convoy",
        f"every member gets the same part, so all wait for the slowest: at most {bound}",
        "the slowest member is mostly busy (util in /sys/block/DEVICE/stat), the others idle for part of the time",
        numbers,
    )


def _one_after_another(array: Array) -> Explanation:
    text = "every member gets the same part and one read is in flight at a time, so a read takes the members' mean time"
    numbers = {}
    if array.rates:
        numbers = {"serial rate": array.even, "most at this depth": array.most}
        text += f": {array.even:,.0f}/s, where {together(array)}"
    return Explanation(
        "even parts at depth 1", text, f"{READS}: all grow alike", numbers
    )
