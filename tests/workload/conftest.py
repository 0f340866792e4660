"""Real fio on real files and on loop devices that the tests make themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from workshop import Attached

from iodelta.machine import LocalMachine, Machine
from iodelta.workload.layout import prepare
from iodelta.workload.model import FioRequest

MIB = 1 << 20


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("fio") and shutil.which("fio") is None:
            item.add_marker(pytest.mark.skip(reason="fio is not installed"))
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root for a loop device or a mount"))


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks of devices of its own: no other run on this machine is in the way."""
    monkeypatch.setenv("IODELTA_STATE", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(scope="session")
def machine() -> Machine:
    return LocalMachine()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory, machine: Machine) -> str:
    """A laid-out file of 32 MiB that tests only read."""
    place = tmp_path_factory.mktemp("data")
    return prepare(machine, f"{place}/data", 32 * MIB, workdir=str(place)).path


@pytest.fixture
def request_for(tmp_path: Path) -> Callable[..., FioRequest]:
    """A short request: ``request_for(target, "rw=randread", "bs=4k", seed=7)``."""
    workdir = tmp_path / "work"
    workdir.mkdir(exist_ok=True)

    def make(target: str, *options: str, **changes: object) -> FioRequest:
        pairs = tuple((name, value if equals else None) for name, equals, value in (o.partition("=") for o in options))
        settings: dict[str, object] = {
            "options": pairs,
            "target": target,
            "target_kind": "file",
            "runtime": 1.0,
            "ramp": 0.2,
            "seed": 7,
            "workdir": str(workdir),
            "size": 32 * MIB,
        }
        return FioRequest(**{**settings, **changes})  # type: ignore[arg-type]

    return make


class Loop:
    """A loop device over a file of its own."""

    def __init__(self, image: Path, size: int) -> None:
        with image.open("wb") as file:
            file.truncate(size)
        self.image = image
        self._attached = Attached.to(image)
        self.device = self._attached.node

    def detach(self) -> None:
        self._attached.release()


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    made = Loop(tmp_path / "loop.img", 32 * MIB)
    yield made
    made.detach()


@pytest.fixture
def small_filesystem(tmp_path: Path) -> Iterator[Path]:
    """A mounted ext4 with about 20 MiB of room."""
    made = Loop(tmp_path / "small.img", 24 * MIB)
    mount = tmp_path / "mnt"
    mount.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", made.device], check=True)
    subprocess.run(["mount", made.device, str(mount)], check=True)
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)
    made.detach()
