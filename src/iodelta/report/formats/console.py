"""An experiment on a terminal: one screen with the answer, one table and what to do next; ``verbose`` adds the rest."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from iodelta.errors import pasted
from iodelta.plural import plural
from iodelta.report.formats.pictures import Change, bars, draws
from iodelta.report.formats.table import lines_of, table
from iodelta.report.formats.terminal import WIDTH, sections_lines, width_of
from iodelta.report.stories.advice import (
    failures,
    machine_changed,
    next_step,
    statements,
)
from iodelta.report.stories.experiment import of_account
from iodelta.report.stories.instruments import looked
from iodelta.report.stories.sources import findings
from iodelta.report.stories.statements import (
    all_findings,
    beyond,
    method,
    not_measured,
    open_questions,
    recommendation,
)
from iodelta.report.stories.story import Detail
from iodelta.study.experiment import Account, headline
from iodelta.study.words import duration, inert, wrap

CLOSING = ("System", "To do it again")
"""Sections of the story that close the report."""

PREPARATION = ("Preparation of the disk", "Round by round")
"""Sections before them, where everything is printed."""

ONE_CELL, SEVERAL_CELLS = 12, 24
"""Lines of a first screen at most."""

UNSEALED = "folder.unsealed"


def screen(account: Account, detail: Detail) -> None:
    """Print the account on standard output."""
    show(Console(), account, verbose=detail.whole, again=detail.again)


def show(
    console: Console, account: Account, *, verbose: bool = False, again: str = ""
) -> None:
    """Print the account; ``again`` is the command that repeats a result that is not in a folder."""
    for line in lines(
        account,
        width_of(console),
        verbose=verbose,
        again=again,
        drawn=draws(console.file),
    ):
        console.print(line, soft_wrap=True, highlight=False)


def lines(
    account: Account,
    width: int = WIDTH,
    *,
    verbose: bool = False,
    again: str = "",
    drawn: bool = False,
) -> Iterator[Text]:
    """Yield the account, line by line, none wider than ``width`` but commands, which are to be pasted; ``drawn`` with
    its changes as bars where the screen has room for them."""
    prose = min(width, WIDTH)
    folder = inert(pasted(account.folder))
    if not verbose:
        yield from _first_screen(account, width, again)
        return
    story = of_account(account, Detail(folder=folder, again=again))
    closing = [
        section
        for section in story.sections
        if section.title in (*PREPARATION, *CLOSING)
    ]
    yield from _answer(account, width, whole=True)
    yield from _wrapped(prose, _measured(account))
    if drawn:
        yield from bars(_changes(account), account.plan.rules.margin, width)
    yield Text()
    yield from _details(account, prose)
    yield from sections_lines(closing, prose, whole=True)
    yield Text()
    yield Text(f"Folder: {folder}")


def _first_screen(account: Account, width: int, again: str) -> Iterator[Text]:
    """Yield the answer, one table, how it ended with the next command, and what fits of the rest."""
    prose = min(width, WIDTH)
    answer = list(_answer(account, width, whole=False))
    yield from answer
    ended, command = next_step(account)
    last = list(_wrapped(prose, " ".join(filter(None, (_in_short(account), ended)))))
    last += [Text(f"  {command}")] if command else []
    must = [line for text in failures(account) for line in _wrapped(prose, text)]
    more = list(statements(account))
    limit = ONE_CELL if len(account.plan.experiment.cells) == 1 else SEVERAL_CELLS
    room = limit - len(answer) - len(must) - len(last) - 1
    shown: list[Text] = []
    while more and len(shown) + len(lines := list(_wrapped(prose, more[0]))) <= min(
        room - (len(more) > 1), 3
    ):
        shown += lines
        del more[0]
    rest = f"{plural(len(more), 'more remark')}: iodelta report {inert(pasted(account.folder))} --verbose"
    yield Text()
    yield from must
    yield from shown
    if more and not again:
        yield from _wrapped(prose, rest)
    yield from last


def _in_short(account: Account) -> str:
    """Return how much was measured, and where."""
    counts = sorted(set(account.blocks.values()))
    blocks = (f"{counts[0]} to " if len(counts) > 1 else "") + plural(
        counts[-1], "block"
    )
    of_a_cell = " of a cell" if len(account.plan.experiment.cells) > 1 else ""
    path = account.plan.experiment.target.path
    where = f" on {inert(path.removeprefix('/dev/'))}" if path else ""
    sealing = (
        " Not sealed [folder.unsealed]."
        if UNSEALED in {each.rule for each in account.findings}
        else ""
    )
    return f"{blocks}{of_a_cell} in {duration(account.spent)}{where}.{sealing}"


def _answer(account: Account, width: int, *, whole: bool) -> Iterator[Text]:
    """Question, answer and table, and what was measured."""
    prose = min(width, WIDTH)
    question = account.plan.experiment.question
    if question:
        yield from _wrapped(prose, inert(question), style="bold")
    yield from _wrapped(prose, headline(account), style="bold")
    yield Text()
    yield from table(account, width, whole=whole)


def _changes(account: Account) -> list[Change]:
    """Return the comparisons of the table's rows that have a change, as bars."""
    several = len(account.plan.experiment.variants) > 2
    changes = []
    for line in lines_of(account, whole=False):
        change = line.verdict.change
        if change is not None:
            name = ", ".join(line.names if several else line.names[::2])
            changes.append(
                Change(
                    name=name,
                    change=change.value,
                    low=change.low,
                    high=change.high,
                    word=line.verdict.word,
                )
            )
    return changes


def _measured(account: Account) -> str:
    """Return what was measured and by which rules, in a line."""
    counts = sorted(set(account.blocks.values()))
    blocks = (f"{counts[0]} to " if len(counts) > 1 else "") + plural(
        counts[-1], "block"
    )
    of_a_cell = " of a cell" if len(account.plan.experiment.cells) > 1 else ""
    rules = account.plan.rules
    # This note is always shown: without a seal it is not known whether the numbers were changed afterwards.
    sealing = (
        "; not sealed [folder.unsealed]"
        if UNSEALED in {each.rule for each in account.findings}
        else ""
    )
    return (
        f"{blocks}{of_a_cell}, {plural(account.trials, 'trial')} in "
        f"{duration(account.spent)}; margin {100 * rules.margin:g} %, level {100 * (1 - rules.alpha):g} %{sealing}."
    )


def _details(account: Account, width: int) -> Iterator[Text]:
    """Everything else that is known, in sentences."""
    for sentence in not_measured(account):
        yield from _wrapped(width, sentence)
    yield from _wrapped(width, recommendation(account), style="bold")
    for sentence in (
        *beyond(account),
        *open_questions(account),
        " ".join(method(account, inert(pasted(account.folder)))),
        *looked(account.instruments, account.plan.experiment),
        *machine_changed(account),
        *findings(all_findings(account)),
    ):
        yield from _wrapped(width, sentence)


def _wrapped(width: int, text: str, style: str = "") -> Iterator[Text]:
    yield from (Text(line, style=style) for line in wrap(text, width, "  "))
