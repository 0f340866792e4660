"""``iodelta calibrate``: what this machine can see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from iodelta.cli.contact import on_machine
from iodelta.cli.turn import waits

EXAMPLES = """
\b
Examples:
  iodelta calibrate --budget 10m
  iodelta calibrate --target /dev/sdb --budget 1h -- --rw=randread --bs=4k --direct=1 --iodepth=32
  iodelta calibrate --machine ssh:storage1 --target /dev/nvme0n1 --budget 1h
"""


@click.command("calibrate", epilog=EXAMPLES)
@click.argument("fio", nargs=-1, type=click.UNPROCESSED)
@on_machine
@click.option("--target", default="", help="Block device, file or directory; a scratch file here when left out.")
@click.option("--size", default="", help="How much of it, as fio spells sizes.")
@click.option("--trial", default="2s", show_default=True, help="Seconds of one trial.")
@click.option("--ramp", default="500ms", show_default=True, help="Seconds before it that do not count.")
@click.option("--budget", default="10m", show_default=True, help="Time for everything.")
@click.option("--margin", default="1%", show_default=True, help="The change that matters to you.")
@click.option("--seed", type=int, help="Seed of order and offsets; drawn and recorded when left out.")
@click.option("--destroy", multiple=True, metavar="DEVICE", help="This very device or file may be overwritten.")
@waits
@click.option("--folder", "place", type=click.Path(path_type=Path), help="Where the experiment folders go.")
@click.option("--format", "format_", type=click.Choice(["console", "json"]), default="console")
def command(**options: Any) -> None:
    """Compare a workload with itself through the whole pipeline, then with known slow-downs.

    Prints the noise by source, a bound of the false-alarm rate, and the smallest change this machine can see in ten
    minutes, an hour and a night. Every later report on this machine, disk and workload quotes it; calibrating again
    adds to it. Where no throttle can be set (cgroup.io_max in `iodelta knobs`), there are no known slow-downs.
    """
    from iodelta.cli.calibrating import calibrate  # --help does without

    calibrate(**options)
