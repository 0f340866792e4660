"""Somebody's experiment on many hosts: what each of them makes of it, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from iodelta.lab.account import OVER
from iodelta.lab.folder import Folder
from iodelta.study.fleet import FleetAccount, fleet_account
from iodelta.study.fleet_host import FleetMember, Left
from iodelta.study.reproduction import (
    FILE,
    Matched,
    Origin,
    Reproduced,
    Side,
    own_side,
    side_by_side,
)

SCHEMA = "iodelta.fleet-reproduction/1"

HostReproduction = Literal[
    "reproduced", "not reproduced", "inconclusive", "not measured"
]

WORDS: dict[int, HostReproduction] = {
    0: "reproduced",
    1: "not reproduced",
    3: "inconclusive",
}
"""The exit code of a reproduction on one host -> the word of that host."""


class ReproducedHost(msgspec.Struct, frozen=True):
    """What one host makes of the experiment."""

    host: str
    word: HostReproduction
    why: str
    """Why it does not count, where it was not measured to the end."""
    matched: tuple[Matched, ...] = ()
    """Changes that both sides have."""
    only_there: tuple[str, ...] = ()
    """Changes that only the original has."""
    only_here: tuple[str, ...] = ()
    """Changes that only this host has."""
    notes: tuple[str, ...] = ()
    """What was mapped, and what was left out."""


class FleetReproduced(msgspec.Struct, frozen=True):
    """Everything that ``iodelta reproduce --hosts`` has to say."""

    there: Side
    """The original."""
    margin: float
    """The relative change that matters."""
    hosts: tuple[ReproducedHost, ...]
    """Every chosen host."""
    fleet: FleetAccount
    """What the hosts say together, whatever the original says."""
    again: tuple[str, ...] = ()
    """Commands that do it again."""
    schema: str = SCHEMA

    def of(self, word: HostReproduction) -> tuple[str, ...]:
        """Return the hosts with this word."""
        return tuple(host.host for host in self.hosts if host.word == word)

    @property
    def exit_code(self) -> int:
        """1 not reproduced on some host, 4 some host could not be measured to the end, 3 inconclusive on some, 0
        reproduced on all."""
        codes: dict[HostReproduction, int] = {
            "not reproduced": 1,
            "not measured": 4,
            "inconclusive": 3,
        }
        return next((code for word, code in codes.items() if self.of(word)), 0)


def fleet_reproduced(
    there: Side,
    folders: Mapping[str, Folder],
    left: Mapping[str, Left],
    again: Sequence[str],
) -> FleetReproduced:
    """Return what hosts by name make of ``there``; ``left`` is what their fleet says of them. Raises RequestError."""
    fleet = fleet_account(folders, again, left)
    hosts = tuple(
        _host(there, fleet.margin, member, folders.get(member.name))
        for member in fleet.hosts
    )
    return FleetReproduced(
        there=there, margin=fleet.margin, hosts=hosts, fleet=fleet, again=tuple(again)
    )


def _host(
    there: Side, margin: float, member: FleetMember, folder: Folder | None
) -> ReproducedHost:
    """Return a host that is drained, or has not come to its end, has no word: its one look is at the end."""
    if folder is None or member.drained:
        return ReproducedHost(member.name, "not measured", member.drained)
    if member.state not in OVER:
        why = f"its experiment has not ended: {member.left or member.state}"
        return ReproducedHost(member.name, "not measured", why)
    notes = folder.read_struct(FILE, Origin).notes if folder.has(FILE) else ()
    reproduced: Reproduced = side_by_side(there, own_side(folder), margin, notes)
    word = WORDS.get(reproduced.exit_code, "not measured")
    why = (
        ""
        if reproduced.matched
        else "it has no measurement in common with the original"
    )
    return ReproducedHost(
        host=member.name,
        word=word,
        why=why,
        matched=reproduced.matched,
        only_there=reproduced.only_there,
        only_here=reproduced.only_here,
        notes=notes,
    )
