"""The lines of a fleet's journal: what happened to its hosts."""

from __future__ import annotations

from typing import Literal

import msgspec

from iodelta.fleet.host import FleetHost

State = Literal["waiting", "running", "done", "failed", "lost", "drained", "skipped"]
"""``failed``: could not be measured, for a reason that does not go away by itself. ``lost``: did not answer within the
patience. ``drained``: measured or begun, but does not count, because its environment differs from the one it began
with, or its placebo was called a change. ``skipped``: in use by somebody else, outside its window, or a second name of
another host."""


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """The question was fixed."""

    at: float
    identifier: str
    version: str
    files: dict[str, str]
    """Name -> SHA-256 of the experiment file, and of the fio job file that it names."""


class Joined(msgspec.Struct, frozen=True, tag="joined"):
    """A host is part of the fleet, or its inventory says something new about it."""

    at: float
    host: FleetHost


class Sight(msgspec.Struct, frozen=True):
    """What identifies a host and a device, as read from the host."""

    boot: str
    """The boot ID: two names with one boot ID are one host."""
    machine: str
    """``/etc/machine-id``."""
    devices: tuple[str, ...]
    """Kernel names of the physical devices below the target."""
    lasting: str = ""
    """World-wide ID or serial number of the device; empty where the kernel knows none that is its own."""
    ahead: float = 0.0
    """Seconds by which its clock is ahead of ours."""
    differs: tuple[str, ...] = ()
    """What has changed in its environment since its experiment began, a line each."""


class Seen(msgspec.Struct, frozen=True, tag="seen"):
    """A host was looked at before it was measured, or after."""

    at: float
    name: str
    sight: Sight


class Moved(msgspec.Struct, frozen=True, tag="moved", omit_defaults=True):
    """A host has another state."""

    at: float
    name: str
    state: State
    reason: str = ""
    remedy: str = ""
    rate: float | None = None
    """Of a host that is done: mean IOPS of the baseline, the geometric mean over cells."""


FleetEvent = Begun | Joined | Seen | Moved
