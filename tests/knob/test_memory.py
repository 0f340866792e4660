"""Caches dropped before a trial, on this machine's kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iodelta import knob
from iodelta.errors import KnobError, RequestError
from iodelta.machine import LocalMachine
from iodelta.probe.topology import resolve

from .rooted import Rooted, on_sda, target


def cached_bytes(machine: LocalMachine, path: Path) -> int:
    return int(machine.run(["fincore", "--bytes", "--noheadings", "--output", "RES", str(path)]).text)


@pytest.mark.root
def test_a_file_that_was_just_written_is_on_the_disk_alone_afterwards(machine: LocalMachine, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(os.urandom(1 << 20))
    assert cached_bytes(machine, file) == 1 << 20
    drop = knob.knob("memory.drop_caches", machine, resolve(machine, str(file)))
    assert drop.available() is None
    saved = drop.save()
    assert saved.values == ()
    drop.apply("1")
    drop.verify("1")
    assert cached_bytes(machine, file) == 0
    assert "nothing to restore" in knob.restore(machine, saved)


def test_a_kernel_that_drops_nothing_is_caught(tmp_path: Path) -> None:
    counters = "drop_pagecache 7\ndrop_slab 2"
    machine = Rooted(tmp_path, {"/proc/sys/vm/drop_caches": "", "/proc/vmstat": counters})
    drop = knob.knob("memory.drop_caches", machine, target("sda", path=str(tmp_path)))
    drop.apply("3")
    with pytest.raises(KnobError, match="drop_pagecache in /proc/vmstat is still 7"):
        drop.verify("3")


@pytest.mark.parametrize("value", ["0", "4", "all", ""])
def test_only_the_three_kinds_of_cache_can_be_dropped(tmp_path: Path, value: str) -> None:
    with pytest.raises(RequestError, match=r"1 \(page cache\), 2"):
        on_sda("memory.drop_caches", Rooted(tmp_path, {})).check(value)
