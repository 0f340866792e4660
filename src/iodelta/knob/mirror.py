"""The user-space mirror in fio's place, with one of its read policies: words in front of the load's command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from iodelta.errors import RequestError
from iodelta.experiment.values import split_command
from iodelta.jobfile import canonical
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


KNOWN = frozenset(
    "output output-format eta readonly name time_based randrepeat allrandrepeat group_reporting lat_percentiles "
    "clat_percentiles log_avg_msec per_job_logs allow_file_create ioengine norandommap thread invalidate "
    "filename rw bs iodepth numjobs direct rwmixread rwmixwrite size runtime ramp_time randseed write_iops_log".split()
)
"""fio options that the mirror supports, or that request what it does anyway."""
MODES = {
    "read": (False, 100),
    "randread": (True, 100),
    "write": (False, 0),
    "randwrite": (True, 0),
    "rw": (False, 50),
    "readwrite": (False, 50),
    "randrw": (True, 50),
}
"""Values of ``rw``: whether offsets are random, and the percentage of reads unless it is given."""


def options_of(words: Sequence[str]) -> dict[str, str]:
    """The options among fio's words, by their first names; a flag is 1."""
    pairs = (
        word.removeprefix("--").partition("=")
        for word in words
        if word.startswith("--")
    )
    return {canonical(name): value if equals else "1" for name, equals, value in pairs}


def check_options(options: Mapping[str, str]) -> None:
    """Raises RequestError for options of fio that the mirror cannot follow. Names are fio's first ones."""
    unknown = sorted(options.keys() - KNOWN)
    paced = [name for name in unknown if name.startswith(("rate", "thinktime"))]
    if paced:
        raise RequestError(
            f"the mirror keeps iodepth x numjobs requests in flight, so it has no {', '.join(paced)}",
            place="mirror.read_policy",
            remedy="set the load by iodepth and numjobs; `iodelta policy simulate --rate` predicts an open load",
        )
    if unknown:
        raise RequestError(
            f"the mirror cannot do fio's {', '.join(unknown)}",
            place="mirror.read_policy",
            remedy="it knows rw, bs, iodepth, numjobs, direct, rwmixread and size",
        )
    mode = options.get("rw", "read")
    if mode not in MODES:
        remedy = f"one of {', '.join(MODES)}"
        raise RequestError(
            f"the mirror cannot do rw={mode}", place="mirror.read_policy", remedy=remedy
        )


def mirrored(knobs: Mapping[str, str]) -> bool:
    """Whether these settings spread the load over members of which the target is only one."""
    return any(name in knobs for name in MirrorPolicy.names)


def _without_sample(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings of members without the note that not every byte of them was compared."""
    return tuple(finding for finding in findings if finding.rule != "mirror.sampled")


def members_of(knobs: Mapping[str, str]) -> tuple[str, ...]:
    """The members that these settings spread the load over."""
    values = (knobs[name] for name in MirrorPolicy.names if name in knobs)
    members = chain.from_iterable(
        split_command(value, MirrorPolicy.names[0])[1:] for value in values
    )
    return tuple(map(os.path.abspath, members))


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
        return "without a mirror, fio reads the target"

    def save(self, values: Sequence[str] = ()) -> Saved:
        return self.record(())

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        policy, *members = split_command(value, self.name)
        try:
            native().check_policy(policy)
        except ValueError as error:
            raise RequestError(
                str(error), place=self.name, remedy="iodelta policy list shows them"
            ) from error
        targets = [resolve(self.machine, member) for member in members]
        among = self.target.real_path in [target.real_path for target in targets]
        # As a file of a btrfs and members beside it on the same disks: variants of the kernel's policies and of these.
        disks = set(
            chain.from_iterable(
                member.disks for member in targets if member.kind == "block"
            )
        )
        near = bool(self.target.disks) and {*self.target.disks} <= disks
        if self.target.kind != "directory" and not among and not near:
            needed = (
                f"{self.target.path} must be among the members, or lie on their disks"
            )
            raise refuse(self.name, value, f"{self.allowed()}; {needed}")

    def findings(
        self, values: Sequence[str], size: int | None = None
    ) -> dict[str, tuple[Finding, ...]]:
        members = {
            value: tuple(split_command(value, self.name)[1:]) for value in values
        }
        # Once for all policies.
        by_member = {
            member: inspect(member, size=size)[1]
            for member in dict.fromkeys(members.values())
        }
        return {
            value: _without_sample(by_member[own]) for value, own in members.items()
        }

    def apply(self, value: str) -> None:
        """Nothing is set on the machine: the launcher reads as this policy says."""

    def verify(self, value: str) -> None:
        """The mirror fails if it cannot do what is set."""

    def launcher(self, value: str) -> tuple[str, ...]:
        policy, *members = split_command(value, self.name)
        # The load runs in a directory of its own.
        return (
            sys.executable,
            "-m",
            PROGRAM,
            policy,
            *map(os.path.abspath, members),
            "--",
        )

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> NoScript:
        return NoScript("the mirror is iodelta's own, and reads in fio's place")

    @classmethod
    def undo_lines(cls, saved: Saved) -> Iterator[Line]:
        yield from ()

    @classmethod
    def restore(cls, machine: Machine, saved: Saved) -> str:
        return "nothing was set, so there is nothing to restore"
