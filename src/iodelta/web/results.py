"""What was found in a folder or bundle: judged once, and again only when its files change."""

from __future__ import annotations

import os
import threading
from collections import Counter, OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from iodelta.bisect.driver import attributed, judged, searched
from iodelta.bisect.log import LOG, SearchFolder
from iodelta.bisect.question import Patches
from iodelta.bundle.packed import is_bundle, opened
from iodelta.errors import IodeltaError, MeasureError, RequestError, pasted
from iodelta.fleet.measured import hosts_in
from iodelta.lab.folder import JOURNAL, RAW, CountFolder, DiskFolder, Folder
from iodelta.machine import LocalMachine
from iodelta.report.derived import charted, charts_of_preparation
from iodelta.report.formats.charts.changes import charts_of_fleet
from iodelta.report.formats.charts.model import Charts
from iodelta.report.stories.kinds import story_of
from iodelta.report.stories.story import Detail
from iodelta.stats.forget import forget_patterns
from iodelta.study.attribution import AttributionAccount
from iodelta.study.attribution import account as of_patches
from iodelta.study.by_words import account as of_words
from iodelta.study.experiment import Account
from iodelta.study.fleet import FleetAccount, fleet_account
from iodelta.study.search import SearchAccount
from iodelta.study.searched import account as of_search
from iodelta.web.folders import Kind, Place, stamp_of
from iodelta.web.live import Live
from iodelta.web.underway import progress

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Result


KEPT = 24
"""Results that are kept in memory with their charts."""

SUMMARIES = 20_000

FIRST = 0.5
"""Seconds that a list waits for the first judgement of an experiment that goes on."""

LARGEST_BUNDLE = 64 << 20
"""Bytes of a bundle that is opened: it is unpacked in memory."""


class Summary(msgspec.Struct, frozen=True):
    """One result in a list."""

    id: str
    """Part of its address: ``/experiment/ID``."""
    name: str
    """Its path below the directory that is served."""
    kind: Kind
    changed: float
    """Unix seconds of its last change."""
    question: str = ""
    answer: str = ""
    """In a sentence or two, as its report begins."""
    state: str = ""
    """``running``, ``complete``, ``budget``, ``interrupted`` or ``failed: ...``."""
    words: dict[str, int] = {}
    """How many comparisons have each verdict."""
    problem: str = ""
    """Why it cannot be read; empty when it can."""


class Seen(msgspec.Struct, frozen=True):
    """A result, ready to be laid out."""

    result: Result
    charts: Charts
    detail: Detail


_Stamp = tuple[int, ...]


class Results:
    """Results of places. One is judged at a time: it takes a processor, and readers of others do not wait for it."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[_Stamp, Seen]] = OrderedDict()
        self._summaries: OrderedDict[str, tuple[_Stamp, Summary]] = OrderedDict()
        self._judging = threading.Lock()
        self.live = Live()

    def of(self, place: Place) -> Seen:
        """Return what was found there. Raises RequestError, MeasureError where it cannot be read."""
        known = self._known(place)
        if known is not None:
            return known
        with self._judging:
            known = self._known(place)  # somebody else may have judged it meanwhile
            if known is not None:
                return known
            stamp = stamp_of_place(place)
            seen = _read(place)
            forget_patterns()
            self._seen[place.id] = (stamp, seen)
            while len(self._seen) > KEPT:
                self._seen.popitem(last=False)
        return seen

    def summary(self, place: Place, *, wait: bool = True) -> Summary | None:
        """Return a line about it; none where it would have to be judged first and ``wait`` is not set."""
        if self.live.goes_on(place):
            # What is known of a running one, which another thread judges from time to time.
            plain = Summary(
                place.id, place.name, place.kind, place.changed, state="running"
            )
            try:
                known = self.live.underway(place, folder_of(place), wait=FIRST)
            except IodeltaError as error:
                return msgspec.structs.replace(plain, problem=error.what)
            if known is None:
                return plain
            words: Counter[str] = Counter()
            for comparison in known.comparisons:
                words.update(word for _, word in comparison.words)
            return msgspec.structs.replace(
                plain,
                question=known.question,
                answer=progress(known),
                words=dict(words),
            )
        stamp = stamp_of_place(place)
        kept = self._summaries.get(place.id)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        if not wait and self._known(place) is None:
            return None
        made = self._made(place)
        self._summaries[place.id] = (stamp, made)
        while len(self._summaries) > SUMMARIES:
            self._summaries.popitem(last=False)
        return made

    def _known(self, place: Place) -> Seen | None:
        kept = self._seen.get(place.id)
        if kept is None or kept[0] != stamp_of_place(place):
            return None
        self._seen.move_to_end(place.id)
        return kept[1]

    def _made(self, place: Place) -> Summary:
        plain = Summary(place.id, place.name, place.kind, place.changed)
        try:
            seen = self.of(place)
        except IodeltaError as error:
            return msgspec.structs.replace(plain, problem=error.what)
        story = story_of(seen.result, seen.detail)
        summary = msgspec.structs.replace(
            plain, question=story.question, answer=story.answer
        )
        if not isinstance(seen.result, Account):
            return summary
        words = Counter(verdict.word for verdict in seen.result.judgement.verdicts)
        return msgspec.structs.replace(
            summary, state=seen.result.state, words=dict(words)
        )


def stamp_of_place(place: Place) -> _Stamp:
    """Sizes and times that differ once anything was added to a result."""
    path = Path(place.path)
    files = [path]
    if place.kind != "bundle":
        files += (path / JOURNAL, path / LOG, path / RAW)
    if place.kind == "fleet":
        files += sorted(path.glob(f"hosts/*/{JOURNAL}"))
    return stamp_of(files)


def folder_of(place: Place) -> Folder:
    """Return the experiment folder, or the one in the bundle. Raises RequestError, MeasureError."""
    path = Path(place.path)
    if place.kind not in ("experiment", "bundle"):
        raise RequestError(
            f"this is a {place.kind}, not an experiment", place=place.name
        )
    refuse_links(path)
    if is_bundle(path) and path.stat().st_size > LARGEST_BUNDLE:
        limit = f"{LARGEST_BUNDLE >> 20} MiB"
        raise RequestError(f"this bundle is larger than {limit}", place=place.name,
                           remedy=f"`iodelta report {pasted(path)}` shows it")  # fmt: skip
    return opened(path)


def refuse_links(path: Path) -> None:
    """Raises RequestError for a folder with a symbolic link in it: a stranger's folder could show files of yours."""
    for directory in (path, path / RAW):
        if not directory.is_dir():
            continue
        with os.scandir(directory) as entries:
            link = next((entry.name for entry in entries if entry.is_symlink()), None)
        if link is not None:
            raise RequestError(f"there is a symbolic link in this folder: {link}", place=path.name,
                               remedy="replace it by a copy of what it names")  # fmt: skip


def _read(place: Place) -> Seen:
    if place.kind in ("search", "fleet"):
        return _read_several(place)
    folder = folder_of(place)
    plain = Detail(folder=pasted(place.path), whole=True)
    if isinstance(folder, CountFolder):
        from iodelta.study.counted import counted

        paths = counted(folder)
        deep = paths.anatomy == "path"
        detail = msgspec.structs.replace(
            plain,
            functions=True,
            bill=True,
            lines=True,
            paths=deep,
            footprint=deep,
        )
        return Seen(paths, (), detail)
    if isinstance(folder, DiskFolder):
        from iodelta.study.preparation import prepared

        disk = prepared(folder)
        return Seen(disk, charts_of_preparation(disk), plain)
    again = f"iodelta reproduce {pasted(place.path)}" if place.kind == "bundle" else ""
    account, charts = charted(folder)
    return Seen(account, charts, msgspec.structs.replace(plain, again=again))


def experiment_of(seen: Seen) -> Account:
    """Raises MeasureError where this is no experiment with trials."""
    if not isinstance(seen.result, Account):
        raise MeasureError("this folder has no trials")
    return seen.result


def _read_several(place: Place) -> Seen:
    from iodelta.web.results import fleet_in, search_in

    path = Path(place.path)
    refuse_links(path)
    if place.kind == "search":
        return Seen(search_in(path), (), Detail(folder=pasted(place.path)))
    account, charts = fleet_in(path, f"iodelta fleet report {pasted(place.path)}")
    return Seen(account, charts, Detail(folder=pasted(place.path)))


def search_in(path: Path) -> SearchAccount | AttributionAccount:
    """Return what a search, or an attribution, knows so far. Raises RequestError, MeasureError."""
    folder, machine = SearchFolder.open(path), LocalMachine()
    question = folder.question()
    if isinstance(question.subject, Patches):
        return of_patches(
            folder, question, attributed(machine, question, folder.answers())
        )
    if question.by_hand == "words":
        return of_words(folder, question, judged(machine, question, folder.answers()))
    return of_search(folder, question, searched(machine, question, folder.answers()))


def fleet_in(path: Path, again: str) -> tuple[FleetAccount, Charts]:
    """Return what the hosts of a fleet say together. Raises RequestError where none was measured, MeasureError."""
    measured, left = hosts_in((str(path),))
    account = fleet_account(measured, (again,), left)
    return account, charts_of_fleet(account)
