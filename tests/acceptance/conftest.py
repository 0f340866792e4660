"""Every acceptance test needs the real fio, and a stand to run on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from .stand import Stand


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.fio)


@pytest.fixture(autouse=True)
def _hangups_count() -> Iterator[None]:
    """Also where the tests themselves were started by nohup, whose children ignore a hangup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    """A place for one experiment at a time, taken back afterwards."""
    with Stand(tmp_path) as made:
        yield made
