"""CSV for spreadsheets and scripts: exact numbers. Which module makes the rows of which result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from iodelta.report.formats.audit_sheet import of_audit, of_rules
from iodelta.report.formats.comparison_sheet import of_comparison, of_shown
from iodelta.report.formats.fleet_sheet import of_fleet
from iodelta.report.formats.path_sheet import of_path
from iodelta.report.formats.plan_sheet import (
    of_calibrated,
    of_disk_plan,
    of_path_plan,
    of_plan,
    of_rehearsal,
    of_search_plan,
)
from iodelta.report.formats.policy_sheet import (
    of_calibration,
    of_explanations,
    of_mirror,
    of_policies,
    of_simulation,
)
from iodelta.report.formats.reproduction_sheet import (
    of_fleet_reproduction,
    of_reproduction,
)
from iodelta.report.formats.round_sheet import of_preparation
from iodelta.report.formats.search_sheet import of_attribution, of_search
from iodelta.report.formats.verdict_sheet import of_account

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Result


def csv_of(result: Result) -> str:
    """Any result as rows."""
    rows: str = SHEETS[type(result).__name__](result)
    return rows


SHEETS: dict[str, Callable[[Any], str]] = {
    "Account": of_account,
    "AttributionAccount": of_attribution,
    "Audited": of_audit,
    "Calibration": of_calibration,
    "CalibrationAnswer": of_calibrated,
    "Comparison": of_comparison,
    "DiskPlanAnswer": of_disk_plan,
    "FleetAccount": of_fleet,
    "FleetReproduced": of_fleet_reproduction,
    "ExplainAnswer": of_explanations,
    "MirrorAnswer": of_mirror,
    "PathAccount": of_path,
    "PathPlanAnswer": of_path_plan,
    "PlanAnswer": of_plan,
    "PrepareAnswer": of_preparation,
    "PolicyListAnswer": of_policies,
    "Reproduced": of_reproduction,
    "RulesAnswer": of_rules,
    "ScenarioPlanAnswer": of_rehearsal,
    "SearchAccount": of_search,
    "SearchPlanAnswer": of_search_plan,
    "Shown": of_shown,
    "SimulationAnswer": of_simulation,
}
"""Struct of a result -> its rows."""
