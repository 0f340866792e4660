"""Nights of a history, without an experiment behind them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np

from iodelta.experiment import Subject
from iodelta.history.points import Key, Night, Point
from iodelta.history.store import Store, url_of

NOBODY = 65534
"""Number of a user who owns nothing."""


def key(metric: str = "read.iops", **other: str) -> Key:
    """Of random reads on one machine."""
    options = (("tool", "fio"), ("bs", "4k"), ("rw", "randread"))
    return Key("stor3", options, (), (), other.get("role", ""), metric, "block", other.get("twin", ""))


def night(number: int, *, r: float = 0.0, epoch: str = "e", grown: bool = False, folder: str = "") -> Night:
    """The night of that number; ``r`` what the build cost against the reference, with an error of 0.4 %."""
    noise = 0.004 * np.random.default_rng(number).standard_normal(2)
    point = Point(key(), "randread 4k", "new", "higher", "IOPS", 11.0 - r + noise[0], 0.01, 12, 0.0)
    both = Point(key(), "randread 4k", "new", "higher", "IOPS", point.y, 0.01, 12, 0.0, r + noise[1], 0.004)
    return Night(
        identifier=f"experiment-{number}",
        sha=f"sha-{number}{'-grown' if grown else ''}",
        t=1.7e9 + 86400.0 * number,
        machine="stor3",
        epoch=epoch,
        facts={"fio.version": "fio-3.33"},
        subject=Subject("linux", f"{number:040x}", f"v6.{number}"),
        folder=folder or f"/runs/{number}",
        state="complete",
        points=(both,),
    )


def stepping(r: float, *, at: int = 20, count: int = 40) -> list[Night]:
    """So many nights, of builds that cost ``r`` more from one of them on."""
    return [night(number, r=r * (number >= at)) for number in range(count)]


def having(one: Night, **values: object) -> Night:
    """The same night with another point."""
    return msgspec.structs.replace(one, points=(msgspec.structs.replace(one.points[0], **values),))


def on(machine: str, one: Night, **others: object) -> Night:
    """The same night on that machine."""
    moved = having(one, key=msgspec.structs.replace(one.points[0].key, machine=machine))
    return msgspec.structs.replace(moved, machine=machine, **others)


def opened(place: Path) -> Store:
    """The history in that directory, which may have to be made."""
    place.mkdir(exist_ok=True)
    store = Store(url_of(place / "history.db"))
    store.prepare()
    return store


def filled(place: Path, nights: Iterable[Night]) -> None:
    """Put these nights into the history in that directory."""
    store = opened(place)
    store.add_all(list(nights))
    store.close()
