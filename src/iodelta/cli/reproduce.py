"""``iodelta reproduce``: somebody's experiment on this machine, after a look and a word."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.contact import contact, on_machine
from iodelta.cli.delivery import FORMATS, deliver, printed
from iodelta.cli.turn import in_turn, waits
from iodelta.errors import RefusedError, RequestError, pasted
from iodelta.plural import plural

if TYPE_CHECKING:
    from iodelta.bundle.packed import Packed
    from iodelta.bundle.planning import Prepared
    from iodelta.lab.folder import Folder
    from iodelta.machine import Machine
    from iodelta.study.planned import PlanAnswer
    from iodelta.study.reproduction import Side

EXAMPLES = """
\b
Examples:
  iodelta reproduce theirs.iodelta.tar.zst --target /dev/nvme1n1 --dry-run
  iodelta reproduce theirs.iodelta.tar.zst --target /dev/nvme1n1
  iodelta reproduce theirs.iodelta.tar.zst --machine ssh:storage1 --target /dev/nvme1n1
  iodelta reproduce theirs.iodelta.tar.zst --target /dev/ublkb0 --map cpus=0-31:0,12,24,36
  iodelta reproduce theirs.iodelta.tar.zst --against my-folder    # measured already: side by side
  iodelta reproduce their-table.md --against my-table.md
  iodelta reproduce their-table.md --against my-table.md --format markdown
"""

REPEATED = {"machine", "target", "size", "given", "leave_out", "budget", "destroy", "allow_commands"}
"""Options that decide what is measured."""


@click.command("reproduce", epilog=EXAMPLES)
@click.argument("bundle")
@on_machine
@click.option(
    "--target",
    default="",
    help="What to measure here in place of the bundle's target: block device, file or directory.",
)
@click.option("--size", default="", help="How much of the target to use, in fio's units: 512m, 100g.")
@click.option(
    "--map",
    "given",
    multiple=True,
    metavar="cpus=THERE:HERE",
    help="Replace a CPU set (or NUMA node: numa=THERE:HERE). Repeatable.",
)
@click.option("--leave-out", is_flag=True, help="Continue without the variants that cannot be set here.")
@click.option("--budget", default="", help="Total time, such as 30m (default: the bundle's own).")
@click.option("--against", default="", help="Compare with this folder, bundle or table; do not measure.")
@click.option("--folder", "folder", type=click.Path(path_type=Path), help="Name of the experiment folder to create.")
@click.option("--destroy", multiple=True, metavar="DEVICE", help="Allow this device or file to be overwritten.")
@waits
@click.option("--yes", is_flag=True, help="Accept the plan without being asked.")
@click.option(
    "--allow-commands",
    is_flag=True,
    help="Also accept what is marked DANGER: commands written by the author of the bundle.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be run and set; change nothing.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="console", show_default=True)
@printed
def command(
    bundle: str,
    machine: str,
    target: str,
    size: str,
    given: tuple[str, ...],
    leave_out: bool,
    budget: str,
    against: str,
    folder: Path | None,
    destroy: tuple[str, ...],
    yes: bool,
    allow_commands: bool,
    dry_run: bool,
    format_: str,
    output: Path | None,
    force: bool,
) -> None:
    """Measure the experiment of BUNDLE on this machine (or --machine) and say whether its changes appear here too, in
    direction and in size.

    First it shows what it would run and set here, and asks. Before you accept, nothing is run, set or written; fio only
    checks the options. Options and commands of the bundle that could do more than I/O also need --allow-commands.

    Exit codes: 0 reproduced, 1 not reproduced (another size or direction, or no change), 2 the request is wrong, 3
    inconclusive, 4 could not measure.
    """
    from iodelta.lab.booting import refusal
    from iodelta.study.reproduction import origin_of, own_side, side_at, side_by_side

    if against:
        there, here, origin = side_at(bundle), side_at(against), origin_of(against)
        notes = origin.notes if origin else ()
        if origin and origin.there.digest != there.digest:
            notes = (*notes, f"{against} is the reproduction of another bundle, {origin.there.name}")
        found = side_by_side(there, here, _margin(bundle), notes, [_compared_again(bundle, against)])
        deliver(found, tuple, format_, output, force=force)
        sys.exit(found.exit_code)
    there_folder = _experiment(bundle)
    there = own_side(there_folder)
    place = folder or Path(time.strftime("reproduction-%Y%m%d-%H%M%S"))
    with contact(machine) as where:
        prepared = _prepared(there_folder, there, where, target, size, given, budget, leave_out)
        # What it runs is among the dangers, which have a question of their own.
        refused = refusal(where, prepared.experiment, prepared.found, destroy, commands=True)
        plan = _plan(prepared, there, there_folder, place, refused)
        if dry_run:
            deliver(plan, tuple, format_, output, force=force)
        else:
            _show(plan, error=format_ != "console")
        if refused is not None:
            raise refused
        if dry_run:
            return
        _accepted(prepared, there_folder, place, yes=yes, allow_commands=allow_commands)
        made = _measure(there_folder, there, prepared, where, place, destroy, format_, allow_commands)
    again = [_measured_again(), _compared_again(bundle, str(place))]
    found = side_by_side(there, made, prepared.plan.rules.margin, prepared.notes, again)
    deliver(found, tuple, format_, output, force=force)
    sys.exit(found.exit_code)


def _compared_again(bundle: str, against: str) -> str:
    return f"iodelta reproduce {pasted(bundle)} --against {pasted(against)}"


def _measured_again() -> str:
    """This command with all options that decide what is measured, as they were given."""
    context = click.get_current_context()
    words = ["iodelta", "reproduce", str(context.params["bundle"])]
    for option in context.command.params:
        given = context.params.get(option.name or "")
        if option.name not in REPEATED or not given:
            continue
        name = max(option.opts, key=len)
        if given is True:
            words.append(name)
        else:
            values = given if isinstance(given, tuple) else (given,)
            for value in values:
                words += (name, str(value))
    return shlex.join(words)


def _experiment(bundle: str) -> Packed:
    from iodelta.bundle.packed import Packed, is_bundle

    path = Path(bundle)
    if path.is_file() and not is_bundle(path):
        raise RequestError(
            "it does not contain an experiment to run here",
            place=bundle,
            remedy="`iodelta pack FOLDER` makes a bundle; --against puts results of any kind side by side",
        )
    if path.is_dir():
        raise RequestError(
            "this is a folder, not a bundle",
            place=bundle,
            remedy=f"`iodelta pack {pasted(bundle)}` makes a bundle of it",
        )
    if not path.exists():
        raise RequestError("there is nothing at this path", place=bundle, remedy="name a bundle")
    return Packed(path)


def _margin(path: str) -> float:
    from iodelta.bundle.packed import is_own, opened
    from iodelta.lab.session import read_plan

    return read_plan(opened(path)).experiment.margin if is_own(path) else 0.01


def _prepared(
    bundle: Packed,
    there: Side,
    machine: Machine,
    target: str,
    size: str,
    given: tuple[str, ...],
    budget: str,
    leave_out: bool,
) -> Prepared:
    from iodelta.bundle.planning import prepare, whole
    from iodelta.study.reproduction import planned_blocks

    blocks = planned_blocks(there, whole(bundle).experiment.margin)
    return prepare(
        bundle,
        machine,
        target=target,
        size=size,
        given=given,
        budget=budget,
        leave_out=leave_out,
        blocks=blocks,
    )


def _plan(prepared: Prepared, there: Side, bundle: Packed, place: Path, refused: RefusedError | None) -> PlanAnswer:
    """What would be run and set here."""
    from iodelta.bundle.planning import commands
    from iodelta.study.planned import FromBundle, plan_answer

    shown = any(effect.shown for effect in there.effects)
    origin = FromBundle(
        *(there.name, there.digest, bundle.manifest.made_by, there.question, shown),
        commands=commands(prepared),
        folder=str(place),
    )
    dangers = [f"{one.place}: {one.what}: {one.why}" for one in prepared.dangers]
    return plan_answer(prepared.plan, [prepared.found], refused, prepared.notes, dangers, bundle=origin)


def _show(plan: PlanAnswer, *, error: bool) -> None:
    """The plan, before the question whether to run it."""
    from iodelta.report.formats.terminal import lines
    from iodelta.report.stories.plan import of_plan

    for line in lines(of_plan(plan)):
        click.echo(line.plain, err=error)


def _accepted(prepared: Prepared, bundle: Packed, place: Path, *, yes: bool, allow_commands: bool) -> None:
    """Raises RequestError unless everything shown was accepted."""
    if place.exists() or place.is_symlink():
        raise RequestError("this path exists already", place=str(place), remedy="name a new folder with --folder")
    if prepared.dangers and not allow_commands:
        raise RequestError(
            f"{plural(len(prepared.dangers), 'part')} of it could do more than I/O on the target (DANGER above)",
            place=str(bundle.path),
            remedy="if you trust its author with this machine, add --allow-commands",
        )
    if yes:
        return
    nothing = "nothing was run, set or written"
    if not sys.stdin.isatty():
        raise RequestError(
            f"not accepted, {nothing}", place=str(bundle.path), remedy="use --yes if you cannot answer questions"
        )
    try:
        agreed = click.confirm("Run this here?", default=False, err=True)
    except click.Abort:
        click.echo("", err=True)
        agreed = False
    if not agreed:
        raise RequestError(f"not accepted, {nothing}", place=str(bundle.path), remedy="--dry-run shows it again")


def _measure(
    bundle: Packed,
    there: Side,
    prepared: Prepared,
    machine: Machine,
    place: Path,
    destroy: tuple[str, ...],
    format_: str,
    allow_commands: bool,
) -> Side:
    """Measure it, and show the experiment; the side that it makes."""
    import msgspec
    from rich.console import Console

    from iodelta.cli.watching import watcher
    from iodelta.lab.progress import Control
    from iodelta.lab.session import start
    from iodelta.lab.setup import survey
    from iodelta.lab.signals import stop_on_signals
    from iodelta.report.derived import derive
    from iodelta.report.formats.console import show
    from iodelta.study.reproduction import FILE, Origin, own_side

    unavailable = survey(machine, prepared.experiment).unavailable
    if unavailable:
        reasons = "; ".join(f"{variant}: {reason}" for variant, reason in unavailable.items())
        raise RequestError(f"not every variant can run here: {reasons}", place=str(bundle.path))
    margin = prepared.plan.rules.margin
    origin = Origin(there, margin, prepared.notes, bundle.manifest.plan_sha256, allow_commands)
    beside = {FILE: msgspec.json.format(msgspec.json.encode(origin), indent=1) + b"\n"}
    with stop_on_signals() as stop, watcher(format_) as watching:

        def starting() -> Folder:
            plan = prepared.plan
            return start(
                place, prepared.text, plan, machine, Control(watching, stop, destroy, allow_commands), beside=beside
            )

        folder = in_turn(starting, stop, watching.note)
    account = derive(folder)
    if format_ == "console":
        show(Console(), account)
        click.echo("")
        if account.state not in ("complete", "budget"):
            click.echo(
                f"It is not complete. To continue, then to compare:\n  iodelta run {pasted(place)}\n"
                f"  iodelta reproduce {pasted(bundle.path)} --against {pasted(place)}\n"
            )
    return own_side(folder, account)
