"""``iodelta run``: begin an experiment, or go on with one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from iodelta.cli.commands import (
    Asked,
    contacts,
    declared,
    files,
    fresh,
)
from iodelta.cli.complete import settings
from iodelta.errors import RefusedError, RequestError
from iodelta.experiment.options import specs

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from iodelta.api.measuring import Wishes
    from iodelta.api.planning import Looked
    from iodelta.experiment import Experiment
    from iodelta.lab.folder import Folder
    from iodelta.lab.progress import Watcher

EXAMPLES = """
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

OPTIONS = """
--variant NAME:KNOB=VALUE,...*
                      A name and the settings to compare under it. Repeatable; give at least two.
{}
--quick               A first answer within a minute: trials of 1s, a margin of 5%.
--dry-run
--condition NAME[:KNOB=VALUE,...|:COMMAND]*
                      Knobs or a background load that stay the same while variants are compared.
--machine
--clock wall|instructions  .
--anatomy path|sharing?  .
--cpus NUMBER         .
--repo PATH           Record the commit checked out in this git repository.
--destroy
--allow-commands
--wait
--leave-out
--folder
--verbose
--format VALUES [console]
--output
--force
--fail-on [regression,inconclusive]
"""


@declared(
    "run",
    "[what] [fio...]",
    OPTIONS.format("\n".join(f"--{name}" for name in specs())),
    EXAMPLES,
    complete={"what": files, "variant": settings, "condition": settings},
)
def command(asked: Asked) -> None:
    """Run the experiment in FILE.toml or FOLDER, or the one given by options.

    WHAT is an experiment file, a fio job file, or the folder of an earlier run, to continue it. Options of fio
    itself come after --. iodelta shows the plan, writes down the order and all rules, and runs until every cell is
    decided or the budget ends. A cell is one workload, such as 4k random reads at depth 32; a block is one trial of
    every variant.
    """
    from iodelta.api.measuring import Wishes  # --help does without

    what, fio = asked.what, asked.fio
    if what is not None and (
        what.startswith("-") or ("=" in what and not Path(what).exists())
    ):
        what, fio = None, (what, *fio)
    wishes = Wishes(
        given={name: getattr(asked, name) for name in specs()},
        fio=fio,
        variants=asked.variant,
        conditions=asked.condition,
        machines=asked.machine,
        **{
            name: getattr(asked, name)
            for name in (
                *("quick", "clock", "anatomy", "cpus", "repo", "leave_out", "folder"),
                *("destroy", "allow_commands", "wait"),
            )
        },
    )
    measure(Path(what) if what else None, wishes, asked)


def measure(path: Path | None, wishes: Wishes, asked: Asked) -> None:
    """Go on with the folder at ``path``, or begin the experiment that the file and the options describe; show it, and
    exit by its words."""
    from iodelta.api import measuring
    from iodelta.cli.progress import say_line
    from iodelta.lab.folder import CountFolder
    from iodelta.lab.judged import read_plan
    from iodelta.lab.signals import stop_on_signals

    dry_run = bool(vars(asked).get("dry_run"))
    if path is not None and not path.exists():
        raise RequestError(
            "there is nothing at this path",
            place=str(path),
            remedy="name an experiment file, a fio job file, or the folder of an earlier run to continue it",
        )
    if path is not None and path.is_dir():
        folder = measuring.folder_to_continue(path, wishes)
        if dry_run:
            raise RequestError(
                "the folder already defines the question and its rules",
                place=str(path),
                remedy="--dry-run plans a new experiment; leave it out to continue this one",
            )
        if isinstance(folder, CountFolder):
            from iodelta.cli.counting import go_on

            go_on(folder, asked)
        experiment = read_plan(folder).experiment
        with watcher(asked) as watching, stop_on_signals(stopping(experiment)) as stop:
            measuring.go_on(folder, wishes, watching, stop)
        show(folder, asked)
    question = measuring.question_of(path, wishes)
    place, experiment = wishes.folder or fresh("iodelta"), question.experiment
    if wishes.cpus is not None:
        _check_cpus(wishes.cpus, experiment.anatomy)
    if experiment.clock == "instructions":
        from iodelta.cli.counting import begin

        begin(question, place, asked, dry_run=dry_run)
        return
    with contacts(experiment.machines, boots=experiment.boots) as machines:
        found = measuring.look_for(machines, question, wishes, say_line)
        if dry_run:
            rehearse(found.answer, found.refused, asked)
            return
        with watcher(asked) as watching, stop_on_signals(stopping(experiment)) as stop:
            folder = measuring.begin(
                place,
                question.text,
                machines,
                found,
                wishes,
                watching,
                stop,
                showing(asked),
            )
    show(folder, asked)


def watcher(asked: Asked) -> AbstractContextManager[Watcher]:
    """Return what says on standard error how far a run is."""
    from iodelta.cli.watching import watcher

    return watcher(asked.format)


def _check_cpus(cpus: int, anatomy: str) -> None:
    """Raises RequestError for CPUs of a guest that has another number of them."""
    from iodelta.path.sharing_job import CPUS

    if anatomy != "sharing":
        raise RequestError(
            "--cpus is for guests in which moved cache lines are counted",
            place="--cpus",
            remedy="add --anatomy=sharing, or say --machine vm:cpus=2 where time is measured",
        )
    if cpus != CPUS:
        raise RequestError(
            f"moved cache lines are counted between two CPUs that take turns, not {cpus}",
            place="--cpus",
            remedy=f"say --cpus {CPUS}, or omit it",
        )


def stopping(experiment: Experiment) -> str:
    """Return what Ctrl-C makes a run do, said at once."""
    from iodelta.study.words import inert

    tool = "the command" if experiment.of_command else "fio"
    restored = (f"restoring {inert(name)}" for name in experiment.knob_names())
    return ", ".join([f"stopping: ending {tool}", *restored])


def show(folder: Folder, asked: Asked) -> NoReturn:
    """The result, and its exit code."""
    from iodelta.report.derived import charted, derive

    account = derive(folder)
    asked.deliver(account, lambda: charted(folder)[1] if asked.format == "html" else ())
    asked.end(account)


def showing(asked: Asked) -> Callable[[Looked], None]:
    """Return what shows a plan to the user in a few lines, before it is measured."""

    def show(found: Looked) -> None:
        from iodelta.report.formats.terminal import labelled
        from iodelta.report.stories.plan import facts

        for line in labelled(facts(found.answer, rules=False)):
            click.echo(line, err=asked.format != "console")

    return show


def rehearse(answer: object, refused: RefusedError | None, asked: Asked) -> None:
    """Print a plan, or write it to a file. Raises RefusedError for what the run would refuse."""
    asked.deliver(answer)
    if refused is not None:
        raise refused
