"""Parse the rows of a fio log, a gigabyte in seconds and constant memory: totals, bins and seconds by direction."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from iodelta.ingest.log_lines import Drawn, LineSums
from iodelta.ingest.log_windows import TICK, Floats, Ints, Windows, WindowSums
from iodelta.ingest.tar import Readable
from iodelta.plural import plural
from iodelta.probe.native import native_function
from iodelta.trial import BINS, Finding

CHUNK = 4 << 20
"""Bytes that are parsed at once."""
LONGEST = 8 * 86400
"""Most seconds that a log may cover."""
_LONGEST_STEP = 60_000
"""Most milliseconds between the start of a job and its first row."""
KINDS = 3
"""Directions: 0 read, 1 write, 2 trim."""
_MOST = (LONGEST * 1000, 2**53, KINDS, 2**40)
"""Times, values, directions and block sizes of fio are below these."""
_APART = 2**54
"""More than any number in a valid row."""


class Chunk(NamedTuple):
    """Some rows, column by column, and the number of invalid rows among them."""

    times: Ints
    values: Ints
    kinds: Ints
    blocks: Ints
    damaged: int


class Side(NamedTuple):
    """One direction of a log."""

    rows: int
    bytes: int
    """Sum of the block sizes."""
    total: float
    squares: float
    """Sum of the values and of their squares."""
    low: float
    high: float
    last: int
    """Milliseconds from the start of the log to its last row."""
    bins: Ints
    counts: Ints
    sums: Floats
    """Number of rows, and the sum of their values, in each second."""
    windows: Windows | None
    """The windows of the rows if they are averages; None if there are too many rows for that."""
    drawn: Drawn
    """The direction over time, for charts."""


class Clock:
    """Counts how often the time of a log goes back: fio wrote several jobs to it, or appended a run."""

    def __init__(self) -> None:
        self._last = 0
        self.backs = 0

    def add(self, times: Ints) -> None:
        """More rows, in the order of the log."""
        self.backs += int((np.diff(times, prepend=self._last) < -TICK).sum())
        self._last = int(times[-1])

    def findings(self, file: str) -> list[Finding]:
        """Return a warning if the time went back."""
        if not self.backs:
            return []
        text = f"the time goes back {plural(self.backs, 'time')}: rows of several jobs are added up; fio also appends to a log that is there, and a cut may have taken the beginning of each row"
        remedy = "compare with fio's own report, and remove old logs before a run"
        return [Finding("read.log-again", "warning", file, text, remedy)]


class Totals:
    """Totals of the rows of a log so far, for all directions in one pass."""

    def __init__(self, *, latencies: bool) -> None:
        self._latencies = latencies
        self._sums = np.zeros((4, KINDS))  # rows, bytes, values, squares
        self._low, self._high = np.full(KINDS, np.inf), np.full(KINDS, -np.inf)
        self._last = np.zeros(KINDS, dtype=np.int64)
        self._bins = np.zeros((KINDS, BINS), dtype=np.int64)
        self._counts = np.zeros((0, KINDS), dtype=np.int64)
        self._seconds = np.zeros((0, KINDS))
        self._windows = WindowSums(KINDS)
        self._lines = LineSums(KINDS, latencies=latencies)
        self._origin: int | None = None
        self.clock = Clock()
        self.damaged = 0

    def add(self, chunk: Chunk) -> None:
        """Add rows; rows that fio cannot have written are counted and omitted."""
        self.damaged += chunk.damaged
        if not len(chunk.times):
            return
        # Rows of log_unix_epoch count from 1970, others from the start of the job.
        if self._origin is None:
            self._origin = origin(chunk.times)
        times = chunk.times - self._origin if self._origin else chunk.times
        rows: tuple[Ints, ...] = (times, chunk.values, chunk.kinds, chunk.blocks)
        # Negative numbers are the largest without their sign.
        if any(
            int(row.view(np.uint64).max()) >= most
            for row, most in zip(rows, _MOST, strict=True)
        ):
            rows = _sound(rows)
            self.damaged += len(chunk.times) - len(rows[0])
        if len(rows[0]):
            self._add(*rows)

    @property
    def began(self) -> float | None:
        """Unix seconds when the job began; None if the times of rows start at 0."""
        if not self._origin:
            return None
        return self._origin / 1000

    def sides(self) -> dict[int, Side]:
        """Return the directions that have rows, by fio's number."""
        present = [kind for kind in range(KINDS) if self._sums[0, kind]]
        return {kind: self._side(kind) for kind in present}

    def _side(self, kind: int) -> Side:
        rows, size, total, squares = self._sums[:, kind].tolist()
        beyond = int(np.flatnonzero(self._counts[:, kind])[-1]) + 1
        return Side(
            rows=int(rows),
            bytes=int(size),
            total=total,
            squares=squares,
            low=float(self._low[kind]),
            high=float(self._high[kind]),
            last=int(self._last[kind]),
            bins=self._bins[kind],
            counts=self._counts[:beyond, kind],
            sums=self._seconds[:beyond, kind],
            windows=self._windows.of(kind),
            drawn=self._lines.of(kind),
        )

    def _add(self, times: Ints, values: Ints, kinds: Ints, blocks: Ints) -> None:
        self.clock.add(times)
        numbers = values.astype(np.float64)
        second = np.maximum(times - 1, 0) // 1000  # a window's row stands at its end
        first, beyond = int(second.min()), int(second.max()) + 1
        if beyond > len(self._counts):
            more = ((0, beyond - len(self._counts)), (0, 0))
            self._counts, self._seconds = (
                np.pad(self._counts, more),
                np.pad(self._seconds, more),
            )
        slot, slots = (second - first) * KINDS + kinds, (beyond - first) * KINDS
        counts = np.bincount(slot, minlength=slots).reshape(-1, KINDS)
        sums = np.bincount(slot, weights=numbers, minlength=slots).reshape(-1, KINDS)
        self._counts[first:beyond] += counts
        self._seconds[first:beyond] += sums
        rows, block = counts.sum(axis=0), int(blocks[0])
        sizes = rows * block
        if not (blocks == block).all():
            sizes = np.bincount(kinds, weights=blocks, minlength=KINDS)
        squares = np.bincount(kinds, weights=numbers * numbers, minlength=KINDS)
        self._sums += [rows, sizes, sums.sum(axis=0), squares]
        present = np.flatnonzero(rows).tolist()
        extremes = _extremes(values, kinds, present)
        for kind, (least, greatest) in zip(present, extremes, strict=True):
            self._low[kind] = min(self._low[kind], least)
            self._high[kind] = max(self._high[kind], greatest)
        moments = _extremes(times, kinds, present)
        for kind, (_, last) in zip(present, moments, strict=True):
            self._last[kind] = max(self._last[kind], last)
        self._lines.add(times, numbers, kinds, blocks)
        if not (self._latencies and block):
            self._windows.add(times, numbers, kinds, blocks)
        if self._latencies:
            index = _bins(values, numbers) + kinds * BINS
            self._bins += np.bincount(index, minlength=KINDS * BINS).reshape(
                KINDS, BINS
            )


def origin(times: Ints) -> int:
    """Time in ms when the job began: 0, or with log_unix_epoch, an estimate: one step before the first row."""
    first = int(times[0])
    if first <= LONGEST * 1000:
        return 0
    later = times[times > first + 1]
    if not len(later):
        return first
    return first - min(int(later[0]) - first, _LONGEST_STEP)


def _extremes(column: Ints, kinds: Ints, present: list[int]) -> list[tuple[int, int]]:
    """Minimum and maximum of ``column`` for each of the kinds ``present``; for two kinds without a copy of the rows."""
    if len(present) == 1:
        return [(int(column.min()), int(column.max()))]
    if len(present) == 2:
        apart = (kinds == present[1]) * _APART
        above, below = column + apart, column - apart
        return [
            (int(above.min()), int(below.max())),
            (int(below.min()) + _APART, int(above.max()) - _APART),
        ]
    parts = [column[kinds == kind] for kind in present]
    return [(int(part.min()), int(part.max())) for part in parts]


def _bins(values: Ints, numbers: Floats) -> Ints:
    """``trial.bin_index`` of each value: exponent and first six bits of the mantissa of a double are the bin."""
    index = (numbers.view(np.int64) >> 46) - (1028 << 6)
    return np.minimum(np.where(values < 64, values, index), BINS - 1)


def _sound(rows: tuple[Ints, ...]) -> tuple[Ints, ...]:
    """Return the rows that fio can have written."""
    sound = np.ones(len(rows[0]), dtype=bool)
    for row, most in zip(rows, _MOST, strict=True):
        sound &= (row >= 0) & (row < most)
    return tuple(row[sound] for row in rows)


def chunks(head: bytes, rest: Readable, shift: int) -> Iterator[Chunk]:
    """Yield the rows of a log that begins with ``head``. A thread parses the next chunk while the caller uses one.

    ``shift`` is 1 if a maximum follows the value. Errors that ``rest`` raises are passed on.
    """
    blocks = whole_rows(head, rest)
    parsed = (_parsed(rows, shift) for rows in blocks)
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(next, parsed, None)
        while (chunk := pending.result()) is not None:
            pending = pool.submit(next, parsed, None)
            yield chunk


def whole_rows(head: bytes, rest: Readable, size: int = CHUNK) -> Iterator[bytes]:
    """Yield a log that begins with ``head``, in blocks of about ``size`` bytes that end with a row.

    A row longer than those of fio is replaced by a damaged one. So is the last of several rows if it has no line end:
    fio ends every row.
    """
    left, at_end, is_first = head, False, True
    while not at_end:
        part = rest.read(size)
        at_end = not part
        cut = part.rfind(b"\n") + 1
        if at_end and left:
            yield _ended(left, alone=is_first)
        elif cut:
            yield b"".join((left, memoryview(part)[:cut]))
            left, is_first = part[cut:], False
        else:
            # No row of fio's is that long.
            left = left + part if len(left) < CHUNK else b"?"


def _ended(rows: bytes, *, alone: bool) -> bytes:
    """``rows`` with a damaged row for a last row that was cut. ``alone``: there are no rows before these."""
    end = max(rows.rfind(b"\n"), rows.rfind(b"\r")) + 1
    is_whole = not rows[end:].strip() or (alone and not end)
    if is_whole:
        return rows
    return rows[:end] + b"?"


def matrix(rows: bytes, columns: int) -> Ints | None:
    """``rows`` of ``columns`` numbers each, shape (rows, columns); None if a row contains anything else.

    A number beyond 64 bits is 2**63 - 1.
    """
    rows = rows.strip().replace(b"\r\n", b"\n")
    letters = np.frombuffer(rows, dtype=np.uint8)
    plain = rows.translate(None, b" ")
    if plain.translate(None, b"0123456789,\n") or not plain[:1].isdigit():
        return None
    # -1 ends a row: no other number is negative.
    marked = b"%b,-1" % plain.replace(b"\n", b",-1,")
    if (
        b",," in marked
        or ((letters[1:] == ord(" ")) & (letters[:-1] != ord(","))).any()
    ):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of numpy, where it could not go on to the end
        try:
            numbers = np.fromstring(marked, dtype=np.int64, sep=",")
        except (ValueError, DeprecationWarning):
            return None
    if len(numbers) % (columns + 1):
        return None
    table = numbers.reshape(-1, columns + 1)
    if (table[:, -1] == -1).all() and (table[:, :-1] >= 0).all():
        return table[:, :-1]
    return None


def _parsed(rows: bytes, shift: int) -> Chunk:
    """Complete rows as columns: by the native core, else by numpy, else row by row."""
    take = native_function("take_rows")
    taken = take(rows, shift) if take else None
    if taken is not None:
        times, values, kinds, blocks = (
            np.frombuffer(column, dtype=np.int64) for column in taken
        )
        return Chunk(times, values, kinds, blocks, 0)
    columns = rows[: rows.find(b"\n") + 1 or None].count(b",") + 1
    quick = matrix(rows, columns) if columns >= 4 + shift else None
    if quick is not None:
        wanted = quick.T[[0, 1, 2 + shift, 3 + shift]]
        times, values, kinds, blocks = np.ascontiguousarray(wanted)
        return Chunk(times, values, kinds, blocks, 0)
    return _by_rows(rows, shift)


def _by_rows(rows: bytes, shift: int) -> Chunk:
    """Rows of which some are damaged, one after the other."""
    wanted = re.compile(
        rb"\s*(-?\d{1,19}),\s*(-?\d{1,19}),%b\s*(-?\d{1,19}),\s*(-?\d{1,19})\s*(?:,.*)?"
        % (rb"[^,]*," * shift)
    )
    lines = [line for line in rows.split(b"\n") if line.strip()]
    matches = filter(None, map(wanted.fullmatch, lines))
    numbers = [
        row
        for row in (tuple(map(int, match.groups())) for match in matches)
        if max(row) < 1 << 63
    ]
    times, values, kinds, blocks = np.array(numbers, dtype=np.int64).reshape(-1, 4).T
    return Chunk(times, values, kinds, blocks, len(lines) - len(numbers))
