"""An attribution on a terminal: which patch costs what, alone and together, in a sentence and a table. 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from iodelta.errors import pasted
from iodelta.report.formats.columns import columns, cut
from iodelta.study.attribution import AttributionAccount
from iodelta.study.search import Changed
from iodelta.study.words import inert, interval, percent, quantity

WIDTH = 80
SHOWN = 16
"""Groups listed."""


def show(console: Console, found: AttributionAccount) -> None:
    """Print all of it."""
    for line in lines(found):
        console.print(line, soft_wrap=True, highlight=False)


def lines(found: AttributionAccount) -> Iterator[Text]:
    """The account, line by line, none wider than 80 columns."""
    metric, unit = found.question.metric, found.question.unit
    if found.whole:
        yield from _wrapped(f"All patches together: {metric} {_told(found.whole)}.", style="bold")
    yield from _wrapped(f"{found.answer[:1].upper()}{inert(found.answer[1:])}.", style="bold")
    yield Text()
    yield from _patches(found)
    yield from _parts(found)
    for one in found.combinations:
        value = quantity(one.value, unit) if one.value is not None else inert(one.reason) or "not run"
        yield from _wrapped(f"{inert(one.title):<40} {one.runs:>3} runs  {value}")
    yield Text()
    if found.inestimable:
        yield from _wrapped(f"The combinations that could be run do not tell: {'; '.join(found.inestimable)}.")
    yield from _wrapped(
        f"{found.blocks} blocks of {len(found.combinations)} combinations, in random order inside each (seed "
        f"{found.question.rules.seed}). {found.model}. p after Holm over all of a table."
    )
    if found.state != "complete":
        yield from _wrapped(f"Not finished ({inert(found.state)}). Next: {inert(found.next)}.")
    yield Text(f"Folder: {inert(pasted(found.folder))}")


def _patches(found: AttributionAccount) -> Iterator[Text]:
    """What each does alone, on top of the others, and on average."""
    names: dict[int, str] = {}  # by the row before which each stands
    rows: list[Row] = []
    for n, name in enumerate(found.patches):
        names[len(rows)] = cut(f"{n + 1}. {inert(name)}", WIDTH)
        shown = [one[n] for one in (found.alone, found.on_top) if one]
        for one in shown:
            if one is not None and (one is shown[0] or one.over != getattr(shown[0], "over", None)):
                rows.append(_row(f"     {one.name}", one.change, one.p, one.real))
        if found.shares and (share := found.shares[n]) and len(found.patches) > 1:
            rows.append(_row("     share (Shapley)", share, None, False))
    yield from _table("patch", rows, names)


def _parts(found: AttributionAccount) -> Iterator[Text]:
    """What groups do beyond smaller ones; of many only the largest."""
    groups = [part for part in found.parts if len(part.patches) > 1]
    if not groups:
        return
    rows = [_row(" + ".join(map(str, part.patches)), part.change, part.p, part.real) for part in groups[:SHOWN]]
    if len(groups) > SHOWN:
        rest = f"  and {len(groups) - SHOWN} smaller ones, in --format json"
        yield from _table("together, beyond what fewer of them do", rows, {len(rows): rest})
        return
    yield from _table("together, beyond what fewer of them do", rows, {})


Row = tuple[tuple[str, str, str, str], bool]
"""Label, change, interval and p, and whether the answer names it."""


def _table(head: str, rows: Sequence[Row], between: Mapping[int, str]) -> Iterator[Text]:
    """Rows below a heading, with lines of text ``between`` them: before the row of that number."""
    top, *made = columns([(head, "change", "interval", ""), *(cells for cells, _ in rows)], "<><<", WIDTH)
    yield Text(top, style="dim")
    for at, (line, (_, real)) in enumerate(zip(made, rows, strict=True)):
        if at in between:
            yield Text(between[at])
        yield Text(line, style="" if real else "dim")
    if len(rows) in between:
        yield Text(between[len(rows)], style="dim")
    yield Text()


def _row(label: str, change: Changed, p: float | None, real: bool) -> Row:
    told = (percent(change.value, _half(change)), interval(change.low, change.high), "" if p is None else f"p {p:.2g}")
    return (cut(label, 44), *told), real


def _told(change: Changed) -> str:
    return f"{percent(change.value, _half(change))} ({interval(change.low, change.high)})"


def _half(change: Changed) -> float | None:
    return None if change.low is None or change.high is None else (change.high - change.low) / 2


def _wrapped(text: str, style: str = "") -> Iterator[Text]:
    for line in textwrap.wrap(text, WIDTH, subsequent_indent="   ", break_on_hyphens=False):
        yield Text(line, style=style)
