"""Numbers as a person writes them in a sentence."""

from __future__ import annotations


def two_digits(value: float) -> str:
    """Two significant digits, and all digits before the point: 0.12, 1.2, 12, 1,234; never ``1.2e+02``."""
    return f"{value:,.0f}" if abs(value) >= 9.95 else f"{value:.2g}"


def share(value: float) -> str:
    """Return a part of one as a percentage of two digits: ``2.5 %`` of 0.025, ``1,200 %`` of 12."""
    return f"{two_digits(100 * value)} %"
