"""The user-space mirror in fio's place, with one of its read policies: words in front of the load's command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from iodelta.errors import RequestError
from iodelta.experiment.values import split_command
from iodelta.knob.base import EMPTY, Knob, Saved, refuse
from iodelta.knob.shell import Line, NoScript
from iodelta.machine import LocalMachine, Machine
from iodelta.probe.members import inspect
from iodelta.probe.native import INSTALL, installed, native
from iodelta.probe.topology import resolve
from iodelta.trial import Finding

PROGRAM = "iodelta.policy.stand_in"

PERMITTED = "IODELTA_PERMITTED"
"""Environment variable of a trial: real paths of the members for which its session holds permits, as JSON."""


def mirrored(knobs: Mapping[str, str]) -> bool:
    """Whether these settings spread the load over members of which the target is only one."""
    return any(name in knobs for name in MirrorPolicy.names)


def members_of(knobs: Mapping[str, str]) -> tuple[str, ...]:
    """The members that these settings spread the load over."""
    values = (knobs[name] for name in MirrorPolicy.names if name in knobs)
    return tuple(os.path.abspath(path) for value in values for path in split_command(value, MirrorPolicy.names[0])[1:])


class MirrorPolicy(Knob):
    """``mirror.read_policy``: ``POLICY MEMBER MEMBER ...``, the target among the members, or on their disks.

    It never gives leave to overwrite: for a workload that writes ``--destroy`` names each member.
    """

    names = ("mirror.read_policy",)

    def available(self) -> str | None:
        if not isinstance(self.machine, LocalMachine):
            return "the mirror runs on this machine only"
        if not installed():
            return f"needs the native core ({INSTALL})"
        return None

    def allowed(self) -> str:
        return "POLICY MEMBER MEMBER ..., as in queue /dev/sda /dev/sdb; iodelta policy list shows the policies"

    def read(self) -> str:
        return "no mirror: fio reads the target"

    def save(self, values: Sequence[str] = ()) -> Saved:
        return self.record(())

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        policy, *members = split_command(value, self.name)
        try:
            native().check_policy(policy)
        except ValueError as error:
            raise RequestError(str(error), place=self.name, remedy="iodelta policy list shows them") from error
        found = [resolve(self.machine, member) for member in members]
        among = self.target.real_path in [one.real_path for one in found]
        # As a file of a btrfs and members beside it on the same disks: variants of the kernel's policies and of these.
        disks = {disk for one in found if one.kind == "block" for disk in one.disks}
        near = bool(self.target.disks) and {*self.target.disks} <= disks
        if self.target.kind != "directory" and not among and not near:
            needed = f"{self.target.path} must be among the members, or lie on their disks"
            raise refuse(self.name, value, f"{self.allowed()}; {needed}")

    def findings(self, values: Sequence[str], size: int | None = None) -> dict[str, tuple[Finding, ...]]:
        members = {value: tuple(split_command(value, self.name)[1:]) for value in values}
        found = {one: inspect(one, size=size)[1] for one in dict.fromkeys(members.values())}  # once for all policies
        odd = {one: tuple(each for each in found[one] if each.rule != "mirror.sampled") for one in found}
        return {value: odd[one] for value, one in members.items()}

    def apply(self, value: str) -> None:
        """Nothing is set on the machine: the launcher reads as this policy says."""

    def verify(self, value: str) -> None:
        """The mirror itself fails when it cannot do what it is told."""

    def launcher(self, value: str) -> tuple[str, ...]:
        policy, *members = split_command(value, self.name)
        # The load runs in a directory of its own.
        return (sys.executable, "-m", PROGRAM, policy, *map(os.path.abspath, members), "--")

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> NoScript:
        return NoScript("the mirror is iodelta's own, and reads in fio's place")

    @classmethod
    def undo_lines(cls, saved: Saved) -> Iterator[Line]:
        yield from ()

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        return "nothing was set: nothing to put back"
