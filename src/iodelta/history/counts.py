"""Counts of I/Os as nights: one of an experiment, or one of each kernel in a row."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator

import msgspec

from iodelta.errors import RequestError
from iodelta.experiment import Subject
from iodelta.history.points import Key, Night, Point, apart, epoch_of
from iodelta.jobfile import canonical
from iodelta.lab.folder import Booted, Folder
from iodelta.path.judge import PathAccount, judge
from iodelta.path.metrics import LEAST, METRICS
from iodelta.path.plan import CERTAIN, PathPlan
from iodelta.path.tallies import WHOLE, Tally
from iodelta.stats.changepoints import CANDIDATE

COUNTED = "counted"
GUEST = "guest"
"""The machine of all counts: the same on every host."""


def nights_of(folder: Folder) -> tuple[Night, ...]:
    """The nights in a folder of counts. Raises RequestError where nothing may be said of it."""
    account, plan = judge(folder), folder.read_plan(PathPlan)
    if not account.counts and not account.tallies:
        raise RequestError(
            "there is no count that repeats exactly", place=str(folder.path)
        )
    begun = min(event.at for event in folder.events() if isinstance(event, Booted))
    facts = {"qemu.version": plan.qemu, "fio.version": plan.fio}
    sha = hashlib.sha256(folder.read("journal.jsonl")).hexdigest()
    whole = Night(
        identifier=plan.identifier,
        sha=sha,
        t=begun,
        machine=GUEST,
        epoch=epoch_of(facts),
        facts=facts,
        subject=plan.experiment.subject,
        folder=str(folder.path.resolve()),
        state=account.state,
        points=apart([*_points(plan, account)]),
    )
    return _row(whole, account) if plan.row else (whole,)


def _row(whole: Night, account: PathAccount) -> tuple[Night, ...]:
    """Return a night for each kernel, a second apart, the oldest first."""
    nights = []
    for number, side in enumerate(account.sides):
        own = [point for point in whole.points if point.variant == side.variant]
        # The kernels are the builds of one series: none of their names is the name of the series.
        replace = msgspec.structs.replace
        points = tuple(
            replace(point, variant="", key=replace(point.key, twin="")) for point in own
        )
        subject = Subject(whole.subject.repo, "", side.package or side.release)
        replaced = {
            "identifier": f"{whole.identifier}-{number}",
            "t": whole.t + number,
            "subject": subject,
        }
        nights.append(msgspec.structs.replace(whole, points=points, **replaced))
    return tuple(night for night in nights if night.points)


def _points(plan: PathPlan, account: PathAccount) -> Iterator[Point]:
    for count in account.counts:
        counted = Tally(
            count.cell,
            count.variant,
            f"{count.kind}.instructions",
            count.median,
            count.layouts,
        )
        yield _point(plan, account, counted, CERTAIN)
    for tally in account.tallies:
        yield _point(plan, account, tally, WHOLE)


def _point(plan: PathPlan, account: PathAccount, tally: Tally, certain: float) -> Point:
    """An exact count has no error of its own. What another layout of memory changes is no change of the path: with
    this error, a step as large as that, or as ``certain``, is just not a candidate."""
    experiment = plan.experiment
    cell = next(
        cell_here for cell_here in experiment.cells if cell_here.name == tally.cell
    )
    variant = experiment.variant(tally.variant)
    options = {
        canonical(name): value for name, value in (*cell.options, *variant.options)
    }
    condition = experiment.condition(cell.condition)
    knobs = {name: value for name, value in variant.knobs.items() if name != "kernel"}
    metric = METRICS[tally.metric]
    key = Key(
        machine=GUEST,
        options=(("tool", "fio"), *sorted(options.items())),
        condition=tuple(sorted(condition.knobs.items())),
        knobs=tuple(sorted(knobs.items())),
        role=variant.role,
        metric=metric.name,
        target=account.target,
    )
    # A history compares by ratios, and an I/O may have none of a class.
    value = max(tally.value, LEAST)
    error = max(certain, tally.spread) / value / (CANDIDATE * math.sqrt(2))
    return Point(
        key,
        tally.cell,
        tally.variant,
        "lower",
        metric.unit,
        math.log(value),
        error,
        1 + len(tally.layouts),
        0.0,
        flags=(COUNTED,),
    )
