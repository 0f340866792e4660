"""Numbers in sentences: percentages and points of two digits, never a power of ten; counts with their nouns."""

from __future__ import annotations

import pytest

from iodelta.figures import share, two_digits
from iodelta.plural import plural


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0"),
        (0.12345, "0.12"),
        (1.0, "1"),
        (1.25, "1.2"),
        (9.94, "9.9"),
        (9.96, "10"),
        (12.4, "12"),
        (99.6, "100"),
    ],
)
def test_two_digits(value: float, said: str) -> None:
    assert two_digits(value) == said
    assert two_digits(-value) == (f"-{said}" if value else "-0")


@pytest.mark.parametrize(("part", "said"), [(0.025, "2.5 %"), (0.996, "100 %"), (1.2, "120 %"), (12.0, "1,200 %")])
def test_a_share_is_never_a_power_of_ten(part: float, said: str) -> None:
    """The scale of a terminal picture said ``-1.1e+03 %``."""
    assert share(part) == said


def test_one_has_no_s_and_every_other_count_has() -> None:
    assert [plural(count, "more block") for count in (0, 1, 2)] == ["0 more blocks", "1 more block", "2 more blocks"]
