"""Tables at the end of a file without a final line end: the last line, and its last number, may be cut."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Refusal, Run, RunOrRefusal
from iodelta.trial import Finding, Place

_NAME_WORDS = 4
"""Most words of a row's name."""


def last_with_text(lines: Sequence[Line]) -> int | None:
    """Return the index of the last line with text; None without one."""
    return next(
        (at for at in range(len(lines) - 1, -1, -1) if lines[at].text.strip()), None
    )


def torn(
    items: list[RunOrRefusal], lines: Sequence[Line], last: int, end: int, file: str
) -> tuple[list[RunOrRefusal], int]:
    """Return the items of a table, with a note or refusal if its last line may be cut; and the index of its last line.

    ``last`` is the index of the table's last line, ``end`` that of the line within which the file ends.
    """
    if last == end:
        return _with_note(items, lines[end]), last
    if last + 1 < end or not _may_begin_row(lines[end].text):
        return items, last
    words = "the file ends within this line below a table: if it begins a row, that row is cut; not read"
    return [*items, Refusal(Place(file, lines[end].number), words)], end


def _may_begin_row(text: str) -> bool:
    """Return whether a line may be the beginning of a row's name; a sentence below a table is not."""
    return len(text.split()) <= _NAME_WORDS and not text.rstrip().endswith(
        (".", "!", "?")
    )


def _with_note(items: list[RunOrRefusal], last: Line) -> list[RunOrRefusal]:
    """Return the items of a table, with a note that its ``last`` line may be cut."""
    runs = [at for at, each in enumerate(items) if isinstance(each, Run)]
    cut = any(
        isinstance(each, Refusal) and each.place.line == last.number for each in items
    )
    if not runs or cut:
        return items
    run = items[runs[-1]]
    assert isinstance(run, Run)
    where = f"{run.place.file}:{last.number}"
    words = "the last line has no end: the file may be cut, and the last number of this line with it"
    finding = Finding(
        "read.no-end",
        "note",
        where,
        words,
        "compare it with the original, or end the line",
    )
    items[runs[-1]] = msgspec.structs.replace(run, findings=(*run.findings, finding))
    return items
