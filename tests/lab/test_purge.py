"""A disk is purged by its own commands, and only where it can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from fakes import PaperMachine
from knob.rooted import target as drawn

from iodelta.errors import MachineError
from iodelta.experiment import Prepare
from iodelta.lab import purge
from iodelta.machine.base import Completed
from iodelta.probe.topology import Target

GIB = 1 << 30


class Paper(PaperMachine):
    """Of a command it knows by its name alone what it says."""

    def run(self, args: Sequence[str], **_: Any) -> Completed:
        if args[0] not in self.commands:
            raise MachineError("no such program", place=args[0])
        return super().run(args[:1])


def target(name: str) -> Target:
    return msgspec.structs.replace(drawn(name, path=f"/dev/{name}"), size_bytes=GIB)


DISCARDS = {"/sys/class/block/nvme0n1/queue/discard_max_bytes": "2199023255040"}
NAMESPACE = {"/sys/class/block/nvme0n1": "", "/sys/class/block/nvme0n1p1": ""}


@pytest.mark.parametrize(
    ("name", "how", "files", "programs", "why"),
    [
        ("nvme0n1", "none", {}, {}, ""),
        ("nvme0n1", "discard", DISCARDS, {"blkdiscard": ""}, ""),
        ("nvme0n1", "discard", DISCARDS, {}, "blkdiscard is not installed"),
        ("nvme0n1", "discard", {}, {"blkdiscard": ""}, "cannot discard"),
        ("nvme0n1", "nvme-format", NAMESPACE, {"nvme": ""}, ""),
        ("nvme0n1", "nvme-format", NAMESPACE, {}, "nvme is not installed"),
        ("nvme0n1p1", "nvme-format", NAMESPACE, {"nvme": ""}, "not a whole NVMe namespace"),
        ("sda", "nvme-format", {}, {"nvme": ""}, "not a whole NVMe namespace"),
        ("nvme0n1", "nvme-format", {**NAMESPACE, "/sys/class/block/nvme0n2": ""}, {"nvme": ""}, "has 2 namespaces"),
    ],
)
def test_a_purge_that_the_disk_cannot_do_is_refused_with_the_reason(
    name: str, how: Any, files: dict[str, str], programs: dict[str, str], why: str
) -> None:
    machine: Any = Paper(files, programs)
    said = purge.unable(machine, target(name), Prepare(purge=how), GIB)
    assert why in said
    assert bool(said) == bool(why)


def test_a_format_of_less_than_the_namespace_is_refused() -> None:
    machine: Any = Paper(NAMESPACE, {"nvme": ""})
    said = purge.unable(machine, target("nvme0n1"), Prepare(purge="nvme-format"), GIB // 2)
    assert "the whole namespace" in said


@pytest.mark.parametrize(("usage", "force"), [("-f, --force", ["--force"]), ("-s, --secure", [])])
def test_a_discard_is_of_the_bytes_that_are_prepared_and_no_others(usage: str, force: list[str]) -> None:
    machine: Any = Paper({}, {"blkdiscard": usage})
    words = purge.words(machine, target("nvme0n1"), Prepare(purge="discard"), 4096)
    assert words == ["blkdiscard", *force, "--offset", "0", "--length", "4096", "/dev/nvme0n1"]
