"""Rows of runs on a terminal: 80 columns, digits by what is known, every mark explained below."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from iodelta.ingest import Refusal
from iodelta.plural import plural
from iodelta.study.devices import Served
from iodelta.study.runs import Number, Point, Row, Shown, shared_folder
from iodelta.study.words import inert
from iodelta.trial import Finding

WIDTH = 80
NUMBERS = (10, 8, 8, 8, 9, 9)
"""Widths of IOPS, MiB/s, mean, p50, p99 and p99.9."""

LEAST = 12
"""Columns of names that are kept, however wide the numbers are."""

SPREAD = 4
"""Columns more that IOPS with its spread over runs takes."""

COARSE = 0.05
"""A number known no better than this is marked."""

TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
MARKS = {"hard": "!", "warning": "?"}
STYLES = {"hard": "bold red", "warning": "yellow", "note": "dim"}
RANK = ("hard", "warning", "note")
REFUSALS = 10
DEVICES = 40
"""Lines of read_stats, and of files that were not read, that a screen shows."""


def lines(shown: Shown, width: int = WIDTH) -> Iterator[Text]:
    """All of it, none wider than ``width`` (80 or more)."""
    width = max(width, WIDTH)
    if shown.rows:
        first = NUMBERS[0] + SPREAD * any(row.spread is not None for row in shown.rows)
        told = [_numbers(row) for row in shown.rows]
        widths = [
            max(least, 1 + max(map(len, column)))  # a blank before the widest
            for least, column in zip((first, *NUMBERS[1:]), zip(*told, strict=True), strict=True)
        ]
        room = min(max(cell_len(named(row)) for row in shown.rows), max(LEAST, width - sum(widths) - 8))
        names = [_cut(named(row), room) for row in shown.rows]
        alike = {(row.group, name, row.kind) for row, name in zip(shown.rows, names, strict=True)}
        whole = len(alike) < len(names)  # cut names that are the same say nothing
        yield Text(" " * (room + 8) + _line(widths, "IOPS", "MiB/s", "mean", "p50", "p99", "p99.9"), style="dim")
        for group, rows in groupby(shown.rows, key=lambda row: row.group):
            yield Text(_cut(inert(group), width), style="bold")
            for row in rows:
                bare = set(map(str.strip, _numbers(row))) <= {"-"}  # a sentence: all that it has is its words
                yield from _row(row, room, widths, whole=whole or bare)
        yield Text()
    yield from _devices(shown.devices)
    if parts := list(legend(shown.rows)):
        yield from wrapped("; ".join(parts) + ".", style="dim")
    common = shared_folder(row.file for row in shown.rows)
    yield from findings(shown.findings, common)
    yield from not_read(shown.refusals, common)
    yield Text(_summary(shown), style="dim")


def _devices(found: Sequence[Served]) -> Iterator[Text]:
    """A line per device below its file."""
    common = shared_folder(device.file for device in found)
    for file, devices in groupby(found[:DEVICES], key=lambda device: device.file):
        own = list(devices)
        when = "since mount" if own[0].since_mount else "between the first and the last dump"
        lasted = f", {own[0].seconds:g} s" if own[0].seconds is not None else ""
        yield from wrapped(f"read_stats, {inert(file.removeprefix(common))}: {when}{lasted}", style="bold")
        for device in own:
            share = "-" if device.share is None else f"{100 * device.share:.1f} %"
            wait = "-" if device.wait is None else time(Number(device.wait, device.wait, device.wait))
            name = _cut(f"device {inert(device.device)}".strip(), 20)
            yield Text(f"  {name:<20} {device.reads:>13,.0f} reads{share:>9}{wait:>10} mean wait")
    if len(found) > DEVICES:
        yield Text(f"and {plural(len(found) - DEVICES, 'device')} more; --format json lists them")
    if found:
        yield Text()


def not_read(refusals: Sequence[Refusal], common: str = "", width: int = WIDTH) -> Iterator[Text]:
    """What could not be read, files with the same reason together."""
    alike: dict[str, list[str]] = {}
    for refusal in refusals:
        line = f":{refusal.place.line}" if refusal.place.line else ""
        alike.setdefault(refusal.reason, []).append(refusal.place.file.removeprefix(common) + line)
    for reason, files in list(alike.items())[:REFUSALS]:
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        yield from wrapped(f"not read: {inert(files[0])}{more}: {inert(reason)}", width=width)
    if len(alike) > REFUSALS:
        left = sum(len(files) for files in list(alike.values())[REFUSALS:])
        yield Text(f"and {left} more not read; --format json lists them")


def findings(found: Sequence[Finding], common: str = "", width: int = WIDTH) -> Iterator[Text]:
    """Findings grouped: what, how often, where first (below the folder ``common``), and what to do."""
    for finding, count in grouped_by_rule(found):
        times = f" ({count} times, the first here)" if count > 1 else ""
        mark = MARKS.get(finding.severity, " ")
        text = f"{mark} {inert(finding.place.removeprefix(common))}: {inert(finding.explanation)}{times}"
        if finding.remedy:
            text += f"; {inert(finding.remedy)}"
        yield from wrapped(f"{text} [{finding.rule}]", style=STYLES[finding.severity], width=width)


def grouped_by_rule(found: Sequence[Finding]) -> list[tuple[Finding, int]]:
    """The first finding of each rule and severity with how many there are, hard ones first."""
    counts: dict[tuple[str, str], tuple[Finding, int]] = {}
    for finding in found:
        first, count = counts.get((finding.rule, finding.severity), (finding, 0))
        counts[finding.rule, finding.severity] = (first, count + 1)
    return sorted(counts.values(), key=lambda item: RANK.index(item[0].severity))


def wrapped(text: str, style: str = "", width: int = WIDTH) -> Iterator[Text]:
    """Text in lines of at most 80 columns, those after the first indented."""
    for line in textwrap.wrap(text, width, subsequent_indent="    ", break_on_hyphens=False):
        yield Text(line, style=style)


def _row(row: Row, width: int, widths: Sequence[int], *, whole: bool) -> Iterator[Text]:
    name = named(row)
    line = Text(f"{MARKS.get(row.severity, ' ')} ", style=STYLES.get(row.severity, ""))
    if whole and cell_len(name) > width:
        yield line.append(name, style="default")
        line, name = Text("  "), ""
    line.append(_padded(_cut(name, width), width), style="default").append(f" {row.kind:<5}", style="default")
    yield line.append(_line(widths, *_numbers(row)).rstrip(), style="default")


def _numbers(row: Row) -> tuple[str, ...]:
    points = (point(row.point(percent)) for percent in (50.0, 99.0, 99.9))
    return (rate(row), bandwidth(row.bandwidth), time(row.mean), *points)


def named(row: Row) -> str:
    """What the row is called, and how many runs it stands for."""
    return inert(row.name) + (f" x{row.runs}" if row.runs > 1 else "")


def rate(row: Row) -> str:
    """IOPS, with their spread where the row stands for several runs."""
    if row.spread is None:
        return iops(row.iops)
    share = 100 * row.spread
    return f"{iops(row.iops)} ±{share:.{0 if share >= 9.5 else 1}f}%"


def _line(widths: Sequence[int], *cells: str) -> str:
    return "".join(text.rjust(width) for text, width in zip(cells, widths, strict=True))


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def iops(found: Number | None) -> str:
    """``72,401`` where every digit is known, else ``72.4k``."""
    if found is None:
        return "-"
    value, digits = found.value, known_digits(found.resolution)
    if value < 100:
        return coarse(f"{value:.{min(4, max(2, digits))}g}", found.resolution)
    if value < 10 ** max(3, digits) or (digits == 5 and value < 1e7):
        return coarse(f"{value:,.0f}", found.resolution)
    size, unit = (1e6, "M") if value >= 1e6 else (1e3, "k")
    return coarse(f"{significant(value / size, digits)}{unit}", found.resolution)


def bandwidth(found: Number | None) -> str:
    """In MiB/s."""
    if found is None:
        return "-"
    value, digits = found.value / 2**20, known_digits(found.resolution)
    return coarse(f"{value:,.0f}" if value >= 1000 else significant(value, digits), found.resolution)


def time(found: Number | Point | None) -> str:
    """``4.49ms``: as many digits as are known, four at most."""
    if found is None:
        return "-"
    size, unit = next((step for step in TIMES if found.value >= step[0]), TIMES[-1])
    return coarse(f"{significant(found.value / size, known_digits(found.resolution))}{unit}", found.resolution)


def point(found: Point | None) -> str:
    """A percentile, in brackets where fewer than 100 I/Os lie beyond it."""
    return f"({time(found)})" if found is not None and found.thin else time(found)


def coarse(text: str, resolution: float) -> str:
    """Marked where the number is known to 5 % at best."""
    return f"~{text}" if resolution > COARSE else text


def known_digits(resolution: float) -> int:
    """Digits that mean something: 5 of an exact number, 3 of a percentile, 2 of one known to a tenth."""
    return 5 if resolution <= 2e-4 else 4 if resolution <= 2e-3 else 3 if resolution <= 2e-2 else 2


def significant(value: float, digits: int) -> str:
    """``digits`` significant digits, four at most, without an exponent."""
    if value == 0:
        return "0"
    digits = min(digits, 4)
    if abs(value) < 1:
        return f"{value:.{digits - 1}f}"
    return f"{value:.{max(0, digits - len(f'{abs(value):.0f}'))}f}"


def legend(rows: Sequence[Row]) -> Iterator[str]:
    """What the marks in rows mean."""
    numbers = [n for row in rows for n in (row.iops, row.bandwidth, row.mean, *row.points) if n is not None]
    if any(n.resolution > COARSE for n in numbers):
        yield "~ known to 5 % at best, for its source rounds"
    if any(point.thin for row in rows for point in row.points):
        yield "( ) fewer than 100 I/Os beyond"
    if any(row.spread is not None for row in rows):
        yield "xN ±: medians of N runs, standard deviation of IOPS (--each shows every run)"
    if any(row.latency == "clat" for row in rows):
        yield "some means are of completion latency: total latency is not in the source"


def _summary(shown: Shown) -> str:
    versions = sorted({row.fio_version for row in shown.rows if row.fio_version})
    tools = f"; fio {', '.join(versions[:4])}{' and others' if len(versions) > 4 else ''}" if versions else ""
    files = f" in {plural(shown.files, 'file')}" if shown.files > 1 else ""
    left = f"; {len(shown.refusals)} not read" if shown.refusals else ""
    return f"{plural(shown.runs, 'run')}{files}{tools}{left}"


def _cut(text: str, width: int) -> str:
    """Names differ at their ends: what is too much is taken from the middle."""
    if cell_len(text) <= width:
        return text
    tail = (width - 2) * 2 // 3
    if not text.isascii():  # a character may take two columns
        tail //= 2
        return f"{text[: (width - 2) // 2 - tail]}..{text[-tail:]}"
    return f"{text[: width - 2 - tail]}..{text[-tail:]}"
