"""``iodelta fleet report``: whether the hosts that measured one plan agree."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.delivery import VERDICT_FORMATS, deliver, delivered
from iodelta.cli.gate import Words, exit_code, gated
from iodelta.errors import RequestError, pasted
from iodelta.report.stories.story import Detail

if TYPE_CHECKING:
    from iodelta.lab.folder import Folder
    from iodelta.study.fleet_host import Left

EXAMPLES = """
\b
Examples:
  iodelta fleet report stor1/ stor2/ stor3/
  iodelta fleet report iodelta-fleet-experiment
  iodelta fleet report iodelta-fleet-experiment -o hosts.html
  iodelta fleet report iodelta-fleet-experiment --exit-code    # for a script: 1 for a regression, 3 inconclusive
"""

HOSTS = "hosts"
"""The directory of a fleet folder that holds a folder for each host."""


@click.command("report", epilog=EXAMPLES)
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...")
@click.option("--format", "format_", type=click.Choice(VERDICT_FORMATS), default="console", show_default=True)
@delivered
@click.option("--verbose", is_flag=True, help="Show everything, not one screen.")
@gated
def command(
    folders: tuple[str, ...],
    format_: str,
    output: Path | None,
    charts: Path | None,
    force: bool,
    verbose: bool,
    fail_on: Words | None,
) -> None:
    """Say what hosts that measured one plan say together: everywhere, on average, or depending on the machine.

    FOLDER is the experiment folder or bundle of one host, or a fleet folder, which holds one for each host. Fewer than
    three hosts have no joint word: each says its own. A host that sees changes where there are none, or whose folder is
    not what was measured, is shown and not averaged.

    Exit codes: 0 reported, 2 the request is wrong, 4 there is nothing to report. With --exit-code also 1 a regression
    everywhere, on average, or on some host for sure, and 3 inconclusive.
    """
    from iodelta.report.formats.charts.fleet import charts_of_fleet
    from iodelta.study.fleet import fleet_account

    again = f"iodelta fleet report {' '.join(map(pasted, folders))}"
    measured, left = hosts_in(folders)
    found = fleet_account(measured, (again,), left)
    deliver(found, lambda: charts_of_fleet(found), format_, output, charts, force=force, detail=Detail(whole=verbose))
    sys.exit(exit_code(found, fail_on))


def hosts_in(paths: tuple[str, ...]) -> tuple[dict[str, Folder], dict[str, Left]]:
    """The folder of each host, and how its fleet left it, by the host's name. Raises RequestError."""
    from iodelta.bundle.packed import is_own, opened
    from iodelta.study.sides import short_names

    states: dict[str, Left] = {}
    found: list[str] = []
    for path in paths:
        own = _left_in(path)
        states.update(own)
        is_fleet = Path(path, HOSTS).is_dir()
        inside = sorted(map(str, Path(path, HOSTS).iterdir())) if is_fleet else []
        below = [one for one in inside if is_own(one)]
        if is_fleet and not below:
            raise RequestError(
                "no host of this fleet has been measured yet",
                place=path,
                remedy=f"`iodelta fleet status {pasted(path)}` says why" if own else "run the fleet first",
            )
        found += [*below, *(one for one in own if one not in below)] or [path]
    names = dict(zip(found, short_names(found), strict=True))
    folders = {names[path]: opened(path) for path in found if path not in states or is_own(path)}
    return folders, {names[path]: one for path, one in states.items()}


def _left_in(path: str) -> dict[str, Left]:
    """How a fleet left its hosts, by the places of their folders; nothing where ``path`` is not a fleet folder."""
    from iodelta.fleet.folder import FleetFolder
    from iodelta.fleet.status import status_of
    from iodelta.study.fleet_host import Left

    fleet = FleetFolder(Path(path))
    if not Path(path, HOSTS).is_dir() or fleet.begun() is None:
        return {}
    found = (Left(str(fleet.place(one.name)), one.state, one.reason) for one in status_of(fleet).hosts)
    return {one.place: one for one in found}
