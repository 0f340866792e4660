"""The forms of a report by name: a result of any kind in, what is printed out.

Formats are byte-identical for the same folder and version: nothing here looks at the clock, the machine or a terminal.
"""

from __future__ import annotations

from iodelta.report.stories.story import Story
from iodelta.study.attribution import AttributionAccount
from iodelta.study.comparison import Comparison
from iodelta.study.experiment import Account
from iodelta.study.runs import Shown
from iodelta.study.search import SearchAccount

TEXTS = ("mail", "markdown", "csv", "json")
"""Forms that are the same text wherever they are printed; ``console`` is what a terminal gets."""

Told = Account | Comparison | Shown | SearchAccount | AttributionAccount


def rendered(told: Told, format_: str) -> bytes:
    """``told`` in one of ``TEXTS``. Raises KeyError for another name."""
    return {"mail": _mail, "markdown": _markdown, "csv": _csv, "json": _json}[format_](told)


def _mail(told: Told) -> bytes:
    """A search is told to the author of each culprit, as their list expects it."""
    from iodelta.report.formats.mail import mail
    from iodelta.report.stories.letter import mail as letter

    if isinstance(told, SearchAccount):
        return letter(told).encode("utf-8", "backslashreplace")
    return mail(story_of(told)).encode("ascii")


def _markdown(told: Told) -> bytes:
    from iodelta.report.formats.markdown import markdown

    return markdown(story_of(told)).encode("utf-8", "backslashreplace")


def _csv(told: Told) -> bytes:
    from iodelta.report.formats import sheet

    if isinstance(told, Account):
        text = sheet.of_account(told)
    elif isinstance(told, Comparison):
        text = sheet.of_comparison(told)
    elif isinstance(told, Shown):
        text = sheet.of_shown(told)
    elif isinstance(told, SearchAccount):
        text = sheet.of_search(told)
    else:
        text = sheet.of_attribution(told)
    return text.encode("utf-8", "backslashreplace")


def _json(told: Told) -> bytes:
    from iodelta.report.derived import document
    from iodelta.report.documents import written

    return written(document(told) if isinstance(told, Account) else told)


def story_of(told: Told, folder: str = "FOLDER") -> Story:
    """Any result as a story; ``folder`` stands in the commands that go on with a search."""
    from iodelta.report.stories import attribution, comparison, experiment, search, shown

    if isinstance(told, Account):
        return experiment.of_account(told)
    if isinstance(told, Comparison):
        return comparison.of_comparison(told)
    if isinstance(told, Shown):
        return shown.of_shown(told)
    if isinstance(told, SearchAccount):
        return search.of_search(told, folder)
    return attribution.of_attribution(told, folder)
