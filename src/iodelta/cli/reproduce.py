"""``iodelta reproduce``: somebody's experiment on this machine, after a look and a word."""

from __future__ import annotations

import functools
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import click

from iodelta.cli.contact import contact, on_machine
from iodelta.cli.delivery import FORMATS, deliver, printed
from iodelta.cli.fleet_options import OnFleet, on_fleet
from iodelta.cli.histories import LOG, keeper
from iodelta.cli.reproducing import (
    accept,
    bundle_at,
    measured,
    plan_of,
    prepared_for,
    refuse_existing,
    show_plan,
)
from iodelta.cli.shared_options import in_formats, named_target, sized_target
from iodelta.cli.turn import waits
from iodelta.errors import RequestError, pasted

EXAMPLES = """
\b
Examples:
  iodelta reproduce theirs.iodelta.tar.zst --target /dev/nvme1n1 --dry-run
  iodelta reproduce theirs.iodelta.tar.zst --target /dev/nvme1n1
  iodelta reproduce theirs.iodelta.tar.zst --machine ssh:storage1 --target /dev/nvme1n1
  iodelta reproduce theirs.iodelta.tar.zst --target /dev/ublkb0 --map cpus=0-31:0,12,24,36
  iodelta reproduce theirs.iodelta.tar.zst --hosts 'nvme,!stor3' --target class:nvme    # on a fleet
  iodelta reproduce theirs.iodelta.tar.zst --against my-folder    # measured already: side by side
  iodelta reproduce their-table.md --against my-table.md
  iodelta reproduce their-table.md --against my-table.md --format markdown
"""

REPEATED = {
    *(
        "machine",
        "expression",
        "inventory",
        "target",
        "size",
        "given",
        "leave_out",
        "budget",
        "destroy",
    ),
    "allow_commands",
}
"""Options that decide what is measured."""

WHY_NOT = {
    "--hosts": "measure first: --hosts without --against",
    "--history": "nothing is measured with --against; `iodelta history add` adds a folder",
    "--machine": "the hosts come from the inventory",
    "--leave-out": "a host that lacks a variant is left out whole, so that all hosts measure the same",
}
"""An option -> what to do where it cannot be given."""


@click.command("reproduce", epilog=EXAMPLES)
@click.argument("bundle")
@on_machine
@click.option(
    "--target",
    callback=named_target,
    default="",
    help="What to measure here in place of the bundle's target: block device, file or directory; with --hosts also "
    "class:NAME of the inventory.",
)
@sized_target
@click.option(
    "--map",
    "given",
    multiple=True,
    metavar="cpus=THERE:HERE",
    help="Replace a CPU set (or NUMA node: numa=THERE:HERE). Repeatable.",
)
@click.option(
    "--leave-out",
    is_flag=True,
    help="Continue without the variants that cannot be set here.",
)
@click.option(
    "--budget", default="", help="Total time, such as 30m (default: the bundle's own)."
)
@click.option(
    "--against",
    default="",
    help="Compare with this folder, bundle or table; do not measure.",
)
@click.option(
    "--folder",
    "folder",
    type=click.Path(path_type=Path),
    help="Name of the experiment folder to create, or of the fleet folder.",
)
@click.option(
    "--destroy",
    multiple=True,
    metavar="[HOST:]DEVICE",
    help="Allow this device or file to be overwritten; with --hosts, of this host.",
)
@waits
@on_fleet
@click.option(
    "--history",
    default="",
    metavar="DIRECTORY|URL",
    help="Add what was measured to this history.",
)
@LOG
@click.option("--yes", is_flag=True, help="Accept the plan without being asked.")
@click.option(
    "--allow-commands",
    is_flag=True,
    help="Also accept what is marked DANGER: commands written by the author of the bundle.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show what would be run and set; change nothing."
)
@in_formats(FORMATS)
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
    fleet: OnFleet | None,
    history: str,
    log: Path | None,
    yes: bool,
    allow_commands: bool,
    dry_run: bool,
    format_: str,
    output: Path | None,
    force: bool,
) -> None:
    """Measure the experiment of BUNDLE on this machine (or --machine, or --hosts) and say whether its changes appear
    here too, in direction and in size.

    First it shows what it would run and set here, and asks. Before you accept, nothing is run, set or written; fio only
    checks the options. Options and commands of the bundle that could do more than I/O also need --allow-commands.

    With --hosts it asks once, then every host of the inventory that matches measures it, as in `iodelta fleet run`; the
    same command again continues.

    Exit codes: 0 reproduced, 1 not reproduced (another size or direction, or no change), 2 the request is wrong, 3
    inconclusive, 4 could not measure. With --hosts: 1 not reproduced on some host, 4 some host could not be measured.
    """
    from iodelta.lab.boots import refusal
    from iodelta.study.reproduction import origin_of, own_side, side_at, side_by_side

    if against:
        _refuse_beside("--against", {"--hosts": fleet, "--history": history})
        there, here, origin = side_at(bundle), side_at(against), origin_of(against)
        notes = origin.notes if origin else ()
        if origin and origin.there.digest != there.digest:
            notes = (
                *notes,
                f"{against} is the reproduction of another bundle, {origin.there.name}",
            )
        chosen = side_by_side(
            there, here, _margin(bundle), notes, [_compared_again(bundle, against)]
        )
        deliver(chosen, tuple, format_, output, force=force)
        sys.exit(chosen.exit_code)
    there_folder = bundle_at(bundle)
    there = own_side(there_folder)
    keep = keeper(history, log, dry_run=dry_run)
    if fleet is not None:
        from iodelta.cli.reproduce_fleet import Request, reproduce_on
        from iodelta.fleet.reproducing import Wishes

        _refuse_beside("--hosts", {"--machine": machine, "--leave-out": leave_out})
        wishes = Wishes(target, size, given, budget, allow_commands)
        output_to = functools.partial(
            deliver, format_=format_, output=output, force=force
        )
        asked = Request(
            there_folder,
            there,
            wishes,
            fleet,
            destroy,
            folder,
            measured_again(),
            yes=yes,
            dry_run=dry_run,
        )
        reproduce_on(asked, output_to, keep, error=format_ != "console")
    place = folder or Path(time.strftime("reproduction-%Y%m%d-%H%M%S"))
    with contact(machine) as where:
        prepared = prepared_for(
            there_folder, there, where, target, size, given, budget, leave_out=leave_out
        )
        # What it runs is among the dangers, which have a question of their own.
        refused = refusal(
            where, prepared.experiment, prepared.found, destroy, commands=True
        )
        plan = plan_of(prepared, there, there_folder, place, refused)
        if dry_run:
            deliver(plan, tuple, format_, output, force=force)
        else:
            show_plan(plan, error=format_ != "console")
        if refused is not None:
            raise refused
        if dry_run:
            return
        refuse_existing(place)
        accept(prepared, there_folder, yes=yes, allow_commands=allow_commands)
        made = measured(
            there_folder,
            there,
            prepared,
            where,
            place,
            destroy,
            format_,
            allow_commands,
        )
    again = [measured_again(), _compared_again(bundle, str(place))]
    chosen = side_by_side(
        there, made, prepared.plan.rules.margin, prepared.notes, again
    )
    deliver(chosen, tuple, format_, output, force=force)
    keep((place,))
    sys.exit(chosen.exit_code)


def _refuse_beside(option: str, others: Mapping[str, object]) -> None:
    """Raises RequestError for an option that cannot be given together with ``option``."""
    given = next((name for name, value in others.items() if value), "")
    if given:
        raise RequestError(
            f"{given} cannot be given with {option}", place=given, remedy=WHY_NOT[given]
        )


def _compared_again(bundle: str, against: str) -> str:
    return f"iodelta reproduce {pasted(bundle)} --against {pasted(against)}"


def measured_again() -> str:
    """This command with all options that decide what is measured, as they were given."""
    context = click.get_current_context()
    words = ["iodelta", "reproduce", str(context.params["bundle"])]
    for option in context.command.params:
        given = context.params.get(option.name or "")
        if option.name not in REPEATED or not given:
            continue
        if option.name == "inventory" and not context.params["expression"]:
            continue  # it has a default, and names nothing without --hosts
        name = max(option.opts, key=len)
        if given is True:
            words.append(name)
        else:
            values = given if isinstance(given, tuple) else (given,)
            for value in values:
                words += (name, str(value))
    return shlex.join(words)


def _margin(path: str) -> float:
    from iodelta.bundle.packed import is_own, opened
    from iodelta.lab.session import read_plan

    if not is_own(path):
        return 0.01
    return read_plan(opened(path)).experiment.margin
