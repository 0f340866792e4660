"""The story of many hosts: what each says, what they say together, what differs; and a reproduction on many hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from iodelta.figures import share, two_digits
from iodelta.plural import plural
from iodelta.report.stories import fleet as hosts_story
from iodelta.report.stories import reproduction
from iodelta.report.stories.sources import system_of_sides
from iodelta.report.stories.story import (
    PLAIN,
    Cell,
    Detail,
    Item,
    Row,
    Section,
    Story,
    Table,
    section,
)
from iodelta.stats.agreement import FEWEST
from iodelta.study.confounders import said
from iodelta.study.fleet import (
    Cheaper,
    FleetAccount,
    FleetGroup,
    FleetRow,
    Together,
    counted,
)
from iodelta.study.fleet_host import FleetMember
from iodelta.study.fleet_reproduction import FleetReproduced, HostReproduction
from iodelta.study.words import (
    between,
    duration,
    inert,
    interval,
    measured,
    metric_name,
    percent,
)
from iodelta.verdict import Change
from iodelta.verdict.agreement import FOR_ALL

MOST = 12
"""Comparisons of which groups and differences are shown before the rest is counted."""


EACH = "Each host"
"""The table of what each host says."""


def of_fleet(account: FleetAccount, detail: Detail = PLAIN) -> Story:
    """Return what hosts of one plan say, each and together."""
    return Story(
        question=inert(account.question),
        answer=headline(account),
        lead=section(
            "Not averaged",
            [f"{inert(host.name)}: {inert(host.drained)}" for host in account.drained],
        ),
        tables=tuple(_tables(account)),
        sections=(
            *section("What would settle it", _settling(account)),
            *section("Groups", _groups(account), rest=True),
            *_differences(account),
            *section("Hosts", map(_member, account.hosts), rest=True),
            *section("Notes", map(inert, account.notes)),
            *section("Method", _method(account), rest=True),
            *system_of_sides(_systems(account)),
            *section("To do it again", map(inert, account.again), commands=True),
        ),
        details=" ".join((*map(inert, account.again[-1:]), "--verbose")),
    )


def _systems(account: FleetAccount) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return names of the hosts that are alike, and what they are."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for host in account.hosts:
        if host.system:
            alike.setdefault(host.system, []).append(host.name)
    return {", ".join(names): system for system, names in alike.items()}


def headline(account: FleetAccount) -> str:
    """Return the answer in a sentence for each variant, no stronger than the rows below it."""
    variants = dict.fromkeys(row.variant for row in account.rows)
    sentences = [_sentence(account, variant) for variant in variants]
    if account.alarms:
        sentences.insert(
            0,
            "The hosts call the placebo (the baseline against itself) a change, so do not trust the other verdicts.",
        )
    if account.drained:
        sentences.append(
            f"{len(account.drained)} of {plural(len(account.hosts), 'host')} not averaged."
        )
    return " ".join(sentences) or "No host could be read."


def _sentence(account: FleetAccount, variant: str) -> str:
    rows = [row for row in account.rows if row.variant == variant]
    against = f"{inert(variant)} against {inert(rows[0].baseline)}"
    words = counted(rows)
    alone = len(rows) - sum(words.values())
    parts = [f"{word}{_share(count, len(rows))}" for word, count in words.items()]
    if len(rows) == 1 and rows[0].word == "depends on the machine":
        parts = [f"{parts[0]} ({_sides(rows[0])})"]
    if alone:
        parts.append(
            f"no joint verdict{_share(alone, len(rows))} (fewer than {FEWEST} hosts could be averaged)"
        )
    worse = dict.fromkeys(
        chain.from_iterable(
            row.surely_worse
            for row in rows
            if not (row.word is not None and row.word.startswith("regression"))
        )
    )
    on = f"; a regression for sure on {', '.join(map(inert, worse))}" if worse else ""
    return f"{against}: {', '.join(parts)}{on}."


def _share(count: int, total: int) -> str:
    if total == 1:
        return ""
    return f" in {count} of {total} comparisons"


def _tables(account: FleetAccount) -> Iterator[Table]:
    joint = tuple(
        _joint(row, row.together) for row in account.rows if row.together is not None
    )
    if joint:
        yield Table(
            title="All hosts together",
            first="metric",
            heads=("hosts", "mean", "next host", "together"),
            rows=joint,
        )
    each = tuple(chain.from_iterable(_hosts(account, row) for row in account.rows))
    if each:
        yield Table(
            title=EACH,
            first="host",
            heads=("blocks", "change", "interval", "verdict"),
            rows=each,
            rest=bool(joint),
        )


def _joint(row: FleetRow, together: Together) -> Row:
    name = metric_name(row.metric, with_kind=False)
    texts = (
        str(len(row.averaged)),
        _change(together.mean),
        interval(together.next.low, together.next.high),
        row.word or "-",
    )
    group = f"{inert(row.cell)}: {inert(row.variant)} against {inert(row.baseline)}"
    return Row(
        name=inert(name),
        cells=tuple(map(Cell, texts)),
        note=_note(row, together),
        group=group,
    )


def _note(row: FleetRow, together: Together) -> str:
    parts = [inert(row.says)] if row.says else []
    if row.word not in (
        "regression everywhere",
        "improvement everywhere",
        "equivalent everywhere",
    ):
        parts.append(_sides(row))
    if row.word is not None and row.word.endswith("these hosts"):
        parts.append(f"a word about all hosts like these takes {FOR_ALL} of them")
    if row.basis == "total":
        parts.append("the numbers are those of all work together")
    if row.apart:
        parts.append(
            f"{inert(row.apart[0])} and {inert(row.apart[1])} differ most surely by more than the margin"
        )
    if row.surely_worse:
        parts.append(
            f"a regression for sure on {', '.join(map(inert, row.surely_worse))}"
        )
    low = two_digits(100 * together.spread_low)
    high = two_digits(100 * together.spread_high)
    parts.append(f"spread between hosts {share(together.spread)} ({low} .. {high})")
    parts.append(f"I squared {100 * together.between:.0f} %")
    return "; ".join(parts)


SIDES = {"regression": "slower", "improvement": "faster", "equivalent": "the same"}


def _sides(row: FleetRow) -> str:
    """``4 of 5 slower, stor3 faster``: the hosts by their own words, the largest side first; small ones by name."""
    sides: dict[str, list[str]] = {}
    for host in row.averaged:
        sides.setdefault(SIDES.get(host.word, "undecided"), []).append(inert(host.host))
    ordered = sorted(sides.items(), key=lambda side: -len(side[1]))
    said = []
    for number, (side, names) in enumerate(ordered):
        few = number and len(names) <= 3
        said.append(
            f"{', '.join(names)} {side}"
            if few
            else f"{len(names)} of {len(row.averaged)} {side}"
        )
    return ", ".join(said)


def _hosts(account: FleetAccount, row: FleetRow) -> Iterator[Row]:
    drained = {host.name: host.drained for host in account.hosts}
    name = metric_name(row.metric, with_kind=False)
    group = f"{inert(row.cell)}: {inert(name)} of {inert(row.variant)} against {inert(row.baseline)}"
    for host in row.hosts:
        size, bounds = "-", "-"
        if host.change is not None:
            low, high = host.change.low, host.change.high
            size = measured(host.change.value, low, high)
            bounds = interval(low, high)
        cells = (str(host.blocks), size, bounds, host.word or "-")
        note = ""
        if not host.averaged:
            why = drained[host.host] or host.obstacle or host.phrase
            note = f"not averaged: {inert(why)}"
        yield Row(
            name=inert(host.host), cells=tuple(map(Cell, cells)), note=note, group=group
        )


def _change(change: Change) -> str:
    """``-2.1 % (-2.9 .. -1.3)``."""
    if change.low is None or change.high is None:
        return percent(change.value)
    return f"{measured(change.value, change.low, change.high)} ({between(change.low, change.high)})"


def _named(row: FleetRow) -> str:
    return f"{inert(row.cell)}, {inert(row.variant)}, {inert(metric_name(row.metric, with_kind=False))}"


def _settling(account: FleetAccount) -> Iterator[str]:
    """For open comparisons: more hosts or more blocks, and which is cheaper."""
    open_ = [row for row in account.rows if row.settles is not None]
    for row in open_[:MOST]:
        if row.settles is not None:
            yield f"{_named(row)}: {cheaper(row.settles, len(row.averaged))}"
    if len(open_) > MOST:
        yield f"and {len(open_) - MOST} more of them (--format json lists all)"


def cheaper(price: Cheaper, hosts: int) -> str:
    """Return what would settle it, with its machine time; of two ways also the cheaper one."""
    ways = []
    if price.hosts is not None and price.hosts_hours is not None:
        ways.append(
            f"{plural(price.hosts - hosts, 'more host')} ({duration(3600 * price.hosts_hours)} of machine time)"
        )
    if price.blocks is not None and price.blocks_hours is not None:
        ways.append(
            f"{plural(price.blocks, 'block')} in all on each of today's hosts "
            f"({duration(3600 * price.blocks_hours)} of machine time)"
        )
    if not ways:
        return "Neither more hosts nor more blocks would settle it."
    enough = f"{' or '.join(ways)} would probably settle it"
    if len(ways) > 1:
        return f"{enough}; {price.choice} are cheaper."
    if price.choice == "hosts":
        return f"{enough}. More blocks would not, because the hosts themselves may differ too much."
    return f"{enough}. More hosts would not."


def _groups(account: FleetAccount) -> Iterator[Item]:
    """Yield the hosts by what they are, where they differ and so do their changes."""
    telling = [
        row
        for row in account.rows
        if row.groups and row.word is not None and not row.word.startswith("equivalent")
    ]
    for row in telling[:MOST]:
        yield Item(_named(row), tuple(map(_group, row.groups)))
    if len(telling) > MOST:
        yield Item(
            f"and {plural(len(telling) - MOST, 'more comparison')} (--format json lists all)"
        )


def _group(group: FleetGroup) -> str:
    names = ", ".join(map(inert, group.hosts))
    return f"{group.by} {inert(group.value)}: {percent(group.change)} on average of {names}"


def _differences(account: FleetAccount) -> tuple[Section, ...]:
    """Return what differs between the hosts that disagree, the likely explanations only; each pair once."""
    pairs: dict[tuple[str, str], FleetRow] = {}
    for row in account.rows:
        if row.apart is not None:
            pairs.setdefault(row.apart, row)
    items: list[Item] = []
    for (worse, better), row in list(pairs.items())[:MOST]:
        items.append(Item(f"{inert(worse)} | {inert(better)}"))
        likely = [difference for difference in row.differing if difference.likely]
        items += [
            Item(f"{group}: {why}", tuple(lines)) for group, why, lines in said(likely)
        ]
        if not likely:
            items.append(
                Item("no likely confounder is known to differ between these two")
            )
    title = "What differs between hosts that disagree, the likely first"
    return section(title, items, rest=True)


def _member(member: FleetMember) -> str:
    facts = (
        plural(member.blocks, "block"),
        duration(member.seconds),
        member.state,
        f"CPU {inert(member.cpu)}",
        f"disk {inert(member.disk)}",
        f"kernel {inert(member.kernel)}",
    )
    return f"{inert(member.name)}: {', '.join(facts)}"


def _method(account: FleetAccount) -> Sequence[str]:
    return (
        "Each host contributes one value to a comparison, however many blocks it made. Everywhere: the interval of the next host "
        f"like these lies on one side of no change, or inside the margin of {100 * account.margin:g} %, and every host knows its "
        "own change to within the margin. On average: the interval of the mean over hosts does, and so says a test that "
        f"turns the hosts' signs. Both take {FOR_ALL} hosts: if one model in five differs, fewer may well hold none of it. "
        "On these hosts: their own mean, with the errors of their blocks; it says nothing of others. Depends on the machine: two hosts differ by more than the margin, or one "
        "is sure that it lacks the change of all others.",
        f"Joint intervals are at {100 * account.level:.4g} %, corrected for {account.statements} joint statements. Every "
        "possible spread (tau) counts by how well it fits the hosts, so few hosts give wide intervals. A host's own interval "
        "is that of its own report. I squared is the share of the variance that lies between hosts.",
    )


METHOD = "Method"


def of_fleet_reproduction(reproduced: FleetReproduced, detail: Detail = PLAIN) -> Story:
    """Somebody's experiment on many hosts."""
    together = hosts_story.of_fleet(reproduced.fleet, detail)
    own = tuple(table for table in together.tables if table.title != hosts_story.EACH)
    return Story(
        question=inert(reproduced.there.question),
        answer=reproduced_headline(reproduced),
        lead=(
            *section("The original", (reproduction.side_line(reproduced.there),)),
            *(
                section(
                    "Not measured",
                    [
                        f"{inert(host.host)}: {inert(host.why)}"
                        for host in reproduced.hosts
                        if host.why
                    ],
                )
            ),
        ),
        tables=(*_reproduced_tables(reproduced), *own),
        sections=(
            *section("Measured on one side only", _one_sided(reproduced)),
            *section("Different from the original", _notes(reproduced)),
            *(_with_method(part, reproduced) for part in together.sections),
        ),
    )


def reproduced_headline(reproduced: FleetReproduced) -> str:
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


def _reproduced_tables(reproduced: FleetReproduced) -> tuple[Table, ...]:
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
