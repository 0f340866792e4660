"""The contents of a device or file that may be overwritten: by name of its format, else by appearance."""

from __future__ import annotations

import msgspec

from iodelta.errors import MachineError
from iodelta.machine import Machine
from iodelta.plural import plural
from iodelta.probe.signatures import read_signatures
from iodelta.probe.topology import Target

PLACES = 64
"""Blocks, evenly spread, that are searched for data."""

BLOCK = 4096
"""Bytes of such a block."""

_READ = (
    'for at do dd if="$0" bs=4096 skip="$at" count=1 iflag=direct 2>/dev/null '
    '|| dd if="$0" bs=4096 skip="$at" count=1 2>/dev/null || exit 1; done'
)
"""For sh, with the path and block numbers as arguments: one round trip over a network."""


ENOUGH = 1 << 18
"""Bytes from which the kind of data is judged."""


class Contents(msgspec.Struct, frozen=True):
    """What was found. Finding nothing does not prove that it is empty."""

    signatures: tuple[str, ...]
    looks: str
    """``text``, ``random bytes``, ``data``; empty where every byte that was read is zero."""
    places: int
    """Blocks that were read, besides those with signatures."""

    @property
    def said(self) -> str:
        if self.signatures:
            return f"signature: {', '.join(self.signatures)}"
        if self.looks:
            return f"not empty: {self.looks}"
        if not self.places:
            return "an empty file"
        return f"all zero in {plural(self.places, 'sampled place')}"


def look(machine: Machine, target: Target) -> Contents:
    """Read the contents of a block device or file; writes nothing. Raises MachineError when it cannot be read."""
    if not target.size_bytes:
        return Contents((), "", 0)
    signatures, ends = read_signatures(machine, target.real_path, target.size_bytes)
    blocks = -(-target.size_bytes // BLOCK)
    places = sorted(
        {number * (blocks - 1) // max(1, PLACES - 1) for number in range(PLACES)}
    )
    done = machine.run(
        ["sh", "-c", _READ, target.real_path, *map(str, places)], timeout=120
    )
    if done.returncode != 0:
        raise MachineError(
            f"not all of {plural(len(places), 'place')} could be read",
            place=target.real_path,
        )
    return Contents(signatures, looks_of(ends + done.stdout), len(places))


def looks_of(sample: bytes) -> str:
    """Return the kind of data, ignoring zeros; empty for zeros alone."""
    data = sample.replace(b"\0", b"")[:ENOUGH]
    if not data:
        return ""
    if _is_text(data):
        return "text"
    if _is_random(data):
        return "random bytes, as encrypted or compressed data are"
    return "data"


def _is_text(data: bytes) -> bool:
    """Return whether it is ASCII, or UTF-8 with some ASCII in it."""
    other = data.translate(None, _PRINTED)
    if not other:
        return True
    has_controls = min(other) < 0x80
    if has_controls or len(other) >= 0.9 * len(data):
        return False
    return _is_unicode(data)


def _is_random(data: bytes) -> bool:
    """Return whether every byte but zero is about as frequent as any other."""
    if len(data) < BLOCK / 2:
        return False
    mean = len(data) / 255
    counts = map(data.count, range(1, 256))
    return all(mean / 3 < count < 3 * mean for count in counts)


def _is_unicode(data: bytes) -> bool:
    """Return whether nearly all of it is UTF-8; characters are cut where blocks end."""
    return len(data.decode(errors="ignore").encode()) > 0.99 * len(data)


_PRINTED = bytes(range(32, 127)) + b"\t\n\r\f"
