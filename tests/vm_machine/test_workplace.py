"""Where a guest is made: nobody else's is removed, and what keeps one from being made is said."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from iodelta.errors import MachineError
from iodelta.machine import LocalMachine
from iodelta.machine import vm as machine_vm
from iodelta.machine.vm import GuestLine
from iodelta.vm import boot, kernels
from iodelta.vm.spec import Spec

NOBODY = 4194305
"""No process has this number: they end at 4194304."""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory for temporary files; its path is short, because a guest has sockets in it."""
    made = Path(tempfile.mkdtemp(dir="/tmp"))
    monkeypatch.setattr("tempfile.tempdir", str(made))
    monkeypatch.setattr(boot, "available", lambda: "")
    monkeypatch.setattr(machine_vm, "kernel_of", lambda _: kernels.Kernel("6.1", "6.1.0", "bzImage"))
    monkeypatch.setattr(machine_vm, "_base", lambda *_: pytest.fail("is not reached"))
    yield made
    shutil.rmtree(made)


def test_what_a_killed_one_left_is_removed_and_a_guest_whose_owner_is_not_seen_from_here_is_not(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, lives, vanishing = (place / f"iodelta-vm-{NOBODY}-{name}" for name in ("left", "lives", "vanishing"))
    for one in (left, lives, vanishing):
        one.mkdir()
    (place / f"iodelta-vm-{NOBODY}-link").symlink_to(lives)
    held = LocalMachine().lock(str(lives))
    assert held is not None
    glob = Path.glob

    def vanish(self: Path, pattern: str) -> list[Path]:
        found = list(glob(self, pattern))
        shutil.rmtree(vanishing, ignore_errors=True)
        return found

    monkeypatch.setattr(Path, "glob", vanish)
    with pytest.raises(pytest.fail.Exception, match="not reached"):
        GuestLine(Spec()).open()
    assert sorted(path.name.split("-")[-1] for path in place.iterdir()) == ["link", "lives"]
    held.release()
    with pytest.raises(pytest.fail.Exception, match="not reached"):
        GuestLine(Spec()).open()
    assert not lives.exists()


def test_a_path_that_is_too_long_for_a_socket_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = place / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with pytest.raises(MachineError, match="too long for a socket") as caught:
        GuestLine(Spec()).open()
    assert "TMPDIR" in caught.value.remedy
    assert not list(deep.iterdir())
