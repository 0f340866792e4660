"""Tests that share a slow fixture run in one process."""

from __future__ import annotations

import os

import pytest


@pytest.mark.xdist_group("kept")
def test_a_group_is_kept_together(request: pytest.FixtureRequest) -> None:
    """pytest 9.2 with pytest-xdist 3.8 spread every group over all processes, each of which made the fixture again."""
    kept = request.node.nodeid.endswith("@kept")
    assert kept or "PYTEST_XDIST_WORKER" not in os.environ
