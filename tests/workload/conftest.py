"""Real fio on real files and on loop devices that the tests make themselves."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from workshop import Workshop

from iodelta.machine import LocalMachine, Machine
from iodelta.workload.layout import prepare
from iodelta.workload.model import FioRequest

MIB = 1 << 20


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("fio") and shutil.which("fio") is None:
            item.add_marker(pytest.mark.skip(reason="fio is not installed"))


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


@pytest.fixture
def small_filesystem(workshop: Workshop) -> Path:
    """A mounted ext4 with about 20 MiB of room."""
    node = workshop.loop(24)
    workshop.run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", node)
    return workshop.mount(node)
