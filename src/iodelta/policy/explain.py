"""Why a read policy will do what it does on an array, in numbers, and what one would see if that is so.

Nothing is measured or simulated here: each mechanism follows from the policy's rule (see the catalogue for sources).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

import msgspec

from iodelta.errors import RequestError
from iodelta.experiment.values import size_bytes

SECTOR = 4096
"""btrfs counts what was read in sectors of 4 KiB."""

MIN_CONTIG = 256 * 1024
AGE_LIMIT = 10_000
PROBES = 100
STRIPE = 64 * 1024
"""btrfs cuts reads of raid10 at this length."""

SIZES = tuple(4096 << shift for shift in range(11))
"""Block sizes from 4 KiB to 4 MiB that are tried for aliasing."""

OUTCOMES = 4096
"""Draws of the pid lottery are counted one by one up to here."""


class Array(msgspec.Struct, frozen=True, kw_only=True):
    """An array and what is asked of it. ``rates``: what each member alone does, I/Os per second; empty if unknown."""

    copies: int = 2
    """Members that hold the same bytes."""
    rates: tuple[float, ...] = ()
    """What each member alone does, I/Os per second; empty if unknown."""
    length: int = 4096
    """Bytes of one read."""
    iodepth: int = 1
    jobs: int = 1
    raid10: bool = False
    """Whether it is striped, so that a policy sees no read longer than a stripe."""
    iops: float | None = None
    """What the array does, decisions per second; None when unknown."""

    @property
    def bio(self) -> int:
        """Bytes of one read as the policy sees it."""
        return min(self.length, STRIPE) if self.raid10 else self.length


class Explanation(msgspec.Struct, frozen=True):
    """One mechanism: what will happen, the numbers behind it, and the observation that would confirm it."""

    mechanism: str
    """Its name."""
    prediction: str
    """What will happen."""
    confirm: str
    """Observation that would confirm it."""
    numbers: dict[str, float] = {}
    """Numbers behind it, by name; empty without any."""


def explain(policy: str, array: Array) -> tuple[Explanation, ...]:
    """Every mechanism that decides what ``policy`` (``round-robin:192k``) does on ``array``. Raises RequestError."""
    name, _, given = policy.partition(":")
    if name not in _MECHANISMS:
        known = ", ".join(sorted(_MECHANISMS))
        raise RequestError(f"nothing to explain about {name!r}", place="read policy", remedy=f"explained are {known}")
    if array.copies < 2:
        raise RequestError("with one copy there is nothing to choose", place="copies", remedy="2 or more")
    if array.rates and len(array.rates) != array.copies:
        raise RequestError(
            f"{len(array.rates)} rates for {array.copies} copies", place="member", remedy="one rate for each copy"
        )
    return tuple(found for mechanism in _MECHANISMS[name] if (found := mechanism(given, array)) is not None)


def shares(length: int, min_contig: int, copies: int) -> tuple[float, ...]:
    """The part of equal reads that each rank of a round-robin gets, exact over one whole period."""
    step, unit = max(length // SECTOR, 1), max(min_contig // SECTOR, 1)
    period = unit * copies // math.gcd(step, unit * copies)
    counts = Counter(number * step // unit % copies for number in range(period))
    return tuple(counts[rank] / period for rank in range(copies))


def never_switching(min_contig: int, copies: int) -> tuple[int, ...]:
    """Of the usual block sizes those of which every read goes to one and the same mirror."""
    return tuple(size for size in SIZES if max(shares(size, min_contig, copies)) == 1.0)


def _aliasing(given: str, array: Array) -> Explanation:
    unit = _contig(given)
    parts = shares(array.bio, unit, array.copies)
    run = max(1, unit // array.bio)
    split = " : ".join(f"{100 * part:.3g} %" for part in parts)
    stuck = never_switching(unit, array.copies)
    if max(parts) == 1.0:
        text = f"reads of {_size(array.bio)} are a whole number of rounds of {array.copies} x {_size(unit)}, "
        text += "so every read goes to the same mirror; only metadata reads in between shift which one"
    elif run > 1:
        text = f"{run} reads in a row go to one mirror before the next has its turn (split {split})"
        if array.iodepth * array.jobs <= run:
            text += f"; at most {array.iodepth * array.jobs} are in flight, so mostly one mirror works at a time"
    else:
        text = f"reads of {_size(array.bio)} are split {split} by devid"
    if stuck:
        text += f". With min_contig {_size(unit)} these sizes never switch: {', '.join(map(_size, stuck))}"
    return Explanation(
        "round-robin aliasing",
        text,
        "read bytes per member in /sys/block/DEVICE/stat, before and after: their ratio is the split",
        {f"share of rank {rank}": part for rank, part in enumerate(parts)} | {"reads in a row": float(run)},
    )


def _lottery(given: str, array: Array) -> Explanation:
    same = float(array.copies) ** (1 - array.jobs)
    who = "the job's reads of a chunk all go" if array.jobs == 1 else f"all {array.jobs} jobs read from the same mirror"
    if array.jobs == 1:
        text = f"{who} to one mirror, decided when the process is forked: {array.copies} outcomes, equally likely"
    else:
        text = f"{who} with odds of {100 * same:.3g} % in a chunk, decided when they are forked"
    numbers = {"odds of one mirror for all jobs": same}
    if array.rates and array.copies**array.jobs <= OUTCOMES:
        totals = Counter(
            round(_served(Counter(draw), array), 6) for draw in product(range(array.copies), repeat=array.jobs)
        )
        draws = array.copies**array.jobs
        listed = (f"{rate:.0f}/s with {100 * count / draws:.3g} %" for rate, count in sorted(totals.items()))
        text += f". With these members: {', '.join(listed)}"
        numbers |= {"slowest outcome": min(totals), "quickest outcome": max(totals)}
    return Explanation(
        "pid lottery",
        text,
        "run it again: the rate jumps between these values, and with the pid modulo the copies the mirror changes",
        numbers,
    )


def _served(jobs_on: Counter[int], array: Array) -> float:
    """A closed loop in which each job stays with its mirror; jobs on one mirror share its rate."""
    return sum(array.rates[mirror] for mirror in jobs_on)


def _lock_in(given: str, array: Array) -> Explanation:
    limit = _number(given, "age_limit", 0, AGE_LIMIT)
    probes = _number(given, "probes", 1, PROBES)
    text = f"a member that was once slow is not read for {limit} decisions, then probed {probes} times"
    numbers = {"decisions": float(limit), "probes": float(probes)}
    if array.iops:
        seconds = limit / array.iops
        numbers["seconds"] = seconds
        text += f": at {array.iops:.0f} decisions a second that is {_time(seconds)}"
    else:
        text += f": {_time(limit / 100)} at 100 a second, {_time(limit / 10_000)} at 10 000; on a quiet array never"
    if array.rates:
        best, worst = max(array.rates), min(array.rates)
        numbers |= {"locked on the quickest": best, "locked on the slowest": worst}
        text += f". Locked in it does {worst:.0f} to {best:.0f}/s, and {sum(array.rates):.0f}/s were there to be had"
    return Explanation(
        "latency lock-in",
        text,
        "age of the other member in read_stats rises to the limit while its ios stand still, then count goes up by one",
        numbers,
    )


def _lock_in_for_ever(given: str, array: Array) -> Explanation:
    text = "the mean is over the whole life of the mount: one bad beginning is remembered for ever"
    if array.rates:
        text += f"; locked in it does {min(array.rates):.0f} to {max(array.rates):.0f}/s of {sum(array.rates):.0f}/s"
    return Explanation("latency lock-in", text, "reads per member in /sys/block/DEVICE/stat: one of them stands still")


def _either(given: str, array: Array) -> Explanation | None:
    if array.copies != 2:
        return None
    text = (
        "of two mirrors either one or both are within the limit: it behaves as latency or as round-robin, nothing else"
    )
    numbers = {}
    if array.rates:
        percent = _number(given, "percent", 0, 125)
        apart = max(array.rates) / min(array.rates)
        numbers = {"rates apart": apart, "limit": percent / 100}
        which = "round-robin" if apart <= percent / 100 else "latency"
        text += f". These members are {apart:.2f}-fold apart, the limit is {percent / 100:.2f}: mostly {which}"
    return Explanation("two mirrors", text, "read bytes per member: all on one, or evenly split, in stretches", numbers)


def _convoy_of_turns(given: str, array: Array) -> Explanation | None:
    parts = shares(array.bio, _contig(given), array.copies)
    return _convoy(given, array) if max(parts) - min(parts) < 0.01 else None


def _convoy(given: str, array: Array) -> Explanation:
    bound = f"{array.copies} x the slowest member"
    numbers = {}
    if array.rates:
        numbers = {"bound": array.copies * min(array.rates), "sum of all": sum(array.rates)}
        bound += f" = {numbers['bound']:.0f}/s, where the members together do {numbers['sum of all']:.0f}/s"
    return Explanation(
        "convoy",
        f"every member gets the same part, so all wait for the slowest: at most {bound}",
        "the slowest member is always busy (util in /sys/block/DEVICE/stat), the others idle for part of the time",
        numbers,
    )


def _blind(given: str, array: Array) -> Explanation:
    flying = array.iodepth * array.jobs
    if flying > 1:
        numbers = {"sum of all": sum(array.rates)} if array.rates else {}
        most = f": at most {sum(array.rates):.0f}/s with these" if array.rates else ""
        text = f"with {flying} in flight the shortest queue is where there is room, so the members' rates add up{most}"
        confirm = "in flight per member (/sys/block/DEVICE/inflight): nearly equal, while the reads are not"
        return Explanation("shortest queue at depth", text, confirm, numbers)
    text = (
        "with one request at a time nothing is in flight when it looks: all queues are empty, and the tie-break decides"
    )
    numbers = {}
    if array.rates:
        even = array.copies / sum(1 / rate for rate in array.rates)
        numbers = {"evenly": even, "quickest": max(array.rates)}
        text += f". Taking turns gives {even:.0f}/s, the quickest member alone {max(array.rates):.0f}/s"
    return Explanation(
        "blindness at depth 1",
        text,
        "the same rate as a policy that chooses at random; it moves only when something else keeps a member busy",
        numbers,
    )


def _herd(given: str, array: Array) -> Explanation | None:
    if array.iodepth * array.jobs == 1:
        return None
    return Explanation(
        "herding",
        f"all {array.iodepth * array.jobs} requests follow the lowest mean, which is old by the time they queue there",
        "in flight per member swings between none and all of them",
    )


def _inverse(given: str, array: Array) -> Explanation:
    text = "each member is read in inverse proportion to its latency, so the slow one keeps a part that costs"
    numbers = {}
    if array.rates:
        parts = tuple(rate / sum(array.rates) for rate in array.rates)
        serial = 1 / sum(part / rate for part, rate in zip(parts, array.rates, strict=True))
        numbers = {"serial rate": serial}
        text += f": {' : '.join(f'{100 * part:.3g} %' for part in parts)}, and one at a time {serial:.0f}/s"
    return Explanation("weighted lottery", text, "read counts per member: their ratio is that of the rates", numbers)


Mechanism = Callable[[str, Array], Explanation | None]
_MECHANISMS: dict[str, Sequence[Mechanism]] = {
    "pid": (_lottery,),
    "round-robin": (_aliasing, _convoy_of_turns),
    "jain-latency": (_lock_in_for_ever, _herd),
    "latency": (_lock_in, _herd),
    "latency-rr": (_lock_in, _either, lambda given, array: _aliasing(_only(given, "min_contig"), array)),
    "queue": (_blind,),
    "queue-reads": (_blind,),
    "queue-adaptive": (_blind,),
    "queue-length": (_blind,),
    "md-raid1": (_blind,),
    "hysteresis": (_lottery,),
    "bcachefs": (_inverse,),
    "random": (_convoy,),
}


def _only(given: str, key: str) -> str:
    return next((part for part in given.split(",") if part.startswith(f"{key}=")), "")


def _contig(given: str) -> int:
    text = given.partition("=")[2] or given
    try:
        found = size_bytes(text) if text else MIN_CONTIG
    except ValueError as error:
        raise RequestError(str(error), place="min_contig") from error
    if found < SECTOR or found % SECTOR:
        raise RequestError(f"{found} is not a multiple of the sector of {SECTOR}", place="min_contig")
    return found


def _number(given: str, key: str, position: int, default: int) -> int:
    """A parameter by name, or a bare value in first place."""
    for part in given.split(","):
        name, equals, value = part.partition("=")
        if (equals and name == key) or (not equals and part and position == 0):
            if not (value or part).isdecimal():
                raise RequestError(f"{value or part!r} is not a number", place=key)
            return int(value or part)
    return default


def _size(length: int) -> str:
    return f"{length >> 20} MiB" if length % (1 << 20) == 0 else f"{length / 1024:g} KiB"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
