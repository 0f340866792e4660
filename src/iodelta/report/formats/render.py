"""The forms of a report by name: an account, a comparison or an import in, what is printed out.

Formats are byte-identical for the same folder and version: nothing here looks at the clock, the machine or a terminal.
"""

from __future__ import annotations

from iodelta.report.stories.story import Story
from iodelta.study.comparison import Comparison
from iodelta.study.experiment import Account
from iodelta.study.runs import Shown

TEXTS = ("mail", "markdown", "csv", "json")
"""Forms that are the same text wherever they are printed; ``console`` is what a terminal gets."""

Told = Account | Comparison | Shown


def rendered(told: Told, format_: str) -> bytes:
    """``told`` in one of ``TEXTS``. Raises KeyError for another name."""
    return {"mail": _mail, "markdown": _markdown, "csv": _csv, "json": _json}[format_](told)


def _mail(told: Told) -> bytes:
    from iodelta.report.formats.mail import mail

    return mail(_story(told)).encode("ascii")


def _markdown(told: Told) -> bytes:
    from iodelta.report.formats.markdown import markdown

    return markdown(_story(told)).encode("utf-8", "backslashreplace")


def _csv(told: Told) -> bytes:
    from iodelta.report.formats import sheet

    if isinstance(told, Account):
        text = sheet.of_account(told)
    elif isinstance(told, Comparison):
        text = sheet.of_comparison(told)
    else:
        text = sheet.of_shown(told)
    return text.encode("utf-8", "backslashreplace")


def _json(told: Told) -> bytes:
    from iodelta.report.derived import document
    from iodelta.report.documents import written

    return written(document(told) if isinstance(told, Account) else told)


def _story(told: Told) -> Story:
    from iodelta.report.stories import comparison, experiment, shown

    if isinstance(told, Account):
        return experiment.of_account(told)
    return comparison.of_comparison(told) if isinstance(told, Comparison) else shown.of_shown(told)
