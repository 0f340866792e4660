"""Published regression reports as experiments that make what they measure, ready to be run anywhere."""

from __future__ import annotations

from iodelta.part import Command, Document, Kind, Part, Remake

_HERE = "iodelta.parts.scenarios"

PART = Part(
    name="scenarios",
    commands=(
        Command(
            "scenario",
            "Replay published regression reports as ready-made experiments.",
            "cause",
            f"{_HERE}.command:command",
        ),
    ),
    kinds=(
        Kind(
            f"{_HERE}.answers:ScenarioPlanAnswer",
            f"{_HERE}.answers:of_rehearsal",
            "plan.plan.schedule.rounds | plan.plan.seed",
        ),
    ),
    documents=(
        Document(
            "iodelta.scenario-list/1",
            f"{_HERE}.answers:ScenarioListAnswer",
            "iodelta scenario list",
        ),
        Document(
            "iodelta.scenario-plan/1",
            f"{_HERE}.answers:ScenarioPlanAnswer",
            "iodelta scenario run --dry-run",
        ),
        Document(
            "iodelta.scenario/1",
            f"{_HERE}.answers:ScenarioAnswer",
            "iodelta scenario show",
        ),
    ),
    remakes=(Remake(f"{_HERE}.model:line_of", f"{_HERE}.catalogue:remade"),),
)
