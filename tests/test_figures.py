"""Percentages and points in sentences: two digits, never a power of ten."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import iodelta
from iodelta.figures import share, two_digits

SOURCE = Path(iodelta.__file__).parent
LOOSE = re.compile(r":\.2g\} ?%|:\.2g\} points")


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


def test_no_other_place_prints_percentages_of_two_digits() -> None:
    found = [str(path) for path in sorted(SOURCE.rglob("*.py")) if LOOSE.search(path.read_text())]
    assert found == []
