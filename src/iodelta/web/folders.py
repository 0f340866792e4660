"""The results below the directories that are served: experiments, bundles, searches and fleets, by identifier."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Literal

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from iodelta.bisect.log import LOG, QUESTION
from iodelta.bundle.archive import SUFFIX
from iodelta.bundle.packed import is_bundle
from iodelta.lab.folder import EXPERIMENT, JOURNAL

Kind = Literal["experiment", "bundle", "search", "fleet"]

DEEPEST = 6
"""Levels of directories below a root that are searched."""

MOST = 20_000
"""Directories that are searched at most, so that the search of a wrong root, such as ``/``, ends soon."""

LINES = {"experiment": JOURNAL, "fleet": JOURNAL, "search": LOG}
"""The file of each kind that grows with it; a bundle is a file itself."""


class Place(msgspec.Struct, frozen=True):
    """One result on disk."""

    id: str
    """Part of its address; stays as long as its path does."""
    name: str
    """Its path below the root."""
    path: str
    """Its absolute path."""
    kind: Kind

    @property
    def changed(self) -> float:
        """Unix seconds of its last line; 0 where it is gone."""
        file = Path(self.path) / LINES.get(self.kind, "")
        try:
            return file.stat().st_mtime
        except OSError:
            return 0.0


class _Listing(msgspec.Struct, frozen=True):
    """One directory, as of a time of change."""

    changed: int
    places: tuple[Place, ...]
    below: tuple[Path, ...]


class Folders:
    """The results below some roots. A directory is listed again only when it changed."""

    def __init__(self, roots: tuple[Path, ...]) -> None:
        self.roots = tuple(root.absolute() for root in roots)
        self._listings: dict[Path, _Listing] = {}
        self._lock = threading.Lock()

    def all(self) -> list[Place]:
        """Return every result, the newest first."""
        with self._lock:
            places = list(chain.from_iterable(map(self._below, self.roots)))
        return sorted(places, key=lambda place: (-place.changed, place.name))

    def get(self, identifier: str) -> Place | None:
        """Return the result with that identifier; None without one."""
        return next((place for place in self.all() if place.id == identifier), None)

    def at(self, path: str) -> Place | None:
        """Return the result in that directory or file; None if it is not served."""
        identifier = _identifier(Path(path).absolute())
        return self.get(identifier)

    def _below(self, root: Path) -> Iterator[Place]:
        waiting, seen = [(root, 0)], 0
        while waiting and seen < MOST:
            path, depth = waiting.pop()
            seen += 1
            listing = self._listed(path, root)
            yield from listing.places
            if depth < DEEPEST:
                waiting += [(directory, depth + 1) for directory in listing.below]

    def _listed(self, path: Path, root: Path) -> _Listing:
        try:
            changed = path.stat().st_mtime_ns
            known = self._listings.get(path)
            if known is None or known.changed != changed:
                with os.scandir(path) as entries:
                    visible = [
                        entry
                        for entry in entries
                        if not entry.name.startswith(".") and not entry.is_symlink()
                    ]
                names = {entry.name for entry in visible}
                kind = _kind(names)
                places = [] if kind is None else [_place(path, root, kind)]
                files = [
                    Path(entry.path)
                    for entry in visible
                    if entry.name.endswith(SUFFIX) and entry.is_file()
                ]
                places += [
                    _place(file, root, "bundle") for file in files if is_bundle(file)
                ]
                # An experiment holds no other; a fleet holds one for each host, below the directory ``hosts``.
                inside = names & {"hosts"} if kind is not None else names
                below = [
                    Path(entry.path)
                    for entry in visible
                    if entry.name in inside and entry.is_dir()
                ]
                known = self._listings[path] = _Listing(
                    changed, tuple(places), tuple(below)
                )
        except OSError:  # gone, or not ours to read
            return _Listing(0, (), ())
        return known


def _kind(names: set[str]) -> Kind | None:
    if EXPERIMENT in names and "hosts" in names:
        return "fleet"
    if EXPERIMENT in names and JOURNAL in names:
        return "experiment"
    return "search" if QUESTION in names and LOG in names else None


def _place(path: Path, root: Path, kind: Kind) -> Place:
    name = str(path.relative_to(root)) if path != root else root.name
    return Place(_identifier(path), name, str(path), kind)


def _identifier(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def stamp_of(files: Iterable[Path]) -> tuple[int, ...]:
    """Times of change and sizes of files, which differ once one of them was written; without those that are not
    there."""
    stamp: list[int] = []
    for file in files:
        with contextlib.suppress(OSError):
            state = file.stat()
            stamp += (state.st_mtime_ns, state.st_size)
    return tuple(stamp)


def place_of(request: Request) -> Place:
    """Return the result that the address names."""
    place: Place | None = request.app.state.site.folders.get(request.path_params["id"])
    if place is None:
        raise HTTPException(404)
    return place
