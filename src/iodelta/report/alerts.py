"""What a report of an alert says beyond the alert: the command that finds its commit, and the last verdict."""

from __future__ import annotations

from pathlib import Path

from iodelta.errors import MeasureError, RequestError
from iodelta.history.answers import Alert
from iodelta.history.confirm import bisect_line, measured_in, verdict_of
from iodelta.history.store import Store
from iodelta.lab.folder import Folder
from iodelta.report.derived import load
from iodelta.verdict import Verdict


def told(found: Alert, store: Store) -> tuple[str, Verdict | None]:
    """The command, empty where there is none; the verdict, where both builds were measured in one experiment."""
    return _bisect(found, store), _verdict(found)


def _verdict(found: Alert) -> Verdict | None:
    """What the last experiment of both builds found in the alert's cell and metric; none where its folder cannot be
    read any more."""
    if not found.experiments:
        return None
    try:
        account = load(Folder.open(Path(found.experiments[-1].folder)))
    except (RequestError, MeasureError):
        return None
    return verdict_of(
        account.judgement.verdicts, account.plan.experiment.subject.labels
    )


def _bisect(found: Alert, store: Store) -> str:
    """The command that finds the commit; empty where the folders of the two nights cannot be read any more."""
    if not found.steps or found.last_good is None or found.first_bad is None:
        return ""
    folders = {row["id"]: row["folder"] for row in store.experiments()}
    ends = (found.last_good, found.first_bad)
    try:
        good, bad = (
            measured_in(folders[one.experiment], found.steps[0].variant) for one in ends
        )
    except (RequestError, MeasureError):
        return ""
    return bisect_line(found, good, bad)
