"""Explain in numbers what a read policy will do on an array and why, and which observation would confirm it.

Nothing is measured or simulated here: each mechanism follows from the policy's rule (see the catalogue for sources).
``explanations.md`` has the words and when each applies; here is the arithmetic.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from iodelta.errors import RequestError
from iodelta.experiment.values import size_bytes

SECTOR = 4096
"""btrfs counts what was read in sectors of 4 KiB."""

MIN_CONTIG = 256 * 1024
STRIPE = 64 * 1024
"""btrfs cuts reads of raid10 at this length."""

TURNS = 10_000
"""Number of reads after which the shares of members hardly change."""

MECHANISMS: dict[str, tuple[str, ...]] = {
    "pid": ("lottery",),
    "round-robin": ("aliasing", "convoy_of_turns"),
    "jain-latency": ("lock_in_for_ever", "herd"),
    "latency": ("lock_in", "herd"),
    "latency-rr": ("lock_in", "either", "aliasing"),
    "queue": ("shortest",),
    "queue-reads": ("shortest",),
    "queue-adaptive": ("queue_adaptive", "veto"),
    "queue-length": ("shortest",),
    "service-time": ("shortest", "weights"),
    "historical-service-time": ("service_times", "probe_of_stale"),
    "sed": ("expected_delay", "exploration"),
    "devid": ("preferred",),
    "md-raid1": ("heads", "began"),
    "md-raid10": ("lowest_address", "heads"),
    "zfs": ("shortest", "ties_by_offset", "active", "stream"),
    "hysteresis": ("lottery_within_margin", "margin"),
    "bcachefs": ("inverse",),
    "random": ("convoy",),
}
"""Policy -> macros of ``explanations.md``."""

EXPLAINED = tuple(sorted(MECHANISMS))
"""Names of the policies that can be explained: all of the native core's catalogue."""


class Array(msgspec.Struct, frozen=True, kw_only=True):
    """An array and its load. ``rates``: I/Os per second of each member alone; empty if unknown."""

    copies: int = 2
    """Members that hold the same bytes."""
    rates: tuple[float, ...] = ()
    """I/Os per second of each member alone; empty if unknown."""
    length: int = 4096
    """Bytes of one read."""
    iodepth: int = 1
    jobs: int = 1
    raid10: bool = False
    """Whether it is striped, so that a policy sees no read longer than a stripe."""
    iops: float | None = None
    """Decisions per second of the array; None if unknown."""

    @property
    def bio(self) -> int:
        """Bytes of one read as the policy sees it."""
        return min(self.length, STRIPE) if self.raid10 else self.length

    @property
    def flying(self) -> int:
        """Reads in flight at a time."""
        return self.iodepth * self.jobs

    @property
    def most(self) -> float:
        """Upper bound of reads per second for any policy: each read in flight keeps one member busy."""
        return sum(sorted(self.rates, reverse=True)[: self.flying])

    @property
    def even(self) -> float:
        """Reads per second, one at a time, if every member gets the same share."""
        return self.serial([1 / self.copies] * self.copies)

    def serial(self, parts: Sequence[float]) -> float:
        """Reads per second if one is in flight at a time and members get these shares."""
        return 1 / sum(
            part / rate for part, rate in zip(parts, self.rates, strict=True)
        )

    def closed(self, parts: Sequence[float]) -> float:
        """Return the reads per second of the requests in flight that go to the members by lot, with these shares.

        Mean value analysis (Reiser and Lavenberg, JACM 1980): it assumes service times that vary, so members that are
        as even as a clock do a little more.
        """
        demands = [part / rate for part, rate in zip(parts, self.rates, strict=True)]
        queues = [0.0] * len(demands)
        rate = 0.0
        for flying in range(1, self.flying + 1):
            waits = [
                demand * (1 + queue)
                for demand, queue in zip(demands, queues, strict=True)
            ]
            rate = flying / sum(waits)
            queues = [rate * wait for wait in waits]
        return rate

    def split(self, power: float) -> list[float]:
        """I/Os in flight on each member if they are split by its rate to this power."""
        weights = [
            rate**power if power != 0.5 else math.sqrt(rate) for rate in self.rates
        ]
        each = self.flying / sum(weights)
        return [each * weight for weight in weights]


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
    """Return every mechanism that decides what ``policy`` (``round-robin:192k``) does on ``array``. Raises
    RequestError.
    """
    name, _, given = policy.partition(":")
    if name not in MECHANISMS:
        raise RequestError(
            f"nothing to explain about {name!r}",
            place="read policy",
            remedy=f"explained are {', '.join(EXPLAINED)}",
        )
    if array.copies < 2:
        raise RequestError(
            "with one copy there is nothing to choose",
            place="copies",
            remedy="2 or more",
        )
    if array.rates and len(array.rates) != array.copies:
        raise RequestError(
            f"{len(array.rates)} rates for {array.copies} copies",
            place="member",
            remedy="one rate for each copy",
        )
    words = _template().make_module(
        {"policy": name, "a": array, **_arithmetic(name, given, array)}
    )
    texts = (str(getattr(words, mechanism)()) for mechanism in MECHANISMS[name])
    return tuple(_read(text) for text in texts if text.strip())


@functools.cache
def _template() -> Any:
    import jinja2

    made = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    made.filters |= {
        "n": "{:,.0f}".format,
        "percentages": lambda parts: " : ".join(
            f"{100 * part:.3g} %" for part in parts
        ),
        "ratio": lambda values: " : ".join(f"{value:.3g}" for value in values),
        "size": lambda length: (
            f"{length / 1024:g} KiB" if length % (1 << 20) else f"{length >> 20} MiB"
        ),
        "duration": _duration,
    }
    return made.from_string(
        (Path(__file__).parent / "explanations.md").read_text(encoding="utf-8")
    )


def _read(text: str) -> Explanation:
    """Return a mechanism from its rendered words."""
    words, _, rest = text.strip().removeprefix("## ").partition("Look: ")
    title, *lines = filter(None, map(str.strip, words.splitlines()))
    confirm, *listed = filter(None, map(str.strip, rest.splitlines()))
    prediction = "".join(
        line if line[0] in ",.;:" else f" {line}" for line in lines
    ).strip()
    numbers = (line.removeprefix("- ").rpartition(": ") for line in listed)
    return Explanation(
        title, prediction, confirm, {name: float(value) for name, _, value in numbers}
    )


def _duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} us"
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    if seconds < 120 or math.isinf(seconds):
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def _arithmetic(policy: str, given: str, array: Array) -> dict[str, Any]:
    """Return what ``explanations.md`` calls: parameters of the policy, and shares of the members."""

    def value(key: str, position: int, default: str) -> str:
        """Return a parameter by name; the one at position 0 may also be a value without a name."""
        for part in given.split(","):
            name, equals, value = part.partition("=")
            if equals and name == key:
                return value or part
            if part and not equals and position == 0:
                return part
        return default

    def number(key: str, position: int, default: int) -> int:
        text = value(key, position, str(default))
        if not text.isdecimal():
            raise RequestError(f"{text!r} is not a number", place=key)
        return int(text)

    def contig() -> int:
        """Bytes that round-robin reads from a member before the next one."""
        mine = given
        if policy == "latency-rr":
            mine = next(
                (part for part in given.split(",") if part.startswith("min_contig=")),
                "",
            )
        text = mine.partition("=")[2] or mine
        try:
            unit = size_bytes(text) if text else MIN_CONTIG
        except ValueError as error:
            raise RequestError(str(error), place="min_contig") from error
        if unit < SECTOR or unit % SECTOR:
            raise RequestError(
                f"{unit} is not a multiple of the sector of {SECTOR}",
                place="min_contig",
            )
        return unit

    def explored() -> float:
        """Return the share of exploring reads, which may go to any member."""
        permille = number("explore_permille", 1, 10)
        if permille > 1000:
            raise RequestError(
                f"{permille} of 1000 reads",
                place="explore_permille",
                remedy="0 to 1000",
            )
        return permille / 1000

    def outcomes() -> Counter[float]:
        """Rate of a closed loop in which each job stays with its mirror -> number of first pids that lead to it."""
        firsts = (
            {(first + job) % array.copies for job in range(array.jobs)}
            for first in range(array.copies)
        )
        return Counter(
            round(sum(array.rates[mirror] for mirror in mirrors), 6)
            for mirrors in firsts
        )

    def quickest_but(part: float) -> list[float]:
        """Return the part of each member when the quickest gets all that does not go to any member by lot."""
        quickest = array.rates.index(max(array.rates))
        return [
            part / array.copies + (1 - part) * (rank == quickest)
            for rank in range(array.copies)
        ]

    def tournament(power: int, unequal: bool) -> list[float]:
        """Return the part of each when each in turn replaces the choice so far with the odds of their weights."""
        weights = (
            [rate**power for rate in array.rates] if unequal else [1.0] * array.copies
        )
        parts = [1.0]
        for at in range(1, len(weights)):
            takes = [
                weights[at] / (weights[at] + weights[before]) for before in range(at)
            ]
            moved = [part * taken for part, taken in zip(parts, takes, strict=True)]
            parts = [part - gone for part, gone in zip(parts, moved, strict=True)] + [
                sum(moved)
            ]
        return parts

    def by_staleness() -> list[float]:
        """Return the part of the reads of each member when, one at a time, the first to become stale is read.

        In whole ns, as the kernel counts; of equals the one taken longest ago.
        """
        service = [round(1e9 / rate) for rate in array.rates]
        waiting = [(0, 0, rank) for rank in range(array.copies)]
        counts, now = Counter[int](), 0
        for _ in range(TURNS):
            rank = heapq.heappop(waiting)[2]
            now += service[rank]
            heapq.heappush(waiting, (now + array.copies * service[rank], now, rank))
            counts[rank] += 1
        return [counts[rank] / TURNS for rank in range(array.copies)]

    return {
        "value": value,
        "number": number,
        "contig": contig,
        "explored": explored,
        "outcomes": outcomes,
        "quickest_but": quickest_but,
        "tournament": tournament,
        "by_staleness": by_staleness,
        "shares": shares,
        "never_switching": never_switching,
        "shares_of_slowest": lambda: [
            int(rate / min(array.rates)) for rate in array.rates
        ],
    }


def shares(length: int, min_contig: int, copies: int) -> tuple[float, ...]:
    """Return the part of equal reads that each rank of a round-robin gets, exact over one whole period."""
    step, unit = max(length // SECTOR, 1), max(min_contig // SECTOR, 1)
    period = unit * copies // math.gcd(step, unit * copies)
    counts = Counter(read * step // unit % copies for read in range(period))
    return tuple(counts[rank] / period for rank in range(copies))


def never_switching(min_contig: int, copies: int) -> tuple[int, ...]:
    """Return the block sizes from 4 KiB to 4 MiB at which all reads go to the same mirror."""
    sizes = (4096 << shift for shift in range(11))
    return tuple(
        length for length in sizes if max(shares(length, min_contig, copies)) == 1.0
    )
