"""An ACPI table that offers a guest's kernel several CPU frequencies, so that its acpi-cpufreq offers governors.

A frequency is set by a write to a port that does nothing: the interface is real, the frequencies are not. Sources: ACPI
specification 6.5, 8.4.5 (``_PCT``, ``_PSS``, ``_PPC``), 5.2.6 (header) and 20 (AML); qemu names its CPUs
``\\_SB.CPUS.C000`` and on.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

PORT = 0x80
"""The port for firmware's POST codes; qemu and the kernel ignore what is written to it."""

_SYSTEM_IO = 1
_POWER, _LATENCY = 10, 10
"""Milliwatts per MHz, and microseconds of a transition: the kernel requires some numbers."""


def clocks(megahertz: Sequence[int], cpus: int) -> bytes:
    """Return the table, whole, for ``-acpitable file=``: every CPU has these clocks, given in falling order."""
    register = struct.pack("<BHBBBBQ", 0x82, 12, _SYSTEM_IO, 8, 0, 0, PORT) + b"\x79\0"
    buffer = _sized(b"\x11", _integer(len(register)) + register)
    states = [
        _package(
            *map(_integer, (clock, _POWER * clock, _LATENCY, _LATENCY, number, number))
        )
        for number, clock in enumerate(megahertz)
    ]
    objects = {
        b"_PCT": _package(buffer, buffer),
        b"_PSS": _package(*states),
        b"_PPC": _integer(0),
    }
    names = b"".join(b"\x08" + name + value for name, value in objects.items())
    body = b"".join(
        _sized(b"\x10", b"\\\x2f\x03_SB_CPUS" + b"C%03X" % cpu + names)
        for cpu in range(cpus)
    )
    head = struct.pack(
        "<4sIBB6s8sI4sI",
        b"SSDT",
        36 + len(body),
        2,
        0,
        b"IODELT",
        b"CPUFREQ ",
        1,
        b"IOD ",
        1,
    )
    # Byte 9 is the checksum: all bytes of the table add up to 0.
    return head[:9] + bytes([-sum(head + body) % 256]) + head[10:] + body


def _package(*values: bytes) -> bytes:
    return _sized(b"\x12", bytes([len(values)]) + b"".join(values))


def _integer(value: int) -> bytes:
    return b"\x0c" + struct.pack("<I", value)


def _sized(code: bytes, body: bytes) -> bytes:
    """``body`` behind its AML PkgLength, which counts its own two or three bytes."""
    more = 1 if len(body) + 2 < 1 << 12 else 2
    size = len(body) + 1 + more
    return (
        code
        + bytes([more << 6 | size & 15])
        + (size >> 4).to_bytes(more, "little")
        + body
    )
