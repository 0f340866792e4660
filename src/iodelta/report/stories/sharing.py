"""Moved cache lines as a part of the story of counted paths: what moves between two CPUs for an I/O, and by whom."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.path.judge import PathAccount
from iodelta.path.moved import SharedLine
from iodelta.path.sharing import SharedCell, SharingShift, summary
from iodelta.plural import plural
from iodelta.report.stories.story import Cell, Detail, Row, Table
from iodelta.study.words import duration, inert

FUNCTIONS = 4
"""Functions that a row names of those that read or write a line."""


TAGS = {
    "shared": " The tags of both CPUs come from one word of their bitmap here, which moves too.",
    "unknown": " Whether the tags of both CPUs come from one word of their bitmap, by chance, is not known here.",
}
"""Where tags come from, if not from words of their own."""


def headline(account: PathAccount) -> str:
    """The answer in a sentence or two."""
    sentences = []
    pairs: dict[tuple[str, str], list[SharingShift]] = {}
    for one in account.sharing.shifts:
        pairs.setdefault((one.against, one.variant), []).append(one)
    for (against, variant), own in pairs.items():
        if account.row and {one.word for one in own} == {"same"}:
            continue
        said = ", ".join(_words(own))
        sentences.append(
            f"{inert(variant)} against {inert(against)}: moved lines {said}."
        )
    return (
        " ".join(sentences)
        or "No step: under every kernel as many lines move as under the one before."
    )


def _words(own: list[SharingShift]) -> Iterator[str]:
    for word in ("more", "fewer", "same", "no verdict"):
        alike = [one for one in own if one.word == word]
        if not alike:
            continue
        changes = sorted(one.change for one in alike if one.change)
        ends = dict.fromkeys(f"{change:+g}" for change in (changes[:1] + changes[-1:]))
        many = f" ({' to '.join(ends)} per I/O)" if ends and word != "same" else ""
        yield f"{word} in {len(alike)} of {plural(len(own), 'cell')}{many}"


def tables(account: PathAccount, detail: Detail) -> Iterator[Table]:
    """What changed, and where ``detail`` asks for it every line."""
    if account.sharing.shifts:
        yield _shifts(account)
    if detail.lines:
        for cell in account.sharing.cells:
            if cell.lines:
                yield _lines(cell)


def _shifts(account: PathAccount) -> Table:
    heads = ("baseline", "variant", "change", "over layouts", "lines")
    several = len(account.sides) > 2
    rows = [
        _shift(one, several=several, row=account.row) for one in account.sharing.shifts
    ]
    title = "Cache lines that move between two CPUs, per I/O (medians)"
    return Table(title=title, first="cell", heads=heads, rows=tuple(rows))


def _shift(one: SharingShift, *, several: bool, row: bool) -> Row:
    values = (one.baseline, one.value)
    texts = [f"{value:g}" if value is not None else "-" for value in values]
    texts.append("-" if one.change is None else f"{one.change:+g}")
    known = one.low is not None and one.high is not None
    texts.append(f"{one.low:+g} .. {one.high:+g}" if known else "-")
    pair = (
        f"{inert(one.against)} to {inert(one.variant)}" if row else inert(one.variant)
    )
    name = inert(one.cell) + (f" [{pair}]" if several or row else "")
    return Row(name, tuple(map(Cell, (*texts, one.word))), inert(one.reason))


def _lines(cell: SharedCell) -> Table:
    title = (
        f"{inert(cell.cell)}, {inert(cell.variant)}: "
        "lines that move between two CPUs, per I/O (means)"
    )
    heads = ("moved", "invalidated", "false share")
    return Table(
        title=title,
        first="line",
        heads=heads,
        rows=tuple(map(_line, cell.lines)),
        words=False,
    )


def _line(line: SharedLine) -> Row:
    false = f"{100 * line.false_share:.0f} %" if line.moved else "-"
    texts = (f"{line.moved:.3f}", f"{line.invalidated:.3f}", false)
    notes = [f"born in {inert(line.born)}"] if line.born else []
    for what, functions in (("written", line.writers), ("read", line.readers)):
        if functions:
            notes.append(f"{what} by {_named(functions)}")
    return Row(_name(line), tuple(map(Cell, texts)), "; ".join(notes))


def _name(line: SharedLine) -> str:
    first, comma, _ = line.name.partition(", ")
    if not first:
        return "(unknown)"
    offset = f"+{line.offset}" if line.offset else ""
    return f"{inert(first)}{offset}{' and others' if comma else ''}"


def _named(functions: tuple[str, ...]) -> str:
    more = len(functions) - FUNCTIONS
    names = ", ".join(map(inert, functions[:FUNCTIONS]))
    if more > 0:
        return f"{names} and {more} more"
    return names


def sentences(account: PathAccount) -> Iterator[str]:
    """What moves for an I/O of every cell, a sentence each."""
    for cell in account.sharing.cells:
        yield f"{inert(cell.cell)}, {inert(cell.variant)}: {inert(summary(cell))}.{TAGS.get(cell.tags, '')}"


def rests_on(account: PathAccount) -> Iterator[str]:
    """What the counts rest on."""
    layouts = max((len(cell.layouts) for cell in account.sharing.cells), default=0)
    check = {
        "identical": "One boot was repeated and gave the same bytes.",
        "different": "One boot was repeated and the bytes differ.",
        "not made": "The boot that must be repeated was not repeated yet.",
    }[account.self_check]
    yield (
        f"{check} {account.boots} of {plural(account.planned, 'boot')} in "
        f"{duration(account.seconds)}, {inert(account.state)}. A change counts beyond what the address layout alone "
        f"does to either side ({plural(layouts, 'more boot')} of each)."
    )
    for one in account.sharing.panics:
        times = "once" if one.times == 1 else f"{one.times} times"
        yield (
            f"Boot {one.boot} ({inert(one.variant)}) panicked {times} before the guest's script began and was made "
            f"again: under qemu's instruction clock a guest of two CPUs sometimes does. raw/{one.boot:06d}.panics.zst "
            "has the consoles."
        )
    yield (
        "Instruction clock (icount shift 0), two CPUs that do synchronous I/O in turn. A line of 64 bytes moves when a "
        "CPU touches it after the other wrote to it; a CPU's write invalidates the other's copy. False share: moves "
        "after which the CPU touched no byte that the other had written. A target is made anew until the tags of the CPUs "
        "come from different words of their bitmap, as they do for most pairs of CPUs."
    )
