"""Plans and calibrations as CSV: the trials, boots, steps or items in their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iodelta.report.formats.spreadsheet import csv_text

if TYPE_CHECKING:
    from iodelta.lab.plan import Plan
    from iodelta.path.plan import PathPlanAnswer
    from iodelta.report.stories.calibration import CalibrationAnswer
    from iodelta.study.planned import PlanAnswer
    from iodelta.study.preparation import DiskPlanAnswer
    from iodelta.study.search import SearchPlanAnswer

TRIALS = ("round", "cell", "block", "variant", "baseline", "margin", "seed", "schema")
"""Of an experiment: every trial that the schedule holds, in its order; it may end before."""


def of_plan(answer: PlanAnswer) -> str:
    """Return one row per trial."""
    return csv_text(TRIALS, trials_of(answer.plan, "iodelta.plan.csv/1"))


def trials_of(plan: Plan, schema: str) -> Iterator[tuple[object, ...]]:
    constant = (plan.experiment.baseline, plan.experiment.margin, plan.seed, schema)
    for number, round_ in enumerate(plan.schedule.rounds, 1):
        for slot in round_:
            for variant in slot.order:
                yield (number, slot.cell, slot.block + 1, variant, *constant)


STEPS = ("disk", "step", "bytes", "seconds", "schema")
"""Of a preparation; seconds of the rounds are the most that they take."""


def of_disk_plan(answer: DiskPlanAnswer) -> str:
    """Return one row per step."""
    survey, schema = answer.survey, "iodelta.prepare-plan.csv/1"
    purge = answer.plan.question.prepare.purge
    path, cost = survey.target.path, survey.cost
    steps: list[tuple[object, ...]] = [
        (path, f"purge by {purge}", None, None, schema)
    ] * (purge != "none")
    if cost.fill_bytes:
        steps.append((path, "fill", cost.fill_bytes, cost.fill_seconds, schema))
    return csv_text(
        STEPS, [*steps, (path, "rounds", None, cost.rounds_seconds, schema)]
    )


BOOTS = ("boot", "variant", "kernel", "purpose", "seed", "memory_mib", "schema")
"""Of an experiment with the instruction clock."""


def of_path_plan(answer: PathPlanAnswer) -> str:
    """Return one row per boot."""
    plan, rows = answer.plan, []
    for boot in plan.boots:
        arm = plan.arm(boot.variant)
        where = (
            boot.number,
            boot.variant,
            arm.kernel.release,
            boot.purpose,
            boot.seed,
            arm.memory,
        )
        rows.append((*where, "iodelta.path-plan.csv/1"))
    return csv_text(BOOTS, rows)


ITEMS = ("number", "item", "title", "next", "schema")
"""Of a search."""


def of_search_plan(answer: SearchPlanAnswer) -> str:
    """Return one row per item, good first."""
    titles = answer.titles or answer.items
    numbered = enumerate(zip(answer.items, titles, strict=True))
    schema = "iodelta.search-plan.csv/1"
    return csv_text(
        ITEMS,
        [
            (n, item, title, int(title == answer.next), schema)
            for n, (item, title) in numbered
        ],
    )


NOISE = tuple(
    """
    metric unit within between drift pairing ten_minutes hour night comparisons
    alarms bound trials stalled workload disk schema
    """.split()
)
"""Of a calibration of a machine. Noise and changes are fractions."""


def of_calibrated(answer: CalibrationAnswer) -> str:
    """Return one row per metric."""
    calibration = answer.calibration
    counts = (
        calibration.comparisons,
        calibration.alarms,
        answer.bound,
        calibration.trials,
        calibration.stalled,
    )
    constant = (
        *counts,
        calibration.workload,
        calibration.disk,
        "iodelta.calibration.csv/1",
    )
    rows = []
    for metric in calibration.metrics:
        noise = (
            metric.noise.within,
            metric.noise.between,
            metric.noise.drift,
            metric.noise.pairing,
        )
        rows.append(
            (
                metric.metric.name,
                metric.metric.unit,
                *noise,
                metric.ten_minutes,
                metric.hour,
                metric.night,
                *constant,
            )
        )
    return csv_text(NOISE, rows)
