"""The forms of a report by name: a result of any kind in, what is printed out.

Formats are byte-identical for the same folder and version: nothing here looks at the clock, the machine or a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iodelta.report.stories.kinds import story_of
from iodelta.report.stories.story import PLAIN, Detail

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Told


def rendered(told: Told, format_: str, detail: Detail = PLAIN) -> bytes:
    """``told`` in one of ``TEXTS``. Raises KeyError for another name."""
    return TEXTS[format_](told, detail)


def _mail(told: Told, detail: Detail) -> bytes:
    """The mail of a search is a letter to the author of each culprit, in the form that kernel lists expect."""
    if type(told).__name__ == "SearchAccount":
        from iodelta.report.stories.letter import mail as letter

        return letter(told).encode("utf-8", "backslashreplace")  # type: ignore[arg-type]
    from iodelta.report.formats.mail import mail

    return mail(story_of(told, detail)).encode("ascii")


def _markdown(told: Told, detail: Detail) -> bytes:
    from iodelta.report.formats.markdown import markdown

    return markdown(story_of(told, detail)).encode("utf-8", "backslashreplace")


def _csv(told: Told, detail: Detail) -> bytes:
    from iodelta.report.formats.sheet import csv_of

    return csv_of(told).encode("utf-8", "backslashreplace")


def _json(told: Told, detail: Detail) -> bytes:
    from iodelta.report.documents import written

    if type(told).__name__ == "Account":
        from iodelta.report.derived import document

        return written(document(told))  # type: ignore[arg-type]
    return written(told)


TEXTS = {"mail": _mail, "markdown": _markdown, "csv": _csv, "json": _json}
"""Forms that are the same text wherever they are printed; ``console`` is what a terminal gets, ``html`` has charts."""
