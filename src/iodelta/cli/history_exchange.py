"""``iodelta history import`` and ``export``: numbers of other services in, a history as tables or a lake out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodelta.cli.files import check_free, write
from iodelta.cli.files import force as force_option
from iodelta.cli.histories import (
    FORMAT,
    HISTORY,
    LOG,
    add_each,
    given_of,
    inert,
    opened,
)
from iodelta.errors import RequestError
from iodelta.plural import plural

if TYPE_CHECKING:
    from iodelta.history.store import Store

SOURCES = ("bmf", "perfherder", "lnt", "csv", "parquet")
TARGETS = (
    *("csv", "json", "parquet", "delta"),
    *("bmf", "kcidb", "lnt", "openmetrics", "perfherder"),
)

_IMPORT = """
\b
Examples:
  iodelta history import results.json --from bmf --machine stor3 --at 2026-11-22T02:00Z
  iodelta history import old.csv --from csv
"""
_EXPORT = """
\b
Examples:
  iodelta history export --to csv > history.csv
  iodelta history export history.parquet --to parquet
  iodelta history export --to kcidb --origin mylab > report.json
  iodelta history export --to lnt --machine stor3 > report.json
  iodelta history export s3://bucket/history --to delta
"""


@click.command("import", epilog=_IMPORT)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@HISTORY
@LOG
@FORMAT
@click.option(
    "--from",
    "source",
    type=click.Choice(SOURCES),
    required=True,
    help="Format of the files.",
)
@click.option(
    "--machine", default="", help="Where it was measured, if the file does not say."
)
@click.option(
    "--at",
    "moment",
    default="",
    metavar="TIME",
    help="When it was measured, such as 2026-11-22T02:00Z.",
)
@click.option("--describe", default="", help="Which build was measured, such as v6.12.")
@click.option("--commit", default="", help="Its commit.")
@click.option(
    "--repo",
    default="",
    metavar="PATH|NAME",
    help="The repository of the commits; a checkout says how they follow each other.",
)
@click.option(
    "--better",
    multiple=True,
    metavar="MEASURE=higher|lower",
    help="Which direction is better for a measure.",
)
def import_(
    paths: tuple[Path, ...],
    place: str,
    log: Path | None,
    format_: str,
    source: str,
    machine: str,
    moment: str,
    describe: str,
    commit: str,
    repo: str,
    better: tuple[str, ...],
) -> None:
    """Import results from other services: Bencher's metric format, Perfherder, LNT, CSV, Parquet.

    Points form separate series, flagged as foreign. A table has the columns cell, metric and value, and where
    known time, machine, variant, unit, better, error (relative standard error), build, commit and repo.
    """
    ways = tuple(map(_way, better))
    add_each(
        paths,
        given_of(machine, moment, describe, commit, source, ways, repo),
        place,
        log,
        format_,
        repo,
    )


def _way(text: str) -> tuple[str, str]:
    measure, _, way = text.rpartition("=")
    if not measure or way not in ("higher", "lower"):
        raise RequestError(
            f"not MEASURE=higher or MEASURE=lower: {text!r}", place="--better"
        )
    return measure, way


@click.command("export", epilog=_EXPORT)
@click.argument("target", required=False)
@HISTORY
@LOG
@click.option(
    "--to", "kind", type=click.Choice(TARGETS), required=True, help="What is written."
)
@click.option(
    "--origin",
    default="iodelta",
    show_default=True,
    metavar="NAME",
    help="For kcidb: what KernelCI calls you.",
)
@click.option(
    "--machine", default="", metavar="NAME", help="Only the series of this machine."
)
@force_option
def export(
    target: str | None,
    place: str,
    log: Path | None,
    kind: str,
    origin: str,
    machine: str,
    force: bool,
) -> None:
    """Export the history for other tools and services.

    As CSV, JSON or Parquet all points are exported, for Bencher (bmf), KernelCI (kcidb), LNT, Perfherder or Prometheus
    (openmetrics) the newest values, and everything to a Delta lake (a directory or s3://BUCKET/PATH; AWS_* variables
    say how to reach it).

    An export to a lake appends the missing experiments, at most 1000 per commit, and compacts the table, which is
    partitioned by month and machine.
    """
    if kind == "delta" and machine:
        raise RequestError(
            "a lake holds all machines: it is partitioned by them", place="--machine"
        )
    if kind == "delta" and not target:
        raise RequestError(
            "a lake needs a target",
            place="export --to delta",
            remedy="name a directory or s3://BUCKET/PATH",
        )
    if kind == "kcidb":
        _check_origin(origin)
    if target and kind != "delta":
        check_free(Path(target), force=force)
    store, written = opened(place, log)
    if kind == "delta":
        from iodelta.history.lake import export as to_lake

        done = to_lake(store, str(target), entries=written.entries()[0])
        click.echo(
            f"{inert(done.target)}: {plural(done.appended, 'experiment')} appended, {done.deleted} deleted"
        )
        return
    data = _written(store, kind, origin, machine)
    if target is None:
        sys.stdout.buffer.write(data)
    else:
        write(Path(target), data, "the export", force=force)


def _check_origin(origin: str) -> None:
    from iodelta.history.newest import ORIGIN

    if not ORIGIN.fullmatch(origin):
        raise RequestError(
            f"not an origin of KernelCI: {origin!r}",
            place="--origin",
            remedy="small letters, digits and _ alone",
        )


def _written(store: Store, kind: str, origin: str, machine: str) -> bytes:
    import io

    from iodelta.history import newest, services
    from iodelta.history.exchange import HistoryExportAnswer, frame, rows
    from iodelta.history.scan import unscanned
    from iodelta.report.documents import written

    lines = [line for line in store.lines(machine=machine) if line.points]
    if machine and not lines:
        raise RequestError(f"no series of {machine!r}", place="--machine")
    if kind in ("perfherder", "lnt"):
        made = services.perfherder if kind == "perfherder" else services.lnt
        document, left_out = made(lines)
        for sentence in left_out:
            click.echo(f"left out: {inert(sentence)}", err=True)
        return written(document)
    if kind == "openmetrics":
        return newest.openmetrics(map(unscanned, lines)).encode()
    documents: dict[str, Callable[[], object]] = {
        "json": lambda: HistoryExportAnswer(tuple(rows(lines))),
        "bmf": lambda: newest.bmf(lines),
        "kcidb": lambda: newest.kcidb(lines, origin),
    }
    if kind in documents:
        return written(documents[kind]())
    buffer = io.BytesIO()
    table = frame(lines)
    table.write_csv(buffer) if kind == "csv" else table.write_parquet(buffer)
    return buffer.getvalue()
