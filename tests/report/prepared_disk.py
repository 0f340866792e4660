"""A disk whose preparation ended, for stories and charts."""

from __future__ import annotations

from collections.abc import Sequence

from iodelta.experiment import Prepare
from iodelta.lab.preparing import Round, window_of
from iodelta.study.preparation import DiskAccount, RoundSeen

FALLING = (9000.0, 9000.0, 8900.0, 5000.0, 3100.0, 3000.0, 3050.0, 2950.0, 3020.0, 2990.0)
"""IOPS of a disk that is steady from its fifth round on."""


def disk(values: Sequence[float] = FALLING, *, state: str = "steady") -> DiskAccount:
    """Rounds of a minute, each writing a tenth of the disk."""
    rounds = [Round(at, 60.0 * at, 60.0, value, 100 << 20) for at, value in enumerate(values, 1)]
    seen = [
        RoundSeen(at, one.started, one.seconds, one.iops, one.written, False, window_of(rounds[:at]))
        for at, one in enumerate(rounds, 1)
    ]
    return DiskAccount(
        path="/dev/sdb",
        machine="local",
        size=1000 << 20,
        prepare=Prepare(),
        workload=(("rw", "randwrite"), ("bs", "4k")),
        state=state,  # type: ignore[arg-type]
        purged=False,
        filled=2000 << 20,
        to_fill=2000 << 20,
        rounds=tuple(seen),
        overwritten=len(rounds) * (100 << 20),
        least_written=0.3 * (1000 << 20),
        begun=0.0,
        ended=60.0 * (len(rounds) + 1),
    )
