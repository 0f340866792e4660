"""The file that the guard judged is the file that fio opens: real fio on real files, whatever they are called."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiers import scaled

from iodelta.errors import RequestError
from iodelta.lab.guard import check_write
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve
from iodelta.workload.background import background_fio
from iodelta.workload.fio import command
from iodelta.workload.layout import prepare
from iodelta.workload.model import FioRequest

HERE = LocalMachine()
SIZE = 4096
NASTY = " \t\n\r\x0b\x0c\x1f\x7f;#:\\,=%${}[]()'\"&|~*?!@^-_.\u00a0\u0085\u2028é漢"

NAMES = st.text(st.sampled_from("ab" + NASTY), min_size=1, max_size=8).filter(lambda name: name not in (".", ".."))


def twins(name: str) -> set[str]:
    """What a careless reader could take ``name`` for."""
    found = {name.strip(), name.rstrip(), name.lstrip(), name.replace("\\", ""), name.replace("\\:", ":")}
    found |= {name.rstrip("".join(map(chr, range(33))) + "\x7f"), *re.split("[;#]", name), *re.split("[:,]", name)}
    found |= {
        name.replace("\\ ", " "),
        name.replace("%%", "%"),
        re.sub(r"\$\w+|\$\{\w*\}", "", name),
        name.strip("'\""),
    }
    found |= {" ".join(name.split()), name.encode("ascii", "replace").decode()}
    return {one for one in found if one not in ("", ".", "..", name)}


def request(path: str, workdir: str) -> FioRequest:
    options = (("rw", "write"), ("bs", "4k"), ("ioengine", "psync"))
    return FioRequest(
        options=options, target=path, target_kind="file", runtime=0.1, ramp=0.0, seed=7, workdir=workdir, size=SIZE
    )


def contents(place: Path) -> dict[bytes, bytes]:
    return {name: Path(os.fsdecode(bytes(place) + b"/" + name)).read_bytes() for name in os.listdir(bytes(place))}


@contextlib.contextmanager
def files(name: str) -> Iterator[Path]:
    """A directory with a file of that name, and others for which it could be taken."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made, "files")
        place.mkdir()
        for one in {name, *twins(name)}:
            (place / one).write_bytes(bytes([len(one)]) * SIZE)
        yield place


@pytest.mark.fio
@settings(max_examples=scaled(60))
@given(NAMES)
@example("db.img ")
@example("db.img\t")
@example("db.img\n")
@example("db.img\x01")
@example("db.img;old")
@example("db.img#1")
@example("a:b")
@example("a\\:b")
@example(":a")
@example("a,b")
@example("$jobname")
@example("a%20b")
def test_the_file_that_the_guard_judged_is_the_file_that_fio_opens(name: str) -> None:
    with files(name) as place, tempfile.TemporaryDirectory() as work:
        harmless = place.parent / "harmless"
        harmless.symlink_to(place / name)
        before = contents(place)
        try:
            target = resolve(HERE, str(harmless))
            with check_write(HERE, target, [str(harmless)]):
                words = command(request(target.real_path, work))
                judged = os.fsencode(target.real_path).rsplit(b"/", 1)[1]
                for _ in range(10):  # a tenth of a second can pass before a fio that gets no CPU has written
                    subprocess.run(words, check=True, capture_output=True)
                    if contents(place) != before:
                        break
        except RequestError:
            assert contents(place) == before
            assert set(name) & set(" \t\n\r\x0b\x0c\x1f\x7f;#\\\u00a0\u0085\u2028\x01"), "it could have been named"
            return
        after = contents(place)
        assert judged == os.fsencode(name)
        assert after[judged] != before[judged]
        assert {**after, judged: b""} == {**before, judged: b""}


@pytest.mark.parametrize("name", ["data ", "data\t", "data\x01", "data;1", "data#1", "da\\ta"])
def test_no_path_that_fio_misreads_reaches_it(tmp_path: Path, name: str) -> None:
    path = f"{tmp_path}/{name}"
    for kind in ("file", "device", "directory"):
        with pytest.raises(RequestError, match="fio would open another file for this name"):
            command(
                FioRequest(
                    options=(("rw", "read"),), target=path, target_kind=kind, runtime=1.0, ramp=0.0, seed=1, workdir="/"
                )
            )
    with pytest.raises(RequestError, match="fio would open another file for this name"):
        background_fio((("rw", "read"),), path)
    with pytest.raises(RequestError, match="fio would open another file for this name"):
        prepare(HERE, path, SIZE, workdir=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_name_of_undecodable_bytes_leads_to_no_other_file(tmp_path: Path) -> None:
    """Were they replaced, the path would be that of the file beside it."""
    (tmp_path / os.fsdecode(b"db\xff")).write_bytes(b"precious")
    (tmp_path / "db\ufffd").write_bytes(b"other")
    link = tmp_path / "link"
    link.symlink_to(os.fsdecode(b"db\xff"))
    target = resolve(HERE, str(link))
    assert os.fsencode(target.real_path).endswith(b"db\xff")
    with pytest.raises(RequestError):
        check_write(HERE, target, [str(link)])
    with pytest.raises(RequestError):
        command(request(target.real_path, str(tmp_path)))
