"""Parse a sentence about a table: which variant, by how much, in which metric and in which cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from iodelta.audit.tables import variant
from iodelta.errors import RequestError
from iodelta.ingest import Run
from iodelta.ingest.table_titles import Stat

_METRIC = r"iops|bandwidth|throughput|bw|(?:(?:mean|average|avg) )?(?:latency|lat)|p\d{2}(?:\.\d+)?(?: latency)?"
_CELLS = r"(?: (?:in|on|for|at|under) (?P<cells>.+))?"
_EXTREME = re.compile(
    rf"(?P<who>.+?) has the (?P<end>highest|lowest|best|worst) (?P<metric>{_METRIC}){_CELLS}",
    re.IGNORECASE,
)
_PERCENT = re.compile(
    r"(?P<who>.+?) is (?P<how>up to|at least|more than|about|~)? ?(?P<n>\d+(?:\.\d+)?) ?%"
    r" (?P<way>below|above|lower than|higher than|slower than|faster than)"
    rf" (?P<than>.+?)(?: in (?P<metric>{_METRIC}))?{_CELLS}",
    re.IGNORECASE,
)
_SPEECH = frozenset(
    "a all and any cell cells each every group groups in of row rows the under with".split()
)
_SAME = {"random": "rand", "sequential": "seq"}

FORMS = (
    "X has the highest (lowest, best, worst) IOPS (bandwidth, latency, p99) in CELLS; or "
    "A is [up to, at least, more than, about] n % below (above, slower than, faster than) B [in IOPS] [in CELLS]; or "
    "n % and m % make [more than, about] k % (losses, unless there is a + or the word gain)"
)


class Claim(NamedTuple):
    """A parsed claim. ``than`` and ``percent`` are empty for a claim about the highest or lowest."""

    sentence: str
    who: str
    than: str
    metric: str
    up: bool
    words: tuple[str, ...]
    percent: str = ""
    how: str = ""


def parse(sentence: str, runs: Sequence[Run]) -> Claim:
    """Parse a sentence about a table. Raises RequestError for another form, or a name that no row has."""
    extreme = _EXTREME.fullmatch(sentence)
    match = extreme or _PERCENT.fullmatch(sentence)
    if match is None:
        raise RequestError(
            f"cannot check {sentence!r}", place="claims", remedy=f"write it as: {FORMS}"
        )
    metric = (match["metric"] or "IOPS").casefold()
    is_latency = stat_of(metric)[0] in ("mean", "percentile")
    who, words = _variant(match["who"], runs), _words(match["cells"] or "")
    if extreme is not None:
        return Claim(
            sentence,
            who,
            "",
            metric,
            (
                extreme["end"].casefold()
                in ("highest", "worst" if is_latency else "best")
            ),
            words,
        )
    up = match["way"].casefold().split()[0] in (
        "above",
        "higher",
        "slower" if is_latency else "faster",
    )
    than, how = _variant(match["than"], runs), (match["how"] or "").casefold()
    return Claim(sentence, who, than, metric, up, words, match["n"], how)


def _variant(text: str, runs: Sequence[Run]) -> str:
    """Return the variant with this name. Raises RequestError where no row has it."""
    tables = [variant(run) for run in runs if run.format == "table"]
    names = dict.fromkeys(filter(None, tables))
    for name in names:
        if name.casefold() == text.strip().casefold():
            return name
    raise RequestError(
        f"no row is named {text.strip()!r}",
        place="claims",
        remedy=f"the rows are named: {', '.join(names) or 'nothing'}",
    )


def _words(text: str) -> tuple[str, ...]:
    """Return the words that a cell must contain: ``4 jobs`` is one word, ``defrag on`` is two."""
    text = re.sub(r"(\d+) jobs?", r"\1jobs", text.casefold())
    text = re.sub(r"\bon\b(?=\s+\w)", " ", text)
    return tuple(
        _SAME.get(word, word)
        for word in re.findall(r"[\w.-]+", text)
        if word not in _SPEECH
    )


def stat_of(metric: str) -> tuple[Stat, float]:
    """Return the statistic and percentile that a claim is about, as in ``Column``."""
    percent = re.match(r"p(\d+(?:\.\d+)?)", metric)
    if percent:
        return "percentile", float(percent[1])
    if metric == "iops":
        return "iops", 0
    return ("bw" if metric in ("bandwidth", "throughput", "bw") else "mean"), 0
