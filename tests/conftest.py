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
import tiers
from browsers import browser
from waiting import until
from workshop import Workshop, loops_in

__all__ = ["browser"]

LONGEST_NAME = 100_000
"""Characters of a test with its parameters: Linux takes 131,072 bytes for one variable (MAX_ARG_STRLEN)."""

STATES: dict[str, Any] = {}
"""By module the state of its ``RNG`` before its first test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=["push", "night"], default="push", help="push: without tests marked night")
    parser.addoption("--all-run", action="store_true", help="fail if a test is skipped that a full set-up would run")


def pytest_configure(config: pytest.Config) -> None:
    tiers.choose(config.getoption("--tier"))
    # A shell that starts us in the background has us ignore Ctrl-C, and with us all that the tests start.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_xdist_auto_num_workers() -> int:
    """Many tests wait for fio, a guest or a host, so two for each CPU keep it busy."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # The name of a test stands in the environment, which the kernel limits: with a name of a megabyte nothing starts.
    long = [item.nodeid[:80] for item in items if len(item.nodeid) > LONGEST_NAME]
    assert not long, f"give these parameters ids: {long}"
    if not tiers.is_night():
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("night")])
        items[:] = [item for item in items if not item.get_closest_marker("night")]
    for item in items:
        measures = item.get_closest_marker("root") or item.get_closest_marker("fio")
        if measures and not item.get_closest_marker("beside") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("machine"))
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root, to make loop devices, mounts and cgroups"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skip is no pass: in CI everything that the tests need is installed."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None or not session.config.getoption("--all-run"):
        return
    skipped = tiers.skipped(terminal.stats.get("skipped", []))
    terminal.write_line(f"\nskipped: {sum(map(len, skipped.values()))}")
    for reason, names in skipped.items():
        mends = bool(tiers.CAN_BE_INSTALLED.search(reason))
        terminal.write_line(f"{'FAILURE, can be installed' if mends else 'absent'} ({len(names)}): {reason}", red=mends)
        for name in names:
            terminal.write_line(f"    {name}")
        if mends:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


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
