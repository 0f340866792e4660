"""Entry and Layout: runs arranged by cell and variant."""

from __future__ import annotations

import msgspec

from iodelta.ingest.model import DeviceStats, Refusal, Run
from iodelta.trial import Finding


class Entry(msgspec.Struct, frozen=True):
    """One run with its cell, its variant and its replicate number.

    ``condition`` (a background load) is part of the identity of the cell; empty without one.
    """

    run: Run
    cell: str
    variant: str
    condition: str = ""
    replicate: int = 0


class Layout(msgspec.Struct, frozen=True):
    """A folder as an experiment. ``kind`` is the naming by which it was arranged."""

    kind: str
    entries: tuple[Entry, ...]
    device_stats: tuple[DeviceStats, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    findings: tuple[Finding, ...] = ()
    logs: tuple[Run, ...] = ()
    """fio's logs, one run each, also if entries contain them or there are reports."""

    def variants(self) -> tuple[str, ...]:
        """Return names of the variants, in first-seen order."""
        return tuple(dict.fromkeys(entry.variant for entry in self.entries))


class Spot(msgspec.Struct, frozen=True):
    """The facts in the name of a file. ``part`` distinguishes files of one run (volumes, clients)."""

    variant: str = ""
    cell: str = ""
    condition: str = ""
    replicate: int | None = None
    part: str = ""
    rank: int = 0
    """Of two files of one run, the one with the higher rank counts."""
