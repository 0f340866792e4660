"""Find ranges in which the level rises, by runs of their ends or of stretches inside. No I/O."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from iodelta.bisect.asking import Asking, Course
from iodelta.bisect.model import Line, Run, Stage
from iodelta.stats.stalls import stalled_trials, trials_needed

PASSED = 0.02
"""One-sided level at which ends count as different. It makes no claim, so looks are not corrected for."""

PROBED = 0.0005
"""The same for the best of ten pairs among probes."""

FUTILE = 0.01
"""The search stops comparing two places once the probability of a step that matters is below this."""

PROBE_ROUNDS = 12

FEWEST = 3
"""Runs of each end before they are compared."""

PART = 0.6
"""Share of the runs after a culprit that is used to compare the ends of the remaining ranges."""

EVIDENT = 0.003
"""One-sided level at which all runs of a range show a step somewhere inside, so that its ends need not be compared."""

STALLS = 0.1
"""The runs of the bad end must exclude stalls in this share of them before the ends count as equal."""

ROUND = 2
"""Runs of each place in a range before the next range has its turn."""

Bin = tuple[int, int, int]
"""A stretch of a line whose runs are pooled: the place to run, then its first and last place (inclusive)."""


class Rises(Asking):
    """The part of a search that finds ranges in which the level rises."""

    def _suspicious(
        self, line: Line, first: int, last: int, target: float, top: bool
    ) -> Course[tuple[int, int] | None]:
        """Return the part of a range in which the level rises: all of it, or between two probes; None when it does not."""
        self.where = (line, first, last)
        limit = len(self.store.runs) + self._left()
        pair = yield from self._rises(
            line,
            [(first, first, first), (last, last, last)],
            target,
            "gate",
            top,
            limit,
        )
        if pair is None and (top or not self.rules.exact):
            pair = yield from self._rises(
                line, self._bins(line, first, last), target, "probe", top, limit
            )
        if pair is None and top:
            yield from self._until_stalls_are_seen(line, first, last)
        if pair is None:
            self._gap(line, first, last)
        return pair

    def _until_stalls_are_seen(self, line: Line, first: int, last: int) -> Course[None]:
        """Run more rounds of ends whose typical runs are equal, until rare stalls are excluded or the maximum is
        reached. Stalls of either end count, so the stopping point does not depend on which end is worse."""
        bins = [(place, place, place) for place in (first, last)]
        limit = len(self.store.runs) + self._left()
        while not self.rules.exact and len(self.rounds) < self._rounds_wanted():
            known = len(self.store.runs)
            yield from self._fill(line, bins, "gate", limit)
            if len(self.store.runs) < known + len(bins):
                return

    def _rounds_wanted(self) -> int:
        """Rounds of the ends that exclude rare stalls, those seen counted, as far as the gate may make them."""
        stalled = 0
        for runs_of_end in zip(*self.rounds, strict=True):
            values = [run.value for run in runs_of_end]
            stalled = max(stalled, len(stalled_trials(values)))
        return min(trials_needed(STALLS, stalled=stalled), self.rules.pairs)

    def _rising(
        self, line: Line, waiting: list[tuple[int, int]], stage: Stage
    ) -> Course[tuple[tuple[int, int], tuple[int, int]] | None]:
        """Return a range in which the level rises, and the part in which it does. All ranges take turns, with a few
        runs each, until one of them rises or the runs for this stage are used up."""
        if stage == "probe" and self.rules.exact:
            return None
        part = PART if stage == "gate" and not self.rules.exact else 1.0
        end = len(self.store.runs) + int(part * self._left())
        quiet = [stretch for stretch in waiting if stretch[1] <= stretch[0]]
        while True:
            open_ = [stretch for stretch in waiting if stretch not in quiet]
            evident = self._most_evident(line, open_)
            if evident is not None and self._left() > 0:
                return evident, evident
            if not open_:
                return None
            for stretch in open_:
                self.where = (line, *stretch)
                bins = self._bins(line, *stretch)
                if stage == "gate":
                    bins = [(place, place, place) for place in stretch]
                limit = min(end, len(self.store.runs) + len(bins) * ROUND)
                pair = yield from self._rises(
                    line, bins, self._target(), stage, False, limit
                )
                if pair is not None:
                    return stretch, pair
                if len(self.store.runs) < limit or limit == end:
                    quiet.append(stretch)

    def _most_evident(
        self, line: Line, ranges: Sequence[tuple[int, int]]
    ) -> tuple[int, int] | None:
        """Return the range whose runs show a step most clearly; None if none does."""
        steps = [
            (self._clear_step(line, *stretch, EVIDENT), stretch) for stretch in ranges
        ]
        seen = [(step[0], stretch) for step, stretch in steps if step is not None]
        return min(seen)[1] if seen else None

    def _rises(
        self,
        line: Line,
        bins: list[Bin],
        target: float,
        stage: Stage,
        top: bool,
        limit: int,
    ) -> Course[tuple[int, int] | None]:
        """Run the bins in turn until a later one is higher than an earlier one; return the range from one to the other.
        None once no rise of ``target`` is possible, or the search has taken ``limit`` runs."""
        level, most = PROBED, PROBE_ROUNDS
        if stage == "gate":
            level, most = PASSED, self.rules.pairs
        if not top:
            most //= 2
        while True:
            runs = [self._measured(line, piece) for piece in bins]
            counts = list(map(self._runs_of, runs))
            rises, open_ = self._compared(runs, target, level)
            if rises:
                _, a, b = min(rises)
                low = line.items.index(runs[a][0], bins[a][1])
                return low, line.items.index(runs[b][-1], bins[b][1])
            wanting = [
                index
                for index in sorted(open_)
                if counts[index] < most and not self._is_broken(line, bins[index])
            ]
            if not wanting or len(self.store.runs) >= limit:
                return None
            yield from self._fill(
                line, [bins[index] for index in _fewest(wanting, counts)], stage, limit
            )

    def _compared(
        self, runs: Sequence[Sequence[str]], target: float, level: float
    ) -> tuple[list[tuple[float, int, int]], set[int]]:
        """Compare each pair of bins, the earlier first. Returns the pairs in which the level rises, each with its p
        value; and the bins between which a rise of ``target`` is still possible."""
        fewest = 2 if self.rules.exact else FEWEST
        rises: list[tuple[float, int, int]] = []
        open_: set[int] = set()
        for a, b in itertools.combinations(range(len(runs)), 2):
            enough = min(self._runs_of(runs[a]), self._runs_of(runs[b])) >= fewest
            step = self.store.step(runs[a], runs[b]) if enough else None
            if step is None:
                open_ |= {a, b}
            elif self._tail(step) < level and step.size >= self._least:
                rises.append((self._tail(step), a, b))
            elif step.tail_above(target) > FUTILE and not self.rules.exact:
                open_ |= {a, b}
        return rises, open_

    def _fill(
        self, line: Line, bins: list[Bin], stage: Stage, limit: int
    ) -> Course[None]:
        """Return one more run of each bin in random order, as long as runs are left."""
        self._random.shuffle(bins)
        why = "do the ends differ?" if stage == "gate" else "is a rise hidden inside?"
        known = len(self.store.runs)
        for place, *_ in bins[: limit - known]:
            yield from self._ask(
                line.items[place], stage, why, must=place in self.where[1:]
            )
        self._note_round(self.store.runs[known:])

    def _note_round(self, runs: Sequence[Run]) -> None:
        """Keep a round of exactly the two ends of the whole line: a block with a random order."""
        ends = [self.line.items[0], self.line.items[-1]]
        if sorted(run.item for run in runs) == sorted(ends):
            good, bad = sorted(runs, key=lambda run: ends.index(run.item))
            self.rounds.append((good, bad))

    def _runs_of(self, items: Sequence[str]) -> int:
        return sum(len(self.store.of(item)) for item in items)

    def _is_broken(self, line: Line, group: Bin) -> bool:
        return line.items[group[0]] in self.store.broken

    def _measured(self, line: Line, group: Bin) -> list[str]:
        return [
            item for item in line.items[group[1] : group[2] + 1] if self.store.of(item)
        ]

    def _bins(self, line: Line, first: int, last: int) -> list[Bin]:
        """Five stretches around the ends and the quarter points. The item to run in each is one that was measured
        before, else the testable one nearest to the middle."""
        bins = []
        length = last - first
        for part in range(5):
            low = first + (length * (2 * part - 1) // 8 + 1 if part else 0)
            high = first + (length * (2 * part + 1) // 8 if part < 4 else length)
            middle = first + length * part // 4
            sound = [
                place
                for place in range(low, high + 1)
                if line.items[place] not in self.store.broken
            ]
            if sound:
                near = min(
                    sound,
                    key=lambda p: (not self.store.of(line.items[p]), abs(p - middle)),
                )
                bins.append((middle if part in (0, 4) else near, low, high))
        return bins


def _fewest(places: Sequence[int], counts: Sequence[int]) -> list[int]:
    """Those with the fewest runs."""
    least = min(counts[place] for place in places)
    return [place for place in places if counts[place] == least]
