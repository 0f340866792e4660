"""The story of any result: which module writes the story of which kind."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, TypeAlias

from iodelta.report.stories.story import PLAIN, Detail, Story

if TYPE_CHECKING:  # a quick command loads the kind that it prints, and no other
    from iodelta.path.judge import PathAccount
    from iodelta.path.plan import PathPlanAnswer
    from iodelta.policy.answers import (
        ExplainAnswer,
        MirrorAnswer,
        PolicyListAnswer,
        SimulationAnswer,
    )
    from iodelta.policy.calibrate import Calibration
    from iodelta.report.answers import CalibrationAnswer
    from iodelta.study.attribution import AttributionAccount
    from iodelta.study.audited import Audited, RulesAnswer
    from iodelta.study.comparison import Comparison
    from iodelta.study.experiment import Account
    from iodelta.study.fleet import FleetAccount
    from iodelta.study.fleet_reproduction import FleetReproduced
    from iodelta.study.planned import PlanAnswer
    from iodelta.study.preparation import DiskPlanAnswer, PrepareAnswer
    from iodelta.study.rehearsed import ScenarioPlanAnswer
    from iodelta.study.reproduction import Reproduced
    from iodelta.study.rows import Shown
    from iodelta.study.search import SearchAccount, SearchPlanAnswer

    Searched: TypeAlias = AttributionAccount | SearchAccount
    Hosts: TypeAlias = FleetAccount | FleetReproduced | Reproduced
    Foreign: TypeAlias = Audited | Comparison | RulesAnswer | Shown
    Policies: TypeAlias = (
        Calibration | ExplainAnswer | MirrorAnswer | PolicyListAnswer | SimulationAnswer
    )
    Planned: TypeAlias = (
        DiskPlanAnswer
        | PathPlanAnswer
        | PlanAnswer
        | ScenarioPlanAnswer
        | SearchPlanAnswer
    )
    Result: TypeAlias = (
        Account
        | CalibrationAnswer
        | Foreign
        | Hosts
        | PathAccount
        | Planned
        | Policies
        | PrepareAnswer
        | Searched
    )

STORIES = {
    "Account": ("experiment", "of_account"),
    "Audited": ("audit", "of_audit"),
    "AttributionAccount": ("attribution", "of_attribution"),
    "Calibration": ("policy", "of_calibration"),
    "CalibrationAnswer": ("calibration", "of_calibrated"),
    "Comparison": ("comparison", "of_comparison"),
    "DiskPlanAnswer": ("disk_plan", "of_disk_plan"),
    "FleetAccount": ("fleet", "of_fleet"),
    "FleetReproduced": ("fleet_reproduction", "of_fleet_reproduction"),
    "ExplainAnswer": ("policy", "of_explanations"),
    "MirrorAnswer": ("policy", "of_mirror"),
    "PathAccount": ("path", "of_path"),
    "PathPlanAnswer": ("path_plan", "of_path_plan"),
    "PlanAnswer": ("plan", "of_plan"),
    "PrepareAnswer": ("preparation", "of_preparation"),
    "PolicyListAnswer": ("policy", "of_policies"),
    "Reproduced": ("reproduction", "of_reproduction"),
    "RulesAnswer": ("audit", "of_rules"),
    "ScenarioPlanAnswer": ("rehearsal", "of_rehearsal"),
    "SearchAccount": ("search", "of_search"),
    "SearchPlanAnswer": ("search_plan", "of_search_plan"),
    "SimulationAnswer": ("policy", "of_simulation"),
    "Shown": ("shown", "of_shown"),
}
"""Struct of a result -> module of this package, and the function that makes a story of it."""


def story_of(result: Result, detail: Detail = PLAIN) -> Story:
    """The story of any result."""
    module, function = STORIES[type(result).__name__]
    story: Story = getattr(
        importlib.import_module(f"iodelta.report.stories.{module}"), function
    )(result, detail)
    return story
