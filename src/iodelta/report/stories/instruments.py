"""What instruments saw, in sentences: where the variants' CPU time and waiting differ."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.experiment import Experiment
from iodelta.lab.instrument import Instruments, Looked
from iodelta.study.words import inert, quantity

SHOWN = 8
"""Symbols of one comparison, those that differ most."""


def looked(instruments: Instruments | None, experiment: Experiment) -> Iterator[str]:
    """Every variant against the baseline, cell by cell; then what could not be seen, and why. One run each: no verdict
    is drawn from it."""
    if instruments is None:
        return
    by_case = {(case.cell, case.variant): case for case in instruments.looked}
    for cell in experiment.cells:
        base = by_case.get((cell.name, experiment.baseline))
        if base is None:
            continue
        others = [
            by_case.get((cell.name, v.name))
            for v in experiment.variants
            if v.name != experiment.baseline
        ]
        for other in filter(None, others):
            yield from _compared(base, other)
    for name, reason in instruments.missing.items():
        yield f"{inert(name)} saw nothing: {inert(reason)}"


def _compared(base: Looked, other: Looked) -> Iterator[str]:
    head = f"{inert(base.cell)}, {inert(base.variant)} -> {inert(other.variant)}"
    counted = [
        f"{name} {_number(base.counts[name])} -> {_number(count)}"
        for name, count in other.counts.items()
        if count is not None and base.counts.get(name) is not None
    ]
    uncounted = [name for name, count in other.counts.items() if count is None]
    if counted:
        without = (
            f" (not counted by this machine: {', '.join(map(inert, uncounted))})"
            if uncounted
            else ""
        )
        yield f"{head}, for one I/O: {', '.join(map(inert, counted))}{without}."
    if base.profile is not None and other.profile is not None:
        before, after = base.profile.symbols, other.profile.symbols
        grown = {
            name: after.get(name, 0.0) - before.get(name, 0.0)
            for name in {**before, **after}
        }
        largest = sorted(grown.items(), key=lambda item: -abs(item[1]))[:SHOWN]
        parts = [
            f"{inert(name)} {change:+,.0f}" for name, change in largest if round(change)
        ]
        totals = f"{base.profile.total:,.0f} -> {other.profile.total:,.0f}"
        yield (
            f"{head}, {inert(other.profile.unit)} in the kernel for one I/O: {totals}; "
            f"by function: {', '.join(parts) or 'no difference'}."
        )
    stages = {stage.name: stage for stage in base.stages}
    for stage in other.stages:
        before_ = stages.get(stage.name)
        if before_:
            yield (
                f"{head}, {stage.name}: mean {quantity(before_.mean, 'ns')} -> {quantity(stage.mean, 'ns')}, "
                f"p99 {quantity(before_.p99, 'ns')} -> {quantity(stage.p99, 'ns')}."
            )
        else:
            yield f"{head}, {stage.name}: only under {inert(other.variant)}, mean {quantity(stage.mean, 'ns')}."


def _number(count: float | None) -> str:
    if count is None:
        return "-"
    return f"{count:,.3g}" if count < 1000 else f"{count:,.0f}"
