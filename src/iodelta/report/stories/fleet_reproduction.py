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


def of_fleet_reproduction(reproduced: FleetReproduced, detail: Detail = PLAIN) -> Story:
    """Somebody's experiment on many hosts."""
    together = hosts_story.of_fleet(reproduced.fleet, detail)
    own = tuple(table for table in together.tables if table.title != hosts_story.EACH)
    return Story(
        question=inert(reproduced.there.question),
        answer=headline(reproduced),
        lead=(
            *section("The original", (reproduction.side_line(reproduced.there),)),
            *_unmeasured(reproduced),
        ),
        tables=(*_tables(reproduced), *own),
        sections=(
            *section("Measured on one side only", _one_sided(reproduced)),
            *section("Different from the original", _notes(reproduced)),
            *(_with_method(part, reproduced) for part in together.sections),
        ),
    )


def headline(reproduced: FleetReproduced) -> str:
    """On how many hosts, then what they say together."""
    count = len(reproduced.of("reproduced"))
    parts = [f"Reproduced on {count} of {plural(len(reproduced.hosts), 'host')}"]
    words: tuple[HostReproduction, ...] = (
        "not reproduced",
        "inconclusive",
        "not measured",
    )
    parts += [
        f"{word} on {', '.join(map(inert, reproduced.of(word)))}"
        for word in words
        if reproduced.of(word)
    ]
    first = f"{'; '.join(parts)}."
    if not reproduced.fleet.rows:
        return first
    return f"{first} Together: {hosts_story.headline(reproduced.fleet)}"


def _unmeasured(reproduced: FleetReproduced) -> tuple[Section, ...]:
    return section(
        "Not measured",
        [
            f"{inert(host.host)}: {inert(host.why)}"
            for host in reproduced.hosts
            if host.why
        ],
    )


def _tables(reproduced: FleetReproduced) -> tuple[Table, ...]:
    """Return the hosts below each change of the original."""
    groups: dict[str, list[Row]] = {}
    for host in reproduced.hosts:
        for matched in host.matched:
            row = reproduction.row_of(matched, reproduced.there.baseline)
            groups.setdefault(row.label, []).append(
                Row(
                    name=inert(host.host),
                    cells=row.cells,
                    note=row.note,
                    group=row.label,
                )
            )
    rows = tuple(chain.from_iterable(groups.values()))
    if not rows:
        return ()
    return (
        Table(
            title="Each host against the original",
            first="host",
            heads=("there", "here", "reproduced?"),
            rows=rows,
        ),
    )


def _one_sided(reproduced: FleetReproduced) -> Iterator[str]:
    for host in reproduced.hosts:
        for where, changes in (
            ("in the original", host.only_there),
            ("here", host.only_here),
        ):
            if changes:
                yield f"{inert(host.host)}, only {where}: {reproduction.named(changes)}"


def _notes(reproduced: FleetReproduced) -> Iterator[str]:
    for host in reproduced.hosts:
        if host.notes:
            yield f"{inert(host.host)}: {inert('; '.join(host.notes))}"


def _with_method(part: Section, reproduced: FleetReproduced) -> Section:
    """The section on the method also says how hosts are compared with the original."""
    if part.title != METHOD:
        return part
    every = chain.from_iterable(host.matched for host in reproduced.hosts)
    asked = sum(matched.found.asked for matched in every)
    return Section(METHOD, (Item(reproduction.method(asked)), *part.items))
