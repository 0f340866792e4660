"""The per-second rates of an experiment's trials: each trial in the course of the run, and the course of a trial."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, zip_longest
from statistics import fmean, median
from typing import NamedTuple

from iodelta.grouping import grouped
from iodelta.trial import Kind, Trial

KINDS: tuple[Kind, ...] = ("read", "write", "trim")

LONG = 5
"""Minimum length of a trial, in seconds, for its course to be shown."""


class Stay(NamedTuple):
    """A trial in the run: its time (seconds since the first), and its rates relative to the level of its arm."""

    name: str
    """Its number."""
    cell: str
    variant: str
    start: float
    end: float
    mean: float
    low: float
    high: float
    """Relative: -0.02 is 2 % below the level."""
    flags: tuple[str, ...]
    """Rules of the findings about it, notes left out."""


class Span(NamedTuple):
    """From when to when (seconds since the first trial) a background load ran, and which."""

    start: float
    end: float
    what: str


class Second(NamedTuple):
    """One second of all trials of a cell and variant: I/Os per second."""

    at: int
    mean: float
    low: float
    high: float
    trials: int


def kinds(trials: Iterable[Trial]) -> tuple[Kind, ...]:
    """Return the directions of which trials have seconds."""
    names = set(chain.from_iterable(trial.series for trial in trials))
    return tuple(kind for kind in KINDS if f"{kind}.iops" in names)


def stays(trials: Sequence[Trial], kind: Kind) -> list[Stay]:
    """Return every trial with seconds of ``kind``, in the order of their starts."""
    with_seconds = [trial for trial in trials if _seconds(trial, kind)]
    with_seconds.sort(key=lambda trial: trial.started)
    levels: dict[tuple[str, str], float] = {}
    for arm, of_arm in grouped(with_seconds, _arm).items():
        levels[arm] = median(fmean(_seconds(trial, kind)) for trial in of_arm)
    first = min((trial.started for trial in trials), default=0.0)
    return [
        _stay(trial, _seconds(trial, kind), levels[_arm(trial)], first)
        for trial in with_seconds
        if levels[_arm(trial)] > 0
    ]


def _arm(trial: Trial) -> tuple[str, str]:
    return trial.cell, trial.variant


def _stay(trial: Trial, seconds: Sequence[float], level: float, first: float) -> Stay:
    start = trial.started - first
    changes = (
        fmean(seconds) / level - 1,
        min(seconds) / level - 1,
        max(seconds) / level - 1,
    )
    flags = dict.fromkeys(
        finding.rule for finding in trial.findings if finding.severity != "note"
    )
    return Stay(
        str(trial.number),
        trial.cell,
        trial.variant,
        start,
        start + trial.seconds,
        *changes,
        tuple(flags),
    )


def loads(trials: Sequence[Trial]) -> list[Span]:
    """When background loads ran during trials; consecutive trials under one load are one span."""
    in_time = sorted(trials, key=lambda trial: trial.started)
    spans: list[Span] = []
    for load, consecutive in groupby(in_time, key=_load):
        under_load = list(consecutive)
        start = under_load[0].started - in_time[0].started
        last = under_load[-1]
        end = last.started + last.seconds - in_time[0].started
        if load is not None:
            spans.append(Span(start, end, load))
    return spans


def _load(trial: Trial) -> str | None:
    """Return the background load that ran during a trial."""
    background = trial.background
    if background is None or background.alive <= 0:
        return None
    return " ".join(background.command)


def course(trials: Iterable[Trial], kind: Kind) -> Iterator[Second]:
    """Yield the rates of trials second by second, as long as half of them ran; nothing if trials are short."""
    courses = list(filter(None, (_seconds(trial, kind) for trial in trials)))
    if not courses or median(map(len, courses)) < LONG:
        return
    for number, values in enumerate(zip_longest(*courses)):
        known = [value for value in values if value is not None]
        if 2 * len(known) >= len(courses):
            yield Second(
                at=number,
                mean=fmean(known),
                low=min(known),
                high=max(known),
                trials=len(known),
            )


def _seconds(trial: Trial, kind: Kind) -> Sequence[float]:
    rates = trial.series.get(f"{kind}.iops", ())
    if all(map(math.isfinite, rates)):
        return rates
    return ()
