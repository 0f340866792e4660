"""What hosts say together as CSV: a row for each host of a comparison, then one for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from iodelta.report.formats.spreadsheet import csv_text

if TYPE_CHECKING:
    from iodelta.study.fleet import FleetAccount, FleetRow, Together
    from iodelta.verdict import Change

COLUMNS = tuple(
    """
    cell variant metric unit better baseline host word says blocks averaged change
    low high level next next_low next_high spread between_hosts basis drained cpu
    disk kernel margin repeat schema
    """.split()
)
"""Shares are fractions; the row without a host is that of all hosts, and its next is what the next host will show."""


def of_fleet(account: FleetAccount) -> str:
    """Return the rows of every comparison; then the hosts that have none."""
    constant = (account.margin, "; ".join(account.again), "iodelta.fleet.csv/1")
    rows: list[tuple[object, ...]] = []
    for row in account.rows:
        rows += (*_hosts(account, row), _joint(row))
    rows += _without(account)
    return csv_text(COLUMNS, [(*row, *constant) for row in rows])


def _hosts(account: FleetAccount, row: FleetRow) -> Iterator[tuple[object, ...]]:
    members = {host.name: host for host in account.hosts}
    for host in row.hosts:
        member = members[host.host]
        yield (
            *(
                *_about(row),
                host.host,
                host.word,
                host.obstacle or host.phrase,
                host.blocks,
                int(host.averaged),
            ),
            *(*_bounds(host.change), None, None, None, None, None, ""),
            *(member.drained, member.cpu, member.disk, member.kernel),
        )


def _joint(row: FleetRow) -> tuple[object, ...]:
    together: Together | None = row.together
    numbers: tuple[object, ...] = (None,) * 9
    if together is not None:
        ahead = _bounds(together.next)[:3]
        numbers = (*_bounds(together.mean), *ahead, together.spread, together.between)
    blocks = sum(host.blocks for host in row.averaged)
    about = (*_about(row), "", row.word or "", row.says, blocks, len(row.averaged))
    return (*about, *numbers, row.basis, "", "", "", "")


def _without(account: FleetAccount) -> Iterator[tuple[object, ...]]:
    """Hosts that no comparison has."""
    hosts = chain.from_iterable(row.hosts for row in account.rows)
    seen = {host.host for host in hosts}
    for member in account.hosts:
        if member.name not in seen:
            unknown = (
                "",
                "",
                "",
                "",
                "",
                "",
                member.name,
                "",
                "",
                member.blocks,
                0,
                *(None,) * 9,
                "",
            )
            yield (*unknown, member.drained, member.cpu, member.disk, member.kernel)


def _about(row: FleetRow) -> tuple[str, ...]:
    return (
        row.cell,
        row.variant,
        row.metric.name,
        row.metric.unit,
        row.metric.better,
        row.baseline,
    )


def _bounds(change: Change | None) -> tuple[float | None, ...]:
    if change is not None:
        return change.value, change.low, change.high, change.level
    return (None,) * 4
