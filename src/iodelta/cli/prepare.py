"""``iodelta prepare``: bring a disk to a known state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from iodelta.cli.complete import files
from iodelta.cli.contact import on_machine
from iodelta.cli.delivery import FORMATS, printed
from iodelta.cli.groups import Grouped
from iodelta.cli.shared_options import in_formats, may_destroy
from iodelta.cli.turn import waits

EXAMPLES = """
\b
Examples:
  iodelta prepare /dev/sdb --destroy /dev/sdb --dry-run
  iodelta prepare /dev/sdb --destroy /dev/sdb --purge discard
  iodelta prepare /dev/sdb --destroy /dev/sdb -- --rw=randwrite --bs=16k --iodepth=8 --ioengine=libaio --direct=1
  iodelta prepare iodelta-prepare-20260102-030405 --destroy /dev/sdb      # continues after a kill, Ctrl-C or reboot
"""


@click.command("prepare", cls=Grouped, epilog=EXAMPLES)
@click.argument("what", shell_complete=files)
@click.argument("fio", nargs=-1, type=click.UNPROCESSED)
@on_machine
@click.option(
    "--purge",
    type=click.Choice(["none", "discard", "nvme-format"]),
    help="How to discard everything on the disk first (default: none).",
)
@click.option(
    "--fill",
    type=float,
    help="How many times to write the whole size sequentially, in blocks of 128k (default: 2).",
)
@click.option(
    "--round", "round_", default="", help="Duration of one round (default: 60s)."
)
@click.option("--limit", type=int, help="Maximum number of rounds (default: 25).")
@click.option(
    "--spare",
    default="",
    metavar="SHARE",
    help="Share of the size that rounds must write before five of them can count as steady (default: 30%).",
)
@click.option(
    "--size",
    default="",
    help="How much of the disk to prepare, in fio's units (default: all of it).",
)
@may_destroy
@waits
@click.option(
    "--folder",
    "place",
    type=click.Path(path_type=Path),
    help="Name of the folder to create.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show steps, bytes and time; change nothing."
)
@in_formats(FORMATS)
@printed
def command(what: str, **options: Any) -> None:
    """Bring a disk to a known state: purge it, fill it, then write in rounds until it is steady.

    Everything on the disk is overwritten. WHAT is a block device or file, an experiment file (FILE.toml) with a
    [prepare] table, or the folder of an earlier preparation, to continue it. Options of fio after -- say what a
    round does (default: random writes of 4k at depth 32).

    Steady is defined as in SNIA's Solid State Storage Performance Test Specification: over five rounds the IOPS range
    over at most 20 % of their average, and their least-squares line changes by at most 10 % of it.

    Exit codes: 0 steady, 2 the request is wrong, 3 not steady within the limit, or stopped before, 4 could not write.
    """
    from iodelta.cli.preparing import Asked, prepare  # --help does without

    prepare(what, Asked(**options))
