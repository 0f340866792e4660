"""One host for all tests over SSH, as each needs a second to be made."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance.stand import Stand

from iodelta.machine.ssh import SshMachine

from .host import Host


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A real sshd at the end of a cable."""
    for program, package in (("/usr/sbin/sshd", "openssh-server"), ("ssh", "openssh-client"), ("ip", "iproute2")):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program} (package {package})")
    made = Host(tmp_path_factory.mktemp("host"))
    try:
        made.open()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def machine(host: Host) -> Iterator[SshMachine]:
    """That host as iodelta sees it: one connection for the tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", host.env["PATH"])
        with SshMachine("there") as connected:
            yield connected


@pytest.fixture
def stand(tmp_path: Path, host: Host) -> Iterator[Stand]:
    """A stand whose user has the host in the configuration of ssh."""
    with Stand(tmp_path) as made:
        made.env |= host.env
        yield made
