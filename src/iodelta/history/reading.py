"""From a path to the nights in it, whoever measured them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from iodelta.bundle.packed import is_own, opened
from iodelta.errors import IodeltaError, RequestError
from iodelta.history import counts, foreign, importing, points
from iodelta.history.log import Given, Log, Named
from iodelta.history.points import Night
from iodelta.lab.folder import CountFolder, kind_of


def named(night: Night, log: Log, *, write: bool = False) -> Night:
    """Return the night under the machine's name in this history. With ``write`` a machine that was never seen is noted."""
    if not night.identity:
        return night
    names = log.machines()
    if night.identity not in names and write:
        log.append(Named(time.time(), night.identity, night.machine))
        names = log.machines()
    name = names.get(night.identity, night.machine)
    if name == night.machine:
        return night
    replace = msgspec.structs.replace
    points = tuple(
        replace(point, key=replace(point.key, machine=name)) for point in night.points
    )
    return replace(night, machine=name, points=points)


MANY = 50
"""So many folders are read by a process for each CPU: to start one takes as long as to read a dozen."""

AT_ONCE = 4
"""Folders that a process is given at a time."""

Nights = tuple[Night, ...]
Place = tuple[str, Given]
"""A folder or file, and what a person said of it."""


def nights_of(path: Path, given: Given, log: Log, *, write: bool = False) -> Nights:
    """Return the nights at ``path``, under the names that their machines have in this history; with ``write`` a new
    machine is noted there. Raises RequestError, MeasureError."""
    return tuple(named(night, log, write=write) for night in _at(path, given))


def _at(path: Path, given: Given) -> Nights:
    """Return the nights at ``path``, under the names that their machines have there."""
    if given.format:
        return importing.nights_of(path, given)
    if not (is_own(path) or (path / "experiment.toml").is_file()):
        return (foreign.night_of(path, given),)
    folder = opened(path)
    return (
        counts.nights_of(folder)
        if kind_of(folder) is CountFolder
        else (points.night_of(path, given.machine),)
    )


def logged(log: Log, processes: int = 0) -> Iterator[Night]:
    """Yield every night that the log names, read again, in the order in which they were added.
    ``processes`` as of ``outcomes``. Raises RequestError for a folder that is missing or is not what it was."""
    wanted = log.added().values()
    places = list(dict.fromkeys((entry.folder, entry.given) for entry in wanted))
    taken: set[Place] = set()
    nights: dict[str, Night] = {}
    with outcomes(places, processes) as read:
        for entry in wanted:
            place = (entry.folder, entry.given)
            if place not in taken:
                taken.add(place)
                nights |= {
                    night.identifier: named(night, log) for night in _nights(next(read))
                }
            if entry.identifier not in nights:
                raise RequestError(
                    "this has changed since it was added",
                    place=entry.folder,
                    remedy=f"add it again, or {_PRUNE}",
                )
            yield nights.pop(entry.identifier)


@contextlib.contextmanager
def outcomes(
    places: Sequence[Place], processes: int = 0
) -> Iterator[Iterator[Nights | IodeltaError]]:
    """The nights at each place under the names that their machines have there, or why they cannot be read; in order.
    Many places are read by a process for each CPU, unless ``processes`` says how many."""
    processes = processes or (
        len(os.sched_getaffinity(0)) if len(places) >= MANY else 1
    )
    if processes == 1:
        yield map(_outcome, places)
        return
    # Each begins anew: a fork would have the locks of other threads, and they would outlive this process.
    context = multiprocessing.get_context("spawn")
    with context.Pool(
        processes, signal.signal, (signal.SIGINT, signal.SIG_IGN)
    ) as pool:
        yield pool.imap(_outcome, places, AT_ONCE)


def _outcome(place: Place) -> Nights | IodeltaError:
    folder, given = place
    try:
        return _at(Path(folder), given)
    except IodeltaError as error:
        return error


def _nights(outcome: Nights | IodeltaError) -> Nights:
    if isinstance(outcome, IodeltaError):
        raise outcome
    return outcome


_PRUNE = "`iodelta history prune --gone` takes it out of the history"
