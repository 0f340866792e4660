"""What a scenario would make and measure, before anything of it is made."""

from __future__ import annotations

from typing import Literal

import msgspec

from iodelta.parts.scenarios.model import Need, Scenario
from iodelta.study.planned import PlanAnswer


class ScenarioPlanAnswer(msgspec.Struct, frozen=True):
    """What a scenario would make and measure. Nothing was made or changed to find it out. Bytes."""

    name: str
    makes: str
    """What it would make on the machine, and remove again; empty where it measures what is there already, or makes it
    in a guest."""
    space: int
    """Bytes of data that it may write where it makes things."""
    free: int | None
    """Bytes that are free there; not known of a guest that is not booted yet."""
    home: str
    """Directory in which it makes things; empty where it makes nothing on the machine."""
    missing: tuple[Need, ...]
    """What the machine lacks for it; empty when it can run."""
    plan: PlanAnswer
    """The experiment. Its ``surveys`` are empty where the target has yet to be made."""
    own: bool = False
    """Whether what is measured is the user's own."""
    schema: Literal["iodelta.scenario-plan/1"] = "iodelta.scenario-plan/1"


def rehearsed(
    origin: Scenario,
    plan: PlanAnswer,
    missing: tuple[Need, ...],
    *,
    full: bool,
    home: str = "",
    free: int | None = None,
    own: bool = False,
) -> ScenarioPlanAnswer:
    """Return the answer about a scenario; ``home`` is where it makes things on the machine, empty where it makes none."""
    makes, space = (origin.makes, origin.space[full]) if home else ("", 0)
    return ScenarioPlanAnswer(
        name=origin.name,
        makes=makes,
        space=space,
        free=free,
        home=home,
        missing=missing,
        plan=plan,
        own=own,
    )


def rows_of_rehearsal(answer: ScenarioPlanAnswer) -> str:
    """Return a row for each trial, as CSV."""
    from iodelta.report.formats.plan_sheet import TRIALS, trials_of
    from iodelta.report.formats.spreadsheet import csv_text

    return csv_text(TRIALS, trials_of(answer.plan.plan, "iodelta.scenario-plan.csv/1"))
