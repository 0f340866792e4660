"""The result of a search by a person's answers (good, bad): places and probabilities, but no measured change."""

from __future__ import annotations

from collections import Counter

from iodelta.bisect.byhand import Judging, Named
from iodelta.bisect.driver import Judged
from iodelta.bisect.items import CommitItems
from iodelta.bisect.log import SearchFolder
from iodelta.bisect.question import Question
from iodelta.study.git_log import begun, named
from iodelta.study.search import Found, SearchAccount, Skipped, Spoken
from iodelta.study.searched import state_of, totals


def account(folder: SearchFolder, question: Question, replay: Judged) -> SearchAccount:
    """Judge a folder as it is now."""
    search, kind, events = replay.search, replay.kind, folder.events()
    culprit = replay.outcome.culprit if replay.outcome else None
    over = replay.ask is None
    next_ = (
        f"{kind.title(replay.ask.item)}: {replay.ask.why} About {search.left()} more."
        if replay.ask
        else ""
    )
    votes = Counter(replay.search.store.words)
    places = {item: place for place, item in enumerate(replay.search.line.items)}
    items = {item: None for item, _ in replay.search.store.words}
    spoken = [
        Spoken(
            item=item,
            title=replay.kind.title(item),
            place=places.get(item, -1),
            good=votes[item, "good"],
            bad=votes[item, "bad"],
        )
        for item in items
    ]
    return SearchAccount(
        folder=str(folder.path),
        question=question,
        state=state_of(events, over=over),
        exit_code=1 if culprit else 3,
        items=len(search.line.items),
        good=kind.title(search.line.items[0]),
        bad=kind.title(search.line.items[-1]),
        culprits=(_found(culprit, replay),) if culprit else (),
        suspects=(),
        gaps=(),
        refused=replay.outcome.refused if replay.outcome else "",
        estimate="",
        posterior=(),
        levels=(),
        skipped=tuple(
            Skipped(item, kind.title(item), why)
            for item, why in search.store.broken.items()
        ),
        totals=totals(events, folder.answers()),
        drifts=False,
        machine="",
        system=(),
        blind="",
        scatter="",
        next=next_,
        git_log=git_log(replay, culprit) if isinstance(kind, CommitItems) else "",
        answers=tuple(sorted(spoken, key=lambda answer: answer.place)),
    )


def _found(culprit: Named, replay: Judged) -> Found:
    kind = replay.kind
    return Found(
        item=culprit.item,
        title=kind.title(culprit.item),
        parent=kind.title(culprit.parent),
        suspects=tuple(map(kind.title, culprit.suspects)),
        change=None,
        probability=culprit.share,
        pairs=0,
        p=None,
        runs=culprit.answers,
        via=tuple(map(kind.title, culprit.via)),
        commit=kind.repository.commit(culprit.item)
        if isinstance(kind, CommitItems)
        else None,
        contradicting=culprit.contradicting,
    )


def git_log(replay: Judged, culprit: Named | None) -> str:
    """Return what `git bisect log` would print. git takes every answer for true, so answers that contradict the
    culprit are left out; without a culprit the log has only the two ends of the line."""
    lines = begun(replay.kind, _marks(replay.search, culprit))
    if culprit is not None and not culprit.skipped:
        lines.append(f"# first bad commit: {named(replay.kind, culprit.item)}")
    return "\n".join(lines) + "\n"


def _marks(search: Judging, culprit: Named | None) -> list[tuple[str, str]]:
    items = search.line.items
    marks = [("good", items[0]), ("bad", items[-1])]
    marks += [("skip", item) for item in items[1:-1] if item in search.store.broken]
    if culprit is None:
        return marks
    first = items.index((*culprit.via, culprit.item)[0])
    answered = {item for item, _ in search.store.words}
    places = [place for place in range(1, len(items) - 1) if items[place] in answered]
    good = [place for place in places if place < first]
    bad = places[len(good) :][::-1]
    marks += [("good", items[place]) for place in good]
    marks += [("bad", items[place]) for place in bad]
    return marks
