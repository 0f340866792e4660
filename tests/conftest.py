"""What all tests share: a workshop for real devices, a reason where root is missing, the same examples every time."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsers import browser
from hypothesis import HealthCheck, settings
from waiting import until
from workshop import Workshop, loops_in

__all__ = ["browser"]

# No test is a matter of time, and no day is luckier than another; --hypothesis-profile explore looks for more.
settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", parent=settings.get_profile("same"), derandomize=False, max_examples=1000)
settings.load_profile("same")

LONGEST_NAME = 100_000
"""Characters of a test with its parameters: Linux takes 131,072 bytes for one variable (MAX_ARG_STRLEN)."""

STATES: dict[str, Any] = {}
"""By module the state of its ``RNG`` before its first test."""


def pytest_configure() -> None:
    """A shell that starts us in the background has us ignore Ctrl-C, and with us all that the tests start."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_xdist_auto_num_workers() -> int:
    """Many tests wait for fio, a guest or a host, so two for each CPU keep it busy."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The name of a test stands in the environment, which the kernel limits: with a name of a megabyte nothing starts.
    long = [item.nodeid[:80] for item in items if len(item.nodeid) > LONGEST_NAME]
    assert not long, f"give these parameters ids: {long}"
    # Emulated guests take one CPU for minutes: they begin first, or at the end the other workers wait for them.
    items.sort(key=lambda item: item.path.name != "test_path_mode.py")
    if os.geteuid() != 0:
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(pytest.mark.skip(reason="needs root, to make loop devices, mounts and cgroups"))


@pytest.fixture(scope="session", autouse=True)
def no_device_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever a test attaches, it detaches."""
    yield
    until(lambda: loops_in(tmp_path_factory.getbasetemp()) == [])


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    """Loop devices, mounts and swap for one test."""
    made = Workshop(tmp_path)
    try:
        yield made
    finally:
        made.close()


NOBODY = 65534
"""Number of a user who owns nothing."""


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A directory of an ordinary user, as whom the test runs: root may write everywhere."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory(prefix="iodelta-history-", dir="/tmp") as place:
        if root:
            os.chown(place, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(place)
        finally:
            if root:
                os.seteuid(0)


@pytest.fixture(autouse=True)
def same_noise(request: pytest.FixtureRequest) -> None:
    """Every test draws the same noise from its module's ``RNG``, whichever tests ran before it in this process."""
    rng = getattr(request.module, "RNG", None)
    if isinstance(rng, np.random.Generator):
        rng.bit_generator.state = STATES.setdefault(request.module.__name__, rng.bit_generator.state)
