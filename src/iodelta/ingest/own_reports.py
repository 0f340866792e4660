"""Refuse reports of iodelta: their numbers are medians, changes and counts of blocks, not results."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iodelta.ingest.cleaning import Line
from iodelta.ingest.model import Refusal
from iodelta.trial import Place

REMEDY = "a report of iodelta: give the folder or the results that it was made from"

_PAGE = b'<meta name="generator" content="iodelta '
_DOCUMENT = re.compile(rb'\s*\{\s*"schema": ?"iodelta\.[a-z-]+/\d')

_MARK = re.compile(
    r"\biodelta\.[a-z-]+\.csv/\d"
    r"|^group,name,kind,runs,rw,bs,"
    r"|\bchange[ \t|]+(?:(?:[\d.]+ % )?interval|[\d.]+ %, all looks)[ \t|]+verdict\b"
    r"|^\W*One run per side: the noise is unknown"
    r"|^\W*(?:\d+ (?:rows?|runs?|trials?) (?:and )?)+checked, "
    r"|^\W*run[ \t|]+IOPS[ \t|]+MiB/s[ \t|]+mean[ \t|]+p50\b",
    re.M,
)
"""The schema in each row of a CSV, and what `report`, `compare`, `show` and `audit` print."""
_BETTER = re.compile(r"\((?:higher|lower) is better\)")
"""The title of a table of several variants; others use it too, so it counts only if the text names iodelta."""


def whole(head: bytes) -> bool:
    """Return whether a file with this beginning is a report of iodelta: a page, or a JSON document."""
    return _PAGE in head or _DOCUMENT.match(head) is not None


def refused(text: str, lines: Sequence[Line], file: str) -> list[Refusal]:
    """Return a refusal if ``text``, the joined ``lines``, contains a table of such a report."""
    match = _MARK.search(text) or (_BETTER.search(text) if "iodelta " in text else None)
    if not match:
        return []
    return [
        Refusal(Place(file, lines[text.count("\n", 0, match.start())].number), REMEDY)
    ]
