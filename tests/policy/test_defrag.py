"""The defragmentation beside a trial: does as much in every pass, is counted, and leaves nothing behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import until
from workshop import Workshop

from iodelta.errors import RequestError
from iodelta.machine import LocalMachine
from iodelta.parts.mirrors.defrag import EXTENT, PREFIX, clone, defragment, fragment, keep_defragmenting, workplace
from iodelta.workload.background import BackgroundLoad

IODELTA = str(Path(sys.executable).with_name("iodelta"))
MIB = 1 << 20


@pytest.fixture
def pool(workshop: Workshop) -> Path:
    """A mirrored btrfs on two loop devices."""
    pair = workshop.loop(200), workshop.loop(200)
    workshop.run("mkfs.btrfs", "--quiet", "-d", "raid1", "-m", "raid1", *pair)
    return workshop.mount(pair[0])


def extents(path: Path) -> int:
    """How many pieces a file lies in."""
    said = subprocess.run(["filefrag", str(path)], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+) extents? found", said)
    assert found is not None
    return int(found[1])


def left(pool: Path) -> list[Path]:
    return list(pool.glob(f"{PREFIX}*"))


@pytest.mark.root
def test_a_pass_rewrites_all_of_it_and_the_next_finds_as_many_extents(pool: Path) -> None:
    size = 4 * MIB
    with workplace(pool, size) as place:
        kept = place / "kept"
        fragment(kept, size)
        wanted = kept.read_bytes()
        before = extents(kept)
        assert before > 0.9 * size / EXTENT
        for _ in range(2):
            copy = clone(kept, place / "clone")
            assert extents(copy) == before
            defragment(copy, size)
            assert extents(copy) <= 8
            assert copy.read_bytes() == wanted
        assert extents(kept) == before
    assert left(pool) == []


@pytest.mark.root
def test_as_a_background_load_it_runs_on_its_rate_is_known_and_its_end_leaves_nothing(
    pool: Path, tmp_path: Path
) -> None:
    words = [IODELTA, "policy", "defrag", str(pool), "--size", "4m"]
    with BackgroundLoad(LocalMachine(), words, workdir=str(tmp_path)) as load:
        until(lambda: left(pool))
        begun = time.time()
        until(lambda: load.account((begun, time.time())).rate)
        account = load.account((begun, time.time()))
        assert account.restarts == 0
        assert account.alive == pytest.approx(1)
    assert left(pool) == []


@pytest.mark.root
def test_what_a_killed_one_left_is_removed_by_the_next_and_a_live_one_s_is_not(pool: Path) -> None:
    process = subprocess.Popen([IODELTA, "policy", "defrag", str(pool), "--size", "1m"], stderr=subprocess.DEVNULL)
    until(lambda: left(pool))
    (first,) = left(pool)
    with workplace(pool, MIB) as second:
        assert sorted(left(pool)) == sorted((first, second))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert left(pool) == [first]
    with workplace(pool, MIB) as third:
        assert left(pool) == [third]


@pytest.mark.root
def test_where_it_cannot_run_it_says_why(pool: Path) -> None:
    for place, size, words in (
        (Path("/proc"), MIB, "is on proc"),
        (pool / "missing", MIB, "nothing at this path"),
        (pool, 1 << 40, "MiB are free"),
        (pool, 1, "hold not one extent"),
    ):
        with pytest.raises(RequestError, match=words):
            keep_defragmenting(place, size, lambda: True)
