"""The tests of one look: what is corrected for, and how often."""

from __future__ import annotations

import numpy as np
import pytest

from iodelta.stats.total import Arms
from iodelta.verdict import looks

LEVEL = 0.025


def look(d: np.ndarray, parts: int, *, metrics: int = 1) -> looks.Seen:
    """A look at one cell and variant whose metrics fell into ``parts`` sets, this being one of them."""
    rows = np.tile(d, (metrics, 1))
    ones = np.ones_like(rows)
    tested = looks.Tested(rows, Arms(ones, np.exp(rows), ones, ones), tuple(range(d.size)), True, 1, np.zeros(metrics))
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


def test_metrics_that_move_as_one_cost_as_much_as_one() -> None:
    d = 0.01 + 0.01 * np.random.default_rng(3).standard_normal(12)
    assert look(d, 1, metrics=3).above[:, 0] == pytest.approx(look(d, 1).above[:, 0])
