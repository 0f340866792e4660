"""What every plugin should pass."""

from __future__ import annotations

from iodelta_example.knobs import TransparentHugePages
from iodelta_example.machines import here
from iodelta_example.readers import read_acme
from iodelta_example.rules import few_ios

from iodelta.api import testing

OUTPUT = b"acme: randread bs=4k 41200 iops\nacme: randwrite bs=64k 2200 iops\n"


def test_the_knob() -> None:
    testing.check_knob(TransparentHugePages)


def test_the_rule() -> None:
    testing.check_rule(few_ios)


def test_the_reader() -> None:
    testing.check_reader(read_acme, OUTPUT)


def test_the_machine() -> None:
    testing.check_machine(here, "desk")
