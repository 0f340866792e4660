"""A bundle as a read-only experiment folder, without unpacking it to disk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MeasureError, RequestError
from iodelta.lab.folder import EXPERIMENT, JOURNAL, RAW, Event, Folder, kind_of
from iodelta.lab.opened import has_member

if TYPE_CHECKING:
    from iodelta.bundle.archive import Manifest


class Packed(Folder):
    """The folder in a bundle; ``digest`` is the bundle's SHA-256."""

    def __init__(self, path: Path) -> None:
        from iodelta.bundle.archive import digest_of, unpacked

        super().__init__(path)
        self.manifest: Manifest
        self.manifest, self._members = unpacked(path)
        self.digest = digest_of(path)
        for name in (EXPERIMENT, JOURNAL):
            if not self.has(name):
                raise RequestError(
                    f"there is no {name} in this bundle",
                    place=str(path),
                    remedy="ask for another one",
                )

    def has(self, name: str) -> bool:
        return name in self._members

    def raw_names(self) -> list[str]:
        return [name for name in self._members if name.startswith(f"{RAW}/")]

    def check_times(self) -> None:
        kind_of(self)(self.path).check_times()

    def _bytes(self, name: str) -> bytes:
        try:
            return self._members[name]
        except KeyError:
            raise MeasureError(
                "is not in this bundle", place=f"{self.path}!{name}"
            ) from None

    def write(self, name: str, data: bytes) -> None:
        self._refuse()

    def write_raw(self, trial: int | str, kinds: Mapping[str, bytes]) -> None:
        self._refuse()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        self._refuse()
        yield

    def append(self, event: Event, *, sync: bool = True) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RequestError(
            "a bundle is read-only",
            place=str(self.path),
            remedy="`iodelta reproduce` measures it again; `tar --zstd -xf` makes a folder of it",
        )


def is_bundle(path: Path | str) -> bool:
    """Return whether this file is a bundle, sound or not."""
    from iodelta.bundle.archive import looks_packed  # of a folder nothing is unpacked

    return looks_packed(Path(path))


def is_own(path: Path | str) -> bool:
    """Return whether this is an experiment of iodelta's: a folder, or a bundle of one."""
    return has_member(path, JOURNAL) or is_bundle(path)


def is_nameless(folder: Folder) -> bool:
    """Return whether this is a bundle, packed or unpacked, in which placeholders replace the names of machines and
    disks.
    """
    if isinstance(folder, Packed):
        return not folder.manifest.identity_kept
    from iodelta.bundle.archive import MANIFEST, Manifest

    if not folder.has(MANIFEST):
        return False
    try:
        return not from_json(folder.read(MANIFEST), Manifest).identity_kept
    except msgspec.MsgspecError:
        return True


def opened(path: Path | str) -> Folder:
    """Return the experiment folder at ``path``, or the one in the bundle there. Raises RequestError."""
    if is_bundle(path):
        return Packed(Path(path))
    return Folder.open(Path(path))
