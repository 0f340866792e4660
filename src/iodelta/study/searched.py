"""The folder of a search as it is now: its culprits, their proofs, levels, and what the culprits do not explain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from iodelta.bisect.counted import blind
from iodelta.bisect.driver import Searched, repeating, scattered
from iodelta.bisect.items import CommitItems
from iodelta.bisect.log import Answered, Asked, Ended, SearchFolder, Session, Undone
from iodelta.bisect.model import Culprit, Estimate, Gap, Suspect
from iodelta.bisect.question import Question
from iodelta.bisect.remainder import remainder
from iodelta.figures import share
from iodelta.plural import plural
from iodelta.stats.special import stdtrit
from iodelta.study.ends import Ends, ends_of
from iodelta.study.git_log import git_log
from iodelta.study.posterior import drifts, posteriors
from iodelta.study.search import (
    Found,
    Left,
    Level,
    Proof,
    Range,
    SearchAccount,
    Skipped,
    Stalled,
    Totals,
    changed,
)
from iodelta.study.system import system


def account(
    folder: SearchFolder, question: Question, replay: Searched
) -> SearchAccount:
    """Judge a folder as it is now."""
    events, answers = folder.events(), folder.answers()
    search, kind, outcome = replay.search, replay.kind, replay.outcome
    places = {item: place for place, item in enumerate(search.line.items)}
    unordered = outcome.culprits if outcome else search.culprits
    culprits = tuple(
        sorted(unordered, key=lambda culprit: places[(*culprit.via, culprit.item)[0]])
    )
    ends = None
    if outcome is not None and outcome.refused and not culprits:
        ends = ends_of(search, question)
    sessions = [event for event in events if isinstance(event, Session)]
    scatter = ""
    if search.scatter:
        scatter = scattered(search.scatter, kind.title(search.scatter.item))
    # Items that could not be tested, without bad ends from which a culprit was reverted: they are not on the
    # line.
    taken_out = _taken_out(replay.search.culprits)
    broken = replay.search.store.broken
    store = replay.search.store
    stalls = sorted(store.stalled().items(), key=lambda entry: places.get(entry[0], -1))
    return SearchAccount(
        folder=str(folder.path),
        question=question,
        state=state_of(events, over=replay.ask is None),
        exit_code=_exit_code(culprits, replay, ends),
        items=len(search.line.items),
        good=kind.title(search.line.items[0]),
        bad=kind.title(search.line.items[-1]),
        culprits=tuple(_found(culprit, replay, question) for culprit in culprits),
        suspects=tuple(map(_suspect, outcome.suspects if outcome else search.suspects)),
        gaps=tuple(
            _gap(gap, question) for gap in (outcome.gaps if outcome else search.gaps)
        ),
        refused=outcome.refused if outcome else "",
        estimate=_estimate(search.estimate, question),
        posterior=posteriors(replay, culprits),
        levels=_levels(replay, question, answers, places),
        skipped=(
            tuple(
                Skipped(item, replay.kind.title(item), why)
                for item, why in broken.items()
                if item not in taken_out
            )
        ),
        totals=totals(events, answers),
        drifts=drifts(replay, culprits),
        machine=sessions[-1].machine if sessions else "",
        system=system(folder.environment()),
        blind=blind(question.metric),
        scatter=scatter,
        repeats=repeating(search.assumed) if search.assumed else "",
        next=f"{kind.title(replay.ask.item)}: {replay.ask.stage}: {replay.ask.why}"
        if replay.ask
        else "",
        git_log=git_log(replay) if isinstance(kind, CommitItems) else "",
        left=_left(replay, question),
        stalled=(
            tuple(
                Stalled(
                    item=item,
                    title=replay.kind.title(item),
                    runs=len(store.of(item)),
                    stalled=times,
                )
                for item, times in stalls
            )
        ),
        ends=ends,
    )


def _suspect(suspect: Suspect) -> Range:
    text = f"{100 * suspect.share:.0f} % of the probability, no claim: {suspect.why}"
    return Range(suspect.first, suspect.last, text)


def _gap(gap: Gap, question: Question) -> Range:
    text = "does not get worse"
    if gap.improves:
        text = (
            f"improves by {_words(question, -gap.step)}: it hides part of what is worse"
        )
    elif gap.largest > 0:
        text += f" by more than {_words(question, gap.largest)} from end to end"
    return Range(gap.good, gap.bad, text)


def _estimate(estimate: Estimate | None, question: Question) -> str:
    """By what the ends differ, and the runs that a search takes; empty while unknown."""
    if estimate is None:
        return ""
    return (
        f"ends differ by {_words(question, estimate.step)}, {estimate.step / estimate.noise:.2g} times the "
        f"noise of one run: {estimate.runs_low} to {plural(estimate.runs_high, 'run')} expected"
    )


def _left(replay: Searched, question: Question) -> Left | None:
    unexplained = remainder(replay.search)
    if unexplained is None:
        return None
    title, rules = replay.kind.title, question.rules
    between = tuple((title(first), title(last)) for first, last in unexplained.rises)
    rest = (
        4 * max((rules.rest, *rules.further)[-1], 1.0) if replay.search.used_up else 0.0
    )
    whole, left = unexplained.whole, unexplained.left
    return Left(
        whole=changed(question, whole.size, whole.low, whole.high),
        change=changed(question, left.size, left.low, left.high),
        between=between,
        rest=rest,
        possible=unexplained.possible,
    )


def state_of(events: Sequence[object], *, over: bool) -> str:
    """Return how the latest session ended; ``over``: nothing is left to ask."""
    if over:
        return "complete"
    bounds = [event for event in events if isinstance(event, Ended | Session)]
    if bounds and isinstance(bounds[-1], Ended):
        return bounds[-1].reason
    return "running"


def _words(question: Question, size: float) -> str:
    return share(abs(changed(question, size).value))


def _exit_code(
    culprits: tuple[Culprit, ...], replay: Searched, ends: Ends | None
) -> int:
    if culprits:
        return 1
    if ends is not None and ends.open:
        return 3
    gap = next(iter(replay.search.gaps), None)
    excluded = gap is not None and gap.largest < replay.search.rules.margin
    return 0 if replay.ask is None and excluded and not replay.search.suspects else 3


def _found(culprit: Culprit, replay: Searched, question: Question) -> Found:
    effect = culprit.effect
    kind = replay.kind
    return Found(
        item=culprit.item,
        title=kind.title(culprit.item),
        parent=kind.title(culprit.parent),
        suspects=tuple(map(kind.title, culprit.suspects)),
        change=changed(question, effect.size, effect.low, effect.high),
        probability=culprit.share,
        pairs=culprit.pairs,
        p=culprit.p,
        runs=culprit.runs,
        via=tuple(map(kind.title, culprit.via)),
        commit=kind.repository.commit(culprit.item)
        if isinstance(kind, CommitItems)
        else None,
        revert=_proof(culprit, replay, question),
    )


def _proof(culprit: Culprit, replay: Searched, question: Question) -> Proof | None:
    revert = culprit.revert
    if revert is None:
        return None
    effect = revert.effect
    change = changed(question, effect.size, effect.low, effect.high) if effect else None
    return Proof(
        title=replay.kind.title(revert.item),
        change=change,
        pairs=revert.pairs,
        p=revert.p,
        shown=revert.shown,
        reason=revert.reason,
    )


def _taken_out(culprits: Sequence[Culprit]) -> set[str]:
    """Return the items that are the bad end without a culprit."""
    return {culprit.revert.item for culprit in culprits if culprit.revert}


def _levels(
    replay: Searched,
    question: Question,
    answers: list[Answered],
    places: dict[str, int],
) -> tuple[Level, ...]:
    taken_out = _taken_out(replay.search.culprits)
    levels = []
    for item, values in values_by_item(answers).items():
        if item in taken_out:
            continue
        # The change of an item against the good end; None where too little of either was measured.
        good, exact = replay.search.line.items[0], replay.search.rules.exact
        step = replay.search.store.step([good], [item]) if item != good else None
        if step is None:
            change = None
        else:
            if not exact and step.freedom < 2:
                change = changed(question, step.size)
            else:
                half = exact or step.error * float(stdtrit(step.freedom, 0.975))
                change = changed(
                    question, step.size, step.size - half, step.size + half
                )
        level = Level(
            item=item,
            title=replay.kind.title(item),
            place=places.get(item, -1),
            runs=len(values),
            value=float(np.median(values)),
            change=change,
        )
        levels.append(level)
    return tuple(sorted(levels, key=lambda level: level.place))


def values_by_item(answers: Iterable[Answered]) -> dict[str, list[float]]:
    """Return all values of each item that has some, in the order measured."""
    values: dict[str, list[float]] = {}
    for answered in answers:
        if answered.values:
            values.setdefault(answered.item, []).extend(answered.values)
    return values


def totals(events: Sequence[object], answers: list[Answered]) -> Totals:
    wall, begun, last = 0.0, 0.0, 0.0
    for event in events:
        stamp = (
            event.at if isinstance(event, Session | Asked | Answered | Ended) else last
        )
        if isinstance(event, Session):
            wall += last - begun
            begun = stamp
        last = stamp
    wall += last - begun
    builds = [
        answered.answer.build for answered in answers if answered.answer.build > 0.5
    ]
    return Totals(
        visits=len(answers),
        runs=sum(len(answered.values) for answered in answers),
        builds=len({answered.item for answered in answers}),
        build_seconds=sum(builds),
        run_seconds=sum(answered.answer.run for answered in answers),
        wall=max(0.0, wall),
        undone=sum(isinstance(event, Undone) for event in events),
    )
