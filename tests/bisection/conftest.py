"""A toy repository, and a state directory of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from .toy import Toy


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def repo(tmp_path: Path) -> Toy:
    """An empty repository."""
    return Toy(tmp_path / "repo")
