"""``iodelta audit``: can these numbers be believed?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.awaiting import awaited
from iodelta.cli.delivery import FORMATS, deliver, printed
from iodelta.cli.files import check_free, write
from iodelta.cli.shared_options import in_formats, names_files
from iodelta.errors import RequestError
from iodelta.plural import plural
from iodelta.report.stories.story import Detail
from iodelta.study.words import inert

if TYPE_CHECKING:
    from iodelta.study.audited import Audited

EXAMPLES = """
\b
Examples:
  iodelta audit results/
  iodelta audit blog-table.md --repair mended.md
  iodelta audit table.txt --claims 'queue has the highest IOPS in QD1; pid is 25 % below queue in SeqRead'
  iodelta audit mail.txt --claims '20 % and 30 % make more than 40 %'
  iodelta audit results/ -o audit.html
  iodelta audit --rules
"""


@click.command("audit", epilog=EXAMPLES)
@click.argument("paths", nargs=-1)
@click.option(
    "--claims",
    default="",
    help="Sentences about the tables to check, separated by ; (or a file: @claims.txt).",
)
@click.option(
    "--repair",
    type=click.Path(path_type=Path),
    help="Write the corrected tables to PATH, with every change marked.",
)
@printed
@click.option(
    "--all", "whole", is_flag=True, help="List every place, not only examples."
)
@click.option("--rules", is_flag=True, help="List the rules and exit.")
@names_files
@in_formats(FORMATS)
def command(
    paths: tuple[str, ...],
    claims: str,
    repair: Path | None,
    force: bool,
    whole: bool,
    rules: bool,
    name_pattern: str | None,
    format_: str,
    output: Path | None,
) -> None:
    """Find impossible, inconsistent and unsafe numbers in PATHS: fio results, tables, prose, archives, iodelta's own
    folders; - is standard input.

    Exit codes: 0 no hard finding, 1 a hard finding or a false claim, 2 the request is wrong, 4 nothing to check, or a
    file of PATHS could not be read (a folder may hold other things).
    """
    if rules:
        from iodelta.study.audited import rules_answer

        deliver(rules_answer(), tuple, format_, output, force=force)
        return
    if not paths:
        raise RequestError(
            "there is nothing to audit",
            place="audit",
            remedy="name files or folders; - is standard input",
        )
    from iodelta.api.foreign import audited

    if repair is not None:
        check_free(repair, force=force)
    with awaited(paths):
        report = audited(paths, claims, stdin=sys.stdin.buffer, pattern=name_pattern)
    if repair is not None:
        _repair(report, repair, force=force)
    deliver(report, tuple, format_, output, force=force, detail=Detail(whole=whole))
    for path in report.unread if report.runs else ():
        click.echo(f"iodelta: {inert(path)}: nothing here could be read", err=True)
    sys.exit(report.exit_code)


def _repair(report: Audited, path: Path, *, force: bool) -> None:
    from iodelta.report.formats.mended import mended

    text = mended(report)
    if not text:
        click.echo("nothing here can be mended exactly", err=True)
        return
    write(
        path, text.encode("utf-8", "backslashreplace"), "the mended tables", force=force
    )
    click.echo(
        f"{plural(len(report.repairs), 'cell')} mended, each marked: {inert(str(path))}",
        err=True,
    )
