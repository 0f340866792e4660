"""Family: which comparisons are tested, at what level, on which blocks, and which words survive Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from iodelta.stats.effect import tails_rows
from iodelta.stats.families import benjamini_hochberg
from iodelta.stats.sequential import Schedule, schedule, sequential_p
from iodelta.verdict.decide import Claim, Trace
from iodelta.verdict.model import Step, Word
from iodelta.verdict.rules import FEWEST, Rules, smallest_blocks
from iodelta.verdict.units import Units

Standing = Literal["tested", "screening", "dropped"]

NO_LOOKS = Schedule((), ())

HOPE = 0.25
"""In stage 2 of a screen a comparison whose one-sided p is not below this waits for those that lean more clearly."""

PATIENCE = 4
"""Blocks by which a cell may lag before stage 1 of a screen ends without it."""


@dataclass(frozen=True)
class Job:
    """One comparison as it will be replayed: its units from ``offset`` on, and where a screen has put it."""

    unit: Units
    claim: Claim
    offset: int = 0
    standing: Standing = "tested"


@dataclass(frozen=True)
class Outcome:
    """The result of a comparison within the family; ``at`` is the look that its word stems from, -1 for none."""

    word: Word
    at: int
    step: Step
    p_looks: float | None
    p_family: float | None
    q: float | None
    promoted: bool = False


def plan_of(rules: Rules, ended: Sequence[int]) -> Schedule:
    """Return the looks of one comparison; an early end at which no verdict was possible has spent nothing."""
    least = smallest_blocks(rules.spendable)
    return schedule(
        rules.looks,
        reserve=rules.reserve,
        extension=rules.extension,
        ended=tuple(n for n in ended if n >= least),
    )


def one_look(blocks: int, share: float) -> Schedule:
    """Return a single look at ``blocks`` blocks that spends ``share`` of alpha; none where there are no blocks."""
    return Schedule((blocks,), (share,)) if blocks else NO_LOOKS


def jobs_of(
    units: Sequence[Units], rules: Rules, ended: Sequence[int] = ()
) -> tuple[list[Job], int | None]:
    """Return how each comparison is tested under ``rules.family``, and the number of directed claims a screen kept
    (None without a screen, or before its first stage is complete). ``ended`` are trial numbers."""
    if rules.family == "screen":
        return _screened(units, rules, ended)
    size = (
        1 if rules.family == "each" else max(rules.comparisons, questions_of(units), 1)
    )
    return [
        Job(unit, Claim(plan_of(rules, unit.ended), rules.alpha / (2 * size)))
        for unit in units
    ], None


def questions_of(units: Sequence[Units]) -> int:
    """Cells times variants: the metrics of one cell and variant are tested together, as one."""
    return len({(unit.cell, unit.variant) for unit in units})


def stage_1_end(units: Sequence[Units], rules: Rules) -> float:
    """Return the trial number that completes stage 1: every comparison's cell has run the screen's blocks, or was left
    behind (given up, it seems) while another ran ``PATIENCE`` more. Infinite while it lasts."""
    first = rules.screen.blocks
    given_up = min([math.inf, *(_finish(unit, first + PATIENCE) for unit in units)])
    asked = (
        questions_of(units) if rules.order == "independent" else len(units)
    )  # older plans counted metrics, too
    unseen = [given_up] if asked < max(rules.comparisons, 1) else []
    return max(
        [
            0.0,
            *unseen,
            *(
                min(_finish(unit, first), given_up)
                for unit in units
                if not unit.forever
            ),
        ]
    )


def signs_of(units: Sequence[Units], rules: Rules) -> list[tuple[float, float]]:
    """Return one-sided p values (worse, better) of each comparison on stage 1 of a screen alone; 1 where it
    shows nothing because there is no value, or its cell was left behind."""
    first, end = rules.screen.blocks, stage_1_end(units, rules)
    signs = []
    for unit in units:
        count = unit.before(first)
        if (
            not count
            or not np.isfinite(unit.d[:count]).all()
            or _finish(unit, first) > end
        ):
            signs.append((1.0, 1.0))
        else:
            above, below = tails_rows(unit.d[None, :count], 0.0)
            signs.append((float(above[0]), float(below[0])))
    return signs


def _finish(unit: Units, blocks: int) -> float:
    return unit.finished[blocks - 1] if len(unit.finished) >= blocks else math.inf


def _screened(
    units: Sequence[Units], rules: Rules, ended: Sequence[int]
) -> tuple[list[Job], int | None]:
    first = rules.screen.blocks
    stage_1 = stage_1_end(units, rules)
    cut_short = next((number for number in sorted(ended) if number < stage_1), None)
    if cut_short is not None:
        # The budget ended in stage 1, so no fresh blocks will come: one look at the blocks so far, Holm over
        # the whole family.
        alpha = rules.alpha / (2 * max(rules.comparisons, len(units)))
        parts = [unit.part(0, unit.until(cut_short)) for unit in units]
        return (
            [
                Job(part, Claim(one_look(len(part.d), 1.0 - rules.reserve), alpha))
                for part in parts
            ]
        ), None
    if math.isinf(stage_1):
        return [
            Job(unit, Claim(NO_LOOKS, 0.0), standing="screening") for unit in units
        ], None
    directions = list(_directions(units, rules))
    kept = sum(worse + better for worse, better in directions)
    jobs = []
    for unit, (worse, better) in zip(units, directions, strict=True):
        if worse or better:
            start = unit.before(first)
            fresh = unit.part(start)
            claim = Claim(
                plan_of(rules, fresh.ended),
                rules.alpha / max(kept, FEWEST),
                worse,
                better,
            )
            jobs.append(Job(fresh, claim, start))
        else:
            jobs.append(
                Job(
                    unit,
                    Claim(plan_of(rules, unit.ended), 0.0, False, False),
                    standing="dropped",
                )
            )
    return jobs, kept


def _directions(units: Sequence[Units], rules: Rules) -> Iterator[tuple[bool, bool]]:
    """Yield whether stage 1 keeps each comparison as perhaps worse, and as perhaps better."""
    for unit, sign in zip(units, signs_of(units, rules), strict=True):
        worse, better = (p < rules.screen.keep for p in sign)
        both = unit.cell in rules.screen.always and not worse and not better
        yield worse or both, better or both


def _carries(p_family: float, job: Job, trace: Trace, rules: Rules) -> bool:
    """Return whether Holm's later, less strict steps give an exhausted comparison the word that it has alone."""
    open_ = not trace.settled and trace.exhausted
    return (
        open_
        and rules.family != "each"
        and p_family <= rules.alpha
        and (
            (trace.alone == "regression" and job.claim.worse)
            or (trace.alone == "improvement" and job.claim.better)
        )
    )


def resolve(
    jobs: Sequence[Job], traces: Sequence[Trace], rules: Rules
) -> list[Outcome]:
    """Words after Holm's correction (see ``Rules.family``). p values of all looks go into it, as sequential p values.

    A comparison whose looks are used up may still be carried by Holm's later steps, which are less strict than the
    level it was tested at. Under ``each`` the corrected p is printed next to the word and does not change it.
    """
    directed = rules.family == "screen" and any(
        job.standing == "dropped" or job.offset for job in jobs
    )
    best = _corrected(jobs, traces, rules, directed=directed)
    outcomes = []
    for row, (job, trace) in enumerate(zip(jobs, traces, strict=True)):
        p_looks, p_family, q = best.get(row, (None, None, None))
        word, at, promoted = trace.word, trace.at, False
        if p_family is not None and _carries(p_family, job, trace, rules):
            word, at, promoted = trace.alone, trace.alone_at, True
        outcomes.append(
            Outcome(word, at, _step(job, trace, word), p_looks, p_family, q, promoted)
        )
    return _by_promise(jobs, traces, outcomes) if directed else outcomes


Corrected = dict[int, tuple[float, float, float]]
"""By row: p over all looks, after Holm's correction, and the Benjamini-Hochberg q."""


def _corrected(
    jobs: Sequence[Job], traces: Sequence[Trace], rules: Rules, *, directed: bool
) -> Corrected:
    """Holm over cells and variants; within one, the p values of its metrics are already corrected for each other.

    ``directed``: after a screen, over the claims that it kept. Stage 1 fixed the directions on other blocks, so each
    claim is one-sided and a question of its own.
    """
    asked: list[tuple[object, int, float]] = []
    for row, sides in enumerate(_sequential(jobs, traces)):
        job = jobs[row]
        if not traces[row].above or job.standing != "tested":
            continue
        may = (job.claim.worse, job.claim.better)
        if directed:
            asked += [((row, at), row, sides[at]) for at in (0, 1) if may[at]]
        else:
            p = min(1.0, 2.0 * min(sides))
            asked.append(((job.unit.cell, job.unit.variant), row, p))
    size = max(rules.comparisons, questions_of([job.unit for job in jobs]))
    if directed:
        kept = sum(job.claim.worse + job.claim.better for job in jobs)
        size = max(kept, FEWEST)
    q = benjamini_hochberg(np.array([p for _, _, p in asked])).tolist()
    questions: dict[object, list[tuple[float, int, float]]] = {}
    for (question, row, p), listed in zip(asked, q, strict=True):
        questions.setdefault(question, []).append((p, row, listed))
    best: Corrected = {}
    before = 0.0
    # Holm's step down (1979): the smallest p counts ``size`` times, the next once less, and no p may be below the one
    # before.
    for place, members in enumerate(sorted(questions.values(), key=min)):
        adjusted = [min(1.0, max(before, (size - place) * p)) for p, _, _ in members]
        for (p, row, listed), p_family in zip(members, adjusted, strict=True):
            if row not in best or p < best[row][0]:
                best[row] = (p, p_family, listed)
        before = min(adjusted)
    return best


def _step(job: Job, trace: Trace, word: Word) -> Step:
    if word != "inconclusive":
        return "decided"
    if job.unit.forever:
        return "exhausted"
    more = job.standing == "screening" or any(
        n > len(job.unit.d) for n in job.claim.plan.blocks
    )
    return "continue" if more else "exhausted"


def _turn(job: Job, trace: Trace, outcome: Outcome) -> float:
    """Return which comparisons get the next blocks: the lowest first; infinite for those that need none."""
    if outcome.step != "continue":
        return math.inf
    if job.standing == "dropped":
        return 2.0
    lean = [
        p
        for p, may in ((trace.above, job.claim.worse), (trace.below, job.claim.better))
        if may and p
    ]
    return float(bool(lean) and min(p[-1] for p in lean) >= HOPE)


def _by_promise(
    jobs: Sequence[Job], traces: Sequence[Trace], outcomes: list[Outcome]
) -> list[Outcome]:
    """Stage 2 spends the budget where it matters: kept comparisons that still lean in their direction go first, then
    those that no longer do, then what stage 1 dropped (which can still become equivalent). The others wait."""
    ranks = list(map(_turn, jobs, traces, outcomes))
    now = min(ranks, default=math.inf)
    return [
        replace(outcome, step="waiting") if now < rank < math.inf else outcome
        for outcome, rank in zip(outcomes, ranks, strict=True)
    ]


def _sequential(
    jobs: Sequence[Job], traces: Sequence[Trace]
) -> list[tuple[float, float]]:
    """Return one-sided sequential p values (worse, better) of each comparison."""
    p_values = [(1.0, 1.0)] * len(jobs)
    groups: dict[Schedule, list[int]] = {}
    for row, trace in enumerate(traces):
        if trace.above:
            groups.setdefault(trace.claim.plan, []).append(row)
    for plan, rows in groups.items():
        tails = np.full(
            (2, len(rows), max(len(traces[row].above) for row in rows)), np.nan
        )
        for at, row in enumerate(rows):
            tails[0, at, : len(traces[row].above)] = traces[row].above
            tails[1, at, : len(traces[row].below)] = traces[row].below
        above, below = sequential_p(plan, tails[0]), sequential_p(plan, tails[1])
        for at, row in enumerate(rows):
            p_values[row] = (float(above[at]), float(below[at]))
    return p_values
