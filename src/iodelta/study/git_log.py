"""A search as ``git bisect log`` prints it, for readers and for ``git bisect replay``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iodelta.bisect.driver import Searched
from iodelta.bisect.items import CommitItems
from iodelta.bisect.model import Culprit
from iodelta.study.words import inert


def git_log(replay: Searched) -> str:
    """Return what ``git bisect log`` would print for the same search.

    Items up to the culprit's parent are good, those from the culprit on bad; items between them are left out. git knows
    one culprit only, so of several the first counts.
    """
    items = replay.search.line.items
    on_line = [culprit for culprit in replay.search.culprits if not culprit.via]
    culprit = min(on_line, key=lambda culprit: items.index(culprit.item), default=None)
    lines = begun(replay.kind, _marks(replay, culprit))
    if culprit is not None and not culprit.skipped:
        lines.append(f"# first bad commit: {named(replay.kind, culprit.item)}")
    elif culprit is not None:
        lines.append("# only skipped commits left to test")
        lines += [
            f"# possible first bad commit: {named(replay.kind, item)}"
            for item in culprit.suspects
        ]
    return "\n".join(lines) + "\n"


def begun(kind: object, marks: Iterable[tuple[str, str]]) -> list[str]:
    """Return the first lines of a log: the start, then each mark, which is a word and an item."""
    lines = ["git bisect start"]
    for word, item in marks:
        lines += [f"# {word}: {named(kind, item)}", f"git bisect {word} {item}"]
    return lines


def named(kind: object, item: str) -> str:
    """Return an item as git names it in comments: ``[1a2b3c] Subject of the commit``; its name twice if it is not one."""
    subject = item
    if isinstance(kind, CommitItems):
        subject = inert(kind.repository.commit(item).subject)
    return f"[{item}] {subject}"


def _marks(replay: Searched, culprit: Culprit | None) -> Iterator[tuple[str, str]]:
    """Word and item: the ends, what was skipped, then what was measured on both sides of the culprit."""
    items, store = replay.search.line.items, replay.search.store
    inner = items[1:-1]
    yield "good", items[0]
    yield "bad", items[-1]
    yield from (("skip", item) for item in inner if item in store.broken)
    if culprit is None:
        return
    parent, guilty = items.index(culprit.parent), items.index(culprit.item)
    measured = [item for item in inner if store.of(item)]
    yield from (("good", item) for item in measured if items.index(item) <= parent)
    # The latest first: git narrows towards the last one named.
    yield from (
        ("bad", item) for item in reversed(measured) if items.index(item) >= guilty
    )
