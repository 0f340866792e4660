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


def command_and_verdict(alert: Alert, store: Store) -> tuple[str, Verdict | None]:
    """Return the command that finds the commit, empty where the two nights cannot be read; and the verdict of the last
    experiment with both builds, None without one."""
    return _bisect(alert, store), _verdict(alert)


def _verdict(alert: Alert) -> Verdict | None:
    """Return the verdict of the last experiment with both builds on the alert's cell and metric; None where its folder
    cannot be read."""
    if not alert.experiments:
        return None
    try:
        account = load(Folder.open(Path(alert.experiments[-1].folder)))
    except (RequestError, MeasureError):
        return None
    return verdict_of(
        account.judgement.verdicts, account.plan.experiment.subject.labels
    )


def _bisect(alert: Alert, store: Store) -> str:
    """Return the command that finds the commit; empty where the folders of the two nights cannot be read."""
    if not alert.steps or alert.last_good is None or alert.first_bad is None:
        return ""
    folders = {row["id"]: row["folder"] for row in store.experiments()}
    ends = (alert.last_good, alert.first_bad)
    try:
        good, bad = (
            measured_in(folders[point.experiment], alert.steps[0].variant)
            for point in ends
        )
    except (RequestError, MeasureError):
        return ""
    return bisect_line(alert, good, bad)
