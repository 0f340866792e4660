"""``iodelta run``: measure, or go on measuring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from iodelta.cli.complete import files, settings
from iodelta.cli.delivery import VALUE_FORMATS, printed
from iodelta.cli.gate import fails
from iodelta.cli.own_command import allow_commands
from iodelta.cli.shared_options import (
    in_formats,
    may_destroy,
    sized_target,
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
  iodelta run --machine vm --clock instructions --variant old:kernel=6.1 --variant new:kernel=6.12 \\
      -- --rw=randread --bs=4k --direct=1 --ioengine=libaio,io_uring
  iodelta run --machine vm --clock instructions --anatomy=sharing --variant wbt --variant off:block.wbt_lat_usec=0 \\
      -- --rw=randread --bs=4k --direct=1
"""


@click.command("run", epilog=EXAMPLES)
@click.argument("what", required=False, shell_complete=files)
@click.argument("fio", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--machine",
    "names",
    multiple=True,
    metavar="ssh:HOST|vm:KERNEL",
    help="Where to run: over SSH or in a throw-away guest (default: this machine). Repeatable; blocks alternate.",
)
@click.option(
    "--clock",
    type=click.Choice(["wall", "instructions"]),
    help="What to measure: wall time, or instructions executed in the kernel (needs --machine vm; not time).",
)
@with_anatomy(
    "With --clock instructions: path also counts the calls and memory accesses of an I/O; sharing counts the cache lines that move between CPUs instead."
)
@click.option(
    "--cpus",
    type=int,
    help="CPUs of the guest with --anatomy=sharing: 2, which is the default.",
)
@click.option(
    "--target",
    default="",
    shell_complete=files,
    help="Block device, file or directory to measure (default: a scratch file here).",
)
@sized_target
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME:KNOB=VALUE,...",
    shell_complete=settings,
    help="A name and the settings to compare under it. Repeatable; give at least two.",
)
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    shell_complete=settings,
    metavar="NAME[:KNOB=VALUE,...|:COMMAND]",
    help="A condition kept constant while variants are compared: knobs, or a background load.",
)
@click.option(
    "--baseline", default="", help="The variant to compare with (default: the first)."
)
@click.option(
    "--margin",
    default="",
    help="The smallest change that matters to you (default: 1 %).",
)
@click.option(
    "--question", default="", help="Your question in a sentence, for the report."
)
@click.option("--trial", default="", help="Duration of one trial, such as 5s.")
@click.option(
    "--ramp", default="", help="Warm-up before each trial, which is not counted."
)
@click.option(
    "--repo",
    default="",
    metavar="PATH",
    shell_complete=files,
    help="Record the commit checked out in this git repository.",
)
@click.option(
    "--budget",
    default="",
    help="Total time, such as 30m. For a folder whose budget has ended: extra time, once.",
)
@click.option("--blocks", type=int, help="Maximum number of blocks per cell.")
@click.option(
    "--seed",
    type=int,
    help="Seed of the order and the offsets (default: random; always recorded).",
)
@click.option(
    "--placebo",
    is_flag=True,
    help="Add a copy of the baseline under another name, which must come out equal.",
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
    help="Name of the experiment folder to create.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show cells, variants, order, bytes, knobs and time; change nothing.",
)
@click.option(
    "--verbose",
    is_flag=True,
    help="Show every statement and finding of the result, not just one screen.",
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

    if what is not None and (
        what.startswith("-") or ("=" in what and not Path(what).exists())
    ):
        fio, what = (what, *fio), None
    measure(Path(what) if what else None, Asked(fio=fio, **options))
