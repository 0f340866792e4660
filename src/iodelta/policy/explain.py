"""Why a read policy will do what it does on an array, in numbers, and what one would see if that is so.

Nothing is measured or simulated here: each mechanism follows from the policy's rule (see the catalogue for sources).
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
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

ZFS_TIE = 2 * 1024 * 1024
"""Equally loaded members of a ZFS mirror take turns by the offset in this unit."""

ROTATING = 8
FLASH = 2
"""Margins of the hysteresis."""

ROTATING_SEEK = 5
FLASH_SEEK = 1
EXPLORE_PERMILLE = 10

SIZES = tuple(4096 << shift for shift in range(11))
"""Block sizes from 4 KiB to 4 MiB that are tried for aliasing."""

OUTCOMES = 4096
"""Draws of the pid lottery are counted one by one up to here."""

TURNS = 10_000
"""Reads after which the parts of members hardly change any more."""


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
        known = ", ".join(EXPLAINED)
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
        serial = _serial(parts, array)
        numbers = {"serial rate": serial}
        text += f": {' : '.join(f'{100 * part:.3g} %' for part in parts)}, and one at a time {serial:.0f}/s"
    return Explanation("weighted lottery", text, "read counts per member: their ratio is that of the rates", numbers)


def _preferred(given: str, array: Array) -> Explanation:
    devid = _number(given, "id", 0, 1)
    if 1 <= devid <= array.copies:
        return _alone("preferred member", f"every read goes to devid {devid}, at any depth", devid - 1, array)
    why = f"no copy lies on devid {devid}, so every read goes to the first stripe"
    return _alone("preferred member", why, 0, array)


def _alone(mechanism: str, why: str, rank: int, array: Array) -> Explanation:
    """All reads go to the member of that rank, for the reason ``why``."""
    text = f"{why}, and the other members stand idle"
    numbers = {}
    if array.rates:
        numbers = {"one member": array.rates[rank], "sum of all": sum(array.rates)}
        text += f": {array.rates[rank]:.0f}/s, where the members together do {numbers['sum of all']:.0f}/s"
    return Explanation(mechanism, text, "reads per member in /sys/block/DEVICE/stat: all but one stand still", numbers)


def _lowest_address(given: str, array: Array) -> Explanation | None:
    if not _number(given, "far", 0, 0):
        return None
    why = (
        "the lowest address is read whatever is in flight: far copies as a raid0; on a plain mirror, whose addresses "
        "are equal, every read goes to the first copy"
    )
    return _alone("lowest address", why, 0, array)


def _heads(given: str, array: Array) -> Explanation | None:
    if _number(given, "far", 0, 0):
        return None
    flying = array.iodepth * array.jobs
    if flying == 1:
        why = "with one request at a time all members are idle, which is as good as near, so the first copy is read"
        return _alone("first copy", why, 0, array)
    text = (
        f"of {flying} in flight an idle member gets the next, so none runs dry and the members' rates add up; among "
        "busy ones the nearest head decides, so queues are not evened and pile up on the slowest. With flash among "
        "them the fewest in flight decide instead, in md-raid10 of the flash members alone"
    )
    numbers = {}
    if array.rates:
        slowest = max(flying - array.copies + 1, 1) / min(array.rates)
        numbers = {"sum of all": sum(array.rates), "seconds on the slowest": slowest}
        text += f". At most {sum(array.rates):.0f}/s with these, and up to {_time(slowest)} for a read of the slowest"
    confirm = "in flight per member (/sys/block/DEVICE/inflight): nearly all on the slowest, one or two on the others"
    return Explanation("nearest head at depth", text, confirm, numbers)


def _began(given: str, array: Array) -> Explanation:
    why = "a stream is read from the member that it began on, at any depth (flash: until its optimal I/O size is read)"
    return _alone("streams stay", why, 0, array)


def _lottery_within_margin(given: str, array: Array) -> Explanation | None:
    return _lottery(given, array) if array.iodepth * array.jobs < _number(given, "rotating", 0, ROTATING) + 2 else None


def _margin(given: str, array: Array) -> Explanation:
    spinning, flash = _number(given, "rotating", 0, ROTATING), _number(given, "flash", 1, FLASH)
    text = (
        "the pid's choice, in a mixed pair the flash member, is left for one with fewer in flight by more than "
        f"{spinning}, or {flash} where all are flash: one job reads from another member too from depth {spinning + 2}, "
        f"or {flash + 2} on flash, and from there the rates add up"
    )
    numbers = {"depth on spinning members": spinning + 2.0, "depth on flash": flash + 2.0}
    if array.rates:
        numbers["sum of all"] = sum(array.rates)
        text += f" to at most {sum(array.rates):.0f}/s"
    confirm = "in flight per member (/sys/block/DEVICE/inflight): the pid's choice ahead of the others by that margin"
    return Explanation("margin", text, confirm, numbers)


def _ties_by_offset(given: str, array: Array) -> Explanation | None:
    if array.iodepth * array.jobs > 1:
        return None
    return Explanation(
        "ties by offset",
        f"equally loaded members take turns by offset, one for each {_size(ZFS_TIE)}: the same bytes are always read "
        "from the same member, and a random load is spread evenly. Flash beside spinning members is no tie: "
        "the flash is read",
        f"read at random within one aligned {_size(ZFS_TIE)}: /sys/block/DEVICE/stat of one member moves, no other",
        {"bytes of a turn": float(ZFS_TIE)},
    )


def _stream(given: str, array: Array) -> Explanation:
    spinning = _number(given, "rotating_seek", 0, ROTATING_SEEK)
    flash = _number(given, "flash_seek", 2, FLASH_SEEK)
    text = (
        "a stream stays with the member that it has just read from, until that has as much more in flight than another "
        f"as a seek counts: {spinning} on spinning members (half of it within 1 MiB), {flash} on flash"
    )
    numbers = {"seek of a spinning member": float(spinning), "seek of flash": float(flash)}
    kinds = [kind for kind, seek in (("spinning", spinning), ("flash", flash)) if array.iodepth <= seek]
    if kinds:
        text += f". At depth {array.iodepth} a stream on {' or '.join(kinds)} members is one member's"
        if array.rates:
            text += f": {min(array.rates):.0f} to {max(array.rates):.0f}/s"
    confirm = "one sequential job, reads per member in /sys/block/DEVICE/stat: runs on one member, then another"
    return Explanation("streams stay", text, confirm, numbers)


def _weights(given: str, array: Array) -> Explanation:
    text = (
        "equal weights, the default, leave bytes in flight to decide, and turns between equals. Of unequal ones the "
        "heaviest is always read first, and a lighter one only when the others have more in flight for their weight"
    )
    numbers = {}
    if array.rates:
        alone = sum(int(rate / min(array.rates)) for rate in array.rates) - 1
        numbers = {"in flight without the slowest": float(alone)}
        text += f". With weights like these rates the slowest is not read at all up to {alone} in flight"
    confirm = "in flight per member (/sys/block/DEVICE/inflight): in the ratio of the weights"
    return Explanation("operator's weights", text, confirm, numbers)


def _service_times(given: str, array: Array) -> Explanation:
    if array.rates and max(array.rates) <= _number(given, "threshold", 1, 0) * min(array.rates):
        return _blind(given, array)  # their service times count as equal
    if array.iodepth * array.jobs == 1:
        return _stalest(array)
    numbers = {}
    text = "each member is given work in proportion to its rate, so reads take equally long and the rates add up"
    if array.rates:
        queues = _in_flight(array, array.rates)
        numbers = {"sum of all": sum(array.rates)} | queues
        text += f": at most {sum(array.rates):.0f}/s with these, {_listed(queues.values())} in flight"
    confirm = "in flight per member (/sys/block/DEVICE/inflight): in the ratio of what they read"
    return Explanation("service times at depth", text, confirm, numbers)


def _stalest(array: Array) -> Explanation:
    text = (
        "with one request at a time all members are idle, and of idle ones the first to become stale is read, which is "
        f"{array.copies} mean service times after its last read: the slow keep a part"
    )
    numbers = {}
    if array.rates:
        parts = _by_staleness(array.rates)
        serial = _serial(parts, array)
        numbers = {f"share of rank {rank}": part for rank, part in enumerate(parts)} | {"serial rate": serial}
        text += f", {' : '.join(f'{100 * part:.3g} %' for part in parts)} of the reads. That is {serial:.0f}/s"
        text += f", where the quickest member alone does {max(array.rates):.0f}/s"
    confirm = "reads per member in /sys/block/DEVICE/stat: the slow one's part, though it is never the best choice"
    return Explanation("staleness at depth 1", text, confirm, numbers)


def _by_staleness(rates: Sequence[float]) -> tuple[float, ...]:
    """The part of the reads of each member when, one at a time, the first to become stale is read.

    In whole ns, as the kernel counts; of equals the one taken longest ago.
    """
    service = [round(1e9 / rate) for rate in rates]
    waiting, counts, now = [(0, 0, rank) for rank in range(len(rates))], Counter[int](), 0
    for _ in range(TURNS):
        rank = heapq.heappop(waiting)[2]
        now += service[rank]
        heapq.heappush(waiting, (now + len(rates) * service[rank], now, rank))
        counts[rank] += 1
    return tuple(counts[rank] / TURNS for rank in range(len(rates)))


def _probe_of_stale(given: str, array: Array) -> Explanation:
    text = f"an idle member gets a read when it is stale, {array.copies} of its mean service times after its last one"
    numbers = {}
    if array.rates:
        least = min(array.rates) / (array.copies + 1)
        numbers = {"seconds until stale": array.copies / min(array.rates), "least of the slowest": least}
        text += f", the slowest after {_time(numbers['seconds until stale'])}, which is at least {least:.3g}/s of it"
    text += ". None is locked out, whatever it once did"
    return Explanation(
        "probe of the stale", text, "reads per member in /sys/block/DEVICE/stat: none stands still", numbers
    )


def _expected_delay(given: str, array: Array) -> Explanation:
    flying = array.iodepth * array.jobs
    explored = _explored(given)
    numbers = {}
    if flying == 1:
        text = f"the lowest recent latency is read, but {100 * explored:.3g} % of the reads go anywhere"
        if array.rates:
            quickest = array.rates.index(max(array.rates))
            parts = [explored / array.copies + (1 - explored) * (rank == quickest) for rank in range(array.copies)]
            serial = _serial(parts, array)
            numbers = {"serial rate": serial, "quickest": max(array.rates)}
            text += f": {serial:.0f}/s, where the quickest member alone does {max(array.rates):.0f}/s"
        confirm = "reads per member in /sys/block/DEVICE/stat: one has nearly all, the others exactly that part"
        return Explanation("quickest but for exploration", text, confirm, numbers)
    text = (
        "a latency holds the wait in the queue already, and is multiplied by the queue once more: members have in "
        "flight as the square roots of their rates, the quick ones too few"
    )
    if array.rates:
        queues = _in_flight(array, [math.sqrt(rate) for rate in array.rates])
        numbers = {"sum of all": sum(array.rates)} | queues
        text += f": {_listed(queues.values())} with these, which do at most {sum(array.rates):.0f}/s together"
    confirm = "in flight per member (/sys/block/DEVICE/inflight), squared: in the ratio of what they read"
    return Explanation("wait counted twice", text, confirm, numbers)


def _exploration(given: str, array: Array) -> Explanation:
    explored = _explored(given)
    if not explored:
        text = "nothing is explored: a member that once was slow may not be read again, as long as the others are quick"
        return Explanation("exploration", text, "reads per member in /sys/block/DEVICE/stat: one of them stands still")
    between = array.copies / explored
    text = f"each member is read at least once in {between:.0f} reads, whatever is known of it"
    numbers = {"reads between": between}
    if array.iops:
        numbers["seconds"] = between / array.iops
        text += f": every {_time(between / array.iops)} at {array.iops:.0f} a second"
    if array.rates:
        numbers["bound"] = between * min(array.rates)
        if numbers["bound"] < sum(array.rates):
            text += (
                f". So the array does at most {numbers['bound']:.0f}/s, {between:.0f} times the slowest, and at depth "
            )
            text += "the queue is there"
    confirm = "reads per member in /sys/block/DEVICE/stat: none has less than this part"
    return Explanation("exploration", text, confirm, numbers)


def _explored(given: str) -> float:
    """The part of the reads that go anywhere."""
    permille = _number(given, "explore_permille", 1, EXPLORE_PERMILLE)
    if permille > 1000:
        raise RequestError(f"{permille} of 1000 reads", place="explore_permille", remedy="0 to 1000")
    return permille / 1000


def _serial(parts: Sequence[float], array: Array) -> float:
    """Reads per second when one is in flight at a time and members get these parts."""
    return 1 / sum(part / rate for part, rate in zip(parts, array.rates, strict=True))


def _in_flight(array: Array, weights: Sequence[float]) -> dict[str, float]:
    """What each member has in flight when it is split by these weights."""
    each = array.iodepth * array.jobs / sum(weights)
    return {f"in flight on rank {rank}": each * weight for rank, weight in enumerate(weights)}


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
    "service-time": (_blind, _weights),
    "historical-service-time": (_service_times, _probe_of_stale),
    "sed": (_expected_delay, _exploration),
    "devid": (_preferred,),
    "md-raid1": (_heads, _began),
    "md-raid10": (_lowest_address, _heads),
    "zfs": (_blind, _ties_by_offset, _stream),
    "hysteresis": (_lottery_within_margin, _margin),
    "bcachefs": (_inverse,),
    "random": (_convoy,),
}
EXPLAINED = tuple(sorted(_MECHANISMS))
"""Names of the policies that can be explained: all of the native core's catalogue."""


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


def _listed(values: Iterable[float]) -> str:
    return " : ".join(f"{value:.3g}" for value in values)


def _size(length: int) -> str:
    return f"{length >> 20} MiB" if length % (1 << 20) == 0 else f"{length / 1024:g} KiB"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
