"""Series: the blocks of one comparison, drawn from trials."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from iodelta.trial import Finding, Trial
from iodelta.verdict.metrics import Metric, Reading, reader, resolution_of, thin_tail, weight_of

Block = dict[str, list[Trial]]
"""The trials of one block, by variant."""

FLAGS = "noise."
"""Rules that begin so say what disturbed a trial. A flag never removes a trial."""


class Surroundings(msgspec.Struct, frozen=True):
    """What the trials of one cell cannot say themselves: ``previous`` has, by trial number, the variant that ran just
    before on the same host; ``conditioning`` the trials of superblocks that do not count, by block and variant;
    ``arms`` how many variants a block has."""

    previous: Mapping[int, str] = {}
    conditioning: Mapping[int, Mapping[str, Trial]] = {}
    arms: int = 2


NOTHING = Surroundings()


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
    arms: int = 2
    """Variants in a block, the baseline among them."""
    baseline_weights: tuple[float, ...] = ()
    """What each value counts for in a total: the I/Os of a latency. Empty: 1."""
    variant_weights: tuple[float, ...] = ()
    baseline_after: tuple[float, ...] = ()
    """What ran just before: 1 a trial of the variant, 0 one of the baseline, 1/2 anything else. Empty: the blocks
    follow each other."""
    variant_after: tuple[float, ...] = ()
    direct: tuple[tuple[float, float], ...] = ()
    """In superblocks: the values of baseline and variant in two neighbouring trials that followed the same arm; nan
    where a block has none."""
    resolution: float = 0.0
    """Log-ratio by which the source's bins or rounding may have moved a block's difference."""
    baseline_flags: tuple[tuple[str, ...], ...] = ()
    """Rules that flagged each block's trials as disturbed."""
    variant_flags: tuple[tuple[str, ...], ...] = ()


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
    and the host they ran on. Blocks with a missing variant or value are left out and counted. A trial that did no I/O
    has a rate of 0 and an infinite latency, the worst there is: dropping it by its value would bias.
    """
    own = [trial for trial in trials if cell is None or trial.cell == cell]
    name = cell if cell is not None else own[0].cell if own else ""
    blocks = blocks_of(own)
    found = finished_of(blocks)
    around = surroundings_of(own, hosts).get(name, NOTHING)
    return series_from(
        blocks, metric, baseline, variant, cell=name, finished=found, boots=boots, hosts=hosts, around=around
    )


def surroundings_of(trials: Iterable[Trial], hosts: Mapping[int, str] | None = None) -> dict[str, Surroundings]:
    """The surroundings of every cell, from all trials of an experiment. ``hosts`` may name those of other trials, too:
    a trial that does not count ran before the next one all the same."""
    ordered = sorted(trials, key=lambda trial: trial.number)
    variant_at = {trial.number: trial.variant for trial in ordered}
    before_it = _previous(variant_at, hosts or {})
    arms = len({trial.variant for trial in ordered})
    previous: dict[str, dict[int, str]] = {}
    conditioning: dict[str, dict[int, dict[str, Trial]]] = {}
    for trial in ordered:
        before = before_it.get(trial.number, trial.number - 1)
        previous.setdefault(trial.cell, {})[trial.number] = variant_at.get(before, "")
        if trial.conditioning:
            conditioning.setdefault(trial.cell, {}).setdefault(trial.block, {})[trial.variant] = trial
    return {cell: Surroundings(own, conditioning.get(cell, {}), arms) for cell, own in previous.items()}


def _previous(numbers: Iterable[int], hosts: Mapping[int, str]) -> dict[int, int]:
    """By trial number the trial before it on the same host; nothing where all trials are on one."""
    if len(set(hosts.values())) < 2:
        return {}
    found: dict[int, int] = {}
    last: dict[str, int] = {}
    for number in sorted({*numbers, *hosts}):
        host = hosts.get(number, "")
        found[number] = last.get(host, 0)
        last[host] = number
    return found


def blocks_of(trials: Iterable[Trial]) -> dict[int, Block]:
    """One cell's counted trials by block, in run order, the last attempt of each block only."""
    found: dict[int, Block] = {}
    attempts: dict[int, int] = {}
    for trial in sorted((trial for trial in trials if not trial.conditioning), key=lambda trial: trial.number):
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
    around: Surroundings = NOTHING,
) -> Series:
    """As ``series_of``, from blocks already sorted out."""
    read = reader(metric.name)
    runs = [trial for block in blocks.values() for name in (baseline, variant) for trial in block.get(name, ())]
    thin = thin_tail(metric.name, runs)
    kept: list[tuple[int, list[Trial], list[Trial]]] = []
    values: list[tuple[float, float]] = []
    refused: list[Finding] = []
    missing: Counter[str] = Counter()
    for number, block in blocks.items() if thin is None else ():
        old, new = block.get(baseline, []), block.get(variant, [])
        a, b = _value(old, read, refused), _value(new, read, refused)
        if math.isnan(a) or math.isnan(b):
            missing.update(name for name, value in ((baseline, a), (variant, b)) if math.isnan(value))
            missing["blocks"] += 1
            continue
        kept.append((number, old, new))
        values.append((a, b))
    return Series(
        cell,
        metric,
        baseline,
        variant,
        blocks=tuple([number for number, _, _ in kept]),
        baseline_values=tuple([a for a, _ in values]),
        variant_values=tuple([b for _, b in values]),
        baseline_first=tuple([_place(old) < _place(new) for _, old, new in kept]),
        baseline_at=tuple([old[-1].number for _, old, _ in kept]),
        variant_at=tuple([new[-1].number for _, _, new in kept]),
        boots=() if boots is None else tuple([(_id(boots, old), _id(boots, new)) for _, old, new in kept]),
        hosts=() if hosts is None else tuple([_id(hosts, old) for _, old, _ in kept]),
        incomplete=missing["blocks"],
        finished=finished,
        findings=_findings(cell, metric, (baseline, variant), missing, refused, len(blocks)),
        refused=thin and msgspec.structs.replace(thin, place=f"cell {cell}, {metric.name}, {variant}"),
        arms=around.arms,
        baseline_weights=tuple([_weight(old, metric) for _, old, _ in kept]),
        variant_weights=tuple([_weight(new, metric) for _, _, new in kept]),
        baseline_after=tuple([_after(old, around, baseline, variant) for _, old, _ in kept]),
        variant_after=tuple([_after(new, around, baseline, variant) for _, _, new in kept]),
        direct=_direct(kept, around, read, baseline, variant),
        resolution=_resolution(kept, metric),
        baseline_flags=tuple([_flags(old) for _, old, _ in kept]),
        variant_flags=tuple([_flags(new) for _, _, new in kept]),
    )


def _place(runs: Sequence[Trial]) -> tuple[int, int]:
    return runs[0].position, runs[0].number


def _id(ids: Mapping[int, str], runs: Sequence[Trial]) -> str:
    return ids.get(runs[0].number, "")


def _weight(runs: Sequence[Trial], metric: Metric) -> float:
    """I/Os behind a block's value; 1 for a rate."""
    return math.fsum(weight_of(trial, metric) for trial in runs)


def _after(runs: Sequence[Trial], around: Surroundings, baseline: str, variant: str) -> float:
    """What ran just before the first of ``runs``: 1 the variant, 0 the baseline, 1/2 anything else."""
    before = around.previous.get(runs[0].number, "")
    return {variant: 1.0, baseline: 0.0}.get(before, 0.5)


def _flags(runs: Sequence[Trial]) -> tuple[str, ...]:
    rules = {finding.rule for trial in runs for finding in trial.findings if finding.rule.startswith(FLAGS)}
    return tuple(sorted(rules))


def _resolution(kept: Sequence[tuple[int, list[Trial], list[Trial]]], metric: Metric) -> float:
    """The median over blocks of what the two arms' bins or rounding may add up to."""
    widths = [math.fsum(resolution_of(runs[0], metric) for runs in (old, new)) for _, old, new in kept]
    return sorted(widths)[len(widths) // 2] if widths else 0.0


def _direct(
    kept: Sequence[tuple[int, list[Trial], list[Trial]]],
    around: Surroundings,
    read: Callable[[Trial], Reading],
    baseline: str,
    variant: str,
) -> tuple[tuple[float, float], ...]:
    """In superblocks (A A B B), the two trials in the middle: neighbours that both followed the first arm."""
    if not around.conditioning:
        return ()
    pairs = []
    for number, old, new in kept:
        unpaid = around.conditioning.get(number, {})
        first, second = (old[-1], unpaid.get(variant)) if _place(old) < _place(new) else (new[-1], unpaid.get(baseline))
        pair = (math.nan, math.nan)
        if second is not None and second.number == first.number + 1:
            values = {first.variant: read(first)[0], second.variant: read(second)[0]}
            pair = (values[baseline], values[variant])
        pairs.append(pair)
    return tuple(pairs)


def _value(runs: Sequence[Trial], read: Callable[[Trial], Reading], refused: list[Finding]) -> float:
    """One variant's value in one block: the geometric mean of its runs; nan when any is missing, and the smallest when
    it has no logarithm."""
    if len(runs) == 1:
        value, finding = read(runs[0])
        if finding is not None:
            refused.append(finding)
        return value
    values = []
    for trial in runs:
        value, finding = read(trial)
        if finding is not None:
            refused.append(finding)
        values.append(value)
    if not values or any(map(math.isnan, values)):
        return math.nan
    if math.inf in values or min(values) <= 0:
        return math.inf if math.inf in values else min(values)
    return math.exp(math.fsum(map(math.log, values)) / len(values))


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
