"""A comparison on a terminal: 80 columns, the word last, and what else differs before anybody believes it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from iodelta.report.columns import columns, cut
from iodelta.report.foreign.table import WIDTH, findings, not_read, wrapped
from iodelta.report.formats.statements import visible
from iodelta.study.comparison import Compared, Comparison
from iodelta.study.confounders import said
from iodelta.study.runs import Number
from iodelta.study.words import digits, inert, percent, quantity, scatter

STYLES = {
    "regression": "bold red",
    "improvement": "bold green",
    "equivalent": "green",
    "inconclusive": "yellow",
    "no verdict": "dim",
}
ALIGN, FOLD = "<>>><<", 3
"""Of name, both values, change, interval and word; and from where a narrow terminal gets two lines."""

NAMED = 24
"""Columns of a side's name in a heading."""

SHOWN = 12
"""Cells of one side only that are listed."""


def lines(found: Comparison, width: int = WIDTH) -> Iterator[Text]:
    """All of it, none wider than ``width``."""
    prose = min(width, WIDTH)
    for variant in found.variants:
        own = [one for one in found.compared if one.variant == variant]
        yield from wrapped(headline(found, variant, own), style="bold", width=prose)
        yield Text()
        if own:
            yield from _table(found, variant, own, width)
        yield from _differences(found, variant, prose)
    if found.unmatched:
        more = f" and {len(found.unmatched) - SHOWN} more" if len(found.unmatched) > SHOWN else ""
        yield from wrapped(f"On one side only: {'; '.join(map(inert, found.unmatched[:SHOWN]))}{more}.", width=prose)
    yield from findings(found.findings, width=prose)
    yield from not_read(found.refusals, width=prose)


def answer(found: Comparison) -> str:
    """The answers for all variants, those that are the same in one sentence."""
    alike: dict[str, list[str]] = {}
    for variant in found.variants:
        said_ = _said(found, variant, [one for one in found.compared if one.variant == variant])
        alike.setdefault(said_, []).append(inert(variant))
    return " ".join(f"{', '.join(names)} against {inert(found.baseline)}: {text}" for text, names in alike.items())


def headline(found: Comparison, variant: str, own: Sequence[Compared]) -> str:
    """The answer in a sentence, no stronger than what is below it."""
    return f"{inert(variant)} against {inert(found.baseline)}: {_said(found, variant, own)}"


def _said(found: Comparison, variant: str, own: Sequence[Compared]) -> str:
    lacking = found.lacking.get(variant, ())
    lack = f"no number that all runs have in {len(lacking)} cell{'s' if len(lacking) != 1 else ''}" if lacking else ""
    if not own:
        return f"no verdict: {lack}." if lack else "no cell in common."
    own = [one for one in own if one.resolved] or list(own)
    words = [one.word for one in own]
    told = [
        f"{word} in {words.count(word)} of {len(words)}"
        for word in ("regression", "improvement", "equivalent", "inconclusive")
        if word in words
    ]
    reasons = dict.fromkeys(one.why for one in own if one.word == "no verdict")
    if not reasons:
        return f"{', '.join(told)} numbers{f'; {lack}' if lack else ''}."
    verdict = f"{', '.join(told)}; no verdict on the others" if told else "no verdict"
    return f"{verdict}: {'; '.join((*reasons, *([lack] if lack else ())))}."


def _table(found: Comparison, variant: str, own: Sequence[Compared], width: int) -> Iterator[Text]:
    told = "interval" if any(one.basis != "single runs" for one in own) else ""
    head = ("", cut(inert(found.baseline), NAMED), cut(inert(variant), NAMED), "change", told, "")
    lines_: list[tuple[str, ...]] = [head]
    for one in own:
        several = len({other.metric.partition(".")[0] for other in rows_of(own, one.cell)}) > 1
        values = [quantity(value, one.unit) for value in one.values]
        lines_.append((name_of(one, several), *values, change_of(one.change)[0], bounds_of(one), one.word))
        lines_.append(("", *(f"±{scatter(s)}" if s is not None else "" for s in one.spread), "", "", ""))
    made = iter(columns(lines_, ALIGN, width, indent=2, fold=FOLD))
    yield Text(next(made), style="dim")
    for (cell, runs), rows in groupby(own, key=lambda one: (one.cell, one.runs)):
        counted = "one run each" if runs == (1, 1) else f"{runs[0]} and {runs[1]} runs"
        yield Text(f"{cut(inert(cell), min(width, WIDTH) - 20)} ({counted})")
        for one in rows:
            yield Text(next(made).removesuffix(one.word)).append(one.word, style=STYLES[one.word])
            if spread := next(made):
                yield Text(spread, style="dim")
            for note in textwrap.wrap(says_of(one), min(width, WIDTH) - 4):
                yield Text(f"    {note}", style="dim")
    yield Text()


def rows_of(own: Sequence[Compared], cell: str) -> list[Compared]:
    """The comparisons of one cell."""
    return [one for one in own if one.cell == cell]


def bounds_of(one: Compared) -> str:
    """The interval over the runs; a single run on each side has none."""
    return "" if one.basis == "single runs" else change_of(one.change)[1]


def says_of(one: Compared) -> str:
    """What stands below a number: how it came to its word, and of single runs how finely their sources tell it."""
    low, high = (one.change.low, one.change.high) if one.change else (math.nan, math.nan)
    rounded = change_of(one.change)[1] if one.basis == "single runs" and low < high else ""
    return f"{one.says}; the digits given leave {rounded}" if rounded else one.says


def name_of(one: Compared, several: bool) -> str:
    """``p99 clat``: in fio's own words, since it matters which latency it is."""
    kind, _, what = one.metric.partition(".")
    family, _, point = what.partition(".")
    name = f"{point} {family}" if point else {"iops": "IOPS", "bandwidth": "bandwidth"}[what]
    return f"{kind} {name}" if several or kind == "sync" else name


def change_of(change: Number | None) -> tuple[str, str]:
    """The change and its interval, as factors where percentages would be absurd."""
    if change is None:
        return "-", ""
    if not (math.isfinite(change.low) and math.isfinite(change.high)):
        return percent(change.value), ""
    places = digits((change.high - change.low) / 2)
    value, low, high = 100 * change.value, 100 * change.low, 100 * change.high
    for n in range(places, -1, -1):
        shown = f"{value:+.{n}f} %", f"{low:+.{n}f} .. {high:+.{n}f} %"
        if len(shown[0]) <= 8 and len(shown[1]) <= 17:
            return shown
    times = 1 + change.value
    return f"x{times:,.0f}" if times < 1e6 else f"x{times:.0e}", ""


def _differences(found: Comparison, variant: str, width: int) -> Iterator[Text]:
    differing = found.differences.get(variant, ())
    if not differing:
        yield from wrapped("Nothing else is known to differ between the sides.", style="dim", width=width)
        return
    yield from wrapped(f"Differs too: ({inert(found.baseline)} | {inert(variant)})", width=width)
    likely = {one.group for one in differing if one.likely}
    for group, why, lines_ in said(differing):
        reason = f" ({why})" if why else ""
        mark, style = ("? ", "yellow") if group in likely else ("  ", "")
        yield from wrapped(f"{mark}{'; '.join(lines_)}{reason}", style=style, width=width)


def method(found: Comparison) -> Iterator[str]:
    """What the words of a comparison rest on."""
    alone = [one for one in found.compared if one.basis == "single runs"]
    replicates = [one for one in found.compared if one.basis == "replicates"]
    blocks = [one for one in found.compared if one.basis == "blocks"]
    yield (
        f"Margin {100 * found.margin:g} %. Nothing was decided in advance by iodelta: these runs were made before the "
        "question was put to it, and one look was taken at all of them."
    )
    if blocks:
        level = 100 * max(one.verdict.change.level for one in blocks if one.verdict and one.verdict.change)
        yield (
            f"{len(blocks)} of {len(found.compared)} numbers: runs of both sides were interleaved in time and are "
            f"compared pair by pair; Hodges-Lehmann estimate, signed-rank interval, level {level:.4g} %."
        )
    if replicates:
        reasons = "; ".join(dict.fromkeys(one.why for one in replicates))
        yield (
            f"{len(replicates)} of {len(found.compared)} numbers: several runs, but no verdict ({reasons}); the "
            "interval (95 %) takes them as independent draws."
        )
    if alone:
        yield (
            f"{len(alone)} of {len(found.compared)} numbers: one run on each side; no interval, since the "
            "scatter between runs is not known, so no verdict is given."
        )
    bounds = [one.change for one in found.compared if one.change is not None]
    seen = [(c.high - c.low) / 2 for c in bounds if math.isfinite(c.low) and math.isfinite(c.high)]
    if seen and (blocks or replicates):
        yield f"Smallest change this could have seen: {visible(seen)}."
    yield "No calibration belongs to these runs: how often this machine raises a false alarm is not known."
