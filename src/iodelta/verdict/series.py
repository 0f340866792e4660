"""Series: the blocks of one comparison, drawn from trials."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from iodelta.trial import Finding, Trial
from iodelta.verdict.metrics import Metric, Reading, reader, thin_tail

Block = dict[str, list[Trial]]
"""The trials of one block, by variant."""


class Series(msgspec.Struct, frozen=True):
    """One cell, one metric, one variant against the baseline: complete blocks only, in the order they were run.

    All tuples have one entry per block, in the metric's unit. Several trials of one variant in one block (runs of one
    boot) are one entry, their geometric mean. ``baseline_first`` says which ran first inside the block. ``*_at`` are
    trial numbers (run order; the last one of several). ``boots`` and ``hosts`` are empty when not given;
    a boot is (baseline's, variant's). ``incomplete`` counts blocks left out because a trial or its value is missing;
    ``finished`` has the last trial number of every block run, those included (empty: none was left out).
    """

    cell: str
    metric: Metric
    baseline: str
    variant: str
    blocks: tuple[int, ...]
    baseline_values: tuple[float, ...]
    variant_values: tuple[float, ...]
    baseline_first: tuple[bool, ...]
    baseline_at: tuple[int, ...]
    variant_at: tuple[int, ...]
    boots: tuple[tuple[str, str], ...] = ()
    hosts: tuple[str, ...] = ()
    incomplete: int = 0
    finished: tuple[int, ...] = ()
    findings: tuple[Finding, ...] = ()
    refused: Finding | None = None
    """Why this metric cannot be read from these trials at all."""


def series_of(
    trials: Iterable[Trial],
    metric: Metric,
    baseline: str,
    variant: str,
    *,
    cell: str | None = None,
    boots: Mapping[int, str] | None = None,
    hosts: Mapping[int, str] | None = None,
) -> Series:
    """The series of one cell's ``trials`` (of ``cell``, when several cells are among them).

    A block that was repeated counts with its last attempt only. ``boots`` and ``hosts`` map trial numbers to the boot
    and the host they ran on. Blocks with a missing variant or a value that is not finite are left out and counted;
    values of zero or below are kept: judging refuses them, dropping by value would bias.
    """
    own = [trial for trial in trials if cell is None or trial.cell == cell]
    name = cell if cell is not None else own[0].cell if own else ""
    blocks = blocks_of(own)
    found = finished_of(blocks)
    return series_from(blocks, metric, baseline, variant, cell=name, finished=found, boots=boots, hosts=hosts)


def blocks_of(trials: Iterable[Trial]) -> dict[int, Block]:
    """One cell's trials by block, in run order, the last attempt of each block only."""
    found: dict[int, Block] = {}
    attempts: dict[int, int] = {}
    for trial in sorted(trials, key=lambda trial: trial.number):
        latest = attempts.get(trial.block, -1)
        if trial.attempt > latest:
            found.pop(trial.block, None)
            found[trial.block] = {}
            attempts[trial.block] = trial.attempt
        if trial.attempt >= latest:
            found[trial.block].setdefault(trial.variant, []).append(trial)
    return found


def finished_of(blocks: Mapping[int, Block]) -> tuple[int, ...]:
    """The last trial number of each block."""
    return tuple([max(runs[-1].number for runs in block.values()) for block in blocks.values()])


def series_from(
    blocks: Mapping[int, Block],
    metric: Metric,
    baseline: str,
    variant: str,
    *,
    cell: str,
    finished: tuple[int, ...],
    boots: Mapping[int, str] | None = None,
    hosts: Mapping[int, str] | None = None,
) -> Series:
    """As ``series_of``, from blocks already sorted out."""
    read = reader(metric.name)
    runs = [trial for block in blocks.values() for name in (baseline, variant) for trial in block.get(name, ())]
    thin = thin_tail(metric.name, runs)
    rows: list[tuple[int, float, float, bool, int, int]] = []
    units: list[tuple[str, str]] = []
    places: list[str] = []
    refused: list[Finding] = []
    missing: Counter[str] = Counter()
    for number, block in blocks.items() if thin is None else ():
        old, new = block.get(baseline, []), block.get(variant, [])
        a, b = _value(old, read, refused), _value(new, read, refused)
        if math.isnan(a) or math.isnan(b):
            missing.update(name for name, value in ((baseline, a), (variant, b)) if math.isnan(value))
            missing["blocks"] += 1
            continue
        first = (old[0].position, old[0].number) < (new[0].position, new[0].number)
        rows.append((number, a, b, first, old[-1].number, new[-1].number))
        if boots is not None:
            units.append((boots.get(old[0].number, ""), boots.get(new[0].number, "")))
        if hosts is not None:
            places.append(hosts.get(old[0].number, ""))
    return Series(
        cell,
        metric,
        baseline,
        variant,
        blocks=tuple([row[0] for row in rows]),
        baseline_values=tuple([row[1] for row in rows]),
        variant_values=tuple([row[2] for row in rows]),
        baseline_first=tuple([row[3] for row in rows]),
        baseline_at=tuple([row[4] for row in rows]),
        variant_at=tuple([row[5] for row in rows]),
        boots=tuple(units),
        hosts=tuple(places),
        incomplete=missing["blocks"],
        finished=finished,
        findings=_findings(cell, metric, (baseline, variant), missing, refused, len(blocks)),
        refused=thin and msgspec.structs.replace(thin, place=f"cell {cell}, {metric.name}, {variant}"),
    )


def _value(runs: Sequence[Trial], read: Callable[[Trial], Reading], refused: list[Finding]) -> float:
    """One variant's value in one block: the geometric mean of its runs; nan when any is missing, and the smallest when
    it has no logarithm (judging will refuse it)."""
    if len(runs) == 1:
        value, finding = read(runs[0])
        if finding is not None:
            refused.append(finding)
        return value if math.isfinite(value) else math.nan
    values = []
    for trial in runs:
        value, finding = read(trial)
        if finding is not None:
            refused.append(finding)
        values.append(value)
    if not values or not all(map(math.isfinite, values)):
        return math.nan
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if min(values) > 0 else min(values)


def _findings(
    cell: str,
    metric: Metric,
    variants: tuple[str, str],
    missing: Counter[str],
    refused: list[Finding],
    blocks: int,
) -> tuple[Finding, ...]:
    place = f"cell {cell}, {metric.name}"
    found = []
    if refused:
        first = refused[0]
        more = f" ({len(refused)} trials; the first: {first.place})" if len(refused) > 1 else f" ({first.place})"
        found.append(msgspec.structs.replace(first, place=place, explanation=first.explanation + more))
    left_out = missing["blocks"]
    if left_out:
        worst = max(variants, key=lambda name: missing[name])
        counts = ", ".join(f"{missing[name]} of {name}" for name in variants)
        lopsided = abs(missing[variants[0]] - missing[variants[1]]) >= max(3, 0.1 * blocks)
        found.append(
            Finding(
                "verdict.incomplete-blocks",
                "warning" if lopsided or left_out > 0.2 * blocks else "note",
                place,
                f"{left_out} of {blocks} blocks are left out for want of a value ({counts})"
                + (f"; {worst} fails more often, which may itself be the change" if lopsided else ""),
                "see why these trials failed or did not measure it",
            )
        )
    return tuple(found)
