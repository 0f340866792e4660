"""Steps in a series of experiments: candidates night by night, and the segments in hindsight.

All values are as in ``levels``: a point has a known error. Indices count points, not days, because a gap is not
evidence. The caller splits a series where something is known to have changed (another kernel configuration or disk).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from iodelta.stats import levels
from iodelta.stats.levels import Floats, Indices, Level, checked

CANDIDATE = 3.5
"""z of a candidate: enough for a fresh experiment of both builds, not for an alert by itself."""

REPORT = 4.5
"""z of a step that may be reported without one."""

SURE = 0.97
"""Posterior probability that a location set holds the first point after the step."""

CERTAIN = 0.99999
"""Probability that the wide set holds it: steps of hundreds of series are one step where all these sets meet."""

WARM_UP = 10
"""Points before the first candidate: with fewer, the scatter between nights is not known."""

INCIDENT = 5
"""A change that went away within so many points is an incident, not a step."""

SAME = 3.0
"""Levels closer than so many standard errors are one level."""

SHORT = 300
"""Points up to which a partition is exact."""

EXACT = 64
"""Points up to which all places are tried whatever they look like."""

LOOSE = 0.5
"""Share of the penalty from which on a place is tried: it may be worth more once others are taken."""

_ROUNDS = 10
_NOTHING = 1e-18


class Step(msgspec.Struct, frozen=True):
    """``at`` is the first point of the new level, between ``low`` and ``high``, and almost certainly between ``first``
    and ``last``; ``size`` is new less old level, with its standard ``error``. ``found`` is the point at which it was
    found."""

    at: int
    low: int
    high: int
    size: float
    error: float
    z: float
    found: int
    first: int
    last: int


class Incident(msgspec.Struct, frozen=True):
    """Points from ``at`` to before ``end`` lay ``size`` off a level that then came back."""

    at: int
    end: int
    size: float


class Segments(msgspec.Struct, frozen=True):
    """A whole series: ``levels`` of the segments that begin at ``starts``, the steps between them, and what was left
    out of them: incidents and the ``lone`` outliers that were drawn in."""

    starts: tuple[int, ...]
    levels: tuple[Level, ...]
    steps: tuple[Step, ...]
    incidents: tuple[Incident, ...]
    lone: tuple[int, ...]
    tau: float


def online(
    values: ArrayLike,
    errors: ArrayLike,
    *,
    threshold: float = REPORT,
    inflation: float = 1.0,
    starts: Sequence[int] = (0,),
    since: int = WARM_UP,
) -> tuple[Step, ...]:
    """Candidates as they are found when points arrive one by one: a candidate uses no point after ``found``.

    The generalised likelihood ratio of a step at any point since the last candidate, both levels unknown. After a
    candidate, the series goes on from its first point. With ``since``, only candidates of the points from then on,
    where segments are known to begin at ``starts`` before.
    """
    y, se = checked(values, errors)
    candidates: list[Step] = []
    first = max(since, WARM_UP)
    begins, tau = list(starts), levels.robust_between(y[:first], se[:first])
    clean = y.copy()
    if len(begins) > 1:
        known = numbered(begins, first)
        tau = levels.between(y[:first], se[:first], known)
        clean[:first] = levels.clipped(y[:first], se[:first], tau, known).values
    for now in range(first, len(y)):
        begin = begins[-1]
        if now == begin:
            continue
        seen = slice(begin, now + 1)
        outcome = levels.clipped(
            y[seen], se[seen], tau, np.zeros(now + 1 - begin, dtype=np.intp)
        )
        clean[seen] = outcome.values
        tau, z = _newest(clean[: now + 1], se[: now + 1], begins, tau, inflation)
        if z >= threshold:
            step = _step(clean[seen], se[seen], tau, inflation, outcome.lone, begin)
            candidates.append(msgspec.structs.replace(step, z=z))
            begins.append(step.at)
    return tuple(candidates)


def _newest(
    y: Floats, se: Floats, starts: Sequence[int], tau: float, inflation: float
) -> tuple[float, float]:
    """Return the scatter between nights inside both parts of the best split of the last segment, and z of that split."""
    begin, n = starts[-1], len(y)
    split = begin + int(np.argmax(np.abs(_scores(y[begin:], se[begin:], tau)))) + 1
    tau = levels.between(y, se, numbered([*starts, split], n))
    z = float(np.max(np.abs(_scores(y[begin:], se[begin:], tau, inflation))))
    # An estimated scatter only makes z smaller, and most nights are no candidates as it is.
    if z < CANDIDATE:
        return tau, z
    return tau, _as_known(z, se, tau, n - len(starts) - 1, inflation)


def _as_known(z: float, se: Floats, tau: float, spare: int, inflation: float) -> float:
    """z as if the scatter between nights were known. It was estimated from ``spare`` points, but the errors are known,
    so a scale of both has more degrees of freedom.

    Each mean of correlated nights costs more than one degree of freedom, but their squares are less correlated than the
    nights. Assumption: AR(1) with the correlation phi, for which inflation is (1 + phi) / (1 - phi), and that of
    squares (1 + phi^2) / (1 - phi^2).
    """
    left = len(se) - (len(se) - spare) * inflation
    share = tau**2 / (tau**2 + float(np.mean(se**2)) + levels.RESOLUTION**2)
    of_squares = (inflation**2 + 1.0) / (2.0 * inflation)
    return levels.as_normal(
        _unbiased(z, len(se), spare, inflation), left / max(share**2, 1e-9) / of_squares
    )


def _unbiased(z: float, points: int, spare: int, inflation: float) -> float:
    """z relative to the true scatter between nights: the scatter about the means of correlated nights is smaller."""
    left = points - (points - spare) * inflation
    if left >= 1.0:
        return z * math.sqrt(left / spare)
    return 0.0


def _scores(y: Floats, se: Floats, tau: float, inflation: float = 1.0) -> Floats:
    """z of a step before each point but the first."""
    w = levels.weights(se, tau, inflation)
    sums, moments = np.cumsum(w), np.cumsum(w * (y - y.mean()))
    left, right = sums[:-1], sums[-1] - sums[:-1]
    difference = (moments[-1] - moments[:-1]) / right - moments[:-1] / left
    return np.asarray(difference * np.sqrt(left * right / sums[-1]))


def _step(
    y: Floats,
    se: Floats,
    tau: float,
    inflation: float,
    lone: Collection[int],
    offset: int = 0,
) -> Step:
    """Return the most likely step among points that hold one, and the set of its possible places."""
    z = _scores(y, se, tau, inflation)
    at = int(np.argmax(np.abs(z))) + 1
    old, new = (
        levels.level(y[part], se[part], tau, inflation)
        for part in (slice(0, at), slice(at, None))
    )
    low, high = _vouched(location(z), lone, len(y))
    first, last = _vouched(location(z, CERTAIN), lone, len(y))
    return Step(
        at=offset + at,
        low=offset + low,
        high=offset + high,
        size=new.value - old.value,
        error=math.hypot(old.error, new.error),
        z=float(abs(z[at - 1])),
        found=offset + len(y) - 1,
        first=offset + first,
        last=offset + last,
    )


def location(z: ArrayLike, sure: float = SURE) -> tuple[int, int]:
    """First and last possible first point of the new level, from z of a step before each point but the first: the
    smallest set of places that holds ``sure`` of the likelihood, all places being as likely before."""
    score = np.asarray(z, dtype=float)
    likelihood = np.exp(0.5 * (score**2 - np.max(score**2)))
    order = np.argsort(-likelihood, kind="stable")
    held = np.cumsum(likelihood[order])
    needed = int(np.searchsorted(held, sure * held[-1])) + 1
    places = order[: min(needed, len(order))]
    return int(places.min()) + 1, int(places.max()) + 1


def _vouched(
    places: tuple[int, int], lone: Collection[int], points: int
) -> tuple[int, int]:
    """Return the places up to points that were not drawn in: such a point says neither that the step was before it nor
    that it was not, as where two steps are a point apart."""
    low, high = places
    while low > 1 and low - 1 in lone:
        low -= 1
    while high < points - 1 and high in lone:
        high += 1
    return low, high


def partition(values: ArrayLike, weights: ArrayLike, penalty: float) -> tuple[int, ...]:
    """Starts of the segments that minimise the weighted squares about their means plus ``penalty`` for each further
    segment: exactly up to ``SHORT`` points, by optimal partitioning (Jackson et al. 2005). Longer series may begin a
    segment only where seeded segmentation saw something, and each such place is then moved to where it fits best, so
    that their cost grows with their length and not with its square."""
    y, w = np.asarray(values, dtype=float), np.asarray(weights, dtype=float)
    n = len(y)
    if not n:
        return ()
    y = y - float(w @ y / w.sum())
    sums, moments = (
        np.concatenate([[0.0], np.cumsum(column)]) for column in (w, w * y)
    )
    is_long = n > SHORT
    places = _seeded(sums, moments, penalty * LOOSE)
    if n > EXACT and not places:
        return (0,)
    if not is_long:
        return _best_of(np.arange(n + 1), sums, moments, penalty)
    while True:
        starts = _best_of(np.array([0, *places, n]), sums, moments, penalty)
        bounds = [*starts, n]
        for number in range(1, len(starts)):
            first, end = bounds[number - 1], bounds[number + 1]
            moment, weight = (
                moments[first + 1 : end] - moments[first],
                sums[first + 1 : end] - sums[first],
            )
            rest, others = (
                moments[end] - moments[first] - moment,
                sums[end] - sums[first] - weight,
            )
            bounds[number] = (
                first + 1 + int(np.argmax(moment**2 / weight + rest**2 / others))
            )
        if set(bounds[1:-1]) <= set(places):
            return starts
        places = sorted({*places, *bounds[1:-1]})


def _seeded(sums: Floats, moments: Floats, worth: float) -> list[int]:
    """Places at which a segment may begin, from the sums of weights and of weighted values up to each point: of each
    part the best split that is ``worth`` it, or else the interval that stands out most from it, then the same in what
    is left. Intervals have lengths that grow by a seventh (seeded binary segmentation, Kovacs et al. 2023)."""
    places: list[int] = []
    parts = [(0, len(sums) - 1)]
    while parts:
        first, end = parts.pop()
        if end - first < 2:
            continue
        weight = sums[first : end + 1] - sums[first]
        moment = moments[first : end + 1] - moments[first]
        whole = weight[-1]
        apart = moment - weight * (moment[-1] / whole)
        gain = apart[1:-1] ** 2 * whole / (weight[1:-1] * (whole - weight[1:-1]))
        split = int(gain.argmax())
        most, length, begin, until = 0.0, 1, 0, 0
        while length < end - first - 1:
            inside = weight[length:] - weight[:-length]
            stands = (
                (apart[length:] - apart[:-length]) ** 2
                * whole
                / (inside * (whole - inside))
            )
            at = int(stands.argmax())
            if stands[at] > most:
                most, begin, until = float(stands[at]), at, at + length
            length += 1 + length // 7
        cuts: list[int] = []
        if gain[split] > worth and 2.0 * gain[split] > most:
            cuts = [first + split + 1]
        elif most > 2.0 * worth:
            cuts = [first + cut for cut in (begin, until) if 0 < cut < end - first]
        places += cuts
        if cuts:
            parts += itertools.pairwise([first, *cuts, end])
    return sorted(places)


def _best_of(
    places: Indices, sums: Floats, moments: Floats, penalty: float
) -> tuple[int, ...]:
    """Return the best starts among ``places``, which begin with 0 and end with the number of points."""
    sums, moments = sums[places], moments[places]
    cost, last = np.full(len(places), -penalty), [0] * len(places)
    for end in range(1, len(places)):
        span = moments[end] - moments[:end]
        span *= span
        span /= sums[end] - sums[:end]
        np.subtract(cost[:end], span, out=span)
        last[end] = int(span.argmin())
        cost[end] = span[last[end]] + penalty
    starts, end = [], len(places) - 1
    while end:
        end = last[end]
        starts.append(int(places[end]))
    return tuple(reversed(starts))


def penalty(points: int) -> float:
    """Return what a further segment must explain: as much as a reported step, and more in a long series, where more
    places are tried."""
    return max(REPORT**2, 3.0 * math.log(max(points, 2)))


def segments(
    values: ArrayLike, errors: ArrayLike, *, inflation: float = 1.0
) -> Segments:
    """Return the segments of a whole series. The scatter between nights begins at that about one level, which steps
    only make larger, and is taken again inside the segments found, until they stay."""
    y, se = checked(values, errors)
    if not len(y):
        return Segments((), (), (), (), (), 0.0)
    tau, clean = levels.robust_between(y, se), y
    starts: tuple[int, ...] = (0,)
    lone: tuple[int, ...] = ()
    for _ in range(_ROUNDS):
        outcome = levels.clipped(y, se, tau, numbered(starts, len(y)))
        clean, lone = np.asarray(outcome.values), outcome.lone
        parts = partition(clean, levels.weights(se, tau, inflation), penalty(len(y)))
        now = levels.between(clean, se, numbered(parts, len(y)))
        settled = parts == starts and math.isclose(
            now, tau, rel_tol=1e-3, abs_tol=levels.RESOLUTION
        )
        tau, starts = now, parts
        if settled:
            hidden = _hidden(clean, se, starts, tau, inflation)
            if hidden is None:
                break
            tau = hidden
    inside, incidents = _without_incidents(clean, se, tau, inflation, starts)
    levels_found, steps = [], []
    for number, points in enumerate(inside):
        levels_found.append(levels.level(clean[points], se[points], tau, inflation))
        if number:
            both = np.concatenate([inside[number - 1], points])
            # The step before point ``at`` among the points ``both`` of the two segments it lies between.
            at = int(points[0])
            z = _scores(clean[both], se[both], tau, inflation)
            place = int(np.searchsorted(both, at))
            old, new = (
                levels.level(clean[part], se[part], tau, inflation)
                for part in (both[:place], both[place:])
            )
            drawn = {place for place, point in enumerate(both) if point in lone}
            low, high = _vouched(location(z), drawn, len(both))
            first, last = _vouched(location(z, CERTAIN), drawn, len(both))
            steps.append(
                Step(
                    at=at,
                    low=int(both[low]),
                    high=int(both[high]),
                    size=new.value - old.value,
                    error=math.hypot(old.error, new.error),
                    z=float(abs(z[place - 1])),
                    found=int(both[-1]),
                    first=int(both[first]),
                    last=int(both[last]),
                )
            )
    return Segments(
        tuple(int(points[0]) for points in inside),
        tuple(levels_found),
        tuple(steps),
        tuple(incidents),
        lone,
        tau,
    )


def _hidden(
    y: Floats, se: Floats, starts: tuple[int, ...], tau: float, inflation: float
) -> float | None:
    """Return the scatter between nights, where one more split makes it so much smaller that this split is a step: a
    step that was taken for scatter hides itself. None where there is none."""
    n = len(y)
    for begin, end in itertools.pairwise([*starts, n]):
        if end - begin < 2:
            continue
        part = slice(begin, end)
        split = begin + int(np.argmax(np.abs(_scores(y[part], se[part], tau)))) + 1
        inside = levels.between(y, se, numbered(sorted([*starts, split]), n))
        z = float(np.max(np.abs(_scores(y[part], se[part], inside, inflation))))
        if inside >= tau or z < math.sqrt(penalty(n)):
            continue
        spare = n - len(starts) - 1
        known = _as_known(z, se, inside, spare, inflation)
        if known < math.sqrt(penalty(n)) <= _unbiased(z, n, spare, inflation):
            known = _by_neighbours(y[part], se[part], inside, split - begin, inflation)
        if known >= math.sqrt(penalty(n)):
            return inside
    return None


def _by_neighbours(
    y: Floats, se: Floats, tau: float, at: int, inflation: float
) -> float:
    """z of a step before point ``at`` among nights that each resemble the one before: AR(1) with the correlation that
    ``inflation`` implies. What is new in each night is as many values as there are nights, and gives their scatter
    where long runs of alike nights are too few to give one."""
    phi = (inflation - 1.0) / (inflation + 1.0)
    scaled = np.sqrt(levels.weights(se, tau))
    columns = (
        np.column_stack([np.ones(len(y)), np.arange(len(y)) >= at, y]) * scaled[:, None]
    )
    fresh = columns[1:] - phi * columns[:-1]
    design, seen = fresh[:, :2], fresh[:, 2]
    inverse = np.linalg.pinv(design.T @ design)
    fitted = inverse @ design.T @ seen
    spare = len(seen) - 2
    if spare < 1:
        return 0.0
    variance = max(float(np.sum((seen - design @ fitted) ** 2)) / spare, _NOTHING)
    return levels.as_normal(
        float(fitted[1]) / math.sqrt(variance * inverse[1, 1]), spare
    )


def numbered(starts: Sequence[int], points: int) -> Indices:
    """Return the segment of each point, from 0."""
    return np.asarray(
        np.searchsorted(np.asarray(starts), np.arange(points), side="right") - 1
    )


def _without_incidents(
    y: Floats, se: Floats, tau: float, inflation: float, starts: tuple[int, ...]
) -> tuple[list[Indices], list[Incident]]:
    """Return the points of each segment, with those joined that an incident alone keeps apart."""
    bounds = [*starts, len(y)]
    parts = [np.arange(first, last) for first, last in itertools.pairwise(bounds)]
    kept, incidents = [parts[0]], []
    number = 1
    while number < len(parts):
        middle, after = (
            parts[number],
            parts[number + 1] if number + 1 < len(parts) else None,
        )
        if (
            after is not None
            and len(middle) <= INCIDENT
            and _same(y, se, tau, inflation, kept[-1], after)
        ):
            kept[-1] = np.concatenate([kept[-1], after])
            size = (
                levels.level(y[middle], se[middle], tau).value
                - levels.level(y[kept[-1]], se[kept[-1]], tau).value
            )
            incidents.append(Incident(int(middle[0]), int(middle[-1]) + 1, size))
            number += 2
        else:
            kept.append(middle)
            number += 1
    return kept, incidents


def _same(
    y: Floats, se: Floats, tau: float, inflation: float, before: Indices, after: Indices
) -> bool:
    old, new = (
        levels.level(y[part], se[part], tau, inflation) for part in (before, after)
    )
    return abs(new.value - old.value) < SAME * math.hypot(old.error, new.error)
