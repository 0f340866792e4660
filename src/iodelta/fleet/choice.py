"""The hosts that an expression chooses: ``nvme,!stor3``, ``stor[1-3]*,&rack2``. The order of terms does not matter."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase

from iodelta.errors import RequestError
from iodelta.fleet.entry import ALL
from iodelta.fleet.host import FleetHost

_PLACE = "--hosts"


def chosen(hosts: Sequence[FleetHost], expression: str) -> tuple[FleetHost, ...]:
    """Return the hosts that match any plain term and every term with ``&``, but none with ``!``. A term is ``all``, a
    name, a pattern of names, or a tag.

    Raises RequestError for a term that names nothing, even after ``!``: a typo there would measure a host that was to
    be left out.
    """
    terms = [term.strip() for term in expression.split(",")]
    plain = [term for term in terms if term[:1] not in ("&", "!")]
    names: set[str] = set()
    for term in plain or [ALL]:
        names |= _named(hosts, term)
    for term in terms:
        if term.startswith("&"):
            names &= _named(hosts, term[1:])
        elif term.startswith("!"):
            names -= _named(hosts, term[1:])
    if not names:
        raise RequestError(
            f"{expression!r} leaves no host", place=_PLACE, remedy="leave fewer out"
        )
    return tuple(host for host in hosts if host.name in names)


def _named(hosts: Sequence[FleetHost], term: str) -> set[str]:
    if term == ALL:
        return {host.name for host in hosts}
    names = {
        host.name
        for host in hosts
        if term in (host.name, *host.tags) or fnmatchcase(host.name, term)
    }
    if names:
        return names
    known = {host.name for host in hosts}.union(*(host.tags for host in hosts))
    near = difflib.get_close_matches(term, sorted(known), 1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise RequestError(
        f"no host or tag is called {term!r}",
        place=_PLACE,
        remedy=f"{hint}give names, patterns such as 'stor*' or tags, separated by commas; !NAME leaves out, &TAG keeps",
    )
