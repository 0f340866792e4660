"""The JSON documents that the commands about a fleet print."""

from __future__ import annotations

from typing import Literal

import msgspec

from iodelta.fleet.events import State


class HostStatus(msgspec.Struct, frozen=True):
    """One host of a fleet."""

    name: str
    machine: str
    """As in ``ssh:HOST``."""
    state: State
    reason: str
    """Why it is in that state; empty where the state says all."""
    remedy: str
    """What to do about it; empty where nothing is to be done."""
    trials: int
    """Finished so far."""
    folder: str
    """Its experiment folder; empty before there is one."""
    notes: tuple[str, ...] = ()
    """What a reader should know of its machine: rebooted, its clock moved, much slower than the others."""


class FleetStatusAnswer(msgspec.Struct, frozen=True):
    """``iodelta fleet status``, and the end of ``iodelta fleet run``."""

    folder: str
    question: str
    scheduled: bool
    """Whether an `iodelta fleet run` is at work on it now."""
    hosts: tuple[HostStatus, ...]
    """In the order of their names, or as they were chosen."""
    schema: str = "iodelta.fleet-status/1"

    @property
    def exit_code(self) -> int:
        """0 every host is done, 4 some could not be measured, 3 some are still to be measured."""
        states = {host.state for host in self.hosts}
        if states & {"failed", "lost", "drained"}:
            return 4
        return 0 if states <= {"done"} else 3


Step = Literal[
    "reach", "target", "fio", "knobs", "permits", "in use", "environment", "placebo"
]
"""What is checked of a host, in this order."""


class CheckedStep(msgspec.Struct, frozen=True):
    """One step of a check."""

    step: Step
    """What was looked at."""
    ok: bool
    """Whether nothing stands against a run."""
    said: str
    """What was found, or what is wrong."""
    remedy: str = ""
    """What to do about it; empty where nothing is to be done."""


class HostCheck(msgspec.Struct, frozen=True):
    """One host, as far as the check came: what follows a step that failed may be missing."""

    name: str
    machine: str
    """As in ``ssh:HOST``."""
    steps: tuple[CheckedStep, ...]
    """Those that were taken, in their order."""

    @property
    def ok(self) -> bool:
        """Return whether nothing stands against a run on it."""
        return all(step.ok for step in self.steps)


class FleetCheckAnswer(msgspec.Struct, frozen=True):
    """``iodelta fleet check``."""

    hosts: tuple[HostCheck, ...]
    """In the order in which they were chosen."""
    schema: str = "iodelta.fleet-check/1"

    @property
    def exit_code(self) -> int:
        """0 every host can run the experiment, 4 some cannot."""
        return 0 if all(host.ok for host in self.hosts) else 4


class FleetCancelAnswer(msgspec.Struct, frozen=True):
    """``iodelta fleet cancel``."""

    folder: str
    """The fleet's."""
    hosts: tuple[str, ...]
    """Those whose runs were asked to end; none where no `iodelta fleet run` is at work."""
    schema: str = "iodelta.fleet-cancel/1"


class FetchedHost(msgspec.Struct, frozen=True):
    """One host whose own folder was to be fetched."""

    name: str
    fetched: bool
    """Whether its folder is part of the fleet now."""
    said: str
    """From where, or why not."""


class FleetFetchAnswer(msgspec.Struct, frozen=True):
    """``iodelta fleet fetch``."""

    folder: str
    """The fleet's."""
    hosts: tuple[FetchedHost, ...]
    """In the order of their names."""
    schema: str = "iodelta.fleet-fetch/1"

    @property
    def exit_code(self) -> int:
        """0 every folder was fetched, 4 some were not."""
        return 0 if all(host.fetched for host in self.hosts) else 4
