"""The unit of an axis: no tick of a thousand, whatever the axis shows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from iodelta.study.units import axis_unit


@given(some.floats(1.0, 9e11))
def test_an_axis_of_times_ends_between_a_tenth_and_nine_hundred_of_its_unit(highest: float) -> None:
    assert 0.1 <= highest / axis_unit("ns", highest)[0] <= 900.0
