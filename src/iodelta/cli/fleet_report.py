"""``iodelta fleet report``: whether the hosts that measured one plan agree."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.delivery import FORMATS, deliver, delivered, report_exit_code
from iodelta.errors import RequestError, pasted
from iodelta.report.stories.story import Detail

if TYPE_CHECKING:
    from iodelta.lab.folder import Folder

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
@click.option("--format", "format_", type=click.Choice(FORMATS), default="console", show_default=True)
@delivered
@click.option("--verbose", is_flag=True, help="Show everything, not one screen.")
@click.option("--exit-code", "gate", is_flag=True, help="Exit with the code of the joint words, for scripts.")
def command(
    folders: tuple[str, ...],
    format_: str,
    output: Path | None,
    charts: Path | None,
    force: bool,
    verbose: bool,
    gate: bool,
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
    found = fleet_account(hosts_in(folders), (again,))
    deliver(found, lambda: charts_of_fleet(found), format_, output, charts, force=force, detail=Detail(whole=verbose))
    sys.exit(report_exit_code(found.exit_code, gate=gate))


def hosts_in(paths: tuple[str, ...]) -> dict[str, Folder]:
    """The folder of each host by the host's name. Raises RequestError."""
    from iodelta.bundle.packed import is_own, opened
    from iodelta.study.sides import short_names

    found: list[str] = []
    for path in paths:
        below = sorted(Path(path, HOSTS).iterdir()) if Path(path, HOSTS).is_dir() else []
        own = [str(one) for one in below if is_own(one)]
        if below and not own:
            raise RequestError("no host of this fleet has been measured yet", place=path, remedy="run the fleet first")
        found += own or [path]
    return {name: opened(path) for name, path in zip(short_names(found), found, strict=True)}
