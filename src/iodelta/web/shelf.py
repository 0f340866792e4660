"""Results that somebody sent to look at: a private directory that empties itself. Nothing in them is ever run."""

from __future__ import annotations

import re
import secrets
import shutil
import tarfile
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from iodelta.errors import RequestError
from iodelta.lab.folder import EXPERIMENT, JOURNAL, RAW
from iodelta.lab.workdir import sweep, take
from iodelta.machine import LocalMachine, Lock
from iodelta.plural import plural

PREFIX = "iodelta-uploads-"

KEPT = 3600.0
"""Seconds that something stays."""

MOST, LARGEST = 20, 512 << 20
"""Uploads that are kept, and their bytes in all; the oldest gives way."""

ITEMS = 20
"""Things in one upload."""

OWN = re.compile(r"(raw/)?[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
"""Names of files in an experiment folder."""


class Sent(NamedTuple):
    """A file as it arrived; its name is a stranger's."""

    name: str
    size: int
    file: BinaryIO


class Upload(msgspec.Struct, frozen=True):
    """What one user sent."""

    id: str
    """Unguessable."""
    owner: str
    at: float
    names: tuple[str, ...]
    """As the sender called them."""
    paths: tuple[str, ...]
    directory: str
    size: int


class Shelf:
    """All uploads."""

    def __init__(self) -> None:
        self.arriving = 0
        """Uploads that are on their way."""
        self._root: Path | None = None
        self._held: Lock | None = None
        self._uploads: dict[str, Upload] = {}
        self._lock = threading.Lock()

    @property
    def root(self) -> Path:
        """Made when first asked for; no other user can look into it. What killed servers left behind goes then."""
        if self._root is None:
            machine, place = LocalMachine(), tempfile.gettempdir()
            sweep(machine, place, PREFIX)
            path, self._held = take(machine, place, PREFIX)
            self._root = Path(path)
        return self._root

    def get(self, identifier: str, owner: str) -> Upload | None:
        """Return what this user sent under that name; none where it is gone, or another's."""
        with self._lock:
            self._purge()
            upload = self._uploads.get(identifier)
        return upload if upload is not None and upload.owner == owner else None

    def keep(
        self, files: Sequence[Sent], owner: str, earlier: Upload | None = None
    ) -> Upload:
        """Keep what was sent, with what was there ``earlier``. Raises RequestError."""
        if not files:
            raise RequestError(
                "nothing was sent", place="upload", remedy="choose a file or a folder"
            )
        items: dict[str, list[Sent]] = {}
        for number, sent in enumerate(files):
            top, _, below = tidy(sent.name).partition("/")
            items.setdefault(f"{top}/" if below else f"{top}\0{number}", []).append(
                sent
            )
        count = len(items) + (len(earlier.names) if earlier else 0)
        if count > ITEMS:
            what, remedy = (
                f"{plural(count, 'thing')} at once",
                f"send at most {ITEMS}, or an archive",
            )
            raise RequestError(what, place="upload", remedy=remedy)
        size = sum(sent.size for sent in files) + (earlier.size if earlier else 0)
        identifier = secrets.token_urlsafe(12)
        with self._lock:
            self._purge(room_for=size)
            directory = self.root / secrets.token_hex(8)
            directory.mkdir(mode=0o700)
        try:
            paths = _all_stored(items, directory, earlier)
        except OSError as error:
            shutil.rmtree(directory, ignore_errors=True)
            raise RequestError(
                f"cannot be kept: {error.strerror}", place="upload"
            ) from error
        names = (
            *(earlier.names if earlier else ()),
            *(key.partition("\0")[0].rstrip("/") for key in items),
        )
        made = Upload(
            identifier, owner, time.monotonic(), names, paths, str(directory), size
        )
        with self._lock:
            self._uploads[identifier] = made
        later = threading.Timer(
            KEPT + 1, self.get, (identifier, owner)
        )  # which removes what is old
        later.daemon = True
        later.start()
        return made

    def close(self) -> None:
        """Remove everything."""
        with self._lock:
            self._uploads.clear()
            if self._root is not None:
                shutil.rmtree(self._root, ignore_errors=True)
            if self._held is not None:
                self._held.release()

    def _purge(self, room_for: int = 0) -> None:
        oldest = sorted(self._uploads.values(), key=lambda upload: upload.at)
        held = sum(upload.size for upload in oldest) + room_for
        for number, upload in enumerate(oldest):
            is_old = time.monotonic() - upload.at > KEPT
            if is_old or held > LARGEST or (room_for and len(oldest) - number >= MOST):
                del self._uploads[upload.id]
                shutil.rmtree(upload.directory, ignore_errors=True)
                held -= upload.size


def _all_stored(
    items: Mapping[str, Sequence[Sent]], directory: Path, earlier: Upload | None
) -> tuple[str, ...]:
    """Return the paths of what was there before and of what was sent, each in a directory with a number for a name."""
    paths: list[str] = []
    if earlier is not None:
        shutil.copytree(earlier.directory, directory, dirs_exist_ok=True)
        paths += [
            str(directory / Path(path).relative_to(earlier.directory))
            for path in earlier.paths
        ]
    for files in items.values():
        place = directory / str(len(paths))
        place.mkdir()
        paths.append(str(_stored(files, place)))
    return tuple(paths)


def tidy(name: str) -> str:
    """Return a stranger's path without what would lead elsewhere."""
    parts = (
        part
        for part in name.replace("\0", "").replace("\\", "/").split("/")
        if part not in ("", ".", "..")
    )
    return "/".join(parts)[:400] or "unnamed"


def _slug(name: str) -> str:
    """Return a name for a file of ours that reminds of another."""
    return (
        re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[-64:].lstrip(".-")
        or "unnamed"
    )


def _stored(files: Sequence[Sent], place: Path) -> Path:
    """Return a file as it is; an experiment folder as such; any other folder as an archive, so that no name becomes a
    path.
    """
    name = tidy(files[0].name)
    if "/" not in name:
        path = place / _slug(name)
        with open(path, "xb") as written:
            shutil.copyfileobj(files[0].file, written)
        return path
    top = name.partition("/")[0]
    of_folder = _own_folder(files)
    if of_folder:
        folder = place / _slug(top)
        (folder / "raw").mkdir(parents=True)
        for below, sent in of_folder.items():
            with open(folder / below, "xb") as written:
                shutil.copyfileobj(sent.file, written)
        return folder
    path = place / f"{_slug(top)}.tar"
    with tarfile.open(path, "x:") as tar:
        for sent in files:
            member = tarfile.TarInfo(tidy(sent.name).partition("/")[2])
            member.size = sent.size
            tar.addfile(member, sent.file)
    return path


def _own_folder(files: Sequence[Sent]) -> dict[str, Sent]:
    """Return the files of the one experiment folder among these, by their names in it; empty where there is none."""
    names = {tidy(sent.name): sent for sent in files}
    folders = [name[: -len(JOURNAL)] for name in names if name.endswith(f"/{JOURNAL}")]
    if len(folders) != 1 or f"{folders[0]}{EXPERIMENT}" not in names:
        return {}
    below = {
        name[len(folders[0]) :]: sent
        for name, sent in names.items()
        if name.startswith(folders[0])
    }
    return {
        name: sent
        for name, sent in below.items()
        if OWN.fullmatch(name) and name != RAW
    }
