"""The present state of every host in a fleet folder."""

from __future__ import annotations

import contextlib
import itertools
import statistics
from collections.abc import Mapping, Sequence

from iodelta.errors import IodeltaError, pasted
from iodelta.fleet.answers import FleetStatusAnswer, HostStatus
from iodelta.fleet.coordinator import JUMP, last_states
from iodelta.fleet.events import Moved, Seen, Sight
from iodelta.fleet.folder import FleetFolder
from iodelta.fleet.host import FleetHost
from iodelta.lab.account import Account
from iodelta.lab.folder import Folder
from iodelta.plural import plural

SLOW = 5.0
"""A host is reported when the median of the others is this many times as fast."""

ENOUGH = 3
"""Fewest hosts for a median to compare with."""


def status_of(
    folder: FleetFolder, hosts: Sequence[FleetHost] = ()
) -> FleetStatusAnswer:
    """Return every host of the folder, or those given. Raises MeasureError for a damaged journal."""
    events, scheduled = folder.journal.events(), folder.is_held()
    states = last_states(events)
    experiment = folder.experiment()
    slow = _slow({name: moved.rate for name, moved in states.items() if moved.rate})
    statuses = []
    for host in hosts or sorted(folder.hosts().values(), key=lambda one: one.name):
        seen = [
            event.sight
            for event in events
            if isinstance(event, Seen) and event.name == host.name
        ]
        notes = (*_notes(seen, reboots=experiment.boots), *slow.get(host.name, ()))
        statuses.append(
            _status(folder, host, states.get(host.name), notes, scheduled=scheduled)
        )
    return FleetStatusAnswer(
        str(folder.path), experiment.question, scheduled, tuple(statuses)
    )


def _status(
    folder: FleetFolder,
    host: FleetHost,
    moved: Moved | None,
    notes: tuple[str, ...],
    *,
    scheduled: bool,
) -> HostStatus:
    place, trials = folder.place(host.name), 0
    with contextlib.suppress(IodeltaError):
        trials = len(Account(Folder(place).events()).finished)
    shown = moved or Moved(0.0, host.name, "waiting")
    if shown.state == "running" and not scheduled:
        again = f"`iodelta fleet run {pasted(folder.path)}` continues it"
        shown = Moved(
            shown.at, host.name, "waiting", "the fleet run ended before it", again
        )
    where = str(place) if place.exists() else ""
    return HostStatus(
        host.name,
        host.machine,
        shown.state,
        shown.reason,
        shown.remedy,
        trials,
        where,
        notes,
    )


def _notes(sights: Sequence[Sight], *, reboots: bool) -> tuple[str, ...]:
    """``reboots``: the experiment itself reboots its hosts."""
    pairs = list(itertools.pairwise(sights))
    rebooted = 0 if reboots else sum(sight.boot != next_.boot for sight, next_ in pairs)
    jumps = [
        next_.ahead - sight.ahead
        for sight, next_ in pairs
        if abs(next_.ahead - sight.ahead) > JUMP
    ]
    notes = []
    if rebooted:
        notes.append(f"rebooted {plural(rebooted, 'time')} since its experiment began")
    if jumps:
        notes.append(
            f"its clock moved by {max(jumps, key=abs):+.0f} s against this machine's"
        )
    return tuple(notes)


def _slow(rates: Mapping[str, float | None]) -> dict[str, tuple[str, ...]]:
    """Hosts whose baseline is far below the median of the others."""
    slow: dict[str, tuple[str, ...]] = {}
    for name, rate in rates.items():
        others = [other for one, other in rates.items() if one != name and other]
        if (
            rate
            and len(others) >= ENOUGH - 1
            and statistics.median(others) > SLOW * rate
        ):
            times = statistics.median(others) / rate
            slow[name] = (
                f"{times:.0f} times slower than the median of the other hosts",
            )
    return slow
