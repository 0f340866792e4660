"""The forms of a report by name: a result of any kind in, what is printed out.

Formats are byte-identical for the same folder and version: nothing here looks at the clock, the machine or a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iodelta.part import kind_of, load
from iodelta.report.stories.checks import checks_of
from iodelta.report.stories.kinds import story_of
from iodelta.report.stories.story import PLAIN, Detail

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Result


def rendered(result: Result, format_: str, detail: Detail = PLAIN) -> bytes:
    """``result`` in one of ``TEXTS`` or ``BUILDS``; of those it may have none, which raises RequestError."""
    return (TEXTS | BUILDS)[format_](result, detail)


def _mail(result: Result, detail: Detail) -> bytes:
    """Return the story as a mail, or the letter that a kind of result writes itself."""
    letter = kind_of(result).mail
    if letter:
        text: str = load(letter)(result)
        return text.encode("utf-8", "backslashreplace")
    from iodelta.report.formats.mail import mail

    return mail(story_of(result, detail)).encode("ascii")


def _markdown(result: Result, detail: Detail) -> bytes:
    from iodelta.report.formats.markdown import markdown

    return markdown(story_of(result, detail)).encode("utf-8", "backslashreplace")


def _csv(result: Result, detail: Detail) -> bytes:
    from iodelta.report.formats.spreadsheet import csv_of

    return csv_of(result).encode("utf-8", "backslashreplace")


def _json(result: Result, detail: Detail) -> bytes:
    from iodelta.report.documents import written

    document = kind_of(result).document
    return written(load(document)(result) if document else result)


def _junit(result: Result, detail: Detail) -> bytes:
    from iodelta.report.formats.builds import junit

    return junit(story_of(result, detail).question, checks_of(result)).encode(
        "utf-8", "backslashreplace"
    )


def _ktap(result: Result, detail: Detail) -> bytes:
    from iodelta.report.formats.builds import ktap

    return ktap(story_of(result, detail).question, checks_of(result)).encode(
        "utf-8", "backslashreplace"
    )


def _github(result: Result, detail: Detail) -> bytes:
    from iodelta.report.formats.builds import commands

    return commands(checks_of(result)).encode("utf-8", "backslashreplace")


def _bmf(result: Result, detail: Detail) -> bytes:
    from iodelta.report.formats.builds import bmf

    return bmf(result)


BUILDS = {"junit": _junit, "ktap": _ktap, "github": _github, "bmf": _bmf}
"""Forms for builds, of results that have verdicts, or values."""

TEXTS = {"mail": _mail, "markdown": _markdown, "csv": _csv, "json": _json}
"""Forms of any result, the same text wherever they are printed; terminals get ``console``, and ``html`` has charts."""
