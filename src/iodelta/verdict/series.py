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
    return tuple(
        [max(runs[-1].number for runs in block.values()) for block in blocks.values()]
    )


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
    read, names = reader(metric), (baseline, variant)
    every = [block.get(name, []) for block in blocks.values() for name in names]
    thin = thin_tail(metric.name, list(chain.from_iterable(every)))
    refused: list[Finding] = []
    missing: Counter[str] = Counter()
    whole = blocks if thin is None else {}
    kept, values = _whole_pairs(whole, names, read, refused, missing)
    direct, uncounted, firsts = [], [], []
    for number, old, new in kept:
        places = [(runs[0].position, runs[0].number) for runs in (old, new)]
        firsts.append(places[0] < places[1])
        if not around.conditioning:
            continue
        # In superblocks (A A B B), the two trials in the middle: neighbours that both ran after a trial of the first
        # arm, so that carry-over is the same in both. And the values of each arm's trials that do not count; nothing
        # where an arm lacks some.
        unpaid = around.conditioning.get(number, {})
        first, name = (old[-1], variant) if firsts[-1] else (new[-1], baseline)
        second = unpaid.get(name, ())[:1]
        pair = (math.nan, math.nan)
        if second and second[0].number == first.number + 1:
            of = {first.variant: read(first)[0], name: read(second[0])[0]}
            pair = (of[baseline], of[variant])
        direct.append(pair)
        a, b = ([read(one)[0] for one in unpaid.get(name, ())] for name in names)
        uncounted.append(tuple(zip(a, b, strict=True)) if len(a) == len(b) else ())
    olds, news = [old for _, old, _ in kept], [new for _, _, new in kept]
    at, weights, after, flags = ([], [], [], [])
    for runs_of in (olds, news):
        at.append(tuple([runs[-1].number for runs in runs_of]))
        sums = [math.fsum(weight_of(one, metric) for one in runs) for runs in runs_of]
        weights.append(tuple(sums))
        after.append(tuple([_after(runs[0], around, names) for runs in runs_of]))
        found = [
            {finding.rule for one in runs for finding in one.findings}
            for runs in runs_of
        ]
        flags.append(
            tuple(
                [tuple(sorted(r for r in one if r.startswith(FLAGS))) for one in found]
            )
        )

    def ids(
        known: Mapping[int, str], arm: Sequence[Sequence[Trial]]
    ) -> tuple[str, ...]:
        return tuple([known.get(runs[0].number, "") for runs in arm])

    # The median over blocks of what the two arms' bins or rounding may add up to.
    widths = sorted(
        resolution_of(old[0], metric) + resolution_of(new[0], metric)
        for _, old, new in kept
    )
    own = chain.from_iterable(block.values() for block in around.conditioning.values())
    place = f"cell {cell}, {metric.name}, {variant}"
    return Series(
        cell,
        metric,
        baseline,
        variant,
        blocks=tuple([number for number, _, _ in kept]),
        baseline_values=tuple([a for a, _ in values]),
        variant_values=tuple([b for _, b in values]),
        baseline_first=tuple(firsts),
        baseline_at=at[0],
        variant_at=at[1],
        boots=tuple(zip(ids(boots, olds), ids(boots, news), strict=True))
        if boots is not None
        else (),
        hosts=() if hosts is None else ids(hosts, olds),
        incomplete=missing["blocks"],
        finished=finished,
        findings=_findings(cell, metric, names, missing, refused, len(blocks)),
        refused=thin and msgspec.structs.replace(thin, place=place),
        arms=around.arms,
        baseline_weights=weights[0],
        variant_weights=weights[1],
        baseline_after=after[0],
        variant_after=after[1],
        direct=tuple(direct),
        uncounted=tuple(uncounted),
        conditioning=max(map(len, own), default=0),
        resolution=widths[len(widths) // 2] if widths else 0.0,
        baseline_flags=flags[0],
        variant_flags=flags[1],
        started=tuple([min(old[0].started, new[0].started) for _, old, new in kept]),
    )


def _after(
    trial: Trial, around: Surroundings, names: tuple[str, str]
) -> tuple[float, ...]:
    """Return the exposures of a trial: trials of neither arm, known or not, count half."""
    before = around.before.get(trial.number, {})
    old, new = (before.get(name, NONE) for name in names)
    return tuple(
        [
            (1.0 / (1.0 - memory) + late - early) / 2.0
            for memory, early, late in zip(MEMORIES, old, new, strict=True)
        ]
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
