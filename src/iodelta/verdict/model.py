"""Verdict and Judgement: the results of judging, JSON-encodable and without NaN."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from iodelta.stats.effect import Estimate
from iodelta.trial import Finding
from iodelta.verdict.metrics import Metric
from iodelta.verdict.rules import Rules

Word = Literal["regression", "improvement", "equivalent", "inconclusive"]
Basis = Literal["typical", "total"]
"""The estimand that a word rests on."""
Step = Literal["continue", "waiting", "decided", "exhausted"]

LARGEST = 700.0
"""Log-ratios beyond this have no ratio in a double."""


def relative(log_ratio: float) -> float:
    """exp(x) - 1; of a finite x at most what a double holds."""
    return math.expm1(
        min(log_ratio, LARGEST) if math.isfinite(log_ratio) else log_ratio
    )


class Change(msgspec.Struct, frozen=True):
    """A relative change of the metric itself (-0.02: 2 % less), with the interval at ``level``; a bound is None where
    the blocks do not suffice for one at that level."""

    value: float
    low: float | None
    high: float | None
    level: float

    @property
    def excludes_zero(self) -> bool:
        """Return whether the interval does."""
        return (self.low is not None and self.low > 0.0) or (
            self.high is not None and self.high < 0.0
        )


def change_of(worse: Estimate, metric: Metric) -> Change:
    """Return a log-ratio that is positive when worse as relative change of the metric itself; infinite ends become
    None."""
    value, ends = worse.value, (worse.low, worse.high)
    if metric.better == "higher":
        value, ends = -value, (-worse.high, -worse.low)
    low, high = (relative(end) if math.isfinite(end) else None for end in ends)
    return Change(relative(value), low, high, worse.level)


class Needed(msgspec.Struct, frozen=True):
    """Blocks in all that an open comparison will probably need: the median over replayed futures, and a range that
    holds ``share`` of them, as near to 60 % as the looks allow. ``high`` is None where the range reaches beyond the
    planned looks, ``blocks`` where half of the futures do."""

    blocks: int | None
    low: int
    high: int | None
    share: float


class Carry(msgspec.Struct, frozen=True):
    """What a trial of the variant leaves to the trial after it, as a relative change of the metric (with its interval),
    and the change of the variant without the part that it had in it."""

    change: Change
    adjusted: float


class Stalls(msgspec.Struct, frozen=True):
    """Trials of this cell that stalled, by number, and the share of stalls that ``trials`` trials of the variant do not
    exclude."""

    variant: tuple[int, ...]
    baseline: tuple[int, ...]
    trials: int
    """Trials of the variant up to the look, those of other cells too; of this cell alone where some stalled here and
    that leaves more open."""
    not_excluded: float
    """Upper bound (95 %, 99 % after one episode, 99.5 % after two) of the share of its trials that stall: of single
    stalls where none was seen, else in episodes as long as the longest seen."""
    stalled: int = 0
    """Episodes of stalls among ``trials``: a stall directly after a stall of the variant continues one."""
    longest: int = 0
    """Trials of the longest episode; 0 where none stalled."""


class Flags(msgspec.Struct, frozen=True):
    """How many trials of each variant one rule flagged as disturbed, and Fisher's exact p value (two-sided) that the
    variants are flagged alike."""

    rule: str
    baseline: int
    variant: int
    trials: int
    """Trials of each variant."""
    p: float


class Course(msgspec.Struct, frozen=True):
    """The stretch of blocks in which a change differs from the rest of the run."""

    first: int
    """Its first block, as numbered in the run, from 0."""
    last: int
    """Its last block."""
    starts: bool
    """Whether the stretch holds the first block of the run."""
    ends: bool
    """Whether it holds the last one."""
    inside: float
    """The relative change there."""
    outside: float
    """The relative change in all other blocks."""
    p: float
    """The p value of a change that is the same throughout."""
    since: float | None = None
    """When the stretch began, or, where it holds the first block, when it ended: seconds since 1970."""


class Look(msgspec.Struct, frozen=True):
    """One look at the data: the ``index``-th (0 first), at ``blocks`` blocks, at two-sided nominal level ``alpha``;
    ``last`` when no look follows; unplanned when a budget ran out between two looks."""

    index: int
    blocks: int
    alpha: float
    last: bool
    planned: bool = True
    """False when a budget ran out between two looks."""


class Verdict(msgspec.Struct, frozen=True):
    """What one comparison says, and everything needed to explain it. No NaN: what is unknown is None.

    ``word`` is what reports and exit codes use; ``alone`` is the word that this comparison would have as the only one
    (they differ only where the family was corrected for). ``step`` says whether more blocks could decide it;
    ``waiting``: they could, but are better spent elsewhere first.
    """

    cell: str
    metric: Metric
    baseline: str
    variant: str
    word: Word
    phrase: str
    alone: Word
    step: Step
    blocks: int
    """All complete blocks measured (boot pairs where boots are the unit); ``look`` has those of the word."""
    look: Look | None
    """The look this word stems from; None before the first."""
    next_look: int | None
    """Complete blocks of the cell at which the next look will be taken; None when there is none."""
    baseline_value: float | None
    """As measured over ``blocks``, in the metric's unit: the ``central`` value."""
    variant_value: float | None
    """As measured over the same blocks."""
    central: Literal["median", "mean"]
    """``mean`` where some comparison of the metric rests on the total; the same for all rows of a table."""
    change: Change | None
    """The change that the word rests on, from all blocks: typical, total, or in superblocks deployed."""
    basis: Basis
    """Whether ``change`` is the one of a typical trial or of all work done."""
    apart: str
    """Why ``change`` is not exactly the ratio of the two values; empty where it is."""
    corrected: float | None
    """The typical change, median-unbiased for having stopped at a look: by stagewise ordering."""
    typical: Change | None
    """Typical change: Hodges-Lehmann estimate of the block log-ratios, signed-rank interval."""
    total: Change | None
    """Total change: ratio of the sums over blocks (of a latency: over I/Os), interval by swapping arms."""
    carry: Carry | None
    """Carry-over as estimated from the orders; None where they do not tell."""
    direct: Change | None
    """In superblocks: the change between neighbouring trials that followed the same variant."""
    deployed: Change | None
    """In superblocks: the change once the variant's state is reached, under every memory; None where the interval of
    the typical change holds that, too. Its value is the change as measured."""
    stalls: Stalls | None
    course: Course | None
    """The stretch of blocks in which the change differs from the rest; None where it is the same throughout."""
    flagged: int
    """Blocks with a trial that was flagged as disturbed."""
    flags: tuple[Flags, ...]
    """By rule, the flagged trials of each variant."""
    unflagged: Change | None
    """The typical change without these blocks: how sensitive the answer is to them, never the answer."""
    two_speeds: bool
    """Whether the machine ran at two speeds, and blocks were compared within a speed."""
    smallest_p: float | None
    """The smallest two-sided p value that this number of draws can reach."""
    sd: float | None
    """Standard deviation of the block log-ratios."""
    p: float | None
    """Two-sided p value at this look alone, of the estimand that shows more, corrected for both estimands and for all
    metrics of the cell."""
    p_looks: float | None
    """Two-sided signed-rank p value over all looks taken: the alpha at which this sequence would just have decided.
    One-sided after a screen, which fixed the direction on other blocks."""
    p_family: float | None
    """``p_looks`` after Holm's correction over the family."""
    q: float | None
    """Benjamini-Hochberg q value over the family, for lists."""
    needed: Needed | None
    """Blocks an open comparison needs; None when decided or unknown."""
    reachable_margin: float | None
    """The margin that the planned blocks can settle, when ``needed`` exceeds them."""
    open_share: float | None
    """Share of the replayed futures in which no planned look decides; None where none were replayed."""
    rule: str
    """The rule that fired, with its numbers."""
    would_change: str
    """What would have to be different for another word."""
    block_numbers: tuple[int, ...]
    changes: tuple[float, ...]
    """Relative change of each block in the metric's own sign."""
    baseline_first: tuple[bool, ...]
    findings: tuple[Finding, ...] = ()
    idle: tuple[tuple[int, ...], ...] = ()
    """By block the numbers of its trials that did no I/O of this kind, so that its change is no size but the worst (or
    best) rank; empty where all did some."""

    @property
    def is_withheld(self) -> bool:
        """Return whether carry-over took a word back."""
        return self.word == "inconclusive" and " is withheld: " in self.phrase

    @property
    def stopped(self) -> int:
        """Blocks up to the look that the word stems from; all where there was none."""
        return self.look.blocks if self.look is not None else self.blocks

    @property
    def estimand(self) -> str:
        """Return what ``change`` is: ``typical``, ``total`` or ``deployed``."""
        return "deployed" if self.change == self.deployed is not None else self.basis


class FamilySummary(msgspec.Struct, frozen=True):
    """How the family was handled: comparisons in it, those the screen kept (None without a screen or before its end),
    regressions and improvements among the words, and the binomial p of their balance (None when there are none)."""

    handling: str
    comparisons: int
    kept: int | None
    regressions: int
    improvements: int
    balance_p: float | None


class Judgement(msgspec.Struct, frozen=True):
    """All verdicts of an experiment."""

    rules: Rules
    verdicts: tuple[Verdict, ...]
    """One per cell, variant and metric."""
    family: FamilySummary
    findings: tuple[Finding, ...] = ()

    def of(self, cell: str) -> tuple[Verdict, ...]:
        """Return the verdicts of one cell."""
        return tuple(verdict for verdict in self.verdicts if verdict.cell == cell)
