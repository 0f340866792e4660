"""``iodelta fio``: the programs that iodelta builds for itself."""

from __future__ import annotations

from pathlib import Path

import click

from iodelta.cli.files import print_document
from iodelta.cli.groups import Group
from iodelta.cli.progress import Progress
from iodelta.cli.shared_options import in_console_or_json
from iodelta.study.words import inert


@click.group("fio", cls=Group, epilog="\b\nExamples:\n  iodelta fio build\n")
def command() -> None:
    """Build a static fio for guests, and fio's t/io_uring, which distributions do not package."""


@command.command(
    "build",
    epilog="\b\nExamples:\n  iodelta fio build\n  iodelta fio build --source fio-3.39\n",
)
@click.option(
    "--source",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="An unpacked source tree of fio (default: the distribution's source package, fetched by apt).",
)
@click.option(
    "--again", is_flag=True, help="Build even if the cache has a complete build."
)
@in_console_or_json
def build(source: Path | None, again: bool, format_: str) -> None:
    """Build a static fio and t/io_uring into the cache, from the distribution's own source of fio.

    Changes nothing outside ~/.cache/iodelta (set IODELTA_CACHE for another place). An interrupted build continues
    where it stopped.
    """
    from iodelta.tools.fio import build_fio, built_fio

    binary = None if again or source else built_fio()
    if binary is None:
        with Progress(log=True) as progress:
            binary = build_fio(source=source, on_step=progress.step)
    if format_ == "json":
        from iodelta.report.answers import FioBuildAnswer

        print_document(
            FioBuildAnswer(str(binary.fio), str(binary.io_uring), binary.version)
        )
        return
    for path in (binary.fio, binary.io_uring):
        click.echo(f"{inert(str(path))}  (fio {inert(binary.version)}, static)")
