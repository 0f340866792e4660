"""``iodelta run``: measure, or go on measuring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from iodelta.cli.complete import files, settings
from iodelta.cli.turn import waits

EXAMPLES = """
\b
Examples:
  iodelta run experiment.toml
  iodelta run iodelta-20260102-030405          # goes on after a kill, Ctrl-C or reboot
  iodelta run --target /dev/sdb --variant none:block.scheduler=none \\
      --variant dl:block.scheduler=mq-deadline -- --rw=randread --bs=4k --direct=1 --iodepth=1,32
  iodelta run --dry-run --variant a:fio.ioengine=libaio --variant b:fio.ioengine=io_uring \\
      -- --rw=randread --bs=4k --direct=1
  iodelta run --machine ssh:storage1 --target /dev/disk/by-id/... --variant none:block.scheduler=none \\
      --variant dl:block.scheduler=mq-deadline -- --rw=randread --bs=4k --direct=1
  iodelta run --machine ssh:storage1 --target /dev/disk/by-id/... --variant old:kernel=6.1 \\
      --variant new:kernel=6.12 -- --rw=randread --bs=4k --direct=1     # reboots it, again and again
  iodelta run --machine vm --clock instructions --variant old:kernel=6.1 --variant new:kernel=6.12 \\
      -- --rw=randread --bs=4k --direct=1 --ioengine=libaio,io_uring
"""


@click.command("run", epilog=EXAMPLES)
@click.argument("what", required=False, shell_complete=files)
@click.argument("fio", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--machine",
    "names",
    multiple=True,
    metavar="ssh:HOST|vm:KERNEL",
    help="There, over your own SSH, or in a throw-away guest; here when left out. Repeat: blocks go to each in turn.",
)
@click.option(
    "--clock",
    type=click.Choice(["wall", "instructions"]),
    help="instructions: count the path through the kernel, with --machine vm; measures no time.",
)
@click.option(
    "--target",
    default="",
    shell_complete=files,
    help="Block device, file or directory; a scratch file here when left out.",
)
@click.option("--size", default="", help="How much of it, as fio spells sizes: 512m, 100g.")
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME:KNOB=VALUE,...",
    shell_complete=settings,
    help="What to compare: a name and its settings. Repeat; at least two.",
)
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    shell_complete=settings,
    metavar="NAME[:KNOB=VALUE,...|:COMMAND]",
    help="Something to hold: knobs, or a background load.",
)
@click.option("--baseline", default="", help="The variant to compare with; the first one when left out.")
@click.option("--margin", default="", help="The change that matters to you; 1 % when left out.")
@click.option("--question", default="", help="What you want to know, in a sentence.")
@click.option("--trial", default="", help="Seconds of one trial, as in 5s.")
@click.option("--ramp", default="", help="Seconds before it that do not count.")
@click.option("--budget", default="", help="Time for everything, as in 30m; of an ended folder, once: that much more.")
@click.option("--blocks", type=int, help="At most so many blocks of a cell.")
@click.option("--seed", type=int, help="Seed of order and offsets; drawn and recorded when left out.")
@click.option("--placebo", is_flag=True, help="Add an arm that is the baseline again, under another name.")
@click.option("--destroy", multiple=True, metavar="DEVICE", help="This very device or file may be overwritten.")
@waits
@click.option("--leave-out", is_flag=True, help="Go on without the variants that cannot run here.")
@click.option("--folder", "place", type=click.Path(path_type=Path), help="The experiment folder to make.")
@click.option("--dry-run", is_flag=True, help="Show cells, variants, order, bytes, knobs and time; touch nothing.")
@click.option("--format", "format_", type=click.Choice(["console", "json"]), default="console")
def command(what: str | None, fio: tuple[str, ...], **options: Any) -> None:
    """Measure the experiment in FILE.toml or FOLDER, or the one given by options.

    WHAT is an experiment file, a job file for fio, or a folder that an earlier run made. fio's own options come
    after --. The plan is shown, the order and all rules are written down, then it runs until every cell is decided,
    or the budget ends.
    """
    from iodelta.cli.running import Asked, measure  # --help does without

    if what is not None and (what.startswith("-") or ("=" in what and not Path(what).exists())):
        fio, what = (what, *fio), None
    measure(Path(what) if what else None, Asked(fio=fio, **options))
