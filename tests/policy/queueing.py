"""A mirror in plain Python, whose members serve one read at a time in order of arrival.

Its policies are written from their sources a second time. Nothing is shared with the native core or the explanations,
so that they can be held against it.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

LENGTH = 64 * 1024


class Read(NamedTuple):
    """A read that needs a member."""

    offset: int
    pid: int
    started: float


@dataclass
class Disk:
    """One member, and what kernels remember of it."""

    service: float
    rotational: bool = True
    queue: deque[Read] = field(default_factory=deque)
    flying: int = 0
    end: int = -1
    """Where the last read sent to it ends."""
    head: int = 0
    """Where the last finished one ended."""
    taken: int = 0
    """Number of the read that went to it last."""
    ios: int = 0
    wait: float = 0.0
    mean: float = 0.0
    """Exponential mean of its latency, weight 1/8; in units of the same for all policies that keep one."""
    slow_mean: float = 0.0
    """The same with weight 1/32."""
    historical: float = 0.0
    finished: float = 0.0
    stale_after: float = 0.0
    passed_over: int = 0
    base: tuple[int, float] = (0, 0.0)
    windowed: float = 0.0
    """Exponential mean of its latency over the last second."""

    def recent(self) -> float:
        """Mean latency since the checkpoint; 0 while nothing is known."""
        ios, wait = self.ios - self.base[0], self.wait - self.base[1]
        return wait / ios if ios and self.passed_over >= 0 else 0.0


@dataclass
class Array:
    """The members, the time, and a source of chance."""

    disks: list[Disk]
    chance: random.Random
    now: float = 0.0
    sent: int = 0
    sectors: int = 0


Policy = Callable[[Array, Read], int]


class Result(NamedTuple):
    """What came of a load."""

    rate: float
    shares: tuple[float, ...]
    in_flight: tuple[float, ...]
    latency: float
    """Mean, seconds."""
    longest: float


def _least(keys: Sequence[object]) -> int:
    return min(range(len(keys)), key=lambda index: (keys[index], index))


def pid(array: Array, read: Read) -> int:
    return read.pid % len(array.disks)


def devid(number: int) -> Policy:
    return lambda array, read: number - 1 if 1 <= number <= len(array.disks) else 0


def round_robin(unit: int) -> Policy:
    return lambda array, read: array.sectors * 4096 // unit % len(array.disks)


def jain(array: Array, read: Read) -> int:
    return _least([disk.wait / disk.ios if disk.ios else 0.0 for disk in array.disks])


def latency(array: Array, read: Read) -> int:
    return _least([disk.recent() for disk in array.disks])


def latency_rr(array: Array, read: Read) -> int:
    known = [disk.recent() for disk in array.disks if disk.recent()]
    limit = 1.25 * min(known, default=0.0)
    offered = [index for index, disk in enumerate(array.disks) if disk.recent() <= limit]
    return offered[array.sectors * 4096 // (256 * 1024) % len(offered)]


def queue(ties: str) -> Policy:
    def choose(array: Array, read: Read) -> int:
        if ties == "rotate":
            return _least([(disk.flying, disk.taken) for disk in array.disks])
        if ties == "random":
            return _least([(disk.flying, array.chance.random()) for disk in array.disks])
        return _least([disk.flying for disk in array.disks])

    return choose


def queue_adaptive(array: Array, read: Read) -> int:
    best = min((disk.windowed for disk in array.disks if disk.windowed), default=1.0)
    return _least([disk.flying + 9 * (disk.windowed > 2 * best) for disk in array.disks])


def hysteresis(array: Array, read: Read) -> int:
    start = read.pid % len(array.disks)
    spinning = [disk.rotational for disk in array.disks]
    if any(spinning) and not all(spinning) and spinning[start]:
        start = spinning.index(False)
    best = _least([disk.flying for disk in array.disks])
    return best if array.disks[start].flying > array.disks[best].flying + (8 if any(spinning) else 2) else start


def _nearest(array: Array, read: Read, *, stream: bool) -> int:
    for index, disk in enumerate(array.disks):
        if stream and read.offset in (disk.end, disk.head):
            return index
    fewest = _least([disk.flying for disk in array.disks])
    if stream and (not array.disks[fewest].flying or not all(disk.rotational for disk in array.disks)):
        return fewest
    flash = [index for index, disk in enumerate(array.disks) if not disk.rotational]
    if flash:
        return min(flash, key=lambda index: array.disks[index].flying)
    return _least([abs(disk.head - read.offset) if disk.flying else 0 for disk in array.disks])


def md_raid1(array: Array, read: Read) -> int:
    return _nearest(array, read, stream=True)


def md_raid10(array: Array, read: Read) -> int:
    return _nearest(array, read, stream=False)


def zfs(most: int) -> Policy:
    def choose(array: Array, read: Read) -> int:
        loads = []
        for disk in array.disks:
            away = abs(disk.end - read.offset) if disk.end >= 0 else 1 << 60
            seek = (5 if away >= 1 << 20 else 2) if disk.rotational else 1
            loads.append(min(disk.flying, most) + (seek if away else 0))
        tied = [index for index, load in enumerate(loads) if load == min(loads)]
        return tied[(read.offset >> 21) % len(tied)]

    return choose


def bcachefs(power: int) -> Policy:
    def choose(array: Array, read: Read) -> int:
        best = 0
        for index in range(1, len(array.disks)):
            ours, other = (array.disks[which].slow_mean ** power for which in (index, best))
            if array.chance.random() * (ours + other) > ours:
                best = index
        return best

    return choose


def historical(array: Array, read: Read) -> int:
    order = sorted(range(len(array.disks)), key=lambda index: array.disks[index].taken)
    best = order[0]
    for index in order[1:]:
        if _better(array.disks[index], array.disks[best], array.now):
            best = index
    return best


def _better(one: Disk, other: Disk, now: float) -> bool:
    """dm's hst_compare: whether the first is to be preferred."""
    if one.historical == other.historical:
        return one.flying < other.flying
    stale = [disk.flying == 0 and disk.stale_after < now for disk in (one, other)]
    if any(stale) or one.flying == other.flying == 0:
        return (not other.flying) * one.stale_after < (not one.flying) * other.stale_after
    expected = [(1 + disk.flying) * disk.historical for disk in (one, other)]
    if one.flying == other.flying:
        expected = [one.historical, other.historical]
    loser = other if expected[0] <= expected[1] else one
    if loser.stale_after < now:
        return one.flying < other.flying
    return loser is other


def sed(explored: float) -> Policy:
    def choose(array: Array, read: Read) -> int:
        if array.chance.random() < explored:
            return array.chance.randrange(len(array.disks))
        return _least([disk.mean * (disk.flying + 1) for disk in array.disks])

    return choose


def anywhere(array: Array, read: Read) -> int:
    return array.chance.randrange(len(array.disks))


POLICIES: dict[str, Policy] = {
    "pid": pid,
    "round-robin": round_robin(256 * 1024),
    "round-robin:64k": round_robin(64 * 1024),
    "devid": devid(1),
    "devid:2": devid(2),
    "jain-latency": jain,
    "latency": latency,
    "latency-rr": latency_rr,
    "queue": queue("first"),
    "queue:ties=rotate": queue("rotate"),
    "queue:ties=random": queue("random"),
    "queue-reads": queue("first"),
    "queue-length": queue("rotate"),
    "service-time": queue("rotate"),
    "queue-adaptive": queue_adaptive,
    "hysteresis": hysteresis,
    "md-raid1": md_raid1,
    "md-raid10": md_raid10,
    "md-raid10:far=1": devid(1),
    "zfs": zfs(10),
    "bcachefs": bcachefs(1),
    "bcachefs:square=1": bcachefs(2),
    "historical-service-time": historical,
    "sed": sed(0.01),
    "random": anywhere,
}
"""Those of the catalogue, with some parameters."""


def offsets(chance: random.Random, stream: bool, size: int, place: int) -> Iterator[int]:
    while True:
        yield place if stream else chance.randrange(size // LENGTH) * LENGTH
        place = (place + LENGTH) % size


def simulate(
    policy: Policy,
    rates: Sequence[float],
    *,
    depth: int = 1,
    jobs: int = 1,
    first_pid: int = 1000,
    pids: Sequence[int] = (),
    reads: int = 4000,
    rate: float = 0.0,
    spread: bool = False,
    stream: bool = False,
    rotational: bool = True,
    length: int = LENGTH,
    size: int = 256 << 30,
    seed: int = 1,
    near: bool = False,
    start: int = 0,
) -> Result:
    """``jobs`` of ``depth`` in a closed loop, or reads that arrive at ``rate`` by chance; a quarter is a ramp.

    ``spread``: service times are exponential. ``near``: all members have just read near ``start``, where a stream
    begins.
    """
    chance = random.Random(seed)
    array = Array([Disk(1 / one, rotational) for one in rates], chance)
    for disk in array.disks if near else ():
        disk.end = start - LENGTH // 2
    places = offsets(chance, stream, size, start)
    who = tuple(pids) or tuple(range(first_pid, first_pid + jobs))
    events: list[tuple[float, int, int]] = []
    number = 0

    def begin(index: int) -> None:
        nonlocal number
        number += 1
        disk = array.disks[index]
        time = disk.service * (chance.expovariate(1) if spread else 1)
        heapq.heappush(events, (array.now + time, number, index))

    def send(one: int) -> None:
        read = Read(next(places), one, array.now)
        index = policy(array, read)
        array.sent += 1
        array.sectors += length // 4096
        for other, disk in enumerate(array.disks):
            disk.passed_over += 1 if other != index or disk.passed_over < 0 else -disk.passed_over
            if disk.passed_over > 10_000:
                disk.base, disk.passed_over = (disk.ios, disk.wait), -100
        disk = array.disks[index]
        disk.flying, disk.end, disk.taken = disk.flying + 1, read.offset + LENGTH, array.sent
        disk.queue.append(read)
        if len(disk.queue) == 1:
            begin(index)

    if rate:
        heapq.heappush(events, (chance.expovariate(rate), 0, -1))
    for one in [] if rate else [one for one in who for _ in range(depth)]:
        send(one)
    done, counted, total, longest, since = 0, 0, 0.0, 0.0, 0.0
    counts, area, at = [0] * len(rates), [0.0] * len(rates), 0.0
    while done < reads:
        time, _, index = heapq.heappop(events)
        for each, disk in enumerate(array.disks):
            area[each] += disk.flying * (time - at) if since else 0.0
        array.now = at = time
        if index < 0:
            heapq.heappush(events, (time + chance.expovariate(rate), 0, -1))
            send(chance.choice(who))
            continue
        disk = array.disks[index]
        read = disk.queue.popleft()
        disk.flying -= 1
        disk.head = read.offset + LENGTH
        _finished(disk, time, time - read.started, len(rates))
        if disk.queue:
            begin(index)
        done += 1
        if since:
            counts[index] += 1
            total += time - read.started
            longest = max(longest, time - read.started)
            counted += 1
        elif done >= reads // 4:
            since = time
        if not rate:
            send(read.pid)
    passed = array.now - since
    return Result(
        counted / passed,
        tuple(count / counted for count in counts),
        tuple(one / passed for one in area),
        total / counted,
        longest,
    )


def _finished(disk: Disk, now: float, waited: float, members: int) -> None:
    disk.ios += 1
    disk.wait += waited
    disk.mean += (waited - disk.mean) / 8 if disk.mean else waited
    disk.slow_mean += (waited - disk.slow_mean) / 32 if disk.slow_mean else waited
    passed = min(max(now - disk.finished, 1 / 16), 1.0) if disk.windowed else 1.0
    disk.windowed += (waited - disk.windowed) * passed
    own = now - max(now - waited, disk.finished)
    disk.finished = now
    disk.historical += (own - disk.historical) * 0.05 if disk.historical else own
    disk.stale_after = now + members * disk.historical
