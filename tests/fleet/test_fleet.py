"""A fleet as its user meets it: every host measured once, in trouble, killed, gone on with; and each host as it was."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance.stand import Stand, kinds, queue, set_queue

from .stand import Fleet

pytest.importorskip("distributed", reason="iodelta[fleet] is not installed")
pytestmark = [pytest.mark.root, pytest.mark.fio, pytest.mark.slow, pytest.mark.beside, pytest.mark.xdist_group("ssh")]


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    for program, package in (("/usr/sbin/sshd", "openssh-server"), ("ssh", "openssh-client"), ("ip", "iproute2")):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program} (package {package})")
    with Stand(tmp_path) as made:
        yield made


def test_every_host_is_measured_on_its_own_disk_and_the_same_command_again_measures_nothing(stand: Stand) -> None:
    fleet = Fleet(stand, "a b")
    for member in fleet.members.values():
        set_queue(member.node, "scheduler", "kyber")
    done = fleet.run()
    assert done.code == 0, done
    assert fleet.states() == {"a": "done", "b": "done"}
    for name, member in fleet.members.items():
        (session,) = kinds(fleet.place(name), "session")
        assert session["target"]["path"] == member.node
        assert session["machine"] == f"ssh:{name}"
        assert queue(member.node, "scheduler") == "kyber"
    before = {name: (fleet.place(name) / "journal.jsonl").read_bytes() for name in fleet.members}
    assert fleet.run().code == 0
    assert before == {name: (fleet.place(name) / "journal.jsonl").read_bytes() for name in fleet.members}
