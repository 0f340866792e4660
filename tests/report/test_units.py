"""The unit of an axis: no tick of a thousand, whatever the axis shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from iodelta.study.units import axis_unit


@pytest.mark.parametrize(
    ("unit", "highest", "name"),
    [
        ("ns", 850.0, "ns"),
        ("ns", 990.0, "us"),  # a tick at 1,000 ns would be drawn above it
        ("ns", 1e5 * 1e3, "ms"),  # 100,000 us
        ("ns", 899e3, "us"),
        ("ns", 17e9, "s"),
        ("ns", 5000e9, "s"),  # there is no larger one
        ("ns", 0.0, "ns"),
        ("B/s", 600.0 * 2**20, "MiB/s"),
        ("B/s", 1000.0 * 2**20, "GiB/s"),
        ("IOPS", 1e6, "IOPS"),
        ("", 1e6, ""),
    ],
)
def test_the_largest_tick_is_below_a_thousand(unit: str, highest: float, name: str) -> None:
    assert axis_unit(unit, highest)[1] == name


@given(some.floats(1.0, 9e11))
def test_an_axis_of_times_ends_between_a_tenth_and_nine_hundred_of_its_unit(highest: float) -> None:
    assert 0.1 <= highest / axis_unit("ns", highest)[0] <= 900.0


def test_a_logarithmic_axis_of_many_decades_keeps_both_ends_readable() -> None:
    assert axis_unit("ns", 100e6, 1e3) == (1e6, "ms")  # 0.001 to 100
    assert axis_unit("ns", 2e9, 100.0) == (1e6, "ms")  # 0.0001 to 2,000, not 0.0000001 s
    assert axis_unit("ns", 500.0, 1e-9) == (1.0, "ns")
