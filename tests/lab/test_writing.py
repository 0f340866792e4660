"""Which fio workloads change their target: doubt counts as yes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest
from knob.rooted import target

from iodelta.experiment import parse
from iodelta.lab.setup import any_writes, writes
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

MIB = 1 << 20

DISK = target("sdz")
FILE = msgspec.structs.replace(DISK, kind="file", size_bytes=10 * MIB)
DIRECTORY = msgspec.structs.replace(DISK, kind="directory", size_bytes=0)


@pytest.mark.parametrize("rw", ["read", "randread", "read:8", "randread:4k"])
@pytest.mark.parametrize("name", ["rw", "readwrite"])
def test_reading_a_device_changes_nothing(name: str, rw: str) -> None:
    assert not writes([(name, rw), ("bs", "4k"), ("ioengine", "io_uring"), ("size", "2g")], DISK)


def test_fio_reads_when_it_is_not_told_what_to_do() -> None:
    assert not writes([("bs", "4k"), ("iodepth", "32"), ("direct", "1")], DISK)


@pytest.mark.parametrize(
    "rw",
    "write randwrite rw readwrite randrw trim randtrim trimwrite randtrimwrite randrw:8 write:64k Read unheard".split(),
)
@pytest.mark.parametrize("name", ["rw", "readwrite"])
def test_everything_but_reading_is_a_write_and_so_is_trim(name: str, rw: str) -> None:
    assert writes([(name, rw)], DISK)


@pytest.mark.parametrize(("load", "changes"), [("", False), ('{rw = "read"}', False), ('{rw = "randrw"}', True)])
def test_an_experiment_writes_when_a_fio_load_beside_its_reads_does(load: str, changes: bool) -> None:
    condition = f"[condition.x]\nbackground = {load}" if load else ""
    reads = f'[workload]\nrw = "read"\n[variant.a]\n[variant.b]\nfio.direct = 1\n{condition}'
    assert any_writes(parse(reads), DISK) is changes
    assert any_writes(parse(reads.replace("fio.direct = 1", "fio.rw = 'write'")), DISK)


def test_one_write_among_repeated_options_is_a_write() -> None:
    assert writes([("rw", "randwrite"), ("rw", "read")], DISK)
    assert writes([("rw", "read"), ("readwrite", "randrw")], DISK)


@pytest.mark.parametrize(
    "option",
    [
        ("trim_percentage", "10"),
        ("trim_backlog", "5"),
        ("read_iolog", "/tmp/log"),
        ("unlink", "1"),
        ("unlink", None),
        ("fill_device", "1"),
        ("fill_fs", "1"),
        ("sprandom", "1"),
        ("profile", "act"),
    ],
)
def test_options_that_change_the_target_although_rw_reads(option: tuple[str, str | None]) -> None:
    assert writes([("rw", "randread"), option], DISK)


def test_an_option_that_is_switched_off_changes_nothing() -> None:
    assert not writes([("rw", "randread"), ("unlink", "0"), ("trim_percentage", "0")], DISK)


@pytest.mark.parametrize("engine", ["falloc", "filedelete", "ftruncate", "e4defrag", "exec", "external:/x.so", "new"])
def test_engines_that_do_not_read_when_rw_reads(engine: str) -> None:
    assert writes([("rw", "read"), ("ioengine", engine)], DISK)


@pytest.mark.parametrize("name", ["readwr", "r", "ioeng", "unlin"])
def test_an_abbreviated_option_is_doubtful(name: str) -> None:
    assert writes([(name, "read")], DISK)


def test_in_a_directory_even_a_read_makes_files() -> None:
    assert writes([("rw", "read")], DIRECTORY)


@pytest.mark.parametrize(
    ("options", "size", "grows"),
    [
        ([], None, False),
        ([], 10 * MIB, False),
        ([], 10 * MIB + 1, True),
        ([("size", "10m")], None, False),
        ([("size", "5m")], 20 * MIB, False),  # fio's own option has the last word
        ([("size", "11m")], None, True),
        ([("size", "100%")], None, False),
        ([("offset", "5m"), ("size", "5m")], None, False),
        ([("offset", "6m"), ("size", "5m")], None, True),
        ([("offset", "50%"), ("size", "6m")], None, True),
        ([("offset_increment", "4m"), ("numjobs", "2"), ("size", "6m")], None, False),
        ([("offset_increment", "4m"), ("numjobs", "3"), ("size", "6m")], None, True),
        ([("filesize", "1m-20m")], None, True),  # not understood
        ([("numjobs", "many")], None, True),
    ],
)
def test_reading_beyond_the_end_of_a_file_destroys_it(
    options: list[tuple[str, str | None]], size: int | None, grows: bool
) -> None:
    assert writes([("rw", "randread"), *options], FILE, size) == grows


@pytest.mark.fio
def test_that_is_what_fio_really_does(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    for length, changed in ((2 * MIB, False), (MIB, True)):
        path.write_bytes(b"x" * length)
        options = [("rw", "randread"), ("size", "2m")]
        predicted = writes(options, resolve(LocalMachine(), str(path)))
        words = [f"--{name}={value}" for name, value in options]
        args = ["fio", "--name=read", f"--filename={path}", "--number_ios=1", "--output=/dev/null", *words]
        subprocess.run(args, check=True, capture_output=True)
        assert predicted == changed
        assert (path.read_bytes() != b"x" * length) == changed
