"""The plan: everything that is decided before the first trial, written to the folder and hashed into its journal."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Literal

import msgspec

from iodelta.errors import RequestError
from iodelta.experiment import Cell, Experiment, facts, size_bytes
from iodelta.experiment.command import measured_by
from iodelta.experiment.io_uring import TOOL
from iodelta.experiment.model import Measure
from iodelta.jobfile import canonical
from iodelta.lab.hosts import reach
from iodelta.lab.quality import Quality
from iodelta.lab.schedule import Schedule, make_schedule
from iodelta.lab.superblocks import carry_of, explained, kinds_of
from iodelta.plural import plural
from iodelta.stats.replay import smallest_share
from iodelta.stats.stalls import trials_needed
from iodelta.trial import Finding
from iodelta.verdict import Metric, Rules, metric, metrics_for
from iodelta.verdict.metrics import COMMAND
from iodelta.verdict.rules import LOOKS
from iodelta.workload import io_uring

OVERHEAD = 0.45
"""Seconds that a trial is assumed to take beyond ramp and runtime: fio's own start and end."""

BOOT = 8.0
"""Seconds that a guest is assumed to take to boot and to end."""

REBOOT = 60.0
"""Seconds that a host is assumed to take to reboot into another kernel."""

HEADROOM = 2
"""Cells that are decided early leave their time to the others, so up to this many times a cell's even share of the
budget is planned; when the budget ends first, a last unplanned look spends what alpha is left."""


class Plan(msgspec.Struct, frozen=True):
    """What will be measured, in which order, and by which rules it will be decided. Seconds and bytes."""

    experiment: Experiment
    rules: Rules
    schedule: Schedule
    seed: int
    identifier: str
    """Names this experiment in the undo log and in the environment of every process it starts."""
    trial_seconds: float
    """Expected wall time of one trial."""
    quality: Quality = Quality()
    """When a trial is flagged as disturbed."""
    schema: Literal[1, 2] = 2
    """1: orders were drawn for two blocks at once, a block and its mirror image."""

    @property
    def superblocks(self) -> bool:
        """Return whether every variant of a block has trials that do not count before the one that does."""
        return self.rules.carry == "superblocks"

    @property
    def runs(self) -> int:
        """Trials of one variant in a block, those that do not count among them."""
        if not self.superblocks:
            return 1
        return 1 + self.experiment.design.conditioning

    @property
    def per_block(self) -> int:
        """Trials in one block of a cell."""
        return len(self.experiment.variants) * self.runs

    @property
    def per_round(self) -> int:
        """Trials in one round: a block of every cell."""
        return len(self.experiment.cells) * self.per_block

    @property
    def budget_rounds(self) -> float:
        """Rounds of all cells that the budget pays for."""
        return self.experiment.design.budget / (self.per_round * self.trial_seconds)

    def scheduled(self, rounds: int) -> Schedule:
        """Return the schedule of so many rounds, which begins with the planned one."""
        return make_schedule(
            self.experiment, self.seed, rounds, order=self.rules.order, runs=self.runs
        )

    def by_its_own_order(self) -> Plan:
        """Return the plan with the test that fits its draw: schema 1 drew the orders of two blocks at once, and is
        judged that way."""
        if self.schema > 1 or self.rules.order == "mirrored":
            return self
        return msgspec.structs.replace(
            self, rules=msgspec.structs.replace(self.rules, order="mirrored")
        )


def primary_metrics(experiment: Experiment) -> tuple[Metric, ...]:
    """Return the metrics of the design, else the defaults of every direction. Raises RequestError for an unknown one."""
    if experiment.of_command:
        return tuple(map(_metric_of, measured_by(experiment)))
    if experiment.design.metrics:
        return tuple(metric(name) for name in experiment.design.metrics)
    kinds = dict.fromkeys(chain.from_iterable(map(kinds_of, experiment.cells)))
    # t/io_uring reports rates only; its latencies are in ticks of an unknown clock.
    if experiment.cells[0].option(TOOL):
        return (metric("read.iops"),)
    smallest = min(_block_size(cell) for cell in experiment.cells)
    return metrics_for(kinds, block_size=smallest, syncs=_has_synced_cell(experiment))


def _metric_of(measure: Measure) -> Metric:
    return Metric(f"{COMMAND}.{measure.name}", measure.better, measure.unit)


def _has_synced_cell(experiment: Experiment) -> bool:
    """Return whether a cell makes syncs under every variant: a variant's own fio options replace the cell's."""
    for cell in experiment.cells:
        options = (
            {**dict(cell.options), **dict(variant.options)}
            for variant in experiment.variants
        )
        if "write" in kinds_of(cell) and all(map(_syncs, options)):
            return True
    return False


def _syncs(options: Mapping[str, str | None]) -> bool:
    """Return whether fio syncs while it measures. ``end_fsync`` and ``fsync_on_close`` take effect only after that."""
    given = {canonical(name): value or "" for name, value in options.items()}
    return any(
        given.get(name, "0").strip() not in ("0", "")
        for name in ("fsync", "fdatasync", "sync_file_range")
    )


def _block_size(cell: Cell) -> int:
    text = cell.option("bs") or cell.option("blocksize") or "4k"
    try:
        return size_bytes(text.split(",")[0])
    except ValueError:
        return 4096


def make_plan(experiment: Experiment) -> Plan:
    """Plan ``experiment``; a seed that it does not give is drawn here and recorded. Raises RequestError."""
    design = experiment.design
    seed = (
        design.seed
        if design.seed is not None
        else random.SystemRandom().getrandbits(31)
    )
    measured = design.trial if experiment.of_command else design.ramp + design.trial
    if experiment.cells[0].option(TOOL):
        measured = io_uring.seconds(design.ramp, design.trial)
    trial_seconds = measured + design.settle + OVERHEAD
    if experiment.boots:  # two runs in each of the first
        trial_seconds += boot_seconds(experiment) + measured + OVERHEAD
    metrics = primary_metrics(experiment)
    carry = carry_of(experiment)
    comparisons = len(experiment.cells) * (len(experiment.variants) - 1)
    runs = 1 + design.conditioning if carry == "superblocks" else 1
    block = len(experiment.variants) * runs
    if 0 < design.budget < block * measured and not experiment.boots:
        needed = math.ceil(LOOKS[0] * len(experiment.cells) * block * trial_seconds)
        raise RequestError(
            f"a budget of {design.budget:g} s is shorter than one block: {block} trials of {measured:g} s",
            place="--budget",
            remedy=f"use --budget {needed}s at least, or a shorter --trial",
        )
    share = design.budget / (
        len(experiment.cells) * len(experiment.variants) * runs * trial_seconds
    )
    rounds = max(1, min(design.blocks, int(HEADROOM * share)))
    rules = Rules.for_blocks(
        rounds,
        metrics,
        comparisons=comparisons,
        margin=experiment.margin,
        alpha=1 - design.level,
        family=design.family or None,
        seed=seed,
        stalls=design.stalls,
        carry=carry,
    )
    identifier = f"{random.SystemRandom().getrandbits(64):016x}"
    schedule = make_schedule(experiment, seed, rules.max_blocks, runs=runs)
    return Plan(experiment, rules, schedule, seed, identifier, trial_seconds)


def boot_seconds(experiment: Experiment) -> float:
    """Seconds of a trial that its boot is assumed to take, before one was timed; 0 where nothing is booted."""
    if not experiment.boots:
        return 0.0
    if not experiment.reboots:
        return BOOT
    return REBOOT / len(experiment.cells) * len(experiment.conditions)


def warnings(plan: Plan, *, used: int = 0, memory: int = 0) -> tuple[Finding, ...]:
    """Warnings before the start: a verdict that is out of reach, trials that measure something else than asked.

    ``used`` and ``memory`` are the bytes of the target and of the machine; 0 where they are not known.
    """
    never = list(_never_equivalent(plan))
    unreachable = plan.rules.reachable(equivalence=not never)
    is_point = unreachable is not None and any(
        variant.role == "reference" for variant in plan.experiment.variants
    )
    if is_point:
        findings, never = [_point_of_history(plan)], []
    else:
        findings = [unreachable] if unreachable else []
    share = int(plan.budget_rounds)
    if (
        not (unreachable and unreachable.severity == "hard")
        and share < plan.rules.looks[0]
    ):
        findings.append(
            Finding(
                "plan.budget",
                "warning",
                "[design] budget",
                f"too short for a verdict: it takes {plan.rules.looks[0]} blocks of every cell, and the budget pays for "
                f"{share}",
                f"use --budget {budget_for(plan, plan.rules.looks[0])}, shorter trials or fewer cells",
            )
        )
    few = reach(plan.experiment, plan.rules, min(plan.rules.max_blocks, max(1, share)))
    if few:
        findings.append(few)
    findings += never
    findings += _facts(plan.experiment, used, memory)
    findings += _uncounted(plan.experiment)
    return tuple(findings)


def _facts(experiment: Experiment, used: int, memory: int) -> Iterator[Finding]:
    """Yield what is known of trials before they run, each fact once with the cells that it is about."""
    cells: dict[facts.Fact, dict[str, None]] = {}
    for cell, _, options in facts.each_trial(experiment):
        for fact in (
            *facts.of_workload(options),
            *facts.of_target(options, 0, used, memory),
        ):
            if not fact.refused:
                cells.setdefault(fact, {})[cell] = None
    for fact, names in cells.items():
        place = f"{len(names)} of {plural(len(experiment.cells), 'cell')}"
        yield Finding(
            fact.rule,
            "warning",
            place,
            fact.what,
            facts.spelled(fact.remedy, as_options=True),
        )


def _point_of_history(plan: Plan) -> Finding:
    """Return a note in place of a warning: a night is short on purpose, because a history decides over many nights."""
    blocks = plural(plan.rules.max_blocks, "block")
    return Finding(
        "verdict.point-of-history",
        "note",
        "rules",
        f"{blocks} of a cell are a point of a history, too few for a verdict of this run alone",
        "`iodelta history` compares nights, and measures more blocks where one stands out",
    )


def _never_equivalent(plan: Plan) -> Iterator[Finding]:
    """Yield a warning when the budget cannot pay for as many trials of a variant as ``equivalent`` needs."""
    needed = trials_needed(plan.rules.stalls)
    trials = trials_of_a_variant(plan)
    if trials >= needed or not plan.experiment.design.budget:
        return
    blocks = -(-needed // len(plan.experiment.cells))
    allowed = next(
        (
            f"{100 * share:g}%"
            for share in (0.15, 0.2, 0.3, 0.5)
            if trials_needed(share) <= trials
        ),
        "",
    )
    other = f", or --stalls {allowed}" if allowed else ""
    more = f" --blocks {blocks}" if plan.rules.max_blocks < blocks else ""
    yield Finding(
        "plan.stalls",
        "warning",
        "--budget",
        f'too short for "equivalent": it takes {plural(needed, "trial")} per variant, and the plan pays for {trials}',
        f"use --budget {budget_for(plan, blocks)}{more}{other}",
    )


def budget_for(plan: Plan, blocks: int) -> str:
    """Return a budget that pays for so many blocks of every cell, as an option has it."""
    seconds = 1.02 * blocks * plan.per_round * plan.trial_seconds
    return f"{math.ceil(seconds)}s" if seconds < 100 else f"{math.ceil(seconds / 60)}m"


def trials_of_a_variant(plan: Plan) -> int:
    """Counted trials of one variant that blocks and budget allow, all cells together."""
    blocks = min(plan.rules.max_blocks, max(1, int(plan.budget_rounds)))
    return blocks * len(plan.experiment.cells)


def smallest_p(plan: Plan) -> float:
    """Return the smallest two-sided p value that the planned blocks can reach; a mean over hosts is always replayed."""
    if len(plan.experiment.machines) < 2:
        return plan.rules.smallest_p
    return 2.0 * smallest_share((plan.rules.looks + plan.rules.extension)[-1])


def carry_over(plan: Plan) -> str:
    """Return how carry-over from trial to trial is handled, for the plan; empty where direct reads are simply tested."""
    return explained(plan.experiment, plan.rules.carry)


def _uncounted(experiment: Experiment) -> Iterator[Finding]:
    design = experiment.design
    whole = io_uring.seconds(design.ramp, design.trial)
    if experiment.cells[0].option(TOOL) and whole > 2 * design.trial:
        text = f"t/io_uring counts {design.trial:g} of {whole} seconds: its first is warm-up, its last is not printed"
        yield Finding(
            "plan.uring-seconds",
            "warning",
            "[design] trial",
            text,
            "a trial of 4s counts two thirds of them",
        )
