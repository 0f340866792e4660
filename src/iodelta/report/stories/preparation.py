"""The preparation of a disk as a story: its answer, its rounds as a picture and a table, and its plan."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from iodelta.errors import pasted
from iodelta.plural import plural
from iodelta.report.stories.sources import system
from iodelta.report.stories.story import (
    PLAIN,
    Cell,
    Detail,
    Item,
    Row,
    Section,
    Story,
    Table,
    section,
)
from iodelta.stats.rounds import RANGE, SLOPE, WINDOW, Window
from iodelta.study.preparation import DiskAccount, PrepareAnswer, RoundSeen
from iodelta.study.words import inert, options_line, percent, quantity, size

DRAWN = 28
"""The last rounds that are drawn."""

HEIGHT = 8
"""Lines of the picture."""

SOURCE = (
    "Steady, after SNIA's Solid State Storage Performance Test Specification 2.0.2: "
    f"the IOPS of {WINDOW} rounds in a row range over no more than {100 * RANGE:.0f} % of their average, "
    f"and their line of least squares changes by no more than {100 * SLOPE:.0f} % of it."
)


def of_preparation(account: PrepareAnswer, detail: Detail = PLAIN) -> Story:
    """Return a folder of a preparation alone."""
    disk = account.disk
    return Story(
        question=f"Is {inert(disk.path)} in a known state?",
        answer=answer(disk),
        tables=tuple(tables(disk)),
        sections=(
            *pictures(disk),
            *section("Method", (*steps(disk), *limits(disk)), rest=True),
            *system(account.system),
            *_commands(account, detail.folder),
        ),
        details=f"iodelta report {detail.folder} --verbose",
    )


def _commands(account: PrepareAnswer, folder: str) -> Iterator[Section]:
    """Yield what continues an unfinished preparation, and what makes the same from the beginning; ``folder`` as it is
    pasted.
    """
    destroy = f"--destroy {inert(pasted(account.disk.path))}"
    if account.disk.state != "steady":
        command = f"iodelta prepare {folder} {destroy}"
        yield from section("To go on", (command,), commands=True)
    command = f"iodelta prepare {folder}/experiment.toml {destroy}"
    yield from section("To do it again", (command,), commands=True)


def answer(disk: DiskAccount) -> str:
    """Return whether it is steady, in a sentence or two."""
    made, window = plural(len(disk.rounds), "round"), disk.window
    if disk.state == "running":
        return f"Not finished: {plural(len(disk.rounds), 'complete round')} so far."
    if window is None:
        return (
            f"Not steady: {made}, and no {WINDOW} in a row without a pause of the disk."
        )
    if disk.state == "steady":
        first, last = window.first + 1, window.last + 1
        return f"Steady after {made}: rounds {first} to {last} {_window(window)}."
    text = f"Not steady after {made}: the last {WINDOW} {_window(window)}"
    if not window.steady:
        return f"{text}."
    share, least = (
        100 * part / disk.size for part in (disk.before_window, disk.least_written)
    )
    return (
        f"{text}, "
        f"but complete rounds had written only {share:.0f} % of the size before them, and up to {least:.0f} % a "
        "disk may still be as fast as a new one. Give longer rounds, or more of them."
    )


def _window(window: Window) -> str:
    return (
        f"range over {100 * window.range:.1f} % of their average of {quantity(window.average, 'IOPS')} IOPS "
        f"({100 * RANGE:.0f} % allowed) and change by {percent(window.slope)} ({100 * SLOPE:.0f} % allowed)"
    )


def tables(disk: DiskAccount) -> Iterator[Table]:
    """Yield the rounds, each with the window that ends with it."""
    if not disk.rounds:
        return
    chosen = _chosen(disk)
    rows, written = [], 0
    for round_seen in disk.rounds:
        written += round_seen.written
        spread, slope = "-", "-"
        if round_seen.window:
            spread = f"{100 * round_seen.window.range:.1f} %"
            slope = percent(round_seen.window.slope)
        cells = (
            quantity(round_seen.iops, "IOPS"),
            spread,
            slope,
            f"{100 * written / disk.size:.0f} %" if disk.size else "-",
            _word(round_seen, chosen),
        )
        rows.append(Row(str(round_seen.round), tuple(map(Cell, cells))))
    title = f"Rounds of {disk.prepare.round:g} s on {inert(disk.path)}"
    yield Table(
        title=title,
        first="round",
        heads=("IOPS", "range of five", "slope", "size written", "window"),
        rows=tuple(rows),
    )


def _chosen(disk: DiskAccount) -> range:
    """Numbers of the rounds in the window that decides."""
    if disk.window is None:
        return range(0)
    return range(disk.window.first + 1, disk.window.last + 2)


def _word(seen: RoundSeen, chosen: range) -> str:
    if seen.rested:
        return "after a rest"
    return "*" if seen.round in chosen else ""


def pictures(disk: DiskAccount) -> tuple[Section, ...]:
    """IOPS round by round, the window that decides marked."""
    lines = tuple(
        drawing([round_seen.iops for round_seen in disk.rounds], _chosen(disk))
    )
    drawn = section("Round by round", map(Item, lines), drawing=True)
    if not drawn:
        return ()
    how = ["IOPS from 0 up, a column for each round."]
    if _chosen(disk):
        how.append("The five most recent rounds that were checked are marked *.")
    left_out = len(disk.rounds) - DRAWN
    if left_out == 1:
        how.append("The first round is left out.")
    elif left_out > 1:
        how.append(f"The first {left_out} rounds are left out.")
    return (*drawn, *section("How to read it", (" ".join(how),)))


def drawing(values: Sequence[float], chosen: range) -> Iterator[str]:
    """Lines of characters, all equally long: a column of ``o``, or ``*`` in the window, up to each value."""
    shown = list(enumerate(values, 1))[-DRAWN:]
    top = max((value for _, value in shown), default=0.0)
    if top <= 0:
        return
    columns = []
    for number, value in shown:
        height = max(1, round(HEIGHT * value / top))
        mark = "*" if number in chosen else "o"
        columns.append(f"{mark * height:<{HEIGHT}}")
    for line in range(HEIGHT, 0, -1):
        labelled = line in (HEIGHT, HEIGHT // 2)
        head = quantity(top * line / HEIGHT, "IOPS", 3) if labelled else ""
        marks = (column[line - 1] for column in columns)
        yield f"{head:>9} | {' '.join(marks)} "
    yield f"{'round':>9}   {_axis([number for number, _ in shown])}"


def _axis(numbers: Sequence[int]) -> str:
    """Return the first number and every fifth, two characters each: of a number of three digits the last two."""
    texts = [
        str(number) if number % 5 == 0 or number == numbers[0] else ""
        for number in numbers
    ]
    return "".join(f"{text[-2:]:<2}" for text in texts)


def steps(disk: DiskAccount) -> Iterator[str]:
    """Yield the steps of the preparation, in order."""
    ended = f" to {_moment(disk.ended)}" if disk.ended else ", not ended yet"
    yield f"Time: from {_moment(disk.begun)}{ended}."
    if disk.prepare.purge == "none":
        yield "No purge: effects of earlier writes may remain."
    else:
        done = "was discarded" if disk.purged else "was to be discarded"
        yield f"Purge: everything on it {done} by {disk.prepare.purge}{_unknown(disk, 'purge')}."
    if disk.to_fill:
        done = f"{size(disk.filled)} of {size(disk.to_fill)} written in sequence, in blocks of 128 KiB"
        yield f"Fill: {done}{_unknown(disk, 'fill')}."
    yield f"Rounds: {options_line(disk.workload)}; {disk.prepare.round:g} s each, {disk.prepare.limit} at most."


def limits(disk: DiskAccount) -> Iterator[str]:
    """Yield what steady means here."""
    yield SOURCE
    wrote = "No round is complete"
    if disk.rounds:
        wrote = f"All complete rounds wrote {size(disk.overwritten)}"
    yield (
        f"The {WINDOW} rounds count only once others have written {size(disk.least_written)} before them: until its "
        f"spare area is used up, a disk writes as fast as a new one. {wrote}{_unknown(disk, 'round')}."
    )


STEPS = {"purge": "purge", "fill": "part", "round": "round"}
"""Nouns of the kinds of steps."""


def _unknown(disk: DiskAccount, kind: str) -> str:
    """That steps without an end were killed, or still run: it is not known how much they did."""
    count = disk.unfinished.get(kind, 0)
    if not count:
        return ""
    steps = plural(count, STEPS[kind])
    return f"; not known: what {steps} without an end did (killed, or still running)"


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
