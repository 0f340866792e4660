"""The output of fio's ``t/io_uring``, of every generation (fio 3.13 to 3.42), as runs.

``iodelta.workload.io_uring_lines`` parses single lines and combines their fields. The first line includes the warm-up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Refusal, Run, unknown
from iodelta.ingest.numbers import percentile, whole
from iodelta.ingest.options import workload
from iodelta.ingest.text_lines import STEP, percentiles
from iodelta.ingest.wording import clean, clean_all
from iodelta.trial import Direction, Finding, Latency, Place, Quantity
from iodelta.workload.io_uring_lines import ERRORS, RATE, TROUBLE, Second, mean

_HEADER = re.compile(
    r"Added file \S|submitter=\d|polled=[01],|Engine=\w|Using TSC rate|(?:sq|cq)_ring ptr|sqes ptr"
)
_TAIL = re.compile(r"(?:\^C)?Exiting on|Maximum IOPS=")
_FIELD = re.compile(r"\b([A-Za-z_]{1,14})=([^,\s]{1,120})")
_COMMAND = re.compile(r"(?:^|[\s/])io_uring((?: {1,3}-[A-Za-z] ?\d{0,15})+)(.{0,300})")
_SWITCH = re.compile(r"-([A-Za-z]) ?(\d{1,15})?")
_LATENCY = re.compile(r"percentiles \((tsc ticks|usec|nsec)\)")
_NAMES = {
    "b": "bs",
    "d": "iodepth",
    "s": "batch_submit",
    "c": "batch_complete",
    "n": "numjobs",
    "r": "runtime",
}
_BLOCKS = tuple(512 << power for power in range(12))


class _Block:
    """The output of one start of t/io_uring."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.options: dict[str, str] = {}
        self.seconds: list[Second] = []
        self.submitters: set[str] = set()
        self.spreads: list[tuple[str, str]] = []
        self.trouble: list[str] = []
        self.errors = 0
        self.ended = False
        self.timed_out = False

    def header(self, text: str) -> None:
        for name, value in _FIELD.findall(text):
            if name == "submitter":
                self.submitters.add(value)
            elif name not in ("tid", "node"):
                self.options.setdefault(name, value)

    def take(self, text: str) -> bool:
        """Return whether a line that is neither header nor rate belongs to this output."""
        if _TAIL.match(text):
            self.ended = True
            self.timed_out = self.timed_out or "timeout" in text
        elif unit := _LATENCY.search(text):
            self.spreads.append((unit[1], ""))
        elif self.spreads and "th=[" in text:
            name, before = self.spreads[-1]
            self.spreads[-1] = (name, f"{before} {text}")
        elif TROUBLE.search(text):
            self.trouble.append(text)
        elif errors := ERRORS.match(text):
            self.errors += int(errors[2])
        else:
            return False
        return True


def outputs(lines: Sequence[Line], used: bytearray, file: str) -> list[Run | Refusal]:
    """Return every t/io_uring output among ``lines``; their indexes are marked in ``used``."""
    collector = _Outputs()
    for index, line in enumerate(lines):
        text = " ".join(line.text[:2000].split())
        if text and not used[index] and collector.take(line.number, text):
            used[index] = 1
    runs = (_run(block, Place(file, block.number)) for block in collector.blocks)
    return list(filter(None, runs))


class _Outputs:
    """The starts of t/io_uring in a text, as its lines come in."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self._command: dict[str, str] = {}
        """Options of a command line whose output has not begun yet."""

    def take(self, number: int, text: str) -> bool:
        """Return whether the line is t/io_uring's."""
        now = self.blocks[-1] if self.blocks else None
        if now is not None and now.ended:
            running = None
        else:
            running = now
        rate = RATE.search(text) if "IOPS=" in text else None
        if rate:
            running = running or self._begin(number)
            running.seconds.append(Second(rate))
            return True
        if _HEADER.match(text):
            if running is None or running.seconds:
                running = self._begin(number)
                running.options, self._command = self._command, {}
            running.header(text)
            return True
        return (now is not None and now.take(text)) or self._called(text)

    def _begin(self, number: int) -> _Block:
        self.blocks.append(_Block(number))
        return self.blocks[-1]

    def _called(self, text: str) -> bool:
        called = _COMMAND.search(text) if "io_uring" in text else None
        if called:
            self._command = _command(called[1], called[2])
        return called is not None


def _command(switches: str, rest: str) -> dict[str, str]:
    """Return the switches of a command line, by fio's names if fio has the option."""
    options = {
        _NAMES.get(letter, f"-{letter}"): value
        for letter, value in _SWITCH.findall(switches)
    }
    if rest.strip():
        options["filename"] = rest.strip()
    return options


def _run(block: _Block, place: Place) -> Run | Refusal | None:
    if not block.seconds:
        # Why a start printed no rate; None if nothing shows that t/io_uring was started.
        if not block.trouble and not block.submitters:
            return None
        why = f": {clean(block.trouble[0])}" if block.trouble else ""
        return Refusal(place, f"t/io_uring printed no rate{why}")
    # Bytes: from the command line, else the only size with which BW and IOPS of every line agree; None without BW.
    size: int | None
    text = block.options.get("bs", "")
    if text.isdigit() and 0 < int(text) <= _BLOCKS[-1]:
        size = int(text)
    elif any(second_.mib is None for second_ in block.seconds):
        size = None
    else:
        possible = [size for size in _BLOCKS if _fits(block, size)]
        if len(possible) != 1:
            size = None
        else:
            size = possible[0]
    rates = [
        ((second.fits(size) if size else None) or second.iops)
        for second in block.seconds
    ]
    iops = mean(rates[1:] or rates)
    # Bytes per second of `iops` I/Os of `size` bytes.
    if not size:
        bandwidth = unknown("B/s")
    else:
        bandwidth = Quantity(
            iops.value * size, iops.low * size, iops.high * size, "B/s"
        )
    lat = _latency(block)
    # The options of the header, by the names of fio's job options if there is one.
    given = dict(block.options)
    is_sequential = given.pop("-R", "1") == "0"
    options = {
        "rw": "read" if is_sequential else "randread",
        "ioengine": given.pop("Engine", "io_uring"),
    }
    if "QD" in given:
        given["iodepth"] = given.pop("QD")
    if "buffered" in given:
        # Passthrough (-u) bypasses the page cache, whatever -O says.
        is_direct = given["buffered"] == "0" or given.get("-u") == "1"
        options["direct"] = "1" if is_direct else "0"
    if size:
        options["bs"] = str(size)
    if block.submitters:
        options["numjobs"] = str(len(block.submitters))
    if "file" in given:
        options["filename"] = given.pop("file")
    for name in _WORKED_OUT:
        given.pop(name, None)
    options = options | given
    return Run(
        place=place,
        format="io_uring",
        jobname="t/io_uring",
        jobs=len(block.submitters) or None,
        directions=(Direction("read", 0, 0, _lasted(block), iops, bandwidth, lat=lat),),
        options=clean_all(options),
        workload=workload(options),
        series={"read.iops": tuple(rate.value for rate in rates)},
        findings=tuple(_remarks(block, size, str(place))),
    )


def _latency(block: _Block) -> Latency | None:
    # Percentiles of one thread, or intervals over all: a quantile of a mixture lies between those of its parts.
    threads: list[dict[float, Quantity]] = []
    for unit, text in block.spreads:
        if unit != "tsc ticks":  # those are of unknown rate
            step = STEP[unit[0]]
            threads.append(
                {
                    percent_: percentile(value, step, True)
                    for percent_, value in percentiles(text)
                }
            )
    spread: dict[float, Quantity] = {}
    for percent in chain.from_iterable(threads[:1]):
        values = [thread[percent] for thread in threads if percent in thread]
        spread[percent] = _between(values)
    pass
    if not spread:
        return None
    nothing = unknown("ns")
    return Latency(0, nothing, nothing, nothing, nothing, spread)


def _remarks(block: _Block, size: int | None, where: str) -> Iterator[Finding]:
    if len(block.seconds) == 1:
        yield Finding(
            "uring.one-line",
            "warning",
            where,
            "a single line, which includes the warm-up",
        )
    if block.trouble:
        yield Finding(
            "uring.trouble", "warning", where, clean("; ".join(block.trouble[:3]))
        )
    if block.errors:
        text = f"{block.errors} I/Os failed; they are subtracted from the IOPS"
        yield Finding("uring.errors", "warning", where, text)
    if any(unit == "tsc ticks" for unit, _ in block.spreads):
        text = "its latencies are in ticks of a clock of unknown rate: omitted"
        yield Finding("uring.ticks", "note", where, text, "give -T, the TSC rate")
    counted = block.seconds[1:] or block.seconds
    if size and any(second.fits(size) is None for second in counted):
        text = f"IOPS and BW contradict each other for blocks of {size} bytes in some lines"
        yield Finding("uring.disagree", "warning", where, text)


def _lasted(block: _Block) -> int:
    """Run time in ms: one line per second, without the last second of -r; 0 if the end is missing."""
    asked = whole(block.options.get("runtime", ""))
    if block.timed_out and asked:
        return 1000 * asked
    if not block.ended:
        return 0
    return 1000 * (len(block.seconds) + block.timed_out)


def _fits(block: _Block, size: int) -> bool:
    return all(second.fits(size) is not None for second in block.seconds)


_WORKED_OUT = ("bs", "numjobs")
"""Options that are derived from the rates and the threads; those of the command line are ignored."""


def _between(values: Sequence[Quantity]) -> Quantity:
    """Return the mean of ``values``, with an interval that contains all of theirs."""
    middle = sum(value.value for value in values) / len(values)
    low = min(value.low for value in values)
    high = max(value.high for value in values)
    return Quantity(middle, low, high, "ns")
