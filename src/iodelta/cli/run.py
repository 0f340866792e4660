"""``iodelta run``: measure, or go on measuring."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console

from iodelta.cli.contact import contacts
from iodelta.cli.turn import in_turn, waits
from iodelta.cli.watching import watcher
from iodelta.errors import RequestError
from iodelta.experiment import Experiment, overridden, parse, seconds, shorthand
from iodelta.lab.account import Account
from iodelta.lab.booting import look, refuse
from iodelta.lab.folder import Folder
from iodelta.lab.guard import refuse_at_once
from iodelta.lab.plan import Plan, make_plan
from iodelta.lab.session import go, read_plan, start, without
from iodelta.lab.setup import target_of, unsettable
from iodelta.lab.signals import stop_on_signals
from iodelta.machine import Machine
from iodelta.report.account.load import derive
from iodelta.report.again.plan import plan_answer, show_plan
from iodelta.report.documents import written
from iodelta.report.formats.console import show
from iodelta.report.words import inert

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
@click.argument("what", required=False)
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
@click.option("--target", default="", help="Block device, file or directory; a scratch file here when left out.")
@click.option("--size", default="", help="How much of it, as fio spells sizes: 512m, 100g.")
@click.option("--variant", "variants", multiple=True, metavar="NAME:KNOB=VALUE,...", help="Repeat; two at least.")
@click.option(
    "--condition",
    "conditions",
    multiple=True,
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
def command(
    what: str | None,
    fio: tuple[str, ...],
    names: tuple[str, ...],
    clock: str | None,
    target: str,
    size: str,
    variants: tuple[str, ...],
    conditions: tuple[str, ...],
    baseline: str,
    margin: str,
    question: str,
    trial: str,
    ramp: str,
    budget: str,
    blocks: int | None,
    seed: int | None,
    placebo: bool,
    destroy: tuple[str, ...],
    leave_out: bool,
    place: Path | None,
    dry_run: bool,
    format_: str,
) -> None:
    """Measure the experiment in FILE.toml or FOLDER, or the one given by options.

    WHAT is an experiment file, a job file for fio, or a folder that an earlier run made. fio's own options come
    after --. The plan is shown, the order and all rules are written down, then it runs until every cell is decided,
    or the budget ends.
    """
    if what is not None and (what.startswith("-") or ("=" in what and not Path(what).exists())):
        fio, what = (what, *fio), None
    path = Path(what) if what else None
    if path is not None and path.is_dir():
        given = [*fio, *variants, *conditions, *names, clock, target, size, baseline, margin, question, trial, ramp]
        if any(given) or place or seed is not None or blocks is not None or placebo:
            raise RequestError(
                "the question and its rules are in the folder already",
                place=str(path),
                remedy="to go on, only --budget, --destroy and --format can be given",
            )
        folder = Folder.open(path)
        if folder.counts_instructions():
            from iodelta.cli.counting import go_on

            go_on(folder, format_)
            return
        from iodelta.scenarios.again import remade  # with all scenarios

        more = _seconds(budget) if budget else None
        over = more is None and Account(folder.events()).over
        with (
            contacts((experiment := read_plan(folder).experiment).machines, boots=experiment.boots) as (first, *others),
            stop_on_signals() as stop,
            watcher(format_) as watching,
            contextlib.nullcontext() if over else remade(folder, first, watching, stop=stop) as again,
        ):

            def going() -> None:
                go(folder, first, watching, stop=stop, destroy=destroy, budget=more, others=others, remade=bool(again))

            in_turn(going, stop, watching.note)
    else:
        overrides: dict[str, Mapping[str, str | int | bool | list[str] | None]] = {
            "top": {
                "question": question,
                "machine": names[0] if len(names) == 1 else list(names),
                "clock": clock,
                "baseline": baseline,
                "margin": margin,
            },
            "target": {"path": target, "size": size},
            "design": {
                "trial": trial,
                "ramp": ramp,
                "budget": budget,
                "blocks": blocks,
                "seed": seed,
                "placebo": placebo or None,
            },
        }
        text, name, base = _question(path, fio, variants, conditions, overrides)
        experiment = parse(text, name, base=base, numbered=name == str(path))
        if experiment.clock == "instructions":
            from iodelta.cli.counting import begin

            begin(experiment, text, place or _new_name(), format_, dry_run=dry_run)
            return
        with contacts(experiment.machines, boots=experiment.boots) as machines:
            plan = planned(machines, experiment, leave_out=leave_out, dry_run=dry_run, format_=format_, destroy=destroy)
            if dry_run:
                return
            with stop_on_signals() as stop, watcher(format_) as watching:
                first, *others = machines
                where = place or _new_name()

                def starting() -> Folder:
                    return start(where, text, plan, first, watching, stop=stop, destroy=destroy, others=others)

                folder = in_turn(starting, stop, watching.note)
    account = derive(folder)
    if format_ == "json":
        sys.stdout.buffer.write(folder.read("verdict.json"))
    else:
        show(Console(), account)
    sys.exit(account.exit_code)


def planned(
    machines: Sequence[Machine],
    experiment: Experiment,
    *,
    leave_out: bool,
    dry_run: bool,
    format_: str,
    destroy: Sequence[str] = (),
) -> Plan:
    """The plan for what can run on all the machines, shown to the user. Raises RequestError, and RefusedError before a
    plan that is to be carried out says what it overwrites."""
    if leave_out and not experiment.boots:
        seen_there = (unsettable(machine, experiment, target_of(machine, experiment)) for machine in machines)
        experiment = _left_out(experiment, {name: why for found in seen_there for name, why in found.items()})
    seen = [look(machine, experiment) for machine in machines]
    unavailable = {variant: reason for found in seen for variant, reason in found.unavailable.items()}
    if unavailable and not leave_out:
        reasons = "; ".join(f"{variant}: {reason}" for variant, reason in unavailable.items())
        raise RequestError(f"not every variant can run here: {reasons}", remedy="--leave-out goes on without these")
    plan = make_plan(_left_out(experiment, unavailable))
    for machine, found in zip(machines, seen, strict=True) if not dry_run else ():
        refuse(machine, found, destroy)
    if dry_run and format_ == "json":
        sys.stdout.buffer.write(written(plan_answer(plan, seen)))
    else:
        show_plan(Console(stderr=format_ == "json"), plan, seen[0], whole=dry_run)
    for found in seen:
        refuse_at_once(found.reasons)
    return plan


def _left_out(experiment: Experiment, unavailable: dict[str, str]) -> Experiment:
    """What is left, and the rest told."""
    for variant, reason in unavailable.items():
        click.echo(inert(f"left out: {variant}: {reason}"), err=True)
    return without(experiment, unavailable) if unavailable else experiment


def _seconds(budget: str) -> float:
    try:
        return seconds(budget)
    except ValueError as error:
        raise RequestError(str(error), place="--budget") from error


def _question(
    path: Path | None,
    fio: tuple[str, ...],
    variants: tuple[str, ...],
    conditions: tuple[str, ...],
    overrides: Mapping[str, Mapping[str, str | int | bool | list[str] | None]],
) -> tuple[str, str, Path]:
    """The text of the experiment, what to call it in messages, and where its relative paths begin."""
    if path is None or path.suffix != ".toml":
        if path is not None:
            fio = (f"--job_file={path.absolute()}", *fio)
        return shorthand(fio=fio, variants=variants, conditions=conditions, **overrides), "command line", Path()
    if fio or variants or conditions:
        raise RequestError(
            "an experiment file holds its own workload, variants and conditions",
            place=str(path),
            remedy="write them there, or leave the file out",
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"cannot read the experiment file: {error}", place=str(path)) from error
    changed = overridden(text, **overrides)
    return (text, str(path), path.parent) if changed is None else (changed, f"{path} with options", path.parent)


def _new_name() -> Path:
    return Path(time.strftime("iodelta-%Y%m%d-%H%M%S"))
