"""The meaning of the titles of a result table: which measure, of which direction, in which unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import filterfalse
from typing import NamedTuple

from iodelta.ingest.model import Workload
from iodelta.ingest.table_cells import decimal_comma, plain
from iodelta.ingest.table_columns import (
    BARE,
    BITS,
    BYTES,
    IOPS,
    OTHER,
    PERCENTILES,
    TIME,
    TIMES_TEN,
    Column,
    column,
    is_column,
    is_other,
    measures_of,
    plain_title,
    with_point,
    words_of,
)
from iodelta.ingest.wording import clean
from iodelta.ingest.workload_words import BLOCK, DEPTH, JOBS, MODE, facts

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
    parsed = column(title) or _of_cells(title, cells)
    if parsed is None:
        return Heading(title, None, refused=names_measure(title))
    clear = with_point(title)
    asked = facts({}, clear) if _OF_ITS_OWN.search(clear) else Workload()
    return Heading(
        title, parsed, decimal_comma(cells, beside=commas), False, asked, _owner(clear)
    )


def _of_cells(title: str, cells: Sequence[str]) -> Column | None:
    """Return the rate that only the units in the ``cells`` name; None if the title names something else."""
    written = [text for text in cells if any(map(str.isdigit, text))]
    text = plain_title(title)
    if not written or measures_of(text) or is_other(text) or COMPARES.search(title):
        return None
    of_rates = [_RATE_CELL.fullmatch(plain(each)) for each in written]
    if not all(of_rates):
        return None
    units = {bool(match and match["iops"]) for match in of_rates}
    if len(units) > 1:
        return None
    direction = column(f"{title} bw")
    kind = None if direction is None else direction.kind
    return Column(kind, "rate", *(("iops", 0, 1.0) if units.pop() else ("bw", 0, None)))


_RATE_CELL = re.compile(
    r"~?\d[\d.,' ]{0,20} ?(?:(?P<iops>[kKmM]? ?(?:IOPS|iops|IOP/s))|[kKMGT]?i?B(?:ytes?)?(?:/s(?:ec)?|ps))(?: ?(?:\(.{1,20}\)|±.{1,12}))?"
)


def several(title: str) -> bool:
    """Return whether a title names more than one measure, so that its numbers are ambiguous."""
    text = plain_title(title)
    return len(measures_of(text)) > 1


def names_other(title: str) -> bool:
    """Return whether a title names a measure that is not read here: CPU, a standard deviation, a duration in seconds."""
    text = plain_title(title)
    if is_column(title):
        return False
    has_other_unit = _UNIT_OF_OTHERS.search(text) is not None
    return has_other_unit or bool(measures_of(text)) or is_other(text)


def names_measure(title: str) -> bool:
    """Return whether a title names a measure that is read here, alone or with other words."""
    return bool(measures_of(plain_title(title)))


def without_measure(title: str) -> str:
    """Return the words of a title other than its measure, unit and workload."""
    text = _PATH.sub(" ", plain_title(title))
    for known_words in (
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
    ):
        text = known_words.sub(" ", text + " ")
    return text


def is_statistic(title: str) -> bool:
    """Return whether a title only names a statistic: ``mean``, ``p99``."""
    return _STATISTIC.fullmatch(with_point(title).strip("*` :")) is not None


def of_names(measure: Heading, *names: str) -> Heading:
    """Return the meaning of a number in a table of one ``measure``, from the ``names`` of its row and column."""
    statistics = [name.strip("*` :") for name in names if is_statistic(name)]
    others = filterfalse(is_statistic, names)
    if len(statistics) > 1 or any(map(is_measure, others)):
        return Heading(measure.title, None)
    return measure._replace(column=column(" ".join((measure.title, *statistics))))


def names_percentiles(title: str, names: Sequence[str]) -> bool:
    """Return whether ``names`` below or next to ``title`` may be bare percentiles: 50, 99 and 99.9."""
    is_titled = not PERCENTILES.isdisjoint(words_of(plain_title(title)))
    return is_titled or any(map(BARE.fullmatch, map(plain_title, names)))


def is_measure(name: str) -> bool:
    """Return whether a name is that of a measure, read here or not, or of several."""
    return names_other(name) or is_column(name) or several(name)


def is_of_another(title: str) -> bool:
    """Return whether a title is a word that changes the measure before it: ``limit``, ``stddev``."""
    words = words_of(plain_title(title))
    return len(words) == 1 and words[0] in OTHER and not measures_of(words[0])


def names_rows(title: str) -> bool:
    """Return whether a column with this title names its rows (``Policy``, ``iodepth``), and is not a number of a
    result.
    """
    return not names_measure(title) and not _COUNTS.search(title.replace("_", " "))


def workload_words(title: str) -> str:
    """Return the words of a title other than its measure and unit: ``4k randread``."""
    rest = BYTES.sub(" ", _MEASURE.sub(" ", with_point(title)))
    return clean(" ".join(re.findall(r"[^\s_()\[\]/,:*|]\S{0,60}", rest)))


def _owner(title: str) -> str:
    title = re.sub(r"(?<=[a-z])[.](?=[a-z])", " ", title, flags=re.I)  # read.bw_bytes
    for known_words in (MODE, DEPTH, JOBS, BYTES, TIME, BLOCK, _MEASURE):
        title = known_words.sub(" ", title + " ")
    return clean(
        " ".join(re.findall(r"[^\s_()\[\]/,:*%|-]\S{0,60}", title)).strip("()[]_:,*- ")
    )
