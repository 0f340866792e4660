"""Machines and devices for the tests of knobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iodelta.machine import LocalMachine

from .devices import Loop, loop_device


@pytest.fixture
def machine() -> LocalMachine:
    return LocalMachine()


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    with loop_device(tmp_path / "disk.img") as device:
        yield device
