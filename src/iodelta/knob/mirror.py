"""Run the user-space mirror instead of fio, with one of its read policies: words in front of the load's command."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from iodelta.errors import RequestError
from iodelta.experiment.model import MIRROR, mirrored
from iodelta.experiment.values import split_command
from iodelta.jobfile import canonical
from iodelta.knob.base import EMPTY, Transient, refuse
from iodelta.knob.shell import NoScript
from iodelta.machine import LocalMachine
from iodelta.probe.members import inspect
from iodelta.probe.native import INSTALL, installed, native
from iodelta.probe.topology import Target, resolve
from iodelta.trial import Finding

NAME = MIRROR

PROGRAM = "iodelta.parts.mirrors.stand_in"
"""Module that reads fio's command line and runs the mirror."""

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
    """Return the options among fio's words, by their first names; a flag is 1."""
    options: dict[str, str] = {}
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--"):
            options[canonical(name)] = value if equals else "1"
    return options


def check_options(options: Mapping[str, str]) -> None:
    """Raise RequestError for fio options that the mirror does not support. ``options`` has fio's first names."""
    unknown = sorted(options.keys() - KNOWN)
    paced = [name for name in unknown if name.startswith(("rate", "thinktime"))]
    if paced:
        raise RequestError(
            f"the mirror keeps iodepth x numjobs requests in flight, so it does not support {', '.join(paced)}",
            place=NAME,
            remedy="set the load by iodepth and numjobs; `iodelta policy simulate --rate` predicts an open load",
        )
    if unknown:
        raise RequestError(
            f"the mirror does not support fio's {', '.join(unknown)}",
            place=NAME,
            remedy="it supports rw, bs, iodepth, numjobs, direct, rwmixread and size",
        )
    mode = options.get("rw", "read")
    if mode not in MODES:
        remedy = f"one of {', '.join(MODES)}"
        raise RequestError(
            f"the mirror does not support rw={mode}", place=NAME, remedy=remedy
        )


def members_of(knobs: Mapping[str, str]) -> tuple[str, ...]:
    """Absolute paths of the members over which these settings spread the load; empty without a mirror."""
    if not mirrored(knobs):
        return ()
    _, *members = split_command(knobs[NAME], NAME)
    return tuple(map(os.path.abspath, members))


class MirrorPolicy(Transient):
    """``mirror.read_policy``: ``POLICY MEMBER MEMBER ...``. The target must be a member, or lie on the members' disks.

    It does not permit overwriting: for a workload that writes, ``--destroy`` must name each member.
    """

    names = (NAME,)
    nothing_to_restore = "nothing was set, so there is nothing to restore"

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

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        policy, *members = split_command(value, self.name)
        try:
            native().check_policy(policy)
        except ValueError as error:
            raise RequestError(
                str(error), place=self.name, remedy="iodelta policy list shows them"
            ) from error
        if not self._spreads_over(
            [resolve(self.machine, member) for member in members]
        ):
            needed = (
                f"{self.target.path} must be among the members, or lie on their disks"
            )
            raise refuse(self.name, value, f"{self.allowed()}; {needed}")

    def _spreads_over(self, members: Sequence[Target]) -> bool:
        """Return whether a mirror of these members does the I/O of the target."""
        if self.target.kind == "directory":
            return True
        if any(member.real_path == self.target.real_path for member in members):
            return True
        # A file on a btrfs whose disks are the members: variants compare the kernel's policies with the mirror's.
        member_disks: set[str] = set()
        for member in members:
            if member.kind == "block":
                member_disks.update(member.disks)
        return bool(self.target.disks) and member_disks.issuperset(self.target.disks)

    def findings(
        self, values: Sequence[str], size: int | None = None
    ) -> dict[str, tuple[Finding, ...]]:
        by_members: dict[tuple[str, ...], tuple[Finding, ...]] = {}
        by_value: dict[str, tuple[Finding, ...]] = {}
        for value in values:
            members = tuple(split_command(value, self.name)[1:])
            # Variants that differ in the policy alone share their members: read them once.
            if members not in by_members:
                by_members[members] = inspect(members, size=size)[1]
            findings = by_members[members]
            by_value[value] = tuple(
                finding for finding in findings if finding.rule != "mirror.sampled"
            )
        return by_value

    def apply(self, value: str) -> None:
        """Nothing is set on the machine: the mirror that the launcher starts reads by this policy."""

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
