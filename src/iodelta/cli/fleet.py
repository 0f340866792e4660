"""``iodelta fleet``: one question on many hosts. Commands import dask."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from iodelta.api.hosts import How, Permits, among, chosen_of, measured
from iodelta.cli.files import print_document
from iodelta.cli.fleet_check import command as check
from iodelta.cli.fleet_options import (
    DESTROY,
    FOLDER,
    FORMAT,
    HOSTS,
    INVENTORY,
    say,
    scheduling,
)
from iodelta.cli.fleet_report import command as report
from iodelta.cli.groups import Group
from iodelta.cli.own_command import allow_commands
from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.fleet.answers import FleetStatusAnswer
    from iodelta.fleet.host import FleetHost

_EXAMPLES = """
\b
Examples:
  iodelta fleet check experiment.toml --hosts nvme
  iodelta fleet run experiment.toml --hosts 'nvme,!stor3'
  iodelta fleet status iodelta-fleet-experiment
"""


@click.group("fleet", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Measure one experiment on many hosts of an inventory, over SSH, and say whether they agree."""


command.add_command(check)
command.add_command(report)


@command.command(
    "run",
    epilog="\b\nExamples:\n  iodelta fleet run experiment.toml --hosts 'nvme,!stor3'\n"
    "  iodelta fleet run iodelta-fleet-experiment       # continues it\n",
)
@click.argument("what", type=click.Path(path_type=Path))
@HOSTS
@INVENTORY
@DESTROY
@click.option(
    "--folder",
    "place",
    type=click.Path(path_type=Path),
    help="The fleet folder (default: iodelta-fleet-FILE).",
)
@click.option(
    "--spread",
    is_flag=True,
    help="Make one experiment whose blocks alternate between the hosts.",
)
@scheduling
@allow_commands
@FORMAT
def run(
    what: Path,
    expression: str | None,
    inventory: Path,
    destroy: tuple[str, ...],
    in_use: str,
    patience: str,
    place: Path | None,
    spread: bool,
    scheduler: str,
    at_once: int,
    allow_commands: bool,
    format_: str,
) -> None:
    """Measure WHAT, an experiment file, on every chosen host, or continue WHAT, a fleet folder.

    Each host gets an ordinary experiment folder below the fleet folder. A host, and each physical device, is used once
    at a time. iodelta waits for a host that does not answer, while the others go on. It repeats nothing because of a
    value. The same command again continues after a kill. Exit codes: 0 every host is done, 3 some are still to be
    measured, 4 some could not be. With --spread all hosts share one experiment, and the exit code is that of `iodelta
    run`.
    """
    if spread:
        _spread(
            what,
            chosen_of(inventory, expression),
            Permits(destroy, allow_commands),
            in_use,
            place,
            format_,
        )
    how = How(
        destroy=destroy,
        scheduler=scheduler,
        at_once=at_once,
        in_use=in_use,
        patience=patience,
        allow_commands=allow_commands,
    )
    answer = measured(
        what, place, lambda: chosen_of(inventory, expression), expression, how, say
    )
    _deliver(answer, format_)
    sys.exit(answer.exit_code)


def _spread(
    file: Path,
    hosts: tuple[FleetHost, ...],
    permits: Permits,
    in_use: str,
    place: Path | None,
    format_: str,
) -> NoReturn:
    """Run one experiment over all hosts, as `iodelta run` does with a --machine for each."""
    from iodelta.cli.running import Asked, measure
    from iodelta.cli.turn import let_wait
    from iodelta.experiment import load
    from iodelta.fleet.checking import destroyed

    asked_path = load(file).target.path
    paths = {host.target(asked_path): host.name for host in hosts}
    if len(paths) > 1:
        (path, first), (other, second) = list(paths.items())[:2]
        raise RequestError(
            f"one experiment has one path of its target, and it is {path} on {first}, {other} on {second}",
            place="--spread",
            remedy="choose hosts with the same path, or leave --spread out",
        )
    if in_use == "wait":
        let_wait()
    place = place or Path(f"iodelta-fleet-{file.stem}")
    devices = destroyed(permits.destroy, hosts)
    asked = Asked(
        destroy=tuple(dict.fromkeys(itertools.chain.from_iterable(devices.values()))),
        allow_commands=permits.commands,
        format_=format_,
    )
    if place.exists():
        measure(place, asked)
    names = tuple(host.machine for host in hosts)
    measure(
        file,
        dataclasses.replace(
            asked, names=names, given={"target": next(iter(paths))}, place=place
        ),
    )
    raise AssertionError("measuring exits by itself")


@command.command(
    "status", epilog="\b\nExamples:\n  iodelta fleet status iodelta-fleet-experiment\n"
)
@FOLDER
@HOSTS
@FORMAT
def status(folder: Path, expression: str | None, format_: str) -> None:
    """Show the state of every host of a fleet: waiting, running, done, failed, lost, drained or skipped, and why."""
    from iodelta.fleet.folder import FleetFolder
    from iodelta.fleet.status import status_of

    opened = FleetFolder.open(folder)
    _deliver(
        status_of(opened, among(opened, expression) if expression else ()), format_
    )


@command.command(
    "cancel",
    epilog="\b\nExamples:\n  iodelta fleet cancel iodelta-fleet-experiment --hosts stor3\n",
)
@FOLDER
@HOSTS
@FORMAT
def cancel(folder: Path, expression: str | None, format_: str) -> None:
    """End the runs of a fleet, or of some of its hosts. Settings are restored, finished trials are kept, and
    `iodelta fleet run FOLDER` continues."""
    from iodelta.fleet.answers import FleetCancelAnswer
    from iodelta.fleet.coordinator import CANCELLED
    from iodelta.fleet.folder import FleetFolder
    from iodelta.study.words import inert

    opened = FleetFolder.open(folder)
    names = tuple(host.name for host in among(opened, expression))
    if not opened.is_held():
        names = ()
    for name in names:
        opened.write(f"stop/{name}", CANCELLED.encode())
    if format_ == "json":
        print_document(FleetCancelAnswer(str(folder), names))
    elif names:
        click.echo(inert(f"asked {', '.join(names)} to end"), err=True)
    else:
        click.echo(
            "no `iodelta fleet run` is running on this folder: nothing to cancel",
            err=True,
        )


@command.command(
    "fetch",
    epilog="\b\nExamples:\n  iodelta fleet fetch iodelta-fleet-experiment /srv/night --hosts stor3\n",
)
@FOLDER
@click.argument("there")
@HOSTS
@FORMAT
def fetch(folder: Path, there: str, expression: str | None, format_: str) -> None:
    """Bring experiment folders into a fleet that were measured on the hosts themselves: THERE is the folder's path on
    each of them. It must ask the same question; each file is checked against the folder's own seal. Exit codes: 0 every
    folder was fetched, 4 some were not."""
    from iodelta.fleet.answers import FleetFetchAnswer
    from iodelta.fleet.fetching import fetch_from
    from iodelta.fleet.folder import FleetFolder
    from iodelta.study.words import inert

    opened = FleetFolder.open(folder)
    hosts = among(opened, expression)
    fetched = []
    with opened.journal.held():
        for host in hosts:
            fetched_folder = fetch_from(opened, host, there)
            fetched.append(fetched_folder)
            if format_ == "console":
                click.echo(
                    inert(
                        f"{fetched_folder.name}: {'fetched' if fetched_folder.fetched else 'not fetched:'} {fetched_folder.said}"
                    ),
                    err=True,
                )
    answer = FleetFetchAnswer(str(folder), tuple(fetched))
    if format_ == "json":
        print_document(answer)
    sys.exit(answer.exit_code)


def _deliver(answer: FleetStatusAnswer, format_: str) -> None:
    if format_ == "json":
        print_document(answer)
        return
    for line in _status_lines(answer):
        click.echo(line)


def _status_lines(answer: FleetStatusAnswer) -> Iterator[str]:
    from iodelta.plural import plural
    from iodelta.study.words import inert

    width = max((len(host.name) for host in answer.hosts), default=0)
    for host in answer.hosts:
        yield f"{host.name:{width}}  {host.state:8} {plural(host.trials, 'trial')}"
        for text in (host.reason, host.remedy, *host.notes):
            if text:
                yield f"{'':{width}}  {inert(text)}"
