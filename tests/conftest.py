"""What all tests share: a workshop for real devices, and a reason where root is missing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from workshop import Workshop


def pytest_configure() -> None:
    """A shell that starts us in the background has us ignore Ctrl-C, and with us all that the tests start."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(pytest.mark.skip(reason="needs root, to make loop devices, mounts and cgroups"))


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    """Loop devices, mounts and swap for one test."""
    made = Workshop(tmp_path)
    try:
        yield made
    finally:
        made.close()
