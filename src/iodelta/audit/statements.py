"""Check the statements in the prose of a report: percentages, "up to", and effects that two people reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from iodelta.ingest.numbers import half_unit
from iodelta.ingest.prose import EFFECT, Change, changes, listed, paragraphs
from iodelta.trial import Finding, Kind, Quantity

_PERCENT = re.compile(r"([~≈]?)[-−+]?(\d+(?:\.\d+)?) ?%")
_LOSS = re.compile(
    r"\b(?:drop|los[st]|loses|regress|slow|decreas|declin|degrad|lower|less|below|worse|f[ae]ll)",
    re.I,
)
_GAIN = re.compile(
    r"\b(?:gain|improv|fast|speed|increas|higher|more|above|better|boost|r[io]se)", re.I
)
_UP_TO = re.compile(r"\bup to (?:about |~)?(\d+(?:\.\d+)?) ?%")

ABOUT = 0.02
"""How far a percentage with ``~`` may be off, as a share of it."""


def check_statements(
    text: str, file: str, *, measured: bool = True
) -> tuple[Finding, ...]:
    """Contradictions in the prose of a text: a percentage and its numbers, "up to" and the changes shown, one person's
    effect and another's. ``measured``: the text also contains results."""
    stated = changes(text)
    if not (measured or stated or any(listed(text, file))):
        return tuple(_bare(text, file))
    return (
        *_percentages(stated, file),
        *_up_to(text, stated, file),
        *_effect_sizes(stated, file),
    )


def _bare(text: str, file: str) -> Iterator[Finding]:
    """Percentages without the numbers behind them."""
    effects: list[tuple[int, str]] = []
    for part in paragraphs(text):
        effects += [
            (part.line(match.start()), match[0]) for match in EFFECT.finditer(part.text)
        ]
    if effects:
        line, first = effects[0]
        words = f"{len(effects)} effects are stated in percent ({first!r}) without the numbers behind them"
        remedy = (
            "ask for IOPS, bandwidth or latency of both sides: these percentages cannot be checked or compared. Only "
            "sums of them can: --claims '20 % and 30 % make 44 %'"
        )
        yield Finding("statement.bare", "note", f"{file}:{line}", words, remedy)


def _percentages(stated: Sequence[Change], file: str) -> Iterator[Finding]:
    for change in stated:
        given = _PERCENT.search(change.stated)
        if given is None:
            continue
        about, digits = given.groups()
        percent, slack = float(digits), half_unit(digits)
        if about:
            slack += ABOUT * percent
        low, shown, high = change.percent()
        least, most = sorted((abs(low), abs(high)))
        # An interval around 0 allows a change of any small size.
        if low * high <= 0:
            least = 0.0
        if percent - slack > most or percent + slack < least:
            text = f"it says {digits} %, but its numbers make {shown:+.1f} % ({low:.1f} to {high:.1f} with rounding)"
            yield Finding(
                "statement.percent",
                "hard",
                f"{file}:{change.line}",
                text,
                "give the percentage of the numbers",
            )


def _up_to(text: str, stated: Sequence[Change], file: str) -> Iterator[Finding]:
    """Compare "up to n %" with the largest change that stated changes or listed rows of one case show."""
    # The lowest and the highest bandwidth of each list of one kind of I/O.
    lists: dict[tuple[str, Kind], list[Quantity]] = {}
    for run in listed(text, file):
        for direction in run.directions:
            lists.setdefault((run.table, direction.kind), []).append(
                direction.bandwidth
            )
    extremes = [
        (min(values, key=_size), max(values, key=_size)) for values in lists.values()
    ]
    # Rows have no before: a loss is of the higher of two, a gain of the lower.
    losses = [
        _Shown(100 * (1 - low.low / high.high), 100 * (1 - low.value / high.value))
        for low, high in extremes
    ]
    gains = [
        _Shown(100 * (high.high / low.low - 1), 100 * (high.value / low.value - 1))
        for low, high in extremes
        if low.low > 0
    ]
    changed = list(map(_shown, stated))
    for paragraph in paragraphs(text):
        for match in _UP_TO.finditer(paragraph.text):
            shown = [
                *changed,
                *(
                    losses
                    if _is_loss(
                        re.split(r"[.;!?] ", paragraph.text[: match.start()])[-1]
                        + re.split(r"[.;!?] ", paragraph.text[match.start() :])[0]
                    )
                    else gains
                ),
            ]
            if shown and float(match[1]) - 0.5 > max(shown).most:
                place = f"{file}:{paragraph.line(match.start())}"
                likely = max(change.likely for change in shown)
                words = f"{match[0]!r}, but the numbers shown differ by {likely:.1f} % at most"
                yield Finding(
                    "statement.up-to",
                    "warning",
                    place,
                    words,
                    "show the numbers behind the claim",
                )


class _Shown(NamedTuple):
    """A change that numbers show, in percent: the most that rounding allows, and as written."""

    most: float
    likely: float


def _shown(change: Change) -> _Shown:
    low, value, high = change.percent()
    return _Shown(max(abs(low), abs(high)), abs(value))


def _is_loss(sentence: str) -> bool:
    return _LOSS.search(sentence) is not None and not _GAIN.search(sentence)


def _size(quantity: Quantity) -> float:
    return quantity.value


def _effect_sizes(stated: Sequence[Change], file: str) -> Iterator[Finding]:
    """Two people's changes of one quantity with the same sign, whose sizes cannot both be right."""
    alone = [change for change in stated if not change.cell]
    for index, first in enumerate(alone):
        for second in alone[index + 1 :]:
            (low, a, high), (least, b, most) = first.percent(), second.percent()
            if (
                first.quoted == second.quoted
                or first.before.unit != second.before.unit
                or a * b <= 0
            ):
                continue
            if high < least or most < low:
                text = f"{a:+.0f} % (line {first.line}) and {b:+.0f} % (line {second.line}) agree in sign but not in size"
                remedy = "the direction is reproduced, the size is not: find what differs between the two machines"
                yield Finding(
                    "statement.effect-size",
                    "warning",
                    f"{file}:{second.line}",
                    text,
                    remedy,
                )
