"""An import as a story: what is in results of others, nothing compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from iodelta.errors import pasted
from iodelta.plural import plural
from iodelta.report.stories import numbers
from iodelta.report.stories.sources import findings_or_none, not_read, systems
from iodelta.report.stories.story import PLAIN, Cell, Detail, Row, Story, Table, section
from iodelta.study.devices import Served
from iodelta.study.rows import Number, Shown
from iodelta.study.rows import Row as RunRow
from iodelta.study.runs import shared_folder
from iodelta.study.words import inert, name_of_command, quantity

HEADS = ("", "IOPS", "MiB/s", "mean", "p50", "p99", "p99.9")

MARKS = {"hard": " !", "warning": " ?"}
"""What stands behind the name of a run that has findings."""

DEVICES = 40
"""Devices with read_stats that are shown."""


def of_shown(results: Shown, detail: Detail = PLAIN) -> Story:
    """Return what is in foreign results, nothing compared: the rows of ``iodelta show``."""
    common = shared_folder(
        (
            *(row.file for row in results.rows),
            *(device.file for device in results.devices),
        )
    )
    paths = " ".join(pasted(inert(path)) for path in results.paths)
    return Story(
        question="",
        answer=f"{plural(results.runs, 'run')} in {plural(results.files, 'file')}; nothing is compared.",
        tables=(*_runs(results.rows), *_devices(results.devices, common)),
        sections=(
            *section("Legend", _legend(results)),
            *findings_or_none(results.findings, common),
            *section("Not read", not_read(results.refusals, common)),
            *systems(
                results.systems,
                (row.fio_version for row in results.rows),
                alone=len(results.systems) == len(results.paths),
            ),
            *section(
                "To do it again",
                (inert(detail.again) or f"iodelta show {paths}",),
                commands=True,
            ),
        ),
    )


def _runs(rows: Sequence[RunRow]) -> Iterator[Table]:
    for group, alike in groupby(rows, key=lambda row: row.group):
        yield _table(numbers.shortened(inert(group)), list(alike))


def _table(title: str, rows: Sequence[RunRow]) -> Table:
    """Return what fio measures in columns of their own; of a command, a column for each of its numbers."""
    of_command: dict[str, str] = {}
    for row in rows:
        of_command |= {
            name: name_of_command(name, number.unit)
            for name, number in row.measured.items()
        }
    if not of_command:
        return Table(
            title=title,
            first="run",
            heads=HEADS,
            rows=tuple(map(_run, rows)),
            words=False,
        )
    heads = tuple(map(inert, of_command.values()))
    return Table(
        title=title,
        first="run",
        heads=heads,
        rows=tuple(_of_command(row, of_command) for row in rows),
        words=False,
    )


def _of_command(row: RunRow, names: Iterable[str]) -> Row:
    measured = map(row.measured.get, names)
    cells = tuple(
        Cell(quantity(number.value, number.unit) if number else "-")
        for number in measured
    )
    return Row(f"{numbers.named(row)}{MARKS.get(row.severity, '')}", cells)


def _run(row: RunRow) -> Row:
    cells = [
        row.kind,
        numbers.rate(row),
        numbers.bandwidth(row.bandwidth),
        numbers.time(row.mean),
    ]
    cells += [numbers.point(row.point(share)) for share in (50.0, 99.0, 99.9)]
    return Row(
        f"{numbers.named(row)}{MARKS.get(row.severity, '')}", tuple(map(Cell, cells))
    )


def _legend(results: Shown) -> Iterator[str]:
    grades = {row.severity for row in results.rows}
    if "hard" in grades:
        yield "! a hard finding about this row, see below"
    if "warning" in grades:
        yield "? a warning about this row, see below"
    yield from numbers.legend(results.rows)
    if len(results.devices) > DEVICES:
        yield f"{plural(len(results.devices) - DEVICES, 'more device')} with read_stats; --format json lists them"


def _devices(devices: Sequence[Served], common: str) -> Iterator[Table]:
    """Yield what each device of a mirror served, a table per file."""
    for file, of_file in groupby(devices[:DEVICES], key=lambda device: device.file):
        rows = list(of_file)
        when = "between the first and the last dump"
        if rows[0].since_mount:
            when = "since mount"
        lasted = f", {rows[0].seconds:g} s" if rows[0].seconds is not None else ""
        title = f"read_stats, {inert(file.removeprefix(common))}: {when}{lasted}"
        yield Table(
            title=title,
            first="device",
            heads=("reads", "share", "mean wait"),
            rows=tuple(map(_device, rows)),
            words=False,
        )


def _device(device: Served) -> Row:
    share = "-" if device.share is None else f"{100 * device.share:.1f} %"
    wait = None
    if device.wait is not None:
        wait = Number(device.wait, device.wait, device.wait)
    return Row(
        numbers.shortened(inert(device.device)),
        (Cell(f"{device.reads:,.0f}"), Cell(share), Cell(numbers.time(wait))),
    )
