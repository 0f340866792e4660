"""``verdict.json``: the account of an experiment with its answer and method, as other programs read it."""

from __future__ import annotations

from pathlib import PurePath

import msgspec

from iodelta.report.stories.statements import method
from iodelta.study.experiment import Account, headline


class Document(msgspec.Struct, frozen=True):
    """``verdict.json``: the account with its answer, versioned."""

    schema: str
    headline: str
    """The answer in a sentence or two, no stronger than the verdicts."""
    account: Account
    method: tuple[str, ...] = ()
    """How it was measured and decided, in sentences."""


def document(account: Account) -> Document:
    """Return what ``verdict.json`` says."""
    # The result does not depend on where the folder is: it stays the same after a move.
    here = msgspec.structs.replace(account, folder=PurePath(account.folder).name)
    return Document(
        "iodelta.verdict/1", headline(account), here, tuple(method(account))
    )
