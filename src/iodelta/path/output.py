"""What a guest wrote to its second serial port, read back: per cell fio's JSON and a count of every latency."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator, Mapping
from itertools import dropwhile

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
        return (self._at((self.total - 1) // 2) + self._at(self.total // 2)) / 2

    @property
    def mean(self) -> float:
        """Instructions, over all I/Os: timer ticks and refills are in it."""
        return (
            sum(v * n for v, n in zip(self.values, self.counts, strict=True))
            / self.total
        )

    def modes(self, limit: int = 3) -> tuple[tuple[int, float], ...]:
        """The commonest counts and their share of all I/Os."""
        common = sorted(
            zip(self.values, self.counts, strict=True),
            key=lambda pair: (-pair[1], pair[0]),
        )[:limit]
        return tuple((value, count / self.total) for value, count in common)

    def _at(self, rank: int) -> int:
        for value, count in zip(self.values, self.counts, strict=True):
            rank -= count
            if rank < 0:
                return value
        raise ValueError("no I/Os")


class CellOutput(msgspec.Struct, frozen=True):
    """One cell of one boot; ``reason`` says why there is nothing."""

    reason: str = ""
    fio: bytes = b""
    latencies: dict[Kind, Counts] = {}
    reads: dict[str, int] = {}
    """Read requests served per member device."""

    def ios(self, place: str) -> int:
        """I/Os that fio counted, of all jobs and directions. Raises MeasureError."""
        try:
            jobs = from_json(self.fio, _Report).jobs
        except msgspec.MsgspecError as error:
            raise MeasureError(
                f"fio's report is damaged: {error}", place=place
            ) from error
        count = sum(
            job.read.total_ios + job.write.total_ios + job.trim.total_ios
            for job in jobs
        )
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
    """A guest's output. Raises MeasureError for one that is not whole."""
    text = data.decode("utf-8", "replace")
    parts = list(sections(text))
    if not parts or not parts[0][0].startswith("boot ") or parts[-1][0] != "end":
        raise MeasureError("the guest's output is not whole", place=place)
    cells: dict[int, CellOutput] = {}
    symbols = ""
    number = -1
    for head, lines in parts[1:-1]:
        word, _, rest = head.partition(" ")
        if word == "symbols":
            symbols = unpacked("".join(lines), place)
            continue
        if word == "cell":
            number = int(rest)
            cells[number] = CellOutput()
            continue
        if number < 0:
            raise MeasureError(
                f"unexpected {head!r} in the guest's output", place=place
            )
        cells[number] = _with(cells[number], word, rest, lines, place)
    return Output(parts[0][0].removeprefix("boot "), cells, symbols)


def cell_of(outputs: Mapping[int, Output], boot: int, number: int) -> CellOutput | None:
    """What a cell of a boot gave; None where the boot or the cell did not come to its end."""
    return outputs[boot].cells.get(number) if boot in outputs else None


def _with(
    cell: CellOutput, word: str, rest: str, lines: list[str], place: str
) -> CellOutput:
    if word == "reason":
        return CellOutput(reason=rest)
    if word == "json":
        # fio writes notes before its report, as that a synchronous engine's depth is 1.
        report = dropwhile(lambda line: not line.startswith("{"), lines)
        return msgspec.structs.replace(cell, fio="\n".join(report).encode())
    if word == "latencies":
        latencies = _latencies(lines, place)
        return (
            msgspec.structs.replace(cell, latencies=latencies)
            if latencies
            else CellOutput(reason="fio logged no I/O")
        )
    if word == "members":
        fields = [line.split() for line in lines]
        return msgspec.structs.replace(
            cell, reads={field[0]: int(field[1]) for field in fields if len(field) > 1}
        )
    raise MeasureError(
        f"unexpected section {word!r} in the guest's output", place=place
    )


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
    return {kind: _counts(pairs) for kind, pairs in latencies.items()}


def _counts(pairs: list[tuple[int, int]]) -> Counts:
    values, numbers = zip(*sorted(pairs), strict=True)
    return Counts(values, numbers)


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
