"""Moved cache lines as a part of the story of counted paths: what moves between two CPUs for an I/O, and by whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from iodelta.grouping import grouped
from iodelta.path.judge import PathAccount, Shift
from iodelta.path.moved import SharedLine
from iodelta.path.sharing import SharedCell, SharingShift, summary
from iodelta.plural import listed, plural
from iodelta.report.stories.story import Cell, Detail, Row, Table
from iodelta.study.words import duration, inert

FUNCTIONS = 4
"""Functions that a row names of those that read or write a line."""

TAGS = {
    "shared": " The tags of both CPUs come from one word of their bitmap here, which moves too.",
    "unknown": " Whether the tags of both CPUs come from one word of their bitmap, by chance, is not known here.",
}
"""Where tags come from, if not from words of their own."""

SELF_CHECK = {
    "identical": "One boot was repeated and gave the same bytes.",
    "different": "One boot was repeated and the bytes differ.",
    "not made": "The boot that must be repeated was not repeated yet.",
}
"""What the repeated boot shows."""

AnyShift = TypeVar("AnyShift", Shift, SharingShift)


def by_pair(shifts: Iterable[AnyShift]) -> dict[tuple[str, str], list[AnyShift]]:
    """Return the shifts of each pair of kernels (the older or the baseline first), in the order in which they come."""
    return grouped(shifts, lambda shift: (shift.against, shift.variant))


def by_kernel(
    account: PathAccount,
    shifts: Iterable[AnyShift],
    what: str,
    words: Callable[[Sequence[AnyShift]], Iterable[str]],
) -> str:
    """Return a sentence for each pair of kernels: ``what`` and the ``words`` of its shifts. Empty in a row without a
    step.
    """
    sentences = []
    for (against, variant), of_pair in by_pair(shifts).items():
        is_step = {shift.word for shift in of_pair} != {"same"}
        if is_step or not account.row:
            changes = ", ".join(words(of_pair))
            sentences.append(
                f"{inert(variant)} against {inert(against)}: {what} {changes}."
            )
    return " ".join(sentences)


def headline(account: PathAccount) -> str:
    """Return the answer in a sentence or two."""
    return (
        by_kernel(account, account.sharing.shifts, "moved lines", _words)
        or "No step: under every kernel as many lines move as under the one before."
    )


def _words(shifts: Sequence[SharingShift]) -> Iterator[str]:
    """In how many cells more, fewer or as many lines move under a kernel."""
    for word in ("more", "fewer", "same", "no verdict"):
        alike = [shift for shift in shifts if shift.word == word]
        if not alike:
            continue
        changes = sorted(shift.change for shift in alike if shift.change)
        ends = dict.fromkeys(f"{change:+g}" for change in (changes[:1] + changes[-1:]))
        many = f" ({' to '.join(ends)} per I/O)" if ends and word != "same" else ""
        yield f"{word} in {len(alike)} of {plural(len(shifts), 'cell')}{many}"


def tables(account: PathAccount, detail: Detail) -> Iterator[Table]:
    """Yield the changes, and every line where ``detail`` asks for it."""
    if account.sharing.shifts:
        yield _shifts(account)
    if detail.lines:
        yield from (_lines(cell) for cell in account.sharing.cells if cell.lines)


def _shifts(account: PathAccount) -> Table:
    heads = ("baseline", "variant", "change", "over layouts", "lines")
    rows = [_shift(shift, account) for shift in account.sharing.shifts]
    title = "Cache lines that move between two CPUs, per I/O (medians)"
    return Table(title=title, first="cell", heads=heads, rows=tuple(rows))


def _shift(shift: SharingShift, account: PathAccount) -> Row:
    name, variant = inert(shift.cell), inert(shift.variant)
    if account.row:
        name += f" [{inert(shift.against)} to {variant}]"
    elif len(account.sides) > 2:
        name += f" [{variant}]"
    bounds = "-"
    if shift.low is not None and shift.high is not None:
        bounds = f"{shift.low:+g} .. {shift.high:+g}"
    texts = (
        _count(shift.baseline),
        _count(shift.value),
        _count(shift.change, "+"),
        bounds,
        shift.word,
    )
    return Row(name, tuple(map(Cell, texts)), inert(shift.reason))


def _count(value: float | None, sign: str = "") -> str:
    """Return a count; ``sign`` is ``+`` for a change."""
    return "-" if value is None else f"{value:{sign}g}"


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
            names = listed(list(map(inert, functions)), FUNCTIONS)
            notes.append(f"{what} by {names}")
    return Row(_name(line), tuple(map(Cell, texts)), "; ".join(notes))


def _name(line: SharedLine) -> str:
    first, comma, _ = line.name.partition(", ")
    if not first:
        return "(unknown)"
    offset = f"+{line.offset}" if line.offset else ""
    return f"{inert(first)}{offset}{' and others' if comma else ''}"


def sentences(account: PathAccount) -> Iterator[str]:
    """Yield what moves for an I/O of every cell, a sentence each."""
    for cell in account.sharing.cells:
        yield f"{inert(cell.cell)}, {inert(cell.variant)}: {inert(summary(cell))}.{TAGS.get(cell.tags, '')}"


def boots(account: PathAccount) -> str:
    """Return what the repeated boot shows, how many boots there were, and how long they took."""
    return (
        f"{SELF_CHECK[account.self_check]} {account.boots} of {plural(account.planned, 'boot')} in "
        f"{duration(account.seconds)}, {inert(account.state)}."
    )


def rests_on(account: PathAccount) -> Iterator[str]:
    """Yield what the counts rely on."""
    layouts = max((len(cell.layouts) for cell in account.sharing.cells), default=0)
    yield (
        f"{boots(account)} A change counts beyond what the address layout alone "
        f"does to either side ({plural(layouts, 'more boot')} of each)."
    )
    for panic in account.sharing.panics:
        times = "once" if panic.times == 1 else f"{panic.times} times"
        yield (
            f"Boot {panic.boot} ({inert(panic.variant)}) panicked {times} before the guest's script began and was "
            "repeated: under qemu's instruction clock a guest of two CPUs sometimes does. "
            f"raw/{panic.boot:06d}.panics.zst has the consoles."
        )
    yield (
        "Instruction clock (icount shift 0), two CPUs that do synchronous I/O in turn. A line of 64 bytes moves when a "
        "CPU touches it after the other wrote to it; a CPU's write invalidates the other's copy. False share: moves "
        "after which the CPU touched no byte that the other had written. A target is recreated until the tags of the CPUs "
        "come from different words of their bitmap, as they do for most pairs of CPUs."
    )
