"""How much of a change each of several patches explains, alone and together, from blocks over on/off combinations.

Input is one value per combination and block: the logarithm of a metric, higher is worse. Levels of combinations are
fitted with an effect of every block (blocks need not hold the same combinations), so drift between blocks cancels.
Every figure is a difference between levels of combinations that were run; its interval and its p value come from one t
statistic, both for all figures at once (Bonferroni).

The design begins with none, each patch alone, all but one, and all. What these leave unexplained is looked for by group
testing: patches whose removal ends the effect are run by themselves, then halves of the rest, until the smallest group
that has the effect is known. A group is named only if it has the effect and loses it without any of its members, so an
innocent patch never rides along.
Sources: Harsanyi 1963 (dividends); Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002; the
choice of the design: benchmarks/bisect/patches.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
import numpy as np

from iodelta.stats.effect import Estimate, Floats
from iodelta.stats.special import stdtr, stdtrit

FULL = 3
"""Up to so many patches every combination is run from the start."""

LEVEL = 0.05
"""Family-wise level of intervals."""

SURE = 0.01
"""Family-wise level at which an effect is named: whoever wrote the patch is asked to explain it."""

CARRIES = 1 / 3
"""A smaller combination still has an effect if it has this share of it."""

CLEAR = 6.0
"""Standard errors that an effect must have to be looked into: then a third of it can be distinguished."""

DOUBT = 1.5
"""Standard errors below which a smaller group is not thought to have the effect."""

FAR = 5.0
"""Robust standard deviations from its fitted value at which a run is winsorised."""

_NIL = 1e-9

Subset = tuple[int, ...]
Block = Mapping[Subset, float]


class Step(msgspec.Struct, frozen=True):
    """The effect of switching ``patches`` (numbers from 0) on where ``over`` are already on. ``p`` is two-sided, for
    all figures at once; ``named``: significant and at least as large as the margin."""

    patches: Subset
    over: Subset
    effect: Estimate
    p: float
    named: bool


class Term(msgspec.Struct, frozen=True):
    """The effect of ``patches`` together beyond the groups among them that have one of their own.

    ``fresh``: those of them that no smaller combination has. ``over``: the rest, where there are fresh ones and the
    rest was run by itself; then the effect is that of switching the fresh ones on over it. ``together``: against none
    at all, or the smallest combination there is. ``named``: beyond doubt, as large as the margin, and gone without any
    one of the patches.
    """

    patches: Subset
    fresh: Subset
    over: Subset | None
    effect: Estimate
    together: Estimate
    p: float
    named: bool
    needed: bool = False
    """The fresh ones were never run without all of ``over``."""


class Unexplained(msgspec.Struct, frozen=True):
    """An effect of a combination that no group explains yet, and the combinations to run next."""

    patches: Subset
    size: float
    error: float
    runs: tuple[Subset, ...]


class Attribution(msgspec.Struct, frozen=True):
    """What is known of every patch and of groups of them. Logarithms, positive is worse."""

    terms: tuple[Term, ...]
    """Single patches and groups of which all that is smaller was run; the largest effect first."""
    alone: tuple[Step | None, ...]
    """Of every patch with as little else as was run; None where it was never switched."""
    last: tuple[Step | None, ...]
    """Of every patch on top of as much else as was run."""
    shares: tuple[Estimate | None, ...]
    """Shapley's; None where it is not known."""
    whole: Estimate | None
    """All patches against none, at 95 % by itself."""
    rest: Estimate | None
    """What the named terms leave of the whole."""
    least: Subset
    """The patches that were on in every run."""
    blocks: int
    open: Unexplained | None = None
    """What is to be run next to explain an effect; None when all effects are explained, or nothing can be run."""


def combinations(patches: int) -> tuple[Subset, ...]:
    """Return the combinations to begin with, each as the patches that are on. Raises ValueError for no patch."""
    if patches < 1:
        raise ValueError("nothing to attribute anything to")
    sizes = range(patches + 1) if patches <= FULL else (0, 1, patches - 1, patches)
    return tuple(
        itertools.chain.from_iterable(
            itertools.combinations(range(patches), size) for size in sizes
        )
    )


def instead(
    runs: Sequence[Subset], failed: Collection[Subset], patches: int
) -> tuple[Subset, ...]:
    """Return combinations, not among ``runs``, that replace those that ``failed``, guessed from the failures.

    A patch seems to need another when no successful run had it without that one, and a failed run did. Patches that a
    small combination needs are added; patches that need what a large one lacks are removed. Patches have an order, so
    needs of earlier patches only are tried first.
    """
    wanted = _needs([run for run in runs if run not in failed], failed, patches)
    earlier = {patch: needed & set(range(patch)) for patch, needed in wanted.items()}
    subsets: dict[Subset, None] = {}
    for run in failed:
        for needs in (earlier, wanted):
            if len(run) <= patches / 2:
                subset = tuple(sorted(set(run).union(*(needs[i] for i in run))))
            else:
                subset = tuple(i for i in run if needs[i] <= set(run))
            if subset not in runs:
                subsets[subset] = None
                break
    return tuple(subsets)


def _needs(
    sound: Sequence[Subset], broken: Collection[Subset], patches: int
) -> dict[int, set[int]]:
    """Return the patches that each seems to need: no sound run had it without them, and a broken one did."""
    needs: dict[int, set[int]] = {}
    for patch in range(patches):
        with_it = [set(run) for run in sound if patch in run]
        always = set.intersection(*with_it) if with_it else set()
        failing = [run for run in broken if patch in run]
        needs[patch] = always - {patch} - set(range(patches)).intersection(*failing)
    return needs


def attribute(
    patches: int,
    blocks: Sequence[Block],
    failed: Collection[Subset] = (),
    *,
    margin: float = 0.0,
) -> Attribution:
    """Split the whole change by blocks of values; ``failed`` combinations cannot be run.

    Raises ValueError below two blocks or two combinations.
    """
    fit = _Fit(blocks, 4 * patches)
    runs, column, least = fit.runs, fit.column, fit.least
    needs = _needs(runs, failed, patches)
    everything = tuple(range(patches))

    def without(run: Subset, taken: Collection[int]) -> Subset:
        """Take patches away, and those that need them."""
        left = set(run) - set(taken)
        while lost := {i for i in left if not needs[i] & set(run) <= left}:
            left -= lost
        return tuple(sorted(left | set(least)))

    def smaller(run: Subset) -> dict[int, Subset]:
        return {i: without(run, {i}) for i in run if i not in least}

    def difference(run: Subset, other: Subset) -> Floats:
        weights = np.zeros(len(runs))
        weights[column[run]] += 1
        weights[column[other]] -= 1
        return weights

    # From small to large: a combination that was run has an effect of its own if what it has beyond the groups inside
    # it is certain, and goes away without any one of its patches.
    own: dict[Subset, Floats] = {}
    beyond: dict[Subset, Floats] = {}
    complete: list[Subset] = []
    for run in sorted(runs, key=lambda run: (len(run), run)) if least in column else ():
        inside = [weights for group, weights in own.items() if set(group) <= set(run)]
        beyond[run] = difference(run, least) - sum(inside, np.zeros(len(runs)))
        below = set(smaller(run).values())
        if run == least or not below <= {*runs, *failed}:
            continue
        complete.append(run)
        size = fit.size(beyond[run])
        if fit.sure(beyond[run]) and all(
            fit.sure(beyond[run] - beyond[part])
            and not (
                fit.sure(beyond[part])
                and abs(fit.size(beyond[part])) >= CARRIES * abs(size)
            )
            for part in below & set(runs)
        ):
            own[run] = beyond[run]
            beyond[run] = np.zeros(len(runs))
    # A combination that came out high by chance is contradicted by the others with the same patches.
    sound = (
        {
            group
            for group, sure in zip(own, fit.confirmed(list(own)), strict=True)
            if sure
        }
        if own
        else set()
    )
    terms = []
    for run in complete:
        # All patches but one are complete by design; what they do beyond single patches is not a group's effect.
        if run not in own and patches > FULL and len(run) > patches / 2:
            continue
        weights = own.get(run, beyond[run])
        before = tuple(
            sorted(
                set[int]().union(
                    *(set(other) for other in runs if set(other) < set(run))
                )
            )
        )
        fresh = tuple(i for i in run if i not in before)
        over = before if fresh and before in column else None
        named = run in sound and abs(fit.size(weights)) >= margin
        needed = over is not None and all(
            set(over) <= set(other) for other in runs if set(fresh) <= set(other)
        )
        together = fit.estimate(difference(run, least))
        terms.append(
            Term(
                run,
                fresh,
                over,
                fit.estimate(weights),
                together,
                fit.p(weights),
                named,
                needed,
            )
        )
    terms.sort(key=lambda term: -abs(term.effect.value))

    def step(patch: int, sign: int) -> Step | None:
        """Switch as few as possible over as little as possible (``sign`` 1), or as much (-1)."""
        pairs = [
            (run, other)
            for run, other in itertools.product(runs, runs)
            if patch in run and patch not in other and set(other) < set(run)
        ]
        if not pairs:
            return None
        run, other = min(
            pairs,
            key=lambda pair: (len(pair[0]) - len(pair[1]), sign * len(pair[1]), pair),
        )
        weights = difference(run, other)
        named = fit.sure(weights) and abs(fit.size(weights)) >= margin
        return Step(
            tuple(i for i in run if i not in other),
            other,
            fit.estimate(weights),
            fit.p(weights),
            named,
        )

    whole = difference(everything, ()) if {(), everything} <= set(runs) else None
    explained = sum(
        (own[term.patches] for term in terms if term.named), np.zeros(len(runs))
    )
    open_ = _open(fit, beyond, own, complete, smaller, without, needs, failed, margin)
    # A patch has an even part of the effect of every group that it is in; known where groups explain the whole.
    dividends = own
    if patches <= FULL and len(runs) == 2**patches:
        dividends = {}
        for run in sorted(runs, key=len):
            if run:
                inside = [
                    weights
                    for group, weights in dividends.items()
                    if set(group) < set(run)
                ]
                dividends[run] = difference(run, ()) - sum(inside, np.zeros(len(runs)))
    known = (
        whole is not None
        and not failed
        and (
            dividends is not own or (open_ is None and not fit.sure(whole - explained))
        )
    )
    shares = [
        sum(
            (
                weights / len(group)
                for group, weights in dividends.items()
                if patch in group
            ),
            np.zeros(len(runs)),
        )
        for patch in everything
    ]
    return Attribution(
        terms=tuple(terms),
        alone=tuple(step(patch, 1) for patch in everything),
        last=tuple(step(patch, -1) for patch in everything),
        shares=tuple(fit.estimate(share) if known else None for share in shares),
        whole=None if whole is None else fit.estimate(whole, single=True),
        rest=None
        if whole is None or not terms
        else fit.estimate(whole - explained, single=True),
        least=least,
        blocks=len(blocks),
        open=open_,
    )


def _open(
    fit: _Fit,
    beyond: Mapping[Subset, Floats],
    own: Collection[Subset],
    complete: Sequence[Subset],
    smaller: Callable[[Subset], dict[int, Subset]],
    without: Callable[[Subset, Collection[int]], Subset],
    needs: Mapping[int, set[int]],
    failed: Collection[Subset],
    margin: float,
) -> Unexplained | None:
    """Return the unexplained effect to look into next, with the combinations that tell most about it."""
    tried = {*fit.runs, *failed}
    unexplained = [
        run
        for run, weights in beyond.items()
        if run not in own
        and fit.sure(weights)
        and abs(fit.size(weights)) >= max(margin, _NIL)
    ]
    missing = {
        run: [part for part in smaller(run).values() if part not in tried]
        for run in unexplained
    }
    # A smaller group that may be it is run more often, until that is known.
    for run in unexplained:
        size = fit.size(beyond[run])
        likely = {
            group: abs(fit.size(beyond[group]))
            for group in complete
            if group not in own
            and set(group) < set(run)
            and max(CARRIES * abs(size), DOUBT * fit.error(beyond[group]))
            <= abs(fit.size(beyond[group]))
            < CLEAR * fit.error(beyond[group])
        }
        if likely:
            group = max(likely, key=lambda group: likely[group])
            parts = (part for part in smaller(group).values() if part in fit.column)
            return Unexplained(
                run, size, fit.error(beyond[run]), tuple(dict.fromkeys((group, *parts)))
            )
    # Where all that is smaller by one is known, the smallest first; else where it is soonest known.
    for run in sorted(
        unexplained,
        key=lambda run: (bool(missing[run]), len(run), len(missing[run]), run),
    ):
        size = fit.size(beyond[run])
        wanted = missing[run]
        if not wanted:
            ends = [
                i
                for i, part in smaller(run).items()
                if part not in beyond
                or abs(fit.size(beyond[part])) < CARRIES * abs(size)
            ]
            core = tuple(
                sorted(set(ends).union(fit.least, *(needs[i] & set(run) for i in ends)))
            )
            wanted = [core, *smaller(core).values()]
            if core in tried:
                rest = [i for i in run if i not in core]
                halves = (rest[: len(rest) // 2], rest[len(rest) // 2 :])
                wanted = [without(run, half) for half in halves if half]
        if fresh := tuple(dict.fromkeys(part for part in wanted if part not in tried)):
            return Unexplained(run, size, fit.error(beyond[run]), fresh)
    return None


class _Fit:
    """Levels of combinations by least squares with block effects, and tests of differences between them."""

    def __init__(self, blocks: Sequence[Block], figures: int) -> None:
        self.runs: tuple[Subset, ...] = tuple(
            dict.fromkeys(itertools.chain.from_iterable(blocks))
        )
        if len(blocks) < 2 or len(self.runs) < 2:
            raise ValueError(
                "an interval needs at least two blocks and two combinations"
            )
        self.column = {run: n for n, run in enumerate(self.runs)}
        self.least: Subset = tuple(sorted(set(self.runs[0]).intersection(*self.runs)))
        """The patches that were on in every run."""
        self._figures = figures
        where = [np.array([self.column[run] for run in block]) for block in blocks]
        values = [np.array(list(block.values()), dtype=float) for block in blocks]
        size = len(self.runs)
        normal = np.zeros((size, size))
        for at in where:
            normal[at, at] += 1.0
            normal[np.ix_(at, at)] -= 1.0 / len(at)
        self._normal = normal
        self._covariance = np.linalg.pinv(normal, hermitian=True)
        self._freedom = max(
            1,
            sum(map(len, values))
            - len(blocks)
            - int(np.linalg.matrix_rank(normal, hermitian=True)),
        )
        for again in (*[True] * 8, False):
            right = np.zeros(size)
            for at, of_block in zip(where, values, strict=True):
                right[at] += of_block - of_block.mean()
            self._levels = self._covariance @ right
            left = [
                (of_block - self._levels[at]) - (of_block - self._levels[at]).mean()
                for at, of_block in zip(where, values, strict=True)
            ]
            # One run that was starved of CPU must not outweigh ten others; none is left out.
            apart = np.abs(np.concatenate(left))
            reach = (
                FAR
                * float(np.median(apart))
                / 0.6745
                * math.sqrt(len(apart) / self._freedom)
            )
            if again and reach > _NIL:
                values = [
                    of_block - (away - np.clip(away, -reach, reach))
                    for of_block, away in zip(values, left, strict=True)
                ]
        self._variance = float(sum(away @ away for away in left)) / self._freedom
        if self._variance < _NIL**2:
            self._variance = 0.0

    def size(self, weights: Floats) -> float:
        return float(weights @ self._levels)

    def error(self, weights: Floats) -> float:
        return math.sqrt(
            max(0.0, self._variance * float(weights @ self._covariance @ weights))
        )

    def confirmed(self, groups: Sequence[Subset]) -> list[bool]:
        """Return which groups are still certain in a model of just these groups, by all combinations together."""
        has = np.array(
            [[set(group) <= set(run) for group in groups] for run in self.runs],
            dtype=float,
        )
        inverse = np.linalg.pinv(has.T @ self._normal @ has, hermitian=True)
        sizes = inverse @ has.T @ self._normal @ self._levels
        errors = np.sqrt(np.maximum(0.0, self._variance * np.diag(inverse)))
        return [
            self._tail(abs(float(size)), float(error)) <= SURE
            for size, error in zip(sizes, errors, strict=True)
        ]

    def p(self, weights: Floats) -> float:
        """Two-sided, for all figures at once."""
        return self._tail(abs(self.size(weights)), self.error(weights))

    def _tail(self, size: float, error: float) -> float:
        if not error:
            return 1.0 if size < _NIL else 0.0
        return min(1.0, self._figures * 2 * float(stdtr(self._freedom, -size / error)))

    def sure(self, weights: Floats) -> bool:
        return self.p(weights) <= SURE

    def estimate(self, weights: Floats, *, single: bool = False) -> Estimate:
        """With the interval that excludes zero exactly if ``p`` is below the level; by itself if ``single``."""
        size, tail = self.size(weights), LEVEL / 2 / (1 if single else self._figures)
        half = self.error(weights) * float(stdtrit(self._freedom, 1 - tail))
        return Estimate(size, size - half, size + half, 1 - LEVEL, len(self._levels))
