"""Simulated experiments: trials drawn in the order of their design, as the series that are judged, and the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.verdicts.disturbances import Disturbance, normal
from iodelta.stats.carry import MEMORIES
from iodelta.verdict import LOOKS, Metric, Rules, Series, metric

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FLAG = "noise.steal"
ENGINE_SEED = 7
"""One seed of the engine's own draws: its sign patterns are drawn once."""

WIDEST = 0.2
CVS = (0.01, 0.1)

LONG = 100_000
"""Blocks behind a truth that has no closed form."""


@dataclass(frozen=True)
class Setup:
    """What is simulated. ``change`` is the variant's own; with probability ``stalls`` one of its trials also loses
    ``depth``. ``debt`` is what one of its trials costs the next trial, whichever it is, and ``memory`` the share of
    it that is left after each further trial; a debt below 0 is a benefit. In
    superblocks ``conditioning`` trials of an arm do not count. ``spread`` an sd that only the
    variant has. ``flags``: a stall also raises a flag, as 2 % of all other trials do. ``binned``: the values are p99
    latencies as printed from fio's histogram. Cells are independent, the ``metrics`` of one cell are not."""

    noise: Disturbance
    change: float = 0.0
    stalls: float = 0.0
    depth: float = 0.0
    after_baseline: bool = False
    """The stalls are no arm's own: a trial of either arm stalls so after one of the baseline."""
    debt: float = 0.0
    memory: float = 0.0
    onto_baseline: bool = False
    """Only the baseline's trials find the debt."""
    superblocks: bool = False
    conditioning: int = 1
    spread: float = 0.0
    flags: bool = False
    binned: bool = False
    blocks: int = 80
    cells: int = 1
    metrics: int = 1
    margin: float = 0.02
    drawn: bool = False
    """Change and noise are drawn anew for every experiment: any change up to ``WIDEST``, any CV in ``CVS``."""
    begins: int = 0
    """The first block in which the change, or ``switched``, exists."""
    ends: int = 10**6
    """The first block in which it exists no longer."""
    switched: float = 0.0
    """A change of those of the variant's trials that follow one of the baseline."""
    runs: int = 1
    """Stalls come in so many trials of the variant in a row."""
    modes: float = 0.0
    """The variant runs at two speeds so far apart, each in half of its trials, with the baseline's mean."""
    session: float = 0.0
    """An sd of what is constant per arm in a session of the experiment (placement of the two builds)."""
    mirrored: bool = False
    """The orders of folders made before: one draw for two blocks, the second in the reverse order of the first."""

    def settled(self, rng: np.random.Generator) -> Setup:
        """Itself, or one of those that may be drawn: every log change and every order of magnitude of noise alike."""
        if not self.drawn:
            return self
        low, high = map(math.log, CVS)
        cv = math.exp(rng.uniform(low, high))
        change = math.expm1(rng.uniform(-1, 1) * math.log1p(WIDEST))
        return replace(self, noise=normal(cv), change=change, drawn=False)

    @property
    def repeats(self) -> int:
        """Trials of an arm in a row."""
        return 1 + self.conditioning if self.superblocks else 1

    @property
    def null(self) -> bool:
        """Whether the variant itself is equal to the baseline."""
        return self.change == 0 and (self.stalls == 0 or self.after_baseline) and not self.drawn and not self.modes

    @property
    def quiet(self) -> bool:
        """Whether every word of a change is a false one: what a trial leaves to the next one counts where deployed."""
        return self.null and not (self.superblocks and self.debt)

    @property
    def harmful(self) -> bool:
        """Whether the total changes for the worse."""
        return self.total > 0 if self.binned else self.total < 0

    @property
    def total(self) -> float:
        """The true change of all work done, in the value's own sign; with superblocks that of who deploys it."""
        skew = math.exp(self.spread**2 / 2)
        stalls = 0.0 if self.after_baseline else self.stalls
        return (1 + self.change) * (1 - stalls * self.depth) * skew * math.exp(self.deployed) - 1

    @property
    def deployed(self) -> float:
        """What carry-over adds for who deploys the variant, as a log-ratio; part of the truth in superblocks alone."""
        return math.log1p(-self.debt) / (1 - self.memory) if self.superblocks else 0.0

    def rules(self) -> Rules:
        """The rules it is judged by."""
        names = self.names()
        plan = Rules.for_blocks(self.blocks, names, margin=self.margin)
        return Rules(
            metrics=names,
            margin=self.margin,
            looks=LOOKS if self.blocks == LOOKS[-1] else plan.looks,
            family="holm",
            comparisons=self.cells,
            carry="superblocks" if self.superblocks else "tested",
            seed=ENGINE_SEED,
            order="mirrored" if self.mirrored else "independent",
        )

    def names(self) -> tuple[Metric, ...]:
        """Its metrics: IOPS first, unless its values are printed percentiles."""
        if self.binned:
            return (metric("read.lat.p99"),)
        return tuple(metric(name) for name in ("read.iops", "read.lat.mean", "read.lat.p99")[: self.metrics])


@dataclass(frozen=True)
class Cell:
    """The trials of one cell. ``machine`` has what the disturbance alone made of them, in run order."""

    first: Bools
    baseline: Floats
    variant: Floats
    stalled: Bools
    machine: Floats
    direct: Floats
    uncounted: Floats


def simulate(setup: Setup, rng: np.random.Generator) -> tuple[list[Series], list[Cell]]:
    """One experiment: the series to judge, cells by metrics, and the cells' trials."""
    cells = [_cell(setup, rng) for _ in range(setup.cells)]
    order = np.array([cell.first for cell in cells])
    series = []
    for place, cell in enumerate(cells):
        for name in setup.names():
            series.append(_series(setup, cell, place, name, order, rng))
    return series, cells


def _cell(setup: Setup, rng: np.random.Generator) -> Cell:
    """Trials in run order, two a block (more in superblocks: of each arm the last one counts)."""
    first = rng.random(setup.blocks) < 0.5
    if setup.mirrored:
        first[1::2] = ~first[: setup.blocks // 2 * 2 : 2]
    repeats = setup.repeats
    arm = np.repeat(np.column_stack([~first, first]).ravel(), repeats)
    machine = setup.noise(rng, len(arm))
    prone = ~np.concatenate([arm[:1], arm[:-1]]) if setup.after_baseline else arm
    stalled = prone & (rng.random(len(arm)) < setup.stalls)
    if setup.runs > 1:  # of the variant's own trials, in the order they run
        own = int(arm.sum())
        begin = setup.stalls / (setup.runs - (setup.runs - 1) * setup.stalls)
        lost, left_of = np.zeros(own, dtype=bool), 0
        # The run may begin in the middle of an episode.
        if rng.random() < setup.stalls:
            left_of = int(rng.integers(1, setup.runs + 1))
        for at in range(own):
            if not left_of and rng.random() < begin:
                left_of = setup.runs
            lost[at], left_of = left_of > 0, max(0, left_of - 1)
        stalled = np.zeros(len(arm), dtype=bool)
        stalled[arm] = lost
    left = exposures(arm, setup.memory, 0.0) * math.log1p(-setup.debt)
    if setup.onto_baseline:
        left = np.where(arm, 0.0, left)
    with np.errstate(divide="ignore"):
        block = np.arange(len(arm)) // (2 * repeats)
        there = arm & (block >= setup.begins) & (block < setup.ends)
        after = np.concatenate([[False], ~arm[:-1]])
        logs = machine + arm * setup.spread * rng.standard_normal(len(arm)) + there * math.log1p(setup.change)
        logs = logs + (there & after) * math.log1p(setup.switched)
        if setup.modes:
            logs = logs + arm * np.log1p(setup.modes / 2 * rng.choice([-1.0, 1.0], len(arm)))
        if setup.session:
            logs = logs + arm * setup.session * rng.standard_normal()
        logs = logs + np.where(stalled, np.log1p(-setup.depth), 0.0) + left
    rates = np.exp(logs).reshape(setup.blocks, 2, repeats)
    rows = np.arange(setup.blocks)
    old, new = rates[rows, np.where(first, 0, 1), -1], rates[rows, np.where(first, 1, 0), -1]
    middle = rates[:, 0, -1], rates[:, 1, 0]
    direct = np.column_stack([np.where(first, *middle), np.where(first, *middle[::-1])])
    lost = stalled.reshape(setup.blocks, 2, repeats)[rows, np.where(first, 1, 0), -1]
    uncounted = np.stack([rates[rows, np.where(first, at, 1 - at), :-1] for at in (0, 1)], axis=2)
    return Cell(first, old, new, lost, np.exp(machine), direct, uncounted)


def exposures(arm: Bools, memory: float, start: float) -> Floats:
    """How many trials of the variant ran before each trial, decayed by ``memory``."""
    found = np.empty(len(arm))
    now = start
    for at, variant in enumerate(arm.tolist()):
        found[at] = now
        now = memory * now + variant
    return found


def _series(setup: Setup, cell: Cell, place: int, name: Metric, order: Bools, rng: np.random.Generator) -> Series:
    """One metric of one cell. Cells take turns block by block, so a trial follows the last one of the cell before."""
    old, new, weights, resolution = _values(setup, cell, name, rng)
    repeats = setup.repeats
    begin = 2 * repeats * (np.arange(setup.blocks) * setup.cells + place)
    early, late = begin + repeats, begin + 2 * repeats
    first = order.T.ravel()
    arms = np.repeat(np.column_stack([~first, first]).ravel(), repeats)
    found = np.array([exposures(arms, memory, 0.5 / (1 - memory)) for memory in MEMORIES])
    turns = found.reshape(len(MEMORIES), setup.blocks, setup.cells, 2, repeats)[:, :, place, :, -1]
    one, other = turns[:, :, 0], turns[:, :, 1]
    old_after, new_after = np.where(cell.first, one, other), np.where(cell.first, other, one)
    return Series(
        f"cell {place}",
        name,
        "old",
        "new",
        tuple(range(setup.blocks)),
        tuple(old.tolist()),
        tuple(new.tolist()),
        tuple(cell.first.tolist()),
        tuple(np.where(cell.first, early, late).tolist()),
        tuple(np.where(cell.first, late, early).tolist()),
        baseline_weights=tuple(weights[0].tolist()) if weights else (),
        variant_weights=tuple(weights[1].tolist()) if weights else (),
        baseline_after=tuple(map(tuple, old_after.T.tolist())),
        variant_after=tuple(map(tuple, new_after.T.tolist())),
        direct=tuple(map(tuple, (1000 * cell.direct).tolist())) if setup.superblocks else (),
        uncounted=_pairs(1000 * cell.uncounted) if setup.superblocks else (),
        conditioning=setup.conditioning if setup.superblocks else 0,
        resolution=resolution,
        baseline_flags=_flags(np.zeros(setup.blocks, dtype=bool), rng) if setup.flags else (),
        variant_flags=_flags(cell.stalled, rng) if setup.flags else (),
    )


def _pairs(values: Floats) -> tuple[tuple[tuple[float, float], ...], ...]:
    """By block and trial the values of both arms."""
    return tuple(tuple((old, new) for old, new in block) for block in values.tolist())


def _values(
    setup: Setup, cell: Cell, name: Metric, rng: np.random.Generator
) -> tuple[Floats, Floats, tuple[Floats, Floats] | None, float]:
    """Both arms' values of a metric, the I/Os behind them, and what printing may have moved a difference by."""
    if setup.binned:
        base = 1e5 * 2 ** rng.random()
        old, half = printed(base * cell.baseline)
        new, other = printed(base * cell.variant)
        return old, new, None, float(np.median(half + other))
    if name.name == "read.iops":
        return 1000 * cell.baseline, 1000 * cell.variant, None, 0.0
    own = 0.002 if name.name == "read.lat.mean" else 0.01
    noise = np.exp(own * rng.standard_normal((2, setup.blocks)))
    return 1e9 / cell.baseline * noise[0], 1e9 / cell.variant * noise[1], (cell.baseline, cell.variant), 0.0


def printed(values: Floats) -> tuple[Floats, Floats]:
    """Latencies as fio prints percentiles: the middle of a bin, 64 bins to a power of two; and half the bins' log
    widths."""
    width = 2.0 ** (np.floor(np.log2(values)) - 6)
    low = np.floor(values / width) * width
    return low + width / 2, np.log((low + width) / low) / 2


def _flags(stalled: Bools, rng: np.random.Generator) -> tuple[tuple[str, ...], ...]:
    flagged = stalled | (rng.random(len(stalled)) < 0.02)
    return tuple((FLAG,) if one else () for one in flagged.tolist())


def typical_truth(setup: Setup) -> float:
    """The pseudo-median of the block log-ratios. Where both arms are disturbed alike, or symmetrically, it is the
    change itself; where the variant stalls, it is taken from a very long simulation."""
    deployed = math.log1p(setup.change) + setup.deployed
    if setup.stalls == 0:
        return math.expm1(deployed)
    rng = np.random.default_rng([LONG, round(1e6 * setup.stalls), round(1e6 * setup.depth)])
    cell = _cell(replace(setup, blocks=LONG), rng)
    with np.errstate(divide="ignore"):
        d = np.maximum(np.log(cell.variant / cell.baseline), math.log(1e-6))
    sums = [d + rng.permutation(d) for _ in range(20)]
    return math.expm1(float(np.median(np.concatenate(sums))) / 2)


def cut(series: Series, blocks: int) -> Series:
    """Its first ``blocks`` blocks."""
    columns = [name for name in Series.__struct_fields__ if isinstance(getattr(series, name), tuple)]
    return msgspec.structs.replace(series, **{name: getattr(series, name)[:blocks] for name in columns})
