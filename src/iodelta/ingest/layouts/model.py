"""Entry and Layout: runs in their places, by cell and variant."""

from __future__ import annotations

import msgspec

from iodelta.ingest.model import DeviceStats, Refusal, Run
from iodelta.trial import Finding


class Entry(msgspec.Struct, frozen=True):
    """One run in its place: the cell it measures, under which variant, and the how-manieth of these it is.

    ``condition`` is part of the cell's identity beside its workload (a background load); empty where there is none.
    """

    run: Run
    cell: str
    variant: str
    condition: str = ""
    replicate: int = 0


class Layout(msgspec.Struct, frozen=True):
    """A folder as an experiment. ``kind`` says by which naming it was understood."""

    kind: str
    entries: tuple[Entry, ...]
    device_stats: tuple[DeviceStats, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    findings: tuple[Finding, ...] = ()
    logs: tuple[Run, ...] = ()
    """fio's logs, each its own, whether entries stand for them or the reports next to them."""

    def variants(self) -> tuple[str, ...]:
        """Names of the variants, in first-seen order."""
        return tuple(dict.fromkeys(entry.variant for entry in self.entries))


class Spot(msgspec.Struct, frozen=True):
    """What the name of a file says of the runs in it. ``part`` tells files of one run apart (volumes, clients)."""

    variant: str = ""
    cell: str = ""
    condition: str = ""
    replicate: int | None = None
    part: str = ""
    rank: int = 0
    """Of two files of the same run the one with the higher rank counts."""
