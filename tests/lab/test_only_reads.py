"""What a command that only reads does to its target: a device that nobody else uses shows every byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from workshop import Workshop

from iodelta.lab.commands import OnlyReads
from iodelta.machine import LocalMachine
from iodelta.probe.counters import Counters
from iodelta.probe.topology import resolve

MACHINE = LocalMachine()


def _said(path: str, *words: str) -> list[str]:
    """What is found after a command ran on the target."""
    target = resolve(MACHINE, path)
    counters, reads = Counters(MACHINE, target), OnlyReads(MACHINE, target)
    reads.look()
    before = counters.snapshot()
    subprocess.run(words, check=True, capture_output=True)
    counted = counters.difference(before, counters.snapshot())
    return [f"{one.rule}: {one.explanation}" for one in reads.findings(counted)]


@pytest.mark.root
def test_one_sector_written_to_a_device_is_found_and_a_read_is_nothing(workshop: Workshop) -> None:
    node = workshop.loop(8)
    assert _said(node, "dd", f"if={node}", "of=/dev/null", "bs=64k", "count=8", "iflag=direct") == []
    said = _said(node, "dd", "if=/dev/zero", f"of={node}", "bs=512", "count=1", "oflag=direct", "conv=notrunc")
    assert said == ["command.writes: 512 bytes of the device were written or discarded during the trial"]


def test_a_file_that_is_changed_or_gone_is_found_and_a_read_is_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("content")
    assert _said(str(file), "cat", str(file)) == []
    changed = ["command.writes: the file has changed during the trial"]
    assert _said(str(file), "dd", "if=/dev/zero", f"of={file}", "bs=1", "count=1", "conv=notrunc") == changed
    assert _said(str(file), "rm", str(file)) == changed
