"""The archive itself: named bytes in, the same bytes out, nothing believed in between.

A tar in one zstd frame, so that ``tar --zstd -xf`` gives an ordinary experiment folder. Members are sorted, all times
and owners are zero; the first member lists size and SHA-256 of every other. See docs/decisions/0010-bundles.md.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec
import zstandard

from iodelta.decoding import from_json
from iodelta.errors import RequestError
from iodelta.ingest.sources import DAMAGE, MOST_MEMBERS, tar_members
from iodelta.ingest.tar import Member, Readable
from iodelta.ingest.wording import clean
from iodelta.workload.model import OUTPUTS

MANIFEST = "bundle.json"
VERSION = 1
SUFFIX = ".iodelta.tar.zst"
MAGIC = b"\x28\xb5\x2f\xfd"

NAME = re.compile(
    r"experiment\.toml|plan\.json|journal\.jsonl|calibration\.json|reproduction\.json|environment(-\d{1,4})?\.json"
    rf"|raw/(step-)?\d{{6,9}}\.({'|'.join(map(re.escape, OUTPUTS.values()))}|record)\.zst",
    re.ASCII,
)
"""The files of an experiment. No other member is ever taken, so no name can lead anywhere."""

LARGEST = 256 << 20
"""Bytes of one member."""
WHOLE = 2 << 30
"""Bytes of all members, which are held in memory."""
DEEPEST = 64
"""Levels of nesting in a JSON member."""


class Entry(msgspec.Struct, frozen=True):
    """One member."""

    name: str
    size: int
    sha256: str


class Removed(msgspec.Struct, frozen=True):
    """A kind of identity: how many different ones were replaced, and in how many places."""

    kind: str
    different: int
    places: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle says of itself."""

    format: Literal["iodelta.bundle"] = "iodelta.bundle"
    version: int = VERSION
    made_by: str
    """Version of iodelta."""
    name: str
    """Of the folder."""
    state: str
    """How the experiment ended."""
    plan_sha256: str
    experiment_sha256: str
    """Of the folder's own files, before anything was removed: its owner can show which folder this was."""
    seal: str = ""
    """The chain of the last line of the folder's own journal; empty when the folder was not sealed."""
    identity_kept: bool = False
    removed: tuple[Removed, ...] = ()
    members: tuple[Entry, ...] = ()


class _Head(msgspec.Struct, frozen=True):
    """What every version of the format begins with."""

    format: str
    version: int


def sha256(data: bytes) -> str:
    """Hex digest."""
    import hashlib

    return hashlib.sha256(data).hexdigest()


def packed(manifest: Manifest, members: Mapping[str, bytes]) -> bytes:
    """The archive's bytes: the same for the same members and manifest."""
    import tarfile  # this and OpenSSL take a while to load, and hardly anybody packs

    entries = tuple(
        Entry(name, len(data), sha256(data)) for name, data in sorted(members.items())
    )
    head = msgspec.json.format(
        msgspec.json.encode(msgspec.structs.replace(manifest, members=entries)),
        indent=1,
    )
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in ((MANIFEST, head + b"\n"), *sorted(members.items())):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    return zstandard.ZstdCompressor(
        level=10, write_checksum=True, write_content_size=True
    ).compress(buffer.getvalue())


def digest_of(path: Path) -> str:
    """SHA-256 of a file. Raises RequestError."""
    import hashlib

    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RequestError(
            f"cannot read it: {error.strerror}", place=str(path)
        ) from error


def looks_packed(path: Path) -> bool:
    """Whether a file is called or begins as a bundle does, whatever follows. Only its beginning is read."""
    try:
        if not path.is_file():
            return False
        if path.name.endswith(SUFFIX):
            return True
        with path.open("rb") as file:
            if file.read(4) != MAGIC:
                return False
            file.seek(0)
            return next(
                (member.name == MANIFEST for member in tar_members(file)), False
            )
    except DAMAGE:
        return False


def unpacked(path: Path) -> tuple[Manifest, dict[str, bytes]]:
    """Manifest and members, every digest verified; nothing is written anywhere. Raises RequestError."""
    place = str(path)
    members: dict[str, bytes] = {}
    manifest: Manifest | None = None
    try:
        with path.open("rb") as file:
            for member, body in _bounded(file, place):
                if manifest is None:
                    manifest = _manifest(_all(body), clean(member.name), place)
                    continue
                _check_name(member.name, members, place)
                members[member.name] = _all(body)
    except DAMAGE as error:
        raise RequestError(
            f"damaged, or cut short: {clean(str(error)) or type(error).__name__}",
            place=place,
            remedy="fetch the bundle again; its SHA-256 was printed when it was packed",
        ) from error
    if manifest is None:
        raise _no_bundle(place)
    _verify(manifest, members, place)
    return manifest, members


def _bounded(file: BinaryIO, place: str) -> Iterator[tuple[Member, Readable]]:
    """The members of a tar, as long as they are files and no more than an experiment has. Raises RequestError."""
    total = 0
    for member in tar_members(file):
        name = clean(member.name)
        if member.body is None:
            raise _refused(place, f"it contains {member.other}, {name!r}")
        total += member.size
        if member.size > LARGEST or total > WHOLE:
            raise _refused(
                place,
                f"{name!r} makes it larger than any experiment ({total >> 20} MiB)",
            )
        yield member, member.body


def _check_name(name: str, before: Mapping[str, bytes], place: str) -> None:
    """Raises RequestError for a name that no experiment has, or that came before."""
    if not NAME.fullmatch(name) or len(before) >= MOST_MEMBERS:
        raise _refused(place, f"{clean(name)!r} is not a file of an experiment")
    if name in before:
        raise _refused(place, f"it contains {clean(name)!r} twice")


def _all(body: Readable) -> bytes:
    parts = []
    while part := body.read(1 << 20):
        parts.append(part)
    return b"".join(parts)


def _manifest(data: bytes, name: str, place: str) -> Manifest:
    if name != MANIFEST:
        raise _no_bundle(place)
    try:
        head = from_json(data, _Head)
        if head.format != "iodelta.bundle":
            raise _no_bundle(place)
        if head.version > VERSION:
            raise RequestError(
                f"it has format {head.version} of bundles, this iodelta knows {VERSION}",
                place=place,
                remedy="update iodelta, or ask for the experiment folder itself",
            )
        return from_json(data, Manifest)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise _refused(
            place, f"its list of members is damaged: {clean(str(error))}"
        ) from error


def _verify(manifest: Manifest, members: Mapping[str, bytes], place: str) -> None:
    listed = {entry.name: entry for entry in manifest.members}
    missing = sorted(listed.keys() ^ members.keys())
    if missing or len(listed) != len(manifest.members):
        what = clean(missing[0]) if missing else "a member"
        raise _refused(place, f"its members are not those it lists ({what!r})")
    for name, data in members.items():
        if (len(data), sha256(data)) != (listed[name].size, listed[name].sha256):
            raise _refused(place, f"{name} is not what was packed: its digest differs")
        if name.endswith((".json", ".jsonl")) and _deep(data):
            raise _refused(place, f"{name} is nested deeper than any record")


def _deep(data: bytes) -> bool:
    """Whether JSON is nested so deep that going through it would end the program. What is no JSON at all is found out
    by whoever reads it."""
    brackets = re.sub(rb'"(?:[^"\\]|\\.)*"|[^][{}]+', b"", data, flags=re.DOTALL)
    steps = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
    return (
        max(itertools.accumulate(steps[letter] for letter in brackets), default=0)
        > DEEPEST
    )


def _refused(place: str, what: str) -> RequestError:
    remedy = "fetch the bundle again, or ask its author for another one"
    return RequestError(
        f"not a bundle that can be trusted: {what}", place=place, remedy=remedy
    )


def _no_bundle(place: str) -> RequestError:
    return RequestError(
        "not a bundle",
        place=place,
        remedy="`iodelta pack FOLDER` makes one; `iodelta show` reads other archives",
    )
