"""fio's unified_rw_reporting: one sum instead of the directions, or (``both``, 3.27) in addition to them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from iodelta.trial import Direction, Kind

_ALONE: dict[str | None, Kind] = {
    "read": "read",
    "randread": "read",
    "write": "write",
    "randwrite": "write",
    "trim": "trim",
    "randtrim": "trim",
}


def without_sum(
    directions: Sequence[Direction], rw: str | None
) -> tuple[Direction, ...]:
    """Return the directions without their sum ``mixed``. If the workload has one direction, ``mixed`` alone is that
    one.
    """
    apart = tuple(d for d in directions if d.kind != "mixed")
    if apart:
        return apart
    kind = _ALONE.get(rw)
    return tuple(
        msgspec.structs.replace(d, kind=kind) if kind else d for d in directions
    )
