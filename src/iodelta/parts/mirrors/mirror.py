"""A real mirror in user space: real reads of real members, each sent where a read policy says.

The members hold the same bytes. They are opened read-only, unless writes are asked for and each member may be
overwritten; a write goes to all of them. What is wrong with a member is a finding, and a member that errs, stalls or
vanishes is passed over while another answers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import resource
from collections.abc import Iterator, Sequence

import msgspec

from iodelta.decoding import converted
from iodelta.errors import MeasureError, RequestError
from iodelta.lab.guard import check_write
from iodelta.machine import LocalMachine, Machine
from iodelta.parts.mirrors.catalogue import check_policy
from iodelta.parts.mirrors.model import Traits, Workload, pids_in_a_row
from iodelta.parts.mirrors.simulate import Tally
from iodelta.parts.mirrors.starvation import cpu_times, starvation
from iodelta.probe.members import targets_of
from iodelta.probe.native import native
from iodelta.probe.sysfs import attribute, sysfs_name
from iodelta.probe.topology import Target
from iodelta.trial import Finding, Severity

STALL = 10.0
"""Seconds after which a member that has not answered is passed over."""

FALLS = frozenset(("no member", "unreadable", "stuck"))


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the mirror; sizes in bytes, times in seconds. ``size`` None: all of the smallest member."""

    members: tuple[str, ...]
    policy: str
    random: bool = True
    length: int = 4096
    iodepth: int = 1
    jobs: int = 1
    read_percent: int = 100
    size: int | None = None
    seed: int = 1
    ramp: float = 0.2
    seconds: float = 5.0
    direct: bool = True
    stall: float = STALL
    trace: float = 0.0


class MemberRun(msgspec.Struct, frozen=True):
    """What one member did in the measured time; ``wait`` in ns, ``age``, ``ignored``, ``checkpoints`` as in read_stats.

    ``first_error`` is an errno, 0 for a read that came back short. ``lost`` I/Os had not come back in the end.
    """

    path: str
    direct: bool
    reads: int
    """Reads that it served."""
    writes: int
    """Writes that it completed."""
    read_bytes: int
    """Bytes read."""
    wait: int
    """Latency of its reads, summed, ns."""
    errors: int
    """I/Os that failed."""
    first_error: int | None
    """errno of the first that failed, 0 for a short read; None when none did."""
    dropped: bool
    """Whether it was used no more."""
    stalls: int
    """How often it did not answer in time."""
    lost: int
    """I/Os that had not come back in the end."""
    age: int
    """Decisions since it was last taken; below 0 while it is probed again."""
    ignored: int
    """Decisions that passed it over, less those that took it."""
    checkpoints: int
    """How often its mean latency was begun anew."""

    @property
    def mean(self) -> float:
        """Mean read latency in ns; 0 without reads."""
        if not self.reads:
            return 0.0
        return self.wait / self.reads


class MirrorRun(msgspec.Struct, frozen=True):
    """What a run measured. ``per_second``: reads and writes of each whole second; CPU in percent of one."""

    read: Tally
    write: Tally
    seconds: float
    ended: str
    retried: int
    unreadable: int
    per_second: tuple[tuple[int, int], ...]
    trace: tuple[tuple[int, ...], ...]
    registered: bool
    members: tuple[MemberRun, ...]
    pids: tuple[int, ...] = ()
    """Of the jobs: their remainders decide what the pid policy does; consecutive, the first drawn from the seed."""
    usr_cpu: float = 0.0
    sys_cpu: float = 0.0
    context_switches: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def iops(self) -> float:
        if not self.seconds:
            return 0.0
        return (self.read.ios + self.write.ios) / self.seconds

    @property
    def usable(self) -> bool:
        """Return whether the numbers are about the whole mirror: no finding is hard."""
        return all(finding.severity != "hard" for finding in self.findings)


def run(
    request: Request, *, destroy: Sequence[str] = (), guarded: Sequence[str] = ()
) -> MirrorRun:
    """Run the mirror to its end. Raises RequestError, RefusedError when the guard refuses a write, MeasureError.

    Writes go to members that ``destroy`` names and to iodelta's own scratch files, regardless of the contents of the
    others; and to those in ``guarded``, real paths, for which the caller holds a permit. A signal ends it
    early, and the exception of its handler is raised here.
    """
    machine = LocalMachine()
    check_policy(request.policy)
    targets = targets_of(request.members, machine)
    pids = pids_of(request)
    core = native()
    with contextlib.ExitStack() as permits:
        if request.read_percent < 100:
            for target in targets:
                if target.real_path not in guarded:
                    permits.enter_context(
                        check_write(machine, target, destroy, request.size)
                    )
        before = resource.getrusage(resource.RUSAGE_SELF)
        cpu_before = cpu_times(machine)
        try:
            size = request.size or min(
                core.sizes([target.real_path for target in targets])
            )
            load = Workload(
                random=request.random,
                length=request.length,
                iodepth=request.iodepth,
                size=size,
                seed=request.seed,
                pids=pids,
                read_percent=request.read_percent,
            )
            answer = core.mirror(
                {
                    "members": [
                        {
                            "path": target.real_path,
                            "traits": msgspec.to_builtins(traits),
                        }
                        for target, traits in zip(
                            targets, traits_of(machine, targets), strict=True
                        )
                    ],
                    "policy": request.policy,
                    "workload": msgspec.to_builtins(load),
                    "direct": request.direct,
                    "ramp": request.ramp,
                    "seconds": request.seconds,
                    "stall": request.stall,
                    "trace": request.trace,
                }
            )
        except (ValueError, OverflowError) as error:
            raise RequestError(str(error), place="mirror") from error
        except OSError as error:
            raise MeasureError(str(error), place="mirror") from error
        cpu_after = cpu_times(machine)
        after = resource.getrusage(resource.RUSAGE_SELF)
    report = converted(answer, MirrorRun)
    whole = request.ramp + report.seconds or 1.0
    return msgspec.structs.replace(
        report,
        pids=pids,
        usr_cpu=100 * (after.ru_utime - before.ru_utime) / whole,
        sys_cpu=100 * (after.ru_stime - before.ru_stime) / whole,
        context_switches=after.ru_nvcsw
        + after.ru_nivcsw
        - before.ru_nvcsw
        - before.ru_nivcsw,
        findings=(*findings_of(report, request), *starvation(cpu_before, cpu_after)),
    )


def findings_of(report: MirrorRun, request: Request) -> tuple[Finding, ...]:
    """Return what makes this run less than it was asked to be."""
    findings: list[Finding] = []
    for member in report.members:
        findings += _of_member(member, request)
    first = report.members[0].path
    if report.ended in FALLS:
        reasons = {
            "no member": "no member was left that answers",
            "unreadable": f"{report.unreadable} reads failed on every member",
            "stuck": "stalled members hold all memory for requests",
        }
        text = f"the run ended after {report.seconds:.1f} s: {reasons[report.ended]}"
        findings.append(Finding("mirror.ended", "hard", first, text))
    elif report.unreadable:
        text = f"{report.unreadable} reads failed on every member"
        findings.append(Finding("mirror.unreadable", "hard", first, text))
    if not report.registered:
        text = "memory or files could not be registered with io_uring (RLIMIT_MEMLOCK?): each request costs more"
        findings.append(Finding("mirror.unregistered", "note", first, text))
    return tuple(findings)


def _of_member(member: MemberRun, request: Request) -> Iterator[Finding]:
    if request.direct and not member.direct:
        text = "its filesystem does not support O_DIRECT, so reads come from the page cache"
        remedy = "use a block device, ext4, xfs or btrfs"
        yield Finding("mirror.buffered", "warning", member.path, text, remedy)
    if member.errors:
        text = f"{member.errors} I/Os failed, the first with: {_named_error(member.first_error or 0)}"
        text += (
            "; it was used no more"
            if member.dropped
            else "; the reads were made elsewhere"
        )
        severity: Severity = "hard" if member.dropped else "warning"
        yield Finding(
            "mirror.errors",
            severity,
            member.path,
            text,
            "see the kernel's log for the device",
        )
    if member.stalls or member.lost:
        text = f"did not answer for {request.stall:g} s {member.stalls} times, and was passed over meanwhile"
        text += (
            f"; {member.lost} I/Os had not come back in the end" if member.lost else ""
        )
        yield Finding(
            "mirror.stalled",
            "hard",
            member.path,
            text,
            "a longer --stall waits for slow members",
        )


def _named_error(number: int) -> str:
    if not number:
        return "a short read"
    return f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"


def traits_of(machine: Machine, targets: Sequence[Target]) -> tuple[Traits, ...]:
    """Return what the kernel says of each member's disk; devids count from 1 in the order given."""
    traits = []
    for devid, target in enumerate(targets, start=1):
        queue = f"/sys/block/{sysfs_name(target.disk)}/queue" if target.disk else ""
        rotational = bool(queue) and attribute(machine, f"{queue}/rotational") == "1"
        optimal = attribute(machine, f"{queue}/optimal_io_size") if queue else None
        traits.append(
            Traits(
                devid,
                rotational,
                optimal_io=int(optimal) if optimal and optimal.isdecimal() else 0,
            )
        )
    return tuple(traits)


def pids_of(request: Request) -> tuple[int, ...]:
    """Return the pids of the jobs, for policies that look at them: in a row as fio's, the first drawn from the seed."""
    return pids_in_a_row(random.Random(request.seed), request.jobs)
