"""A directory of results that all tests of the site look at, and a server of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from carried import QUESTION, carried

from iodelta.bundle.packing import pack
from iodelta.report.derived import derive

from .servers import Server, serving

TEXT = QUESTION.replace("{path}", "/dev/nvme0n1").replace("{blocks}", "12")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A slower experiment, one without a change, one that goes on, and a bundle."""
    place = tmp_path_factory.mktemp("served")
    runs = place / "runs"
    runs.mkdir()
    slower = carried(runs / "slower", -0.2, text=TEXT, secret=False)
    derive(slower)
    carried(runs / "nightly" / "same", 0.0, text=TEXT.replace("Is slow slower?", "Is it the same?"), secret=False)
    carried(runs / "going-on", -0.2, text=TEXT.replace("Is slow slower?", "What runs now?"), end=None, secret=False)
    (runs / "theirs.iodelta.tar.zst").write_bytes(pack(slower).data)
    return runs


@pytest.fixture(scope="session")
def server(runs: Path) -> Iterator[Server]:
    with serving("--folders", str(runs), cwd=runs.parent) as running:
        yield running
