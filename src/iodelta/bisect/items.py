"""The items of a search: commits, entries of a list, or differing settings; and how to prepare one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from iodelta.bisect.git import Repository
from iodelta.bisect.model import Culprit, Line
from iodelta.bisect.question import Commits, Listed, Settings
from iodelta.bisect.tree import Worktree
from iodelta.errors import RequestError
from iodelta.machine import Machine

NOTHING = "(all as in good)"
AS_IN_GOOD = " (this one as in good, all others as in bad)"


class Titled(Protocol):
    """Items with names."""

    def title(self, item: str) -> str:
        """Return an item as a reader knows it."""


class Kind(Titled, Protocol):
    """The items of a search."""

    def line(self) -> Line:
        """From good to bad. Raises RequestError."""

    def inside(self, item: str) -> Sequence[Line]:
        """Lines that a merge brought in."""

    def reverted(self, culprit: Culprit) -> str:
        """Return the item that is the bad end without a culprit; empty if there is none, or it was measured already."""


@runtime_checkable
class InTree(Titled, Protocol):
    """Items that a worktree is brought to."""

    @property
    def repository(self) -> Repository:
        """Where they are."""

    def prepare(self, tree: Worktree, item: str) -> None:
        """Bring the tree to an item. Raises Unbuildable if that fails."""


class CommitItems:
    """Commits; ``repository`` reads them."""

    def __init__(self, repository: Repository, subject: Commits) -> None:
        self.repository = repository
        self._subject = subject

    def line(self) -> Line:
        return self.repository.line(
            self._subject.good, self._subject.bad, self._subject.paths
        )

    def inside(self, item: str) -> Sequence[Line]:
        return self.repository.inside(item, self._subject.paths)

    def reverted(self, culprit: Culprit) -> str:
        bad = self._subject.bad
        return "" if culprit.item == bad else f"{bad}-{culprit.parent}-{culprit.item}"

    def prepare(self, tree: Worktree, item: str) -> None:
        end, *change = item.split("-")
        tree.checkout(end)
        if change:
            tree.apply(self.repository.difference(*change), reverse=True)

    def title(self, item: str) -> str:
        end, *change = item.split("-")
        if not change:
            return self.repository.oneline(item)
        return f"{end[:12]} without {change[1][:12]}"


class ListedItems:
    """Texts in the user's own order."""

    def __init__(self, subject: Listed) -> None:
        self._subject = subject

    def line(self) -> Line:
        items = self._subject.items
        for item in items:
            if items.count(item) > 1:
                raise RequestError(f"{item!r} is on the list twice", place="--item")
        if len(items) < 2:
            what = "a list needs at least two items, the good one first"
            raise RequestError(what, place="--item")
        return Line(items, (1.0,) * (len(items) - 1))

    def inside(self, item: str) -> Sequence[Line]:
        return ()

    def reverted(self, culprit: Culprit) -> str:
        return ""

    def title(self, item: str) -> str:
        return item


class SettingItems:
    """Differing settings, switched from good to bad one after the other; an item is the last one switched."""

    def __init__(self, subject: Settings) -> None:
        self._subject = subject
        names = {**subject.good, **subject.bad}
        self.differing = tuple(
            name for name in names if subject.good.get(name) != subject.bad.get(name)
        )

    def line(self) -> Line:
        if not self.differing:
            raise RequestError(
                "both environments have the same settings", place="--settings"
            )
        return Line((NOTHING, *self.differing), (1.0,) * len(self.differing))

    def inside(self, item: str) -> Sequence[Line]:
        return ()

    def reverted(self, culprit: Culprit) -> str:
        if culprit.skipped or len(self.differing) == 1:
            return ""
        return culprit.item + AS_IN_GOOD

    def title(self, item: str) -> str:
        if item == NOTHING or item.endswith(AS_IN_GOOD):
            return item
        before = self._subject.good.get(item, "(absent)")
        after = self._subject.bad.get(item, "(absent)")
        return f"{item}: {before} -> {after}"

    def state(self, item: str) -> dict[str, str]:
        """Return all settings, with those up to ``item`` as in the bad environment."""
        state = dict(self._subject.good)
        for name in self._switched(item):
            state.pop(name, None)
            if name in self._subject.bad:
                state[name] = self._subject.bad[name]
        return state

    def _switched(self, item: str) -> set[str]:
        """Return the settings that are as in the bad environment."""
        if item == NOTHING:
            return set()
        if item.endswith(AS_IN_GOOD):
            return set(self.differing) - {item.removesuffix(AS_IN_GOOD)}
        return set(self.differing[: self.differing.index(item) + 1])

    def text(self, item: str) -> str:
        """Return the same in the form in which the settings were given."""
        lines = []
        for name, value in self.state(item).items():
            unset = self._subject.form == "kconfig" and value == "n"
            lines.append(f"# {name} is not set" if unset else f"{name}={value}")
        return "\n".join(lines) + "\n"


def kind_of(machine: Machine, subject: Commits | Listed | Settings) -> Kind:
    """Return the items of a question. Raises RequestError."""
    if isinstance(subject, Commits):
        return CommitItems(Repository.open(machine, subject.repo), subject)
    if isinstance(subject, Listed):
        return ListedItems(subject)
    return SettingItems(subject)


def read_settings(text: str, place: str) -> tuple[dict[str, str], bool]:
    """Settings of a file with ``name = value`` lines (sysctl, INI without sections) or of a kernel's .config; and
    whether it is the latter. Raises RequestError."""
    settings: dict[str, str] = {}
    kconfig = False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if unset := re.fullmatch(r"# (CONFIG_\w+) is not set", stripped):
            settings[unset[1]], kconfig = "n", True
            continue
        if not stripped or stripped[0] in "#;":
            continue
        match = re.fullmatch(r"([^=\s][^=]*?)\s*=\s*(.*)", stripped)
        if not match or not match[1].isprintable():
            raise RequestError(
                f"{stripped[:60]!r} is not name = value", place=f"{place}:{number}"
            )
        settings[match[1]] = match[2]
        kconfig = kconfig or match[1].startswith("CONFIG_")
    return settings, kconfig
