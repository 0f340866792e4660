"""The next step in the preparation of a disk, and whether it is steady: decided from the finished steps, without I/O."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from iodelta.experiment import Option
from iodelta.experiment.model import Prepare
from iodelta.stats.rounds import Window, last_window

FILL_BLOCK = 128 << 10
"""Bytes of one write in sequence."""

SMALLEST = 1 << 20
"""Bytes that a disk must have to be prepared."""

SEGMENT = 1 << 30
SEGMENTS = 64
"""A fill has at most SEGMENTS parts of at least SEGMENT bytes each, so that a kill costs no more than one part."""

REST = 60.0
"""Seconds without I/O after which a disk may have tidied itself up: rounds after that begin a new window."""

ASSUMED = 500 << 20
"""Bytes per second of writes in sequence, for plans of a disk that was never timed."""

FILL: tuple[Option, ...] = (
    ("rw", "write"),
    ("bs", str(FILL_BLOCK)),
    ("ioengine", "libaio"),
    ("iodepth", "32"),
    ("direct", "1"),
)

Kind = Literal["purge", "fill", "round"]
State = Literal["running", "steady", "not steady"]


class Step(msgspec.Struct, frozen=True):
    """One step, about to be made. Bytes."""

    kind: Kind
    offset: int = 0
    """Where a part of a fill begins."""
    size: int = 0
    """How much it writes."""


class Round(msgspec.Struct, frozen=True):
    """One finished round."""

    number: int
    """Of the step, by which its raw files are found."""
    started: float
    """Unix seconds."""
    seconds: float
    """Seconds from the start of fio to its end."""
    iops: float
    """All its directions together."""
    written: int
    """Bytes."""


def parts_of_fill(size: int, fill: float) -> tuple[Step, ...]:
    """Return the parts in which ``size`` bytes are written ``fill`` times, in order; each pass begins anew."""
    blocks = size // FILL_BLOCK
    each = max(SEGMENT // FILL_BLOCK, math.ceil(blocks / SEGMENTS))
    steps = []
    for passed in range(math.ceil(fill)):
        end = math.ceil(blocks * min(1.0, fill - passed))
        for start in range(0, end, each):
            steps.append(
                Step("fill", start * FILL_BLOCK, min(each, end - start) * FILL_BLOCK)
            )
    return tuple(steps)


def next_step(prepare: Prepare, size: int, done: Sequence[Kind]) -> Step:
    """Return what follows the steps that are done; after all others a round."""
    counts = Counter(done)
    if prepare.purge != "none" and not counts["purge"]:
        return Step("purge")
    parts = parts_of_fill(size, prepare.fill)
    return parts[counts["fill"]] if counts["fill"] < len(parts) else Step("round")


def unbroken(rounds: Sequence[Round]) -> Sequence[Round]:
    """Return the last rounds between which the disk did not rest."""
    start = 0
    for at, (before, after) in enumerate(pairwise(rounds), 1):
        if after.started - (before.started + before.seconds) > REST:
            start = at
    return rounds[start:]


def least_written(prepare: Prepare, size: int) -> float:
    """Bytes that rounds must have written before a window counts: the spare area, and what the fill left unwritten."""
    return size * (prepare.spare + max(0.0, 1.0 - prepare.fill))


def window_of(rounds: Sequence[Round]) -> Window | None:
    """Return the last five rounds, unless the disk rested between them. Places are those among all ``rounds``."""
    recent = unbroken(rounds)
    window = last_window([measured.iops for measured in recent])
    if not window:
        return None
    return msgspec.structs.replace(
        window, first=window.first + len(rounds) - len(recent)
    )


def state_of(
    prepare: Prepare, size: int, rounds: Sequence[Round], given_up: int = 0
) -> State:
    """Return whether the disk is steady after these rounds; ``given_up`` of them were made when it was given up before."""
    window = window_of(rounds)
    # Only bytes written before the window count: five rounds may themselves use up the spare area, all of them as fast
    # as on a new disk.
    if (
        window is not None
        and window.steady
        and overwritten(rounds[: window.first]) >= least_written(prepare, size)
    ):
        return "steady"
    tried = min(len(unbroken(rounds)), len(rounds) - given_up)
    return "not steady" if tried >= prepare.limit else "running"


def overwritten(rounds: Sequence[Round]) -> int:
    """Bytes that the rounds have written."""
    return sum(measured.written for measured in rounds)


def seconds_of(prepare: Prepare, size: int, rate: float = 0.0) -> tuple[float, float]:
    """About how long the fill takes at ``rate`` bytes per second (0: as assumed), and all rounds at the most."""
    return prepare.fill * size / (rate or ASSUMED), prepare.limit * prepare.round
