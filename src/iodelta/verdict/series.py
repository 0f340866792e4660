"""Series: the blocks of one comparison, drawn from trials."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, product

import msgspec

from iodelta.plural import plural
from iodelta.stats.carry import MEMORIES
from iodelta.trial import Finding, Trial
from iodelta.verdict.metrics import (
    Metric,
    Reading,
    reader,
    resolution_of,
    thin_tail,
    weight_of,
)
from iodelta.verdict.surroundings import NONE, NOTHING, Surroundings, surroundings_of

Block = dict[str, list[Trial]]
"""The trials of one block, by variant."""

FLAGS = "noise."
"""Rules that begin so say what disturbed a trial. A flag never removes a trial."""

Pair = tuple[float, float]
"""The values of baseline and variant."""

Kept = tuple[int, list[Trial], list[Trial]]
"""A block in which both arms have a value: its number, and the trials of each."""


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
    baseline_after: tuple[tuple[float, ...], ...] = ()
    """Exposures, block by block, one for each of ``stats.carry.MEMORIES``: what ran before, 1 for a trial of the
    variant, 0 for one of the baseline, 1/2 for anything else, decayed. Empty: the blocks follow each other."""
    variant_after: tuple[tuple[float, ...], ...] = ()
    direct: tuple[Pair, ...] = ()
    """In superblocks: the values of baseline and variant in two neighbouring trials that followed the same arm; nan
    where a block has none."""
    uncounted: tuple[tuple[Pair, ...], ...] = ()
    """In superblocks: the values of each variant's trials that do not count, in the order they ran."""
    conditioning: int = 0
    """In superblocks: how many trials of a variant do not count before the one that does."""
    resolution: float = 0.0
    """Log-ratio by which the source's bins or rounding may have moved a block's difference."""
    baseline_flags: tuple[tuple[str, ...], ...] = ()
    """Rules that flagged each block's trials as disturbed."""
    variant_flags: tuple[tuple[str, ...], ...] = ()
    started: tuple[float, ...] = ()
    """When each block began, in seconds since 1970; empty: not known."""


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
    """Return the series of one cell's ``trials`` (of ``cell``, when several cells are among them).

    A block that was repeated counts with its last attempt only. ``boots`` and ``hosts`` map trial numbers to the boot
    and the host they ran on. Blocks with a missing variant or value are left out and counted. A trial that did no I/O
    has a rate of 0 and an infinite latency, the worst there is: dropping it by its value would bias.
    """
    cell_trials = [trial for trial in trials if cell is None or trial.cell == cell]
    name = cell if cell is not None else cell_trials[0].cell if cell_trials else ""
    blocks = blocks_of(cell_trials)
    ends = finished_of(blocks)
    around = surroundings_of(cell_trials, hosts).get(name, NOTHING)
    return series_from(
        blocks,
        metric,
        baseline,
        variant,
        cell=name,
        finished=ends,
        boots=boots,
        hosts=hosts,
        around=around,
    )


def blocks_of(trials: Iterable[Trial]) -> dict[int, Block]:
    """Return one cell's counted trials by block, in run order, the last attempt of each block only."""
    blocks_by_number: dict[int, Block] = {}
    attempts: dict[int, int] = {}
    for trial in sorted(
        (trial for trial in trials if not trial.conditioning),
        key=lambda trial: trial.number,
    ):
        latest = attempts.get(trial.block, -1)
        if trial.attempt > latest:
            blocks_by_number.pop(trial.block, None)
            blocks_by_number[trial.block] = {}
            attempts[trial.block] = trial.attempt
        if trial.attempt >= latest:
            blocks_by_number[trial.block].setdefault(trial.variant, []).append(trial)
    return blocks_by_number


def finished_of(blocks: Mapping[int, Block]) -> tuple[int, ...]:
    """Return the last trial number of each block."""
    return tuple([max(map(_last_number, block.values())) for block in blocks.values()])


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
    read = reader(metric)
    arms = [
        block.get(name, [])
        for block, name in product(blocks.values(), (baseline, variant))
    ]
    thin = thin_tail(metric.name, list(chain.from_iterable(arms)))
    refused: list[Finding] = []
    missing: Counter[str] = Counter()
    kept, values = _whole_pairs(
        blocks if thin is None else {}, (baseline, variant), read, refused, missing
    )
    olds, news = [old for _, old, _ in kept], [new for _, _, new in kept]
    # How many trials before a counted one do not count, at most.
    own = chain.from_iterable(block.values() for block in around.conditioning.values())
    # The median over blocks of what the two arms' bins or rounding may add up to.
    widths = [
        resolution_of(old[0], metric) + resolution_of(new[0], metric)
        for _, old, new in kept
    ]
    return Series(
        cell,
        metric,
        baseline,
        variant,
        blocks=tuple([number for number, _, _ in kept]),
        baseline_values=tuple([a for a, _ in values]),
        variant_values=tuple([b for _, b in values]),
        baseline_first=tuple(map(_is_first, olds, news)),
        baseline_at=tuple(map(_last_number, olds)),
        variant_at=tuple(map(_last_number, news)),
        boots=()
        if boots is None
        else tuple(zip(_ids(boots, olds), _ids(boots, news), strict=True)),
        hosts=() if hosts is None else _ids(hosts, olds),
        incomplete=missing["blocks"],
        finished=finished,
        findings=_findings(
            cell, metric, (baseline, variant), missing, refused, len(blocks)
        ),
        refused=thin
        and msgspec.structs.replace(
            thin, place=f"cell {cell}, {metric.name}, {variant}"
        ),
        arms=around.arms,
        baseline_weights=_weights(olds, metric),
        variant_weights=_weights(news, metric),
        baseline_after=_afters(olds, around, baseline, variant),
        variant_after=_afters(news, around, baseline, variant),
        direct=_direct(kept, around, read, baseline, variant),
        uncounted=_uncounted(kept, around, read, baseline, variant),
        conditioning=max(map(len, own), default=0),
        resolution=(sorted(widths)[len(widths) // 2] if widths else 0.0),
        baseline_flags=tuple(map(_flags, olds)),
        variant_flags=tuple(map(_flags, news)),
        started=tuple([min(old[0].started, new[0].started) for _, old, new in kept]),
    )


def pairs_of(
    blocks: Mapping[int, Block], metric: Metric, baseline: str, variant: str
) -> list[Pair]:
    """Return the values alone of ``series_from``: of both arms in every block that has both."""
    trials_of_arms = [
        block.get(name, [])
        for block, name in product(blocks.values(), (baseline, variant))
    ]
    if thin_tail(metric.name, list(chain.from_iterable(trials_of_arms))) is not None:
        return []
    return _whole_pairs(blocks, (baseline, variant), reader(metric), [], Counter())[1]


def _whole_pairs(
    blocks: Mapping[int, Block],
    arms: tuple[str, str],
    read: Callable[[Trial], Reading],
    refused: list[Finding],
    missing: Counter[str],
) -> tuple[list[Kept], list[Pair]]:
    """Return the blocks in which both arms have a value, and the values; ``missing`` counts what others lack."""
    kept, values = [], []
    for number, block in blocks.items():
        old, new = block.get(arms[0], []), block.get(arms[1], [])
        pair = _value(old, read, refused), _value(new, read, refused)
        lacking = [
            name for name, value in zip(arms, pair, strict=True) if math.isnan(value)
        ]
        if lacking:
            missing.update((*lacking, "blocks"))
            continue
        kept.append((number, old, new))
        values.append(pair)
    return kept, values


def _is_first(old: Sequence[Trial], new: Sequence[Trial]) -> bool:
    return _place(old) < _place(new)


def _last_number(runs: Sequence[Trial]) -> int:
    return runs[-1].number


def _place(runs: Sequence[Trial]) -> tuple[int, int]:
    return runs[0].position, runs[0].number


def _ids(ids: Mapping[int, str], blocks: Sequence[Sequence[Trial]]) -> tuple[str, ...]:
    return tuple([ids.get(runs[0].number, "") for runs in blocks])


def _weights(blocks: Sequence[Sequence[Trial]], metric: Metric) -> tuple[float, ...]:
    """I/Os behind each block's value; 1 for a rate."""
    return tuple(
        [math.fsum(weight_of(trial, metric) for trial in runs) for runs in blocks]
    )


def _afters(
    blocks: Sequence[Sequence[Trial]], around: Surroundings, baseline: str, variant: str
) -> tuple[tuple[float, ...], ...]:
    return tuple([_after(runs, around, baseline, variant) for runs in blocks])


def _after(
    runs: Sequence[Trial], around: Surroundings, baseline: str, variant: str
) -> tuple[float, ...]:
    """The exposures of the first of ``runs``: trials of neither arm, known or not, count half."""
    before = around.before.get(runs[0].number, {})
    arms = zip(
        MEMORIES, before.get(variant, NONE), before.get(baseline, NONE), strict=True
    )
    return tuple(
        [(1.0 / (1.0 - memory) + new - old) / 2.0 for memory, new, old in arms]
    )


def _flags(runs: Sequence[Trial]) -> tuple[str, ...]:
    every = chain.from_iterable(trial.findings for trial in runs)
    return tuple(
        sorted({finding.rule for finding in every if finding.rule.startswith(FLAGS)})
    )


def _direct(
    kept: Sequence[Kept],
    around: Surroundings,
    read: Callable[[Trial], Reading],
    baseline: str,
    variant: str,
) -> tuple[Pair, ...]:
    """In superblocks (A A B B), the two trials in the middle: neighbours that both ran after a trial of the first arm,
    so that carry-over is the same in both."""
    if not around.conditioning:
        return ()
    pairs = []
    for number, old, new in kept:
        unpaid = around.conditioning.get(number, {})
        first, name = (
            (old[-1], variant) if _place(old) < _place(new) else (new[-1], baseline)
        )
        second = unpaid.get(name, ())[:1]
        pair = (math.nan, math.nan)
        if second and second[0].number == first.number + 1:
            values = {first.variant: read(first)[0], name: read(second[0])[0]}
            pair = (values[baseline], values[variant])
        pairs.append(pair)
    return tuple(pairs)


def _uncounted(
    kept: Sequence[Kept],
    around: Surroundings,
    read: Callable[[Trial], Reading],
    baseline: str,
    variant: str,
) -> tuple[tuple[Pair, ...], ...]:
    """In superblocks the values of each arm's trials that do not count; nothing where an arm lacks some."""
    if not around.conditioning:
        return ()
    uncounted_pairs = []
    for number, _, _ in kept:
        conditioning = around.conditioning.get(number, {})
        old = [read(trial)[0] for trial in conditioning.get(baseline, ())]
        new = [read(trial)[0] for trial in conditioning.get(variant, ())]
        uncounted_pairs.append(
            tuple(zip(old, new, strict=True)) if len(old) == len(new) else ()
        )
    return tuple(uncounted_pairs)


def _value(
    runs: Sequence[Trial], read: Callable[[Trial], Reading], refused: list[Finding]
) -> float:
    """Return one variant's value in one block: the geometric mean of its runs, because changes are ratios; nan when
    any is missing, and the worst when one has no logarithm."""
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
    findings = []
    if refused:
        first = refused[0]
        more = (
            f" ({plural(len(refused), 'trial')}; the first: {first.place})"
            if len(refused) > 1
            else f" ({first.place})"
        )
        findings.append(
            msgspec.structs.replace(
                first, place=place, explanation=first.explanation + more
            )
        )
    left_out = missing["blocks"]
    if left_out:
        worst = max(variants, key=lambda name: missing[name])
        counts = ", ".join(f"{missing[name]} of {name}" for name in variants)
        lopsided = abs(missing[variants[0]] - missing[variants[1]]) >= max(
            3, 0.1 * blocks
        )
        findings.append(
            Finding(
                "verdict.incomplete-blocks",
                "warning" if lopsided or left_out > 0.2 * blocks else "note",
                place,
                f"{left_out} of {plural(blocks, 'block')} left out for want of a value ({counts})"
                + (
                    f"; {worst} fails more often, which may itself be the change"
                    if lopsided
                    else ""
                ),
                "see why these trials failed or did not measure it",
            )
        )
    return tuple(findings)
