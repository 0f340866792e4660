"""Target files are real data before the first trial, and nobody else's file is ever touched."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from iodelta.errors import MeasureError, RequestError
from iodelta.machine import Completed, LocalMachine, Machine
from iodelta.workload.fio import run
from iodelta.workload.layout import prepare, prepare_directory
from iodelta.workload.model import FioRequest
from iodelta.workload.result import read_run

from .conftest import MIB

pytestmark = pytest.mark.fio
NAMES = ["plain", "with space,comma", "a:b", "-n", "ünï*[x]"]


@pytest.fixture
def work(tmp_path: Path) -> str:
    place = tmp_path / "work"
    place.mkdir(exist_ok=True)
    return str(place)


@pytest.mark.parametrize("name", NAMES)
def test_a_new_file_has_its_size_in_blocks_of_incompressible_data(
    machine: Machine, tmp_path: Path, work: str, name: str
) -> None:
    layout = prepare(machine, f"{tmp_path}/{name}", 8 * MIB, workdir=work)
    data = (tmp_path / name).read_bytes()
    assert (layout.made, layout.ours, layout.findings) == (True, True, ())
    assert len(data) == layout.size == 8 * MIB
    assert os.stat(tmp_path / name).st_blocks * 512 >= 8 * MIB
    assert len(zlib.compress(data, 1)) > 0.99 * len(data)
    assert len({data[at : at + 4096] for at in range(0, len(data), 4096)}) == 2048  # no block twice


def test_a_file_that_is_large_enough_is_used_again_without_being_written(
    machine: Machine, tmp_path: Path, work: str
) -> None:
    path = f"{tmp_path}/data"
    prepare(machine, path, 2 * MIB, workdir=work)
    before = os.stat(path)
    again = prepare(machine, path, MIB, workdir=work)
    assert (again.made, again.ours, again.size) == (False, True, 2 * MIB)
    assert os.stat(path).st_mtime_ns == before.st_mtime_ns


def test_iodelta_replaces_its_own_file_when_a_larger_one_is_asked_for(
    machine: Machine, tmp_path: Path, work: str
) -> None:
    path = f"{tmp_path}/data"
    prepare(machine, path, MIB, workdir=work)
    assert prepare(machine, path, 2 * MIB, workdir=work).made
    assert os.path.getsize(path) == 2 * MIB


def test_a_file_of_the_users_is_used_when_large_enough_and_never_extended(
    machine: Machine, tmp_path: Path, work: str
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(os.urandom(MIB))
    before = theirs.read_bytes()
    layout = prepare(machine, str(theirs), MIB, workdir=work)
    assert (layout.made, layout.ours) == (False, False)
    with pytest.raises(RequestError, match="1048576 bytes, but 2097152 are needed"):
        prepare(machine, str(theirs), 2 * MIB, workdir=work)
    assert theirs.read_bytes() == before


def test_a_file_put_in_the_place_of_ours_is_not_ours(machine: Machine, tmp_path: Path, work: str) -> None:
    path = tmp_path / "data"
    prepare(machine, str(path), MIB, workdir=work)
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"precious")
    theirs.rename(path)
    with pytest.raises(RequestError, match="only files it made"):
        prepare(machine, str(path), MIB, workdir=work)
    assert path.read_bytes() == b"precious"


def test_a_sparse_file_is_used_with_a_warning(machine: Machine, tmp_path: Path, work: str) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, MIB)
    layout = prepare(machine, str(path), MIB, workdir=work)
    assert [(f.rule, f.severity) for f in layout.findings] == [("target.holes", "warning")]


def test_a_layout_that_was_killed_is_never_taken_for_a_finished_one(
    machine: Machine, tmp_path: Path, work: str
) -> None:
    (tmp_path / ".data.iodelta-layout").write_bytes(b"half")
    assert prepare(machine, f"{tmp_path}/data", MIB, workdir=work).made
    assert sorted(p for p in os.listdir(tmp_path) if p != "work") == [".data.iodelta", "data"]


class Boasts(LocalMachine):
    """This machine, when it still had much free space."""

    def run(self, args: Sequence[str], **rest: Any) -> Completed:
        done = super().run(args, **rest)
        return msgspec.structs.replace(done, stdout=b"1000000 4096\n") if args[:2] == ["stat", "-f"] else done


@pytest.mark.root
def test_space_that_runs_out_meanwhile_is_one_clear_error_and_leaves_nothing(small_filesystem: Path, work: str) -> None:
    with pytest.raises(MeasureError, match="No space left on device") as caught:
        prepare(Boasts(), f"{small_filesystem}/data", 100 * MIB, workdir=work)
    assert "smaller [target] size" in caught.value.remedy
    assert os.listdir(small_filesystem) == ["lost+found"]


FILES = (("numjobs", "2"), ("nrfiles", "3"), ("rw", "randread"), ("bs", "4k"))


def test_the_files_of_a_directory_are_those_that_the_trial_will_use(
    machine: Machine, tmp_path: Path, work: str, request_for: Callable[..., FioRequest]
) -> None:
    place = tmp_path / "files"
    place.mkdir()
    layout = prepare_directory(machine, str(place), FILES, 6 * MIB, workdir=work)
    assert sorted(os.listdir(place)) == [f"iodelta.{job}.{file}" for job in (0, 1) for file in (0, 1, 2)]
    assert (layout.made, layout.size) == (True, 12 * MIB)
    request = request_for(
        str(place), *(f"{n}={v}" for n, v in FILES), target_kind="directory", size=6 * MIB, runtime=0.3, ramp=0.0
    )
    assert read_run(run(machine, request)).usable
    assert not prepare_directory(machine, str(place), FILES, 6 * MIB, workdir=work).made


def test_half_made_files_of_a_directory_are_made_again(machine: Machine, tmp_path: Path, work: str) -> None:
    place = tmp_path / "files"
    place.mkdir()
    prepare_directory(machine, str(place), FILES, 6 * MIB, workdir=work)
    os.truncate(place / "iodelta.0.1", 0)
    os.truncate(place / "iodelta.0.1", 2 * MIB)  # full size, no data: what a kill leaves behind
    (place / ".iodelta-layout").touch()
    (place / "mine").write_bytes(b"precious")
    layout = prepare_directory(machine, str(place), FILES, 6 * MIB, workdir=work)
    assert (layout.made, layout.findings) == (True, ())
    assert (place / "mine").read_bytes() == b"precious"
