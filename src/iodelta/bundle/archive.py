"""The archive: it stores named bytes and returns the same bytes, and trusts nothing that it reads.

A tar in one zstd frame, so that ``tar --zstd -xf`` gives an ordinary experiment folder. Members are sorted, all times
and owners are zero; the first member lists size and SHA-256 of every other. See docs/decisions/bundles.md#what-a-bundle-is-and-when-a-change-is-reproduced.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec
import zstandard

from iodelta.decoding import from_json
from iodelta.errors import RequestError
from iodelta.ingest.sources import DAMAGE, MOST_MEMBERS, tar_members
from iodelta.ingest.tar import Member, Readable, at_most
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
"""Names of the files of an experiment. A member with another name is refused, so that no name leads elsewhere."""

LARGEST = 256 << 20
"""Bytes of one member."""
WHOLE = 2 << 30
"""Bytes of all members, which are held in memory."""
DEEPEST = 64
"""Levels of nesting in a JSON member: a deeper one would exhaust the stack of code that walks through it."""


class Entry(msgspec.Struct, frozen=True):
    """One member."""

    name: str
    size: int
    sha256: str


class Removed(msgspec.Struct, frozen=True):
    """A kind of identity: how many different identities of it were replaced, and in how many places."""

    kind: str
    different: int
    places: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of ``bundle.json``: what a bundle is, and a digest of every member."""

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
    """Digests of the files before anything was removed: the owner can prove which folder it was."""
    seal: str = ""
    """The chain of the last line of the folder's own journal; empty when the folder was not sealed."""
    identity_kept: bool = False
    removed: tuple[Removed, ...] = ()
    members: tuple[Entry, ...] = ()


class _Head(msgspec.Struct, frozen=True):
    """The fields that every version of the format has."""

    format: str
    version: int


def sha256(data: bytes) -> str:
    """Hex digest."""
    import hashlib

    return hashlib.sha256(data).hexdigest()


def packed(manifest: Manifest, members: Mapping[str, bytes]) -> bytes:
    """Return the archive's bytes: the same for the same members and manifest."""
    # This and OpenSSL take a while to load, and most commands do not pack.
    import tarfile

    in_order = sorted(members.items())
    entries = tuple(Entry(name, len(data), sha256(data)) for name, data in in_order)
    listed = msgspec.structs.replace(manifest, members=entries)
    head = msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in ((MANIFEST, head), *in_order):
            # A new TarInfo has time, owner and group 0, so that equal folders give equal bundles.
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    compressor = zstandard.ZstdCompressor(
        level=10, write_checksum=True, write_content_size=True
    )
    return compressor.compress(buffer.getvalue())


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
    """Return whether a file has the name or the beginning of a bundle, sound or not. Reads only the beginning."""
    try:
        if not path.is_file():
            return False
        if path.name.endswith(SUFFIX):
            return True
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                return False
            file.seek(0)
            first_member = next(iter(tar_members(file)), None)
            return first_member is not None and first_member.name == MANIFEST
    except DAMAGE:
        return False


def unpacked(path: Path) -> tuple[Manifest, dict[str, bytes]]:
    """Manifest and members, with every digest verified; writes nothing. Raises RequestError."""
    place = str(path)
    members: dict[str, bytes] = {}
    manifest: Manifest | None = None
    try:
        with path.open("rb") as file:
            for member, body in _bounded(file, place):
                if manifest is None:
                    data = at_most(body, member.size)
                    manifest = _manifest(data, clean(member.name), place)
                    continue
                name = member.name
                if not NAME.fullmatch(name) or len(members) >= MOST_MEMBERS:
                    raise _refused(
                        place, f"{clean(name)!r} is not a file of an experiment"
                    )
                if name in members:
                    raise _refused(place, f"it contains {clean(name)!r} twice")
                members[member.name] = at_most(body, member.size)
    except DAMAGE as error:
        raise RequestError(
            f"damaged, or cut short: {clean(str(error)) or type(error).__name__}",
            place=place,
            remedy="fetch the bundle again; its SHA-256 was printed when it was packed",
        ) from error
    if manifest is None:
        raise _no_bundle(place)
    entries = {entry.name: entry for entry in manifest.members}
    not_in_both = sorted(entries.keys() ^ members.keys())
    if not_in_both:
        raise _not_as_listed(place, clean(not_in_both[0]))
    if len(entries) != len(manifest.members):
        raise _not_as_listed(place, "a member")
    for name, data in members.items():
        entry = entries[name]
        if len(data) != entry.size or sha256(data) != entry.sha256:
            raise _refused(place, f"{name} is not what was packed: its digest differs")
        if name.endswith((".json", ".jsonl")) and _depth(data) > DEEPEST:
            raise _refused(place, f"{name} is nested deeper than any record")
    return manifest, members


def _bounded(file: BinaryIO, place: str) -> Iterator[tuple[Member, Readable]]:
    """Yield the members of a tar. Raises RequestError for a member that is not a file, and for too many bytes."""
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
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as damage:
        what = f"its list of members is damaged: {clean(str(damage))}"
        raise _refused(place, what) from damage


def _not_as_listed(place: str, name: str) -> RequestError:
    return _refused(place, f"its members are not those it lists ({name!r})")


def _depth(data: bytes) -> int:
    """Return the deepest nesting of brackets in JSON. The decoder checks whether it is JSON."""
    # Strings go first: a bracket in them opens nothing.
    brackets = re.sub(rb'"(?:[^"\\]|\\.)*"|[^][{}]+', b"", data, flags=re.DOTALL)
    depth = deepest = 0
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


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
