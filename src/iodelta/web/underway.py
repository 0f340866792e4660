"""What is known of an experiment that goes on: its document, its line, and the picture of each comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from iodelta.plural import plural
from iodelta.report.stories.underway import SETTLED
from iodelta.study.words import duration, metric_name
from iodelta.trial import Trial
from iodelta.verdict import Judgement, Metric, Verdict, next_step
from iodelta.verdict.series import blocks_of, pairs_of

WIDTH, HEIGHT = 360, 110
"""Of the picture of a comparison."""

Pair = tuple[str, str]
"""Cell and variant."""

Interval = tuple[int, float, float]
"""A number of blocks, and the ends of the interval that they gave."""


class Comparison(msgspec.Struct, frozen=True):
    """One cell and variant, as the progress line of the run would say it: no word before its look."""

    cell: str
    variant: str
    metric: str
    """The first that is decided on; the others have their words below."""
    blocks: int
    value: float | None
    """Change so far, as a share."""
    low: float | None
    high: float | None
    noise: float | None
    """Standard deviation of the blocks' log-ratios."""
    looks: int
    """Taken until now."""
    looked_at: int
    """Blocks at the last of them; 0 before the first."""
    next_look: int | None
    words: tuple[tuple[str, str], ...]
    """Metric and word, once all that the cell was measured for is settled; empty before."""
    waiting: bool
    """It could go on, but other cells make better use of the time."""
    each: tuple[float, ...]
    """The change in every block."""
    course: tuple[Interval, ...]
    """The interval after so many blocks; of a long run not after each of them."""


class Underway(msgspec.Struct, frozen=True):
    """An experiment that goes on."""

    experiment: str
    line: int
    """Lines of its journal that this rests on."""
    state: str
    """``running``, or how it ended."""
    writing: bool
    """Whether an iodelta of this machine writes to the folder."""
    question: str
    baseline: str
    margin: float
    block: int
    """That is being made, 1 first; 0 before the first."""
    most: int
    """Blocks of a cell, at most."""
    trial: str
    """Cell and variant that are being measured; empty between trials."""
    trials: int
    """Finished."""
    repeated: int
    """Blocks that were repeated."""
    spent: float
    """Seconds."""
    budget: float
    """Seconds."""
    cells: int
    decided: int
    ahead: str = ""
    """What is to come, as the run itself says it."""
    left: float | None = None
    """Seconds that it expects to take still."""
    warning: str = ""
    abandoned: dict[str, str] = {}
    comparisons: tuple[Comparison, ...] = ()
    pending: bool = False
    """A newer round waits to be judged."""
    schema: str = "iodelta.web-live/1"


def comparisons(
    judgement: Judgement,
    metrics: Sequence[Metric],
    counted: Sequence[Trial],
    courses: Mapping[Pair, tuple[Interval, ...]],
) -> tuple[Comparison, ...]:
    """Return all comparisons of a judgement, the open ones first; ``counted`` are the trials that it rests on."""
    with_kind = len({metric.kind for metric in metrics}) > 1
    groups = [(verdicts, next_step(verdicts)) for verdicts in comparisons_of(judgement)]
    groups.sort(key=lambda group: group[1] in SETTLED)
    made = []
    for verdicts, step in groups:
        first = verdicts[0]
        change, look = first.change, first.look
        words = {
            metric_name(verdict.metric, with_kind=with_kind): verdict.word
            for verdict in verdicts
        }
        blocks = blocks_of(trial for trial in counted if trial.cell == first.cell)
        pairs = pairs_of(blocks, first.metric, first.baseline, first.variant)
        looks = [
            verdict.next_look for verdict in verdicts if verdict.next_look is not None
        ]
        made.append(
            Comparison(
                cell=first.cell,
                variant=first.variant,
                metric=next(iter(words)),
                blocks=first.blocks,
                value=change.value if change else None,
                low=change.low if change else None,
                high=change.high if change else None,
                noise=first.sd,
                looks=0 if look is None else look.index + 1,
                looked_at=0 if look is None else look.blocks,
                next_look=min(looks, default=None),
                words=tuple(words.items()) if step in SETTLED else (),
                waiting=step == "waiting",
                each=tuple(new / old - 1.0 for old, new in pairs if old > 0.0),
                course=courses.get((first.cell, first.variant), ()),
            )
        )
    return tuple(made)


def comparisons_of(judgement: Judgement) -> list[tuple[Verdict, ...]]:
    """Return the verdicts of each cell and variant."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in judgement.verdicts:
        groups.setdefault((verdict.cell, verdict.variant), []).append(verdict)
    return [tuple(own) for own in groups.values()]


def progress(known: Underway) -> str:
    """Return how far it is, as the run's own line says it."""
    if not known.block:
        return "no trial yet"
    block = f"block {known.block} of at most {known.most}"
    decided = f"{known.decided} of {plural(known.cells, 'cell')} decided"
    return ", ".join(
        filter(None, (block, decided, f"{duration(known.spent)} spent", known.ahead))
    )


def course_of(comparison: Comparison, most: int, margin: float) -> Mapping[str, object]:
    """Return the picture of a comparison: blocks from left to right, the interval around its change, the margin as a
    band.
    """
    ends: list[float] = []
    for _, low, high in comparison.course[-3:]:
        ends += [abs(low), abs(high)]
    all_but_largest = sorted(map(abs, comparison.each))[:-1]
    reach = 1.15 * max([2 * margin, *ends, *all_but_largest])

    def x(block: float) -> float:
        return round(WIDTH * block / (most + 1), 1)

    def y(change: float) -> float:
        return round(HEIGHT / 2 * (1 - min(1.0, max(-1.0, change / reach))), 1)

    upper = [(x(blocks), y(high)) for blocks, _, high in comparison.course]
    lower = [(x(blocks), y(low)) for blocks, low, _ in reversed(comparison.course)]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "band": (y(margin), y(-margin)),
        "area": " ".join(f"{left},{top}" for left, top in (*upper, *lower)),
        "last": (*(upper[-1]), lower[0][1]) if upper else None,
        "dots": [
            (x(number), y(change)) for number, change in enumerate(comparison.each, 1)
        ],
        "next": x(comparison.next_look) if comparison.next_look else None,
        "reach": reach,
    }
