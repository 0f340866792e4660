"""Explain in numbers what a read policy will do on an array and why, and which observation would confirm it.

Nothing is measured or simulated here: each mechanism follows from the policy's rule (see the catalogue for sources).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iodelta.errors import RequestError
from iodelta.parts.mirrors import fixed_choice, observed_latency, shortest_queue
from iodelta.parts.mirrors.fixed_choice import never_switching, shares
from iodelta.parts.mirrors.mechanism import Array, Explanation
from iodelta.parts.mirrors.shortest_queue import always, named, shortest

__all__ = ["EXPLAINED", "Array", "Explanation", "explain", "never_switching", "shares"]

Mechanism = Callable[[str, Array], Explanation | None]
_MECHANISMS: dict[str, Sequence[Mechanism]] = {
    "pid": (fixed_choice.lottery,),
    "round-robin": (fixed_choice.aliasing, fixed_choice.convoy_of_turns),
    "jain-latency": (observed_latency.lock_in_for_ever, observed_latency.herd),
    "latency": (observed_latency.lock_in, observed_latency.herd),
    "latency-rr": (
        observed_latency.lock_in,
        observed_latency.either,
        fixed_choice.aliasing_within_limit,
    ),
    "queue": (shortest(named(0)),),
    "queue-reads": (shortest(named(0)),),
    "queue-adaptive": (shortest_queue.queue_adaptive, shortest_queue.veto),
    "queue-length": (shortest(always("rotate")),),
    "service-time": (shortest(always("rotate")), shortest_queue.weights),
    "historical-service-time": (
        observed_latency.service_times,
        observed_latency.probe_of_stale,
    ),
    "sed": (observed_latency.expected_delay, observed_latency.exploration),
    "devid": (fixed_choice.preferred,),
    "md-raid1": (shortest_queue.heads, shortest_queue.began),
    "md-raid10": (shortest_queue.lowest_address, shortest_queue.heads),
    "zfs": (
        shortest(always("offset")),
        shortest_queue.ties_by_offset,
        shortest_queue.active,
        shortest_queue.stream,
    ),
    "hysteresis": (shortest_queue.lottery_within_margin, shortest_queue.margin),
    "bcachefs": (observed_latency.inverse,),
    "random": (fixed_choice.convoy,),
}
EXPLAINED = tuple(sorted(_MECHANISMS))
"""Names of the policies that can be explained: all of the native core's catalogue."""


def explain(policy: str, array: Array) -> tuple[Explanation, ...]:
    """Return every mechanism that decides what ``policy`` (``round-robin:192k``) does on ``array``. Raises
    RequestError.
    """
    name, _, given = policy.partition(":")
    if name not in _MECHANISMS:
        known = ", ".join(EXPLAINED)
        raise RequestError(
            f"nothing to explain about {name!r}",
            place="read policy",
            remedy=f"explained are {known}",
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
    mechanisms = (mechanism(given, array) for mechanism in _MECHANISMS[name])
    return tuple(mechanism for mechanism in mechanisms if mechanism is not None)
