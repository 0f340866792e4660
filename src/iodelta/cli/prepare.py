"""``iodelta prepare``: bring a disk to a known state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.commands import Asked, contact, declared, files, fresh
from iodelta.errors import RequestError, pasted

if TYPE_CHECKING:
    from iodelta.lab.folder import Folder

STEPS = ("purge", "fill", "round", "spare", "limit")
"""Options that are keys of ``[prepare]``."""


@declared(
    "prepare",
    "what [fio...]",
    """
--machine
--purge none|discard|nvme-format
                      How to discard everything on the disk first (default: none).
--fill TIMES          How many times to write the whole size sequentially, in blocks of 128k (default: 2).
--round TIME          Duration of one round (default: 60s).
--limit NUMBER        Maximum number of rounds (default: 25).
--spare SHARE         Share of the size that rounds must write before five of them can count as steady (default: 30%).
--size SIZE           How much of the disk to prepare, in fio's units (default: all of it).
--destroy
--wait
--folder
--dry-run
--format REPORT [console]
--output
--force
""",
    """
  iodelta prepare /dev/sdb --destroy /dev/sdb --dry-run
  iodelta prepare /dev/sdb --destroy /dev/sdb --purge discard
  iodelta prepare /dev/sdb --destroy /dev/sdb -- --rw=randwrite --bs=16k --iodepth=8 --ioengine=libaio --direct=1
  iodelta prepare iodelta-prepare-20260102-030405 --destroy /dev/sdb      # continues after a kill, Ctrl-C or reboot
""",
    complete={"what": files},
)
def command(asked: Asked) -> None:
    """Bring a disk to a known state: purge it, fill it, then write in rounds until it is steady.

    Everything on the disk is overwritten. WHAT is a block device or file, an experiment file (FILE.toml) with a
    [prepare] table, or the folder of an earlier preparation, to continue it. Options of fio after -- say what a
    round does (default: random writes of 4k at depth 32).

    Steady is defined as in SNIA's Solid State Storage Performance Test Specification: over five rounds the IOPS range
    over at most 20 % of their average, and their least-squares line changes by at most 10 % of it.

    Exit codes: 0 steady, 2 the request is wrong, 3 not steady within the limit, or stopped before, 4 could not write.
    """
    from iodelta.report.derived import charts_of_preparation, derive_prepared
    from iodelta.report.stories.story import Detail
    from iodelta.study.words import inert

    if not asked.what.strip():
        raise RequestError(
            "names no disk",
            place=repr(asked.what),
            remedy="name a block device, a file or a folder",
        )
    path = Path(asked.what)
    is_folder = path.is_dir() and (path / "experiment.toml").is_file()
    folder = _continued(path, asked) if is_folder else _begun(path, asked)
    if folder is None:
        return
    account = derive_prepared(folder)
    asked.deliver(
        account,
        lambda: charts_of_preparation(account),
        Detail(folder=inert(pasted(folder.path))),
    )
    raise SystemExit(account.exit_code)


def _anew(asked: Asked) -> set[str]:
    """Return which options are given that only a new preparation can have."""
    return asked.given("fio", "machine", *STEPS, "size")


def _begun(path: Path, asked: Asked) -> Folder | None:
    """Return the folder of a new preparation; None after a dry run."""
    from iodelta.cli.run import rehearse
    from iodelta.cli.watching import watcher
    from iodelta.experiment import disk_text, parse_disk
    from iodelta.experiment.source import text_of
    from iodelta.lab import disksession
    from iodelta.lab.progress import Control
    from iodelta.lab.signals import stop_on_signals
    from iodelta.lab.turns import alone
    from iodelta.report.formats.terminal import labelled
    from iodelta.report.stories.plan import disk_facts
    from iodelta.study.planned import DiskPlanAnswer, refusal_text

    name, base, is_file = "command line", Path(), path.suffix == ".toml"
    if is_file:
        if _anew(asked):
            raise RequestError(
                "the file already defines the steps",
                place=str(path),
                remedy="change [prepare] there, or name the device in place of the file",
            )
        text, name, base = text_of(path), str(path), path.parent
    else:
        text = disk_text(
            machine=asked.machine,
            target={"path": str(path), "size": asked.size},
            prepare={step: getattr(asked, step) for step in STEPS},
            fio=asked.fio,
        )
    plan = disksession.make_plan(parse_disk(text, name, base=base, numbered=is_file))
    with contact(plan.question.machine) as machine:
        survey = disksession.look(machine, plan.question)
        with watcher(asked.format) as watching, stop_on_signals() as stop:
            control = Control(watching, stop, asked.destroy)
            refused = disksession.refusal(machine, survey, control)
            answer = DiskPlanAnswer(plan, survey, refusal_text(refused))
            if asked.dry_run:
                rehearse(answer, refused, asked)
                return None
            if not asked.wait:
                with alone(machine, [survey.target], Path.cwd()):
                    """Nobody else measures on it."""
            for line in labelled(disk_facts(answer)):
                click.echo(line, err=asked.format != "console")
            place = asked.folder or fresh("iodelta-prepare")
            return asked.in_turn(
                lambda: disksession.start(place, text, plan, machine, control)[0],
                stop,
                watching.note,
            )


def _continued(path: Path, asked: Asked) -> Folder:
    """Return the folder of an earlier preparation, with the rounds that were left."""
    from iodelta.cli.watching import watcher
    from iodelta.lab.disksession import go, read_plan
    from iodelta.lab.folder import DiskFolder, Folder
    from iodelta.lab.progress import Control
    from iodelta.lab.signals import stop_on_signals

    folder = Folder.open(path)
    if not isinstance(folder, DiskFolder):
        raise RequestError(
            "this folder contains an experiment, which prepares its own disk",
            place=str(path),
            remedy="`iodelta run` continues it",
        )
    if _anew(asked) or asked.folder or asked.dry_run:
        raise RequestError(
            "the folder already defines the disk and the steps",
            place=str(path),
            remedy="to continue it, only --destroy, --wait, --format and --output can be given",
        )
    with (
        contact(read_plan(folder).question.machine) as machine,
        stop_on_signals() as stop,
        watcher(asked.format) as watching,
    ):
        asked.in_turn(
            lambda: go(folder, machine, Control(watching, stop, asked.destroy)),
            stop,
            watching.note,
        )
    return folder
