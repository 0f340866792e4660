"""Machines keep the name under which a history saw them first, whatever they are called later."""

from __future__ import annotations

import time

import msgspec

from iodelta.history.log import Log, Named
from iodelta.history.points import Night


def named(night: Night, log: Log, *, write: bool = False) -> Night:
    """Return the night under the machine's name in this history. With ``write`` a machine that was never seen is noted."""
    if not night.identity:
        return night
    names = log.machines()
    if night.identity not in names and write:
        log.append(Named(time.time(), night.identity, night.machine))
        names = log.machines()
    name = names.get(night.identity, night.machine)
    if name == night.machine:
        return night
    replace = msgspec.structs.replace
    points = tuple(
        replace(point, key=replace(point.key, machine=name)) for point in night.points
    )
    return replace(night, machine=name, points=points)
