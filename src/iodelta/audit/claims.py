"""Sentences about a table, checked against it: ``queue has the highest IOPS in QD1``, ``pid is 25 % below queue``; and
changes one after the other, which multiply: ``20 % and 30 % make 44 %``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from iodelta.audit.model import Audit, Evidence
from iodelta.audit.numbers import known, latency, number, parts
from iodelta.audit.tables import context, groups, load, variant
from iodelta.errors import RequestError
from iodelta.ingest import Run
from iodelta.ingest.table_headings import Stat, column
from iodelta.trial import Finding, Quantity, Severity

Outcome = Literal["holds", "false", "untestable"]

_METRIC = r"iops|bandwidth|throughput|bw|(?:(?:mean|average|avg) )?(?:latency|lat)|p\d{2}(?:\.\d+)?(?: latency)?"
_CELLS = r"(?: (?:in|on|for|at|under) (?P<cells>.+))?"
_EXTREME = re.compile(
    rf"(?P<who>.+?) has the (?P<end>highest|lowest|best|worst) (?P<metric>{_METRIC}){_CELLS}", re.IGNORECASE
)
_PERCENT = re.compile(
    r"(?P<who>.+?) is (?P<how>up to|at least|more than|about|~)? ?(?P<n>\d+(?:\.\d+)?) ?%"
    r" (?P<way>below|above|lower than|higher than|slower than|faster than)"
    rf" (?P<than>.+?)(?: in (?P<metric>{_METRIC}))?{_CELLS}",
    re.IGNORECASE,
)
_CHANGE = (
    r"([-−+]?)(\d{1,9}(?:\.\d{1,9})?)(?: ?%? ?(?:~|-|–|to) ?(\d{1,9}(?:\.\d{1,9})?))? ?%"
    r"(?: (loss|drop|regression|slower|below|lower)| (gain|improvement|faster|above|higher))?"
)
_TOGETHER = re.compile(
    rf"(?P<parts>{_CHANGE}(?:(?:, then|, and|,| and then| then| and) {_CHANGE})+) makes? "
    rf"(?P<how>up to|at least|more than|about|~)? ?(?P<whole>{_CHANGE})",
    re.IGNORECASE,
)
_SPEECH = frozenset("a all and any cell cells each every group groups in of row rows the under with".split())
_SAME = {"random": "rand", "sequential": "seq"}
_LOAD = {"load": "loaded", "loaded": "loaded", "idle": "idle", "unloaded": "idle"}

FORMS = (
    "X has the highest (lowest, best, worst) IOPS (bandwidth, latency, p99) in CELLS; or "
    "A is [up to, at least, more than, about] n % below (above, slower than, faster than) B [in IOPS] [in CELLS]; or "
    "n % and m % make [more than, about] k % (losses, unless there is a + or the word gain)"
)

SPOILT: dict[Stat, tuple[str, ...]] = {
    "mean": ("little.mismatch", "mean.below-tail", "mean.above-percentile"),
    "percentile": ("percentile.unit",),
    "bw": ("bandwidth.mismatch", "bandwidth.suffix"),
    "iops": (),
}
"""Hard findings after which a number of a row cannot bear a claim; what an exact repair mends can."""

ABOUT = 0.1
"""How far "about n %" may be off, as a share of n."""


class Claim(NamedTuple):
    """A claim taken apart. ``than`` and ``percent`` are empty for one about the highest or lowest."""

    sentence: str
    who: str
    than: str
    metric: str
    up: bool
    words: tuple[str, ...]
    percent: str = ""
    how: str = ""


class Checked(msgspec.Struct, frozen=True):
    """What became of a claim: in how many of the ``cells`` that it names it ``holds``, and in words why."""

    sentence: str
    outcome: Outcome
    holds: int
    """In how many of these cells it is so."""
    cells: int
    """How many cells it names."""
    explanation: str

    def finding(self) -> Finding | None:
        """None for a claim that holds; a false one is hard."""
        if self.outcome == "holds":
            return None
        severity: Severity = "hard" if self.outcome == "false" else "warning"
        remedy = "say it of the cells where it holds" if self.outcome == "false" else "mend these numbers first"
        return Finding(f"claim.{self.outcome}", severity, f"claim {self.sentence!r}", self.explanation, remedy)


def check_claims(text: str, audit: Audit) -> tuple[Checked, ...]:
    """Every sentence of ``text`` (set off by ; or lines) against the tables. Raises RequestError for another form."""
    sentences = [part.strip().rstrip(".") for part in re.split(r"[;\n]", text) if part.strip(" .\r\t")]
    return tuple(_together(sentence) or _check(parse(sentence, audit.runs), audit) for sentence in sentences)


def parse(sentence: str, runs: Sequence[Run]) -> Claim:
    """A sentence about a table taken apart. Raises RequestError for another form, or no variant of the tables."""
    extreme, percent = _EXTREME.fullmatch(sentence), _PERCENT.fullmatch(sentence)
    found = extreme or percent
    if found is None:
        raise RequestError(f"cannot check {sentence!r}", place="claims", remedy=f"write it as: {FORMS}")
    metric = (found["metric"] or "IOPS").casefold()
    late = _stat(metric)[0] in ("mean", "percentile")
    who, words = _variant(found["who"], runs), _words(found["cells"] or "")
    if extreme is not None:
        end = extreme["end"].casefold()
        up = end == "highest" or (end == "best" and not late) or (end == "worst" and late)
        return Claim(sentence, who, "", metric, up, words)
    way = found["way"].casefold().split()[0]
    up = way in ("above", "higher") or way == ("slower" if late else "faster")
    how = (found["how"] or "").casefold()
    return Claim(sentence, who, _variant(found["than"], runs), metric, up, words, found["n"], how)


def _variant(text: str, runs: Sequence[Run]) -> str:
    known_names = dict.fromkeys(name for run in runs if run.format == "table" and (name := variant(run)))
    for name in known_names:
        if name.casefold() == text.strip().casefold():
            return name
    raise RequestError(
        f"no row is called {text.strip()!r}",
        place="claims",
        remedy=f"rows are of {', '.join(known_names) or 'nothing'}",
    )


def _words(text: str) -> tuple[str, ...]:
    """The words that a cell must have, ``4 jobs`` as one and ``defrag on`` as two."""
    text = re.sub(r"(\d+) jobs?", r"\1jobs", text.casefold())
    text = re.sub(r"\bon\b(?=\s+\w)", " ", text)
    return tuple(_SAME.get(word, word) for word in re.findall(r"[\w.-]+", text) if word not in _SPEECH)


def _in_cell(words: Iterable[str], run: Run) -> bool:
    work = run.workload
    own = set(re.findall(r"[\w.-]+", context(run).casefold()))
    own |= {f"qd{work.iodepth}", f"{work.numjobs or 1}jobs", f"{(work.bs or 0) // 1024}k", (work.rw or "").casefold()}
    return all(
        load(run) == _LOAD[word]
        if word in _LOAD
        else word in own or (word.isalpha() and len(word) > 2 and any(word in text for text in own))
        for word in words
    )


def _check(claim: Claim, audit: Audit) -> Checked:
    spoilt = {(index, hit.finding.rule) for hit in audit.hits for index in hit.runs}
    mended = {(repair.run, repair.column): repair.mended for repair in audit.repairs()}
    cells = [
        {variant(audit.runs[index]): _value(index, audit.runs[index], claim.metric, spoilt, mended) for index in rows}
        for rows in groups(Evidence(audit.runs))
        if _in_cell(claim.words, audit.runs[rows[0]])
    ]
    cells = [cell for cell in cells if claim.who in cell and (not claim.than or claim.than in cell)]
    if not cells:
        raise RequestError(
            f"no cell is meant by {' '.join(claim.words) or 'this'!r}",
            place=f"claim {claim.sentence!r}",
            remedy="name cells by words of the table: QD32, 4k, SSD, random, 4 jobs",
        )
    return _percentage(claim, cells) if claim.than else _extreme(claim, cells)


def _stat(metric: str) -> tuple[Stat, float]:
    """What a claim is about, as ``Column`` says it."""
    found = re.match(r"p(\d+(?:\.\d+)?)", metric)
    if found:
        return "percentile", float(found[1])
    if metric == "iops":
        return "iops", 0
    return ("bw" if metric in ("bandwidth", "throughput", "bw") else "mean"), 0


def _value(
    index: int, run: Run, metric: str, spoilt: set[tuple[int, str]], mended: dict[tuple[int, str], str]
) -> Quantity | None:
    """A row's value of ``metric``, mended where that is exact; None where it is missing or cannot be believed."""
    stat, percent = _stat(metric)
    if any((index, rule) in spoilt for rule in SPOILT[stat]):
        return None if stat == "mean" else _repaired(index, run, stat, percent, mended)
    if stat in ("iops", "bw"):
        rates = [d.iops if stat == "iops" else d.bandwidth for d in parts(run)]
        if not rates or not all(map(known, rates)):
            return None
        low, high = sum(rate.low for rate in rates), sum(rate.high for rate in rates)
        return Quantity(sum(rate.value for rate in rates), low, high, rates[0].unit)
    found = latency(parts(run)[0]) if len(parts(run)) == 1 else None
    number_ = found and (found.percentiles.get(percent) if percent else found.mean)
    return number_ if number_ and known(number_) else None


def _repaired(index: int, run: Run, stat: Stat, percent: float, mended: dict[tuple[int, str], str]) -> Quantity | None:
    for title in run.labels:
        own = column(title)
        if own is not None and own.stat == stat and own.percent == percent and own.scale:
            found = number(mended.get((index, title), ""))
            return Quantity.exact(found[0] * own.scale, "mended") if found else None
    return None


def _extreme(claim: Claim, cells: list[dict[str, Quantity | None]]) -> Checked:
    holds = ties = untested = 0
    against: list[str] = []
    for cell in cells:
        own, others = cell[claim.who], {name: value for name, value in cell.items() if value and name != claim.who}
        if own is None or not others:
            untested += 1
            continue
        best = max(others, key=lambda name: others[name].value if claim.up else -others[name].value)
        other = others[best]
        if own.low <= other.high and other.low <= own.high:
            ties += 1
        elif (own.value > other.value) == claim.up:
            holds += 1
        else:
            against.append(best)
    said = [f"holds in {holds} of {len(cells)} cells"]
    if ties:
        said.append(f"tied within rounding in {ties}")
    if against:
        first = ", ".join(f"{name} ({against.count(name)})" for name in dict.fromkeys(against))
        said.append(f"beaten by {first}")
    if untested:
        said.append(f"cannot be tested in {untested}, for want of a number that can be believed")
    outcome: Outcome = (
        "false" if against or (ties and not holds) else "untestable" if untested or not holds else "holds"
    )
    return Checked(claim.sentence, outcome, holds, len(cells), "; ".join(said))


def _together(sentence: str) -> Checked | None:
    """Whether changes, each of what the one before left, make the whole that is claimed; None for another sentence."""
    found = _TOGETHER.fullmatch(sentence)
    if found is None:
        return None
    parts = [_factors(*change) for change in re.findall(_CHANGE, found["parts"], re.IGNORECASE)]
    low, likely, high = (100 * (math.prod(part[at] for part in parts) - 1) for at in range(3))
    (whole,) = re.findall(_CHANGE, found["whole"], re.IGNORECASE)
    least, stated, most = (100 * (factor - 1) for factor in _factors(*whole))
    how = (found["how"] or "").casefold()
    slack = ABOUT * abs(stated) if how in ("about", "~") else 0.0
    if how in ("at least", "more than"):
        holds = low <= most if stated < 0 else high >= least
    elif how == "up to":
        holds = high >= least if stated < 0 else low <= most
    else:
        holds = low <= most + slack and least - slack <= high
    span = f", {low:.1f} to {high:.1f} % with rounding" if high - low > 1e-9 else ""
    text = f"each takes its share of what the one before left: {likely:+.1f} %{span}"
    return Checked(sentence, "holds" if holds else "false", int(holds), 1, text)


def _factors(sign: str, digits: str, to: str, loss: str, gain: str) -> tuple[float, float, float]:
    """What a change leaves: least, as written and most. Without a sign or a word it is a loss."""
    ends = [float(digits), float(to or digits)]
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    lost = -1 if sign in ("-", "−") or loss or not (sign or gain) else 1
    factors = [1 + lost * percent / 100 for percent in (ends[0] - half, sum(ends) / 2, ends[1] + half)]
    return min(factors), factors[1], max(factors)


def _percentage(claim: Claim, cells: list[dict[str, Quantity | None]]) -> Checked:
    shown: list[tuple[float, float, float]] = []
    for cell in cells:
        own, other = cell[claim.who], cell[claim.than]
        if own is not None and other is not None and other.low > 0:
            ratios = own.low / other.high, own.value / other.value, own.high / other.low
            shown.append(tuple(sorted(100 * (ratio - 1) * (1 if claim.up else -1) for ratio in ratios)))  # type: ignore[arg-type]
    if not shown:
        return Checked(claim.sentence, "untestable", 0, len(cells), "no cell has numbers that can be believed")
    n = float(claim.percent)
    half = 0.5 * 10.0 ** -len(claim.percent.partition(".")[2])
    slack = max(half, ABOUT * n) if claim.how in ("about", "~") else half
    low, high = min(value for _, value, _ in shown), max(value for _, value, _ in shown)
    if claim.how == "up to":
        reached = max(upper for *_, upper in shown) >= n - slack
        contradicted = max(lower for lower, *_ in shown) > n + slack or (not reached and len(shown) == len(cells))
        holds = len(shown) if reached and not contradicted else 0
    elif claim.how in ("at least", "more than"):
        holds = sum(upper >= n for *_, upper in shown)
    else:
        holds = sum(lower <= n + slack and upper >= n - slack for lower, _, upper in shown)
    if claim.how != "up to":
        contradicted = holds < len(shown)
    text = f"the table shows {low:.1f} % {'above' if claim.up else 'below'}"
    if len(shown) > 1:
        text = f"the table shows {low:.1f} to {high:.1f} % {'above' if claim.up else 'below'}"
    if claim.how != "up to" and len(shown) > 1:
        text += f"; holds in {holds} of {len(shown)} cells"
    if len(shown) < len(cells):
        text += f"; {len(cells) - len(shown)} cells cannot be tested"
    outcome: Outcome = "false" if contradicted else "untestable" if len(shown) < len(cells) else "holds"
    return Checked(claim.sentence, outcome, holds, len(cells), text)
