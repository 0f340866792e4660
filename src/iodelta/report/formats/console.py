"""An experiment on a terminal: one screen with the answer, one table and what to do next; ``verbose`` adds the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from iodelta.errors import pasted
from iodelta.grouping import grouped
from iodelta.plural import plural
from iodelta.report.formats.pictures import Change, bars, draws
from iodelta.report.formats.terminal import (
    STYLES,
    WIDTH,
    columns,
    cut,
    differs_from,
    sections_lines,
    width_of,
)
from iodelta.report.stories.advice import (
    failures,
    machine_changed,
    next_step,
    statements,
)
from iodelta.report.stories.evidence import apart, too_thin
from iodelta.report.stories.experiment import looked, of_account
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
from iodelta.study.words import (
    duration,
    inert,
    interval,
    measured,
    metric_name,
    quantity,
    wrap,
)
from iodelta.verdict import Verdict

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


def _counted(account: Account) -> tuple[str, str]:
    """Return how many blocks were made, and whether the folder is sealed, which is always said: without a seal it is not
    known whether the numbers were changed afterwards."""
    counts = sorted(set(account.blocks.values()))
    blocks = f"{counts[0]} to " * (len(counts) > 1) + plural(counts[-1], "block")
    blocks += " of a cell" * (len(account.plan.experiment.cells) > 1)
    unsealed = UNSEALED in {finding.rule for finding in account.findings}
    return blocks, "not sealed [folder.unsealed]" * unsealed


def _in_short(account: Account) -> str:
    """Return how much was measured, and where."""
    blocks, sealing = _counted(account)
    path = account.plan.experiment.target.path
    where = f" on {inert(path.removeprefix('/dev/'))}" if path else ""
    sealing = f" {sealing.capitalize()}." if sealing else ""
    return f"{blocks} in {duration(account.spent)}{where}.{sealing}"


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
    blocks, sealing = _counted(account)
    rules = account.plan.rules
    sealing = f"; {sealing}" if sealing else ""
    return (
        f"{blocks}, {plural(account.trials, 'trial')} in {duration(account.spent)}; "
        f"margin {100 * rules.margin:g} %, level {100 * (1 - rules.alpha):g} %{sealing}."
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


VALUES = ">>><<"
"""How baseline, variant, change, interval and verdict are aligned."""

NAMED = 24
"""Columns of a name in a heading."""

CELL, VARIANT, METRIC = range(3)
"""Places of the names of a row."""

CLEARLY = 1.25
"""How many times larger a change is that is shown in place of the first metric's."""

MARK = "*"
"""After a change that is not the ratio of the two values of its row: a line below the table says why."""

FIT = 14
"""Rows that a screen of several cells has room for."""

MOST_ROWS = 12
"""More rows than this are folded to fit one screen."""


class Line(msgspec.Struct, frozen=True):
    """One row: its names, and the verdict that it shows."""

    names: tuple[str, str, str]
    """Of cell, variant and metric."""
    verdict: Verdict
    alike: int = 0
    """Further metrics that this row stands for."""


def lines_of(account: Account, *, whole: bool) -> tuple[Line, ...]:
    """Return all rows in the plan's order; without ``whole`` metrics of a cell that say the same are folded into one
    row where there are too many."""
    verdicts = account.judgement.verdicts
    experiment = account.plan.experiment
    several = len({verdict.metric.kind for verdict in verdicts} - {"cpu"}) > 1
    fold = len(verdicts) > MOST_ROWS and not whole
    rows = []
    for cell, variant in product(experiment.cells, experiment.variants):
        arm = (cell.name, variant.name)
        of_arm = [
            verdict for verdict in verdicts if (verdict.cell, verdict.variant) == arm
        ]
        for shown, alike in _rows(of_arm, fold=fold):
            name = metric_name(shown.metric, with_kind=several)
            if alike:
                name += f" (+{alike})"
            names = (inert(cell.name), inert(variant.name), name)
            rows.append(Line(names, shown, alike))
    if len(rows) <= FIT or whole:
        return tuple(rows)
    # Still too many: a row for each cell and variant, with its most telling word.
    rank = ("regression", "improvement", "inconclusive", "equivalent")
    folded = []
    for own in grouped(rows, lambda line: line.names[:METRIC]).values():
        first = min(own, key=lambda line: rank.index(line.verdict.word))
        alike = sum(1 + line.alike for line in own) - 1
        name = first.names[METRIC].partition(" (+")[0] + (
            f" (+{alike})" if alike else ""
        )
        folded.append(
            Line((first.names[CELL], first.names[VARIANT], name), first.verdict, alike)
        )
    return tuple(folded)


def _rows(verdicts: Sequence[Verdict], *, fold: bool) -> Iterator[tuple[Verdict, int]]:
    """Yield the verdicts to show; with ``fold`` one for each word, and for how many more it stands."""

    def row(verdict: Verdict) -> str:
        return verdict.word if fold else verdict.metric.name

    for alike in grouped(verdicts, row).values():
        rate, largest = alike[0], max(alike, key=_size)
        # The rate stands for its latencies unless one of them changed by clearly more: a worse tail is not hidden.
        shown = largest if _size(largest) > CLEARLY * _size(rate) else rate
        yield shown, len(alike) - 1


def _size(verdict: Verdict) -> float:
    """Return the size of a regression or improvement as a log-ratio, either way; 0 for other words."""
    if verdict.change is None or verdict.word not in ("regression", "improvement"):
        return 0.0
    return abs(math.log1p(max(verdict.change.value, -0.999)))


def table(account: Account, width: int, *, whole: bool) -> Iterator[Text]:
    """Yield the table, none of its lines wider than ``width`` where that can be."""
    rows = lines_of(account, whole=whole)
    if not rows:
        return
    shared, kept = _columns_of(rows)
    title = ", ".join(shared)
    if len(title) > NAMED:
        yield Text(cut(title, width), style="dim")
        title = ""
    heads = _heads(account, rows)
    texts = _texts(title, heads, rows, kept)
    # A cell whose name has no room next to the numbers gets a line of its own above its rows: names are not cut.
    grouped = kept[0] == CELL and len(kept) > 1 and not _fits(texts, width)
    if grouped:
        kept = kept[1:]
        texts = _texts(title, heads, rows, kept)
    made = columns(
        texts,
        "<" * len(kept) + VALUES,
        width,
        indent=2 if grouped else 0,
        fold=len(kept) + 2,
    )
    yield Text(made[0], style="dim")
    yield from _body(rows, made[1:], width, grouped=grouped)
    if any(row.alike for row in rows):
        yield Text(
            "(+n): n more metrics of the cell with the same verdict", style="dim"
        )
    for why, mark in _marks(rows).items():
        yield Text(f"{mark} {why}", style="dim")


def _marks(rows: Sequence[Line]) -> dict[str, str]:
    """Return why changes of the rows are not the ratios of their values, and the mark of each: one more star each."""
    reasons = dict.fromkeys(filter(None, (apart(row.verdict) for row in rows)))
    return {why: MARK * place for place, why in enumerate(reasons, 1)}


def _body(
    rows: Sequence[Line], made: Sequence[str], width: int, *, grouped: bool
) -> Iterator[Text]:
    above = ""
    for row, line in zip(rows, made, strict=True):
        if grouped and row.names[CELL] != above:
            above = row.names[CELL]
            yield Text(cut(above, width))
        word = row.verdict.word
        yield Text(line.removesuffix(word)).append(word, style=STYLES[word])


def _heads(account: Account, rows: Sequence[Line]) -> tuple[str, ...]:
    """Return the headings of the values; the one variant that there is gives its name."""
    variants = {row.names[VARIANT] for row in rows}
    variant = rows[0].names[VARIANT] if len(variants) == 1 else "variant"
    baseline = inert(account.plan.experiment.baseline)
    return (
        cut(baseline, NAMED),
        cut(variant, NAMED),
        "change",
        f"{100 * (1 - account.plan.rules.alpha):g} % interval",
        "verdict",
    )


def _texts(
    title: str, heads: tuple[str, ...], rows: Sequence[Line], kept: Sequence[int]
) -> list[tuple[str, ...]]:
    """Return the heading and all rows as texts; a name that the row above has already is left out."""
    texts = [(title, *("" for _ in kept[1:]), *heads)]
    above: tuple[str, ...] = ()
    marks = _marks(rows)
    for row in rows:
        names = row.names[: kept[-1] + 1]
        same = differs_from(names, above)
        shown = ("" if place < same else names[place] for place in kept)
        texts.append((*shown, *_values(row.verdict, marks)))
        above = names
    return texts


def _fits(texts: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether a table stands side by side without a name being cut."""
    widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    return sum(widths) + len(widths) - 1 <= width


def _columns_of(rows: Sequence[Line]) -> tuple[list[str], list[int]]:
    """Return what all rows have in common, and the names that differ and get a column; there is always one."""
    shared, kept = [], []
    for place in (CELL, VARIANT, METRIC):
        names = {row.names[place] for row in rows}
        if len(names) > 1:
            kept.append(place)
        elif place != VARIANT:  # the one variant heads a column of values
            shared.append(rows[0].names[place])
    return (shared, kept) if kept else (shared[:1], [METRIC])


def _values(verdict: Verdict, marks: Mapping[str, str]) -> tuple[str, ...]:
    change, size, bounds = verdict.change, "-", "-"
    if change is not None:
        size = measured(change.value, change.low, change.high)
        size += marks.get(apart(verdict), "")
        bounds = interval(change.low, change.high)
    elif too_thin(verdict):
        bounds = too_thin(verdict)
    value = quantity(verdict.variant_value, verdict.metric.unit)
    return (
        quantity(verdict.baseline_value, verdict.metric.unit),
        value,
        size,
        bounds,
        verdict.word,
    )
