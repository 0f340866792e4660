"""How much of a change each of several patches explains, alone and together, from blocks over on/off combinations.

Input is one value per combination and block: the logarithm of a metric, higher is worse. Every number is a difference
between levels of combinations that were run, estimated within each block, so drift between blocks cancels; its
interval is that of the mean over blocks.

Up to four patches all 2^k combinations are run, and levels are taken as measured. Up to eight the design has none,
every single one, every pair, all but one, and all; above, the pairs are left out. There the levels are smoothed by the
model that such a design can hold, single effects and pairs (above eight: single effects), but only while the runs that
it has to spare do not contradict that model. If they do, levels are taken as measured.

From levels follow: what a patch does alone, on top of the others, and all together; and what every combination adds
beyond all smaller ones that were run (Harsanyi's dividends, the Moebius transform over the existing combinations). The
dividend of a combination that could not be run merges with that of the next larger one: nothing is assigned to a patch
that was never switched by itself. A patch's Shapley share is the mean of what it adds over all orders of applying the
patches, given only if all combinations for it were run.
Sources: Harsanyi 1963; Box, Hunter and Hunter, Statistics for Experimenters, 2nd ed., chapters 5 and 6; the choice of
the design: benchmarks/bisect/designs.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
import numpy as np

from iodelta.stats.effect import Estimate, Floats, mean_t_rows
from iodelta.stats.families import holm
from iodelta.stats.special import fdtrc, stdtr

FULL = 4
"""Up to so many patches every combination is run."""

PAIRS = 8
"""Up to so many patches every pair is run."""

SURE = 0.05
"""Family-wise level at which an effect is named."""

MISFIT = 0.05
"""Level of the test of the model by the spare runs."""

_NIL = 1e-9

Subset = tuple[int, ...]


class Step(msgspec.Struct, frozen=True):
    """The effect of switching ``patches`` (numbers from 0) on where ``over`` are already on. ``p`` is two-sided, after
    Holm over all steps of its kind; ``named``: significant and at least as large as the margin."""

    patches: Subset
    over: Subset
    effect: Estimate
    p: float
    named: bool


class Term(msgspec.Struct, frozen=True):
    """The effect of ``patches`` together beyond all smaller groups of them that were run.

    ``fresh``: those of them that no smaller group has. ``over``: the rest, where there are fresh ones and the rest was
    run by itself; then the effect is that of switching the fresh ones on over it. ``together``: against none at all, or
    the smallest combination there is. ``p`` is two-sided, after Holm over all terms; ``named``: beyond doubt and as
    large as the margin.
    """

    patches: Subset
    fresh: Subset
    over: Subset | None
    effect: Estimate
    together: Estimate
    p: float
    named: bool
    needed: bool = False
    """Whether the fresh ones were never run without all of ``over``."""


class Attribution(msgspec.Struct, frozen=True):
    """What is known of every patch and of groups of them. Logarithms, positive is worse."""

    terms: tuple[Term, ...]
    """The largest first."""
    alone: tuple[Step | None, ...]
    """Of every patch with as little else as was run; None where it was never switched."""
    last: tuple[Step | None, ...]
    """Of every patch on top of as much else as was run."""
    shares: tuple[Estimate | None, ...]
    """Shapley's; None where it is not known."""
    whole: Estimate | None
    """All patches against none."""
    rest: Estimate | None
    """What the named terms leave of the whole."""
    least: Subset
    """The patches that were on in every run."""
    smoothed: bool
    """Whether levels are those of the model."""
    misfit: float | None
    """The p value of the spare runs under the model; None where there is no model or no spare run."""
    blocks: int


def combinations(patches: int) -> tuple[Subset, ...]:
    """The combinations to run, each as the patches that are on. Raises ValueError for fewer than one patch."""
    if patches < 1:
        raise ValueError("nothing to attribute anything to")
    everything = tuple(range(patches))
    if patches <= FULL:
        sizes: Collection[int] = range(patches + 1)
    else:
        sizes = {0, 1, order_of(patches), patches - 1, patches}
    return tuple(
        itertools.chain.from_iterable(
            itertools.combinations(everything, size) for size in sorted(sizes)
        )
    )


def _groups(patches: int, largest: int) -> list[Subset]:
    """All groups of up to so many patches, the smallest first."""
    sizes = (
        itertools.combinations(range(patches), size) for size in range(largest + 1)
    )
    return list(itertools.chain.from_iterable(sizes))


def _contains(groups: Sequence[Subset], runs: Sequence[Subset]) -> Floats:
    """1 where a run (row) has all of a group (column)."""
    contained = [
        set(group) <= set(run) for run, group in itertools.product(runs, groups)
    ]
    return np.array(contained, dtype=float).reshape(len(runs), len(groups))


def order_of(patches: int) -> int:
    """The largest groups whose effect is estimated: all, pairs, or single patches."""
    if patches <= FULL:
        return patches
    return 2 if patches <= PAIRS else 1


def instead(
    runs: Sequence[Subset], failed: Collection[Subset], patches: int
) -> tuple[Subset, ...]:
    """Combinations, not among ``runs``, that replace those that ``failed``, guessed from the failures.

    A patch seems to need another when no successful run had it without that one, and a failed run did. Patches that a
    small combination needs are added; patches that need what a large one lacks are removed. Patches have an order, so
    needs of earlier patches only are tried first.
    """
    wanted = _needs([run for run in runs if run not in failed], failed, patches)
    earlier = {patch: needed & set(range(patch)) for patch, needed in wanted.items()}
    subsets: dict[Subset, None] = {}
    for run in failed:
        tries = [_completed(run, needed, patches) for needed in (earlier, wanted)]
        subsets.update(
            dict.fromkeys([subset for subset in tries if subset not in runs][:1])
        )
    return tuple(subsets)


def _completed(run: Subset, needed: Mapping[int, set[int]], patches: int) -> Subset:
    """A small combination with what it needs, a large one without what needs more."""
    if len(run) <= patches / 2:
        return tuple(sorted(set(run).union(*(needed[i] for i in run))))
    return tuple(i for i in run if needed[i] <= set(run))


def attribute(
    patches: int,
    runs: Sequence[Subset],
    values: Floats,
    level: float = 0.95,
    *,
    margin: float = 0.0,
) -> Attribution:
    """Split the whole change. ``values`` has shape (blocks, runs), one column per combination that could be run.

    Raises ValueError below two blocks or two runs.
    """
    if len(values) < 2 or len(runs) < 2:
        raise ValueError("an interval needs at least two blocks and two combinations")
    smooth, misfit = _model(patches, runs, values, margin)
    smoothed = smooth is not None
    levels = _Levels(runs, values if smooth is None else values @ smooth, level, margin)
    terms, named = levels.terms(smooth)
    everything = tuple(range(patches))
    whole = levels.between(everything, ()) if {(), everything} <= set(runs) else None
    known = smoothed or patches <= FULL
    return Attribution(
        terms=terms,
        alone=levels.steps(patches, 1),
        last=levels.steps(patches, -1),
        shares=tuple(
            levels.share(i, patches) if known else None for i in range(patches)
        ),
        whole=None if whole is None else levels.estimate(whole),
        rest=None if whole is None or named is None else levels.estimate(whole - named),
        least=levels.least,
        smoothed=smoothed,
        misfit=misfit,
        blocks=len(values),
    )


def _needs(
    sound: Sequence[Subset], broken: Collection[Subset], patches: int
) -> dict[int, set[int]]:
    """The patches that each seems to need: no sound run had it without them, and a broken one did."""
    needs: dict[int, set[int]] = {}
    for patch in range(patches):
        with_it = [set(run) for run in sound if patch in run]
        always = set.intersection(*with_it) if with_it else set()
        failing = [run for run in broken if patch in run]
        in_all_failing = set(range(patches)).intersection(*failing)
        needs[patch] = always - {patch} - in_all_failing
    return needs


def _model(
    patches: int, runs: Sequence[Subset], values: Floats, margin: float
) -> tuple[Floats | None, float | None]:
    """The projection of levels on the model's, and the p value of what it leaves; no projection where all levels are
    free, or the runs contradict it."""
    order = order_of(patches)
    design = _contains(_groups(patches, order), runs)
    basis, sizes, _ = np.linalg.svd(design)
    rank = int((sizes > _NIL * sizes[0]).sum())
    if patches <= FULL or rank == len(runs):
        return None, None
    spare = values @ basis[:, rank:]
    smooth = basis[:, :rank] @ basis[:, :rank].T
    left = spare.mean(axis=0)
    within = float(((spare - left) ** 2).sum()) / (len(values) - 1)
    free = spare.shape[1]
    ratio = len(values) * float(left @ left) / max(within, 1e-300)
    p = float(fdtrc(free, (len(values) - 1) * free, ratio))
    largest = float(np.abs(basis[:, rank:] @ left).max())
    if p < MISFIT and largest > max(margin / 4, _NIL):
        return None, p
    return np.asarray(smooth), p


class _Levels:
    """Levels of the combinations in every block, and differences between them."""

    def __init__(
        self, runs: Sequence[Subset], levels: Floats, level: float, margin: float
    ) -> None:
        self._runs = tuple(runs)
        self._column = {run: n for n, run in enumerate(runs)}
        self.least: Subset = tuple(sorted(set(runs[0]).intersection(*runs)))
        """The patches that were on in every run."""
        self._levels = levels
        self._level, self._margin = level, margin

    def between(self, run: Subset, other: Subset) -> Floats:
        """By block."""
        return np.asarray(
            self._levels[:, self._column[run]] - self._levels[:, self._column[other]]
        )

    def estimate(self, column: Floats) -> Estimate:
        """The mean over blocks."""
        mean, low, high = mean_t_rows(column[None, :], self._level)
        return Estimate(
            float(mean[0]), float(low[0]), float(high[0]), self._level, len(column)
        )

    def terms(self, smooth: Floats | None) -> tuple[tuple[Term, ...], Floats | None]:
        """All dividends, and the sum of those that are named, by block; none without a combination that is part of
        all. A dividend that the model holds to be nothing is left out."""
        inverse = np.linalg.inv(_contains(self._runs, self._runs))
        free = inverse if smooth is None else inverse @ smooth
        least = self.least
        if least not in self._column:
            return (), None
        rows = [
            n
            for n, run in enumerate(self._runs)
            if run != least and np.abs(free[n]).max() > _NIL
        ]
        columns = self._levels @ inverse[rows].T
        adjusted = holm([_p(column) for column in columns.T])
        kept_terms, named = [], np.zeros(len(self._levels))
        for n, p in enumerate(adjusted):
            effect = self.estimate(columns[:, n])
            run = self._runs[rows[n]]
            fresh, over = self._fresh(run)
            sure = self._sure(effect, float(p))
            together = self.estimate(self.between(run, least))
            needed = over is not None and self._needs(fresh, over)
            kept_terms.append(
                Term(run, fresh, over, effect, together, float(p), sure, needed)
            )
            named = named + columns[:, n] * sure
        kept_terms.sort(key=lambda term: -abs(term.effect.value))
        return tuple(kept_terms), named if kept_terms else None

    def _needs(self, fresh: Iterable[int], over: Iterable[int]) -> bool:
        """Whether every combination that was run with ``fresh`` has ``over``, too."""
        with_fresh = (run for run in self._runs if set(fresh) <= set(run))
        return all(set(over) <= set(run) for run in with_fresh)

    def steps(self, patches: int, sign: int) -> tuple[Step | None, ...]:
        """For every patch the switch of as few as possible that has it, over as little as possible (``sign`` 1), or as
        much (-1)."""
        pairs = [self._switch(i, sign) for i in range(patches)]
        columns = [None if pair is None else self.between(*pair) for pair in pairs]
        adjusted = holm(
            [math.nan if column is None else _p(column) for column in columns]
        )
        shown_steps: list[Step | None] = []
        for pair, column, p in zip(pairs, columns, adjusted, strict=True):
            if pair is None or column is None:
                shown_steps.append(None)
                continue
            effect = self.estimate(column)
            changed = tuple(i for i in pair[0] if i not in pair[1])
            shown_steps.append(
                Step(changed, pair[1], effect, float(p), self._sure(effect, float(p)))
            )
        return tuple(shown_steps)

    def share(self, patch: int, patches: int) -> Estimate | None:
        """Of every group that the patch is in, an even part of what it does beyond its parts."""
        groups = _groups(patches, order_of(patches) - 1)
        total = np.zeros(len(self._levels))
        for group in groups:
            if patch in group:
                continue
            with_it = tuple(sorted((*group, patch)))
            for size in range(len(with_it) + 1):
                for part in itertools.combinations(with_it, size):
                    if part not in self._column:
                        return None
                    sign = (-1.0) ** (len(with_it) - size)
                    total = total + sign * self._levels[:, self._column[part]] / len(
                        with_it
                    )
        return self.estimate(total)

    def _switch(self, patch: int, sign: int) -> tuple[Subset, Subset] | None:
        with_it = [run for run in self._runs if patch in run]
        without = [run for run in self._runs if patch not in run]
        pairs = [
            (run, other)
            for run, other in itertools.product(with_it, without)
            if set(other) < set(run)
        ]
        return min(
            pairs,
            key=lambda p: (len(p[0]) - len(p[1]), sign * len(p[1]), p),
            default=None,
        )

    def _fresh(self, run: Subset) -> tuple[Subset, Subset | None]:
        """Which of its patches no smaller combination has; the others, if there are such and these were run."""
        smaller = [set(subset) for subset in self._runs if set(subset) < set(run)]
        before = tuple(sorted(set[int]().union(*smaller)))
        fresh = tuple(i for i in run if i not in before)
        return fresh, before if fresh and before in self._column else None

    def _sure(self, effect: Estimate, p: float) -> bool:
        return p <= SURE and abs(effect.value) >= self._margin


def _p(column: Floats) -> float:
    n = len(column)
    error = float(column.std(ddof=1)) / math.sqrt(n)
    if error < 1e-12:
        return 1.0 if abs(float(column.mean())) < _NIL else 0.0
    return float(2 * stdtr(n - 1, -abs(float(column.mean())) / error))
