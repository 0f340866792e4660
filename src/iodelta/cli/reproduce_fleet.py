"""``iodelta reproduce --hosts``: somebody's experiment on every host of a fleet that matches."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from msgspec.structs import replace

from iodelta.api.hosts import How, scheduled
from iodelta.cli.contact import contact
from iodelta.cli.fleet_options import OnFleet, say
from iodelta.cli.reproducing import accept, measured, plan_of, prepared_for, show_plan
from iodelta.errors import (
    IodeltaError,
    LostError,
    RefusedError,
    RequestError,
    UnreachableError,
    pasted,
)
from iodelta.fleet.reproducing import Wishes, check_sets, files_of, goes_on
from iodelta.plural import plural
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.bundle.packed import Packed
    from iodelta.bundle.planning import Prepared
    from iodelta.fleet.folder import FleetFolder
    from iodelta.fleet.host import FleetHost
    from iodelta.machine import Machine
    from iodelta.study.fleet_reproduction import FleetReproduced
    from iodelta.study.reproduction import Side

ENDING = ".iodelta.tar.zst"


@dataclasses.dataclass(frozen=True)
class Request:
    """A bundle, what was asked of it, and where it is measured."""

    bundle: Packed
    there: Side
    wishes: Wishes
    fleet: OnFleet
    destroy: tuple[str, ...]
    folder: Path | None
    again: str
    """This command."""
    yes: bool
    dry_run: bool

    @property
    def place(self) -> Path:
        """Return the fleet folder: the same command again finds it."""
        return self.folder or Path(
            f"iodelta-fleet-{self.bundle.path.name.removesuffix(ENDING)}"
        )

    @property
    def how(self) -> How:
        return dataclasses.replace(self.fleet.how, destroy=self.destroy)


def reproduce_on(
    asked: Request,
    output: Callable[..., object],
    keep: Callable[[Iterable[Path]], None],
    *,
    error: bool,
) -> NoReturn:
    """Show what would run, ask once, measure on every host, and compare. ``error``: the plan goes to standard error."""
    from iodelta.fleet.folder import FleetFolder
    from iodelta.report.formats.charts.changes import charts_of_fleet

    check_sets(asked.wishes.given)
    folder = FleetFolder(asked.place)
    files = None
    if asked.dry_run or not goes_on(folder, asked.bundle, asked.wishes):
        files = _accepted(asked, output, error=error)
    if asked.dry_run:
        sys.exit(0)
    folder = scheduled(asked.place, asked.fleet.hosts, files, asked.how, say)
    answer = _found(folder, asked)
    output(answer, lambda: charts_of_fleet(answer.fleet))
    keep(
        folder.place(host.host) for host in answer.hosts if host.word != "not measured"
    )
    sys.exit(answer.exit_code)


def _accepted(
    asked: Request, output: Callable[..., object], *, error: bool
) -> dict[str, bytes]:
    """Return the files of the question, once what the first host would run was shown and accepted. Raises IodeltaError."""
    prepared, refused = _first(asked)
    plan = plan_of(prepared, asked.there, asked.bundle, asked.place, refused)
    if asked.dry_run:
        output(plan, tuple)
    else:
        show_plan(plan, error=error)
    if refused is not None:
        raise refused
    if not asked.dry_run:
        where, commands = (
            f"on {plural(len(asked.fleet.hosts), 'host')}",
            asked.wishes.allow_commands,
        )
        accept(
            prepared, asked.bundle, yes=asked.yes, allow_commands=commands, where=where
        )
    return files_of(asked.bundle, asked.wishes, prepared.text)


def _first(asked: Request) -> tuple[Prepared, RefusedError | None]:
    """Return the plan as the first host that answers would run it, and what the guard refuses there. Raises
    IodeltaError.
    """
    from iodelta.fleet.checking import destroyed
    from iodelta.lab.boots import refusal

    permits = destroyed(asked.destroy, asked.fleet.hosts)
    silent: list[IodeltaError] = []
    for host in asked.fleet.hosts:
        click.echo(f"looking at {inert(host.name)}", err=True)
        try:
            with contact(host.machine) as machine:
                first = _prepared(asked, host, machine, silent)
                # What it runs is among the dangers, which have a question of their own.
                own = permits.get(host.name, ())
                return first, refusal(
                    machine, first.experiment, first.found, own, commands=True
                )
        except (LostError, UnreachableError) as failure:
            silent.append(failure)
    raise silent[0]


def _prepared(
    asked: Request, host: FleetHost, machine: Machine, silent: Sequence[IodeltaError]
) -> Prepared:
    """Return the plan as this host would run it, with a note for which hosts it stands."""
    prepared = _prepared_on(host, machine, asked.bundle, asked.there, asked.wishes)
    names = ", ".join(one.name for one in asked.fleet.hosts)
    of_hosts = f"shown as on {host.name}; measured on {plural(len(asked.fleet.hosts), 'host')}: {names}"
    return replace(
        prepared,
        notes=(of_hosts, *(failure.sentence for failure in silent), *prepared.notes),
    )


def _prepared_on(
    host: FleetHost, machine: Machine, bundle: Packed, there: Side, wishes: Wishes
) -> Prepared:
    target, sets = host.target(wishes.target), wishes.given
    return prepared_for(
        bundle,
        there,
        machine,
        target,
        wishes.size,
        sets,
        wishes.budget,
        leave_out=False,
    )


def _found(folder: FleetFolder, asked: Request) -> FleetReproduced:
    """Return what the chosen hosts make of it."""
    from iodelta.bundle.packed import is_own, opened
    from iodelta.fleet.status import status_of
    from iodelta.study.fleet_host import Left
    from iodelta.study.fleet_reproduction import fleet_reproduced

    states = {state.name: state for state in status_of(folder, asked.fleet.hosts).hosts}
    left = {
        name: Left(str(folder.place(name)), state.state, state.reason)
        for name, state in states.items()
    }
    folders = {
        name: opened(folder.place(name))
        for name in states
        if is_own(folder.place(name))
    }
    again = (asked.again, f"iodelta fleet report {pasted(folder.path)}")
    return fleet_reproduced(asked.there, folders, left, again)


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
        prepared = _prepared_on(host, machine, bundle, there, wishes)
        if prepared.dangers and not wishes.allow_commands:
            raise RequestError(
                "parts of it could do more than I/O, and that was not allowed",
                place=str(bundle.path),
            )
        measured(
            bundle,
            there,
            prepared,
            machine,
            folder.place(host.name),
            destroy,
            "console",
            wishes.allow_commands,
        )
