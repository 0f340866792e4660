"""When the I/O of a device can be said to be fio's alone."""

from __future__ import annotations

import msgspec
import pytest
from knob.rooted import target

from iodelta.experiment import Cell, Condition, Variant
from iodelta.lab.bench import lone_device

IDLE = Condition("")
DIRECT = {"rw": "randread", "direct": "1"}


def device(options: dict[str, str], variant: dict[str, str] | None = None, condition: Condition = IDLE) -> str | None:
    cell = Cell("cell", "", tuple(options.items()))
    return lone_device(cell, Variant("v", {}, tuple((variant or {}).items())), condition, target("sda"))


def test_direct_io_on_one_device_is_all_that_should_happen_there() -> None:
    assert device(DIRECT) == "sda"
    assert device({"rw": "randwrite", "direct": "1"}) == "sda"
    assert device({"rw": "randread"}, variant={"direct": "1"}) == "sda"


@pytest.mark.parametrize(
    ("options", "variant", "condition"),
    [
        ({"rw": "randread"}, {}, IDLE),
        ({"rw": "randread", "direct": "0"}, {}, IDLE),
        (DIRECT, {"direct": "0"}, IDLE),
        (DIRECT, {}, Condition("load", background=("cat", "/dev/sda"))),
        (DIRECT, {}, Condition("load", background_fio=(("rw", "read"),))),
    ],
    ids=["buffered", "direct=0", "a buffered variant", "beside a command", "beside another fio"],
)
def test_buffered_io_and_background_loads_move_more_or_less_than_fio_counts(
    options: dict[str, str], variant: dict[str, str], condition: Condition
) -> None:
    assert device(options, variant, condition) is None


def test_of_several_devices_or_of_writes_to_a_filesystem_nothing_is_said() -> None:
    cell, variant = Cell("cell", "", tuple(DIRECT.items())), Variant("v")
    assert lone_device(cell, variant, IDLE, target("sda", "sdb")) is None
    file = msgspec.structs.replace(target("sda", fstype="ext4"), kind="file")
    assert lone_device(cell, variant, IDLE, file) == "sda"
    writes = Cell("cell", "", (("rw", "randwrite"), ("direct", "1")))
    assert lone_device(writes, variant, IDLE, file) is None
