"""``iodelta run``: measure, or go on measuring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from iodelta.cli.complete import files, settings
from iodelta.cli.delivery import VALUE_FORMATS, printed
from iodelta.cli.gate import fails
from iodelta.cli.groups import Grouped
from iodelta.cli.own_command import allow_commands
from iodelta.cli.shared_options import (
    design_options,
    in_formats,
    may_destroy,
    with_anatomy,
)
from iodelta.cli.turn import waits

EXAMPLES = """
\b
Examples:
  iodelta run experiment.toml
  iodelta run iodelta-20260102-030405          # continues after a kill, Ctrl-C or reboot
  iodelta run --target /dev/sdb --variant none:block.scheduler=none \\
      --variant dl:block.scheduler=mq-deadline -- --rw=randread --bs=4k --ioengine=libaio --direct=1 --iodepth=1,32
  iodelta run --dry-run --variant a:fio.ioengine=libaio --variant b:fio.ioengine=io_uring \\
      -- --rw=randread --bs=4k --direct=1
  iodelta run --machine ssh:storage1 --target /dev/disk/by-id/... --variant none:block.scheduler=none \\
      --variant dl:block.scheduler=mq-deadline -- --rw=randread --bs=4k --direct=1
  iodelta run --machine ssh:storage1 --target /dev/disk/by-id/... --variant old:kernel=6.1 \\
      --variant new:kernel=6.12 -- --rw=randread --bs=4k --direct=1     # reboots it for every variant of a block
  iodelta run --quick --variant libaio:fio.ioengine=libaio --variant uring:fio.ioengine=io_uring \\
      -- --rw=randread --bs=4k --direct=1 --iodepth=32
"""


@click.command("run", cls=Grouped, epilog=EXAMPLES)
@click.argument("what", required=False, shell_complete=files)
@click.argument("fio", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME:KNOB=VALUE,...",
    shell_complete=settings,
    help="A name and the settings to compare under it. Repeatable; give at least two.",
)
@design_options
@click.option(
    "--quick",
    is_flag=True,
    help="A first answer within a minute: trials of 1s, a margin of 5%.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan; change nothing.")
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    shell_complete=settings,
    metavar="NAME[:KNOB=VALUE,...|:COMMAND]",
    help="Knobs or a background load that stay the same while variants are compared.",
)
@click.option(
    "--machine",
    "names",
    multiple=True,
    metavar="ssh:HOST|vm:KERNEL",
    help="Where to run: over SSH or in a throw-away guest (default: this machine). Repeatable; blocks alternate.",
)
@click.option("--clock", type=click.Choice(["wall", "instructions"]), hidden=True)
@with_anatomy("What else is counted with the instruction clock.", hidden=True)
@click.option("--cpus", type=int, hidden=True)
@click.option(
    "--repo",
    default="",
    metavar="PATH",
    shell_complete=files,
    help="Record the commit checked out in this git repository.",
)
@may_destroy
@allow_commands
@waits
@click.option(
    "--leave-out",
    is_flag=True,
    help="Continue without the variants that cannot run here.",
)
@click.option(
    "--folder",
    "place",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Experiment folder to create.",
)
@click.option(
    "--verbose",
    is_flag=True,
    help="Show every statement and finding, not just one screen.",
)
@in_formats(VALUE_FORMATS)
@printed
@fails
def command(what: str | None, fio: tuple[str, ...], **options: Any) -> None:
    """Run the experiment in FILE.toml or FOLDER, or the one given by options.

    WHAT is an experiment file, a fio job file, or the folder of an earlier run, to continue it. Options of fio
    itself come after --. iodelta shows the plan, writes down the order and all rules, and runs until every cell is
    decided or the budget ends. A cell is one workload, such as 4k random reads at depth 32; a block is one trial of
    every variant.
    """
    from iodelta.cli.running import Asked, measure  # --help does without
    from iodelta.experiment.options import specs

    if what is not None and (
        what.startswith("-") or ("=" in what and not Path(what).exists())
    ):
        fio, what = (what, *fio), None
    given = {name: options.pop(name) for name in specs()}
    measure(Path(what) if what else None, Asked(fio=fio, given=given, **options))
