"""``iodelta rebuild``: derived files from raw data."""

from __future__ import annotations

from pathlib import Path

import click

from iodelta.cli.files import print_document
from iodelta.cli.shared_options import in_console_or_json
from iodelta.plural import plural


@click.command(
    "rebuild", epilog="\b\nExamples:\n  iodelta rebuild iodelta-20260102-030405\n"
)
@click.argument("folder", type=click.Path(path_type=Path))
@in_console_or_json
def command(folder: Path, format_: str) -> None:
    """Recreate verdict.json and trials.parquet of FOLDER from its raw data and plan, and report.html if it is there.

    Exit codes: 0 success, 4 the folder was changed after the run: no file is written; see `iodelta report`.
    """
    from iodelta.lab.folder import CountFolder, Folder  # --help does without
    from iodelta.lab.integrity import VERDICT
    from iodelta.report.derived import PAGE, TRIALS, derive

    opened = Folder.open(folder)
    if isinstance(opened, CountFolder):
        from iodelta.cli.counting import rebuild

        rebuild(opened, format_)
        return
    account = derive(opened, unchanged=True)
    made = tuple(name for name in (VERDICT, TRIALS, PAGE) if (folder / name).exists())
    if format_ == "json":
        from iodelta.report.answers import RebuildAnswer

        print_document(RebuildAnswer(made, account.trials))
        return
    click.echo(
        f"{folder / ', '.join(made)} rebuilt from {plural(account.trials, 'trial')}"
    )
    if TRIALS not in made:
        click.echo(f"{TRIALS} needs polars: pip install 'iodelta[frames]'", err=True)
