"""``iodelta calibrate``: the changes that this machine can detect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from iodelta.cli.contact import on_machine
from iodelta.cli.delivery import FORMATS, printed
from iodelta.cli.groups import Grouped
from iodelta.cli.own_command import allow_commands, workload
from iodelta.cli.shared_options import (
    in_formats,
    may_destroy,
    named_target,
    sized_target,
)
from iodelta.cli.turn import waits

EXAMPLES = """
\b
Examples:
  iodelta calibrate --budget 10m
  iodelta calibrate --target /dev/sdb --budget 1h -- --rw=randread --bs=4k --ioengine=libaio --direct=1 --iodepth=32
  iodelta calibrate --target /dev/sdb --destroy /dev/sdb --budget 1h
  iodelta calibrate --machine ssh:storage1 --target /dev/nvme0n1 --budget 1h
  iodelta calibrate --workload store.toml --budget 1h     # what the numbers of your own command can show
"""


@click.command("calibrate", cls=Grouped, epilog=EXAMPLES)
@click.argument("fio", nargs=-1, type=click.UNPROCESSED)
@on_machine
@workload
@allow_commands
@click.option(
    "--target",
    callback=named_target,
    default="",
    help="Block device, file or directory to measure (default: a scratch file here).",
)
@sized_target
@click.option("--trial", default="2s", show_default=True, help="Duration of one trial.")
@click.option(
    "--ramp",
    default="500ms",
    show_default=True,
    help="Warm-up before each trial, which is not counted.",
)
@click.option("--budget", default="10m", show_default=True, help="Total time.")
@click.option(
    "--margin",
    default="1%",
    show_default=True,
    help="The smallest change that matters to you.",
)
@click.option(
    "--seed",
    type=int,
    help="Seed of the order and the offsets (default: random; always recorded).",
)
@may_destroy
@waits
@click.option(
    "--folder",
    "place",
    type=click.Path(path_type=Path),
    help="Directory for the experiment folders.",
)
@in_formats(FORMATS)
@printed
def command(**options: Any) -> None:
    """Compare a workload with itself through the whole pipeline, then with known slow-downs.

    Prints the noise by source, bounds on the rates of false alarms and of stalls, and the smallest change that this
    machine can detect in ten minutes, an hour and a night. Every later plan and report on this machine, disk and
    workload quotes these figures; calibrating again refines them. Known slow-downs need a throttle (cgroup.io_max in
    `iodelta knobs`). Carry-over from trials that write is measured on a scratch file, or on a device or file that
    --destroy names.
    """
    from iodelta.cli.calibrating import Asked, calibrate  # --help does without

    calibrate(Asked(**options))
