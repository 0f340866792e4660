"""Policies that consider observed latencies: latency and its variants, bcachefs, dm's historical service time, SED."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence

from iodelta.errors import RequestError
from iodelta.parts.mirrors.mechanism import (
    IN_FLIGHT,
    READS,
    Array,
    Explanation,
    closed_rate,
    duration,
    number,
    percentages,
    ratio,
    serial_rate,
    split_in_flight,
    together,
)
from iodelta.parts.mirrors.shortest_queue import always, shortest

AGE_LIMIT = 10_000
PROBES = 100
EXPLORE_PERMILLE = 10

TURNS = 10_000
"""Number of reads after which the shares of members hardly change."""


def lock_in(given: str, array: Array) -> Explanation:
    limit = number(given, "age_limit", 0, AGE_LIMIT)
    probes = number(given, "probes", 1, PROBES)
    text = f"a member that was once slow is not read for {limit} decisions, then probed {probes} times"
    numbers = {"decisions": float(limit), "probes": float(probes)}
    if array.iops:
        seconds = limit / array.iops
        numbers["seconds"] = seconds
        text += f": at {array.iops:,.0f} decisions a second that is {duration(seconds)}"
    else:
        text += f": {duration(limit / 100)} at 100 a second, {duration(limit / 10_000)} at 10,000; on a quiet array never"
    if array.rates:
        numbers |= _locked(array)
        text += f". {_locked_in(array)}"
    return Explanation(
        "latency lock-in",
        text,
        "age of the other member in read_stats rises to the limit while its ios stand still, then count goes up by one",
        numbers,
    )


def lock_in_for_ever(given: str, array: Array) -> Explanation:
    text = "the mean is over the whole life of the mount: one bad beginning is remembered for ever"
    if array.rates:
        text += f". {_locked_in(array)}"
    numbers = _locked(array) if array.rates else {}
    return Explanation(
        "latency lock-in", text, f"{READS}: one of them is idle", numbers
    )


def _locked(array: Array) -> dict[str, float]:
    return {
        "locked on the quickest": max(array.rates),
        "locked on the slowest": min(array.rates),
        "most at this depth": array.most,
    }


def _locked_in(array: Array) -> str:
    least, most = f"{min(array.rates):,.0f}", f"{max(array.rates):,.0f}"
    rate = most if least == most else f"{least} to {most}"
    return f"Locked in it does {rate}/s, where {together(array)}"


def either(given: str, array: Array) -> Explanation | None:
    """latency-rr on two mirrors."""
    if array.copies != 2:
        return None
    text = "of two mirrors either one or both are within the limit: it behaves as latency or as round-robin, nothing else"
    numbers = {}
    if array.rates:
        percent = number(given, "percent", 0, 125)
        apart = max(array.rates) / min(array.rates)
        numbers = {"rates apart": apart, "limit": percent / 100}
        which = "round-robin" if apart <= percent / 100 else "latency"
        text += f". These members are {apart:.2f}-fold apart, the limit is {percent / 100:.2f}: "
        text += (
            f"mostly {which}"
            if array.flying == 1
            else f"one at a time mostly {which}, at depth now one, now the other"
        )
    return Explanation(
        "two mirrors",
        text,
        "read bytes per member: all on one, or evenly split, in stretches",
        numbers,
    )


def herd(given: str, array: Array) -> Explanation | None:
    if array.flying == 1:
        return None
    return Explanation(
        "herding",
        f"all {array.flying} requests follow the lowest mean, which is old by the time they queue there",
        f"{IN_FLIGHT}: nearly all on one member, and when the means cross on another",
    )


def tournament(weights: Sequence[float]) -> tuple[float, ...]:
    """Return the part of each when each in turn replaces the choice so far with the odds of their weights (bcachefs)."""
    parts = [1.0]
    for at in range(1, len(weights)):
        takes = [weights[at] / (weights[at] + weights[before]) for before in range(at)]
        moved = [part * taken for part, taken in zip(parts, takes, strict=True)]
        parts = [part - gone for part, gone in zip(parts, moved, strict=True)]
        parts.append(sum(moved))
    return tuple(parts)


def inverse(given: str, array: Array) -> Explanation:
    """bcachefs: pairs are drawn one after the other, so with three and more copies the last one is favoured."""
    power = 2 if number(given, "square", 0, 0) else 1
    how = "the square of its latency" if power == 2 else "its latency"
    equal = tournament([1.0] * array.copies)
    numbers = {f"share of equals, rank {rank}": part for rank, part in enumerate(equal)}
    if array.copies == 2:
        text = f"of two copies each is read in inverse proportion to {how}, so the slow one keeps a part that costs"
    else:
        text = (
            f"each copy in turn replaces the choice so far with odds by the inverse of {how}, so the last in the "
            f"extent's list is favoured: equal members are read {percentages(equal)}, not in {array.copies} equal parts"
        )
    if array.flying > 1:
        text += ". A queue lengthens a latency, so the deeper the nearer to the members' rates"
        if power == 1:
            numbers["in flight on the last"] = array.flying / 2
            text += f", with half of the {array.flying} in flight on the last copy whatever its speed"
        if array.rates:
            numbers["most at this depth"] = array.most
            text += f": at most {array.most:,.0f}/s"
    elif array.rates:
        parts = tournament([rate**power for rate in array.rates])
        numbers |= {f"share of rank {rank}": part for rank, part in enumerate(parts)}
        numbers["serial rate"] = serial_rate(parts, array)
        if array.copies == 2:
            text += f": {percentages(parts)}"
        elif percentages(parts) != percentages(equal):
            text += f". Members of these rates are read {percentages(parts)}"
        text += (
            f", one at a time {numbers['serial rate']:,.0f}/s, where {together(array)}"
        )
    confirm = f"{READS}: one at a time their ratio is this one; more in flight brings it nearer to that of the rates"
    return Explanation("weighted lottery", text, confirm, numbers)


def service_times(given: str, array: Array) -> Explanation:
    if array.rates and max(array.rates) <= number(given, "threshold", 1, 0) * min(
        array.rates
    ):
        # Their service times count as equal.
        return shortest(always("rotate"))(given, array)
    if array.flying == 1:
        return stalest(array)
    text = "each member is given work in proportion to its rate, so reads take equally long"
    numbers = {}
    if array.rates:
        queues = split_in_flight(array, array.rates)
        numbers = {"most at this depth": array.most} | queues
        if min(queues.values()) >= 1:
            numbers["sum of all"] = sum(array.rates)
            text += f" and the rates add up: {sum(array.rates):,.0f}/s with these, {ratio(queues.values())} in flight"
        else:
            text += (
                f". {array.flying} in flight leave less than one for the slowest ({ratio(queues.values())}), which is "
                f"read when it is stale: at most {array.most:,.0f}/s"
            )
    else:
        text += ", and the rates add up where that leaves at least one in flight for the slowest"
    confirm = f"{IN_FLIGHT}: in the ratio of what they read"
    return Explanation("service times at depth", text, confirm, numbers)


def stalest(array: Array) -> Explanation:
    text = (
        "with one request at a time all members are idle, and of idle ones the first to become stale is read, which is "
        f"{array.copies} mean service times after its last read: the slow keep a part"
    )
    numbers = {}
    if array.rates:
        parts = _by_staleness(array.rates)
        serial = serial_rate(parts, array)
        numbers = {f"share of rank {rank}": part for rank, part in enumerate(parts)} | {
            "serial rate": serial
        }
        text += f", {percentages(parts)} of the reads. That is {serial:,.0f}/s, where {together(array)}"
    confirm = f"{READS}: the slow one's part, though it is never the best choice"
    return Explanation("staleness at depth 1", text, confirm, numbers)


def _by_staleness(rates: Sequence[float]) -> tuple[float, ...]:
    """Return the part of the reads of each member when, one at a time, the first to become stale is read.

    In whole ns, as the kernel counts; of equals the one taken longest ago.
    """
    service = [round(1e9 / rate) for rate in rates]
    waiting, counts, now = (
        [(0, 0, rank) for rank in range(len(rates))],
        Counter[int](),
        0,
    )
    for _ in range(TURNS):
        rank = heapq.heappop(waiting)[2]
        now += service[rank]
        heapq.heappush(waiting, (now + len(rates) * service[rank], now, rank))
        counts[rank] += 1
    return tuple(counts[rank] / TURNS for rank in range(len(rates)))


def probe_of_stale(given: str, array: Array) -> Explanation:
    text = f"an idle member gets a read when it is stale, {array.copies} of its mean service times after its last one"
    numbers = {}
    if array.rates:
        slowest, *others = sorted(array.rates)
        # Stale, then taken by the next decision, which is not later than the slowest of the others takes, then served.
        least = 1 / ((array.copies + 1) / slowest + 1 / others[0])
        numbers = {
            "seconds until stale": array.copies / min(array.rates),
            "least of the slowest": least,
        }
        text += f", the slowest after {duration(numbers['seconds until stale'])}, which is at least {least:.3g}/s of it"
    text += ". None is locked out, whatever it once did"
    return Explanation(
        "probe of the stale", text, f"{READS}: none stands still", numbers
    )


def expected_delay(given: str, array: Array) -> Explanation:
    """Return the shortest expected delay."""
    if array.flying == 1:
        return _quickest_but(explored(given), array)
    part = explored(given)
    text = (
        "a latency holds the wait in the queue already, and is multiplied by the queue once more: members have in "
        "flight as the square roots of their rates, the quick ones too few"
    )
    numbers = {}
    if array.rates:
        queues = split_in_flight(array, [math.sqrt(rate) for rate in array.rates])
        numbers = {"most at this depth": array.most} | queues
        if min(queues.values()) < 1:
            text += f", as far as {array.flying} in flight go round"
        # The fewest reads are done where the quickest member alone gets all that is not explored.
        least = closed_rate(_explored_parts(part, array), array)
        numbers["least at this depth"] = least
        text += f": {ratio(queues.values())} with these; {least:,.0f} to {array.most:,.0f}/s"
    confirm = f"{IN_FLIGHT}, squared: in the ratio of what they read"
    return Explanation("wait counted twice", text, confirm, numbers)


def _quickest_but(part: float, array: Array) -> Explanation:
    text = f"the lowest recent latency is read, but {100 * part:.3g} % of the reads go anywhere"
    numbers = {}
    if array.rates:
        numbers = {
            "serial rate": serial_rate(_explored_parts(part, array), array),
            "quickest": max(array.rates),
        }
        text += f": {numbers['serial rate']:,.0f}/s, where {together(array)}"
    confirm = f"{READS}: one has nearly all, the others about that part"
    return Explanation("quickest but for exploration", text, confirm, numbers)


def _explored_parts(part: float, array: Array) -> list[float]:
    """Return the part of each member when the quickest gets all that does not go to any member by lot."""
    quickest = array.rates.index(max(array.rates))
    return [
        part / array.copies + (1 - part) * (rank == quickest)
        for rank in range(array.copies)
    ]


def exploration(given: str, array: Array) -> Explanation:
    part = explored(given)
    if not part:
        text = "nothing is explored: a member that once was slow may not be read again, as long as the others are quick"
        return Explanation("exploration", text, f"{READS}: one of them is idle")
    between = array.copies / part
    text = (
        f"a lot sends at least one read in {between:.0f} to each member, on average: one gap in twenty is longer "
        f"than {3 * between:.0f} reads"
    )
    numbers = {"reads between": between}
    if array.iops:
        numbers["seconds"] = between / array.iops
        text += f". That is every {duration(between / array.iops)} at {array.iops:,.0f} a second"
    if array.rates:
        numbers["bound"] = between * min(array.rates)
        if numbers["bound"] < array.most:
            text += f". So the array does at most {numbers['bound']:,.0f}/s, {between:.0f} times the slowest"
            text += ", and at depth the queue is there" if array.flying > 1 else ""
    return Explanation(
        "exploration", text, f"{READS}: none has less than this part", numbers
    )


def explored(given: str) -> float:
    """Return the share of exploring reads, which may go to any member. Raises RequestError."""
    permille = number(given, "explore_permille", 1, EXPLORE_PERMILLE)
    if permille > 1000:
        raise RequestError(
            f"{permille} of 1000 reads", place="explore_permille", remedy="0 to 1000"
        )
    return permille / 1000
