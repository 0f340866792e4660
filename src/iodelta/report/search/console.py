"""A search on a terminal: the answer first, then a plot of levels and posterior, then what it rests on. 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from iodelta.errors import pasted
from iodelta.report.formats.columns import columns, cut
from iodelta.study.search import Changed, Found, Left, Proof, SearchAccount
from iodelta.study.words import duration, inert, interval, percent, quantity

WIDTH = 80
COLUMNS = 64
ROWS = 7
SHOWN = 14
"""Measured items listed; of more, those nearest to a culprit."""


def show(console: Console, account: SearchAccount) -> None:
    """Print all of it."""
    for line in lines(account):
        console.print(line, soft_wrap=True, highlight=False)


def lines(account: SearchAccount) -> Iterator[Text]:
    """The account, line by line, none wider than 80 columns but for titles."""
    yield from _wrapped(headline(account), style="bold")
    yield Text()
    if account.scatter:
        yield from _wrapped(f"{inert(account.scatter)}.", style="yellow")
        yield Text()
    for number, found in enumerate(account.culprits, 1):
        yield from _culprit(number, found)
    for one in account.suspects:
        yield from _wrapped(f"Suspected: {_between(one.first, one.last)}: {inert(one.text)}.", style="yellow")
    for one in account.gaps:
        yield from _wrapped(f"Between {inert(one.first[:12])} and {inert(one.last[:12])}: {inert(one.text)}.")
    yield from _sum(account)
    yield from plot(account)
    yield from _levels(account)
    yield from _answers(account)
    yield from _skipped(account)
    yield from _method(account)
    if account.next:
        yield from _wrapped(f"Next: {inert(account.next)}")
        if by_hand := account.question.by_hand:
            said = "good (or bad, skip, undo)" if by_hand == "words" else "--value NUMBER (or skip, undo)"
            yield Text(f"Answer: iodelta bisect {inert(pasted(account.folder))} {said}")
    yield Text(f"Folder: {inert(pasted(account.folder))}")


def headline(account: SearchAccount) -> str:
    """The answer in a sentence."""
    metric = account.question.metric
    if account.culprits and account.question.by_hand == "words":
        return f"One culprit of {account.items - 1} candidates, by your answers: {inert(account.culprits[0].title)}."
    if account.culprits:
        named = "; ".join(f"{inert(one.title)}: {metric} {_change(one.change)}" for one in account.culprits)
        count = "One culprit" if len(account.culprits) == 1 else f"{len(account.culprits)} culprits"
        return f"{count} of {account.items - 1} candidates: {named}."
    if account.refused:
        return f"No culprit: {inert(account.refused)}."
    if account.question.by_hand:
        return f"Not finished: {account.items - 1} candidates, {_answered(account)}."
    runs = f"{account.totals.runs} runs"
    return f"Not finished ({inert(account.state)}): {account.items - 1} candidates, {runs} so far."


def _culprit(number: int, found: Found) -> Iterator[Text]:
    yield from _wrapped(f"{number}. {inert(found.title)}", style="bold red")
    if len(found.suspects) > 1:
        yield from _wrapped(
            f"   or one of {len(found.suspects) - 1} before it that could not be tested: "
            + ", ".join(inert(title) for title in found.suspects[:-1])
        )
    for merge in found.via:
        yield from _wrapped(f"   brought in by {inert(merge)}")
    if found.change is None:
        yield from _wrapped(f"   {by_words(found)}")
        yield Text()
        return
    p = "one run each, exactly repeatable" if not found.p else f"one-sided p {found.p:.2g}"
    pairs = "pair" if found.pairs == 1 else "pairs"
    yield from _wrapped(
        f"   {_change(found.change)} against {inert(found.parent)}, in {found.pairs} fresh {pairs} of runs ({p}); "
        f"posterior {100 * found.probability:.1f} % before that test; after {found.runs} visits."
    )
    if found.revert:
        yield from _wrapped(f"   {proof(found.revert)}")
    yield Text()


def _sum(account: SearchAccount) -> Iterator[Text]:
    """From good to bad: the culprits, and what they leave."""
    left = account.left
    if left is None:
        return
    named = [(f"{number}. {inert(one.title)}", one.change) for number, one in enumerate(account.culprits, 1)]
    rows = [("parts of the difference, which multiply", "change", "interval")]
    for title, change in (*named, ("not named", left.change), ("from good to bad", left.whole)):
        if change is not None:
            size, _, between = _change(change).partition(" (")
            rows.append((cut(title, 46), size, between.rstrip(")")))
    head, *made = columns(rows, "<><", WIDTH)
    yield Text(head, style="dim")
    yield from map(Text, made)
    if left.between or (left.possible and left.rest):
        yield from _wrapped(unexplained(account, left), style="yellow")
    yield Text()


def unexplained(account: SearchAccount, left: Left) -> str:
    """That a change is left which no culprit accounts for, where it lies, and how to find it."""
    where = " and ".join(f"between {inert(first)} and {inert(last)}" for first, last in left.between)
    more = (
        f"to look for it: iodelta bisect {inert(pasted(account.folder))} --rest {left.rest:g}"
        if left.rest
        else "no single step of the margin was found in it"
    )
    if not left.between:
        worst = left.change.high if account.question.better == "lower" else left.change.low
        return f"Another {percent(worst)} is not excluded; {more}."
    return f"Another {_change(left.change)} remains unexplained {where}; {more}."


def by_words(found: Found) -> str:
    """What a culprit by words rests on."""
    wrong = found.contradicting
    against = f"{wrong} of {found.runs} answers contradict{'s' * (wrong == 1)}" if wrong else "no answer contradicts"
    return (
        f"Good up to {inert(found.parent)}, by {found.runs} answers given by hand; {against} it. "
        f"Probability of this place {100 * found.probability:.1f} %. No number was measured."
    )


def proof(revert: Proof) -> str:
    """The second proof in a sentence."""
    title = inert(revert.title)
    if revert.change is None:
        return f"Second proof: {title} could not be measured: {inert(revert.reason)}."
    size = _change(revert.change)
    p = "" if not revert.p else f", one-sided p {revert.p:.2g}"
    pairs = f"{revert.pairs} fresh pair{'s' * (revert.pairs > 1)}{p}"
    if revert.shown:
        return f"Second proof: at the bad end it makes {size}, against {title} ({pairs})."
    return (
        f"No second proof: at the bad end it makes {size}, against {title} ({pairs}); a later change may "
        "do the same, or undo it."
    )


def plot(account: SearchAccount) -> Iterator[Text]:
    """Levels of measured items over the line, and below it the posterior of each culprit."""
    points = [(level.place, 100 * level.change.value) for level in account.levels if level.change and level.place > 0]
    if not points:
        return
    points.append((0, 0.0))
    last = account.items - 1
    low, high = min(y for _, y in points), max(y for _, y in points)
    span = max(high - low, 1e-9)
    grid = [[" "] * (COLUMNS + 1) for _ in range(ROWS)]
    for place, y in points:
        row = round((high - y) / span * (ROWS - 1))
        grid[row][round(place / last * COLUMNS)] = "o"
    places = 0 if span >= 20 else 1 if span >= 1 else 2
    yield Text(f"{account.question.metric}, change against good over the line", style="dim")
    for number, row_ in enumerate(grid):
        value = high - span * number / (ROWS - 1)
        yield Text(f"{value:>+9.{places}f} % |{''.join(row_).rstrip()}")
    yield Text(f"{'':>12}+{'-' * (COLUMNS + 1)}")
    for number, bars in enumerate(account.posterior, 1):
        name = f"posterior {number}" if len(account.posterior) > 1 else "posterior"
        columns = [0.0] * (COLUMNS + 1)
        for bar in bars:
            first, end = (round(place / last * COLUMNS) for place in (bar.first, bar.last))
            for column in range(first, end + 1):
                columns[column] += bar.share / (end - first + 1)
        yield Text(f"{name:>11} |{''.join(_shade(share) for share in columns).rstrip()}")
    yield Text(f"{'':>13}{'0':<{COLUMNS // 2}}{f'place on the line      {last}':>{COLUMNS // 2 + 1}}", style="dim")
    yield Text(f"{'':>13}posterior: # over 50 %, = over 10 %, - over 1 %, . over 0.1 %", style="dim")
    yield Text()


def _shade(share: float) -> str:
    return "#" if share > 0.5 else "=" if share > 0.1 else "-" if share > 0.01 else "." if share > 0.001 else " "


def _levels(account: SearchAccount) -> Iterator[Text]:
    if not account.levels:
        return
    levels = list(account.levels)
    total = len(levels)
    if total > SHOWN:
        last = account.items - 1
        found = {one.item for one in account.culprits}
        centres = [level.place for level in levels if level.item in found] or [last // 2]
        ends = {level.item for level in levels if level.place in (0, last)}
        levels.sort(key=lambda one: (one.item not in ends, min(abs(one.place - centre) for centre in centres)))
        levels = sorted(levels[:SHOWN], key=lambda one: one.place)
    rows = [("item", "runs", "median", "change", "interval")]
    for level in levels:
        change, between = "-", "-"
        if level.change:
            low, high = level.change.low, level.change.high
            change = percent(level.change.value, None if low is None or high is None else (high - low) / 2)
            between = interval(low, high)
        if level.place == 0:
            between = "good"
        value = quantity(level.value, account.question.unit)
        rows.append((cut(inert(level.title), 40), str(level.runs), value, change, between))
    head, *made = columns(rows, "<>>><", WIDTH)
    yield Text(head, style="dim")
    yield from map(Text, made)
    if total > len(levels):
        yield Text(f"  and {total - len(levels)} more measured items, in --format json", style="dim")
    yield Text()


def _answers(account: SearchAccount) -> Iterator[Text]:
    if not account.answers:
        return
    rows = [("item", "good", "bad")]
    rows += [(cut(inert(one.title), 56), str(one.good or "-"), str(one.bad or "-")) for one in account.answers]
    head, *made = columns(rows, "<>>", WIDTH)
    yield Text(head, style="dim")
    yield from map(Text, made)
    yield Text()


def _skipped(account: SearchAccount) -> Iterator[Text]:
    reasons: dict[str, list[str]] = {}
    for one in account.skipped:
        reasons.setdefault(one.reason, []).append(cut(one.title, 40))
    for reason, items in list(reasons.items())[:SHOWN]:
        names = ", ".join(inert(item) for item in items[:6]) + (f" and {len(items) - 6} more" if len(items) > 6 else "")
        yield from _wrapped(f"Skipped, never called bad: {names}: {inert(reason)}.")


def _method(account: SearchAccount) -> Iterator[Text]:
    totals, rules = account.totals, account.question.rules
    if account.question.by_hand == "words":
        back = f" Taken back: {totals.undone}." if totals.undone else ""
        wrong = f"one word in {1 / account.question.wrong:.3g} was expected to be wrong"
        yield from _wrapped(f"{_answered(account)}; beforehand {wrong}.{back}")
        return
    text = (
        f"{totals.visits} visits of {totals.builds} items with {totals.runs} runs in {duration(totals.wall)} "
        f"({duration(totals.build_seconds)} of it checkouts and builds), "
        f"margin {100 * math.expm1(rules.margin):.3g} %, seed {rules.seed}."
    )
    if totals.undone:
        text += f" {totals.undone} answers were taken back."
    if account.estimate:
        text += f" At the gate: {account.estimate}."
    if account.blind:
        text += f" {account.blind}"
    if account.drifts:
        text += " The machine's level drifted; the drift was estimated and taken out."
    if account.state not in ("complete", "running"):
        text += f" It ended early: {inert(account.state)}."
    yield from _wrapped(text)


def _answered(account: SearchAccount) -> str:
    return f"{account.totals.visits} answer{'s' * (account.totals.visits != 1)} by hand"


def _change(change: Changed | None) -> str:
    if change is None:
        return "bad by the answers"
    low, high = change.low, change.high
    half = None if low is None or high is None else (high - low) / 2
    return f"{percent(change.value, half)} ({interval(low, high)})"


def _between(first: str, last: str) -> str:
    return inert(first[:12]) if first == last else f"{inert(first[:12])} .. {inert(last[:12])}"


def _wrapped(text: str, style: str = "") -> Iterator[Text]:
    for line in textwrap.wrap(text, WIDTH, subsequent_indent="   ", break_on_hyphens=False):
        yield Text(line, style=style)
