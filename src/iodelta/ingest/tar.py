"""Read the regular files of a tar stream, front to back, in constant memory.

``tarfile`` is not used because it reads a header's declared gigabytes into memory, and iodelta needs only regular
files. Formats: ustar, GNU (long names), pax (path and size), POSIX.1-1988 v7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

BLOCK = 512
_LONGEST_NAME = 64 * 1024
_PAX_LENGTH = re.compile(rb"(\d{1,6}) ")
_LINKS = {
    "1": "a hard link",
    "2": "a symbolic link",
    "3": "a device",
    "4": "a device",
    "6": "a named pipe",
}


class Readable(Protocol):
    """A stream that can be read from front to back."""

    def read(self, size: int = ..., /) -> bytes: ...


class TarError(ValueError):
    """The stream is not a tar archive, or is damaged or cut."""


class Member(NamedTuple):
    """A member: ``body`` has the data of a regular file, ``other`` describes anything else."""

    name: str
    size: int
    body: Readable | None
    other: str = ""


class _Body:
    """The data of one member; data that the caller does not read is skipped."""

    def __init__(self, stream: Readable, size: int) -> None:
        self._stream = stream
        self.left = size

    def read(self, size: int = -1) -> bytes:
        wanted = self.left if size < 0 else min(size, self.left)
        data = self._stream.read(wanted) if wanted else b""
        if wanted and not data:
            raise TarError(
                f"the archive ends {self.left} bytes before the end of this member"
            )
        self.left -= len(data)
        return data


def is_tar(head: bytes) -> bool:
    """Return whether a stream that begins with ``head`` is a tar archive."""
    return len(head) >= BLOCK and any(head[:BLOCK]) and _checksum_fits(head[:BLOCK])


def members(stream: Readable) -> Iterator[Member]:
    """Yield the members in order; each ``body`` is valid until the next is requested. Raises TarError."""
    further = _Further()
    while header := at_most(stream, BLOCK):
        if not any(header):
            return
        if len(header) < BLOCK or not _checksum_fits(header):
            raise TarError("the archive is damaged: a header does not fit its checksum")
        declared = _number(header[124:136])
        kind = chr(header[156])
        if kind in "LKxg":  # names, links and attributes of the member that follows
            further.take(kind, stream, declared)
            continue
        name, length = further.name or _short_name(header), further.length(declared)
        further = _Further()
        if kind in _LINKS:
            yield Member(name, 0, None, _LINKS[kind])
        elif kind == "5":
            pass
        elif kind in "0\0007":
            body = _Body(stream, length)
            yield Member(name, length, body)
            _skip(stream, body.left + _padded(length) - length)
        else:
            if kind == "S":
                yield Member(name, length, None, "a sparse file")
            _skip(stream, _padded(length))


class _Further:
    """Facts in the blocks before a member: a long name (GNU), or its attributes (pax)."""

    def __init__(self) -> None:
        self.name = ""
        self._size: int | None = None

    def take(self, kind: str, stream: Readable, size: int) -> None:
        """Read a block of ``size`` bytes. Raises TarError if it is too large for a name."""
        if size > _LONGEST_NAME:
            raise TarError(f"a name or attribute of {size} bytes")
        text = at_most(stream, _padded(size))[:size]
        if kind == "L":
            self.name = text.rstrip(b"\0").decode("utf-8", "replace")
        if kind == "x":
            # `length key=value` records; a damaged one ends them.
            headers: dict[str, str] = {}
            while text:
                start = _PAX_LENGTH.match(text)
                length = int(start[1]) if start else 0
                # The length counts its own digits: one of 0 would begin the same record again, for ever.
                if start is None or not start.end() < length <= len(text):
                    break
                key, _, value = text[start.end() : length - 1].partition(b"=")
                headers[key.decode("utf-8", "replace")] = value.decode(
                    "utf-8", "replace"
                )
                text = text[length:]
            attributes = headers
            self.name = attributes.get("path", self.name)
            digits = attributes.get("size", "")
            self._size = int(digits) if digits.isdigit() else self._size

    def length(self, declared: int) -> int:
        """Return the size of the member: ``declared`` in its header, or from pax, which is used above 8 GiB."""
        if self._size is None or len(str(self._size)) > 15:
            return declared
        return self._size


def at_most(stream: Readable, size: int) -> bytes:
    """Return the next ``size`` bytes of a stream; fewer only where it ends before."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _skip(stream: Readable, size: int) -> None:
    while size > 0:
        part = stream.read(min(size, 1 << 20))
        if not part:
            raise TarError("the archive ends early")
        size -= len(part)


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _number(field: bytes) -> int:
    """Octal, or GNU's base 256. Raises TarError."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    text = field.split(b"\0")[0].strip()
    try:
        if not text:
            return 0
        return int(text, 8)
    except ValueError:
        raise TarError("the archive is damaged: a size is not a number") from None


def _checksum_fits(header: bytes) -> bool:
    field = header[148:156].split(b"\0")[0].strip()
    if not field.isdigit() or field.strip(b"01234567"):
        return False
    return int(field, 8) == sum(header) - sum(header[148:156]) + 8 * 32


def _short_name(header: bytes) -> str:
    name = header[:100].split(b"\0")[0]
    # GNU's header has other fields where that of POSIX has the folder.
    is_posix = header[257:262] == b"ustar" and header[263:265] == b"00"
    folder = header[345:500].split(b"\0")[0] if is_posix else b""
    return b"/".join(filter(None, (folder, name))).decode("utf-8", "replace")
