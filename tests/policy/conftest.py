"""Tests of read policies need the native core; only without cargo do they skip."""

from __future__ import annotations

from pathlib import Path

import pytest
from native_core import needs_native_core

PURE = frozenset({"test_defrag", "test_explain", "test_without_native"})
"""Modules about what works without the native core."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and item.path.stem not in PURE:
            item.add_marker(needs_native_core)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks of devices of its own: tests run side by side on one disk."""
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
