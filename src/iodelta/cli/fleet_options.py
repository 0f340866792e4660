"""Options and messages that the commands of a fleet share."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from iodelta.api.hosts import How, chosen_of
from iodelta.cli.shared_options import in_console_or_json
from iodelta.errors import RequestError

if TYPE_CHECKING:
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
    help="What to do if somebody else is measuring on a host's device.",
)
PATIENCE = click.option(
    "--patience",
    default="15m",
    show_default=True,
    metavar="TIME",
    help="How long to wait for a host that does not answer.",
)
FORMAT = in_console_or_json
FOLDER = click.argument("folder", type=click.Path(path_type=Path))


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
    """Raise RequestError for an option about hosts without --hosts."""
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


def say(text: str) -> None:
    """Print a line about the hosts where it does not mix with a result."""
    from iodelta.study.words import inert

    click.echo(inert(text), err=True)
