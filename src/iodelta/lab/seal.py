"""The seal of a folder: a chain of digests over the lines of a journal, and a digest of every file that they speak of.

Each line ends with ``"chain"``: the SHA-256 of the chain of the line before (64 hexadecimal digits, nothing before the
first line) followed by the line itself without its ``chain``. A line may carry ``"files"``: size and SHA-256 of every
file that was written since the line before. So a line or file that is missing, doubled, moved or edited is detected.
Lines cut off the end, and a journal whose whole chain was recomputed, are not detected by this alone.

Lines written before folders were sealed have no ``chain``; they count for the chain of the lines after them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from iodelta.decoding import decoder

CHAINED = re.compile(rb'(\{.*),"chain":"([0-9a-f]{64})"\}')


class FileSeal(msgspec.Struct, frozen=True):
    """A file as it was when a line of the journal sealed it."""

    size: int
    sha256: str


class Seal(msgspec.Struct, frozen=True):
    """What the whole lines of a journal vouch for."""

    lines: int = 0
    """Lines that are what was written."""
    digest: str = ""
    """The chain of the last of them, also where that line carries none."""
    unsealed: int = 0
    """Lines at the beginning that carry no chain."""
    broken: int = 0
    """The first line that is not what was written there; 0 when there is none."""
    files: dict[str, FileSeal] = {}

    @property
    def sealed(self) -> bool:
        """Return whether any line carries a chain."""
        return self.unsealed < self.lines or self.broken > 0


class _Envelope(msgspec.Struct, frozen=True):
    """What a line of any kind may carry."""

    files: dict[str, FileSeal] = {}
    chain: str = ""


_decoder = decoder(_Envelope)


def sha256(data: bytes) -> str:
    """Hex digest."""
    import hashlib  # OpenSSL takes a while to load

    return hashlib.sha256(data).hexdigest()


def file_seal(data: bytes) -> FileSeal:
    """Of a file's bytes."""
    return FileSeal(len(data), sha256(data))


def body_of(event: object, files: Mapping[str, FileSeal]) -> bytes:
    """Return a line without its chain. No kind of event has a field called ``files`` or ``chain``."""
    body = msgspec.json.encode(event)
    if not files:
        return body
    return body[:-1] + b',"files":' + msgspec.json.encode(files) + b"}"


def chained(before: str, body: bytes) -> tuple[bytes, str]:
    """Return the line with its chain, and the chain; ``before`` is the chain of the line before it."""
    digest = sha256(before.encode() + body)
    return body[:-1] + b',"chain":"' + digest.encode() + b'"}', digest


def read_seal(lines: list[bytes], before: Seal | None = None) -> Seal:
    """Follow the chain over the whole ``lines`` of a journal, as far as it holds; ``before`` is the seal of the lines
    before them."""
    before = before or Seal()
    digest, unsealed, files = before.digest, before.unsealed, dict(before.files)
    for number, line in enumerate(lines, before.lines + 1):
        # A line without its chain, and the chain that it carries
        match = CHAINED.fullmatch(line)
        body, chain = (match[1] + b"}", match[2].decode()) if match else (line, "")
        digest_here = sha256(digest.encode() + body)
        if not chain and unsealed == number - 1 and not _claims(line):
            unsealed = number
        elif chain != digest_here:
            return Seal(number - 1, digest, unsealed, number, files)
        digest = digest_here
        if b'"files"' in body:
            files |= _envelope(body).files
    return Seal(before.lines + len(lines), digest, unsealed, 0, files)


def altered(name: str, data: bytes, seal: Seal) -> str:
    """Return why the bytes of a file are not those that were sealed; empty when they are, or when it never was sealed."""
    sealed = seal.files.get(name)
    if sealed is None or (len(data), sha256(data)) == (sealed.size, sealed.sha256):
        return ""
    return "changed since the run began: size or SHA-256 is not the one that the journal has sealed"


def _claims(line: bytes) -> bool:
    """Return whether a line that iodelta did not write in this form has a chain or files: it was edited."""
    envelope = _envelope(line)
    return bool(envelope.chain or envelope.files)


def _envelope(line: bytes) -> _Envelope:
    try:
        return _decoder.decode(line)
    except (
        msgspec.MsgspecError,
        ValueError,
        RecursionError,
    ):  # the reader of the events reports the damaged line
        return _Envelope()
