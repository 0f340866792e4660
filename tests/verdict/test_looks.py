"""The tests of one look: what is corrected for, and how often."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats

from iodelta.stats.total import Arms
from iodelta.verdict import looks

LEVEL = 0.025


def look(d: np.ndarray, parts: int, *, metrics: int = 1) -> looks.Seen:
    """A look at one cell and variant whose metrics fell into ``parts`` sets, this being one of them."""
    rows = np.tile(d, (metrics, 1))
    ones = np.ones_like(rows)
    tested = looks.Tested(rows, Arms(ones, np.exp(rows), ones, ones), tuple(range(d.size)), True, 1)
    return looks.seen_at(tested, margin=0.02, level=LEVEL, parts=parts, latest=False)


@pytest.mark.parametrize("blocks", [9, 20])
@pytest.mark.parametrize("change", [0.005, 0.02])
def test_metrics_that_lack_different_blocks_are_corrected_for_once(blocks: int, change: float) -> None:
    """Bonferroni over two sets that cannot be replayed together: twice the p value of one, not four times."""
    d = change + 0.01 * np.random.default_rng(3).standard_normal(blocks)
    alone, both = look(d, 1), look(d, 2)
    assert both.above == pytest.approx(np.minimum(1.0, 2 * alone.above))
    assert both.below == pytest.approx(np.minimum(1.0, 2 * alone.below))
    assert both.within == pytest.approx(alone.within)


def test_the_level_of_a_single_test_is_that_of_half_the_level_with_two_sets() -> None:
    d = 0.02 + 0.01 * np.random.default_rng(3).standard_normal(20)
    assert look(d, 2).critical_at(LEVEL) == pytest.approx(look(d, 1).critical_at(LEVEL / 2))


def test_metrics_that_move_as_one_cost_as_much_as_one() -> None:
    d = 0.01 + 0.01 * np.random.default_rng(3).standard_normal(12)
    assert look(d, 1, metrics=3).above[:, 0] == pytest.approx(look(d, 1).above[:, 0])


def test_batches_of_blocks_that_share_a_draw_are_replayed_by_that_draw() -> None:
    """Eight pairs of mirrored blocks: an order effect of 5 % cancels in each pair, so that swapping a pair changes
    nothing but the sign of the change. All 2^8 draws, gone through by hand."""
    rng = np.random.default_rng(5)
    d = 0.004 + 0.01 * rng.standard_normal(16) + 0.05 * np.tile([1.0, -1.0], 8)
    coins = tuple(block // 2 for block in range(16))
    tested = looks.Tested(d[None, :], None, coins, False, 1)
    seen = looks.seen_at(tested, margin=0.02, level=LEVEL, parts=1, latest=False)
    for batch in (1, 2):
        seen.replace_typical(0, batch, 0.02, tested)
        ranks = []
        for draw in itertools.product([1.0, -1.0], repeat=8):
            means = (np.repeat(draw, 2) * d).reshape(-1, batch).mean(axis=1)
            ranks.append(float(np.sum(np.sign(means) * scipy.stats.rankdata(np.abs(means)))))
        share = np.mean([one >= ranks[0] - 1e-9 for one in ranks])
        assert seen.above[0, 0] == pytest.approx(min(1.0, seen.statistics * share))


def test_batches_of_blocks_with_draws_of_their_own_have_the_signed_rank_test() -> None:
    d = 0.004 + 0.01 * np.random.default_rng(6).standard_normal(25)
    tested = looks.Tested(d[None, :], None, tuple(range(25)), True, 1)
    seen = looks.seen_at(tested, margin=0.02, level=LEVEL, parts=1, latest=False)
    seen.replace_typical(0, 2, 0.02, tested)
    theirs = scipy.stats.wilcoxon(d[1:].reshape(-1, 2).mean(axis=1), alternative="greater", mode="exact")
    assert seen.above[0, 0] == pytest.approx(seen.statistics * theirs.pvalue)
