"""Hosts of a fleet, chosen and scheduled: what commands and programs share. Heavy rooms are imported when they work."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from iodelta.errors import RequestError

if TYPE_CHECKING:
    from iodelta.fleet.answers import FleetStatusAnswer
    from iodelta.fleet.folder import FleetFolder
    from iodelta.fleet.host import FleetHost


@dataclasses.dataclass(frozen=True)
class Permits:
    """What the user allowed in this call; nothing of it is kept."""

    destroy: tuple[str, ...]
    commands: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class How:
    """How hosts are scheduled, as it was asked for."""

    destroy: tuple[str, ...] = ()
    """``HOST:DEVICE`` words."""
    scheduler: str = ""
    at_once: int = 50
    in_use: str = "wait"
    patience: str = "15m"
    allow_commands: bool = False
    """Whether commands that may write anywhere may run on every host."""

    @property
    def waits(self) -> float:
        """Seconds of patience. Raises RequestError."""
        from iodelta.experiment import seconds

        try:
            return seconds(self.patience)
        except ValueError as error:
            raise RequestError(str(error), place="--patience") from error


def silent(text: str) -> None:
    """Nothing is printed for a program."""


def chosen_of(inventory: Path, expression: str | None) -> tuple[FleetHost, ...]:
    """Return the hosts of an inventory that an expression names. Raises RequestError."""
    from iodelta.fleet.choice import chosen
    from iodelta.fleet.entry import ALL
    from iodelta.fleet.inventory import load

    return chosen(load(inventory), ALL if expression is None else expression)


def among(folder: FleetFolder, expression: str | None) -> tuple[FleetHost, ...]:
    """Hosts of a fleet folder. Raises RequestError."""
    from iodelta.fleet.choice import chosen
    from iodelta.fleet.entry import ALL

    hosts = sorted(folder.hosts().values(), key=lambda host: host.name)
    return chosen(hosts, ALL if expression is None else expression)


def scheduled(
    path: Path,
    hosts: tuple[FleetHost, ...],
    files: Mapping[str, bytes] | None,
    how: How,
    say: Callable[[str], None] = silent,
) -> FleetFolder:
    """Schedule a fleet to its end. ``files`` are those of the question; None: the one that is there."""
    from iodelta.fleet.checking import destroyed
    from iodelta.fleet.cluster import workers
    from iodelta.fleet.coordinator import Coordinator, Policy
    from iodelta.fleet.folder import FleetFolder
    from iodelta.lab.signals import stop_on_signals

    policy = Policy(
        "skip" if how.in_use == "skip" else "wait",
        how.waits,
        destroyed(how.destroy, hosts),
        how.allow_commands,
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


def measured(
    what: Path,
    place: Path | None,
    choose: Callable[[], tuple[FleetHost, ...]],
    expression: str | None,
    how: How,
    say: Callable[[str], None] = silent,
) -> FleetStatusAnswer:
    """Measure the experiment file ``what`` on the hosts that ``choose`` gives, or continue the fleet folder ``what`` on
    those of its own. Raises RequestError, RefusedError."""
    from iodelta.fleet.folder import FleetFolder, question
    from iodelta.fleet.reproducing import wishes_of
    from iodelta.fleet.status import status_of
    from iodelta.lab.guard import check_commands

    if what.is_dir():
        if place is not None:
            raise RequestError("the fleet folder is given already", place="--folder")
        files = None
        folder = FleetFolder.open(what)
        place, hosts = what, among(folder, expression)
        if wishes_of(folder) is None:  # those of a bundle were accepted with it
            check_commands(folder.experiment(), how.allow_commands)
    else:
        files, hosts = question(what, how.allow_commands), choose()
        place = place or Path(f"iodelta-fleet-{what.stem}")
    return status_of(scheduled(place, hosts, files, how, say), hosts)
