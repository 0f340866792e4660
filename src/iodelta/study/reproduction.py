"""Two sides of one question: the changes measured there and here, and whether they are the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from iodelta.bundle.packed import Packed, is_own, opened
from iodelta.decoding import sound
from iodelta.errors import RequestError
from iodelta.lab.folder import Folder
from iodelta.stats.effect import Estimate, hodges_lehmann
from iodelta.stats.stalls import trials_needed
from iodelta.study.changed import refuse_changed
from iodelta.study.confounders import Differing, differences
from iodelta.study.experiment import Account
from iodelta.study.judging import judged
from iodelta.study.system import recorded_environment, system
from iodelta.verdict import Verdict
from iodelta.verdict.model import Change
from iodelta.verdict.reproduction import (
    STALLS,
    Estimand,
    Measured,
    Reproduction,
    blocks_needed,
    reproduced,
)

if TYPE_CHECKING:
    from iodelta.study.cell import Compared

FILE = "reproduction.json"
LEVEL = 0.95
"""Of both intervals. The level of the look that ended the measurement does not apply: this question is asked once."""

Basis = Literal["blocks", "replicates", "single runs"]


class Effect(msgspec.Struct, frozen=True):
    """One relative change of a typical trial (-0.02: 2 % less); a bound is None where there is no interval."""

    cell: str
    variant: str
    metric: str
    value: float
    low: float | None
    high: float | None
    n: int
    basis: Basis
    total: Change | None = None
    """The change of all work done, as the verdict has it; None where it is not known."""
    trials: int = 0
    """Trials of the variant behind it, in all cells; 0: ``n``."""
    stalled: int = 0
    """How many of these trials stalled."""
    withheld: str = ""
    """Why its own verdict was withheld: carry-over could have made the change. Empty where it was not."""

    @property
    def shown(self) -> bool:
        """Return whether zero is excluded, in a typical trial or in all work."""
        if self.total is not None and self.total.excludes_zero:
            return True
        # A one-sided interval does not exclude zero on both sides.
        if self.low is None or self.high is None:
            return False
        return self.low > 0.0 or self.high < 0.0

    @property
    def measured(self) -> Measured:
        """Both logarithms of variant over baseline."""
        total = None
        if self.total is not None:
            change = self.total
            total = _logarithm(
                change.value, change.low, change.high, change.level, self.n
            )
        return Measured(
            typical=_logarithm(self.value, self.low, self.high, LEVEL, self.n),
            total=total,
            trials=self.trials or self.n,
            stalled=self.stalled,
        )

    def of(self, estimand: Estimand) -> Estimate:
        """Return the logarithm of variant over baseline, of a typical trial or of all work."""
        return self.measured.of(estimand)


class Side(msgspec.Struct, frozen=True):
    """One side: where it stems from, and its changes."""

    name: str
    baseline: str
    effects: tuple[Effect, ...]
    """Its changes."""
    environment: dict[str, Any] = {}
    """What was recorded of the machine; empty where nothing was."""
    digest: str = ""
    """SHA-256 of a bundle."""
    question: str = ""

    @property
    def system(self) -> tuple[tuple[str, str], ...]:
        """Return what the machine was, in a few lines: name and value."""
        return system(sound(self.environment))


class Matched(msgspec.Struct, frozen=True):
    """One change on both sides."""

    there: Effect
    here: Effect
    found: Reproduction

    @property
    def scatter_known(self) -> bool:
        """Return whether both sides were measured more than once."""
        return "single runs" not in (self.there.basis, self.here.basis)

    @property
    def word(self) -> str:
        """Return the word, and whether it holds for the numbers as printed only."""
        if self.scatter_known:
            return self.found.word
        return f"{self.found.word}, as printed"


class Reproduced(msgspec.Struct, frozen=True):
    """Everything ``iodelta reproduce`` has to say."""

    schema: str
    there: Side
    here: Side
    margin: float
    matched: tuple[Matched, ...]
    """Changes that both sides have."""
    only_there: tuple[str, ...]
    """Changes that only ``there`` has."""
    only_here: tuple[str, ...]
    """Changes that only ``here`` has."""
    notes: tuple[str, ...]
    """What was mapped, and what was left out."""
    differing: tuple[Differing, ...]
    again: tuple[str, ...] = ()
    """Commands that do it again."""

    @property
    def exit_code(self) -> int:
        """0 all that was shown there holds, 1 something does not, 3 something is open (or a single run, which decides
        nothing), 4 nothing in common."""
        if not self.matched:
            return 4
        asked = [match for match in self.matched if match.found.asked]
        holds = {match.found.held if match.scatter_known else None for match in asked}
        if False in holds:
            return 1
        is_open = None in holds or bool(self.unanswered)
        return 3 if is_open or not asked else 0

    @property
    def unanswered(self) -> tuple[Effect, ...]:
        """Return the changes shown there that nothing here answers."""
        answered = [match.there for match in self.matched]
        shown = [effect for effect in self.there.effects if effect.shown]
        return tuple(effect for effect in shown if effect not in answered)


class Origin(msgspec.Struct, frozen=True):
    """``reproduction.json``: what a folder reproduces, so that it can be compared without the bundle."""

    there: Side
    margin: float
    notes: tuple[str, ...]
    plan_sha256: str
    """Of the folder that was packed."""
    commands_allowed: bool
    schema: str = "iodelta.reproduction-of/1"


def _logarithm(
    value: float, low: float | None, high: float | None, level: float, n: int
) -> Estimate:
    below = -math.inf if low is None or low <= -1.0 else math.log1p(low)
    return Estimate(
        value=math.log1p(value),
        low=below,
        high=math.inf if high is None else math.log1p(high),
        level=level,
        n=n,
    )


def _effect(verdict: Verdict) -> Effect | None:
    """Return the change of a verdict at ``LEVEL``; None without blocks, or if a trial did no I/O."""
    logs = [
        math.log1p(change)
        for change in verdict.changes
        if math.isfinite(change) and change > -1.0
    ]
    if not logs or len(logs) < len(verdict.changes):
        return None
    estimate = hodges_lehmann(logs, LEVEL)
    # Blocks were compared within a speed.
    if verdict.two_speeds and verdict.typical is not None:
        estimate = _logarithm(
            verdict.typical.value,
            verdict.typical.low,
            verdict.typical.high,
            LEVEL,
            estimate.n,
        )
    bounded = math.isfinite(estimate.low)
    total, stalls = verdict.total, verdict.stalls
    if total is not None and total.value <= -1.0:
        total = None
    return Effect(
        cell=verdict.cell,
        variant=verdict.variant,
        metric=verdict.metric.name,
        value=math.expm1(estimate.value),
        low=math.expm1(estimate.low) if bounded else None,
        high=math.expm1(estimate.high) if bounded else None,
        n=estimate.n,
        basis="blocks",
        total=total,
        trials=verdict.blocks if stalls is None else stalls.trials,
        stalled=0 if stalls is None else stalls.stalled,
        withheld=verdict.phrase if verdict.is_withheld else "",
    )


def side_at(path: str) -> Side:
    """Return the side at a path: a bundle, an experiment folder, or foreign results that hold two variants.

    Raises RequestError, MeasureError.
    """
    return own_side(opened(path)) if is_own(path) else foreign_side(path)


def own_side(folder: Folder, account: Account | None = None) -> Side:
    """Return the side of an experiment folder or a bundle, judged here if its account is not given.

    Raises MeasureError for a damaged or changed one.
    """
    environment = recorded_environment(folder)
    digest = folder.digest if isinstance(folder, Packed) else ""
    account = account or judged(folder).account
    refuse_changed(account.findings, str(folder.path))
    experiment = account.plan.experiment
    return Side(
        name=folder.path.name,
        baseline=experiment.baseline,
        effects=tuple(filter(None, map(_effect, account.judgement.verdicts))),
        environment=environment,
        digest=digest,
        question=experiment.question,
    )


def foreign_side(path: str) -> Side:
    """Results that iodelta did not measure, as one side: the changes that ``compare`` finds in them."""
    from iodelta.study.comparison import compare
    from iodelta.study.paths import read_one

    if not Path(path).exists():
        raise RequestError(
            "there is nothing at this path",
            place=path,
            remedy="name a bundle, a folder or results",
        )
    comparison = compare([read_one(path)], [path])
    effects = filter(None, map(_foreign_effect, comparison.compared))
    return Side(Path(path).name, comparison.baseline, tuple(effects))


def _foreign_effect(row: Compared) -> Effect | None:
    """Return the change of a row; None if it has none, or a side did no I/O."""
    if row.change is None or row.change.value <= -1.0:
        return None
    return Effect(
        cell=row.cell,
        variant=row.variant,
        metric=row.metric,
        value=row.change.value,
        low=_bound(row.change.low),
        high=_bound(row.change.high),
        n=min(row.runs),
        basis=row.basis,
        total=row.verdict.total if row.verdict is not None else None,
    )


def _bound(change: float) -> float | None:
    """Return the end of an interval; None if it has no logarithm."""
    if math.isfinite(change) and change > -1.0:
        return change
    return None


def origin_of(path: str) -> Origin | None:
    """Return what the folder or bundle at a path is a reproduction of, if it is one. Raises MeasureError."""
    if not is_own(path):
        return None
    folder = opened(path)
    return folder.read_struct(FILE, Origin) if folder.has(FILE) else None


def side_by_side(
    there: Side,
    here: Side,
    margin: float,
    notes: Sequence[str] = (),
    again: Sequence[str] = (),
) -> Reproduced:
    """Match the changes of both sides by cell, variant and metric, and judge whether each is the same.

    If each side has one cell, or one variant, its name does not matter: kernels and tables name one thing in many ways.
    """
    ours, theirs = _keyed(here, there), _keyed(there, here)
    differing: tuple[Differing, ...] = ()
    if there.environment and here.environment:
        differing = differences(there.environment, here.environment)
    matched = tuple(
        Matched(effect, ours[key], _unless_withheld(effect, ours[key], margin))
        for key, effect in theirs.items()
        if key in ours
    )
    return Reproduced(
        schema="iodelta.reproduction/1",
        there=there,
        here=here,
        margin=margin,
        matched=matched,
        only_there=tuple(
            _named(effect) for key, effect in theirs.items() if key not in ours
        ),
        only_here=tuple(
            _named(effect) for key, effect in ours.items() if key not in theirs
        ),
        notes=tuple(notes),
        differing=differing,
        again=tuple(again),
    )


def _unless_withheld(there: Effect, here: Effect, margin: float) -> Reproduction:
    """Return the word; inconclusive if carry-over could have caused the change on a side, since it would do so on both."""
    reproduction = reproduced(there.measured, here.measured, margin)
    why = there.withheld or here.withheld
    if not why or reproduction.held is not True:
        return reproduction
    side = "there" if there.withheld else "here"
    return msgspec.structs.replace(
        reproduction, word="inconclusive", says=f"{side}, {why}"
    )


def planned_blocks(there: Side, margin: float) -> int:
    """Blocks per cell that will probably measure the size of every change shown there, as far as that is known."""
    effects = there.effects
    cells = {effect.cell for effect in effects}
    blocks = [blocks_needed(effect.of("typical"), margin) for effect in effects]
    known = [count for count in blocks if count is not None]
    # To exclude rare stalls takes trials, and those of all cells count.
    trials = [
        trials_needed(STALLS, stalled=effect.stalled)
        for effect in effects
        if not effect.shown
    ]
    for_stalls = math.ceil(max(trials, default=0) / max(1, len(cells)))
    return max(*known, for_stalls, 0)


def _keyed(side: Side, other: Side) -> dict[tuple[str, str, str], Effect]:
    """Return the effects by what must be the same on both sides; a name that is the only one on each side is not
    compared.
    """
    one_cell = _count(side, "cell") == _count(other, "cell") == 1
    one_variant = _count(side, "variant") == _count(other, "variant") == 1
    keyed = {}
    for effect in side.effects:
        cell = "" if one_cell else effect.cell
        variant = "" if one_variant else effect.variant
        keyed[cell, variant, effect.metric] = effect
    return keyed


def _count(side: Side, what: str) -> int:
    return len({getattr(effect, what) for effect in side.effects})


def _named(effect: Effect) -> str:
    return ", ".join((effect.cell, effect.variant, effect.metric))


def counted(matched: Iterable[Matched]) -> dict[str, int]:
    """Word -> how often, of what was shown there; the most frequent first."""
    words = Counter(match.word for match in matched if match.found.asked)
    return dict(words.most_common())
