"""Answers of a person: in words, each wrong with a given probability, or as numbers.

Words have a separate search. It computes the posterior over the places of the change from the words, and asks next
about the commit whose answer is expected to tell most. It names a culprit only after answers about the commit and about
its parent, and once one group of indistinguishable commits has the required probability.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.bisect.asking import Course
from iodelta.bisect.commands import Stopped
from iodelta.bisect.items import CommitItems, Titled
from iodelta.bisect.model import Answer, Ask, Estimate, Line, Rules, Scatter, Word
from iodelta.bisect.question import Question
from iodelta.bisect.search import Inside, nothing_inside
from iodelta.bisect.store import Store
from iodelta.bisect.visit import Visited
from iodelta.errors import RequestError
from iodelta.stats.special import betaln

Reals = NDArray[np.float64]

OUTSIDE = 0.05
"""Prior probability that the good end is already bad; also that the bad end is still good."""

PATIENCE = 4
"""A search is given up after this multiple of the expected number of answers, plus ``SPARE``."""

SPARE = 10
SKIPPED = "skipped by hand"


class Named(msgspec.Struct, frozen=True):
    """A culprit by words: any of ``skipped``, or ``item``, made the change."""

    item: str
    parent: str
    skipped: tuple[str, ...]
    share: float
    """Posterior probability of that place."""
    answers: int
    """Words given until then."""
    contradicting: int
    """Words that another place would explain, and this one does not."""
    via: tuple[str, ...] = ()
    """Merges that brought it in, outermost first."""

    @property
    def suspects(self) -> tuple[str, ...]:
        """Return the items among which the change lies, in order."""
        return (*self.skipped, self.item)


class Verdict(msgspec.Struct, frozen=True):
    """How a search by words ended: a culprit, or why there is none."""

    culprit: Named | None = None
    refused: str = ""


class State(msgspec.Struct, frozen=True):
    """What the words show about a line. Hypothesis k: the items from place k on are bad."""

    share: Reals
    """Probability of every hypothesis, 0 to the number of items."""
    wrong: NDArray[np.int64]
    """Number of words that are mistakes under each hypothesis."""
    rate: Reals
    """Probability that the next word is wrong, under each hypothesis."""
    anchors: tuple[int, ...]
    """Places that can be distinguished: the testable ones, and both ends."""
    groups: tuple[tuple[int, int, float], ...]
    """Ranges of hypotheses that no word can distinguish: first, last (inclusive) and probability."""

    @property
    def best(self) -> tuple[int, int, float]:
        """Return the most probable group."""
        return max(self.groups, key=lambda group: group[2])

    def left(self) -> int:
        """About how many answers are still needed."""
        shares = np.array([share for _, _, share in self.groups])
        bits = float(entropy(shares).sum())
        each = 1.0 - float(_doubt(np.array([self.share @ self.rate]))[0])
        return max(1, math.ceil(bits / max(each, 0.02)))


class Judging:
    """One search by words; ``run`` is the generator. No I/O. ``wrong``: probability that a word is wrong."""

    def __init__(
        self, line: Line, rules: Rules, wrong: float, inside: Inside = nothing_inside
    ) -> None:
        self.line = line
        self.rules = rules
        self.wrong = wrong
        self.store = Store()
        self.estimate: Estimate | None = None
        self.scatter: Scatter | None = None
        self.assumed = 0.0
        self.where = line
        """The line that is being searched."""
        self._inside = inside
        self._mistaken: frozenset[int] = frozenset()
        """Answers, by number, that the culprits named so far take for mistakes."""

    def run(self) -> Course[Verdict]:
        """Return the culprit of the line; if that is a merge, the culprit that it brought in, if the words name one."""
        verdict = yield from self._place(self.line, ())
        while (culprit := verdict.culprit) is not None and not culprit.skipped:
            inner = yield from self._inner(culprit)
            if inner is None:
                break
            verdict = inner
        return verdict

    def state(self, line: Line) -> State:
        """Return the posterior by all words about ``line``; its ends count as one word each, that of the question."""
        places = {item: place for place, item in enumerate(line.items)}
        words = [(0, False), (len(line.items) - 1, True)]
        words += [
            (places[item], word == "bad")
            for item, word in self.store.words
            if item in places
        ]
        first = np.arange(len(line.items) + 1)
        wrong = np.zeros(len(first), dtype=np.int64)
        for place, bad in words:
            wrong += (place >= first) != bad
        right_weight = 1.0 / self.wrong - 1.0
        weight = np.asarray(line.prior, dtype=float)
        prior = np.concatenate(
            ([OUTSIDE], (1.0 - 2.0 * OUTSIDE) * weight / weight.sum(), [OUTSIDE])
        )
        log = np.log(prior) + betaln(1.0 + wrong, right_weight + len(words) - wrong)
        share = np.exp(log - log.max())
        share /= share.sum()
        counted = 1.0 + right_weight + len(words)
        rate: Reals = (1.0 + wrong.astype(np.float64)) / counted
        last = len(line.items) - 1
        broken = self.store.broken
        inner = (place for place in range(1, last) if line.items[place] not in broken)
        anchors = (0, *inner, last)
        pairs = itertools.pairwise(anchors)
        between = [
            (low + 1, high, float(share[low + 1 : high + 1].sum()))
            for low, high in pairs
        ]
        ends = [(0, 0, float(share[0])), (last + 1, last + 1, float(share[-1]))]
        return State(share, wrong, rate, anchors, (ends[0], *between, ends[1]))

    def left(self) -> int:
        """About how many answers are still needed for the line that is looked into."""
        return self.state(self.where).left()

    def mistaken(self, line: Line, hypothesis: int) -> frozenset[int]:
        """Return the numbers of the answers that are mistakes if ``hypothesis`` is true."""
        places = {item: place for place, item in enumerate(line.items)}
        words = [
            (number, places[item], word)
            for number, (item, word) in enumerate(self.store.words)
            if item in places
        ]
        return frozenset(
            number
            for number, place, word in words
            if (place >= hypothesis) != (word == "bad")
        )

    def _inner(self, merge: Named) -> Course[Verdict | None]:
        """Return the culprit that a merge brought in; None if the item is not a merge, or the words name nothing
        inside.
        """
        for line in self._inside(merge.item):
            inner = yield from self._place(line, (*merge.via, merge.item))
            if inner.culprit is not None:
                # The probability of the merge, times that of the place inside it.
                share = inner.culprit.share * merge.share
                return Verdict(msgspec.structs.replace(inner.culprit, share=share))
        return None

    def _place(self, line: Line, via: tuple[str, ...]) -> Course[Verdict]:
        """Ask about one line until the words name a place of it."""
        self.where = line
        begun = len(self.store.words) + len(self.store.broken)
        most = PATIENCE * self.state(line).left() + SPARE
        while True:
            state = self.state(line)
            first, last, share = state.best
            probable = share >= self.rules.stop
            unanswered = self._unanswered(line, first, last)
            if probable and unanswered is None:
                untested = self._untested(line, first, last)
                return untested or self._verdict(line, state, via)
            spent = len(self.store.words) + len(self.store.broken) - begun
            if spent >= most or len(self.store.words) >= self.rules.most_runs:
                wrong = len(self.mistaken(line, last))
                return Verdict(
                    refused=f"{len(self.store.words)} answers do not single out an item: the likeliest has "
                    f"{100 * share:.0f} % of the probability, and {wrong} answers contradict it"
                )
            place = unanswered if probable else self._telling(line, state)
            if place is None:
                return Verdict(refused="no item is left to test")
            item = line.items[place]
            again = "again: " if item in dict(self.store.words) else ""
            yield from self._ask(item, f"{again}is it good or bad?")

    def _ask(self, item: str, why: str) -> Course[None]:
        answer = yield Ask(item, "search", why)
        self.store.add(item, answer)

    def _verdict(self, line: Line, state: State, via: tuple[str, ...]) -> Verdict:
        first, last, share = state.best
        if first == 0:
            return Verdict(
                refused="the answers suggest that the good end is bad already: begin with an earlier one"
            )
        if last == len(line.items):
            return Verdict(
                refused="the answers suggest that the bad end is still good: begin with a later one"
            )
        items, skipped = line.items, line.items[first:last]
        self._mistaken |= self.mistaken(line, last)
        answered, wrong = len(self.store.words), len(self._mistaken)
        return Verdict(
            Named(items[last], items[first - 1], skipped, share, answered, wrong, via)
        )

    def _untested(self, line: Line, first: int, last: int) -> Verdict | None:
        """Return the verdict if the group is bounded by an end that was skipped: its state is unknown, so nothing is
        claimed."""
        for place in (last, first - 1):
            if 0 <= place < len(line.items) and line.items[place] in self.store.broken:
                which = "good" if place == 0 else "bad"
                return Verdict(
                    refused=f"the {which} end was skipped, and no other answer shows that it is {which}"
                )
        return None

    def _unanswered(self, line: Line, first: int, last: int) -> int | None:
        """Return the place of the item of a group, or of its parent, that can be tested and has no answer yet."""
        closed = {item for item, _ in self.store.words} | self.store.broken.keys()
        for place in (last, first - 1):
            if 0 <= place < len(line.items) and line.items[place] not in closed:
                return place
        return None

    def _telling(self, line: Line, state: State) -> int | None:
        """Return the testable place whose word is expected to tell most per second."""
        broken = self.store.broken
        sound = [place for place in state.anchors if line.items[place] not in broken]
        if not sound:
            return None
        hypotheses = np.arange(len(state.share))
        says_bad = [
            state.share @ np.where(hypotheses <= place, 1.0 - state.rate, state.rate)
            for place in sound
        ]
        gain = _doubt(np.array(says_bad)) - float(state.share @ _doubt(state.rate))
        price = self.store.price(line.items, sound)
        return sound[int(np.argmax(np.maximum(gain, 1e-12) / price))]


def entropy(shares: Reals) -> Reals:
    """-p log2 p of each share, in bits; 0 for a share of 0 (Shannon, 1948)."""
    return -shares * np.log2(np.maximum(shares, 1e-300))


def _doubt(chance: Reals) -> Reals:
    """Bits of an event with each of the chances."""
    return entropy(chance) + entropy(1.0 - chance)


class Person(Protocol):
    """Who answers."""

    def line(self, item: str, proposal: Sequence[str]) -> str | None:
        """Return the answer about an item; None when there is none now. ``proposal``: what to say before, if it is new."""


class TakeBack(Exception):  # noqa: N818  # control flow, not an error
    """The person withdraws the last answer."""


class ByHand:
    """Asks a person instead of building and measuring."""

    def __init__(
        self,
        question: Question,
        kind: Titled,
        person: Person,
        say: Callable[[str], None],
        left: Callable[[], str],
    ) -> None:
        self._question, self._kind, self._person = question, kind, person
        self._say, self._left = say, left

    def visit(self, ask: Ask, visit: int, *, known: bool) -> Visited:
        """Propose an item and read its answer. Raises Stopped, TakeBack."""
        proposal = self._proposal(ask)
        while True:
            text = self._person.line(ask.item, proposal)
            if text is None:
                raise Stopped
            if text.strip() == "undo":
                raise TakeBack
            try:
                return read(text, self._question, needed=ask.must or known)
            except RequestError as error:
                self._say(f"{error.what}; {error.remedy}")
                proposal = ()

    def leave(self) -> None:
        """Nothing to close."""

    def remove_tree(self) -> None:
        """Does nothing: a search by hand has no tree."""

    def _proposal(self, ask: Ask) -> tuple[str, ...]:
        answers = "a number, skip or undo"
        if self._question.by_hand == "words":
            answers = "good, bad, skip (cannot be tested) or undo"
        how = ""
        if isinstance(self._kind, CommitItems) and "-" not in ask.item:
            how = f" (git checkout {ask.item[:12]})"
        return (
            f"Next: {self._kind.title(ask.item)}: {ask.why}",
            f"      Put it under test{how} and answer: {answers}.{self._left()}",
        )


def read(text: str, question: Question, *, needed: bool = False) -> Visited:
    """Return an answer as a person writes it. ``needed``: the item cannot be skipped. Raises RequestError."""
    answer = text.strip()
    if answer == "skip":
        if needed:
            asked = "measure it; a comparison needs it"
            if question.by_hand == "words":
                asked = "it was answered before, so it can be tested: say good or bad again, or undo answers"
            raise RequestError("this one cannot be skipped", remedy=asked)
        return Visited(Answer(None, SKIPPED))
    number = _number(answer)
    if question.by_hand == "words":
        if answer in ("good", "bad"):
            return Visited(Answer(None, word=_word(answer)))
        if number is not None:
            raise RequestError(
                f"{answer} is a number, and this search is answered in words",
                remedy="say good, bad or skip; for numbers begin another with --by-hand --better higher or lower",
            )
        raise RequestError(
            f"not an answer: {answer[:40]!r}", remedy="say good, bad, skip or undo"
        )
    if number is None or not math.isfinite(number) or number <= 0:
        raise RequestError(
            f"not a number above zero: {answer[:40]!r}",
            remedy="give a number, skip or undo",
        )
    sign = -1.0 if question.better == "higher" else 1.0
    return Visited(Answer(sign * math.log(number), kept=True), (number,))


def _word(text: str) -> Word:
    words: dict[str, Literal["good", "bad"]] = {"good": "good", "bad": "bad"}
    return words[text]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
