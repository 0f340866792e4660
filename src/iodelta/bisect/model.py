"""The data of a search: a line of items, asks and answers, culprits and other results. Frozen, JSON-encodable.

Values are logarithms, higher is worse; a step of 0.02 is 2 % more of a cost, or about 2 % less of a rate.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Word = Literal["", "good", "bad"]
Stage = Literal["gate", "probe", "search", "confirm", "revert", "block"]


class Line(msgspec.Struct, frozen=True):
    """Items from good to bad, by identity, with a prior weight for each but the first."""

    items: tuple[str, ...]
    prior: tuple[float, ...]
    via: str = ""
    """The merge whose inside this is; empty for the line that was asked about."""


class Rules(msgspec.Struct, frozen=True):
    """The rules of a search, fixed before its first run. Changes are logarithms."""

    margin: float = 0.01
    """The change that matters; steps below half of it are not searched for."""
    stop: float = 0.95
    """Probability of the best range at which it is tested against its parent."""
    alpha: float = 0.05
    """Two-sided level of that test; only this test makes a claim."""
    exact: float = 0.0
    """Above 0: the measure repeats to within this, and one run of an item is enough."""
    pairs: int = 60
    """Maximum number of pairs of runs by which the ends must show a difference."""
    most_runs: int = 2000
    """Runs after which a search is given up."""
    weakest: float = 0.5
    """Effect over noise below which a search is refused."""
    force: bool = False
    """Search though the effect is weaker than ``weakest``."""
    several: bool = True
    """Search for further culprits after the first."""
    rest: float = 1.0
    """Maximum runs after the first culprit, as a multiple of the runs that it took."""
    further: tuple[float, ...] = ()
    """Limits that were requested after the search was complete, in order; each replaces ``rest``."""
    revert: bool = True
    """Revert every culprit on top of the bad end, as a second proof."""
    seed: int = 1


class Ask(msgspec.Struct, frozen=True):
    """The next run: which item, at which stage, why; ``must``: it was chosen as an end, so it has to be measurable."""

    item: str
    stage: Stage
    why: str
    must: bool = False


class Answer(msgspec.Struct, frozen=True):
    """The answer to an ask: a value, a person's ``word``, or the ``reason`` why the item cannot be tested. Seconds.

    ``kept``: another run of this item needs no build.
    """

    value: float | None
    reason: str = ""
    build: float = 0.0
    run: float = 1.0
    kept: bool = False
    word: Word = ""
    """A person's word instead of a value; empty for a measured or skipped item."""


class Effect(msgspec.Struct, frozen=True):
    """A step between two levels with its interval at 95 %."""

    size: float
    low: float
    high: float


class Culprit(msgspec.Struct, frozen=True):
    """A change that was confirmed by a test of its own: ``parent`` against ``item``, adjacent but for ``skipped``."""

    item: str
    parent: str
    skipped: tuple[str, ...]
    """Untestable items between them: any of these, or ``item``, made the change."""
    effect: Effect
    pairs: int
    p: float
    """One-sided, of the pairs alone."""
    share: float
    """Posterior probability when it was put to the test."""
    runs: int
    """Runs of the whole search when it was confirmed."""
    via: tuple[str, ...] = ()
    """Merges that brought it in, outermost first."""
    revert: Revert | None = None
    """The second proof; None where none was asked for or there was no run left for it."""

    @property
    def suspects(self) -> tuple[str, ...]:
        """Return the items among which the change lies, in order."""
        return (*self.skipped, self.item)


class Scatter(msgspec.Struct, frozen=True):
    """Runs of one item that lie further ``apart`` than the exactness that was promised."""

    item: str
    apart: float
    exact: float


class Revert(msgspec.Struct, frozen=True):
    """The second proof: the bad end against the bad end with the culprit taken out, in fresh pairs."""

    item: str
    """The bad end without the culprit."""
    effect: Effect | None = None
    """What the culprit costs there; None when that could not be measured."""
    pairs: int = 0
    p: float = 1.0
    """One-sided, of the pairs."""
    shown: bool = False
    """Whether the bad end is shown to be slower than without the culprit."""
    reason: str = ""
    """Why it could not be measured."""


class Suspect(msgspec.Struct, frozen=True):
    """A range that the posterior suggests but the pair test did not confirm: not a claim."""

    first: str
    last: str
    share: float
    why: str


class Gap(msgspec.Struct, frozen=True):
    """A part of the line in which no further step was found: from end to end the level rises by no more than
    ``largest``, at 95 %."""

    good: str
    bad: str
    step: float
    largest: float
    improves: bool = False
    """Whether the level falls in it: a later improvement hides part of what was found before."""


class Estimate(msgspec.Struct, frozen=True):
    """The step and noise that the gate measured, and the runs that a search is expected to take."""

    step: float
    error: float
    noise: float
    runs_low: int
    runs_high: int


class Outcome(msgspec.Struct, frozen=True):
    """The result of a search. ``refused`` says why it did not begin, or ended without an answer."""

    culprits: tuple[Culprit, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    gaps: tuple[Gap, ...] = ()
    refused: str = ""
    estimate: Estimate | None = None
    scatter: Scatter | None = None
    """Why the measure was not taken to repeat exactly after all."""


class Run(msgspec.Struct, frozen=True):
    """One value of one item; ``time`` counts runs."""

    time: int
    item: str
    value: float
