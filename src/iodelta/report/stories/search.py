"""A search as a story: the answer and its proofs, levels and posterior, what it rests on, how to do it again."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Iterator, Sequence

from iodelta.bisect.question import Question
from iodelta.plural import listed, plural
from iodelta.report.stories.sources import system
from iodelta.report.stories.story import (
    PLAIN,
    Cell,
    Detail,
    Row,
    Section,
    Story,
    Table,
    section,
)
from iodelta.study.ends import beyond_typical
from iodelta.study.posterior import Bar
from iodelta.study.search import Changed, Found, Left, Level, Proof, SearchAccount
from iodelta.study.words import duration, inert, interval, measured, percent, quantity

COLUMNS = 56
ROWS = 7
"""Size of the plot of levels in characters."""

LONG = 40
"""Characters of a skipped item's title that are shown."""

SHOWN = 14
"""Measured items listed; of more, those nearest to a culprit."""

NAMED = 6
"""Items named that were skipped for the same reason."""


def of_search(account: SearchAccount, detail: Detail = PLAIN) -> Story:
    """Return a search of a line, by measured values or by a person's words."""
    facts = account.system or (
        (("kernel", inert(account.machine)),) if account.machine else ()
    )
    return Story(
        question="",
        answer=headline(account),
        lead=tuple(_lead(account, detail.folder)),
        tables=(*_parts(account), *_levels(account), *_answers(account)),
        sections=(
            *section("Stalled now and then", _stalled(account)),
            *section("Skipped, never called bad", _skipped(account)),
            *section("Method", _method(account), rest=True),
            *system(facts),
            *section("Next", _next(account)),
            *section("To do it again", _again(account, detail.folder), commands=True),
        ),
        details=f"iodelta report {detail.folder} --verbose",
    )


def _lead(account: SearchAccount, folder: str) -> Iterator[Section]:
    if account.scatter:
        yield from section("Runs do not repeat", (f"{inert(account.scatter)}.",))
    for number, culprit in enumerate(account.culprits, 1):
        yield from section(f"{number}. {inert(culprit.title)}", _culprit(culprit))
    yield from section(
        "Suspected",
        (
            f"{_between(suspect.first, suspect.last)}: {inert(suspect.text)}."
            for suspect in account.suspects
        ),
    )
    gaps = (
        f"Between {inert(gap.first[:12])} and {inert(gap.last[:12])}: {inert(gap.text)}."
        for gap in account.gaps
    )
    yield from section("Between the ends", gaps, rest=True)
    left = account.left
    if left and (left.between or (left.possible and left.rest)):
        yield from section("Not explained", (unexplained(account, left, folder),))
    yield from section(
        f"{account.question.metric}, change against good over the line",
        plot(account),
        drawing=True,
        rest=True,
    )


def headline(account: SearchAccount) -> str:
    """Return the answer in a sentence."""
    candidates = f"{account.items - 1} candidates"
    if account.culprits:
        return _named(account, candidates)
    if account.refused:
        beyond = beyond_typical(account.ends) if account.ends else ""
        more = f" {beyond[0].upper()}{beyond[1:]}." if beyond else ""
        return f"No culprit: {inert(account.refused)}.{more}"
    if account.question.by_hand:
        return f"Not finished: {candidates}, {_answered(account)}."
    runs = plural(account.totals.runs, "run")
    return f"Not finished ({inert(account.state)}): {candidates}, {runs} so far."


def _named(account: SearchAccount, candidates: str) -> str:
    """Return the culprits of a search that has some."""
    first, *others = account.culprits
    if account.question.by_hand == "words":
        return f"One culprit of {candidates}, by your answers: {inert(first.title)}."
    named = "; ".join(
        f"{inert(culprit.title)}: {account.question.metric} {change_of(culprit.change)}"
        for culprit in account.culprits
    )
    count = f"{len(account.culprits)} culprits" if others else "One culprit"
    return f"{count} of {candidates}: {named}."


def _culprit(culprit: Found) -> Iterator[str]:
    """Yield how large a culprit is, how sure that is, and its second proof."""
    if len(culprit.suspects) > 1:
        others = ", ".join(map(inert, culprit.suspects[:-1]))
        yield f"or one of {len(culprit.suspects) - 1} before it that could not be tested: {others}"
    for merge in culprit.via:
        yield f"brought in by {inert(merge)}"
    if culprit.change is None:
        yield by_words(culprit)
        return
    p = "one run each, exactly repeatable"
    if culprit.p:
        p = f"one-sided p {culprit.p:.2g}"
    yield (
        f"{change_of(culprit.change)} against {inert(culprit.parent)}, in "
        f"{plural(culprit.pairs, 'fresh pair')} of runs ({p}); "
        f"posterior {probability(culprit.probability)} before that test; after {plural(culprit.runs, 'visit')}."
    )
    if culprit.revert:
        yield proof(culprit.revert)


def probability(value: float) -> str:
    """``97.3 %``; what is not certain is never 100 %."""
    return "over 99.9 %" if 0.9995 <= value < 1.0 else f"{100 * value:.1f} %"


def _parts(account: SearchAccount) -> Iterator[Table]:
    """From good to bad: the culprits, and what they leave."""
    left = account.left
    if left is None:
        return
    named = [
        (f"{number}. {inert(culprit.title)}", culprit.change)
        for number, culprit in enumerate(account.culprits, 1)
    ]
    rows = []
    for title, change in (
        *named,
        ("not named", left.change),
        ("from good to bad", left.whole),
    ):
        if change is not None:
            size, _, between = change_of(change).partition(" (")
            rows.append(Row(title, (Cell(size), Cell(between.rstrip(")")))))
    yield Table(
        title="Parts of the difference, which multiply",
        first="part",
        heads=("change", "interval"),
        rows=tuple(rows),
    )


def unexplained(account: SearchAccount, left: Left, folder: str) -> str:
    """That a change is left which no culprit accounts for, where it lies, and how to find it."""
    more = "no single step of the margin was found in it"
    if left.rest:
        more = f"`iodelta bisect {folder} --rest {left.rest:g}` looks for it"
    if left.between:
        where = " and ".join(
            f"between {inert(first)} and {inert(last)}" for first, last in left.between
        )
        return f"Another {change_of(left.change)} remains unexplained {where}; {more}."
    worst = left.change.low
    if account.question.better == "lower":
        worst = left.change.high
    return f"Another {percent(worst)} is not excluded; {more}."


def by_words(culprit: Found) -> str:
    """Return what a culprit that answers by hand name rests on."""
    wrong = culprit.contradicting
    against = "no answer contradicts"
    if wrong:
        against = f"{wrong} of {culprit.runs} answers contradict{'s' * (wrong == 1)}"
    return (
        f"Good up to {inert(culprit.parent)}, by {culprit.runs} answers given by hand; {against} it. "
        f"Probability of this place {probability(culprit.probability)}. No number was measured."
    )


def proof(revert: Proof) -> str:
    """Return the second proof in a sentence."""
    title = inert(revert.title)
    if revert.change is None:
        return f"Second proof: {title} could not be measured: {inert(revert.reason)}."
    size = change_of(revert.change)
    pairs = plural(revert.pairs, "fresh pair")
    if revert.p:
        pairs += f", one-sided p {revert.p:.2g}"
    if revert.shown:
        return (
            f"Second proof: at the bad end it makes {size}, against {title} ({pairs})."
        )
    return (
        f"No second proof: at the bad end it makes {size}, against {title} ({pairs}); a later change may "
        "do the same, or undo it."
    )


def plot(account: SearchAccount) -> Iterator[str]:
    """Levels of measured items over the line, and below it the posterior of each culprit."""
    points = _points(account)
    if not points:
        return
    last = account.items - 1
    values = [value for _, value in points]
    low, high = min(values), max(values)
    span = max(high - low, 1e-9)
    grid = [[" "] * (COLUMNS + 1) for _ in range(ROWS)]
    for place, value in points:
        row = round((high - value) / span * (ROWS - 1))
        grid[row][round(place / last * COLUMNS)] = "o"
    places = _places(span)
    for number, marks in enumerate(grid):
        value = high - span * number / (ROWS - 1)
        yield f"{value:>+9.{places}f} % |{''.join(marks).rstrip()}"
    yield f"{'':>12}+{'-' * (COLUMNS + 1)}"
    several = len(account.posterior) > 1
    for number, bars in enumerate(account.posterior, 1):
        name = f"posterior {number}" if several else "posterior"
        yield f"{name:>11} |{''.join(map(_shade, _columns(bars, last))).rstrip()}"
    axis = f"place on the line      {last}"
    yield f"{'':>13}{'0':<{COLUMNS // 2}}{axis:>{COLUMNS // 2 + 1}}"
    if account.posterior:
        yield "  posterior: # over 50 %, = over 10 %, - over 1 %, . over 0.1 %"


def _points(account: SearchAccount) -> list[tuple[int, float]]:
    """Place and change in percent of each measured item, the good end last; empty where only ends were measured."""
    points = [
        (level.place, 100 * level.change.value)
        for level in account.levels
        if level.change and level.place > 0
    ]
    return [*points, (0, 0.0)] if points else []


def _places(span: float) -> int:
    """Decimals of the labels of an axis over so many percent."""
    if span >= 20:
        return 0
    return 1 if span >= 1 else 2


def _columns(bars: Sequence[Bar], last: int) -> list[float]:
    """Return the posterior over the columns of the plot."""
    columns = [0.0] * (COLUMNS + 1)
    for bar in bars:
        first, end = round(bar.first / last * COLUMNS), round(bar.last / last * COLUMNS)
        for column in range(first, end + 1):
            columns[column] += bar.share / (end - first + 1)
    return columns


def _shade(share: float) -> str:
    if share > 0.5:
        return "#"
    if share > 0.1:
        return "="
    if share > 0.01:
        return "-"
    if share > 0.001:
        return "."
    return " "


def _levels(account: SearchAccount) -> Iterator[Table]:
    """Yield the measured items; of many, the ends and those nearest to a culprit."""
    if not account.levels:
        return
    levels = _nearest(account) if len(account.levels) > SHOWN else account.levels
    title = f"{account.question.metric} of measured items"
    if len(levels) < len(account.levels):
        title += f" ({len(levels)} of {len(account.levels)}; --format csv lists all)"
    rows = tuple(_level(level, account.question.unit) for level in levels)
    yield Table(
        title=title,
        first="item",
        heads=("runs", "median", "change", "interval"),
        rows=rows,
        rest=bool(account.culprits),
    )


def _nearest(account: SearchAccount) -> list[Level]:
    last = account.items - 1
    culprits = {culprit.item for culprit in account.culprits}
    places = [level.place for level in account.levels if level.item in culprits]
    centres = places or [last // 2]

    def distance(level: Level) -> tuple[bool, int]:
        nearest = min(abs(level.place - centre) for centre in centres)
        return level.place not in (0, last), nearest

    nearest_levels = sorted(account.levels, key=distance)[:SHOWN]
    return sorted(nearest_levels, key=lambda level: level.place)


def _level(level: Level, unit: str) -> Row:
    change, bounds = "-", "-"
    if level.change:
        low, high = level.change.low, level.change.high
        change = measured(level.change.value, low, high)
        bounds = interval(low, high)
    if level.place == 0:
        bounds = "good"
    texts = (str(level.runs), quantity(level.value, unit), change, bounds)
    return Row(inert(level.title), tuple(map(Cell, texts)))


def _answers(account: SearchAccount) -> Iterator[Table]:
    rows = [
        Row(
            inert(answer.title),
            (Cell(str(answer.good or "-")), Cell(str(answer.bad or "-"))),
        )
        for answer in account.answers
    ]
    if rows:
        yield Table(
            title="Answers by hand",
            first="item",
            heads=("good", "bad"),
            rows=tuple(rows),
            words=False,
        )


def _stalled(account: SearchAccount) -> Iterator[str]:
    """Yield which items stalled and how often, and what that means for the answer."""
    for item in account.stalled[:SHOWN]:
        yield f"{inert(_brief(item.title))}: {item.stalled} of {plural(item.runs, 'run')} far worse than its others."
    if len(account.stalled) > SHOWN:
        yield f"{len(account.stalled) - SHOWN} more; --format json lists them."
    if account.stalled:
        yield (
            "The search compares typical runs: an item that stalls only now and then counts as good. "
            "`iodelta run` also tests the total change."
        )


def _skipped(account: SearchAccount) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for skipped in account.skipped:
        title = inert(_brief(skipped.title))
        reasons.setdefault(skipped.reason, []).append(title)
    for reason, titles in list(reasons.items())[:SHOWN]:
        yield f"{listed(titles, NAMED)}: {inert(reason)}."


def _brief(title: str) -> str:
    if len(title) <= LONG:
        return title
    return f"{title[: LONG - 1]}~"


def _method(account: SearchAccount) -> Iterator[str]:
    totals, rules = account.totals, account.question.rules
    if account.question.by_hand == "words":
        yield f"{_answered(account)}; one answer in {1 / account.question.wrong:.3g} was expected to be wrong."
        if totals.undone:
            yield f"Taken back: {totals.undone}."
        return
    yield (
        f"{plural(totals.visits, 'visit')} of {plural(totals.builds, 'item')} with "
        f"{plural(totals.runs, 'run')} in {duration(totals.wall)} "
        f"({duration(totals.build_seconds)} of it checkouts and builds), "
        f"margin {100 * math.expm1(rules.margin):.3g} %, seed {rules.seed}."
    )
    if totals.undone:
        yield f"{totals.undone} answers were undone."
    if account.estimate:
        yield f"At the gate: {account.estimate}."
    if account.repeats:
        yield f"{account.repeats}."
    if account.blind:
        yield account.blind
    if account.drifts:
        yield "The machine's level drifted; the drift was estimated and removed."
    if account.state not in ("complete", "running"):
        yield f"It ended early: {inert(account.state)}."


def _next(account: SearchAccount) -> Iterator[str]:
    if account.next:
        yield inert(account.next)


def _again(account: SearchAccount, folder: str) -> Iterator[str]:
    """Yield the commands of the search, and how to go on or to answer."""
    continued = {
        "": "",
        "words": " good (or bad, skip, undo)",
        "numbers": " --value NUMBER (or skip, undo)",
    }
    words = continued[account.question.by_hand] if account.next else " --show"
    yield f"iodelta bisect {folder}{words}"
    yield from steps(account.question)


def steps(question: Question) -> Iterator[str]:
    """Yield the commands that prepared and measured an item, as lines of a shell."""
    commands = question.steps
    for name, words in (
        ("build", commands.build),
        ("put under test", commands.put),
        ("measure", commands.measure),
    ):
        if words:
            yield f"# {name}"
            yield inert(shlex.join(words))
    if question.experiment:
        yield "# measure: the cell of this experiment file"
        for line in filter(None, question.experiment.strip().splitlines()):
            yield f"#   {inert(line)}"
    if question.words:
        yield "# all of it"
        yield inert(shlex.join(question.words))


def _answered(account: SearchAccount) -> str:
    return f"{plural(account.totals.visits, 'answer')} by hand"


def change_of(change: Changed | None) -> str:
    """Return a change with its interval; that of a person's words has no number."""
    if change is None:
        return "bad by the answers"
    low, high = change.low, change.high
    return f"{measured(change.value, low, high)} ({interval(low, high)})"


def _between(first: str, last: str) -> str:
    if first == last:
        return inert(first[:12])
    return f"{inert(first[:12])} .. {inert(last[:12])}"


WIDTH = 72


def mail(account: SearchAccount) -> str:
    """Return one mail for every culprit; a text that says why there is none otherwise."""
    if not account.culprits:
        return f"No culprit was confirmed, so there is no author to write to: {account.refused or account.state}.\n"
    mails = ["\n".join(_lines(account, culprit)) for culprit in account.culprits]
    return "\n\n".join(mails) + "\n"


def _lines(account: SearchAccount, culprit: Found) -> Iterator[str]:
    change, question = culprit.change, account.question
    if change is None:
        yield from _by_words(account, culprit)
        return
    size = measured(change.value, change.low, change.high)
    yield from _greeting(account, culprit, size)
    yield ""
    yield from _suspects(culprit, "could not be built, booted or measured")
    pairs = (
        "pair of runs, exactly repeatable"
        if not culprit.p
        else f"fresh randomised pairs of runs, p = {culprit.p:.2g}"
    )
    yield from _wrapped(
        f"Against its parent {inert(culprit.parent)}, in {culprit.pairs} {pairs}:"
    )
    yield ""
    sure = "95 % interval" if culprit.p else "by the exactness given"
    yield f"  {question.metric}: {size} ({interval(change.low, change.high)}, {sure})"
    yield ""
    if culprit.revert:
        yield from _wrapped(proof(culprit.revert))
        yield ""
    values = {level.title: level for level in account.levels}
    for title in (culprit.parent, culprit.title):
        level = values.get(title)
        if level:
            runs = plural(level.runs, "run")
            yield f"  {inert(title)[:46]:<46} {quantity(level.value, question.unit):>12} {runs:>9}"
    yield ""
    yield from _others(account, culprit)
    yield "Reproducer:"
    yield ""
    yield from _reproducer(account)
    yield ""
    yield from _environment(account)
    yield ""
    totals = account.totals
    yield from _wrapped(
        f"{plural(totals.visits, 'visit')} of {plural(totals.builds, 'commit')}; margin "
        f"{100 * math.expm1(question.rules.margin):.3g} %; "
        f"posterior {probability(culprit.probability)} before the test against the parent."
    )
    yield from _trailer(account, culprit)


def _greeting(account: SearchAccount, culprit: Found, size: str) -> Iterator[str]:
    """To whom it goes, its subject, and how the culprit was found."""
    ends = f"{inert(account.good)} and {inert(account.bad)}"
    came = f"a slow-down between {ends} came with"
    if culprit.commit is not None:
        yield f"To: {inert(culprit.commit.author)} <{inert(culprit.commit.email)}>"
        came = f"bisecting a slow-down between {ends} ({plural(account.items - 1, 'commit')}) ended at"
    yield f"Subject: [REGRESSION] {account.question.metric} {size} since {inert(culprit.title)}"
    yield ""
    yield "Hi,"
    yield ""
    yield from _wrapped(came)


def _others(account: SearchAccount, culprit: Found) -> Iterator[str]:
    """Yield what else a reader must know: what counting does not see, and other culprits."""
    if account.blind:
        yield from _wrapped(account.blind)
        yield ""
    others = [other for other in account.culprits if other.item != culprit.item]
    if others:
        named = "; ".join(
            f"{inert(other.title)} {percent(other.change.value)}"
            for other in others
            if other.change
        )
        yield from _wrapped(f"This is not the only one between the two: {named}.")
        yield ""


def _environment(account: SearchAccount) -> Iterator[str]:
    yield "Environment:"
    yield ""
    unknown = ("kernel", inert(account.machine))
    if account.question.by_hand:
        unknown = ("machine", "measured by hand; add what it is")
    for name, value in account.system or (unknown,):
        yield from textwrap.wrap(
            f"{name}: {value}",
            WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )


def _by_words(account: SearchAccount, culprit: Found) -> Iterator[str]:
    """Yield a culprit that a person's words name: no change of a number is known, nor the machine."""
    if culprit.commit is not None:
        yield f"To: {inert(culprit.commit.author)} <{inert(culprit.commit.email)}>"
    yield f"Subject: [REGRESSION] since {inert(culprit.title)}"
    yield ""
    yield "Hi,"
    yield ""
    yield from _wrapped(
        f"a search between {inert(account.good)} and {inert(account.bad)} ended at"
    )
    yield ""
    yield from _suspects(culprit, "could not be tested")
    yield from _wrapped(by_words(culprit))
    yield ""
    yield "Environment: answered by hand; add the machine, the workload and what was seen."
    yield from _trailer(account, culprit)


def _suspects(culprit: Found, why: str) -> Iterator[str]:
    """Yield the culprit with those before it that ``why`` says could not be told from it, and the merges that brought
    it.
    """
    for title in culprit.suspects:
        yield f"  {inert(title)}"
    for merge in culprit.via:
        yield f"  (merged by {inert(merge)})"
    yield ""
    if len(culprit.suspects) > 1:
        yield from _wrapped(f"(any of these: the others {why})")
        yield ""


def _trailer(account: SearchAccount, culprit: Found) -> Iterator[str]:
    """Yield what regzbot, the kernel's tracker of regressions, reads; and git's log of the search."""
    if culprit.commit is not None:
        yield ""
        yield f"#regzbot introduced: {culprit.item[:12]}"
        yield ""
        yield from account.git_log.rstrip("\n").splitlines()


def _reproducer(account: SearchAccount) -> Iterator[str]:
    yield from (f"  {line}" for line in steps(account.question))


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text, WIDTH, break_on_hyphens=False, break_long_words=False
    )
