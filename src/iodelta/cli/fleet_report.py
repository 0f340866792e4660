"""``iodelta fleet report``: whether the hosts that measured one plan agree."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from iodelta.cli.delivery import VERDICT_FORMATS, deliver, delivered
from iodelta.cli.gate import Words, exit_code, gated
from iodelta.cli.shared_options import in_formats
from iodelta.report.stories.story import Detail

EXAMPLES = """
\b
Examples:
  iodelta fleet report stor1/ stor2/ stor3/
  iodelta fleet report iodelta-fleet-experiment
  iodelta fleet report iodelta-fleet-experiment -o hosts.html
  iodelta fleet report iodelta-fleet-experiment --exit-code    # for a script: 1 for a regression, 3 inconclusive
"""


@click.command("report", epilog=EXAMPLES)
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...")
@in_formats(VERDICT_FORMATS)
@delivered
@click.option("--verbose", is_flag=True, help="Show everything, not just one screen.")
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
    """Combine the results of hosts that measured the same plan: is a change there everywhere, on average, or only on some machines?

    FOLDER is the experiment folder or bundle of one host, or a fleet folder, which holds one for each host. Fewer than
    three hosts get no joint verdict; each keeps its own. A host that sees changes where there are none, or whose folder
    is not what was measured, is shown but not averaged.

    Exit codes: 0 reported, 2 the request is wrong, 4 there is nothing to report. With --exit-code also 1 a regression
    everywhere, on average, or on some host for sure, and 3 inconclusive.
    """
    from iodelta.api.fleets import agreed
    from iodelta.report.formats.charts.changes import charts_of_fleet

    account = agreed(folders)
    deliver(
        account,
        lambda: charts_of_fleet(account),
        format_,
        output,
        charts,
        force=force,
        detail=Detail(whole=verbose),
    )
    sys.exit(exit_code(account, fail_on))
