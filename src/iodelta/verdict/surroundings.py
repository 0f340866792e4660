"""Surroundings: what ran before each trial, on its host and in its block, which the trial does not record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from iodelta.stats.carry import MEMORIES
from iodelta.trial import Trial

NONE, ONE = (0.0,) * len(MEMORIES), (1.0,) * len(MEMORIES)

Counts = Mapping[str, tuple[float, ...]]
"""By variant a decayed count of its trials, one for each memory."""

PAUSE = 600.0
"""Assumption: after this many seconds without a trial (another session) nothing is left of earlier trials."""


class Surroundings(msgspec.Struct, frozen=True):
    """What the trials of one cell do not record: ``before`` has, by trial number, how many trials of each
    variant ran before on the same host, in any cell, decayed by each of ``stats.carry.MEMORIES``; ``conditioning`` the
    trials of superblocks that do not count, by block and variant; ``arms`` how many variants a block has."""

    before: Mapping[int, Counts] = {}
    conditioning: Mapping[int, Mapping[str, Sequence[Trial]]] = {}
    arms: int = 2


NOTHING = Surroundings()


def surroundings_of(
    trials: Iterable[Trial], hosts: Mapping[int, str] | None = None
) -> dict[str, Surroundings]:
    """Return the surroundings of every cell, from all trials of an experiment. ``hosts`` may name those of other
    trials, too: a trial that does not count ran before the next one all the same."""
    ordered = sorted(trials, key=lambda trial: trial.number)
    counts = _counts(ordered, _places([trial.number for trial in ordered], hosts or {}))
    arms = len({trial.variant for trial in ordered})
    before: dict[str, dict[int, Counts]] = {}
    conditioning: dict[str, dict[int, dict[str, list[Trial]]]] = {}
    for trial in ordered:
        before.setdefault(trial.cell, {})[trial.number] = counts[trial.number]
        if trial.conditioning:
            by_variant = conditioning.setdefault(trial.cell, {}).setdefault(
                trial.block, {}
            )
            by_variant.setdefault(trial.variant, []).append(trial)
    return {
        cell: Surroundings(found, conditioning.get(cell, {}), arms)
        for cell, found in before.items()
    }


def _places(
    numbers: Sequence[int], hosts: Mapping[int, str]
) -> dict[int, tuple[str, int]]:
    """By trial number its host and its place in the order of all trials on that host."""
    if len(set(hosts.values())) < 2:
        return {number: ("", number) for number in numbers}
    places: dict[int, tuple[str, int]] = {}
    done: Counter[str] = Counter()
    for number in sorted({*numbers, *hosts}):
        host = hosts.get(number, "")
        done[host] += 1
        places[number] = (host, done[host])
    return places


def _counts(
    ordered: Sequence[Trial], places: Mapping[int, tuple[str, int]]
) -> dict[int, Counts]:
    """By trial number, the decayed counts of the trials before it on its host. What ran at a missing place is not
    known; a pause ends what was left."""
    counts: dict[int, Counts] = {}
    last: dict[str, Trial] = {}
    for trial in ordered:
        host, place = places[trial.number]
        previous = last.get(host)
        if (
            previous is None
            or trial.started - previous.started - previous.seconds > PAUSE
        ):
            counts[trial.number] = {}
        else:
            # Two trials of one number, which only a damaged folder has, count as neighbours.
            steps = max(1, place - places[previous.number][1])
            counts[trial.number] = _later(
                counts[previous.number], previous.variant, steps
            )
        last[host] = trial
    return counts


def _later(counts: Counts, variant: str, steps: int) -> Counts:
    """Return the counts of a trial ``steps`` places after one of ``variant`` that had ``counts``."""
    decayed = {name: _decayed(own, steps) for name, own in counts.items()}
    last = zip(decayed.get(variant, NONE), _decayed(ONE, steps - 1), strict=True)
    decayed[variant] = tuple([before + extra for before, extra in last])
    return decayed


def _decayed(counts: tuple[float, ...], steps: int) -> tuple[float, ...]:
    """``counts`` after so many places."""
    return tuple(
        [memory**steps * count for memory, count in zip(MEMORIES, counts, strict=True)]
    )
