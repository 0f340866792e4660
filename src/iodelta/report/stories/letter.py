"""The mail to a culprit's author, as kernel lists expect it: plain text, 72 columns, facts before opinions."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from iodelta.plural import plural
from iodelta.report.stories.search import by_words, probability, proof, steps
from iodelta.study.search import Found, SearchAccount
from iodelta.study.words import inert, interval, measured, percent, quantity

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
