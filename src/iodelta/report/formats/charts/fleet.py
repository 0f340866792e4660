"""The hosts of a fleet as forest plots: each host's change, their mean, and what the next host will show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from iodelta.plural import plural
from iodelta.report.formats.charts import forest
from iodelta.report.formats.charts.model import Effect, Figure, Source, ends_of
from iodelta.study.fleet import FleetAccount, FleetRow
from iodelta.study.words import inert, metric_name
from iodelta.verdict import Change

TITLE = "Change on each host"

MOST = forest.MOST - 2
"""Hosts of one chart; the others are in the table of the report."""

WORDS = {
    "regression": "regression",
    "improvement": "improvement",
    "equivalent": "equivalent",
    "inconclusive": "inconclusive",
}
"""The first part of a joint word -> the mark that it has in every chart; of hosts that differ there is none."""

MEAN, NEXT = "mean of hosts", "next host"


def charts_of_fleet(
    account: FleetAccount,
) -> tuple[tuple[str, tuple[Figure, ...]], ...]:
    """Return a chart for each comparison that some host has a change of."""
    made = tuple(_figures(account))
    if not made:
        return ()
    return ((TITLE, made),)


def _figures(account: FleetAccount) -> Iterator[Figure]:
    several = len({row.variant for row in account.rows}) > 1
    for number, row in enumerate(account.rows, 1):
        effects = tuple(_effects(row))
        source = Source(
            baseline=row.baseline,
            variants=(row.baseline, row.variant),
            cells=tuple(effect.cell for effect in effects),
            margin=account.margin,
            effects=effects,
        )
        for figure in forest.figures(source):
            place = (
                f"{inert(row.cell)}, {inert(row.variant)}"
                if several
                else inert(row.cell)
            )
            yield msgspec.structs.replace(
                figure,
                name=f"hosts-{number}-{row.metric.name}",
                title=f"{figure.title}, {place}",
                alt=f"{place}: {row.word or 'no joint verdict'}; {_counted(row)}.",
                about=f"{figure.about}{_last_rows(row)}{_left_out(row)}",
            )


def _counted(row: FleetRow) -> str:
    """Return how many hosts have a change, by their own words: as many as the table of the report."""
    words = Counter(host.word for host in row.hosts if host.change is not None)
    counts = ", ".join(f"{count} {word}" for word, count in words.items())
    better = "more" if row.metric.better == "higher" else "less"
    return f"{plural(words.total(), 'host')}: {counts}; {better} is better"


def _last_rows(row: FleetRow) -> str:
    if row.together is None:
        return ""
    return (
        " The last two rows are all hosts: their mean, and the interval in which the next host like them will "
        "lie."
    )


def _left_out(row: FleetRow) -> str:
    if len(row.hosts) > MOST:
        return f" Shown are the first {MOST} of {len(row.hosts)} hosts."
    return ""


def _effects(row: FleetRow) -> Iterator[Effect]:
    for host in row.hosts[:MOST]:
        yield _effect(
            row,
            host.host,
            host.change,
            host.word or "no verdict",
            plural(host.blocks, "block"),
        )
    if row.together is not None and row.word is not None:
        word = WORDS.get(row.word.partition(" ")[0], "no verdict")
        counted = plural(len(row.averaged), "host")
        yield _effect(row, MEAN, row.together.mean, word, counted)
        yield _effect(row, NEXT, row.together.next, word, counted)


def _effect(
    row: FleetRow, name: str, change: Change | None, word: str, counted: str
) -> Effect:
    value, low, high = ends_of(change)
    return Effect(
        cell=name,
        variant=row.variant,
        metric=row.metric,
        name=metric_name(row.metric, with_kind=False),
        values=(None, None),
        change=value,
        low=low,
        high=high,
        word=word,
        counted=counted,
    )
