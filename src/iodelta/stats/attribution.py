"""How much of a change each of several patches explains, alone and together, from blocks over on/off combinations.

Input is one value per combination and block: the logarithm of a metric, higher is worse. Up to four patches all 2^k
combinations are run, and a combination's value is split into what every subset adds by itself (Harsanyi's dividends,
the Moebius transform of the values): patch 1 alone, patch 2 and 3 together beyond what each does alone. Above four a
fraction of resolution IV is run: main effects are clear of pairs, pairs are known in groups of aliases. A patch's
Shapley share is the mean of what it adds over all orders of applying the patches; shares add up to the whole.
Every number is estimated within each block, so drift between blocks cancels, and its interval is that of the mean over
blocks. Sources: Box, Hunter and Hunter, Statistics for Experimenters, 2nd ed., chapters 5 and 6; Harsanyi 1963.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from iodelta.stats.effect import Estimate, Floats, mean_t_rows
from iodelta.stats.families import holm

FULL = 4
"""Up to so many patches every combination is run."""

Subset = tuple[int, ...]


class Term(msgspec.Struct, frozen=True):
    """What ``patches`` (numbers from 0) do together beyond their smaller groups; a single one: alone.

    ``aliases`` are other groups that the design cannot tell from it. ``p`` is two-sided, after Holm over all terms.
    None where ``lacking`` combinations make it inestimable.
    """

    patches: Subset
    effect: Estimate | None
    p: float | None
    aliases: tuple[Subset, ...] = ()


class Attribution(msgspec.Struct, frozen=True):
    """Terms, the largest first; shares by patch; the whole: all patches against none. Logarithms, positive is worse."""

    terms: tuple[Term, ...]
    shares: tuple[Estimate | None, ...]
    whole: Estimate | None
    blocks: int


def combinations(patches: int) -> tuple[Subset, ...]:
    """The combinations to run, each as the patches that are on: all up to four, else a fraction of resolution IV.

    The fraction of 2^m runs has as columns the products of odd numbers of m base factors, of which any two multiply
    to an even one, so no main effect is aliased with a pair. Raises ValueError for fewer than one patch.
    """
    if patches < 1:
        raise ValueError("nothing to attribute anything to")
    if patches <= FULL:
        rows = itertools.product((0, 1), repeat=patches)
        return tuple(tuple(i for i, on in enumerate(row) if on) for row in rows)
    base = next(m for m in range(4, patches + 1) if 2 ** (m - 1) >= patches)
    columns = [word for size in range(1, base + 1, 2) for word in itertools.combinations(range(base), size)]
    if patches == 5:  # the full word gives even resolution V
        columns = [(0,), (1,), (2,), (3,), (0, 1, 2, 3)]
    found = []
    for row in itertools.product((-1, 1), repeat=base):
        signs = [math.prod(row[i] for i in word) for word in columns[:patches]]
        found.append(tuple(i for i, sign in enumerate(signs) if sign > 0))
    return tuple(found)


def attribute(patches: int, runs: Sequence[Subset], values: Floats, level: float = 0.95) -> Attribution:
    """Split the whole change. ``values`` has shape (blocks, runs), one column per combination that could be run.

    Raises ValueError below two blocks.
    """
    if len(values) < 2:
        raise ValueError("an interval needs two blocks at least")
    terms = _subsets(patches, patches) if patches <= FULL else _subsets(patches, 2)
    on = np.array([[float(set(term) <= set(run)) for term in terms] for run in runs])
    groups: list[list[int]] = []
    if patches > FULL:
        signs = np.array([[1.0 if i in run else -1.0 for i in range(patches)] for run in runs])
        on = np.array([[math.prod(row[i] for i in term) for term in terms] for row in signs])
        groups = _aliased(combinations(patches), terms, patches)
    else:
        groups = [[n] for n in range(len(terms))]
    model = np.column_stack([np.ones(len(runs)), on[:, [group[0] for group in groups]]])
    inverse = np.linalg.pinv(model)
    known = np.isclose(inverse @ model, np.eye(model.shape[1]), atol=1e-8).all(axis=1)[1:]
    # In +-1 coding a main effect is twice its coefficient, and a pair's "beyond the sum" four times.
    scale = np.array([1.0 if patches <= FULL else 2.0 ** len(terms[group[0]]) for group in groups])
    blockwise = (values @ inverse.T)[:, 1:] * scale
    estimates = [_mean(blockwise[:, n], level) if known[n] else None for n in range(len(groups))]
    raw = [_p(blockwise[:, n]) for n in range(len(groups)) if known[n]]
    adjusted = iter(holm(raw))
    found = [
        Term(terms[group[0]], estimate, float(next(adjusted)) if estimate else None, tuple(terms[n] for n in group[1:]))
        for group, estimate in zip(groups, estimates, strict=True)
    ]
    shares = tuple(_share(i, patches, terms, groups, blockwise, known, level) for i in range(patches))
    by_run = {run: n for n, run in enumerate(runs)}
    ends = by_run.get(()), by_run.get(tuple(range(patches)))
    whole = None
    if ends[0] is not None and ends[1] is not None:
        whole = _mean(values[:, ends[1]] - values[:, ends[0]], level)
    elif patches > FULL and all(known[:patches]):
        whole = _mean(blockwise[:, :patches].sum(axis=1), level)
    found.sort(key=lambda term: -abs(term.effect.value) if term.effect else 0.0)
    return Attribution(tuple(found), shares, whole, len(values))


def _share(
    patch: int,
    patches: int,
    terms: Sequence[Subset],
    groups: Sequence[Sequence[int]],
    blockwise: Floats,
    known: NDArray[np.bool_],
    level: float,
) -> Estimate | None:
    """The Shapley share: of every group that the patch is in, an even part. In a fraction it is the main effect,
    since with no more than pairs both orders of a pair average to it."""
    if patches > FULL:
        return _mean(blockwise[:, patch], level) if known[patch] else None
    own = [n for n, group in enumerate(groups) if patch in terms[group[0]]]
    if not known[own].all():
        return None
    weights = np.array([1.0 / len(terms[groups[n][0]]) for n in own])
    return _mean(blockwise[:, own] @ weights, level)


def _subsets(patches: int, largest: int) -> list[Subset]:
    return [term for size in range(1, largest + 1) for term in itertools.combinations(range(patches), size)]


def _aliased(design: Sequence[Subset], terms: Sequence[Subset], patches: int) -> list[list[int]]:
    """Terms whose columns are equal in the whole design, main effects first."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for n, term in enumerate(terms):
        column = tuple(math.prod(1 if i in run else -1 for i in term) for run in design)
        groups.setdefault(column, []).append(n)
    return list(groups.values())


def _mean(column: Floats, level: float) -> Estimate:
    mean, low, high = mean_t_rows(column[None, :], level)
    return Estimate(float(mean[0]), float(low[0]), float(high[0]), level, len(column))


def _p(column: Floats) -> float:
    n = len(column)
    error = float(column.std(ddof=1)) / math.sqrt(n)
    if error == 0.0:
        return 1.0 if column.mean() == 0.0 else 0.0
    return float(2 * stdtr(n - 1, -abs(float(column.mean())) / error))
