"""The search: which item to run next, and what the answers show. No I/O: a generator of asks that is fed with answers.

The same line, rules and answers give the same course, so the log of answers is the only state. A range passes through
three stages. The gate shows that its ends differ (or probes inside). Then the search runs the item with the most
expected information per second, until one group of indistinguishable items has the required probability. Finally, the
first of them is compared with its parent in fresh randomised pairs; only this test makes a claim. The ranges on either
side are searched in the same way, with all runs reused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from iodelta.bisect.asking import Course, Scattered
from iodelta.bisect.model import (
    Culprit,
    Estimate,
    Gap,
    Line,
    Outcome,
    Revert,
    Rules,
    Suspect,
)
from iodelta.bisect.pairs import Pairs
from iodelta.bisect.rises import Rises
from iodelta.figures import share
from iodelta.plural import plural
from iodelta.stats.bisection import Evidence, Step, pooled

LOST = 0.2
"""Probability below which the culprit under test is abandoned for a better one."""

ATTEMPTS = 4

RECHECK = 4
"""Runs between checks for a second step."""

SETTLED = 20
"""Runs of a search before the check whether there is a step at all."""

PROBABLE = 0.9
"""Probability of the range that is reported if a search is given up."""

PATIENCE = 3
"""A search is given up after this multiple of the maximum expected number of runs."""

Inside = Callable[[str], Sequence[Line]]
Reverted = Callable[[Culprit], str]


def nothing_inside(item: str) -> Sequence[Line]:
    """For items that are not merges."""
    return ()


def no_revert(culprit: Culprit) -> str:
    """For items that cannot be reverted."""
    return ""


def stretches(line: Line, culprits: Sequence[Culprit]) -> list[tuple[int, int]]:
    """Return the parts of a line before, between and after culprits, by the places of their ends."""
    places = sorted(
        {
            line.items.index((*culprit.via, culprit.item)[0]): culprit
            for culprit in culprits
        }.items()
    )
    parents = [
        place - 1 if culprit.via else line.items.index(culprit.parent)
        for place, culprit in places
    ]
    begins = [0, *(place for place, _ in places)]
    return [
        pair
        for pair in zip(begins, [*parents, len(line.items) - 1], strict=True)
        if pair[0] < pair[1]
    ]


class Search(Rises):
    """One search over a line; ``run`` is the generator. ``inside`` gives the lines that a merge brought in,
    ``reverted`` the item that is the bad end without a culprit."""

    def __init__(
        self,
        line: Line,
        rules: Rules,
        inside: Inside = nothing_inside,
        reverted: Reverted = no_revert,
    ) -> None:
        super().__init__(line, rules)
        self._inside = inside
        self._reverted = reverted

    def run(self) -> Course[Outcome]:
        """Return all culprits of the line."""
        try:
            refused = yield from self._whole()
        except Scattered:
            # All conclusions assumed that the measure repeats, so they are dropped; the runs stay.
            self.rules = msgspec.structs.replace(self.rules, exact=0.0)
            self.assumed = 0.0
            self.culprits, self.suspects, self.gaps, self.estimate = [], [], [], None
            refused = yield from self._whole()
        named = (tuple(self.culprits), tuple(self.suspects), tuple(self.gaps))
        return Outcome(*named, refused, self.estimate, self.scatter)

    def _whole(self) -> Course[str]:
        """Search the line by the rules, then the rest of it by every further limit."""
        self._rest = self.rules.rest
        refused = yield from self._stretches(self.line, ())
        for rest in self.rules.further:
            self._rest = rest
            if self.culprits and self._left():
                self.suspects, self.gaps = [], []
                yield from self._others(
                    self.line, stretches(self.line, self.culprits), ()
                )
        return refused

    def _stretches(self, line: Line, via: tuple[str, ...]) -> Course[str]:
        """Return the first culprit of a line, then the others; why the search was refused, or nothing."""
        first, last = 0, len(line.items) - 1
        top = not self.culprits and not via
        target = self._target()
        ends = yield from self._suspicious(line, first, last, target, top)
        if ends is None:
            return self._nothing(line.items[first], line.items[last]) if top else ""
        if top and (weak := self._too_weak(line, *ends)):
            return weak
        known = len(self.suspects)
        culprit = yield from self._culprit(line, *ends, target, via)
        if culprit is None:
            if top and len(self.suspects) == known:
                return "the first difference between the ends was not confirmed"
            return "the runs named no item that its own test confirms" if top else ""
        if self.rules.several:
            yield from self._others(
                line, [(first, culprit[0]), (culprit[1], last)], via
            )
        return ""

    def _others(
        self, line: Line, waiting: list[tuple[int, int]], via: tuple[str, ...]
    ) -> Course[None]:
        """Search the ranges on either side: first those whose ends show a rise, then those that may hide one inside."""
        for stage in ("gate", "probe"):
            while (rise := (yield from self._rising(line, waiting, stage))) is not None:
                whole, pair = rise
                waiting = [other for other in waiting if other != whole]
                culprit = yield from self._culprit(line, *pair, self._target(), via)
                if culprit is not None:
                    waiting += [(whole[0], culprit[0]), (culprit[1], whole[1])]
        for first, last in waiting:
            if last > first:
                self._gap(line, first, last)

    def _too_weak(self, line: Line, first: int, last: int) -> str:
        """Estimate what the search takes; why it is refused, or nothing."""
        step = self.store.step([line.items[first]], [line.items[last]])
        if step is None:
            return ""
        noise = max(step.noise, self.rules.exact, 1e-9)
        ratio = step.size / noise
        self.estimate = Estimate(
            step.size, step.error, noise, *self._expected(last - first, step)
        )
        if ratio >= self.rules.weakest or self.rules.force:
            return ""
        repeat = math.ceil((1.5 / ratio) ** 2)
        return (
            f"the ends differ by {ratio:.2f} of one run's noise, so a search would take about "
            f"{self.estimate.runs_low} to {plural(self.estimate.runs_high, 'run')}; average "
            f"{plural(repeat, 'run')} a visit or make them "
            "longer, or force it"
        )

    def _nothing(self, good: str, bad: str) -> str:
        between = [gap for gap in self.gaps if (gap.good, gap.bad) == (good, bad)]
        if not between:
            return "the ends could not be compared"
        gap = between[0]
        side = "worse" if gap.step > 0 else "better"
        left = f" above {share(math.expm1(gap.largest))}" if gap.largest > 0 else ""
        return (
            "the ends do not differ in a typical run: "
            f"bad is {share(math.expm1(abs(gap.step)))} {side} than good by these runs, "
            f"and a slow-down{left} can be excluded"
        )

    def _culprit(
        self, line: Line, first: int, last: int, target: float, via: tuple[str, ...]
    ) -> Course[tuple[int, int] | None]:
        """Find and test one culprit; the places of its parent and of itself on the line, None when none is confirmed.
        A culprit that is a merge is looked into."""
        narrow = True
        for _ in range(ATTEMPTS):
            group = yield from self._locate(line, first, last, target, narrow)
            if group is None:
                if not narrow or self.where[1:] == (first, last):
                    return None
                # The narrowed range has no step after all.
                narrow = False
                continue
            before, after, share = group
            culprit = yield from self._confirm(line, before, after, share, via)
            if isinstance(culprit, Culprit):
                known = len(self.culprits)
                if not culprit.skipped:
                    for branch in self._inside(culprit.item):
                        yield from self._stretches(branch, (*via, culprit.item))
                        self.where = (line, first, last)
                # Nothing inside explains it: the culprit is the merge itself, or not a merge.
                if len(self.culprits) == known:
                    self.culprits.append(culprit)
                    revert = yield from self._proved(culprit)
                    self.culprits[-1] = msgspec.structs.replace(culprit, revert=revert)
                return before, after
            # A reason instead of a culprit: the test ended without a claim.
            if culprit:
                self.suspects.append(
                    Suspect(line.items[before + 1], line.items[after], share, culprit)
                )
                return None
        self.suspects.append(
            Suspect(
                line.items[first + 1],
                line.items[last],
                1.0,
                "no candidate passed its test",
            )
        )
        return None

    def _locate(
        self, line: Line, first: int, last: int, target: float, narrow: bool
    ) -> Course[tuple[int, int, float] | None]:
        """Places of parent and culprit (the nearest testable ones), and the probability once it suffices. None if the
        runs show that there is no step of ``target`` after all, or no more runs are allowed."""
        begun = len(self.store.runs)
        evidence: Evidence | None = None
        while True:
            if evidence is None:
                if narrow:
                    first, last = self._with_one_step(line, first, last)
                self.where = (line, first, last)
                items = line.items[first : last + 1]
                evidence = self._evidence(line, first, last)
            posterior = evidence.posterior()
            testable = self.store.testable(items)
            low, high, share = max(
                pooled(posterior, evidence.prior, testable), key=lambda group: group[2]
            )
            spent = len(self.store.runs) - begun
            if share >= self.rules.stop:
                missing = [
                    place
                    for place in (low - 1, high)
                    if not self.store.of(items[place])
                ]
                if not missing:
                    return first + low - 1, first + high, share
                # Only an item that was run is known to be testable.
                item, why = items[missing[0]], "beside the most probable culprit"
            else:
                step = evidence.step(posterior, low)
                if spent >= SETTLED and step.size + 2 * step.error < target:
                    self.gaps.append(
                        Gap(items[0], items[-1], step.size, step.size + 2 * step.error)
                    )
                    return None
                if self._exhausted(spent, last - first, step):
                    self.suspects.append(self._probable(line, first, last, evidence))
                    return None
                places = evidence.worth_asking(posterior, testable)
                gain = evidence.information(posterior, places, len(self.store.runs))
                price = self.store.price(items, places.tolist())
                best = int(np.argmax(gain / price))
                item = items[int(places[best])]
                why = f"{gain[best]:.2g} bit for {price[best]:.2g} s; best guess so far {100 * share:.0f} %"
            runs, clipped = len(self.store.runs), self.store.clipped
            yield from self._ask(item, "search", why)
            if len(self.store.runs) > runs:
                run = self.store.runs[-1]
                evidence.add(items.index(item), run.value, run.time)
                if self.store.clipped != clipped or len(self.store.runs) % RECHECK == 0:
                    evidence = None

    def _probable(
        self, line: Line, first: int, last: int, evidence: Evidence
    ) -> Suspect:
        """Return the range with most of the probability, for a search that is given up."""
        below = evidence.posterior().at_or_below(
            np.arange(last - first + 1), evidence.prior
        )
        low = int(np.searchsorted(below, (1 - PROBABLE) / 2, side="right"))
        high = int(np.searchsorted(below, (1 + PROBABLE) / 2))
        low, high = max(low, 1), min(high, last - first)
        why = f"{plural(len(self.store.runs), 'run')}: not enough"
        if self.culprits:
            why = "the runs allowed for further culprits are used up"
        return Suspect(
            line.items[first + low],
            line.items[first + high],
            float(below[high] - below[low - 1]),
            why,
        )

    def _with_one_step(self, line: Line, first: int, last: int) -> tuple[int, int]:
        """Return the part of a range in which its most probable step is the only one that the runs show. The rest is
        searched later: a model with one step would alternate between two steps of equal size."""
        while True:
            steps = []
            posterior = self._evidence(line, first, last).posterior()
            group = int(np.argmax(posterior.share))
            low = first + int(posterior.edges[group])
            high = first + int(posterior.edges[group + 1])
            for left, other in ((first, low), (high, last)):
                if step := self._clear_step(line, left, other):
                    below, above = step[1:]
                    rest = (first, below) if below >= high else (above, last)
                    # What is left must have a step of its own, or the second is the only one there is.
                    if self._clear_step(line, *rest):
                        steps.append((step[0], *rest))
            if not steps:
                return first, last
            _, first, last = min(steps)

    def _exhausted(self, spent: int, candidates: int, step: Step) -> bool:
        """Return whether to give up: after a multiple of the expected runs, or if too few are left to test a further
        culprit."""
        if self.culprits:
            return self._left() <= self._spared
        most = PATIENCE * self._expected(candidates, step)[1]
        return not self._left() or spent >= most

    def _confirm(
        self, line: Line, before: int, after: int, share: float, via: tuple[str, ...]
    ) -> Course[Culprit | str]:
        """Test culprit against parent in fresh pairs. Returns the culprit, or why there is none; empty to search on."""
        parent, item = line.items[before], line.items[after]
        first, last = self.where[1:]
        evidence = self._evidence(line, first, last)
        posterior = evidence.posterior()
        step = evidence.step(posterior, after - first)
        most = self._left() // 2 if self.culprits else math.inf
        test = Pairs(self.rules, step, most=most, exact=self._exact_pairs)
        while not test.done:
            why = f"pair {len(test.differences) + 1} of at most {test.most}: is it slower than its parent?"
            difference = yield from self._pair(parent, item, "confirm", why)
            for run in self.store.runs[-2:]:
                evidence.add(line.items.index(run.item) - first, run.value, run.time)
            if not test.add(difference):
                continue
            if test.shown:
                skipped = line.items[before + 1 : after]
                pairs, runs = len(test.differences), len(self.store.runs)
                return Culprit(
                    item,
                    parent,
                    skipped,
                    test.effect(),
                    pairs,
                    test.p,
                    share,
                    runs,
                    via,
                )
            left = evidence.posterior().at_or_below(
                np.array([before - first, after - first]), evidence.prior
            )
            if float(left[1] - left[0]) < LOST:
                return ""
        return f"{plural(len(test.differences), 'pair')} of runs do not show that it is slower than {parent[:12]}"

    def _proved(self, culprit: Culprit) -> Course[Revert | None]:
        """Return the bad end against the bad end without the culprit, by at most half of the runs that are left."""
        bad, item = self.line.items[-1], self._reverted(culprit)
        if not item or not self.rules.revert or self._left() < 4:
            return None
        if not self.store.of(item) and item not in self.store.broken:
            yield from self._ask(
                item, "revert", "can it be reverted on top of the bad end?"
            )
        if item in self.store.broken:
            return Revert(item, reason=self.store.broken[item])
        noise = self.estimate.noise if self.estimate else 0.0
        step = Step(culprit.effect.size, 0.0, culprit.pairs, noise)
        test = Pairs(self.rules, step, most=self._left() // 4, exact=self._exact_pairs)
        while not test.done:
            why = f"pair {len(test.differences) + 1} of at most {test.most}: does the bad end get faster without it?"
            test.add((yield from self._pair(item, bad, "revert", why)))
        pairs = len(test.differences)
        return Revert(item, test.effect(), pairs, test.p, test.shown) if pairs else None
