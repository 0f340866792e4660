"""Tests of read policies need the native core, which needs cargo to be built; only without cargo do they skip."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from iodelta.probe.native import installed

PURE = frozenset({"test_defrag", "test_explain", "test_without_native"})
"""Modules about what works without the native core."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if installed() or shutil.which("cargo"):
        return  # with cargo, scripts/setup test has built it: then its absence is a failure
    skip = pytest.mark.skip(reason="needs the native core, and there is no cargo to build it (see scripts/setup)")
    for item in items:
        if Path(__file__).parent in item.path.parents and item.path.stem not in PURE:
            item.add_marker(skip)
