"""The tiers of tests: push (``make test``, every change) and night (``make soak``: all tests, with all examples).

What measures how fast something is belongs to neither: ``make bench``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, settings

TENTH = 10
"""At a push, this part of the examples and of the simulated experiments is drawn: always the same ones."""

CAN_BE_INSTALLED = re.compile(
    r"not installed|scripts/setup|\(package |iodelta\[|no Chromium|^needs|gcc is not here|comes with distributed"
)
"""Reasons to skip that setting up mends: CI fails for one (``--all-run``). Others are of hardware or the kernel."""

# No test is a matter of time, and no day is luckier than another; --hypothesis-profile explore looks for more.
settings.register_profile("night", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("push", parent=settings.get_profile("night"), max_examples=100 // TENTH)
settings.register_profile("explore", parent=settings.get_profile("night"), derandomize=False, max_examples=1000)

_tier = "push"


def choose(tier: str) -> None:
    """Set the tier, before a test is imported."""
    global _tier
    _tier = tier
    settings.load_profile(tier)


def is_night() -> bool:
    """Return whether all tests run, with all their examples."""
    return _tier == "night"


def scaled(count: int, least: int = 10) -> int:
    """Return how many of ``count`` examples or simulated experiments this tier takes: a tenth, not under ``least``.

    The assertion must be able to fail with both numbers, and not by chance: write the limit of a share with ``most``.
    """
    return count if is_night() else min(count, max(least, count // TENTH))


def skipped(reports: list[pytest.TestReport]) -> dict[str, list[str]]:
    """Return the tests that were skipped, by their reasons."""
    found: dict[str, list[str]] = {}
    for report in reports:
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        found.setdefault(reason.removeprefix("Skipped: "), []).append(report.nodeid)
    return found


def most(rate: float, count: int) -> int:
    """Return the most of ``count`` events that a true ``rate`` gives in 999 of 1000 simulations."""
    from scipy.stats import binom  # only where it is used: every process of the tests loads this file

    return int(binom.ppf(0.999, count, rate))


def one_at_push(values: Iterable[object]) -> list[object]:
    """Return parameters of which the first runs at every push, and the others at night."""
    first, *others = values
    return [first, *(pytest.param(*_several(other), marks=pytest.mark.night) for other in others)]


def _several(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)
