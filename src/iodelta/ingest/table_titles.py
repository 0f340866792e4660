"""The grammar of titles in result tables: one measure, its statistic, its direction and its unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import filterfalse
from typing import Literal, NamedTuple

from iodelta.ingest.model import Workload
from iodelta.ingest.table_cells import decimal_comma, plain
from iodelta.ingest.vocabulary import RATES, TIMES, english
from iodelta.ingest.wording import clean
from iodelta.ingest.workload_words import BLOCK, DEPTH, JOBS, MODE, facts
from iodelta.trial import Kind

Stat = Literal["iops", "bw", "mean", "stddev", "min", "max", "percentile"]
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
_PERCENT = re.compile(
    r"\bp(?P<rank>\d{1,3}(?:\.\d{1,6})?)\b|(?P<share>\d{1,3}(?:\.\d{1,6})?)\s?(?:%|th\b)"
)
_PERCENTILE_ALONE = re.compile(r"\s*p\d{2,5}(?:\.\d{1,4})?\s*")
_EXTREMES = frozenset(("min", "max", "minimum", "maximum", "peak", "worst", "best"))
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
"""Titles of columns with the difference of two variants, or the scatter of one."""
_MEASURE = re.compile(
    r"(?:\b|(?<=_))(?:[km]?iops|bw|bandwidth|throughput|[sc]?lat(?:ency|encies)?|completion|submission|avg|average|mean|"
    r"median|min|max|total|all|sum|overall|bytes|percentile|p\d{1,3}(?:\.\d{1,6})?|\d{1,3}(?:\.\d{1,6})?(?:th|%))(?=\b|_)",
    re.I,
)
_COUNTS = re.compile(
    r"Δ|%|\b(?:change|delta|diff)|\b(?:cpu|util\w*|std\w*|cv|\w*bytes|elapsed|[km]?iops|ios?/s)\b",
    re.I,
)
"""Titles of columns with a number of a result, whether or not it is read."""
_UNIT_OF_OTHERS = re.compile(
    r"[(\[]\s?(?:%|w|j|kwh|°?c|v|#|count|n|s|sec|seconds|min|minutes|h|[kmgt]i?b|usd)\s?[)\]]",
    re.I,
)
_RANK = re.compile(
    r"\d{1,3}(?:\.\d{1,6})?\s?(?:%|th\b)(?!\s?(?:rand|seq|read|write))|(?<=percentile)[ _]\d{1,3}\b"
)
_PATH = re.compile(r"\bjobs[.\[/_]0\]?[./_]|(?<=[a-z])[._](?=[a-z])")
"""Separators between the keys of a flattened document: ``jobs.0.read.iops``."""
_STATISTIC = re.compile(
    r"\s*(?:avg|mean|average|median|min|max|minimum|maximum|"
    r"p\d{1,3}(?:\.\d{1,4})?|\d{1,2}(?:\.\d{1,4})?\s?(?:%|th))(?:\s?percentile)?\s*",
    re.I,
)
"""A title that only names the statistic of the row's measure."""
_RATE_CELL = re.compile(
    r"~?\d[\d.,' ]{0,20} ?(?:(?P<iops>[kKmM]? ?(?:IOPS|iops|IOP/s))|[kKMGT]?i?B(?:ytes?)?(?:/s(?:ec)?|ps))(?: ?(?:\(.{1,20}\)|±.{1,12}))?"
)
_HARMLESS = frozenset(
    "avg average mean time response service completion total read write reads writes random seq sequential rand "
    "randread randwrite io iops bw lat clat slat latenz bandbreite durchsatz mbps kbps gbps kb mb gb kib mib gib "
    "b bytes k m s us ms ns microseconds milliseconds nanoseconds aggregate aggregated combined measured observed "
    "achieved actual result results fio storage operations ops ios i o per second seconds in of the at is higher "
    "lower more less better best worst peak minimum maximum percentile percentiles quantile median mixed mix rw r "
    "w trim trims both rate speed value values wert million millions thousand thousands 1".split()
)
"""Words that do not change the measure in a title."""
_PARTS = re.compile(
    r"[:,;|–—]|\s-\s|\b(?:by|for|on|with|versus|vs|across|over|using|against)\b", re.I
)
"""Separators in a title between its measure and its subject."""
_MEAN = re.compile(r"avg|average|mean", re.I)
_LATENCIES: dict[str, Literal["lat", "clat", "slat"]] = {
    "clat": "clat",
    "slat": "slat",
    **dict.fromkeys(("lat", "latency", "latencies", "latenz"), "lat"),
}
_KINDS: dict[str, Kind] = {
    **dict.fromkeys("read reads r randread randomread seqread".split(), "read"),
    **dict.fromkeys("write writes w randwrite randomwrite seqwrite".split(), "write"),
    **dict.fromkeys("trim randtrim randomtrim seqtrim".split(), "trim"),
}


class Column(NamedTuple):
    """A column of numbers: direction, measure, statistic and unit (``scale`` to 1/s, B/s or ns; None: unknown)."""

    kind: Kind | None
    of: Literal["rate", "lat", "clat", "slat"]
    stat: Stat
    percent: float
    scale: float | None


class Title(NamedTuple):
    """What the words of a title mean by themselves."""

    words: list[str]
    measures: set[str]
    """``iops``, ``bw``, ``lat``: those that it names, alone or with other words."""
    column: Column | None
    """The measure, if the title names exactly one that is read here."""
    other: bool
    """Whether it names a number that is not read here: CPU, a standard deviation, a duration in seconds."""
    statistic: bool
    """Whether it only names a statistic: ``mean``, ``p99``."""
    names_rows: bool
    """Whether its column names the rows (``Policy``, ``iodepth``), and is not a number of a result."""


def with_point(title: str) -> str:
    """Return a title with a point before the decimals of its percentile: ``p99,9``, ``p99_9`` and ``99,9%`` are 99.9."""
    return _UNPOINTED.sub(
        lambda match: f"{match['named'] or '99'}.{match['after'] or match['bare']}",
        english(title),
    )


@lru_cache(maxsize=4096)
def parse(title: str) -> Title:
    """Return the meaning of a title."""
    text = _plain(title)
    words = _words(text)
    bag = set(words)
    measures, iops, in_bytes = set(), IOPS.search(text), BYTES.search(text)
    if iops:
        measures.add("iops")
    # ``throughput`` next to IOPS means IOPS.
    is_throughput = "throughput" in bag and not iops
    names_bandwidth = not bag.isdisjoint(("bw", "bandwidth"))
    if in_bytes or BITS.search(text) or names_bandwidth or is_throughput:
        measures.add("bw")
    rest = BITS.sub(" ", BYTES.sub(" ", IOPS.sub(" ", text)))
    time = _time_scale(rest) or 0.0
    if measures:
        is_time = 0 < time < 1e9
    else:
        is_mean = not bag.isdisjoint(("avg", "mean", "average"))
        is_time = bool(time and is_mean) or _percent(rest) is not None
    names_latency = not bag.isdisjoint(_LATENCIES)
    if names_latency or is_time:
        measures.add("lat")
    strange = (
        not bag.isdisjoint(OTHER)
        or _UNCLEAR.search(text) is not None
        or _OTHER_SHAPES.search(text.replace("_", " ")) is not None
    )
    if (names_bandwidth or iops or in_bytes) and not names_latency:
        rest = _MIX.sub(" ", text)
        is_ranked = _percent(rest) is not None and "median" not in bag
        strange = strange or is_ranked or "%" in rest
    column = None
    if len(measures) == 1 and not strange:
        column = _column(title, text, words, *measures)
    is_other = _UNIT_OF_OTHERS.search(text) or measures or strange
    return Title(
        words,
        measures,
        column,
        column is None and bool(is_other),
        _STATISTIC.fullmatch(with_point(title).strip("*` :")) is not None,
        not measures and not _COUNTS.search(title.replace("_", " ")),
    )


def column(title: str) -> Column | None:
    """Return the measure of a column with this ``title``; None for anything else, or for several measures."""
    return parse(title).column


def _plain(title: str) -> str:
    return with_point(plain(title.lower()))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.replace("_", " "))


def _column(title: str, text: str, words: Sequence[str], measure: str) -> Column | None:
    """Return the column of a title that names one ``measure``, with its statistic, direction and unit."""
    bag = set(words)
    kinds = {_KINDS[word] for word in words if word in _KINDS}
    kind = kinds.pop() if len(kinds) == 1 else None
    extremes = bag & _EXTREMES
    if measure != "lat":
        power = TIMES_TEN.search(text)
        # An extreme of samples or of several runs is not the run's rate.
        is_extreme = len(extremes) == 1 and bag.isdisjoint(("avg", "mean"))
        if is_extreme or (_SCALED.search(text) and not power):
            return None
        if measure == "bw":
            return Column(kind, "rate", "bw", 0, _byte_scale(title, text, words))
        match = IOPS.search(text)
        prefix = "" if match is None else match[1] or match[2] or ""
        if power and not prefix:
            prefix = "m" if power["million"] else "k"
        return Column(kind, "rate", "iops", 0, {"": 1.0, "k": 1e3, "m": 1e6}[prefix])
    named = (_LATENCIES[word] for word in words if word in _LATENCIES)
    whose = next(named, None)
    if whose == "lat" and "completion" in bag:
        whose = "clat"
    elif whose == "lat" and "submission" in bag:
        whose = "slat"
    percent, scale = _percent(text), _time_scale(text)
    if whose is None and percent is None:
        # ``avg time (us)``: a mean in a unit below a second, without words for anything but I/O.
        is_short = scale is not None and scale < 1e9
        is_of_io = bag <= {*_NEUTRAL, *TIMES} - {"s", "sec", "secs"}
        return Column(kind, "lat", "mean", 0, scale) if is_short and is_of_io else None
    # A bare p99 may have its unit in the cells.
    if whose is None and scale is None and not _PERCENTILE_ALONE.fullmatch(text):
        return None
    if percent is not None:
        return Column(kind, whose or "lat", "percentile", percent, scale)
    if BARE.search(text) or not PERCENTILES.isdisjoint(words):
        return None  # ``lat 99``
    stat: Stat = "mean"
    if extremes:
        lowest = extremes <= {"min", "minimum", "best"}
        stat = "min" if lowest else "max"
    return Column(kind, whose or "lat", stat, 0, scale)


def _byte_scale(title: str, text: str, words: Sequence[str]) -> float | None:
    """Bytes per second of the unit that a title names; None without a unit, or for bits. Mbps may mean either."""
    may_be_bits = re.search(r"(?:\b|_)[KMG]b(?:ps\b|/s)", english(title))
    if may_be_bits or BITS.search(text):
        return None
    unit = BYTES.search(text)
    if unit is not None:
        return RATES.get((f"{unit[1]}/s" if unit[1] else unit[2]).lower())
    for word in words:
        size = RATES.get(f"{word}/s", RATES.get(word))  # "bw_kib": of a second
        if size is not None:
            return size
    return 1.0 if "bytes" in words else None


def _time_scale(text: str) -> float | None:
    """Nanoseconds of the unit that a title names; None without a unit, or for several: ``(us/ms)``."""
    text = re.sub(r"[_.]", " ", text) + " "
    named = re.findall(r"(?<![a-zµμ])[mnuµμ]?s(?:ec)?(?![a-zµμ])", text)
    time = TIME.search(text)
    if time and len({TIMES.get(word) for word in named} - {1e9}) <= 1:
        return TIMES.get(time[1].lower())
    return None


def _percent(text: str) -> float | None:
    """Return the percentile that a title names, in %; ``p999`` is 99.9."""
    if re.search(r"\bmedian\b", text):
        return 50.0
    match = _PERCENT.search(text.replace("_", " "))
    if match is None:
        return None
    digits = match["rank"] or match["share"]
    if match["rank"] and re.fullmatch(r"99\d", digits):
        digits = f"99.{digits[2:]}"
    return float(digits) if 0 < float(digits) <= 100 else None


class Heading(NamedTuple):
    """A column's title and what it means."""

    title: str
    column: Column | None
    comma: bool = False
    """Whether its commas precede decimals."""
    doubtful: bool = False
    """Whether its commas or points may separate thousands or decimals."""
    asked: Workload = Workload()
    """The workload that the title names, if any: ``4k randread IOPS``."""
    owner: str = ""
    """Other words than measure, unit and workload in the title: ``patched`` in ``patched BW (MB/s)``."""
    refused: bool = False
    """Whether the title names a measure with a word that changes it: ``lat range (us)``."""


def heading(title: str, cells: Sequence[str] = (), *, commas: bool = False) -> Heading:
    """Return the meaning of a column's ``title`` above ``cells``; ``commas``: those of another column precede decimals."""
    title = " ".join(title.split()).removesuffix(":").rstrip()
    meant = parse(title)
    found = meant.column or _of_cells(title, meant, cells)
    if found is None:
        return Heading(title, None, refused=bool(meant.measures))
    clear = with_point(title)
    asked = facts({}, clear) if _OF_ITS_OWN.search(clear) else Workload()
    # read.bw_bytes
    owner = re.sub(r"(?<=[a-z])[.](?=[a-z])", " ", clear, flags=re.I)
    owner = _without(owner, MODE, DEPTH, JOBS, BYTES, TIME, BLOCK, _MEASURE)
    owner = " ".join(re.findall(r"[^\s_()\[\]/,:*%|-]\S{0,60}", owner))
    comma = decimal_comma(cells, beside=commas)
    return Heading(title, found, comma, False, asked, clean(owner.strip("()[]_:,*- ")))


def _without(text: str, *patterns: re.Pattern[str]) -> str:
    for pattern in patterns:
        text = pattern.sub(" ", text + " ")
    return text


def _of_cells(title: str, meant: Title, cells: Sequence[str]) -> Column | None:
    """Return the rate that only the units in the ``cells`` name; None if the title names something else."""
    written = [plain(text) for text in cells if any(map(str.isdigit, text))]
    is_other = meant.other and not _UNIT_OF_OTHERS.search(_plain(title))
    if not written or meant.measures or is_other or COMPARES.search(title):
        return None
    rates = list(map(_RATE_CELL.fullmatch, written))
    units = {bool(match["iops"]) if match else None for match in rates}
    if len(units) > 1 or None in units:
        return None
    of_bandwidth = column(f"{title} bw")
    kind = None if of_bandwidth is None else of_bandwidth.kind
    if units == {True}:
        return Column(kind, "rate", "iops", 0, 1.0)
    return Column(kind, "rate", "bw", 0, None)


def of_names(measure: Heading, *names: str) -> Heading:
    """Return the meaning of a number in a table of one ``measure``, from the ``names`` of its row and column."""
    statistics = [name.strip("*` :") for name in names if parse(name).statistic]
    others = filterfalse(lambda name: parse(name).statistic, names)
    if len(statistics) > 1 or any(map(is_measure, others)):
        return Heading(measure.title, None)
    return measure._replace(column=column(" ".join((measure.title, *statistics))))


def names_percentiles(title: str, names: Sequence[str]) -> bool:
    """Return whether ``names`` below or next to ``title`` may be bare percentiles: 50, 99 and 99.9."""
    is_titled = not PERCENTILES.isdisjoint(parse(title).words)
    return is_titled or any(map(BARE.fullmatch, map(_plain, names)))


def is_measure(name: str) -> bool:
    """Return whether a name is that of a measure, read here or not, or of several."""
    meant = parse(name)
    return meant.other or meant.column is not None


def workload_words(title: str) -> str:
    """Return the words of a title other than its measure and unit: ``4k randread``."""
    rest = BYTES.sub(" ", _MEASURE.sub(" ", with_point(title)))
    return clean(" ".join(re.findall(r"[^\s_()\[\]/,:*|]\S{0,60}", rest)))


def strange(title: str) -> str:
    """Return the words of a title that may change its measure."""
    rest = _without(
        _PATH.sub(" ", _plain(title)),
        *(
            _RANK,
            MODE,
            DEPTH,
            JOBS,
            IOPS,
            BITS,
            BYTES,
            TIME,
            BLOCK,
            _MEASURE,
            TIMES_TEN,
        ),
    )
    return " ".join(
        word for word in re.findall(r"[^\W_]+", rest) if word not in _HARMLESS
    )


def is_certain(title: str) -> bool:
    """Return whether the part of a table's title that names its measure names nothing else."""
    return not any(
        strange(part) for part in _PARTS.split(title) if parse(part).measures
    )


def certain(headings: Sequence[Heading]) -> list[Heading]:
    """``headings`` with ambiguous measures marked as refused: ``lat variation (us)``, ``IOPS budget``.

    An unknown word may be the name of a variant only if every measure has a column for each of several variants.
    """
    owners: dict[Column, set[str]] = {}
    for h in headings:
        if h.column is not None:
            owners.setdefault(h.column._replace(scale=None), set()).add(
                strange(h.title)
            )
    several = [names for names in owners.values() if len(names) > 1]
    of_variants = all(names == several[0] for names in several)
    of_variants = of_variants and not any("" in names for names in owners.values())
    twice = doubled(headings)
    titles: list[Heading] = []
    for h in headings:
        if h.column is not None:
            is_variant = of_variants and len(owners[h.column._replace(scale=None)]) > 1
            if (strange(h.title) and not is_variant) or h.title in twice:
                h = h._replace(column=None, refused=True)
        titles.append(h)
    return titles


def doubled(headings: Sequence[Heading]) -> set[str]:
    """Titles with the same meaning as another. Of two that differ only in ``mean``, the other one is the run's rate."""
    groups: dict[tuple[Column, str, Workload], list[str]] = {}
    for h in headings:
        if h.column is None:
            continue
        meaning = (h.column, strange(h.title), facts({}, h.title))
        groups.setdefault(meaning, []).append(h.title)
    repeated: set[str] = set()
    for titles in groups.values():
        plain = list(filterfalse(_MEAN.search, titles))
        if len(titles) < 2:
            continue
        repeated.update(titles)
        if len(plain) == 1:
            repeated.difference_update(plain)
    return repeated
