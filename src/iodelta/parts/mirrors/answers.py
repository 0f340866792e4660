"""The JSON documents of ``iodelta policy``."""

from __future__ import annotations

import msgspec

from iodelta.parts.mirrors.calibrate import HeldOut
from iodelta.parts.mirrors.catalogue import PolicyInfo
from iodelta.parts.mirrors.explain import Array, Explanation
from iodelta.parts.mirrors.mirror import MemberRun, MirrorRun
from iodelta.trial import Finding


class PolicyListAnswer(msgspec.Struct, frozen=True):
    """Every read policy that can be simulated and run."""

    policies: tuple[PolicyInfo, ...]
    schema: str = "iodelta.policy-list/1"


class PolicyExplanation(msgspec.Struct, frozen=True):
    """What one policy will do, mechanism by mechanism."""

    policy: str
    explanations: tuple[Explanation, ...]
    """One per mechanism."""


class ExplainAnswer(msgspec.Struct, frozen=True):
    """What policies will do on an array, and what would confirm it."""

    array: Array
    policies: tuple[PolicyExplanation, ...]
    again: str = ""
    """The command that does it again."""
    schema: str = "iodelta.policy-explanation/1"


class Predicted(msgspec.Struct, frozen=True):
    """One policy at one depth. IOPS are the geometric mean over the worlds, with the smallest and the largest value."""

    policy: str
    iodepth: int
    """I/Os in flight of each job in the closed loop; 0 for an open load."""
    iops: float
    least: float
    """IOPS in the world with the fewest."""
    most: float
    """IOPS in the world with the most."""
    mean_ns: float
    """Mean latency over all worlds, reads and writes."""
    p99_ns: float
    """99th percentile of latency over all worlds, reads and writes."""
    shares: tuple[float, ...]
    """The part of all reads that each member served."""
    rate: float | None = None
    """Requests per second that arrive in an open load; null for a closed loop."""
    unfinished: int = 0
    """For an open load: the largest number of requests in a world that had arrived but not completed at its end."""
    overloaded: bool = False
    """Whether the members cannot keep up with the rate: latencies then depend on the length of the run."""


class SimulationAnswer(msgspec.Struct, frozen=True):
    """Predictions, and how far their members can be trusted."""

    predictions: tuple[Predicted, ...]
    """One per policy and depth."""
    seeds: tuple[int, ...]
    """One per simulated world."""
    closure: float | None
    """Largest error of a calibrated member against its own curve; null for members that were not measured."""
    held_out: tuple[HeldOut, ...]
    """Runs of the real mirror that nothing was fitted to."""
    members: tuple[str, ...] = ()
    """The members as specified, or the paths of measured ones."""
    again: str = ""
    """The command that does it again."""
    schema: str = "iodelta.policy-simulation/1"


class Mirrored(msgspec.Struct, frozen=True):
    """One run of the real mirror. Latencies in ns."""

    policy: str
    iodepth: int
    iops: float
    read_iops: float
    write_iops: float
    mean_ns: float
    """Mean latency of the reads, or of the writes when there were no reads; so are the percentiles."""
    p50_ns: float
    p99_ns: float
    p999_ns: float
    members: tuple[MemberRun, ...]
    pids: tuple[int, ...]
    """Of the jobs, consecutive as fio's; their remainders decide what pid does."""
    bins: dict[int, int]
    """Reads by fio latency bin."""
    trace: tuple[tuple[int, ...], ...]
    """In flight on each member at even times."""
    findings: tuple[Finding, ...]


def mirrored(policy: str, iodepth: int, done: MirrorRun) -> Mirrored:
    """Return a run as it is printed: latencies of the reads, or of the writes when there were none."""
    tally = done.read if done.read.ios else done.write
    histogram, seconds = tally.histogram, done.seconds or 1.0
    return Mirrored(
        policy=policy,
        iodepth=iodepth,
        iops=done.iops,
        read_iops=done.read.ios / seconds,
        write_iops=done.write.ios / seconds,
        mean_ns=tally.mean,
        p50_ns=histogram.quantile(0.5),
        p99_ns=histogram.quantile(0.99),
        p999_ns=histogram.quantile(0.999),
        members=done.members,
        pids=done.pids,
        bins=done.read.bins,
        trace=done.trace,
        findings=done.findings,
    )


class MirrorAnswer(msgspec.Struct, frozen=True):
    """Runs of the real mirror, one of each policy and depth, and what is wrong with its members."""

    runs: tuple[Mirrored, ...]
    """One per policy and depth."""
    findings: tuple[Finding, ...]
    members: tuple[str, ...] = ()
    """Their paths."""
    again: str = ""
    """The command that does it again."""
    schema: str = "iodelta.policy-mirror/1"


class DefragAnswer(msgspec.Struct, frozen=True):
    """A load of defragmentation that has ended."""

    passes: int
    """Passes begun; each read and wrote all of the file."""
    size_bytes: int
    """Of the file that each pass defragmented."""
    schema: str = "iodelta.policy-defrag/1"
