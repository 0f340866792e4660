"""A pyramid says of any stretch of time what one look at all rows says, in memory that does not grow with them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iodelta.stats import pyramid as pyramid_module
from iodelta.stats.pyramid import WIDTHS, Floats, Pyramid

Rows = list[tuple[int, float]]
Spans = list[tuple[int, int, float]]

values = st.one_of(st.floats(-1e9, 1e9), st.integers(0, 2**53).map(float), st.just(0.0))
rows = st.lists(st.tuples(st.integers(0, 40_000), values), min_size=1, max_size=120)
spans = st.lists(st.tuples(st.integers(0, 40_000), st.integers(0, 9000), values), min_size=1, max_size=60)
cuts = st.integers(1, 7)


def near(one: Floats, other: Floats) -> bool:
    scale = np.nanmax(np.abs(other[np.isfinite(other)]), initial=1.0)
    return bool(np.allclose(one, other, rtol=1e-9, atol=1e-9 * scale, equal_nan=True))


@given(rows, cuts, st.integers(1, 300))
def test_points_are_what_a_look_at_all_of_them_says(rows: Rows, cut: int, most: int) -> None:
    times = np.array([t for t, _ in rows])
    values = np.array([v for _, v in rows])
    sizes = np.arange(len(rows)) * 512
    pyramid = Pyramid(buckets=300)
    for part in np.array_split(np.arange(len(rows)), cut):
        pyramid.add_points(times[part], values[part], sizes[part])
    level = pyramid.level(most)
    assert level.width in WIDTHS
    assert len(level.weight) <= most
    assert len(level.weight) * level.width > times.max()
    for place in range(len(level.weight)):
        inside = (times >= place * level.width) & (times < (place + 1) * level.width)
        assert level.weight[place] == inside.sum()
        assert level.amount[place] == sizes[inside].sum()
        if inside.any():
            assert (level.low[place], level.high[place]) == (values[inside].min(), values[inside].max())
            assert near(level.mean()[place : place + 1], np.array([values[inside].mean()]))
        else:
            assert np.isnan(level.mean()[place])


@given(spans, cuts, st.integers(1, 300))
def test_spans_weigh_as_long_as_they_lasted(spans: Spans, cut: int, most: int) -> None:
    starts = np.array([s for s, _, _ in spans])
    ends = starts + np.array([length for _, length, _ in spans])
    values = np.array([v for *_, v in spans])
    pyramid = Pyramid(buckets=300)
    for part in np.array_split(np.arange(len(spans)), cut):
        pyramid.add_spans(starts[part], ends[part], values[part])
    level = pyramid.level(most)
    for place in range(len(level.weight)):
        begin, end = place * level.width, (place + 1) * level.width
        # An own account of every span, one by one.
        over = np.array([max(0, min(e, end) - max(s, begin)) for s, e in zip(starts, ends, strict=True)])
        assert level.weight[place] == over.sum()
        assert near(level.area[place : place + 1], np.array([(over * values).sum()]))
        if over.any():
            assert level.low[place] <= values[over > 0].min()
            assert level.high[place] >= values[over > 0].max()
    assert level.low.min() == values.min()
    assert level.high.max() == values.max()


def test_spans_added_in_parts_are_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log whose jobs restart has spans over all buckets: they are taken a few at a time."""
    starts, ends = np.zeros(50, dtype=np.int64), np.arange(50) * 37
    whole, parted = Pyramid(), Pyramid()
    whole.add_spans(starts, ends, np.arange(50.0))
    monkeypatch.setattr(pyramid_module, "_AT_ONCE", 7)
    parted.add_spans(starts, ends, np.arange(50.0))
    for one, other in zip(whole.level()[1:], parted.level()[1:], strict=True):
        assert near(one, other)
    assert whole.level().weight.sum() == ends.sum()


def test_memory_does_not_grow_with_the_rows() -> None:
    """A hundred times the rows, and the buckets as wide as a day needs: the peak stays that of one part."""
    values = np.ones(20_000)
    sizes = np.zeros(20_000, dtype=np.int64)

    def peak(parts: int) -> int:
        tracemalloc.start()
        pyramid = Pyramid()
        for part in range(parts):
            pyramid.add_points(np.arange(20_000) + 864_000 * part, values, sizes)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert pyramid.level(1).weight.sum() == 20_000 * parts
        return found

    assert peak(100) < 1.2 * peak(1)


def test_a_time_beyond_all_levels_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 300 buckets hold"):
        Pyramid(buckets=300).add_points(np.array([2**50]), np.array([1.0]), np.array([0]))
