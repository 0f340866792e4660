"""Read what a guest wrote to its second serial port: fio's JSON and a count of every latency, by cell."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, dropwhile
from typing import Any

import msgspec

from iodelta.decoding import from_json
from iodelta.errors import MeasureError
from iodelta.trial import Kind

KINDS: dict[str, Kind] = {"0": "read", "1": "write", "2": "trim"}
"""Data directions in fio's logs (HOWTO, "Log File Formats")."""

LARGEST_SYMBOLS = 64 << 20


class Counts(msgspec.Struct, frozen=True):
    """Latencies of one direction: how many I/Os took how many instructions, ascending."""

    values: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """I/Os."""
        return sum(self.counts)

    @property
    def median(self) -> float:
        """Instructions of the middle I/O; the mean of the two middle ones of an even number."""
        return median_of(self._pairs(), self.total)

    @property
    def mean(self) -> float:
        """Instructions, over all I/Os: timer ticks and refills are in it."""
        return sum(value * count for value, count in self._pairs()) / self.total

    def modes(self, limit: int = 3) -> tuple[tuple[int, float], ...]:
        """The commonest counts and their share of all I/Os."""
        common = sorted(self._pairs(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return tuple((value, count / self.total) for value, count in common)

    def _pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.values, self.counts, strict=True))


def median_of(pairs: Sequence[tuple[int, int]], total: int) -> float:
    """Return the median of ``total`` numbers, given as pairs of value and count, ascending. Raises ValueError for
    fewer.
    """
    return (_at(pairs, (total - 1) // 2) + _at(pairs, total // 2)) / 2


def _at(pairs: Iterable[tuple[int, int]], rank: int) -> int:
    for value, count in pairs:
        rank -= count
        if rank < 0:
            return value
    raise ValueError("fewer I/Os than their number")


class CellOutput(msgspec.Struct, frozen=True):
    """One cell of one boot; ``reason`` says why there is nothing."""

    reason: str = ""
    fio: bytes = b""
    latencies: dict[Kind, Counts] = {}
    reads: dict[str, int] = {}
    """Read requests served per member device."""
    births: tuple[str, ...] = ()
    """Allocations of the kernel, a line each, where moved lines are counted."""
    tags: str = ""
    """Whether the tags of both CPUs begin ``apart``, in words of their own: else ``shared``, or ``unknown``."""

    def ios(self, place: str) -> int:
        """I/Os that fio counted, of all jobs and directions. Raises MeasureError."""
        try:
            jobs = from_json(self.fio, _Report).jobs
        except msgspec.MsgspecError as error:
            raise MeasureError(
                f"fio's report is damaged: {error}", place=place
            ) from error
        sides = chain.from_iterable((job.read, job.write, job.trim) for job in jobs)
        count = sum(side.total_ios for side in sides)
        if count < 2:
            raise MeasureError("fio counted no I/O", place=place)
        return count


class _Side(msgspec.Struct, frozen=True):
    total_ios: int = 0


class _Job(msgspec.Struct, frozen=True):
    read: _Side = _Side()
    write: _Side = _Side()
    trim: _Side = _Side()


class _Report(msgspec.Struct, frozen=True):
    jobs: list[_Job]


class Output(msgspec.Struct, frozen=True):
    """All of one boot."""

    release: str
    cells: dict[int, CellOutput]
    symbols: str = ""
    """Lines of address and name, of a boot for functions."""


def read(data: bytes, place: str) -> Output:
    """Return a guest's output. Raises MeasureError for one that is not whole."""
    parts = list(sections(data.decode("utf-8", "replace")))
    if not parts or not parts[0][0].startswith("boot ") or parts[-1][0] != "end":
        raise MeasureError("the guest's output is not whole", place=place)
    cells: dict[int, CellOutput] = {}
    symbols, number = "", -1
    for head, lines in parts[1:-1]:
        word, _, rest = head.partition(" ")
        made: dict[str, Any] = {}
        if word == "symbols":
            symbols = unpacked("".join(lines), place)
            continue
        if word == "cell" and rest.isdigit():
            number = int(rest)
            cells[number] = CellOutput()
        elif number not in cells:
            raise MeasureError(
                f"unexpected {head[:80]!r} in the guest's output", place=place
            )
        elif word == "reason":
            cells[number], made = CellOutput(), {"reason": rest}
        elif word == "json":
            # fio writes notes before its report, for example that a synchronous engine has depth 1.
            report = dropwhile(lambda line: not line.startswith("{"), lines)
            made = {"fio": "\n".join(report).encode()}
        elif word == "latencies":
            made = {"latencies": _latencies(lines, place)}
            if not made["latencies"]:
                cells[number], made = CellOutput(), {"reason": "fio logged no I/O"}
        elif word == "members":
            rows = [line.split() for line in lines]
            made = {"reads": {name: int(count[0]) for name, *count in rows if count}}
        elif word == "births":
            made = {"births": tuple(lines)}
        elif word == "tags":
            made = {"tags": rest}
        else:
            raise MeasureError(
                f"unexpected section {word!r} in the guest's output", place=place
            )
        cells[number] = msgspec.structs.replace(cells[number], **made)
    return Output(parts[0][0].removeprefix("boot "), cells, symbols)


def cell_of(outputs: Mapping[int, Output], boot: int, number: int) -> CellOutput | None:
    """Return the output of a cell in a boot; None if the boot or the cell did not complete."""
    return outputs[boot].cells.get(number) if boot in outputs else None


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Heads, which begin with an @, with the lines below each."""
    head, lines = "", list[str]()
    for line in text.splitlines():
        if line.startswith("@"):
            if head:
                yield head, lines
            head, lines = line[1:], []
        else:
            lines.append(line)
    if head:
        yield head, [line for line in lines if line != "iodelta-end"]


def _latencies(lines: list[str], place: str) -> dict[Kind, Counts]:
    latencies: dict[Kind, list[tuple[int, int]]] = {}
    for line in lines:
        match = re.fullmatch(r"(\d) (\d+) (\d+)", line)
        if match is None or match[1] not in KINDS:
            raise MeasureError(f"not a count of latencies: {line[:80]!r}", place=place)
        latencies.setdefault(KINDS[match[1]], []).append((int(match[2]), int(match[3])))
    return {
        kind: Counts(*zip(*sorted(pairs), strict=True))
        for kind, pairs in latencies.items()
    }


def unpacked(text: str, place: str) -> str:
    """Symbols that the guest compressed. Raises MeasureError."""
    try:
        data = zlib.decompressobj(31).decompress(
            base64.b64decode(text, validate=True), LARGEST_SYMBOLS
        )
    except (ValueError, zlib.error) as error:
        raise MeasureError(
            f"the guest's symbols are damaged: {error}", place=place
        ) from error
    return data.decode("ascii", "replace")
