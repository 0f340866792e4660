"""The workshop of the tests takes back what it made, also while others look at it: udev, blkid, another test."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from waiting import until
from workshop import Workshop, attach, loops_in, no_other_takes_loops

pytestmark = [pytest.mark.root, pytest.mark.beside]


@pytest.mark.parametrize("looked_at", ["disk", "partition"])
def test_what_another_process_looks_at_is_taken_back_as_soon_as_it_looks_away(tmp_path: Path, looked_at: str) -> None:
    made = Workshop(tmp_path)
    disk = made.loop(32)
    [partition] = made.partition(disk)
    look = os.open(disk if looked_at == "disk" else partition, os.O_RDONLY)
    looks_away = threading.Timer(0.5, os.close, [look])
    looks_away.start()
    made.close()
    until(lambda: loops_in(tmp_path) == [])
    assert not Path("/sys/block", Path(disk).name, Path(partition).name).exists()
    looks_away.join()


def test_a_device_that_another_test_took_over_stays_attached(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    first, second = Workshop(mine), Workshop(theirs)
    node = first.loop(8)
    image = second.file(8)
    with no_other_takes_loops():
        first.run("losetup", "--detach", node)
        attach(node, image)
    first.close()
    assert loops_in(theirs) == [node]
    first.run("losetup", "--detach", node)
