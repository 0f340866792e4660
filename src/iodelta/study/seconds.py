"""The seconds of an experiment's trials: where each stood in the run, and what a trial is like from its start on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from statistics import fmean, median
from typing import NamedTuple

from iodelta.trial import Kind, Trial

KINDS: tuple[Kind, ...] = ("read", "write", "trim")

LONG = 5
"""Seconds from which on a trial has a course of its own."""


class Stay(NamedTuple):
    """A trial in the run: when (seconds since the first), and its seconds against the level of its cell and variant."""

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
    """The directions of which trials have seconds."""
    names = set(chain.from_iterable(trial.series for trial in trials))
    return tuple(kind for kind in KINDS if f"{kind}.iops" in names)


def stays(trials: Sequence[Trial], kind: Kind) -> list[Stay]:
    """Every trial with seconds of ``kind``, in the order of their starts."""
    own = sorted(
        (trial for trial in trials if _seconds(trial, kind)),
        key=lambda trial: trial.started,
    )
    means: dict[tuple[str, str], list[float]] = {}
    for trial in own:
        means.setdefault((trial.cell, trial.variant), []).append(
            fmean(_seconds(trial, kind))
        )
    levels = {arm: median(trial_means) for arm, trial_means in means.items()}
    first = min((trial.started for trial in trials), default=0.0)
    return [
        _stay(trial, _seconds(trial, kind), levels[trial.cell, trial.variant], first)
        for trial in own
        if levels[trial.cell, trial.variant] > 0
    ]


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
    """When background loads ran during trials; trials that follow each other under one load are one span."""
    own = sorted(trials, key=lambda trial: trial.started)
    first = own[0].started if own else 0.0
    spans: list[Span] = []
    before = None
    for trial in own:
        what = (
            " ".join(trial.background.command)
            if trial.background and trial.background.alive > 0
            else None
        )
        if what is not None:
            end = trial.started + trial.seconds - first
            joined = what == before
            spans[len(spans) - joined :] = [
                Span(spans[-1].start if joined else trial.started - first, end, what)
            ]
        before = what
    return spans


def course(trials: Iterable[Trial], kind: Kind) -> Iterator[Second]:
    """Second by second what trials did, as far as half of them lasted; nothing for short ones."""
    own = [seconds for trial in trials if (seconds := _seconds(trial, kind))]
    if not own or median(map(len, own)) < LONG:
        return
    for at, values in enumerate(zip_longest(*own)):
        known = [value for value in values if value is not None]
        if 2 * len(known) >= len(own):
            yield Second(
                at=at,
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
