"""What instruments saw, in sentences: where the variants' CPU time and waiting differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from iodelta.experiment import Experiment
from iodelta.lab.instrument import Instruments, Looked
from iodelta.probe.profile import Profile
from iodelta.study.words import inert, quantity

SHOWN = 8
"""Symbols of one comparison, those that differ most."""


def looked(instruments: Instruments | None, experiment: Experiment) -> Iterator[str]:
    """Yield every variant against the baseline, cell by cell; then what could not be seen, and why. One run each: no
    verdict is drawn from it."""
    if instruments is None:
        return
    by_arm = {(seen.cell, seen.variant): seen for seen in instruments.looked}
    for cell, variant in product(experiment.cells, experiment.variants):
        base = by_arm.get((cell.name, experiment.baseline))
        other = by_arm.get((cell.name, variant.name))
        if base and other and variant.name != experiment.baseline:
            yield from _compared(base, other)
    for name, reason in instruments.missing.items():
        yield f"{inert(name)} saw nothing: {inert(reason)}"


def _compared(base: Looked, other: Looked) -> Iterator[str]:
    """Yield what the instruments saw of a variant against the baseline, in one cell."""
    head = f"{inert(base.cell)}, {inert(base.variant)} -> {inert(other.variant)}"
    yield from _counts(head, base, other)
    if base.profile is not None and other.profile is not None:
        yield _profiles(head, base.profile, other.profile)
    stages = {stage.name: stage for stage in base.stages}
    for stage in other.stages:
        before = stages.get(stage.name)
        mean = quantity(stage.mean, "ns")
        if before is None:
            yield f"{head}, {stage.name}: only under {inert(other.variant)}, mean {mean}."
            continue
        yield (
            f"{head}, {stage.name}: mean {quantity(before.mean, 'ns')} -> {mean}, "
            f"p99 {quantity(before.p99, 'ns')} -> {quantity(stage.p99, 'ns')}."
        )


def _counts(head: str, base: Looked, other: Looked) -> Iterator[str]:
    """Counters for one I/O, and which of them this machine does not have."""
    counted, uncounted = [], []
    for name, count in other.counts.items():
        before = base.counts.get(name)
        if count is None:
            uncounted.append(inert(name))
        elif before is not None:
            counted.append(f"{inert(name)} {_number(before)} -> {_number(count)}")
    without = ""
    if uncounted:
        without = f" (not counted by this machine: {', '.join(uncounted)})"
    if counted:
        yield f"{head}, for one I/O: {', '.join(counted)}{without}."


def _profiles(head: str, base: Profile, other: Profile) -> str:
    """Kernel time of one I/O, and the functions whose share changed most."""
    before, after = base.symbols, other.symbols
    grown = {
        name: after.get(name, 0.0) - before.get(name, 0.0)
        for name in {**before, **after}
    }
    largest = sorted(grown.items(), key=lambda item: -abs(item[1]))[:SHOWN]
    parts = [
        f"{inert(name)} {change:+,.0f}" for name, change in largest if round(change)
    ]
    totals = f"{base.total:,.0f} -> {other.total:,.0f}"
    return (
        f"{head}, {inert(other.unit)} in the kernel for one I/O: {totals}; "
        f"by function: {', '.join(parts) or 'no difference'}."
    )


def _number(count: float) -> str:
    """Three significant digits; from 1,000 on all digits."""
    return f"{count:,.3g}" if count < 1000 else f"{count:,.0f}"
