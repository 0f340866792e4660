"""A host of a fleet, as an inventory describes it."""

from __future__ import annotations

import re

import msgspec

from iodelta.errors import RequestError
from iodelta.experiment.model import TARGET_CLASS

WINDOW = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")

DAY = 24 * 60
"""Minutes."""


class FleetHost(msgspec.Struct, frozen=True):
    """The address of a host, its targets, and when it may be measured."""

    name: str
    ssh: str
    """The destination as given to ``ssh``."""
    tags: tuple[str, ...] = ()
    targets: dict[str, str] = {}
    """Class of target -> its path on this host."""
    window: str = ""
    """When it may be measured, as in ``22:00-06:00``, by the clock of this machine; empty: always."""

    @property
    def machine(self) -> str:
        """Its name as a machine."""
        return f"ssh:{self.ssh}"

    def target(self, path: str) -> str:
        """Return the path there of an experiment's target. Raises RequestError for a class that the host does not have."""
        if not path.startswith(TARGET_CLASS):
            return path
        name = path.removeprefix(TARGET_CLASS)
        if name not in self.targets:
            known = ", ".join(self.targets) or "none"
            raise RequestError(
                f"the inventory has no target of class {name!r} for this host (it has: {known})",
                place=self.name,
                remedy=f'add targets = {{ {name} = "/dev/..." }} to [host.{self.name}], or leave the host out',
            )
        return self.targets[name]

    def is_open(self, minute: int) -> bool:
        """Return whether it may be measured at that minute of the day."""
        if not self.window:
            return True
        begin, end = minutes(self.window)
        return (minute - begin) % DAY < (end - begin) % DAY


def minutes(window: str) -> tuple[int, int]:
    """Minutes of the day at which a window opens and closes. Raises ValueError."""
    times = WINDOW.fullmatch(window)
    if not times:
        raise ValueError(window)
    first_hour, first_minute, last_hour, last_minute = map(int, times.groups())
    begin, end = 60 * first_hour + first_minute, 60 * last_hour + last_minute
    if begin == end:
        raise ValueError(window)
    return begin, end
