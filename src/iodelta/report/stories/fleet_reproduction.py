"""A reproduction on many hosts as a story: on how many of them, what each says, and what they say together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from iodelta.plural import plural
from iodelta.report.stories import fleet as hosts_story
from iodelta.report.stories import reproduction
from iodelta.report.stories.story import (
    PLAIN,
    Detail,
    Item,
    Row,
    Section,
    Story,
    Table,
    section,
)
from iodelta.study.fleet_reproduction import FleetReproduced, HostReproduction
from iodelta.study.words import inert

METHOD = "Method"


def of_fleet_reproduction(found: FleetReproduced, detail: Detail = PLAIN) -> Story:
    """Somebody's experiment on many hosts."""
    together = hosts_story.of_fleet(found.fleet, detail)
    own = tuple(table for table in together.tables if table.title != hosts_story.EACH)
    return Story(
        question=inert(found.there.question),
        answer=headline(found),
        lead=(
            *section("The original", (reproduction.side_line(found.there),)),
            *_unmeasured(found),
        ),
        tables=(*_tables(found), *own),
        sections=(
            *section("Measured on one side only", _one_sided(found)),
            *section("Different from the original", _notes(found)),
            *(_with_method(one, found) for one in together.sections),
        ),
    )


def headline(found: FleetReproduced) -> str:
    """On how many hosts, then what they say together."""
    count = len(found.of("reproduced"))
    parts = [f"Reproduced on {count} of {plural(len(found.hosts), 'host')}"]
    words: tuple[HostReproduction, ...] = (
        "not reproduced",
        "inconclusive",
        "not measured",
    )
    parts += [
        f"{word} on {', '.join(map(inert, found.of(word)))}"
        for word in words
        if found.of(word)
    ]
    first = f"{'; '.join(parts)}."
    return (
        f"{first} Together: {hosts_story.headline(found.fleet)}"
        if found.fleet.rows
        else first
    )


def _unmeasured(found: FleetReproduced) -> tuple[Section, ...]:
    return section(
        "Not measured",
        [f"{inert(one.host)}: {inert(one.why)}" for one in found.hosts if one.why],
    )


def _tables(found: FleetReproduced) -> tuple[Table, ...]:
    """The hosts below each change of the original."""
    groups: dict[str, list[Row]] = {}
    for one in found.hosts:
        for matched in one.matched:
            row = reproduction.row_of(matched, found.there.baseline)
            groups.setdefault(row.label, []).append(
                Row(inert(one.host), row.cells, row.note, row.label)
            )
    rows = tuple(chain.from_iterable(groups.values()))
    return (
        (
            Table(
                "Each host against the original",
                "host",
                ("there", "here", "reproduced?"),
                rows,
            ),
        )
        if rows
        else ()
    )


def _one_sided(found: FleetReproduced) -> Iterator[str]:
    for one in found.hosts:
        for where, changes in (
            ("in the original", one.only_there),
            ("here", one.only_here),
        ):
            if changes:
                yield f"{inert(one.host)}, only {where}: {reproduction.named(changes)}"


def _notes(found: FleetReproduced) -> Iterator[str]:
    for one in found.hosts:
        if one.notes:
            yield f"{inert(one.host)}: {inert('; '.join(one.notes))}"


def _with_method(one: Section, found: FleetReproduced) -> Section:
    """The section on the method also says how hosts are compared with the original."""
    if one.title != METHOD:
        return one
    every = chain.from_iterable(host.matched for host in found.hosts)
    asked = sum(matched.found.asked for matched in every)
    return Section(METHOD, (Item(reproduction.method(asked)), *one.items))
