"""The plan of an experiment with the instruction clock: kernels, guests and boots."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.path.plan import PathPlan, PathPlanAnswer
from iodelta.plural import plural
from iodelta.report.stories.story import PLAIN, Detail, Item, Story, section
from iodelta.study.words import inert


def of_path_plan(answer: PathPlanAnswer, detail: Detail = PLAIN) -> Story:
    """Return what would be booted."""
    plan = answer.plan
    boots = plural(len(plan.boots), "boot")
    return Story(
        question=inert(plan.experiment.question),
        answer=f"Plan: {boots}; {_counted(plan)}, no time is measured. Nothing was booted.",
        tables=(),
        sections=(),
        lead=section("Plan", facts(plan)),
    )


def facts(plan: PathPlan) -> Iterator[Item]:
    """Yield what each variant boots, how often, and what is counted."""
    for arm in plan.arms:
        kernel = release(arm.kernel.release, arm.kernel.package)
        yield Item(
            f"{inert(arm.variant)}: boots {kernel}, {arm.memory} MiB",
            label="Variant",
        )
    cells = ", ".join(inert(cell.name) for cell in plan.experiment.cells)
    yield Item(f"{len(plan.experiment.cells)}: {cells}", label="Cells")
    yield Item(
        f"{plural(len(plan.boots), 'boot')} of all cells, two at a time; {_counted(plan)}, no time is measured",
        label="Boots",
    )
    if plan.functions and not plan.sharing:
        yield Item(f"no table of functions: {inert(plan.functions)}", label="Note")


def _counted(plan: PathPlan) -> str:
    if plan.sharing:
        return "cache lines that move between two CPUs are counted"
    return "instructions are counted"


def release(name: str, package: str) -> str:
    """Return a kernel's release, with the package that it is from where that is known."""
    if not package.strip():
        return inert(name)
    return f"{inert(name)} ({inert(package)})"
