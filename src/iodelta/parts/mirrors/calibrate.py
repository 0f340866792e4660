"""Measure each member alone, so that it can be simulated, and report how well the simulation reproduces it.

Of each member: mean latency and its shape at depths 1 to 64 for small random reads, and at some for large sequential
ones; where they may be overwritten, also of small random writes, and of reads during writes; and what it does at once
after a pause, as a throttled one does. Closure: the simulated member returns its own curves. Hold-out: a run of the
real mirror that nothing was fitted to, against its prediction.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MeasureError, RequestError
from iodelta.lab.guard import check_write
from iodelta.machine import LocalMachine
from iodelta.parts.mirrors.mirror import MirrorRun, Request, run, traits_of
from iodelta.parts.mirrors.model import (
    MIB,
    Curve,
    Empirical,
    Layout,
    Member,
    Run,
    Workload,
    World,
)
from iodelta.parts.mirrors.simulate import Outcome, Tally, simulate
from iodelta.parts.mirrors.starvation import cpu_times, starvation
from iodelta.probe.members import inspect
from iodelta.probe.topology import resolve
from iodelta.trial import Finding

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
LARGE_DEPTHS = (1, 4, 16)
WRITE_DEPTHS = (1, 8, 32)
MIX = 70
"""Percent of reads in mixed measurements."""

CLOSURE = 0.10
"""Largest error of a simulated member against its own curve; with more it is not a model of the member."""

HELD_OUT = (("queue", 8), ("round-robin", 8))
"""Policies and depth of the hold-out runs, which no model is fitted to."""

BURST = 0.02
"""Seconds after which is counted what a member did at once when it had been idle: a fifth of the kernel's slice."""

IDLE = 0.3
"""Seconds before each burst: three slices of the kernel's throttle."""

ATTEMPTS = 5
"""Runs in which nothing came back, each twice as long as the one before: a busy machine may starve one, and a long I/O
outlast it."""

LARGE = 128 * 1024
"""Least bytes of a large read, as in the native core."""

STEPS = 128
"""Number of even steps between the quantiles of a shape."""


class HeldOut(msgspec.Struct, frozen=True):
    """A run of the real mirror against its prediction, IOPS; ``error`` is predicted / measured - 1."""

    policy: str
    iodepth: int
    measured: float
    """IOPS of the real mirror."""
    predicted: float
    """IOPS of the simulated mirror."""
    error: float
    """predicted / measured - 1."""
    read_percent: int = 100
    """Percent of I/Os that are reads."""


class MemberCurve(msgspec.Struct, frozen=True):
    """One member as measured; ``closure`` is the largest error of its simulated curve, small and large reads."""

    path: str
    member: Member
    iops: tuple[float, ...]
    """At ``DEPTHS``."""
    closure: float
    """Largest relative error of its simulated rates at the depths it was measured at."""


class Calibration(msgspec.Struct, frozen=True):
    """Members measured together, and how far predictions from them can be trusted."""

    at: float
    """Unix seconds."""
    seed: int
    members: tuple[MemberCurve, ...]
    held_out: tuple[HeldOut, ...]
    """Hold-out runs of the real mirror, which no model was fitted to; empty for one member."""
    findings: tuple[Finding, ...] = ()
    schema: str = "iodelta.policy-calibration/1"


def calibrate(
    members: Sequence[str],
    *,
    seconds: float = 1.0,
    seed: int = 1,
    destroy: Sequence[str] = (),
    said: Callable[[str], None] = lambda text: None,
) -> Calibration:
    """Measure ``members``, ``seconds`` at each depth. Raises RequestError, RefusedError, MeasureError.

    Reads only, unless ``destroy`` names members: then writes too, and the guard is asked for each.
    """
    size, findings = inspect(members, seed=seed)
    targets = tuple(resolve(LocalMachine(), path) for path in members)
    for target in targets if destroy else ():
        # All checks come before the first write.
        check_write(LocalMachine(), target, destroy).close()
    curves = []
    cpu_before = cpu_times(LocalMachine())
    for number, (path, traits) in enumerate(
        zip(members, traits_of(LocalMachine(), targets), strict=True)
    ):
        said(f"measuring {path}")
        start = seed + 1000 * number
        base = Request(
            members=(path,), policy="devid", size=size, seed=start, seconds=seconds
        )

        def measured(
            depths: Sequence[int], later: int = 0, base: Request = base, **changed: Any
        ) -> tuple[list[MirrorRun], dict[str, Curve]]:
            """Runs at each depth, and the curves of what came back."""
            # Fresh offsets at each depth: the same ones would come from a cache below.
            runs = [
                _measured(
                    msgspec.structs.replace(
                        base, iodepth=depth, seed=base.seed + later + at, **changed
                    ),
                    destroy,
                )
                for at, depth in enumerate(depths)
            ]
            found = {}
            for kind in ("read", "write"):
                tallies = [getattr(done, kind) for done in runs]
                if all(tally.ios for tally in tallies):
                    # Of one direction alone, the mean of a closed loop by its rate.
                    alone = changed.get("read_percent", 100) in (0, 100)
                    means = [
                        done.seconds * 1e9 * depth / tally.ios if alone else tally.mean
                        for done, depth, tally in zip(
                            runs, depths, tallies, strict=True
                        )
                    ]
                    found[kind] = Curve(
                        tuple(depths), tuple(means), tuple(map(shape_of, tallies))
                    )
            return runs, found

        runs, small = measured(DEPTHS)
        iops = tuple(done.iops for done in runs)
        large = (
            measured(LARGE_DEPTHS, 300, random=False, length=MIB)[1]["read"]
            if size >= 64 * MIB
            else None
        )
        write = (
            measured(WRITE_DEPTHS, 600, read_percent=0)[1]["write"] if destroy else None
        )
        beside = measured(WRITE_DEPTHS, 900, read_percent=MIX)[1] if destroy else {}
        throttled = slice_of(
            msgspec.structs.replace(base, iodepth=DEPTHS[-1], seed=start + 1200),
            iops[-1],
        )
        model = Empirical(
            small["read"],
            large,
            write,
            beside.get("read"),
            beside.get("write"),
            throttled,
        )
        member = Member(traits, size, empirical=model)
        curves.append(MemberCurve(path, member, iops, closure_of(member)))
    findings += starvation(cpu_before, cpu_times(LocalMachine()))
    held: tuple[HeldOut, ...] = ()
    if len(members) > 1:
        said("measuring the mirror, to test the prediction")
        tested = Request(
            members=tuple(members),
            policy="",
            size=size,
            seed=seed + 77,
            seconds=2 * seconds,
        )
        cells = [(policy, depth, 100) for policy, depth in HELD_OUT] + (
            [("queue", 8, 70)] if destroy else []
        )
        for policy, depth, reads in cells:
            request = msgspec.structs.replace(
                tested, policy=policy, iodepth=depth, read_percent=reads
            )
            done = _measured(request, destroy)
            load = Workload(
                True, request.length, depth, size, request.seed, done.pids, reads
            )
            predicted = predict(
                tuple(curve.member for curve in curves), policy, load, 5.0
            ).iops
            held += (
                HeldOut(
                    policy,
                    depth,
                    done.iops,
                    predicted,
                    predicted / done.iops - 1,
                    reads,
                ),
            )
    worst = max(curve.closure for curve in curves)
    if worst > CLOSURE:
        text = f"a simulated member misses its own curve by {100 * worst:.0f} %"
        findings += (
            Finding(
                "policy.closure",
                "warning",
                "calibration",
                text,
                "measure longer, on a quieter machine",
            ),
        )
    return Calibration(time.time(), seed, tuple(curves), held, findings)


def closure_of(member: Member) -> float:
    """Largest relative error of the simulated member's rates at the depths of its measurement."""
    errors = []
    assert member.empirical is not None
    model = member.empirical
    # The mean latency of reads and writes together, if both were measured together.
    mixed = None
    if model.read_beside is not None and model.write_beside is not None:
        pairs = zip(model.read_beside.latency, model.write_beside.latency, strict=True)
        mixed = Curve(
            model.read_beside.depths,
            tuple((MIX * read + (100 - MIX) * write) / 100 for read, write in pairs),
        )
    for curve, random, length, reads in (
        (model.read, True, 4096, 100),
        (model.large, False, MIB, 100),
        (model.write, True, 4096, 0),
        (mixed, True, 4096, MIX),
    ):
        if curve is None:
            continue
        for depth, latency in zip(curve.depths, curve.latency, strict=True):
            # Just enough I/Os for the mean of a distribution with a long tail.
            seconds = min(max(20_000 * latency / depth / 1e9, 0.2), 3600.0)
            load = Workload(random, length, depth, member.capacity, 1, (1,), reads)
            outcome = predict((member,), "devid", load, seconds)
            errors.append(abs(outcome.iops / (depth / latency * 1e9) - 1))
    return max(errors)


def slice_of(base: Request, full: float) -> float:
    """Seconds of the slice of the throttle of a member with ``full`` reads per second; 0 unless it clearly bursts."""
    counts = []
    for seed in range(base.seed, base.seed + 3):
        time.sleep(IDLE)
        counts.append(
            run(
                msgspec.structs.replace(base, ramp=0.0, seconds=BURST, seed=seed)
            ).read.ios
        )
    count = statistics.median(counts)
    if count > 4 * full * BURST:
        return count / full
    return 0.0


def predict(
    members: tuple[Member, ...], policy: str, load: Workload, seconds: float
) -> Outcome:
    """Simulate a mirror of ``members`` under ``policy``."""
    run = Run(policy, load, seconds, ramp=seconds / 20)
    return simulate([World(1, members, Layout(), (run,))], 1)[0][0]


def shape_of(tally: Tally) -> tuple[float, ...]:
    """Quantiles at ``STEPS`` even steps in units of the mean; the last one makes the mean of the shape 1."""
    histogram = tally.histogram
    inner = [histogram.quantile(step / STEPS) / tally.mean for step in range(1, STEPS)]
    parts = [tally.min / tally.mean, *inner]
    last = 2 * (STEPS - parts[0] / 2 - sum(inner))
    scale = 1.0
    # Rounding into bins can leave less than nothing for the tail.
    if last < parts[-1]:
        last = parts[-1]
        scale = STEPS / (parts[0] / 2 + sum(inner) + last / 2)
    return tuple(part * scale for part in (*parts, last))


def stored(calibration: Calibration) -> bytes:
    """Return a calibration as the bytes of its file."""
    return msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n"


def load(path: Path) -> Calibration:
    """Read a calibration. Raises RequestError for another file."""
    try:
        return from_json(path.read_bytes(), Calibration)
    except (OSError, msgspec.DecodeError) as error:
        raise RequestError(
            f"is not a calibration of members: {error}",
            place=str(path),
            remedy="iodelta policy calibrate makes one",
        ) from error


def rates_of(calibration: Calibration, length: int, iodepth: int) -> tuple[float, ...]:
    """Reads of ``length`` bytes per second of each member alone, at the greatest depth measured up to ``iodepth``.

    Small reads were measured with 4 KiB, those from ``LARGE`` with 1 MiB. Raises RequestError without such a curve.
    """
    rates = []
    for calibrated in calibration.members:
        model = calibrated.member.empirical
        curve = model and (model.large if length >= LARGE else model.read)
        measured = curve and [
            pair
            for pair in zip(curve.depths, curve.latency, strict=False)
            if pair[0] <= iodepth
        ]
        if not measured or min(measured[-1]) <= 0:
            raise RequestError(
                f"no reads like those of {length} bytes were measured",
                place=calibrated.path,
            )
        rates.append(measured[-1][0] / measured[-1][1] * 1e9)
    return tuple(rates)


def _measured(request: Request, destroy: Sequence[str]) -> MirrorRun:
    for attempt in range(ATTEMPTS):
        longer = 2**attempt * request.seconds
        done = run(msgspec.structs.replace(request, seconds=longer), destroy=destroy)
        if not done.usable:
            break
        # I/O of each requested kind completed.
        if (done.read.ios or request.read_percent == 0) and (
            done.write.ios or request.read_percent == 100
        ):
            return done
    reason = (
        "; ".join(finding.explanation for finding in done.findings)
        or "not one I/O of a kind came back in time"
    )
    raise MeasureError(
        f"cannot be measured: {reason}",
        place=", ".join(request.members),
        remedy="--seconds",
    )
