"""Policies that consider I/Os in flight: queue and its variants, md, ZFS, hysteresis, the operator's weights of dm."""

from __future__ import annotations

from collections.abc import Callable

from iodelta.parts.mirrors.fixed_choice import lottery
from iodelta.parts.mirrors.mechanism import (
    IN_FLIGHT,
    READS,
    Array,
    Explanation,
    alone,
    duration,
    number,
    size,
    together,
    value_of,
)

ZFS_TIE = 2 * 1024 * 1024
"""Equally loaded members of a ZFS mirror take turns by the offset in this unit."""

ZFS_ACTIVE = 10
"""Synchronous reads that ZFS sends to a member at once (zfs_vdev_sync_read_max_active)."""

ROTATING = 8
FLASH = 2
"""Margins of the hysteresis."""

ROTATING_SEEK = 5
FLASH_SEEK = 1
VETO_PERCENT = 200
OVERFLOW = 8

TIES = {
    "first": "the first copy is read",
    "rotate": "the one read longest ago is taken",
    "random": "one of them at random is taken",
    "offset": "the offset decides",
}
"""How ties are broken."""

Ties = Callable[[str], str]
"""From a policy's parameters to a key of ``TIES``."""


def always(ties: str) -> Ties:
    return lambda given: ties


def named(position: int) -> Ties:
    """Return the parameter ``ties`` of the policy."""
    return lambda given: value_of(given, "ties", position, "first")


def shortest(ties: Ties) -> Callable[[str, Array], Explanation]:
    """Return the mechanism of a policy that takes the fewest in flight, and of equals what ``ties`` says."""
    return lambda given, array: _shortest(ties(given), array)


def _shortest(ties: str, array: Array) -> Explanation:
    if array.flying == 1:
        return _blind(ties, array)
    if array.flying < array.copies:
        return _idle_left(ties, array)
    numbers = {"sum of all": array.most} if array.rates else {}
    most = f": {array.most:,.0f}/s with these" if array.rates else ""
    text = (
        f"with {array.flying} in flight the shortest queue is where there is room: no member runs dry, and the "
        f"members' rates add up{most}"
    )
    return Explanation(
        "shortest queue at depth",
        text,
        f"{IN_FLIGHT}: nearly equal, while the reads are not",
        numbers,
    )


def _blind(ties: str, array: Array) -> Explanation:
    """Return one request at a time."""
    text = (
        "with one request at a time nothing is in flight when it looks: all queues are empty, and the tie-break "
        f"decides: {TIES.get(ties, ties)}"
    )
    numbers = {}
    if array.rates:
        rate = array.rates[0] if ties == "first" else array.even
        numbers = {
            "serial rate": rate,
            "evenly": array.even,
            "quickest": max(array.rates),
        }
        turns = "" if ties == "first" else ", as all members take turns"
        text += f". That is {rate:,.0f}/s{turns}, where {together(array)}"
    return Explanation(
        "blindness at depth 1",
        text,
        "the same rate when the members' speeds change places; it moves only when something else keeps a member busy"
        if ties != "first"
        else f"{READS}: all but the first stand still, unless something else keeps it busy",
        numbers,
    )


def _idle_left(ties: str, array: Array) -> Explanation:
    """Fewer in flight than members: one is always idle, and the tie-break chooses among the idle."""
    text = f"with {array.flying} in flight for {array.copies} members one is always idle, and among the idle "
    numbers = {}
    if ties == "first":
        text += f"the first is read: only the first {array.flying} members are"
        if array.rates:
            numbers = {
                "first members": sum(array.rates[: array.flying]),
                "most at this depth": array.most,
            }
            text += f", {numbers['first members']:,.0f}/s, where {together(array)}"
        return Explanation(
            "idle members left", text, f"{READS}: the last members stand still", numbers
        )
    text += f"the tie-break decides ({TIES.get(ties, ties)}): at most {array.flying} members work at a time"
    if array.rates:
        least = sum(sorted(array.rates)[: array.flying])
        numbers = {"least": least, "most at this depth": array.most}
        text += f", {least:,.0f} to {array.most:,.0f}/s"
    return Explanation(
        "idle members left", text, f"{IN_FLIGHT}: 0 or 1 on each", numbers
    )


def veto(given: str, array: Array) -> Explanation:
    """Of queue-adaptive: a member of bad recent latency is passed over."""
    percent = number(given, "veto_percent", 0, VETO_PERCENT)
    overflow = number(given, "overflow", 1, OVERFLOW)
    text = (
        f"a member whose recent latency is above {percent} % of the best one's is skipped until another has "
        f"more than {overflow} more in flight"
    )
    numbers = {"limit": percent / 100, "overflow": float(overflow)}
    if array.rates:
        apart = max(array.rates) / min(array.rates)
        numbers["rates apart"] = apart
        numbers["most at this depth"] = array.most
        if apart <= percent / 100:
            text += f". These members are {apart:.2f}-fold apart, so it seldom happens"
        else:
            text += (
                f". These members are {apart:.2f}-fold apart, so the slow work for part of the time: at most "
                f"{array.most:,.0f}/s"
            )
    return Explanation("veto", text, "vetoed and overflow in read_stats grow", numbers)


def queue_adaptive(given: str, array: Array) -> Explanation | None:
    """Return the shortest queue, as long as no member is vetoed."""
    limit = number(given, "veto_percent", 0, VETO_PERCENT) / 100
    if array.flying > 1 and array.rates and max(array.rates) > limit * min(array.rates):
        return None
    explanation = _shortest(value_of(given, "ties", 3, "first"), array)
    if array.flying == 1 or array.rates:
        return explanation
    text = f"as long as no member is vetoed: {explanation.prediction}"
    return Explanation(
        explanation.mechanism, text, explanation.confirm, explanation.numbers
    )


def lowest_address(given: str, array: Array) -> Explanation | None:
    if not number(given, "far", 0, 0):
        return None
    why = (
        "the lowest address is read whatever is in flight: far copies as a raid0; on a plain mirror, whose addresses "
        "are equal, every read goes to the first copy"
    )
    return alone("lowest address", why, 0, array)


def heads(given: str, array: Array) -> Explanation | None:
    """md: an idle member first, else the nearest head."""
    if number(given, "far", 0, 0):
        return None
    if array.flying == 1:
        why = "with one request at a time all members are idle, which is as good as near, so the first copy is read"
        return alone("first copy", why, 0, array)
    if array.flying < array.copies:
        return _idle_left("first", array)
    text = (
        f"of {array.flying} in flight an idle member gets the next, so none runs dry and the members' rates add up; "
        "among busy ones the nearest head decides, so queues are not evened and pile up on the slowest. With flash "
        "among them the fewest in flight decide instead, in md-raid10 of the flash members alone"
    )
    numbers = {}
    if array.rates:
        slowest = (array.flying - array.copies + 1) / min(array.rates)
        numbers = {"sum of all": array.most, "seconds on the slowest": slowest}
        text += f". Without flash {array.most:,.0f}/s with these, and up to {duration(slowest)} for a read of the slowest"
    confirm = f"{IN_FLIGHT}: nearly all on the slowest, one or two on the others"
    return Explanation("nearest head at depth", text, confirm, numbers)


def began(given: str, array: Array) -> Explanation:
    why = "a stream is read from the member that it began on, at any depth (flash: until its optimal I/O size is read)"
    if array.jobs == 1:
        return alone("streams stay", why, 0, array)
    text = f"{why}; where each of {array.jobs} streams began, an idle member or the nearest head decided"
    return Explanation(
        "streams stay",
        text,
        f"{READS}, one stream after the other: one member moves",
        {},
    )


def lottery_within_margin(given: str, array: Array) -> Explanation | None:
    """Return a job whose depth stays within the margin never leaves the mirror of its pid."""
    if array.iodepth < number(given, "rotating", 0, ROTATING) + 2:
        return lottery(given, array)
    return None


def margin(given: str, array: Array) -> Explanation:
    """Members without a job are read once every member with one has more than the margin in flight ahead of them."""
    spinning, flash = (
        number(given, "rotating", 0, ROTATING),
        number(given, "flash", 1, FLASH),
    )
    started = min(array.jobs, array.copies)
    left = array.copies - started
    all_spinning, all_flash = (
        started * (held + 1) + left if left else started for held in (spinning, flash)
    )
    numbers = {
        "depth on spinning members": spinning + 2.0,
        "depth on flash": flash + 2.0,
        "in flight for all spinning members": float(all_spinning),
        "in flight for all flash members": float(all_flash),
    }
    text = (
        "the pid's choice, in a mixed pair the flash member, is left for one with fewer in flight by more than "
        f"{spinning}, or {flash} where all are flash: one job reads from another member too from depth {spinning + 2}, "
        f"or {flash + 2} on flash"
    )
    if left:
        text += f". All members are read from {all_spinning} in flight, {all_flash} on flash, and then their rates add up"
    else:
        text += f". {array.jobs} jobs with pids in a row are on all members from the beginning, so their rates add up"
    if array.rates:
        numbers["most at this depth"] = array.most
        text += f" to {sum(array.rates):,.0f}/s"
    confirm = f"{IN_FLIGHT}: the pid's choice ahead of the others by that margin"
    return Explanation("margin", text, confirm, numbers)


def ties_by_offset(given: str, array: Array) -> Explanation | None:
    if array.flying > 1:
        return None
    return Explanation(
        "ties by offset",
        f"equally loaded members take turns by offset, one for each {size(ZFS_TIE)}: the same bytes are always read "
        "from the same member, and a random load is spread evenly. Flash beside spinning members is not a tie: "
        "the flash is read",
        f"read at random within one aligned {size(ZFS_TIE)}: /sys/block/DEVICE/stat of one member moves, no other",
        {"bytes of a turn": float(ZFS_TIE)},
    )


def active(given: str, array: Array) -> Explanation | None:
    """ZFS keeps what exceeds its limit in a queue of its own, where its mirror code does not see it."""
    most = number(given, "max_active", 3, ZFS_ACTIVE)
    if array.flying <= most * array.copies:
        return None
    waiting = array.flying - most * (array.copies - 1)
    text = (
        f"ZFS has at most {most} synchronous reads on a member at once (zfs_vdev_sync_read_max_active); the rest "
        f"waits unseen. With {array.flying} in flight all members look equally loaded, ties go by offset, and what "
        f"the others do not take piles up on the slowest: about {waiting} of {array.flying}"
    )
    numbers = {"active on each": float(most), "on the slowest": float(waiting)}
    if array.rates:
        numbers["seconds on the slowest"] = waiting / min(array.rates)
        text += (
            f", which is {duration(numbers['seconds on the slowest'])} for a read of it"
        )
    confirm = f"zpool iostat -q: syncq_read activ {most} on every member, pend on the slowest alone"
    return Explanation(
        "ten active reads" if most == ZFS_ACTIVE else "active reads",
        text,
        confirm,
        numbers,
    )


def stream(given: str, array: Array) -> Explanation:
    """Return a stream on ZFS, and the second way in which it can continue."""
    spinning = number(given, "rotating_seek", 0, ROTATING_SEEK)
    flash = number(given, "flash_seek", 2, FLASH_SEEK)
    text = (
        "a stream stays with the member that it has just read from, until that has as much more in flight than another "
        f"as a seek counts: {spinning} on spinning members (half of it within 1 MiB), {flash} on flash"
    )
    numbers = {
        "seek of a spinning member": float(spinning),
        "seek of flash": float(flash),
    }
    kinds = [
        kind
        for kind, seek in (("spinning", spinning), ("flash", flash))
        if array.iodepth <= seek
    ]
    if kinds and array.jobs == 1:
        text += f". At depth {array.iodepth} a stream on {' or '.join(kinds)} members is one member's"
        if array.rates:
            text += f": {min(array.rates):,.0f} to {max(array.rates):,.0f}/s"
        # Alone it has depth - 1 in flight when it looks; a member that has read near it counts half a seek.
        if spinning // 2 + 1 < array.iodepth <= spinning:
            numbers["half a seek"] = float(spinning // 2)
            text += (
                ". That is one of two stable states: once another spinning member has read within 1 MiB of it (a burst "
                f"of more in flight, another reader, a file of 1 MiB), that one counts {spinning // 2} only, the "
                "stream goes on from both, and stays so"
            )
            text += f": {sum(array.rates):,.0f}/s" if array.rates else ""
    confirm = f"one sequential job, {READS}: runs on one member, then another; in the second state both at once"
    return Explanation("streams stay", text, confirm, numbers)


def weights(given: str, array: Array) -> Explanation:
    text = (
        "equal weights, the default, leave bytes in flight to decide, and turns between equals. Of unequal ones the "
        "heaviest is always read first, and a lighter one only when the others have more in flight for their weight"
    )
    numbers = {}
    if array.rates:
        without = sum(int(rate / min(array.rates)) for rate in array.rates) - 1
        numbers = {"in flight without the slowest": float(without)}
        text += f". With weights like these rates the slowest is not read at all up to {without} in flight"
    return Explanation(
        "operator's weights", text, f"{IN_FLIGHT}: in the ratio of the weights", numbers
    )
