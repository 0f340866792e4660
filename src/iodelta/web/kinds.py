"""Results of several experiments: searches for a culprit, and fleets."""

from __future__ import annotations

from pathlib import Path

from iodelta.bisect.driver import attributed, judged, searched
from iodelta.bisect.log import SearchFolder
from iodelta.bisect.question import Patches
from iodelta.fleet.measured import hosts_in
from iodelta.machine import LocalMachine
from iodelta.report.formats.charts.changes import charts_of_fleet
from iodelta.report.formats.charts.model import Charts
from iodelta.study.attribution import AttributionAccount
from iodelta.study.attribution import account as of_patches
from iodelta.study.by_words import account as of_words
from iodelta.study.fleet import FleetAccount, fleet_account
from iodelta.study.search import SearchAccount
from iodelta.study.searched import account as of_search


def search_in(path: Path) -> SearchAccount | AttributionAccount:
    """Return what a search, or an attribution, knows so far. Raises RequestError, MeasureError."""
    folder, machine = SearchFolder.open(path), LocalMachine()
    question = folder.question()
    if isinstance(question.subject, Patches):
        return of_patches(
            folder, question, attributed(machine, question, folder.answers())
        )
    if question.by_hand == "words":
        return of_words(folder, question, judged(machine, question, folder.answers()))
    return of_search(folder, question, searched(machine, question, folder.answers()))


def fleet_in(path: Path, again: str) -> tuple[FleetAccount, Charts]:
    """Return what the hosts of a fleet say together. Raises RequestError where none was measured, MeasureError."""
    measured, left = hosts_in((str(path),))
    account = fleet_account(measured, (again,), left)
    return account, charts_of_fleet(account)
