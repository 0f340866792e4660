"""What commands about a fleet share: options, the choice of hosts, and one call of the coordinator."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.fleet.folder import FleetFolder
    from iodelta.fleet.host import FleetHost

INVENTORY = click.option(
    "--inventory",
    type=click.Path(path_type=Path),
    default=Path("fleet.toml"),
    show_default=True,
    help="The file that names the hosts.",
)
HOSTS = click.option(
    "--hosts",
    "expression",
    metavar="EXPR",
    help="Which hosts: names, patterns such as 'stor*', tags; !NAME leaves out, &TAG keeps (default: all).",
)
ON_HOSTS = click.option(
    "--hosts",
    "expression",
    metavar="EXPR",
    help="Measure on these hosts of the inventory: names, patterns, tags; !NAME leaves out, &TAG keeps.",
)
DESTROY = click.option(
    "--destroy",
    multiple=True,
    metavar="HOST:DEVICE",
    help="Allow this device of this host to be overwritten.",
)
SCHEDULER = click.option(
    "--scheduler",
    default="",
    metavar="tcp://HOST:PORT",
    help="Use this Dask scheduler (default: this process).",
)
AT_ONCE = click.option(
    "--at-once",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    help="How many hosts at a time.",
)
IN_USE = click.option(
    "--in-use",
    type=click.Choice(["wait", "skip"]),
    default="wait",
    show_default=True,
    help="If somebody else measures on a host's device.",
)
PATIENCE = click.option(
    "--patience",
    default="15m",
    show_default=True,
    metavar="TIME",
    help="How long to wait for a host that does not answer.",
)
FORMAT = click.option(
    "--format",
    "format_",
    type=click.Choice(["console", "json"]),
    default="console",
    show_default=True,
)
FOLDER = click.argument("folder", type=click.Path(path_type=Path))


@dataclasses.dataclass(frozen=True, kw_only=True)
class How:
    """How hosts are scheduled, as it was asked for."""

    destroy: tuple[str, ...] = ()
    """``HOST:DEVICE`` words."""
    scheduler: str = ""
    at_once: int = 50
    in_use: str = "wait"
    patience: str = "15m"

    @property
    def waits(self) -> float:
        """Seconds of patience. Raises RequestError."""
        from iodelta.experiment import seconds

        try:
            return seconds(self.patience)
        except ValueError as error:
            raise RequestError(str(error), place="--patience") from error


def scheduling(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of how hosts are scheduled."""
    for option in (AT_ONCE, SCHEDULER, PATIENCE, IN_USE):
        command = option(command)
    return command


@dataclasses.dataclass(frozen=True)
class OnFleet:
    """``--hosts`` of a command that can do without, and how these are scheduled."""

    hosts: tuple[FleetHost, ...]
    how: How


def on_fleet(command: Callable[..., Any]) -> Callable[..., Any]:
    """--hosts, and the options of how hosts are scheduled, as one argument ``fleet``, which is None without --hosts."""

    @functools.wraps(command)
    def checked(*, expression: str | None, inventory: Path, **others: Any) -> Any:
        how = {
            name: others.pop(name)
            for name in ("in_use", "patience", "scheduler", "at_once")
        }
        if expression is None:
            _refuse_given("inventory", *how)
            return command(fleet=None, **others)
        asked = How(**how)
        _ = asked.waits  # refused before anything else happens
        return command(fleet=OnFleet(chosen_of(inventory, expression), asked), **others)

    return ON_HOSTS(INVENTORY(scheduling(checked)))


def _refuse_given(*names: str) -> None:
    """Raises RequestError for an option that says something about hosts where there are none."""
    context = click.get_current_context()
    for option in context.command.params:
        if (
            option.name in names
            and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
        ):
            raise RequestError(
                "this is about the hosts of a fleet",
                place=option.opts[0],
                remedy="name them: --hosts",
            )


def chosen_of(inventory: Path, expression: str | None) -> tuple[FleetHost, ...]:
    """The hosts of an inventory that an expression names. Raises RequestError."""
    from iodelta.fleet.choice import chosen
    from iodelta.fleet.entry import ALL
    from iodelta.fleet.inventory import load

    return chosen(load(inventory), ALL if expression is None else expression)


def among(folder: FleetFolder, expression: str | None) -> tuple[FleetHost, ...]:
    """Hosts of a fleet folder."""
    from iodelta.fleet.choice import chosen
    from iodelta.fleet.entry import ALL

    hosts = sorted(folder.hosts().values(), key=lambda host: host.name)
    return chosen(hosts, ALL if expression is None else expression)


def scheduled(
    path: Path,
    hosts: tuple[FleetHost, ...],
    files: Mapping[str, bytes] | None,
    how: How,
) -> FleetFolder:
    """Schedule a fleet to its end. ``files`` are those of the question; None: the one that is there."""
    from iodelta.fleet.checking import destroyed
    from iodelta.fleet.cluster import workers
    from iodelta.fleet.coordinator import Coordinator, Policy
    from iodelta.fleet.folder import FleetFolder
    from iodelta.lab.signals import stop_on_signals
    from iodelta.study.words import inert

    def say(text: str) -> None:
        click.echo(inert(text), err=True)

    policy = Policy(
        "skip" if how.in_use == "skip" else "wait",
        how.waits,
        destroyed(how.destroy, hosts),
    )
    folder = FleetFolder(path)
    folder.make()
    with (
        folder.journal.held(),
        stop_on_signals() as stop,
        workers(how.scheduler, min(how.at_once, len(hosts))) as (client, most),
    ):
        if files is not None:
            folder.fix(files)
        folder.join(hosts)
        say(f"fleet folder {path}")
        Coordinator(
            folder, hosts, policy, client=client, most=most, stop=stop, say=say
        ).run()
    return folder
