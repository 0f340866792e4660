"""Was a trial disturbed: by other I/O on the device, by other guests on the CPUs, by not being steady?

The limits are fixed in the plan before the first trial and are the same for every variant. What is found here is a
flag: it is shown with the trial and never removes it. A variant may cause the disturbance along with its own loss, and
repeating its blocks until they are calm would remove that loss from the result. Noise is paid for with more blocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from iodelta.trial import Finding, Kind, Trial

SLACK = 1 << 20
"""Bytes of other I/O that are never too many: a superblock, a directory, a probe by udev."""

_NORMAL_MEDIAN, _NORMAL_99 = 0.6745, 2.576
"""Median of |z|, and its 99 % point, of a standard normal z."""

_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")


class Quality(msgspec.Struct, frozen=True):
    """The limits, as shares."""

    other_io: float = 0.25
    """Bytes on the device beyond what fio may have moved itself, of what it counted."""
    steal: float = 0.05
    """Time that the hypervisor took away, of the time in which the CPUs had work..."""
    steal_least: float = 0.02
    """...and at least this share of the trial's duration, two ticks of a second."""
    steady_from: int = 10
    """Seconds from which the measured window is long enough to ask whether it was steady."""


def noise(
    trial: Trial,
    quality: Quality,
    *,
    margin: float,
    device: str | None,
    moved: Mapping[str, float],
) -> tuple[Finding, ...]:
    """Return what disturbed a trial, and whether it was unsteady.

    ``device`` names the disk whose I/O should be fio's alone, None where others do I/O, too: buffered I/O, several
    devices, a filesystem that adds writes of its own, a background load. ``moved`` are the counters of the disks over
    the time in which fio counted its I/O, so without its ramp, whose I/O fio does not report.
    """
    findings = []
    place = f"trial {trial.number}"
    if device is not None and (other := _other_io(trial, moved, device)) is not None:
        own, foreign = other
        if foreign > quality.other_io * own + SLACK:
            amount = f"at least {foreign / 2**20:.1f} MiB of I/O on {device} during the trial"
            text = f"other processes did {amount}, {100 * foreign / own:.0f} % of fio's own"
            findings.append(
                _finding(
                    "noise.other-io",
                    place,
                    text,
                    "find out who uses the device: iotop, lsof",
                )
            )
    counters = trial.counters
    stolen, busy = (
        counters.get("cpu.steal_ms", 0.0),
        sum(counters.get(f"cpu.{name}_ms", 0.0) for name in _BUSY),
    )
    if stolen > max(quality.steal * busy, 1000 * quality.steal_least * trial.seconds):
        text = f"{100 * stolen / busy:.0f} % steal time: the host is overcommitted"
        findings.append(
            _finding(
                "noise.steal",
                place,
                text,
                "measure on a host, or a guest with CPUs of its own",
            )
        )
    for name, series in trial.series.items():
        if len(series) >= quality.steady_from:
            change = drift(series)
            if abs(change) > margin:
                how = (
                    f"moved by {100 * change:+.1f} %"
                    if math.isfinite(change)
                    else "rose from 0"
                )
                text = f"{name} {how} over the measured window, more than the margin"
                findings.append(
                    _finding(
                        "noise.unsteady", place, text, "give a longer [design] ramp"
                    )
                )
    return tuple(findings)


def drift(series: Sequence[float]) -> float:
    """Change from the first to the last third of a window (9 values at least), relative to the first; 0 where noise
    explains it, infinite from a first third of zeros.

    Noise is taken from the steps between neighbouring seconds (their median: one jump does not hide itself), and
    counted as if neighbours were correlated by a half, which makes means of n values sqrt(6/n) as wide as steps say.
    """
    data = np.asarray(series, dtype=float)
    third = len(data) // 3
    if third < 3 or not data.any():
        return 0.0
    first, last = float(data[:third].mean()), float(data[-third:].mean())
    sd = float(np.median(np.abs(np.diff(data)))) / (_NORMAL_MEDIAN * np.sqrt(2.0))
    if abs(last - first) <= _NORMAL_99 * sd * np.sqrt(2 * 6 / third):
        return 0.0
    return last / first - 1 if first > 0 else math.inf


def _other_io(
    trial: Trial, moved: Mapping[str, float], device: str
) -> tuple[float, float] | None:
    """Bytes that fio counted, and those that others moved for certain; None when nothing was counted."""
    own = foreign = 0.0
    kinds: tuple[Kind, ...] = ("read", "write")
    for kind in kinds:
        direction = trial.direction(kind)
        all_ = moved.get(f"disk.{device}.{kind}_bytes")
        if all_ is None:
            return None
        ours = direction.bytes if direction else 0
        own += ours
        foreign += max(0.0, all_ - ours)
    if not own:
        return None
    return own, foreign


def _finding(rule: str, place: str, explanation: str, remedy: str) -> Finding:
    return Finding(rule, "warning", place, explanation, remedy)
