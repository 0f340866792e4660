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

ABSENT_HARDWARE = re.compile(
    r"cpufreq|no cpuidle|not beside this|/dev/kvm"
    r"|no control group here can limit I/O"
    r"|this kernel does not count how long a thread waits"
)
"""Reasons to skip that no setting up mends. CI fails if a test is skipped for another reason (``--all-run``)."""

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


def unexcused(reports: list[pytest.TestReport]) -> list[str]:
    """Return the skipped tests, with their reasons, that a complete set-up would have run."""
    reasons = [
        (report.nodeid, str(report.longrepr[2] if isinstance(report.longrepr, tuple) else "")) for report in reports
    ]
    return [f"{test}: {reason}" for test, reason in reasons if not ABSENT_HARDWARE.search(reason)]


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
