"""What each device of a mirror served is told from its read_stats dumps."""

from __future__ import annotations

import pytest

from iodelta.ingest import DeviceStats
from iodelta.ingest.report import read_text
from iodelta.report.formats.terminal import lines
from iodelta.report.stories.shown import of_shown
from iodelta.study.devices import served
from iodelta.study.rows import Shown

BEFORE = """--- Timestamp: 2025-05-04 10:50:33.1 ---
/sys/fs/btrfs/7f/devinfo/1/read_stats:cumulative ios 1000 wait 5000000 avg 5000 checkpoint ios 10 wait 40 avg 4 age 7
/sys/fs/btrfs/7f/devinfo/2/read_stats:cumulative ios 20 wait 800000 avg 40000 checkpoint ios 20 wait 9 avg 1 age -3
"""
AFTER = """--- Timestamp: 2025-05-04 10:52:33.0 ---
/sys/fs/btrfs/7f/devinfo/1/read_stats:cumulative ios 1300 wait 6200000 avg 4769 checkpoint ios 10 wait 40 avg 4 age 0
/sys/fs/btrfs/7f/devinfo/2/read_stats:cumulative ios 120 wait 1800000 avg 15000 checkpoint ios 20 wait 9 avg 1 age -3
"""


def stats(text: str) -> list[DeviceStats]:
    return [item for item in read_text(text.encode(), "x_readstats.txt") if isinstance(item, DeviceStats)]


def test_between_two_dumps_a_device_served_what_its_counters_grew_by() -> None:
    one, two = served(stats(BEFORE + AFTER))
    assert (one.reads, one.share, one.wait, one.seconds) == (300, 0.75, 4000, 120)
    assert (two.reads, two.share, two.wait, two.since_mount) == (100, 0.25, 10_000, False)


def test_one_dump_says_what_was_served_since_mount() -> None:
    one, two = served(stats(BEFORE))
    assert (one.reads, one.wait, one.since_mount, one.seconds) == (1000, 5000, True, None)
    assert one.share == pytest.approx(1000 / 1020)
    assert two.reads == 20


def test_a_counter_that_fell_was_reset_by_a_mount() -> None:
    one, _ = served(stats(AFTER + BEFORE))
    assert (one.reads, one.since_mount) == (1000, True)


def test_the_layout_of_queue_adaptive_is_read_too() -> None:
    line = "/sys/fs/btrfs/7f/devinfo/3/read_stats:ios 400 wait 800000 avg 2000 age 1 ignored 0 health avg 5 score 9\n"
    (device,) = served(stats(line))
    assert (device.device, device.reads, device.wait) == ("3", 400, 2000)


def test_it_is_shown_on_a_screen() -> None:
    found = served(stats(BEFORE + AFTER))
    text = "\n".join(str(line) for line in lines(of_shown(Shown("iodelta.show/1", (), (), (), 0, 0, devices=found))))
    assert "x_readstats.txt: between the first and the last dump, 120 s" in text
    assert "  device  reads   share  mean wait\n  1         300  75.0 %    4.000us\n" in text
