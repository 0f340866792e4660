"""What the columns and cells of a result table mean: units in headings, thousands separators, suffixes, decimals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from iodelta.ingest.model import Run, Workload, unknown
from iodelta.ingest.numbers import Printed, size
from iodelta.ingest.options import known
from iodelta.ingest.wording import clean
from iodelta.trial import Direction, Finding, Kind, Latency, Place, Quantity
from iodelta.workload.engines import ENGINES, READERS

Stat = Literal["iops", "bw", "mean", "stddev", "min", "max", "percentile"]

_WORD = re.compile(r"[a-zµ]{1,30}|\d{1,4}(?:\.\d{1,6})?(?:th)?|%")
_UNITS = {
    "b/s": 1.0,
    "kb/s": 1e3,
    "mb/s": 1e6,
    "gb/s": 1e9,
    "kib/s": 2.0**10,
    "mib/s": 2.0**20,
    "gib/s": 2.0**30,
    "kbps": 1e3,
    "mbps": 1e6,
    "gbps": 1e9,
    "s": 1e9,
    "sec": 1e9,
    "ms": 1e6,
    "msec": 1e6,
    "us": 1e3,
    "µs": 1e3,
    "μs": 1e3,
    "usec": 1e3,
    "ns": 1.0,
    "nsec": 1.0,
}
_RATES = {name for name in _UNITS if name.endswith(("b/s", "bps"))}
_UNIT = re.compile(r"([kmg]?i?b)(?:yte|ytes)?\s?(?:/|per\s)\s?s(?:ec)?\b|\b(kbps|mbps|gbps)\b", re.I)
_TIME = re.compile(r"[(\[ _/]([mnuµμ]?s(?:ec)?)(?:[)\] _]|$)", re.I)
_NUMBER = re.compile(
    r"([~≈]?[+-]?)((?:\d{1,3}(?:[ ,'\xa0\u202f\u2009]\d{3}){1,5}|\d{1,18})(?:[.,]\d{1,9})?(?:e[+-]\d{1,2})?)"
    r"\s?([a-zA-Zµμ/]{0,10})"
)
_IOPS = re.compile(r"(?:\b|(?<=_))([km]?)[ -]?(?:iops|ios?/s)(?:(?=\b|_)(?:\s?[(\[]\s?([km])\s?[)\]])?)")
_SPREAD = re.compile(
    r"\s?\([^()]{1,40}\)$|\s?(?:±|\+/-|\+-)\s?\d[\d.,]{0,15}\s?%?(?P<unit>[kKmMGnuµμ]?[a-zA-Z/]{0,6})$"
)
"""What stands behind a number and says how it scattered or changed."""
_RANGE = re.compile(r"(\d[\d.,]{0,20})\s?([kKMG]?)\s?(?:-|–|—|\.\.|to)\s?(\d[\d.,]{0,20})\s?([a-zA-Zµμ/]{0,10})")
_GERMAN = re.compile(r"-?\d{1,3}(?:\.\d{3}){1,5},\d{1,9}")
"""Points before thousands, a comma before decimals."""
_SPACES = " \xa0\u202f\u2009'"
_MODE = re.compile(
    r"(rand(?:om)?|seq(?:uential)?)?[\s_-]{0,2}(readwrite|rw|read|write|trim|mixed|mix)\b|\b(rr|rw|sr|sw)\b", re.I
)
_BLOCK = re.compile(r"\b(\d{1,6})\s?([km])(?:i?b)?\b", re.I)
_OF_ITS_OWN = re.compile(r"\brand|\bseq|\b\d{1,5}\s?[km](?:i?b)?\b(?!/)|\bqd\s?\d|\b(?:io)?depth\s?\d", re.I)
COMPARES = re.compile(r"st[dandr.]{0,5}dev|diff|change|delta|gain|%|ratio|\bvs\b|Δ", re.I)
"""Titles of columns that are no variant but say how two differ."""
_MEASURE = re.compile(
    r"(?:\b|(?<=_))(?:[km]?iops|bw|bandwidth|throughput|[sc]?lat(?:ency|encies)?|completion|submission|avg|average|mean|"
    r"median|min|max|total|all|sum|overall|percentile|p\d{1,3}(?:\.\d{1,6})?|\d{1,3}(?:\.\d{1,6})?(?:th|%))(?=\b|_)",
    re.I,
)
_COUNTS = re.compile(
    r"Δ|%|\b(?:change|delta|diff)|\b(?:cpu|util\w*|std\w*|cv|\w*bytes|elapsed|[km]?iops|ios?/s)\b", re.I
)
"""Titles of columns that hold a number of a result, whether or not it is read."""
_NO_MEASURE = {"stdev", "stddev", "sd", "cv", "diff", "delta", "change", "gain", "samples", "runtime"}
_DEPTH = re.compile(r"\b(?:qd|io_?depth|queue ?depth|depth)\s?[=:]?\s?(\d{1,6})\b", re.I)
_JOBS = re.compile(
    r"\b(\d{1,5})\s?(?:num)?(?:jobs?|threads?|procs?)\b|\b(?:num)?(?:jobs?|threads?)\s?[=:]?\s?(\d{1,5})\b", re.I
)


class Column(NamedTuple):
    """A column of numbers: whose, which, in what unit (``scale`` to 1/s, B/s or ns; None: the heading does not say)."""

    kind: Kind | None
    of: Literal["rate", "lat", "clat", "slat"]
    stat: Stat
    percent: float
    scale: float | None


@lru_cache(maxsize=512)
def column(title: str) -> Column | None:
    """What the heading ``title`` announces; None for a column that names or counts something else."""
    text = title.lower().replace("**", "")
    words = _WORD.findall(text.replace("_", " "))
    kinds: dict[str, Kind] = {"read": "read", "r": "read", "write": "write", "w": "write", "trim": "trim"}
    kinds |= {f"{how}{what}": what for how in ("rand", "random", "seq") for what in ("read", "write", "trim")}
    kind = next((kinds[word] for word in words if word in kinds), None)
    if "Δ" in title or not _NO_MEASURE.isdisjoint(words):
        return None
    if (iops := _IOPS.search(text)) is not None:
        if len({"min", "max"} & set(words)) == 1 and {"avg", "mean"}.isdisjoint(words):
            return None
        return Column(kind, "rate", "iops", 0, {"": 1.0, "k": 1e3, "m": 1e6}[iops[1] or iops[2] or ""])
    unit = _UNIT.search(text)
    if unit is not None or not {"bw", "bandwidth", "throughput"}.isdisjoint(words):
        sizes = [each for word in words for each in (f"{word}/s", word) if each in _RATES]  # "bw_kib": of a second
        scale = _UNITS.get((unit[1] + "/s" if unit[1] else unit[2]).lower() if unit else next(iter(sizes), ""))
        if "bytes" in words and scale is None:
            scale = 1.0
        return Column(kind, "rate", "bw", 0, scale)
    whose: dict[str, Literal["lat", "clat", "slat"]] = {
        "clat": "clat",
        "slat": "slat",
        "lat": "lat",
        "latency": "lat",
        "latenz": "lat",
    }
    of = next((whose[word] for word in words if word in whose), None)
    percent = _percent(text)
    time = _TIME.search(text.replace("_", " ") + " ")
    scale = _UNITS.get(time[1].lower()) if time else None
    if of is None and percent is None and not {"avg", "mean", "average"}.isdisjoint(words) and scale and scale < 1e9:
        of = "lat"  # a mean of milliseconds and less
    if of is None and percent is None:
        return None
    if of is None and scale is None and not re.fullmatch(r"\s*p\d{2,5}(?:\.\d{1,4})?\s*", text):
        return None  # a bare p99 may have its unit in the cells
    if percent is not None:
        return Column(kind, of or "lat", "percentile", percent, scale)
    stat: Stat = "max" if "max" in words else "min" if "min" in words else "mean"
    return Column(kind, of or "lat", stat, 0, scale)


def names_rows(title: str) -> bool:
    """Whether the column with this title names its rows (``Policy``, ``iodepth``): it holds no number of a result."""
    return column(title) is None and not _COUNTS.search(title.replace("_", " "))


def _percent(text: str) -> float | None:
    if re.search(r"\bmedian\b", text):
        return 50.0
    found = re.search(r"\bp(\d{1,3}(?:\.\d{1,6})?)\b|(\d{1,3}(?:\.\d{1,6})?)\s?(?:%|th\b)", text.replace("_", " "))
    if found is None:
        return None
    digits = found[1] or found[2]
    value = float(digits)
    if found[1] and "." not in digits and len(digits) > 2 and digits.startswith("99"):
        value = float(f"99.{digits[2:]}")  # p999 is 99.9
    return value if 0 < value <= 100 else None


def cell(text: str, *, comma: bool = False) -> tuple[Printed, str] | None:
    """The number in a cell and the letters after it; None when there is none, or only about one (``~0``).

    ``12 ± 3`` is 12, for a scatter is no rounding; ``10-14`` is 12 and may be either.
    Groups of three after a space, apostrophe or comma are thousands; ``comma``: it is this column's decimal point.
    Nobody says whether a table was rounded or cut: up to a unit of the last place may be missing.
    """
    text = text.replace("**", "").replace("`", "").strip()
    if spread := _SPREAD.search(text):
        text = text[: spread.start()] + (spread["unit"] or "" if text[: spread.start()][-1:].isdigit() else "")
    if span := _RANGE.fullmatch(text):
        ends = [cell(span[1] + (span[2] or span[4]), comma=comma), cell(span[3] + span[4], comma=comma)]
        return _between(ends[0], ends[1]) if ends[0] and ends[1] else None
    comma = comma or _GERMAN.fullmatch(text) is not None
    found = _NUMBER.fullmatch(text.replace(".", "") if comma else text)
    if found is None or "~" in found[1] or "≈" in found[1]:
        return None
    digits = found[2]
    if comma:
        digits = digits.replace(",", ".")
    elif re.fullmatch(r"[1-9]\d{0,2}(?:,\d{3}){1,6}(?:\.\d{1,9})?", digits) or "." in digits:
        digits = digits.replace(",", "")
    else:
        digits = digits.replace(",", ".")
    for separator in _SPACES:
        digits = digits.replace(separator, "")
    mantissa, _, exponent = digits.partition("e")
    if mantissa.count(".") > 1:
        return None  # neither of its two marks can be told to be the decimal one
    places = len(mantissa.partition(".")[2])
    power = 10.0 ** int(exponent or 0)
    value, half = float(mantissa) * power, 0.5 * 10.0**-places * power
    if "-" in found[1]:
        value = -value
    return Printed(value, value - half, value + 2 * half), found[3]


def _between(low: tuple[Printed, str], high: tuple[Printed, str]) -> tuple[Printed, str] | None:
    """A range as the number in its middle."""
    if low[1] != high[1] or low[0].value > high[0].value:
        return None
    return Printed((low[0].value + high[0].value) / 2, low[0].low, high[0].high), high[1]


def decimal_comma(cells: Sequence[str], *, beside: bool = False) -> bool:
    """Whether the commas in a column stand before decimals: one is not followed by just three digits; ``beside``: they
    do in another column, so that points may stand before thousands."""
    plain = [text.replace("**", "").strip() for text in cells]
    if any(map(_GERMAN.fullmatch, plain)):
        return True
    if beside and (pointed := [text for text in plain if "." in text]):
        return all(re.fullmatch(r"-?\d{1,3}(?:\.\d{3}){1,5}", text) for text in pointed)
    return any(re.fullmatch(r"-?\d{1,9},(?:\d{1,2}|\d{4,9})|0,\d{1,9}", text) for text in plain) and not any(
        "." in text for text in plain
    )


class Heading(NamedTuple):
    """A column's title and what it means."""

    title: str
    column: Column | None
    comma: bool = False
    """Whether its commas stand before decimals."""
    asked: Workload = Workload()
    """The workload that the title names, when it is of one: ``4k randread IOPS``."""
    owner: str = ""
    """What the title names beside measure, unit and workload: ``patched`` in ``patched BW (MB/s)``."""


def heading(title: str, cells: Sequence[str] = (), *, commas: bool = False) -> Heading:
    """What the ``title`` of a column above ``cells`` means; ``commas`` stand before decimals in another column."""
    title = " ".join(title.split())
    found = column(title)
    if found is None:
        return Heading(title, None)
    asked = facts({}, title) if _OF_ITS_OWN.search(title) else Workload()
    return Heading(title, found, decimal_comma(cells, beside=commas), asked, _owner(title))


def _owner(title: str) -> str:
    for known_words in (_MODE, _DEPTH, _JOBS, _UNIT, _TIME, _BLOCK, _MEASURE):
        title = known_words.sub(" ", title + " ")
    return clean(" ".join(re.findall(r"[^\s_()\[\]/,:*%|-]\S{0,60}", title)).strip("()[]_:,*- "))


def row(headings: Sequence[Heading], cells: Sequence[str], place: Place, table: str, section: str = "") -> list[Run]:
    """One row as a run, or as one for each workload or variant that its columns' titles name.

    A row with columns of numbers but none in them is a run without directions.
    """
    pairs = list(zip(headings, cells, strict=False))
    part = {"section": clean(section)} if section else {}
    labels = _cells(pairs) | part
    names = " ".join(f"{h.title} {text}" for h, text in pairs if h.column is None)
    told = known(facts(labels, names), facts({}, f"{section} {table}"))
    owners = {_key(h.asked): h.asked for h, _ in pairs if h.asked != Workload()}
    if len(owners) == 1:  # then all columns are of it
        told = known(next(iter(owners.values())), told)
    measures = [h.column for h, _ in pairs if h.column is not None]
    beside = len(set(measures)) < len(measures) and len({h.owner for h, _ in pairs if h.column}) > 1
    buckets: dict[tuple[str, ...], list[tuple[Heading, str]]] = {}
    for h, text in pairs:
        if h.column is not None:
            key = (*(_key(h.asked) if len(owners) > 1 else ()), h.owner if beside else "")
            taken = [other.column for other, _ in buckets.get(key, [])]
            buckets.setdefault((*key, h.title) if h.column in taken else key, []).append((h, text))
    name = clean(next((text for h, text in pairs if h.column is None), ""))
    if not beside and len(owners) < 2:
        return [_run(own, told, labels, name, table, place) for own in buckets.values()]
    named = {clean(h.title): clean(text) for h, text in pairs if h.column is None and not COMPARES.search(h.title)}
    if len(owners) > 1:
        return [
            _run(
                own, known(own[0][0].asked, told), _workload(own[0][0]) | named | _cells(own) | part, name, table, place
            )
            for own in buckets.values()
        ]
    return [
        _run(
            own, told, named | {"variant": own[0][0].owner} | _cells(own) | part, own[0][0].owner or name, table, place
        )
        for own in buckets.values()
    ]


def _workload(of: Heading) -> dict[str, str]:
    """What a title says beside its measure and unit: ``4k randread``."""
    words = _UNIT.sub(" ", _MEASURE.sub(" ", of.title))
    said = clean(" ".join(re.findall(r"[^\s_()\[\]/,:*|]\S{0,60}", words)))
    return {"workload": said} if said else {}


def _cells(pairs: Iterable[tuple[Heading, str]]) -> dict[str, str]:
    return {clean(h.title): clean(text) for h, text in pairs}


def _key(asked: Workload) -> tuple[str, ...]:
    return tuple(str(getattr(asked, name)) for name in asked.__struct_fields__)


def _run(
    pairs: Sequence[tuple[Heading, str]], asked: Workload, labels: dict[str, str], name: str, table: str, place: Place
) -> Run:
    found: dict[Kind, dict[tuple[str, Stat, float], Quantity]] = {}
    findings: list[Finding] = []
    numbers = 0
    for h, text in pairs:
        if h.column is None:
            continue
        quantity, conflict = _quantity(h.column, cell(text, comma=h.comma))
        if conflict:
            explanation = f"{clean(h.title)}: {clean(text)} carries another unit than its heading; either may be meant"
            findings.append(Finding("read.unit-conflict", "warning", f"{place.file}:{place.line}", explanation))
        numbers += quantity is not None
        parts = found.setdefault(h.column.kind or _kind_of(asked.rw), {})
        unit = {"iops": "1/s", "bw": "B/s"}.get(h.column.stat, "ns")
        parts[(h.column.of, h.column.stat, h.column.percent)] = quantity or unknown(unit)
    return Run(
        place=place,
        format="table",
        jobname=name,
        jobs=asked.numjobs,
        directions=tuple(_direction(kind, parts) for kind, parts in found.items()) if numbers else (),
        workload=asked,
        labels=labels,
        table=clean(table),
        findings=tuple(findings),
    )


def _quantity(column: Column, number: tuple[Printed, str] | None) -> tuple[Quantity | None, bool]:
    """The quantity of a cell, and whether its letters contradict the heading."""
    if number is None:
        return None, False
    printed, suffix = number
    own = suffix.lower()
    if column.stat == "bw":
        return _bandwidth(printed, own, column.scale)
    if column.stat == "iops":
        scale = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}.get(own)
        scale = scale and scale * (column.scale or 1.0)
        return (None if scale is None else printed.quantity("1/s", scale)), False
    scale = _UNITS.get(own) if own else column.scale
    return (None if scale is None else printed.quantity("ns", scale)), False


def _bandwidth(printed: Printed, suffix: str, scale: float | None) -> tuple[Quantity | None, bool]:
    """``261M`` below KiB/s may be MB/s, MiB/s or thousands of KiB/s: the interval holds all three."""
    power = {"k": 1, "m": 2, "g": 3}.get(suffix[:1], 0)
    if not power:
        return (None if scale is None else printed.quantity("B/s", scale)), False
    decimal, binary = 1000.0**power, 1024.0**power
    own = binary if suffix[1:2] == "i" else decimal
    if scale in (None, 1.0, own):
        return printed.quantity("B/s", own), False
    if suffix == "k":
        return printed.quantity("B/s", 1000 * (scale or 1.0)), False
    return Quantity(printed.value * own, printed.low * decimal, printed.high * binary, "B/s"), True


def _direction(kind: Kind, parts: Mapping[tuple[str, Stat, float], Quantity]) -> Direction:
    def latency(of: str) -> Latency | None:
        mine = {(stat, percent): q for (whose, stat, percent), q in parts.items() if whose == of}
        if not mine:
            return None
        mean, stddev, low, high = (mine.get((stat, 0), unknown("ns")) for stat in ("mean", "stddev", "min", "max"))
        spread = {percent: q for (stat, percent), q in mine.items() if stat == "percentile"}
        return Latency(0, mean, stddev, low, high, dict(sorted(spread.items())))

    return Direction(
        kind=kind,
        ios=0,
        bytes=0,
        runtime_ms=0,
        iops=parts.get(("rate", "iops", 0), unknown("1/s")),
        bandwidth=parts.get(("rate", "bw", 0), unknown("B/s")),
        lat=latency("lat"),
        clat=latency("clat"),
        slat=latency("slat"),
    )


def facts(labels: Mapping[str, str], names: str) -> Workload:
    """Workload facts in the words of a row: ``RandRead 4 KiB QD32``, a column ``Jobs``."""
    lowered = {title.lower(): text for title, text in labels.items()}
    mode, block, depth, jobs = (pattern.search(names) for pattern in (_MODE, _BLOCK, _DEPTH, _JOBS))
    mode = _MODE.search(lowered.get("rw", "")) or mode  # not its title
    told = {
        name: next((lowered[title] for title in titles if title in lowered), "")
        for name, titles in (
            ("depth", ("qd", "iodepth", "io depth", "io_depth", "depth", "queue depth", "queue_depth")),
            ("jobs", ("jobs", "numjobs", "threads")),
            ("bs", ("bs", "block size", "blocksize")),
            ("engine", ("engine", "ioengine", "io engine", "io_engine")),
        )
    }
    engine = told["engine"].replace("`", "").strip().lower()
    return Workload(
        rw=_rw(mode),
        ioengine=engine if engine in ENGINES | READERS else None,
        bs=size(told["bs"]) or (size(f"{block[1]}{block[2]}") if block else None),
        iodepth=_whole(told["depth"]) or (int(depth[1]) if depth else None),
        numjobs=_whole(told["jobs"]) or (int(jobs[1] or jobs[2]) if jobs else None),
    )


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _rw(mode: re.Match[str] | None) -> str | None:
    if mode is None:
        return None
    if mode[3]:
        return {"rr": "randread", "rw": "randwrite", "sr": "read", "sw": "write"}[mode[3].lower()]
    what = {"readwrite": "rw", "mixed": "rw", "mix": "rw"}.get(mode[2].lower(), mode[2].lower())
    return f"rand{what}" if (mode[1] or "").lower().startswith("rand") else what


def _kind_of(rw: str | None) -> Kind:
    """The direction of numbers whose heading names none; ``mixed`` when the row does not say either."""
    kinds: dict[str, Kind] = {"read": "read", "write": "write", "trim": "trim"}
    return kinds.get((rw or "").removeprefix("rand"), "mixed")
