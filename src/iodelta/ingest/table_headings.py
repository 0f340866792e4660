"""What the titles of a result table's columns mean: which measure, of which direction, in what unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from iodelta.ingest.model import Workload
from iodelta.ingest.table_cells import RATES, TIMES, decimal_comma, plain
from iodelta.ingest.wording import clean
from iodelta.ingest.workload_words import BLOCK, DEPTH, JOBS, MODE, facts
from iodelta.trial import Kind

Stat = Literal["iops", "bw", "mean", "stddev", "min", "max", "percentile"]
Whose = Literal["lat", "clat", "slat"]

_WORD = re.compile(r"[a-zµμ]{1,30}|\d{1,4}(?:\.\d{1,6})?(?:th)?|%")
_BYTES = re.compile(
    r"([kmgt]?i?b)(?:yte|ytes)?\s?(?:/|per\s)\s?s(?:ec|econd)?\b|(?:\b|(?<=_))([kmgt]bps)(?=\b|_)",
    re.I,
)
_BITS = re.compile(r"[kmgt]?i?bits?\s?(?:/\s?s|ps|per\s)", re.I)
_TIME = re.compile(r"[(\[ _/]([mnuµμ]?s(?:ec)?)s?(?:[)\] _]|$)", re.I)
_IOPS = re.compile(
    r"(?:\b|(?<=_))(?<!\d )([km]?)[ -]?(?:iops|ios?/s(?:ec)?|i/os? per s(?:ec(?:ond)?)?)"
    r"(?:(?=\b|_)(?:\s?[(\[]\s?(?:in )?([km])\s?[)\]])?)"
)
_TIMES_TEN = re.compile(
    r"[x×*]\s?1[ ,.]?000\b|\b10(?:\^|\*\*)?3\b|\b1e3\b|\bthousands?\b|\bin k\b|'000"
    r"|(?P<million>\bmillions?\b|\b10(?:\^|\*\*)6\b|\b1e6\b)"
)
_SCALED = re.compile(r"[x×*]\s?\d|\b10(?:\^|\*\*)|\b1e\d|\bhundreds?\b")
_MIX = re.compile(
    r"\d{1,3}\s?%\s?(?:rand(?:om)?|seq(?:uential)?)?\s?(?:read|write|rw|r|w)\b"
)
"""A share of reads or writes: a workload."""
_OF_ITS_OWN = re.compile(
    r"\brand|\bseq|\b\d{1,5}\s?[km](?:i?b)?\b(?!/)|\bqd\s?\d|\b(?:io)?depth\s?\d", re.I
)
COMPARES = re.compile(
    r"st[dandr.]{0,5}dev|diff|change|delta|gain|%|ratio|\bvs\b|versus|Δ|speed-?up|slow-?down|\bcv\b|\bsd\b|\bp-?val"
    r"|normali[sz]e|\brel(?:ative)?\b|improve|regression|reduction|factor"
    r"|\b(?:loss(?:es)?|lost|drop(?:ped)?|gained|saved|(?:in|de)crease[ds]?|penalty|benefit|gap|deficit)\b"
    r"|\b(?:unterschied|abweichung|verlust|(?:ver)?änderung)\b",
    re.I,
)
"""Titles of columns that are not a variant but say how two differ, or how one scatters."""
_MEASURE = re.compile(
    r"(?:\b|(?<=_))(?:[km]?iops|bw|bandwidth|throughput|[sc]?lat(?:ency|encies)?|completion|submission|avg|average|mean|"
    r"median|min|max|total|all|sum|overall|bytes|percentile|p\d{1,3}(?:\.\d{1,6})?|\d{1,3}(?:\.\d{1,6})?(?:th|%))(?=\b|_)",
    re.I,
)
_COUNTS = re.compile(
    r"Δ|%|\b(?:change|delta|diff)|\b(?:cpu|util\w*|std\w*|cv|\w*bytes|elapsed|[km]?iops|ios?/s)\b",
    re.I,
)
"""Titles of columns that hold a number of a result, whether or not it is read."""
_OTHER = frozenset(
    "stdev stddev sd std dev deviation cv rsd sem ci se var variance spread jitter diff difference delta change gain "
    "loss drop dropped lost gained saved decrease increase penalty slowdown benefit gap deficit speedup improvement regression relative normalized normalised scaling efficiency ratio rank "
    "score samples sample count counts sum agg runtime duration elapsed limit limits target rated spec claimed "
    "expected theoretical cost price power watt watts energy temperature cpu util utilization utilisation interrupts "
    "switches errors error spikes outliers violations tail overhead range span iqr interquartile quartile "
    "width window quartiles decile deciles q25 q75".split()
)
"""Words that make a title one of something else than the measure it also names: ``IOPS stddev``, ``IOPS limit``."""
_OTHER_SHAPES = re.compile(
    r"[Δδ]|[$€]|\biops\s?/\s?(?!s(?:ec)?\b)\w|\bper (?!s(?:ec(?:ond)?)?\b|i/?o\b)\w|\bn$"
    r"|\brate[ _.](?:iops|bw|process|min)\b|\bthinktime"
    r"|\blat(?:ency)?[ _.][num]s[ _.](?:>=|<=?)?\s?\d|\biops (?:of|at|@) (?:peak|max)"
    r"|\b(?:q[1-4]|h?iqr|d[1-9])\b|\b\d{1,2} ?% (?:reads?|writes?) (?:c|s)?lat"
)
_UNIT_OF_OTHERS = re.compile(
    r"[(\[]\s?(?:%|w|j|kwh|°?c|v|#|count|n|s|sec|seconds|min|minutes|h|[kmgt]i?b|usd)\s?[)\]]",
    re.I,
)
_UNPOINTED = re.compile(
    r"(?<![a-z\d.,])(?:(?P<named>p99)[,_](?P<after>[59]\d{0,3})(?![a-z\d.,])|99[,_](?P<bare>[59]\d{0,3})(?=\s?(?:%|th(?![a-z]))))",
    re.I,
)
"""``p99,9``, ``p99_95``, ``99,9%``: a percentile with another mark before its decimals."""
_UNCLEAR = re.compile(
    r"(?<![a-z\d])p\d{1,3}(?:\.\d{1,6})?(?:\s?[^\w\s.()\[\]]\s?|_)p?(?!\d{1,5}\s?[km])\d"
    r"|(?<![a-z\d.])\d{1,3}[,_;·]\d{1,6}\s?(?:%|th(?![a-z]))"
)
"""Digits next to a percentile, which may be its decimals, another percentile or a depth: ``p99-50``, ``p50/p99``."""
_BARE = re.compile(r"(?<![a-z\d.,])9[059](?:[.,_]\d{1,6})?(?![a-z\d.,])")
"""``lat 99``: a percentile, or a count of something else."""
_PERCENTILES = frozenset(("percentile", "percentiles", "quantile", "quantiles"))
_NEUTRAL = frozenset(
    "avg average mean time response service completion total read write reads writes random seq sequential rand "
    "randread randwrite io".split()
)
"""Words that may stand around a mean time without making it another's than the I/O's."""
_RANK = re.compile(
    r"\d{1,3}(?:\.\d{1,6})?\s?(?:%|th\b)(?!\s?(?:rand|seq|read|write))|(?<=percentile)[ _]\d{1,3}\b"
)
_PATH = re.compile(r"\bjobs[.\[/_]0\]?[./_]|(?<=[a-z])[._](?=[a-z])")
"""What stands between the keys of a document that somebody has flattened: ``jobs.0.read.iops``."""
_STATISTIC = re.compile(
    r"\s*(?:avg|mean|average|median|min|max|minimum|maximum|"
    r"p\d{1,3}(?:\.\d{1,4})?|\d{1,2}(?:\.\d{1,4})?\s?(?:%|th))(?:\s?percentile)?\s*",
    re.I,
)
"""A title that only says which statistic of the row's measure its column has."""


class Column(NamedTuple):
    """A column of numbers: whose, which, in what unit (``scale`` to 1/s, B/s or ns; None: the heading does not say)."""

    kind: Kind | None
    of: Literal["rate", "lat", "clat", "slat"]
    stat: Stat
    percent: float
    scale: float | None


class Heading(NamedTuple):
    """A column's title and what it means."""

    title: str
    column: Column | None
    comma: bool = False
    """Whether its commas stand before decimals."""
    doubtful: bool = False
    """Whether its commas or points may stand before thousands or decimals alike."""
    asked: Workload = Workload()
    """The workload that the title names, when it is of one: ``4k randread IOPS``."""
    owner: str = ""
    """What the title names besides measure, unit and workload: ``patched`` in ``patched BW (MB/s)``."""
    refused: bool = False
    """Whether the title names a measure, and something that makes it another's: ``lat range (us)``."""


def heading(title: str, cells: Sequence[str] = (), *, commas: bool = False) -> Heading:
    """What the ``title`` of a column above ``cells`` means; ``commas`` stand before decimals in another column."""
    title = " ".join(title.split()).removesuffix(":").rstrip()
    parsed = column(title)
    if parsed is None:
        return Heading(title, None, refused=names_measure(title))
    clear = with_point(title)
    asked = facts({}, clear) if _OF_ITS_OWN.search(clear) else Workload()
    return Heading(
        title, parsed, decimal_comma(cells, beside=commas), False, asked, _owner(clear)
    )


def with_point(title: str) -> str:
    """A title with a point before the decimals of its percentile: ``p99,9``, ``p99_9`` and ``99,9%`` are 99.9."""
    return _UNPOINTED.sub(
        lambda match: f"{match['named'] or '99'}.{match['after'] or match['bare']}",
        title,
    )


@lru_cache(maxsize=512)
def column(title: str) -> Column | None:
    """What the heading ``title`` announces; None for a column that names or counts something else, or several."""
    text = _plain(title)
    named = _measures(text)
    if len(named) != 1 or _is_other(text):
        return None
    words = _words(text)
    if named == {"iops"}:
        return _rate(text, words, "iops", _iops_scale(text))
    if named == {"bw"}:
        # Mbps: megabits, or what somebody calls megabytes.
        may_be_bits = re.search(r"(?:\b|_)[KMG]b(?:ps\b|/s)", title)
        return _rate(
            text, words, "bw", None if may_be_bits else _byte_scale(text, words)
        )
    return _latency(text, words)


def several(title: str) -> bool:
    """Whether a title names more than one measure, so that nobody can say which one its numbers are."""
    text = _plain(title)
    return len(_measures(text)) > 1


def names_other(title: str) -> bool:
    """Whether a title names a measure that is not read here: CPU, a standard deviation, a duration in seconds."""
    text = _plain(title)
    if column(title) is not None:
        return False
    return (
        bool(_measures(text))
        or _is_other(text)
        or _UNIT_OF_OTHERS.search(text) is not None
    )


def names_measure(title: str) -> bool:
    """Whether a title names a measure that is read here, or something of one."""
    return bool(_measures(_plain(title)))


def without_measure(title: str) -> str:
    """What a title says besides its measure, its unit and its workload."""
    text = _PATH.sub(" ", _plain(title))
    for known_words in (
        _RANK,
        MODE,
        DEPTH,
        JOBS,
        _IOPS,
        _BITS,
        _BYTES,
        _TIME,
        BLOCK,
        _MEASURE,
        _TIMES_TEN,
    ):
        text = known_words.sub(" ", text + " ")
    return text


def is_statistic(title: str) -> bool:
    """Whether a title says no more than which statistic its column has: ``mean``, ``p99``."""
    return _STATISTIC.fullmatch(with_point(title).strip("*` :")) is not None


def of_names(measure: Heading, *names: str) -> Heading:
    """What a number is in a table of one ``measure``, for the ``names`` of its row and column."""
    statistics = [name.strip("*` :") for name in names if is_statistic(name)]
    others = [name for name in names if not is_statistic(name)]
    if len(statistics) > 1 or any(map(is_measure, others)):
        return Heading(measure.title, None)
    return measure._replace(column=column(" ".join((measure.title, *statistics))))


def names_percentiles(title: str, names: Sequence[str]) -> bool:
    """Whether ``names`` below or beside ``title`` may be bare percentiles: 50, 99 and 99.9."""
    return bool(_PERCENTILES & set(_words(_plain(title)))) or any(
        _BARE.fullmatch(_plain(name)) for name in names
    )


def is_measure(name: str) -> bool:
    """Whether a name is that of a measure, of one that is not read here, or of several."""
    return names_other(name) or column(name) is not None or several(name)


def is_of_another(title: str) -> bool:
    """Whether a title makes a measure before it another one's, and names none itself: ``limit``, ``stddev``."""
    words = _words(_plain(title))
    return len(words) == 1 and words[0] in _OTHER and not _measures(words[0])


def names_rows(title: str) -> bool:
    """Whether the column with this title names its rows (``Policy``, ``iodepth``): it holds no number of a result."""
    return not names_measure(title) and not _COUNTS.search(title.replace("_", " "))


def workload_words(title: str) -> str:
    """What a title says besides its measure and unit: ``4k randread``."""
    rest = _BYTES.sub(" ", _MEASURE.sub(" ", with_point(title)))
    return clean(" ".join(re.findall(r"[^\s_()\[\]/,:*|]\S{0,60}", rest)))


def _owner(title: str) -> str:
    title = re.sub(r"(?<=[a-z])[.](?=[a-z])", " ", title, flags=re.I)  # read.bw_bytes
    for known_words in (MODE, DEPTH, JOBS, _BYTES, _TIME, BLOCK, _MEASURE):
        title = known_words.sub(" ", title + " ")
    return clean(
        " ".join(re.findall(r"[^\s_()\[\]/,:*%|-]\S{0,60}", title)).strip("()[]_:,*- ")
    )


def _plain(title: str) -> str:
    return with_point(plain(title.lower()))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.replace("_", " "))


def _measures(text: str) -> set[str]:
    """Which of IOPS, bandwidth and latency a title names."""
    words = set(_words(text))
    rest = _BITS.sub(" ", _BYTES.sub(" ", _IOPS.sub(" ", text)))
    measures = set()
    if _IOPS.search(text):
        measures.add("iops")
    has_byte_unit = _BYTES.search(text) is not None or _BITS.search(text) is not None
    if (
        has_byte_unit
        or words & {"bw", "bandwidth"}
        or ("throughput" in words and not measures)
    ):
        measures.add("bw")
    time = _time_scale(rest)
    if words & _LATENCIES.keys() or (measures and time is not None and time < 1e9):
        measures.add("lat")
    if not measures and (
        _percent(rest) is not None
        or (time is not None and words & {"avg", "mean", "average"})
    ):
        measures.add("lat")
    return measures


_LATENCIES: dict[str, Whose] = {
    "clat": "clat",
    "slat": "slat",
    "lat": "lat",
    "latency": "lat",
    "latencies": "lat",
    "latenz": "lat",
}


def _is_other(text: str) -> bool:
    """Whether the title is of something that is only related to a measure: its scatter, its limit, its price."""
    words = set(_words(text))
    spaced = text.replace("_", " ")
    if (
        not words.isdisjoint(_OTHER)
        or _OTHER_SHAPES.search(spaced)
        or _UNCLEAR.search(text)
    ):
        return True
    rest = _MIX.sub(" ", text)
    is_rate = (
        _IOPS.search(text) is not None
        or _BYTES.search(text) is not None
        or bool(words & {"bw", "bandwidth"})
    )
    has_percentile = _percent(rest) is not None and "median" not in words
    return is_rate and words.isdisjoint(_LATENCIES) and ("%" in rest or has_percentile)


def _rate(
    text: str, words: Sequence[str], stat: Stat, scale: float | None
) -> Column | None:
    extremes = {"min", "max", "minimum", "maximum", "peak", "worst", "best"} & set(
        words
    )
    if len(extremes) == 1 and {"avg", "mean"}.isdisjoint(words):
        return None  # of the periodic samples, or of several runs: not the run's rate
    if _SCALED.search(text) and not _TIMES_TEN.search(text):
        return None
    return Column(_kind(words), "rate", stat, 0, scale)


def _iops_scale(text: str) -> float:
    match = _IOPS.search(text)
    prefix = (match[1] or match[2] or "") if match else ""
    tens = _TIMES_TEN.search(text)
    if prefix or tens is None:
        return {"": 1.0, "k": 1e3, "m": 1e6}[prefix]
    return 1e6 if tens["million"] else 1e3


def _byte_scale(text: str, words: Sequence[str]) -> float | None:
    if _BITS.search(text):
        return None
    unit = _BYTES.search(text)
    if unit is not None:
        return RATES.get((unit[1] + "/s" if unit[1] else unit[2]).lower())
    for word in words:
        size = RATES.get(f"{word}/s", RATES.get(word))  # "bw_kib": of a second
        if size is not None:
            return size
    return 1.0 if "bytes" in words else None


def _latency(text: str, words: Sequence[str]) -> Column | None:
    of = _whose(words)
    percent = _percent(text)
    scale = _time_scale(text)
    # A mean of milliseconds or less, and of nothing but the I/O.
    if of is None and percent is None:
        if scale is None or scale >= 1e9 or not set(words) <= _NEUTRAL | _SHORT_TIMES:
            return None
        return Column(_kind(words), "lat", "mean", 0, scale)
    if of is None and scale is None and not _PERCENTILE_ALONE.fullmatch(text):
        return None  # a bare p99 may have its unit in the cells
    if percent is not None:
        return Column(_kind(words), of or "lat", "percentile", percent, scale)
    if _BARE.search(text) or not _PERCENTILES.isdisjoint(words):
        return None  # a percentile that is not named
    return Column(_kind(words), of or "lat", _extreme(words) or "mean", 0, scale)


_SHORT_TIMES = {"ms", "msec", "us", "usec", "µs", "μs", "ns", "nsec"}
_PERCENTILE_ALONE = re.compile(r"\s*p\d{2,5}(?:\.\d{1,4})?\s*")


def _whose(words: Sequence[str]) -> Whose | None:
    """Which latency is named: submission, completion or total; None where none is."""
    of = next((_LATENCIES[word] for word in words if word in _LATENCIES), None)
    if of == "lat" and "completion" in words:
        return "clat"
    if of == "lat" and "submission" in words:
        return "slat"
    return of


def _extreme(words: Sequence[str]) -> Stat | None:
    if not {"max", "maximum", "worst", "peak"}.isdisjoint(words):
        return "max"
    return None if {"min", "minimum", "best"}.isdisjoint(words) else "min"


def _time_scale(text: str) -> float | None:
    """Nanoseconds of the unit that a title names; None where it names none, or several: ``(us/ms)``."""
    text = re.sub(r"[_.]", " ", text)
    scales = {
        TIMES.get(word)
        for word in re.findall(r"(?<![a-zµμ])[mnuµμ]?s(?:ec)?(?![a-zµμ])", text)
    }
    time = _TIME.search(text + " ")
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
    """The direction that a title names; None when it names none, or two."""
    kinds = {_KINDS[word] for word in words if word in _KINDS}
    if len(kinds) == 1:
        return kinds.pop()
    return None


def _percent(text: str) -> float | None:
    if re.search(r"\bmedian\b", text):
        return 50.0
    match = re.search(
        r"\bp(\d{1,3}(?:\.\d{1,6})?)\b|(\d{1,3}(?:\.\d{1,6})?)\s?(?:%|th\b)",
        text.replace("_", " "),
    )
    if match is None:
        return None
    digits = match[1] or match[2]
    value = float(digits)
    if match[1] and "." not in digits and len(digits) > 2 and digits.startswith("99"):
        value = float(f"99.{digits[2:]}")  # p999 is 99.9
    return value if 0 < value <= 100 else None
