"""One machine that drives a fleet, for every test of one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance.stand import Stand


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    for program, package in (("/usr/sbin/sshd", "openssh-server"), ("ssh", "openssh-client"), ("ip", "iproute2")):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program} (package {package})")
    with Stand(tmp_path) as made:
        yield made
