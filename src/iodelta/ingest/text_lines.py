"""Parse single lines of fio's normal report, of fio 1.x to 3.42."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Disk
from iodelta.ingest.numbers import Printed, Version, decimals, num2str, whole
from iodelta.trial import Kind

BANNER = re.compile(
    r"(\S.{0,250}?): \(g=(\d{1,9})\): rw=(\S{1,40}), bs=(.{1,200}?), ioengine=(\S{1,80}), iodepth=(\d{1,9})"
)
VERSION = re.compile(
    r"(?:<.{1,80}> )?fio-(\d[\w.+~-]{0,60})$|hostname=.{1,200}, fio=fio-(\d[\w.+~-]{0,60}),|"
    r"(\d\.\d{1,2}(?:\.\d{1,2})?)$"
)
STARTING = re.compile(r"Starting (\d{1,6}) (?:process|thread)")
HEAD = re.compile(
    r"(\S.{0,500}?)?: {0,8}\(groupid=(\d{1,9}), {0,8}jobs=(\d{1,9})\): {0,8}err=\s{0,4}(-?\d{1,9})"
    r"(?: ?\((.{0,400}?)\))?: {0,8}pid=(\d{1,10})"
)
END = re.compile(
    r"Run status group|Disk stats|All clients:|Additional Terse|fio: |(?:.{0,80}[$#+>] {1,3})?(?:sudo )?fio -"
)
"""Lines that end the report of a job."""

_DATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\w{3}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})"
)
_COLON = re.compile(r"(?<=[:,])(min|max|avg|stdev|per|samples):(?=\d)")
_TIGHT = re.compile(r" ?([=,:()]) ?")
_HEADS = re.compile(
    r"read|write|trim|mixed|(?:[sc]?lat|sync)\((?:n|u|m)sec\)|bw\([^()]{1,12}\)|iops|cpu|(?:IO|io) depths|submit|complete|"
    r"issued\b.{0,12}|latency|errors|fsync/.{0,60}|steadystate|block lifetime percentiles|states|Description|"
    r"(?:[sc]?lat|sync) .{0,60}percentiles?\(?.{0,8}|(?:[sc]?lat|high|low) prio.{0,60}"
)
_DIGITS = re.compile(r"\d{1,20}")
_GROUPED = re.compile(r"\d\.\d")
_DECIMAL = re.compile(r"=\d{1,20},(?:\d{1,2}|\d{4,12})(?!\d)")
"""Numbers that show whether a comma in the line groups digits or precedes decimals."""
_BW = re.compile(
    r"([\d.]{1,24}[kmgtpe]?i?)(b|bit)?(?:/s)?(?:\(([\d.]{1,24}[kmgtpe]?i?)?(?:b|bit)?(?:/s)?\))?"
    r"\(([\d.]{1,24}[kmgtpe]?i?)b?/(\d{1,18})msec\)",
    re.I,
)
_PERCENTILES = re.compile(r"([sc]?lat|sync) percentiles?\(?(nsec|usec|msec)\)?")
_WHOLE = r"\d{1,3}(?:[.,' \u2019\u202f\xa0]\d{3}){1,5}|\d{1,19}"
_PERCENTILE = re.compile(
    rf"(\d{{1,3}}(?:[.,]\d{{1,12}})?) ?th=(?:\[ ?({_WHOLE}) ?\]|\[? ?({_WHOLE}) ?\]?(?=, ?\||, ?\d{{1,3}}(?:[.,]\d{{1,12}})? ?th=|,$)"
    rf"|({_WHOLE}) ?\]?(?=,? |,?$))"
)
"""fio prints percentiles as whole numbers, so a mark between digits separates thousands. A truncated value lacks its
closing bracket and does not match; within a line a bracket may be lost."""
_RANK = re.compile(r"\d ?th ?=")
_ISSUED = re.compile(
    r"total=([\drwd=/,]{1,120}),? ?short=([\drwd=/,]{1,120})(?:,? ?drop(?:ped)?=([\drwd=/,]{1,120}))?"
)
_MONTHS = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)

DIRECTIONS = 4
"""fio counts reads, writes, trims and syncs."""

STEP = {"n": 1, "u": 1_000, "m": 1_000_000}
"""Nanoseconds of fio's nsec, usec and msec."""


class Statement(NamedTuple):
    """A line of a job's report without variable spaces: a head (``clat(usec)``), and fields (``min`` -> ``27``)."""

    head: str
    fields: dict[str, str]
    text: str


class Rates(NamedTuple):
    """A direction line."""

    kind: Kind
    iops: Printed
    bandwidth: tuple[Printed, ...]
    """Bytes per second, in the one or two spellings given."""
    amount: Printed
    """Bytes."""
    runtime_ms: int


def statement(line: str) -> Statement:
    """Parse ``line``. Digits after a comma belong to the number before it."""
    text = _TIGHT.sub(r"\1", " ".join(line[:4000].split()))
    text = _COLON.sub(r"\1=", text)
    head, _, body = text.partition(":")
    fields: dict[str, str] = {}
    key = ""
    for part in body.split(","):
        name, equals, value = (
            part.rpartition("=") if part.startswith(">=") else part.partition("=")
        )
        if equals:
            key = name.strip()
            fields.setdefault(key, value)
        elif key and part[:1].isdigit() and fields[key][-1:].isdigit():
            fields[key] = _continued(fields[key], part, text)
    return Statement(head, fields, text)


_EXTREME = re.compile(r"\d+|.*[a-zA-Z]")
"""fio writes minimum and maximum without decimals, unless a letter follows."""
_AVERAGE = re.compile(r"\d+\.\d\d")
_WRITTEN = {"min": _EXTREME, "max": _EXTREME, "avg": _AVERAGE, "stdev": _AVERAGE}


def statistics(stated: Statement) -> dict[str, str]:
    """Return the fields of a line of latencies or samples in the form that fio writes. Other fields were cut, or have
    points between groups of digits."""
    fields = dict(stated.fields)
    # fio ends such a line with the deviation: without it the line was cut, perhaps within its last number.
    if fields and "stdev" not in fields:
        fields.popitem()
    return {
        name: value
        for name, value in fields.items()
        if name not in _WRITTEN or _WRITTEN[name].fullmatch(value.strip())
    }


def _continued(value: str, part: str, text: str) -> str:
    """Return a number with the text after its comma. Three digits are a group; others are decimals, which some
    programs write with a comma. Three digits of a number with a prefix (``4,052MB/s``) may be either: if no other number of the line
    shows which, the comma remains, and the number cannot be read."""
    digits = _DIGITS.match(part)
    assert digits is not None
    rest = part[digits.end() :]
    if len(digits[0]) != 3 or rest.startswith("%"):
        return f"{value}.{part}"
    if not re.match(r"[kmgtpe](?!s)i?", rest, re.IGNORECASE) or _GROUPED.search(text):
        return f"{value}{part}"
    return f"{value}.{part}" if _DECIMAL.search(text) else f"{value},{part}"


def begins(stated: Statement) -> bool:
    """Return whether a line is the beginning of a line of fio, and not the rest of a wrapped one."""
    return (
        stated.text.startswith("|")
        or is_ranked(stated.text)
        or _HEADS.fullmatch(stated.head) is not None
    )


KINDS = ("read", "write", "trim", "mixed")


def is_rate(stated: Statement) -> bool:
    """Return whether this is a direction line, readable or not."""
    return stated.head in KINDS and not {"BW", "IOPS", "bw", "iops"}.isdisjoint(
        stated.fields
    )


def rates(stated: Statement, version: Version | None) -> Rates | None:
    """IOPS, bandwidth (bytes/s, each spelling with the interval of its rounding), amount (bytes) and run time (ms) of a
    direction line of any fio version; None for any other line.

    Formats: ``show_ddir_status`` in fio's stat.c; K and M were powers of 1024 before fio 2.17, and bandwidth may be in
    bits (``unit_base=1``).
    """
    if stated.head not in KINDS or _is_fraction(stated):
        return None
    if "BW" in stated.fields:
        printed = _printed_rates(stated.fields, version)
    elif "runt" in stated.fields:
        # Of fio before 2.17: `io=3072.0MB, bw=1018.1MB/s, iops=260886, runt=  3015msec`.
        fields = stated.fields
        version_ = version or (2, 0)
        bandwidth = fields.get("bw", "")
        unit = "bit" if "bit" in bandwidth else "B"
        iops_ = num2str(fields.get("iops", ""), version_)
        total_ = num2str(fields.get("io", ""), version_, kilo=1024, truncated=False)
        speeds = [num2str(bandwidth, version_, kilo=1024)]
        printed = _PrintedRates(iops_, speeds, unit, total_, fields["runt"])
    else:
        return None
    if printed is None:
        return None
    milliseconds = whole(printed.runtime.removesuffix("msec").strip())
    # The readable speeds, given in bits or bytes (`unit`), in bytes.
    part = 0.125 if printed.unit == "bit" else 1.0
    known = tuple(_scaled(speed, part) for speed in printed.speeds if speed is not None)
    iops, total = printed.iops, printed.total
    if iops is None or total is None or not known or milliseconds is None:
        return None
    return Rates(stated.head, iops, known, total, milliseconds)  # type: ignore[arg-type]


def _is_fraction(stated: Statement) -> bool:
    """Return whether IOPS have decimals without a prefix, as fio never writes them: their point groups digits."""
    iops = stated.fields.get("IOPS", stated.fields.get("iops", ""))
    return re.fullmatch(r"\d+\.\d+", iops.strip()) is not None


class _PrintedRates(NamedTuple):
    """The numbers of a direction line, as far as they are readable."""

    iops: Printed | None
    speeds: Sequence[Printed | None]
    unit: str
    """Of the speeds: bit, or else bytes."""
    total: Printed | None
    runtime: str


def _printed_rates(
    fields: Mapping[str, str], version: Version | None
) -> _PrintedRates | None:
    """Of fio 2.17 and later: ``IOPS=255k, BW=995MiB/s (1043MB/s)(58.3GiB/60001msec)``."""
    match = _BW.match(fields["BW"])
    if match is None:
        return None
    bandwidth, unit, alternative, amount, runtime = match.groups()
    iops = num2str(fields.get("IOPS", ""), version)
    total = num2str(amount, version, truncated=False)
    speeds = [num2str(text, version) for text in (bandwidth, alternative) if text]
    return _PrintedRates(iops, speeds, unit, total, runtime)


def percentile_head(stated: Statement) -> tuple[str, int] | None:
    """Return the latency (clat, lat, slat) of the percentiles that follow, and the ns of their unit; None for another
    line."""
    match = _PERCENTILES.match(stated.text)
    if not match:
        return None
    return match[1], STEP[match[2][0]]


def percentiles(text: str) -> list[tuple[float, int]]:
    """(percent, value) of each percentile in the text of percentile lines; values in the unit of the heading."""
    found = []
    for percent, bracketed, bare, last in _PERCENTILE.findall(text):
        rank = float(percent.replace(",", "."))
        if 0 < rank <= 100:
            found.append((rank, int(re.sub(r"\D", "", bracketed or bare or last))))
    return found


def is_ranked(text: str) -> bool:
    """Return whether a line begins with percentiles."""
    return _RANK.search(text, 0, 24) is not None


def unread(stated: Statement) -> bool:
    """Return whether a line of a report has numbers that are not understood."""
    name = stated.head.partition("(")[0]
    if stated.text.startswith("|") or is_ranked(stated.text):
        ranks = [rank for rank, _ in percentiles(stated.text)]
        is_whole = not re.search(r"\w", _PERCENTILE.sub("", stated.text))
        return (
            not is_whole
            or ranks != sorted(set(ranks))
            or len(ranks) < len(_PERCENTILE.findall(stated.text))
        )
    if _HEADS.fullmatch(stated.head) is None or (
        name == stated.head and name in ("slat", "clat", "lat", "sync")
    ):
        return bool(re.search(r"\d", stated.text))
    if (
        name in ("slat", "clat", "lat", "sync") and _BUCKETS.search(stated.text) is None
    ) or (stated.head == "iops" or stated.head.startswith("bw(")):
        fields = statistics(stated)
        return (
            not percentile_head(stated)
            and not {"min", "max", "avg", "stdev"} <= fields.keys()
        )
    return False


_BUCKETS = re.compile(r":(?:>=)?\d{1,4}=[<\d.]")


def sampler_scale(stated: Statement) -> float | None:
    """Return the factor from the numbers of a ``bw (KiB/s)`` line to bytes per second; None if the unit is unknown."""
    unit = (
        stated.head.removeprefix("bw").strip("() ").replace(" ", "").removesuffix("/s")
    )
    power = {"k": 1, "m": 2, "g": 3}.get(unit[:1].lower())
    if power is None:
        return None
    # fio says MiB even where it counts in thousands, and KB meant 1024 before 2.17.
    step = 1000.0 if unit.startswith("k") else 1024.0
    return math.pow(step, power) / (8 if unit.endswith("bit") else 1)


def _scaled(speed: Printed, factor: float) -> Printed:
    return Printed(*(bound * factor for bound in speed))


def issued(stated: Statement) -> tuple[list[int], list[int], list[int]] | None:
    """Total, short and dropped I/Os, each by direction (read, write, trim, sync) as far as the line gives them; None
    for another line."""
    match = _ISSUED.search(stated.text)
    if match is None:
        return None
    total, short, dropped = map(_whole_numbers, match.groups(""))
    # If the total has more numbers than the others, its commas group digits, and directions are ambiguous.
    return total if len(total) == len(short) else [], short, dropped


def _whole_numbers(text: str) -> list[int]:
    """``1,2,0`` or ``r=1/w=2/d=0`` as numbers; empty for too many, when commas group digits."""
    if "=" in text:
        text = text.replace(",", "")
    numbers = list(map(int, re.findall(r"\d{1,19}", text)))
    return numbers if len(numbers) <= DIRECTIONS else []


def disk(line: str, *, member: bool) -> Disk | None:
    """Return a line of disk statistics."""
    stated = statement(line)
    reads, writes = zip(*(_pair(stated, name) for name in _PAIRS), strict=True)
    util = decimals(stated.fields.get("util", "").removesuffix("%"))
    if reads[0] is None or writes[0] is None or util is None:
        return None
    return Disk(
        name=stated.head,
        read_ios=reads[0],
        write_ios=writes[0],
        read_sectors=reads[3],
        write_sectors=writes[3],
        read_merges=reads[1] or 0,
        write_merges=writes[1] or 0,
        read_ticks=reads[2] or 0,
        write_ticks=writes[2] or 0,
        in_queue=whole(stated.fields.get("in_queue", "")) or 0,
        util=util.value,
        member=member,
    )


_PAIRS = ("ios", "merge", "ticks", "sectors")
"""The fields of disk statistics with numbers of reads and writes: ``ios=1/2``."""


def _pair(stated: Statement, name: str) -> tuple[int | None, int | None]:
    reads, _, writes = stated.fields.get(name, "").partition("/")
    return whole(reads), whole(writes)


def when(line: str) -> float | None:
    """Return the date that fio prints (ctime, local time without a zone), as Unix seconds as if it were UTC; None
    without one."""
    match = _DATE.search(line)
    if match is None or match[1] not in _MONTHS:
        return None
    day, hour, minute, second, year = (int(match[n]) for n in (2, 3, 4, 5, 6))
    if not (1970 <= year < 3000 and 0 < day < 32):
        return None
    return float(
        calendar.timegm((year, _MONTHS.index(match[1]) + 1, day, hour, minute, second))
    )


WRAPPED = 3
"""Most further lines that a line of fio may have been wrapped into."""


def near(
    pattern: re.Pattern[str], lines: Sequence[Line], index: int, landmark: str
) -> re.Match[str] | None:
    """Return the match of ``pattern`` around the first ``landmark`` of a line, however long that is, and in the lines
    that it may be wrapped into; None without one."""
    text = lines[index].text.strip()
    at = text.find(landmark)
    if at < 0:
        return None
    rest = " ".join(line.text[:200].strip() for line in lines[index + 1 : index + 3])
    return pattern.search(f"{text[max(0, at - 500) : at + 1000]} {rest}")


def unwrapped(lines: Sequence[Line], index: int, text: str) -> str:
    """Return a line of disk statistics, with further lines that it was wrapped into; its last word is a percentage."""
    for line in lines[index + 1 : index + 1 + WRAPPED]:
        if text.endswith("%") or ": ios=" in line.text:
            break
        text += " " + line.text[:1000].strip()
    return text
