"""Check sentences about a table against it: ``queue has the highest IOPS in QD1``, ``pid is 25 % below queue``.

Also check sums of changes, which multiply: ``20 % and 30 % make 44 %``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from iodelta.audit.columns import measured
from iodelta.audit.model import Audit, Evidence
from iodelta.audit.numbers import known, latency, number, parts
from iodelta.audit.sentences import Claim, parse, stat_of
from iodelta.audit.tables import context, groups, load, variant
from iodelta.errors import RequestError
from iodelta.ingest import Run
from iodelta.ingest.numbers import half_unit
from iodelta.ingest.table_titles import Stat
from iodelta.plural import plural
from iodelta.trial import Finding, Quantity, Severity, total

Outcome = Literal["holds", "false", "untestable"]

_CHANGE = (
    r"([-−+]?)(\d{1,9}(?:\.\d{1,9})?)(?: ?%? ?(?:~|-|–|to) ?(\d{1,9}(?:\.\d{1,9})?))? ?%"
    r"(?: (loss|drop|regression|slower|below|lower)| (gain|improvement|faster|above|higher))?"
)
_TOGETHER = re.compile(
    rf"(?P<parts>{_CHANGE}(?:(?:, then|, and|,| and then| then| and) {_CHANGE})+) makes? "
    rf"(?P<how>up to|at least|more than|about|~)? ?(?P<whole>{_CHANGE})",
    re.IGNORECASE,
)
_LOAD = {"load": "loaded", "loaded": "loaded", "idle": "idle", "unloaded": "idle"}

SPOILT: dict[Stat, tuple[str, ...]] = {
    "mean": ("little.mismatch", "mean.below-tail", "mean.above-percentile"),
    "percentile": ("percentile.unit",),
    "bw": ("bandwidth.mismatch", "bandwidth.suffix"),
    "iops": (),
}
"""Hard findings that make a number of a row unfit to test a claim, unless an exact repair corrects it."""

ABOUT = 0.1
"""How far "about n %" may be off, as a share of n."""


Cell = dict[str, Quantity | None]
"""The value of each variant of a cell; None where it is not credible."""


class Span(NamedTuple):
    """A value in percent, and the interval that rounding allows."""

    low: float
    value: float
    high: float


class Checked(msgspec.Struct, frozen=True):
    """The outcome for a claim: it ``holds`` in so many of the ``cells`` that it names; ``explanation`` says why."""

    sentence: str
    outcome: Outcome
    holds: int
    """Number of cells in which the claim is true."""
    cells: int
    """Number of cells that the claim names."""
    explanation: str

    def finding(self) -> Finding | None:
        """Return the claim as a finding: hard if it is false, a warning if it is untestable, None if it holds."""
        if self.outcome == "holds":
            return None
        severity: Severity = "warning"
        remedy = "correct these numbers first"
        if self.outcome == "false":
            severity = "hard"
            remedy = "restrict the claim to the cells where it holds"
        return Finding(
            f"claim.{self.outcome}",
            severity,
            f"claim {self.sentence!r}",
            self.explanation,
            remedy,
        )


def check_claims(text: str, audit: Audit) -> tuple[Checked, ...]:
    """Check every sentence of ``text``, separated by ; or line ends. Raises RequestError for any other sentence."""
    checked: list[Checked] = []
    for part in re.split(r"[;\n]", text):
        if part.strip(" .\r\t"):
            sentence = part.strip().rstrip(".")
            checked.append(
                _together(sentence) or _check(parse(sentence, audit.runs), audit)
            )
    return tuple(checked)


def _means(word: str, run: Run, texts: Iterable[str]) -> bool:
    """Return whether a word describes a row; ``rand`` also matches ``randread``."""
    if word in _LOAD:
        return load(run) == _LOAD[word]
    if word in texts:
        return True
    may_be_part = word.isalpha() and len(word) > 2
    return may_be_part and any(word in text for text in texts)


class _Table:
    """The credible numbers of tables: a number with a hard finding is replaced by its exact repair, or left out."""

    def __init__(self, audit: Audit) -> None:
        self.runs = audit.runs
        self.mended = {
            (repair.run, repair.column): repair.mended for repair in audit.repairs()
        }
        self.spoilt: set[tuple[int, str]] = set()
        for hit in audit.hits:
            self.spoilt.update((index, hit.finding.rule) for index in hit.runs)

    def cells(self, claim: Claim) -> list[Cell]:
        """Return the cells that a claim names and that contain its variants."""
        wanted = {claim.who, claim.than} - {""}
        cells: list[Cell] = []
        for rows in groups(Evidence(self.runs)):
            # Whether a row belongs to the cell that these words name.
            words = claim.words
            run = self.runs[rows[0]]
            work = run.workload
            texts = set(re.findall(r"[\w.-]+", context(run).casefold()))
            texts |= {
                f"qd{work.iodepth}",
                f"{work.numjobs or 1}jobs",
                f"{(work.bs or 0) // 1024}k",
                (work.rw or "").casefold(),
            }
            if not all(_means(word, run, texts) for word in words):
                continue
            cell = {
                variant(self.runs[index]): self._value(index, claim.metric)
                for index in rows
            }
            if wanted <= cell.keys():
                cells.append(cell)
        return cells

    def _value(self, index: int, metric: str) -> Quantity | None:
        """Return a row's value of ``metric``, repaired where a repair is exact; None where it is missing or not
        credible.
        """
        run, (stat, percent) = self.runs[index], stat_of(metric)
        findings = {(index, rule) for rule in SPOILT[stat]}
        if not findings.isdisjoint(self.spoilt):
            return None if stat == "mean" else self._repaired(index, stat, percent)
        if stat == "iops":
            return _sum([part.iops for part in parts(run)])
        if stat == "bw":
            return _sum([part.bandwidth for part in parts(run)])
        return _latency(run, percent)

    def _repaired(self, index: int, stat: Stat, percent: float) -> Quantity | None:
        for title, _, meaning in measured(self.runs[index]):
            is_wanted = (meaning.stat, meaning.percent) == (stat, percent)
            if is_wanted and meaning.scale:
                written = number(self.mended.get((index, title), ""))
                if not written:
                    return None
                return Quantity.exact(written[0] * meaning.scale, "mended")
        return None


def _sum(rates: Sequence[Quantity]) -> Quantity | None:
    """Return the rate of all directions together; None where one of them is unknown."""
    if not rates or not all(map(known, rates)):
        return None
    return total(rates)


def _latency(run: Run, percent: float) -> Quantity | None:
    """Return the mean, or a percentile; None for a run of several directions, whose latencies do not add up."""
    directions = parts(run)
    spread = latency(directions[0]) if len(directions) == 1 else None
    if spread is None:
        return None
    value = spread.percentiles.get(percent) if percent else spread.mean
    return value if known(value) else None


def _check(claim: Claim, audit: Audit) -> Checked:
    cells = _Table(audit).cells(claim)
    if not cells:
        raise RequestError(
            f"no cell matches {' '.join(claim.words) or 'this'!r}",
            place=f"claim {claim.sentence!r}",
            remedy="name cells by words of the table: QD32, 4k, SSD, random, 4 jobs",
        )
    return _percentage(claim, cells) if claim.than else _extreme(claim, cells)


def _extreme(claim: Claim, cells: list[Cell]) -> Checked:
    places = [_place(claim, cell) for cell in cells]
    holds, ties = places.count("first"), places.count("tie")
    untested = places.count("untested")
    beaten_by = [place.best for place in places if isinstance(place, _Beaten)]
    words = [f"holds in {holds} of {plural(len(cells), 'cell')}"]
    if ties:
        words.append(f"tied within rounding in {ties}")
    if beaten_by:
        words.append(f"beaten by {_counted(beaten_by)}")
    if untested:
        words.append(
            f"cannot be tested in {untested}, because their numbers are not credible"
        )
    is_only_tied = bool(ties) and not holds
    is_false = bool(beaten_by) or is_only_tied
    outcome = _outcome(is_false=is_false, is_tested=bool(holds and not untested))
    return Checked(claim.sentence, outcome, holds, len(cells), "; ".join(words))


class _Beaten(NamedTuple):
    best: str


def _place(claim: Claim, cell: Cell) -> Literal["first", "tie", "untested"] | _Beaten:
    """Return the rank in a cell of the variant that is claimed to be highest or lowest."""
    who = cell[claim.who]
    known_values = {name: value for name, value in cell.items() if value}
    known_values.pop(claim.who, None)
    if who is None or not known_values:
        return "untested"
    best = _best(known_values, up=claim.up)
    other = known_values[best]
    # A mended value has no unit to compare.
    may_be_equal = who.low <= other.high and other.low <= who.high
    if may_be_equal:
        return "tie"
    if (who.value > other.value) == claim.up:
        return "first"
    return _Beaten(best)


def _best(values: Mapping[str, Quantity], *, up: bool) -> str:
    sign = 1 if up else -1
    return max(values, key=lambda name: sign * values[name].value)


def _counted(names: list[str]) -> str:
    return ", ".join(f"{name} ({names.count(name)})" for name in dict.fromkeys(names))


def _outcome(*, is_false: bool, is_tested: bool) -> Outcome:
    if is_false:
        return "false"
    return "holds" if is_tested else "untestable"


def _together(sentence: str) -> Checked | None:
    """Return whether successive changes multiply to the total that is claimed; None for another kind of sentence."""
    match = _TOGETHER.fullmatch(sentence)
    if match is None:
        return None
    changes = [
        _factors(*change)
        for change in re.findall(_CHANGE, match["parts"], re.IGNORECASE)
    ]
    low, likely, high = (
        100 * (math.prod(bound) - 1) for bound in zip(*changes, strict=True)
    )
    (whole,) = re.findall(_CHANGE, match["whole"], re.IGNORECASE)
    stated = Span(*(100 * (factor - 1) for factor in _factors(*whole)))
    # Whether successive changes may make the stated total. "At least" a loss means at most what remains.
    together = Span(low, likely, high)
    how = (match["how"] or "").casefold()
    if how in ("up to", "at least", "more than"):
        is_loss = stated.value < 0
        is_upper_end = is_loss == (how == "up to")
        if is_upper_end:
            holds = together.high >= stated.low
        else:
            holds = together.low <= stated.high
    else:
        slack = ABOUT * abs(stated.value) if how in ("about", "~") else 0.0
        holds = (
            together.low <= stated.high + slack and stated.low - slack <= together.high
        )
    rounding = f", {low:.1f} to {high:.1f} % with rounding" if high - low > 1e-9 else ""
    text = f"successive changes multiply, to {likely:+.1f} %{rounding}"
    return Checked(sentence, "holds" if holds else "false", int(holds), 1, text)


def _factors(
    sign: str, digits: str, to: str, loss: str, gain: str
) -> tuple[float, float, float]:
    """Return the factors of a change: lowest, as written, highest. A change without a sign or a word is a loss."""
    first, last = float(digits), float(to or digits)
    half = half_unit(digits)
    is_loss = sign in ("-", "−") or bool(loss) or not (sign or gain)
    lost = -1 if is_loss else 1
    percents = (first - half, (first + last) / 2, last + half)
    factors = [1 + lost * percent / 100 for percent in percents]
    return min(factors), factors[1], max(factors)


def _percentage(claim: Claim, cells: list[Cell]) -> Checked:
    spans = [
        _difference(cell[claim.who], cell[claim.than], up=claim.up) for cell in cells
    ]
    shown = [span for span in spans if span is not None]
    if not shown:
        return Checked(
            claim.sentence, "untestable", 0, len(cells), "no cell has credible numbers"
        )
    all_shown = len(shown) == len(cells)
    if claim.how == "up to":
        # For "up to n %": in how many cells it holds, and whether the cells contradict it. An untestable cell may be
        # the one that reaches n.
        stated, slack = float(claim.percent), _slack(claim)
        is_reached = max(span_.high for span_ in shown) >= stated - slack
        is_exceeded = max(span_.low for span_ in shown) > stated + slack
        is_missed = all_shown and not is_reached
        contradicted = is_exceeded or is_missed
        holds = len(shown) if is_reached and not contradicted else 0
    else:
        holds = sum(_agrees(claim, span) for span in shown)
        contradicted = holds < len(shown)
    several = len(shown) > 1
    words = [f"the table shows {_range(shown)} {'above' if claim.up else 'below'}"]
    if several and claim.how != "up to":
        words.append(f"holds in {holds} of {plural(len(shown), 'cell')}")
    if not all_shown:
        words.append(f"{plural(len(cells) - len(shown), 'cell')} cannot be tested")
    outcome = _outcome(is_false=contradicted, is_tested=all_shown)
    return Checked(claim.sentence, outcome, holds, len(cells), "; ".join(words))


def _range(shown: list[Span]) -> str:
    values = sorted(span.value for span in shown)
    if len(values) > 1:
        return f"{values[0]:.1f} to {values[-1]:.1f} %"
    return f"{values[0]:.1f} %"


def _difference(
    who: Quantity | None, than: Quantity | None, *, up: bool
) -> Span | None:
    """Percent by which one value is above (or below) another, with rounding; None where one of them is unknown."""
    if who is None or than is None or than.low <= 0:
        return None
    ratios = (who.low / than.high, who.value / than.value, who.high / than.low)
    sign = 1 if up else -1
    return Span(*sorted(sign * 100 * (ratio - 1) for ratio in ratios))


def _slack(claim: Claim) -> float:
    """Return how far the true percentage may be from the stated one, because of rounding and "about"."""
    half = half_unit(claim.percent)
    if claim.how not in ("about", "~"):
        return half
    return max(half, ABOUT * float(claim.percent))


def _agrees(claim: Claim, span: Span) -> bool:
    stated = float(claim.percent)
    if claim.how in ("at least", "more than"):
        return span.high >= stated
    slack = _slack(claim)
    return span.low <= stated + slack and span.high >= stated - slack
