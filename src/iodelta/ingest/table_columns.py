"""Parse the title of a table's column: one measure, its statistic, its direction and its unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from iodelta.ingest.table_cells import plain
from iodelta.ingest.vocabulary import RATES, TIMES, english
from iodelta.trial import Kind

Stat = Literal["iops", "bw", "mean", "stddev", "min", "max", "percentile"]
Whose = Literal["lat", "clat", "slat"]

_WORD = re.compile(r"[a-zµμ]{1,30}|\d{1,4}(?:\.\d{1,6})?(?:th)?|%")
BYTES = re.compile(
    r"([kmgt]?i?b)(?:yte|ytes)?\s?(?:/|per\s)\s?s(?:ec|econd)?\b|(?:\b|(?<=_))([kmgt]bps)(?=\b|_)",
    re.I,
)
BITS = re.compile(r"[kmgt]?i?bits?\s?(?:/\s?s|ps|per\s)", re.I)
TIME = re.compile(r"[(\[ _/]([mnuµμ]?s(?:ec)?)s?(?:[)\] _]|$)", re.I)
IOPS = re.compile(
    r"(?:\b|(?<=_))(?<!\d )([km]?)[ -]?(?:iops|iops?/s(?:ec)?|ios?/s(?:ec)?|i/os?/s(?:ec)?|(?:i/os?|ios?) per s(?:ec(?:ond)?)?)"
    r"(?:(?=\b|_)(?:\s?[(\[]\s?(?:in )?([km])\s?[)\]])?)"
)
TIMES_TEN = re.compile(
    r"[x×*]\s?1[ ,.]?000\b|\b10(?:\^|\*\*)?3\b|\b1e3\b|\bthousands?\b|\bin k\b|'000"
    r"|(?P<million>\bmillions?\b|\b10(?:\^|\*\*)6\b|\b1e6\b)"
)
_SCALED = re.compile(r"[x×*]\s?\d|\b10(?:\^|\*\*)|\b1e\d|\bhundreds?\b")
_MIX = re.compile(
    r"\d{1,3}\s?%\s?(?:rand(?:om)?|seq(?:uential)?)?\s?(?:read|write|rw|r|w)\b"
)
"""A share of reads or writes, which names a workload."""
OTHER = frozenset(
    "stdev stddev sd std dev deviation cv rsd sem ci se var variance spread jitter diff difference delta change gain "
    "loss drop dropped lost gained saved decrease increase penalty slowdown benefit gap deficit speedup improvement regression relative normalized normalised scaling efficiency ratio rank "
    "score samples sample count counts sum agg runtime duration elapsed limit limits target rated spec claimed "
    "expected theoretical cost price power watt watts energy temperature cpu util utilization utilisation interrupts "
    "switches errors error spikes outliers violations tail overhead range span iqr interquartile quartile "
    "width window quartiles decile deciles q25 q75".split()
)
"""Words that make a title different from the measure that it names: ``IOPS stddev``, ``IOPS limit``."""
_OTHER_SHAPES = re.compile(
    r"[Δδ]|[$€]|\biops\s?/\s?(?!s(?:ec)?\b)\w|\bper (?!s(?:ec(?:ond)?)?\b|i/?o\b)\w|\bn$"
    r"|\brate[ _.](?:iops|bw|process|min)\b|\bthinktime"
    r"|\blat(?:ency)?[ _.][num]s[ _.](?:>=|<=?)?\s?\d|\biops (?:of|at|@) (?:peak|max)"
    r"|\b(?:q[1-4]|h?iqr|d[1-9])\b|\b\d{1,2} ?% (?:reads?|writes?) (?:c|s)?lat"
)
_UNPOINTED = re.compile(
    r"(?<![a-z\d.,])(?:(?P<named>p99)[,_](?P<after>[59]\d{0,3})(?![a-z\d.,])|99[,_](?P<bare>[59]\d{0,3})(?=\s?(?:%|th(?![a-z]))))",
    re.I,
)
"""``p99,9``, ``p99_95``, ``99,9%``: a percentile with a comma or underscore before its decimals."""
_UNCLEAR = re.compile(
    r"(?<![a-z\d])p\d{1,3}(?:\.\d{1,6})?(?:\s?[^\w\s.()\[\]]\s?|_)p?(?!\d{1,5}\s?[km])\d"
    r"|(?<![a-z\d.])\d{1,3}[,_;·]\d{1,6}\s?(?:%|th(?![a-z]))"
)
"""A percentile with adjacent digits: its decimals, another percentile or a depth (``p99-50``, ``p50/p99``)."""
BARE = re.compile(r"(?<![a-z\d.,])9[059](?:[.,_]\d{1,6})?(?![a-z\d.,])")
"""``lat 99``: a percentile, or a number of something else."""
PERCENTILES = frozenset(("percentile", "percentiles", "quantile", "quantiles"))
_NEUTRAL = frozenset(
    "avg average mean time response service completion total read write reads writes random seq sequential rand "
    "randread randwrite io".split()
)
"""Words around a mean time that keep it the latency of I/O."""


class Column(NamedTuple):
    """A column of numbers: direction, measure, statistic and unit (``scale`` to 1/s, B/s or ns; None: unknown)."""

    kind: Kind | None
    of: Literal["rate", "lat", "clat", "slat"]
    stat: Stat
    percent: float
    scale: float | None


def with_point(title: str) -> str:
    """Return a title with a point before the decimals of its percentile: ``p99,9``, ``p99_9`` and ``99,9%`` are 99.9."""
    return _UNPOINTED.sub(
        lambda match: f"{match['named'] or '99'}.{match['after'] or match['bare']}",
        english(title),
    )


@lru_cache(maxsize=512)
def column(title: str) -> Column | None:
    """Return the measure of a column with this ``title``; None for anything else, or for several measures."""
    text = plain_title(title)
    measures = measures_of(text)
    if len(measures) != 1 or is_other(text):
        return None
    words = words_of(text)
    if measures == {"iops"}:
        return _rate(text, words, "iops", _iops_scale(text))
    if measures == {"bw"}:
        # Mbps may mean megabits or, incorrectly, megabytes.
        may_be_bits = re.search(r"(?:\b|_)[KMG]b(?:ps\b|/s)", english(title))
        scale = None if may_be_bits else _byte_scale(text, words)
        return _rate(text, words, "bw", scale)
    return _latency(text, words)


def is_column(title: str) -> bool:
    """Return whether a title names exactly one measure that is read here."""
    return column(title) is not None


def plain_title(title: str) -> str:
    return with_point(plain(title.lower()))


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.replace("_", " "))


def measures_of(text: str) -> set[str]:
    """Return the measures that a title names: ``iops``, ``bw``, ``lat``."""
    # The rates that a title names: `iops`, `bw`. `throughput` next to IOPS means IOPS.
    words = set(words_of(text))
    rates = set()
    if IOPS.search(text):
        rates.add("iops")
    has_byte_unit = BYTES.search(text) is not None or BITS.search(text) is not None
    names_bandwidth = not _BANDWIDTHS.isdisjoint(words)
    is_throughput = "throughput" in words and not rates
    if has_byte_unit or names_bandwidth or is_throughput:
        rates.add("bw")
    measures = rates
    if _names_latency(text, measures):
        measures.add("lat")
    return measures


def _names_latency(text: str, rates: set[str]) -> bool:
    """Return whether a title names a latency: by its name, a percentile, or a unit of time below a second."""
    words = set(words_of(text))
    rest = BITS.sub(" ", BYTES.sub(" ", IOPS.sub(" ", text)))
    time = _time_scale(rest)
    if not _LATENCIES.keys().isdisjoint(words):
        return True
    if rates:
        return time is not None and time < 1e9
    is_mean_time = time is not None and not _MEANS.isdisjoint(words)
    return is_mean_time or _percent(rest) is not None


_BANDWIDTHS = frozenset(("bw", "bandwidth"))


_MEANS = frozenset(("avg", "mean", "average"))


_LATENCIES: dict[str, Whose] = {
    "clat": "clat",
    "slat": "slat",
    "lat": "lat",
    "latency": "lat",
    "latencies": "lat",
    "latenz": "lat",
}


def is_other(text: str) -> bool:
    """Return whether a title names something related to a measure, such as its scatter, limit or price."""
    words = set(words_of(text))
    spaced = text.replace("_", " ")
    has_other_word = not words.isdisjoint(OTHER)
    if has_other_word or _OTHER_SHAPES.search(spaced) or _UNCLEAR.search(text):
        return True
    if not words.isdisjoint(_LATENCIES) or not _names_rate(text, words):
        return False
    rest = _MIX.sub(" ", text)
    has_percentile = _percent(rest) is not None and "median" not in words
    return has_percentile or "%" in rest


def _names_rate(text: str, words: set[str]) -> bool:
    if not _BANDWIDTHS.isdisjoint(words):
        return True
    return IOPS.search(text) is not None or BYTES.search(text) is not None


def _rate(
    text: str, words: Sequence[str], stat: Stat, scale: float | None
) -> Column | None:
    extremes = _EXTREMES.intersection(words)
    if len(extremes) == 1 and {"avg", "mean"}.isdisjoint(words):
        return None  # an extreme of samples or of several runs is not the run's rate
    is_thousands = TIMES_TEN.search(text) is not None
    if _SCALED.search(text) and not is_thousands:
        return None
    return Column(_kind(words), "rate", stat, 0, scale)


_EXTREMES = frozenset(("min", "max", "minimum", "maximum", "peak", "worst", "best"))


def _iops_scale(text: str) -> float:
    match = IOPS.search(text)
    prefix = "" if match is None else match[1] or match[2] or ""
    power = TIMES_TEN.search(text)
    if prefix or power is None:
        return {"": 1.0, "k": 1e3, "m": 1e6}[prefix]
    return 1e6 if power["million"] else 1e3


def _byte_scale(text: str, words: Sequence[str]) -> float | None:
    """Bytes per second of the unit that a title names; None without a unit, or for bits."""
    if BITS.search(text):
        return None
    unit = BYTES.search(text)
    if unit is not None:
        name = f"{unit[1]}/s" if unit[1] else unit[2]
        return RATES.get(name.lower())
    for word in words:
        size = RATES.get(f"{word}/s", RATES.get(word))  # "bw_kib": of a second
        if size is not None:
            return size
    return 1.0 if "bytes" in words else None


def _latency(text: str, words: Sequence[str]) -> Column | None:
    """Return the column of a latency, or of a percentile or mean that only its unit shows to be a latency."""
    # The named latency: submission, completion or total; None without one.
    named = (_LATENCIES[word] for word in words if word in _LATENCIES)
    whose = next(named, None)
    if whose == "lat" and "completion" in words:
        whose = "clat"
    elif whose == "lat" and "submission" in words:
        whose = "slat"
    percent = _percent(text)
    scale = _time_scale(text)
    if whose is None and percent is None:
        # `avg time (us)`: a mean in a unit below a second, without words for anything but I/O.
        is_short = scale is not None and scale < 1e9
        is_of_io = set(words) <= _NEUTRAL | _SHORT_TIMES
        if not is_short or not is_of_io:
            return None
        return Column(_kind(words), "lat", "mean", 0, scale)
    has_unit = whose is not None or scale is not None
    # A bare p99 may have its unit in the cells.
    if not has_unit and not _PERCENTILE_ALONE.fullmatch(text):
        return None
    stat: Stat = "percentile" if percent is not None else _extreme(words) or "mean"
    if percent is None and (
        BARE.search(text) is not None or not PERCENTILES.isdisjoint(words)
    ):
        return None
    return Column(_kind(words), whose or "lat", stat, percent or 0, scale)


_SHORT_TIMES = {"ms", "msec", "us", "usec", "µs", "μs", "ns", "nsec"}
_PERCENTILE_ALONE = re.compile(r"\s*p\d{2,5}(?:\.\d{1,4})?\s*")


def _extreme(words: Sequence[str]) -> Stat | None:
    if not {"max", "maximum", "worst", "peak"}.isdisjoint(words):
        return "max"
    return None if {"min", "minimum", "best"}.isdisjoint(words) else "min"


def _time_scale(text: str) -> float | None:
    """Nanoseconds of the unit that a title names; None without a unit, or for several: ``(us/ms)``."""
    text = re.sub(r"[_.]", " ", text)
    scales = {
        TIMES.get(word)
        for word in re.findall(r"(?<![a-zµμ])[mnuµμ]?s(?:ec)?(?![a-zµμ])", text)
    }
    time = TIME.search(text + " ")
    if time and len(scales - {1e9}) <= 1:
        return TIMES.get(time[1].lower())
    return None


_KINDS: dict[str, Kind] = {
    "reads": "read",
    "r": "read",
    "writes": "write",
    "w": "write",
}
_KINDS |= {"read": "read", "write": "write", "trim": "trim"}
for _how in ("rand", "random", "seq"):
    _KINDS |= {f"{_how}read": "read", f"{_how}write": "write", f"{_how}trim": "trim"}


def _kind(words: Sequence[str]) -> Kind | None:
    """Return the direction that a title names; None for none or two."""
    kinds = {_KINDS[word] for word in words if word in _KINDS}
    if len(kinds) == 1:
        return kinds.pop()
    return None


_PERCENT = re.compile(
    r"\bp(?P<rank>\d{1,3}(?:\.\d{1,6})?)\b|(?P<share>\d{1,3}(?:\.\d{1,6})?)\s?(?:%|th\b)"
)


_MEDIAN = re.compile(r"\bmedian\b")


_WITHOUT_POINT = re.compile(r"99\d")
"""``p999`` is 99.9."""


def _percent(text: str) -> float | None:
    """Return the percentile that a title names, in %."""
    if _MEDIAN.search(text):
        return 50.0
    match = _PERCENT.search(text.replace("_", " "))
    if match is None:
        return None
    digits = match["rank"] or match["share"]
    value = float(digits)
    if match["rank"] and _WITHOUT_POINT.fullmatch(digits):
        value = float(f"99.{digits[2:]}")
    return value if 0 < value <= 100 else None
