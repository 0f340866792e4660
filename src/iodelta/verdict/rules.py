"""Rules: what will be tested, when and how strictly, recorded and hashed before the first trial."""

from __future__ import annotations

import hashlib
import math
from typing import Literal

import msgspec

from iodelta.errors import RequestError
from iodelta.plural import plural
from iodelta.stats.replay import DRAWS, EXACT_COINS
from iodelta.stats.sequential import nominal_tails, pocock_share, schedule
from iodelta.trial import Finding
from iodelta.verdict.metrics import Metric

LOOKS = (9, 12, 16, 22, 26, 32, 40, 50, 64, 80)
"""Blocks at the usual looks. No look at 8: what may be spent by then (0.7 %, a tenth of alpha being in reserve) is less
than the smallest p value of 8 blocks (0.8 %). A change of 2 % at a noise of 2 % is to be found by 22 blocks: one of
them is a look."""

Family = Literal["each", "holm", "screen"]

CarryOver = Literal["tested", "superblocks", "ignored"]

FEWEST = 2
"""Directed claims are corrected for as if there were at least two: a single one is held to the two-sided level, so that
its interval excludes 0 as well."""

FEW = 1
"""Up to this many comparisons each is judged at the full level; beyond it the family is corrected for."""

MANY = 30
"""Beyond this many comparisons stage 1 saves more than its 12 blocks cost. (Where all cells change, or all are few,
Holm's correction on all blocks is the better bargain.)"""

KEPT = 0.3
"""Share of comparisons without a change that stage 1 keeps, 15 % each way; each metric is one of its own there."""

PROMISING = 0.1
"""Share of cells on which stage 2 goes on for long: the blocks saved on the others are theirs."""


class Screen(msgspec.Struct, frozen=True):
    """Stage 1 of a matrix: ``blocks`` blocks of every cell; comparisons with a one-sided p below ``keep`` go on to
    stage 2, which is judged on fresh blocks only. Cells in ``always`` go on regardless of stage 1."""

    blocks: int = 12
    keep: float = 0.15
    """One-sided p below which a comparison goes on to stage 2."""
    always: tuple[str, ...] = ()
    """Cells that go on to stage 2 regardless of stage 1."""


class Rules(msgspec.Struct, frozen=True):
    """The pre-registered rules of an experiment, complete: the same trials and rules always give the same words.

    ``margin`` is the relative change that matters (0.01 = 1 %). ``alpha`` bounds the chance of calling a change where
    there is none, both directions together, over all looks; ``reserve`` is the share of it kept for an extension.
    ``looks`` are the numbers of blocks at which the data are looked at, the last one the end. ``metrics`` are the
    primary ones, tested together as one in every cell and variant. ``comparisons`` is the planned number of cells
    times variants (0: count what the trials hold). ``family`` says how it is corrected for:

    - ``each``: every comparison at ``alpha``; for a single one, and in older plans.
    - ``holm``: a regression or improvement must survive Holm's correction over the family.
    - ``screen``: 12 blocks of every cell, then fresh blocks of the cells that show a sign of change, Holm over these.

    ``equivalent`` is a statement about one comparison and is made at ``alpha`` under every family. ``extension`` are
    looks added after the end (see ``extended``); they spend the reserve. ``seed`` drives the sign flips.
    """

    metrics: tuple[Metric, ...]
    """The primary ones."""
    margin: float = 0.01
    alpha: float = 0.05
    reserve: float = 0.1
    looks: tuple[int, ...] = LOOKS
    family: Family = "each"
    comparisons: int = 0
    screen: Screen = Screen()
    extension: tuple[int, ...] = ()
    seed: int = 0
    order: Literal["mirrored", "independent"] = "independent"
    """How the orders of blocks were drawn: each by itself, or (older plans) a block and its mirror image at once."""
    stalls: float = 0.1
    """``equivalent`` needs as many trials of the variant as exclude stalls in this share of its trials: more where some
    stalled."""
    carry: CarryOver = "tested"
    """``tested``: a word is withheld where carry-over could make it; ``superblocks``: every counted trial follows its
    own variant; ``ignored``: the workload leaves state and the experiment says that this does not matter."""

    def __post_init__(self) -> None:
        """Raises RequestError for rules that cannot be followed."""
        looks = self.looks + self.extension
        wrong = (
            (
                "the margin must lie between 0 and 1 (0.01 is 1 %)",
                not 0.0 < self.margin < 1.0,
            ),
            ("alpha must lie between 0 and 0.5", not 0.0 < self.alpha < 0.5),
            (
                "the reserve is a share of alpha, from 0 to below 1",
                not 0.0 <= self.reserve < 1.0,
            ),
            (
                "looks must be rising numbers of blocks",
                not self.looks or looks[0] < 1 or sorted(set(looks)) != [*looks],
            ),
            (
                "a metric is named twice",
                len({metric.name for metric in self.metrics}) != len(self.metrics),
            ),
            (
                "the screen needs at least one block and keeps p below a number between 0 and 0.5",
                self.screen.blocks < 1 or not 0.0 < self.screen.keep <= 0.5,
            ),
            ("the number of comparisons cannot be negative", self.comparisons < 0),
            (
                "stalls are a share of trials between 0 and 1 (0.1 is 10 %)",
                not 0.0 < self.stalls < 1.0,
            ),
        )
        for what, broken in wrong:
            if broken:
                raise RequestError(
                    what,
                    place="rules",
                    remedy="correct the design section of the experiment",
                )

    @classmethod
    def for_blocks(
        cls,
        max_blocks: int,
        metrics: tuple[Metric, ...],
        *,
        comparisons: int = 0,
        margin: float = 0.01,
        alpha: float = 0.05,
        reserve: float = 0.1,
        family: Family | None = None,
        always: tuple[str, ...] = (),
        seed: int = 0,
        stalls: float = 0.1,
        carry: CarryOver = "tested",
    ) -> Rules:
        """Rules for a budget that pays for ``max_blocks`` blocks of every cell.

        Looks end there (in a screen: where the blocks saved on dropped cells end) and start where a verdict becomes
        possible at all. Raises RequestError below one block; ``reachable`` says when no verdict can come of it.

        ``family`` is chosen from ``comparisons`` (cells x variants) when not given: holm for two or more, beyond 30
        screen where the budget allows two stages; holm, too, when the number is unknown.
        """
        screen = Screen(always=always)
        fresh = min(
            max(LOOKS[-1], max_blocks), round((max_blocks - screen.blocks) / PROMISING)
        )
        if family is None:
            kept = max(FEWEST, KEPT * comparisons * len(metrics))
            room = smallest_tail(fresh, 1) <= alpha * (1.0 - reserve) / kept
            family = (
                "each"
                if 0 < comparisons <= FEW
                else "screen"
                if comparisons > MANY and room
                else "holm"
            )
        last = max(1, fresh) if family == "screen" else max_blocks
        return cls(
            metrics=metrics,
            margin=margin,
            alpha=alpha,
            reserve=reserve,
            looks=_looks_up_to(last, alpha * (1.0 - reserve)),
            family=family,
            comparisons=comparisons,
            screen=screen,
            seed=seed,
            stalls=stalls,
            carry=carry,
        )

    @property
    def spendable(self) -> float:
        """Return the part of alpha that planned looks may spend: alpha x (1 - reserve)."""
        return self.alpha * (1.0 - self.reserve)

    @property
    def max_blocks(self) -> int:
        """Blocks per cell at the last planned look, the screen's included."""
        return (self.looks + self.extension)[-1] + (
            self.screen.blocks if self.family == "screen" else 0
        )

    def extended(self, max_blocks: int) -> Rules:
        """These rules with one more look, at ``max_blocks`` blocks per cell, that spends the reserve.
        Raises RequestError when nothing is left in reserve, or no blocks are added."""
        if self.reserve <= 0.0:
            raise RequestError(
                "no alpha was kept in reserve for an extension",
                place="rules",
                remedy="start a new experiment: more looks at these data would no longer hold the level",
            )
        if max_blocks <= self.max_blocks:
            raise RequestError(
                f"an extension must go beyond the {plural(self.max_blocks, 'block')} already planned",
                place="rules",
                remedy="give a larger number of blocks or a larger budget",
            )
        before = self.screen.blocks if self.family == "screen" else 0
        return msgspec.structs.replace(
            self, extension=(*self.extension, max_blocks - before)
        )

    @property
    def smallest_p(self) -> float:
        """Return the smallest two-sided p value that the planned blocks can reach: 2 x 2^-n."""
        return 2.0 * 0.5 ** (self.looks + self.extension)[-1]

    def reachable(self, *, equivalence: bool = True) -> Finding | None:
        """None when a verdict can be reached; else why not and how many blocks it takes, to be shown before a start.

        ``equivalence``: whether the trials are planned that it needs beyond its blocks.
        """
        if self._can_change():
            return None
        equal, have = smallest_blocks(self.spendable), (self.looks + self.extension)[-1]
        longer = (
            msgspec.structs.replace(self, looks=_looks_up_to(n, self.spendable))
            for n in range(1, 10 * MANY)
        )
        needed = next(
            (rules.looks[-1] for rules in longer if rules._can_change()), 10 * MANY
        )
        # The cells that stage 1 drops pay for stage 2.
        if self.family == "screen":
            needed = self.screen.blocks + math.ceil(PROMISING * needed)
        none = have < equal or not equivalence
        what = "a verdict" if none else "a regression or improvement, only equivalence"
        return Finding(
            "verdict.too-few-blocks",
            "hard" if none else "warning",
            "rules",
            f"{plural(have, 'block')} can never give {what}",
            f"use at least {needed}: a larger --budget, more --blocks, a shorter --trial or fewer cells",
        )

    def _can_change(self) -> bool:
        """Return whether some planned look can show a change at all: every block as clear as can be, in every metric
        alike.
        """
        screened = self.family == "screen"
        claims = 2.0 * (self.comparisons if self.family == "holm" else 1)
        if screened:  # each metric is kept, and corrected for, by itself
            claims = KEPT * self.comparisons * len(self.metrics)
        alpha, metrics = (
            self.alpha / max(FEWEST, claims),
            1 if screened else len(self.metrics),
        )
        plan = schedule(self.looks, reserve=self.reserve)
        before = 0.0
        least = [smallest_tail(blocks, metrics) for blocks in plan.blocks]
        for share, tail in zip(plan.shares, least, strict=True):
            # A look's level is at least what it spends; a plan asks this, so it is quick.
            if tail <= alpha * (share - before):
                return True
            before = share
        if min(least) > alpha * plan.shares[-1] * (1 + 1e-9):
            return False
        return any(
            tail <= level * (1 + 1e-9)
            for tail, level in zip(least, nominal_tails(plan, alpha), strict=True)
        )

    def digest(self) -> str:
        """SHA-256 over the rules' JSON: what the folder records before the first trial."""
        return hashlib.sha256(
            msgspec.json.encode(self, order="deterministic")
        ).hexdigest()


def smallest_blocks(alpha: float) -> int:
    """Fewest blocks whose smallest two-sided p value, 2 x 2^-n, is within ``alpha``: 6 at 4 or 5 %."""
    return max(1, math.ceil(math.log2(2.0 / alpha) - 1e-9))


def smallest_tail(blocks: int, metrics: int) -> float:
    """Return the smallest one-sided p value that ``blocks`` blocks can reach, corrected for both estimands of
    ``metrics`` metrics that are tested together: beyond the blocks whose patterns are all replayed, correction costs something."""
    alone = 0.5**blocks
    if blocks <= EXACT_COINS:
        return alone
    return min(2 * metrics * alone, max(alone, 1.0 / (DRAWS + 1)))


def _looks_up_to(last: int, alpha: float) -> tuple[int, ...]:
    """Looks ending at ``last``: the first where its share of alpha allows a verdict, then the usual ones (each a
    quarter further on beyond 80), none in the last tenth before the end."""
    if last < 1:
        raise RequestError(
            "the budget is too short for one block",
            place="rules",
            remedy="give a larger budget",
        )
    usual = [*LOOKS]
    while usual[-1] < last:
        usual.append(round(usual[-1] * 1.25))
    first = next(
        (
            n
            for n in range(1, last)
            if n >= smallest_blocks(alpha * pocock_share(n / last))
        ),
        last,
    )
    return (
        *([first] if first < last else []),
        *(n for n in usual if first + 2 <= n <= 0.9 * last),
        last,
    )
