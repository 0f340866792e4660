"""What every story says of its sources: findings, what was not read, what measured them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from iodelta.ingest import Refusal
from iodelta.plural import listed
from iodelta.report.stories.story import Item, Section, section
from iodelta.study.findings import grouped
from iodelta.study.words import inert
from iodelta.trial import Finding

REFUSALS = 10
"""Reasons that are given; the rest is counted."""

VERSIONS = 4
"""Versions of fio that are named."""

UNKNOWN = "The machine is not recorded in these results."

LINE = 70
"""Characters of the system that one line holds."""

FACTS = ("kernel", "fio", "target", "device", "CPU", "machine", "memory")
"""What a reader asks first about a system."""

ENDS = {"CPU": ": ", "device": ", "}
"""Where a fact may be cut that is too long for the line."""


def not_read(refusals: Sequence[Refusal], common: str = "") -> Iterator[str]:
    """Yield what could not be read, files with the same reason together; ``common`` is the folder that all lie in."""
    alike: dict[str, list[str]] = {}
    for refusal in refusals:
        line = f":{refusal.place.line}" if refusal.place.line else ""
        place = inert(refusal.place.file.removeprefix(common) + line)
        alike.setdefault(refusal.reason, []).append(place)
    reasons = list(alike.items())
    for reason, files in reasons[:REFUSALS]:
        yield f"{listed(files, 1)}: {inert(reason)}"
    if len(reasons) > REFUSALS:
        left = sum(len(files) for _, files in reasons[REFUSALS:])
        yield f"and {left} more not read; --format json lists them"


def system(
    recorded: Sequence[tuple[str, str]], otherwise: str = UNKNOWN
) -> tuple[Section, ...]:
    """Return the system that iodelta ``recorded``, one fact a line."""
    facts = [f"{name}: {value}" for name, value in recorded]
    return section("System", facts or (otherwise,), brief=brief(recorded))


def system_lines(lines: Iterable[str]) -> tuple[Section, ...]:
    """Return a system in lines of its own, joined where there is but one line."""
    known = tuple(lines)
    return section("System", known, brief="; ".join(known))


def foreign_system(versions: Iterable[str | None]) -> tuple[Section, ...]:
    """Return the system behind results that somebody gave: the fio that wrote them."""
    known = sorted(set(map(inert, filter(None, versions))))
    if not known:
        return system(())
    fio = ", ".join(known[:VERSIONS])
    if len(known) > VERSIONS:
        fio += " and others"
    return section(
        "System",
        (f"fio: {fio}", UNKNOWN),
        brief=f"fio {fio}; the machine is not recorded",
    )


def systems(
    recorded: Mapping[str, Sequence[tuple[str, str]]],
    versions: Iterable[str | None],
    *,
    alone: bool,
) -> tuple[Section, ...]:
    """Return the systems behind results: by path what iodelta ``recorded``, ``alone`` where nothing else was read; of
    what others measured the ``versions`` of fio."""
    if alone and len(recorded) == 1:
        return system(next(iter(recorded.values())))
    return system_of_sides(recorded) if recorded else foreign_system(versions)


def system_of_sides(
    sides: Mapping[str, Sequence[tuple[str, str]]],
) -> tuple[Section, ...]:
    """Return the systems of what was compared; what all have in common is said once on one line."""
    items = [Item(inert(side), _facts(facts)) for side, facts in sides.items()]
    alike = len(set(map(tuple, sides.values()))) == 1
    if alike:
        short = brief(next(iter(sides.values())))
    else:
        short = "; ".join(_brief_of_sides(sides))
    return section("System", items or (UNKNOWN,), brief=short)


def _brief_of_sides(
    sides: Mapping[str, Sequence[tuple[str, str]]],
) -> Iterator[str]:
    """As much of each system as its part of the line holds, behind the name of its side."""
    names = list(map(_short_side, sides))
    longest = max((len(name) + 2 for name in names), default=0)
    room = LINE // max(len(sides), 1) - longest
    for name, facts in zip(names, sides.values(), strict=True):
        line = brief(facts, room)
        if line:
            yield f"{inert(name)}: {line}"


def _short_side(side: str) -> str:
    """``a and 4 more`` of a list of names."""
    first, *others = side.split(", ")
    return f"{first} and {len(others)} more" if len(others) > 1 else side


def _facts(system: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{name}: {value}" for name, value in system) or (UNKNOWN,)


def findings(listed: Iterable[Finding], common: str = "") -> Iterator[str]:
    """Yield one sentence per rule and severity, hard ones first; ``common`` is the folder that all places lie in."""
    for finding, count in grouped(listed):
        times = f" ({count} times)" if count > 1 else ""
        remedy = f"; {inert(finding.remedy)}" if finding.remedy else ""
        text = f"{finding.severity}: {inert(finding.place.removeprefix(common))}: {inert(finding.explanation)}"
        yield f"{text}{times}{remedy} [{inert(finding.rule)}]"


def findings_or_none(known: Sequence[Finding], common: str = "") -> tuple[Section, ...]:
    """Return the section on findings, which says so where there are none."""
    return section("Findings", findings(known, common) if known else ("none",))


def brief(system: Sequence[tuple[str, str]], room: int = LINE) -> str:
    """As much of a system as fits one line, the facts that readers ask for first; empty where it is unknown."""
    line = ""
    left_out = set()
    for kind, (name, value) in product(FACTS, system):
        is_device = kind == "device" and name.startswith("device ")
        if kind in left_out or not (name == kind or is_device):
            continue
        texts = (value, value.partition(ENDS.get(kind, "\n"))[0], *[""] * is_device)
        lines = (f"{line}, {name} {text}".removeprefix(", ").rstrip() for text in texts)
        fitting = next((more for more in lines if len(more) <= room), None)
        if fitting is None:
            # A member is not named in the place of the device that was measured.
            left_out.add(kind)
        line = fitting or line
    return line
