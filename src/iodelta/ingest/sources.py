"""Open paths as streams: files, folders, nested archives, standard input. Nothing is written to disk.

Archives are read front to back in bounded memory. One that expands to far more than its size is refused.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import zstandard

from iodelta.errors import RequestError
from iodelta.ingest.model import Refusal
from iodelta.ingest.tar import Member, Readable, at_most, is_tar, members
from iodelta.ingest.wording import clean
from iodelta.trial import Place

HEAD = 256 * 1024
"""Bytes that identify a stream; most results are shorter, and are read at once."""
LARGEST_INNER_ZIP = 256 << 20
"""Bytes of a zip archive inside another archive, which is kept in memory because zip needs a seekable file."""
DEEPEST = 4
"""Most levels of nested archives."""
MOST_MEMBERS = 100_000
FREE_EXPANSION = 64 << 20
EXPANSION = 200
"""After ``FREE_EXPANSION`` bytes an archive may expand by at most this factor. fio's JSON+ compresses to a twentieth, a
file of zeros to a thousandth."""
LARGEST_EXPANSION = 64 << 30
DICTIONARY = 128 << 20
"""Most bytes of memory that an xz or zstd stream may request."""

DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zstandard.ZstdError,
)
"""Exceptions of this module and of the libraries for a damaged, encrypted or hostile archive."""


_DIGITS = re.compile(r"([0-9]+)")


class Source(NamedTuple):
    """One file to read: ``head`` is its beginning, ``rest`` a stream of the remainder."""

    name: str
    """``folder/a.tar.gz!run1/x.json``, without control characters."""
    head: bytes
    rest: Readable
    """Raises only UnreadableError."""


class UnreadableError(Exception):
    """A file or archive member could not be read to its end."""


class ExpansionError(ValueError):
    """An archive that expands to far more than any result."""


class _Guarded:
    """A stream that raises UnreadableError for every failure."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        try:
            return self._stream.read(size)
        except DAMAGE as error:
            raise UnreadableError(clean(str(error)) or type(error).__name__) from error


class _Counted:
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: Readable, head: bytes = b"") -> None:
        self._stream = stream
        self._head = head
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        if self._head:
            data = self._head if size < 0 else self._head[:size]
            self._head = self._head[len(data) :]
            if size < 0:
                data += self._stream.read()
        else:
            data = self._stream.read(size)
        self.count += len(data)
        return data


class _Budget:
    """The bytes to which an archive may expand, all members together."""

    def __init__(self, packed: Callable[[], int]) -> None:
        self._packed = packed
        self._count = 0

    def spend(self, size: int) -> None:
        """Count ``size`` further bytes. Raises ExpansionError if they are too many."""
        self._count += size
        most = min(max(FREE_EXPANSION, EXPANSION * self._packed()), LARGEST_EXPANSION)
        if self._count > most:
            raise ExpansionError(
                f"it unpacks to more than {most >> 20} MiB, far more than its size: not read further"
            )


class _Expanding:
    """An unpacked stream that raises ExpansionError if it grows too large."""

    def __init__(self, stream: Readable, budget: _Budget) -> None:
        self._stream = stream
        self._budget = budget

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(1 << 20 if size < 0 else min(size, 1 << 20))
        self._budget.spend(len(data))
        return data


class _ZstdDecompressor:
    """zstd's decompressor with the interface of bz2's. It cannot limit its output, so it gets little input at a time:
    a block of 128 KiB has at least four bytes."""

    PART = 1024

    def __init__(self) -> None:
        self._now = zstandard.ZstdDecompressor(
            max_window_size=DICTIONARY
        ).decompressobj()
        self._packed = b""
        self._made = b""

    @property
    def eof(self) -> bool:
        return self._now.eof and not self._made

    @property
    def unused_data(self) -> bytes:
        return self._now.unused_data + self._packed

    @property
    def needs_input(self) -> bool:
        return not self._packed and not self._made

    def decompress(self, data: bytes, max_length: int) -> bytes:
        self._packed += data
        if not self._made and self._packed and not self._now.eof:
            part, self._packed = self._packed[: self.PART], self._packed[self.PART :]
            self._made = self._now.decompress(part)
        chunk, self._made = self._made[:max_length], self._made[max_length:]
        return chunk


class _Stepwise:
    """A stream of any number of members, with a decompressor that limits its output. Raises EOFError if the last member
    is cut."""

    def __init__(
        self,
        stream: Readable,
        make: Callable[
            [], bz2.BZ2Decompressor | lzma.LZMADecompressor | _ZstdDecompressor
        ],
    ) -> None:
        self._stream = stream
        self._make = make
        self._now = make()

    def read(self, size: int = -1) -> bytes:
        while True:
            if self._now.eof:
                left = self._now.unused_data.lstrip(b"\0") or self._stream.read(1 << 16)
                if not left.strip(b"\0"):
                    return b""
                self._now = self._make()
            elif self._now.needs_input:
                left = self._stream.read(1 << 16)
                if not left:
                    raise EOFError("the compressed data end early")
            else:
                left = b""
            data = self._now.decompress(left, max(size, 1))
            if data:
                return data


def sources(
    paths: Iterable[str | os.PathLike[str]], stdin: BinaryIO | None
) -> Iterator[Source | Refusal]:
    """Open every file in ``paths``; each is valid until the next is requested.

    Raises RequestError for a path that does not exist.
    """
    for given in paths:
        if os.fspath(given) == "-":
            if stdin is None:
                raise RequestError(
                    "there is no standard input to read",
                    remedy="name a file instead of -",
                )
            yield from _opened(stdin, "-")
            continue
        path = Path(given)
        try:
            mode = path.stat().st_mode
        except OSError as error:
            raise RequestError(
                f"cannot read it: {error.strerror}", place=str(path)
            ) from error
        yield from (
            _folder(path) if stat.S_ISDIR(mode) else _file(str(path), mode, named=True)
        )


def sources_of(data: bytes, name: str) -> Iterator[Source | Refusal]:
    """Return every file in ``data``, which is one file or archive called ``name``."""
    return _opened(io.BytesIO(data), name)


def tar_members(stream: BinaryIO) -> Iterator[Member]:
    """Yield the members of one tar archive, compressed or not; each ``body`` is valid until the next is requested.

    Reads the archive to its end, so that a cut one is never accepted. Raises one of ``DAMAGE``.
    """
    head = at_most(stream, HEAD)
    counted, packed = _Counted(stream, head), _packing(head)
    if packed in ("", "zip"):
        raise ValueError("it is not a tar archive")
    whole: Readable = counted
    if packed != "tar":
        whole = _Expanding(_unpacked(packed, counted), _Budget(lambda: counted.count))
    yield from members(whole)
    while rest := whole.read(1 << 16):
        if rest.strip(b"\0"):
            raise ValueError("there is something after its end")


def _folder(path: Path) -> Iterator[Source | Refusal]:
    refused: list[OSError] = []
    for folder, below, files in os.walk(path, onerror=refused.append):
        for skipped in [name for name in below if name in (".git", ".hg", ".svn")]:
            below.remove(skipped)
        below.sort(key=_natural)
        for name in sorted(files, key=_natural):
            file = os.path.join(folder, name).removeprefix("./")
            try:
                mode = os.stat(file).st_mode
            except OSError as error:
                yield Refusal(_place(file), f"cannot be read: {error.strerror}")
                continue
            yield from _file(file, mode, named=False)
    for failed in refused:
        yield Refusal(
            _place(str(failed.filename)), f"cannot be read: {failed.strerror}"
        )


def _file(path: str, mode: int, *, named: bool) -> Iterator[Source | Refusal]:
    if not (stat.S_ISREG(mode) or (named and stat.S_ISFIFO(mode))):
        yield Refusal(_place(path), "not a regular file")
        return
    try:
        with open(path, "rb") as stream:
            yield from _opened(stream, path)
    except OSError as error:
        yield Refusal(_place(path), f"cannot be read: {error.strerror or error}")


def _opened(
    stream: BinaryIO | Readable, name: str, depth: int = 0
) -> Iterator[Source | Refusal]:
    """Yield the files in a stream: itself, or the contents of an archive."""
    head = at_most(stream, HEAD)
    packed = _packing(head)
    if packed and depth >= DEEPEST:
        yield Refusal(_place(name), f"an archive inside {depth} others is not opened")
        return
    if not packed:
        yield Source(clean(name), head, _Guarded(stream))
        return
    try:
        if packed == "zip":
            yield from _zip(stream, head, name, depth)
        elif packed == "tar":
            yield from _tar(_Counted(stream, head), name, depth)
        else:
            counted = _Counted(stream, head)
            inner = _unpacked(packed, counted)
            yield from _opened(
                _Expanding(inner, _Budget(lambda: counted.count)), name, depth + 1
            )
    except DAMAGE as error:
        yield Refusal(_place(name), f"cannot be unpacked: {clean(str(error))}")


def _packing(head: bytes) -> str:
    """Return how a stream that begins with ``head`` is packed; empty where it is not."""
    for name, magic in _MAGIC.items():
        if head.startswith(magic):
            return name
    return "tar" if is_tar(head) else ""


_MAGIC: dict[str, bytes | tuple[bytes, ...]] = {
    "gz": b"\x1f\x8b",
    "bz2": b"BZh",
    "xz": b"\xfd7zXZ\0",
    "zst": b"\x28\xb5\x2f\xfd",
    "zip": (b"PK\3\4", b"PK\5\6"),
}


def _unpacked(packed: str, stream: _Counted) -> Readable:
    if packed == "gz":
        return gzip.GzipFile(fileobj=io.BufferedReader(_Raw(stream)))
    if packed == "bz2":
        return _Stepwise(stream, bz2.BZ2Decompressor)
    if packed == "xz":
        return _Stepwise(stream, lambda: lzma.LZMADecompressor(memlimit=DICTIONARY))
    return _Stepwise(stream, _ZstdDecompressor)


class _Raw(io.RawIOBase):
    """A ``Readable`` with the interface that the standard library's decompressors need."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self._stream.read(len(view))
        view[: len(data)] = data
        return len(data)


def _tar(stream: Readable, name: str, depth: int) -> Iterator[Source | Refusal]:
    for number, member in enumerate(members(stream)):
        if number >= MOST_MEMBERS:
            yield Refusal(
                _place(name), f"only the first {MOST_MEMBERS} members were read"
            )
            return
        inner = f"{name}!{member.name}"
        yield from _member(member, inner, depth)


def _member(member: Member, name: str, depth: int) -> Iterator[Source | Refusal]:
    if member.body is None:
        yield Refusal(_place(name), f"{member.other} inside an archive is not followed")
        return
    yield from _opened(member.body, name, depth + 1)


def _zip(
    stream: BinaryIO | Readable, head: bytes, name: str, depth: int
) -> Iterator[Source | Refusal]:
    file: BinaryIO
    if isinstance(stream, io.BufferedReader) and stream.seekable():
        file = stream
    else:
        data = head + at_most(stream, LARGEST_INNER_ZIP + 1 - len(head))
        if len(data) > LARGEST_INNER_ZIP:
            yield Refusal(
                _place(name),
                f"a zip archive of more than {LARGEST_INNER_ZIP >> 20} MiB that is not a file",
            )
            return
        file = io.BytesIO(data)
    whole = file.seek(0, os.SEEK_END)
    budget = _Budget(lambda: whole)
    with zipfile.ZipFile(file) as archive:
        for number, info in enumerate(archive.infolist()):
            if number >= MOST_MEMBERS:
                yield Refusal(
                    _place(name), f"only the first {MOST_MEMBERS} members were read"
                )
                return
            inner = f"{name}!{info.filename}"
            if info.is_dir():
                continue
            if stat.S_ISLNK(info.external_attr >> 16):
                yield Refusal(
                    _place(inner), "a symbolic link inside an archive is not followed"
                )
                continue
            try:
                with archive.open(info) as body:
                    yield from _opened(_Expanding(body, budget), inner, depth + 1)
            except DAMAGE as error:
                yield Refusal(_place(inner), f"cannot be unpacked: {clean(str(error))}")


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts run 2 before run 10."""
    parts = _DIGITS.split(name[:255])
    return [
        (int(part), "") if place % 2 else (0, part) for place, part in enumerate(parts)
    ]


def _place(name: str) -> Place:
    return Place(clean(name))
