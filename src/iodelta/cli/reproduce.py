"""``iodelta reproduce``: somebody's experiment on this machine or on a fleet, after a look and a word."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
import msgspec

from iodelta.cli.commands import Asked, ask, contact, declared, fresh, shell
from iodelta.cli.progress import say_line
from iodelta.errors import (
    IodeltaError,
    LostError,
    RefusedError,
    RequestError,
    UnreachableError,
    pasted,
)
from iodelta.plural import plural

if TYPE_CHECKING:
    from iodelta.bundle.packed import Packed
    from iodelta.bundle.planning import Prepared
    from iodelta.fleet.folder import FleetFolder
    from iodelta.fleet.host import FleetHost
    from iodelta.fleet.reproducing import Wishes
    from iodelta.machine import Machine
    from iodelta.study.planned import PlanAnswer
    from iodelta.study.reproduction import Side

REPEATED = frozenset(
    "bundle machine hosts inventory target size map leave_out budget destroy allow_commands".split()
)
"""Options that decide what is measured."""

SCHEDULING = ("in_use", "patience", "scheduler", "at_once")

WHY_NOT = {
    "--hosts": "measure first: --hosts without --against",
    "--history": "nothing is measured with --against; `iodelta history add` adds a folder",
    "--machine": "the hosts come from the inventory",
    "--leave-out": "a host that lacks a variant is left out whole, so that all hosts measure the same",
}
"""An option -> what to do where it cannot be given."""

ENDING = ".iodelta.tar.zst"


@declared(
    "reproduce",
    "bundle",
    """
--machine
--target PATH         What to measure here in place of the bundle's target: block device, file or directory; with --hosts
                      also class:NAME of the inventory.
--size
--map cpus=THERE:HERE*
                      Replace a CPU set (or NUMA node: numa=THERE:HERE). Repeatable.
--leave-out
--budget TIME         Total time, such as 30m (default: the bundle's own).
--against PATH        Compare with this folder, bundle or table; do not measure.
--folder
--destroy HOST:DEVICE*
                      Allow this DEVICE or file to be overwritten; with --hosts HOST:DEVICE, of this host.
--wait
--hosts EXPR          Measure on these hosts of the inventory: names, patterns, tags; !NAME leaves out, &TAG keeps.
--inventory
--at-once
--scheduler
--patience
--in-use
--history DIRECTORY|URL
                      Add what was measured to this history.
--log
--yes                 Accept the plan without being asked.
--allow-commands      Also accept what is marked DANGER: commands written by the author of the bundle.
--dry-run
--format REPORT [console]
--output
--force
""",
    """
  iodelta reproduce theirs.iodelta.tar.zst --target /dev/nvme1n1 --dry-run
  iodelta reproduce theirs.iodelta.tar.zst --target /dev/nvme1n1
  iodelta reproduce theirs.iodelta.tar.zst --machine ssh:storage1 --target /dev/nvme1n1
  iodelta reproduce theirs.iodelta.tar.zst --target /dev/ublkb0 --map cpus=0-31:0,12,24,36
  iodelta reproduce theirs.iodelta.tar.zst --hosts 'nvme,!stor3' --target class:nvme    # on a fleet
  iodelta reproduce theirs.iodelta.tar.zst --against my-folder    # measured already: side by side
  iodelta reproduce their-table.md --against my-table.md
  iodelta reproduce their-table.md --against my-table.md --format markdown
""",
)
def command(asked: Asked) -> None:
    """Measure the experiment of BUNDLE on this machine (or --machine, or --hosts) and say whether its changes appear
    here too, in direction and in size.

    First it shows what it would run and set here, and asks. Before you accept, nothing is run, set or written; fio only
    checks the options. Options and commands of the bundle that could do more than I/O also need --allow-commands.
    With --hosts it asks once, then every host of the inventory that matches measures it, as in `iodelta fleet run`; the
    same command again continues.

    Exit codes: 0 reproduced, 1 not reproduced (another size or direction, or no change), 2 the request is wrong, 3
    inconclusive, 4 could not measure. With --hosts: 1 not reproduced on some host, 4 some host could not be measured.
    """
    from iodelta.bundle.packed import is_own, opened
    from iodelta.cli.history import keeper
    from iodelta.fleet.reproducing import Wishes
    from iodelta.lab.boots import refusal
    from iodelta.lab.judged import read_plan
    from iodelta.study.reproduction import origin_of, own_side, side_at, side_by_side

    about_hosts = sorted(asked.given("inventory", *SCHEDULING))
    if asked.hosts is None and about_hosts:
        raise RequestError(
            "this is about the hosts of a fleet",
            place=f"--{about_hosts[0].replace('_', '-')}",
            remedy="name them: --hosts",
        )
    bundle = asked.bundle
    if asked.against:
        _refuse_beside(asked, "--against", "hosts", "history")
        there, here = side_at(bundle), side_at(asked.against)
        origin = origin_of(asked.against)
        notes = origin.notes if origin else ()
        if origin and origin.there.digest != there.digest:
            notes = (
                *notes,
                f"{asked.against} is the reproduction of another bundle, {origin.there.name}",
            )
        own = is_own(bundle)
        margin = read_plan(opened(bundle)).experiment.margin if own else 0.01
        again = [shell("reproduce", bundle, ("--against", asked.against))]
        chosen = side_by_side(there, here, margin, notes, again)
        asked.deliver(chosen)
        sys.exit(chosen.exit_code)
    theirs = _bundle_at(bundle)
    there = own_side(theirs)
    keep = keeper(asked.history, asked.log, dry_run=asked.dry_run)
    wishes = Wishes(
        asked.target, asked.size, asked.map, asked.budget, asked.allow_commands
    )
    if asked.hosts is not None:
        _refuse_beside(asked, "--hosts", "machine", "leave_out")
        _on_hosts(asked, theirs, there, wishes, keep)
    place = asked.folder or fresh("reproduction")
    with asked.contact() as where:
        prepared = _prepared_for(
            theirs, there, where, wishes.target, wishes, leave_out=asked.leave_out
        )
        # What it runs is among the dangers, which have a question of their own.
        refused = refusal(
            where, prepared.experiment, prepared.found, asked.destroy, commands=True
        )
        _show_plan(_plan_of(prepared, there, theirs, place, refused), asked)
        if refused is not None:
            raise refused
        if asked.dry_run:
            return
        if place.exists() or place.is_symlink():
            raise RequestError(
                "this path exists already",
                place=str(place),
                remedy="name a new folder with --folder",
            )
        _accept(prepared, theirs, asked, "here")
        made = _measured(theirs, there, prepared, where, place, asked)
    again = [
        measured_again(asked),
        shell("reproduce", bundle, ("--against", place)),
    ]
    margin = prepared.plan.rules.margin
    chosen = side_by_side(there, made, margin, prepared.notes, again)
    asked.deliver(chosen)
    keep((place,))
    sys.exit(chosen.exit_code)


def _refuse_beside(asked: Asked, option: str, *others: str) -> None:
    """Raises RequestError for an option that cannot be given together with ``option``."""
    for other in others:
        name = f"--{other.replace('_', '-')}"
        if getattr(asked, other):
            raise RequestError(
                f"{name} cannot be given with {option}",
                place=name,
                remedy=WHY_NOT[name],
            )


def measured_again(asked: Asked) -> str:
    """Return this command with all options that decide what is measured, as they were given."""
    again = asked.typed(set(vars(asked)) - REPEATED)
    if asked.hosts is not None and not asked.given("inventory"):
        again += f" --inventory {pasted(asked.inventory)}"
    return again


def _bundle_at(bundle: str) -> Packed:
    """Raises RequestError for everything that is not a bundle."""
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
        raise RequestError(
            "there is nothing at this path", place=bundle, remedy="name a bundle"
        )
    return Packed(path)


def _prepared_for(
    bundle: Packed,
    there: Side,
    machine: Machine,
    target: str,
    wishes: Wishes,
    *,
    leave_out: bool = False,
) -> Prepared:
    """Return the experiment of a bundle as ``machine`` would run it. Raises RequestError."""
    from iodelta.bundle.planning import prepare, whole
    from iodelta.study.reproduction import planned_blocks

    return prepare(
        bundle,
        machine,
        target=target,
        size=wishes.size,
        given=wishes.given,
        budget=wishes.budget,
        leave_out=leave_out,
        blocks=planned_blocks(there, whole(bundle).experiment.margin),
    )


def _plan_of(
    prepared: Prepared,
    there: Side,
    bundle: Packed,
    place: Path,
    refused: RefusedError | None,
) -> PlanAnswer:
    """Return what would be run and set here."""
    from iodelta.bundle.planning import commands
    from iodelta.study.planned import FromBundle, plan_answer

    shown = any(effect.shown for effect in there.effects)
    origin = FromBundle(
        *(there.name, there.digest, bundle.manifest.made_by, there.question, shown),
        commands=commands(prepared),
        folder=str(place),
    )
    dangers = [
        f"{danger.place}: {danger.what}: {danger.why}" for danger in prepared.dangers
    ]
    return plan_answer(
        prepared.plan, [prepared.found], refused, prepared.notes, dangers, bundle=origin
    )


def _show_plan(plan: PlanAnswer, asked: Asked) -> None:
    """The plan of a dry run, or before the question whether to run it."""
    if asked.dry_run:
        asked.deliver(plan)
        return
    from iodelta.report.formats.terminal import lines
    from iodelta.report.stories.plan import of_plan

    for line in lines(of_plan(plan)):
        click.echo(line.plain, err=asked.format != "console")


def _accept(prepared: Prepared, bundle: Packed, asked: Asked, where: str) -> None:
    """Raises RequestError unless everything shown was accepted."""
    if prepared.dangers and not asked.allow_commands:
        raise RequestError(
            f"{plural(len(prepared.dangers), 'part')} of it could do more than I/O on the target (DANGER above)",
            place=str(bundle.path),
            remedy="if you trust its author with this machine, add --allow-commands",
        )
    if not asked.yes:
        refused = "not accepted, nothing was run, set or written"
        again = "--dry-run shows it again"
        ask(f"Run this {where}?", refused, str(bundle.path), again)


def _measured(
    bundle: Packed,
    there: Side,
    prepared: Prepared,
    machine: Machine,
    place: Path,
    asked: Asked,
) -> Side:
    """Measure it, and show the experiment; the side that it makes."""
    from iodelta.cli.delivery import print_result
    from iodelta.cli.watching import watcher
    from iodelta.lab.progress import Control
    from iodelta.lab.session import start
    from iodelta.lab.setup import survey
    from iodelta.lab.signals import stop_on_signals
    from iodelta.report.derived import derive
    from iodelta.report.stories.story import PLAIN
    from iodelta.study.reproduction import FILE, Origin, own_side

    unavailable = survey(machine, prepared.experiment).unavailable
    if unavailable:
        reasons = "; ".join(
            f"{variant}: {reason}" for variant, reason in unavailable.items()
        )
        raise RequestError(
            f"not every variant can run here: {reasons}", place=str(bundle.path)
        )
    origin = Origin(
        there,
        prepared.plan.rules.margin,
        prepared.notes,
        bundle.manifest.plan_sha256,
        asked.allow_commands,
    )
    beside = {FILE: msgspec.json.format(msgspec.json.encode(origin), indent=1) + b"\n"}
    with stop_on_signals() as stop, watcher(asked.format) as watching:
        control = Control(watching, stop, asked.destroy, asked.allow_commands)
        folder = asked.in_turn(
            lambda: start(
                place, prepared.text, prepared.plan, machine, control, beside=beside
            ),
            stop,
            watching.note,
        )
    account = derive(folder)
    if asked.format == "console":
        print_result(account, PLAIN)
        click.echo("")
        if account.state not in ("complete", "budget"):
            click.echo(
                f"It is not complete. To continue, then to compare:\n  {shell('run', place)}\n"
                f"  {shell('reproduce', bundle.path, ('--against', place))}\n"
            )
    return own_side(folder, account)


# ------------------------------------------------------------------------------------------------------- on a fleet


def _on_hosts(
    asked: Asked,
    bundle: Packed,
    there: Side,
    wishes: Wishes,
    keep: Callable[[Iterable[Path]], None],
) -> NoReturn:
    """Show what would run, ask once, measure on every host, and compare."""
    from iodelta.api.hosts import chosen_of, scheduled
    from iodelta.bundle.packed import is_own, opened
    from iodelta.cli.fleet import how_of
    from iodelta.fleet.folder import FleetFolder
    from iodelta.fleet.reproducing import check_sets, files_of, goes_on
    from iodelta.fleet.status import status_of
    from iodelta.report.formats.charts.changes import charts_of_fleet
    from iodelta.study.fleet_host import Left
    from iodelta.study.fleet_reproduction import fleet_reproduced

    how = how_of(asked)
    _ = how.waits  # refused before anything else happens
    hosts = chosen_of(asked.inventory, asked.hosts)
    check_sets(wishes.given)
    stem = bundle.path.name.removesuffix(ENDING)
    # The same command again finds it.
    place = asked.folder or Path(f"iodelta-fleet-{stem}")
    files = None
    if asked.dry_run or not goes_on(FleetFolder(place), bundle, wishes):
        prepared, refused = _first(asked, bundle, there, wishes, hosts)
        _show_plan(_plan_of(prepared, there, bundle, place, refused), asked)
        if refused is not None:
            raise refused
        if asked.dry_run:
            sys.exit(0)
        _accept(prepared, bundle, asked, f"on {plural(len(hosts), 'host')}")
        files = files_of(bundle, wishes, prepared.text)
    folder = scheduled(place, hosts, files, how, say_line)
    states = status_of(folder, hosts).hosts
    left = {
        one.name: Left(str(folder.place(one.name)), one.state, one.reason)
        for one in states
    }
    places = {one.name: folder.place(one.name) for one in states}
    folders = {name: opened(path) for name, path in places.items() if is_own(path)}
    again = (measured_again(asked), shell("fleet", "report", folder.path))
    answer = fleet_reproduced(there, folders, left, again)
    asked.deliver(answer, lambda: charts_of_fleet(answer.fleet))
    measured = (host for host in answer.hosts if host.word != "not measured")
    keep(folder.place(host.host) for host in measured)
    sys.exit(answer.exit_code)


def _first(
    asked: Asked,
    bundle: Packed,
    there: Side,
    wishes: Wishes,
    hosts: tuple[FleetHost, ...],
) -> tuple[Prepared, RefusedError | None]:
    """Return the plan as the first host that answers would run it, and what the guard refuses there. Raises
    IodeltaError.
    """
    from iodelta.fleet.checking import destroyed
    from iodelta.lab.boots import refusal

    permits = destroyed(asked.destroy, hosts)
    silent: list[IodeltaError] = []
    for host in hosts:
        say_line(f"looking at {host.name}")
        try:
            with contact(host.machine) as machine:
                target = host.target(wishes.target)
                prepared = _prepared_for(bundle, there, machine, target, wishes)
                names = ", ".join(one.name for one in hosts)
                notes = (
                    f"shown as on {host.name}; measured on {plural(len(hosts), 'host')}: {names}",
                    *(failure.sentence for failure in silent),
                    *prepared.notes,
                )
                # What it runs is among the dangers, which have a question of their own.
                refused = refusal(
                    machine,
                    prepared.experiment,
                    prepared.found,
                    permits.get(host.name, ()),
                    commands=True,
                )
                return msgspec.structs.replace(prepared, notes=notes), refused
        except (LostError, UnreachableError) as failure:
            silent.append(failure)
    raise silent[0]


def measure_one(
    folder: FleetFolder, host: FleetHost, wishes: Wishes, destroy: tuple[str, ...]
) -> None:
    """What the process of one host does: prepare the bundle there, and measure it. Raises IodeltaError."""
    from iodelta.bundle.packed import Packed
    from iodelta.fleet.folder import BUNDLE
    from iodelta.study.reproduction import own_side

    bundle = Packed(folder.path / BUNDLE)
    there = own_side(bundle)
    with contact(host.machine) as machine:
        target = host.target(wishes.target)
        prepared = _prepared_for(bundle, there, machine, target, wishes)
        if prepared.dangers and not wishes.allow_commands:
            raise RequestError(
                "parts of it could do more than I/O, and that was not allowed",
                place=str(bundle.path),
            )
        allowed: dict[str, Any] = {
            "destroy": destroy,
            "allow_commands": wishes.allow_commands,
        }
        asked = Asked(format="console", **allowed)
        _measured(bundle, there, prepared, machine, folder.place(host.name), asked)
