"""The plan: everything that is decided before the first trial, written to the folder and hashed into its journal."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Literal

import msgspec
from msgspec.structs import replace

from iodelta.errors import RequestError
from iodelta.experiment import (
    Cell,
    Condition,
    Experiment,
    Variant,
    facts,
    io_uring,
    size_bytes,
)
from iodelta.experiment.command import measured_by
from iodelta.experiment.io_uring import TOOL
from iodelta.experiment.model import Measure
from iodelta.jobfile import canonical
from iodelta.lab.quality import Quality
from iodelta.plural import plural
from iodelta.stats.replay import smallest_share
from iodelta.stats.stalls import trials_needed
from iodelta.trial import Finding, Kind
from iodelta.verdict import Metric, Rules, metric, metrics_for
from iodelta.verdict.metrics import COMMAND
from iodelta.verdict.rules import LOOKS, CarryOver


class Slot(msgspec.Struct, frozen=True):
    """One planned block: a cell, its number, and the order of the variants; in a superblock each is there several times
    in a row."""

    cell: str
    block: int
    order: tuple[str, ...]

    def conditioning(self, position: int) -> bool:
        """Return whether the trial at this place does not count: its variant has another one after it."""
        return self.to_come(position) > 0

    def to_come(self, position: int) -> int:
        """Return how many trials its variant has in this block after the one at this place."""
        return self.order[position + 1 :].count(self.order[position])


class Schedule(msgspec.Struct, frozen=True):
    """All rounds; in each, every cell has one block. A decided cell's later slots are left out when it runs."""

    seed: int
    rounds: tuple[tuple[Slot, ...], ...]

    def slots(self) -> Iterator[Slot]:
        """Yield every block in running order."""
        for round_ in self.rounds:
            yield from round_


def variant_orders(
    variants: Sequence[str], count: int, rng: random.Random
) -> list[tuple[str, ...]]:
    """``count`` orders of ``variants``, each a draw by itself that is uniform over the permutations."""
    return [tuple(rng.sample(variants, len(variants))) for _ in range(count)]


def mirrored_orders(
    variants: Sequence[str], count: int, rng: random.Random
) -> list[tuple[str, ...]]:
    """Return the orders of plans of schema 1: ABBA or BAAB for two variants, for more the rows of random cyclic Latin
    squares, each followed by its reverse."""
    mirrored: list[tuple[str, ...]] = []
    names = list(variants)
    while len(mirrored) < count:
        rng.shuffle(names)
        rows = [tuple(names[shift:] + names[:shift]) for shift in range(len(names))]
        if len(names) == 2:
            rows = rows[:1]  # the other is its reverse
        else:
            rng.shuffle(rows)
        for row in rows:
            mirrored += (row, row[::-1])
    return mirrored[:count]


def make_schedule(
    experiment: Experiment,
    seed: int,
    rounds: int,
    *,
    order: Literal["mirrored", "independent"] = "independent",
    runs: int = 1,
) -> Schedule:
    """``rounds`` blocks of every cell, ``runs`` trials of a variant in a row. The same seed gives the same schedule
    everywhere, and a longer one begins with the shorter."""
    variants = [variant.name for variant in experiment.variants]
    orders = {}
    for cell in experiment.cells:
        shared = cell.condition if experiment.reboots else cell.name
        if order == "mirrored":
            drawn = mirrored_orders(variants, rounds, random.Random(f"{seed}/{shared}"))
        else:
            drawn = variant_orders(
                variants, rounds, random.Random(f"{seed}/order/{shared}")
            )
        orders[cell.name] = [in_a_row(one, runs) for one in drawn]
    planned = []
    for block in range(rounds):
        # The cells of a round: conditions in random order, and in each its cells
        rng = random.Random(f"{seed}/{block}")
        conditions = [condition.name for condition in experiment.conditions]
        rng.shuffle(conditions)
        ordered = []
        for condition in conditions:
            of_condition = [
                cell.name for cell in experiment.cells if cell.condition == condition
            ]
            rng.shuffle(of_condition)
            ordered += of_condition
        planned.append(
            tuple(Slot(cell, block, orders[cell][block]) for cell in ordered)
        )
    return Schedule(seed, tuple(planned))


def in_a_row(order: Sequence[str], runs: int) -> tuple[str, ...]:
    """Every variant ``runs`` times in a row: A A B B in the superblock of two."""
    return tuple(chain.from_iterable([name] * runs for name in order))


def repeated(slot: Slot, attempt: int, seed: int) -> Slot:
    """Return the slot for the ``attempt``-th repeat of a spoilt block (0: as planned): a fresh order from the seed."""
    if attempt == 0:
        return slot
    names = sorted(set(slot.order))
    random.Random(f"{seed}/{slot.cell}/{slot.block}/{attempt}").shuffle(names)
    return Slot(slot.cell, slot.block, in_a_row(names, len(slot.order) // len(names)))


def trial_seed(
    seed: int, slot: Slot, attempt: int, variant: str, *, fresh: bool, to_come: int = 0
) -> int:
    """fio's random seed for one trial: its own by default, else one for the whole experiment. ``to_come`` trials of
    its variant follow in the block."""
    if not fresh:
        return random.Random(seed).getrandbits(31)
    part = {0: "", 1: "/conditioning"}.get(to_come, f"/conditioning/{to_come}")
    return random.Random(
        f"{seed}/{slot.cell}/{slot.block}/{attempt}/{variant}{part}"
    ).getrandbits(31)


KINDS: dict[str, tuple[Kind, ...]] = {
    "read": ("read",),
    "randread": ("read",),
    "write": ("write",),
    "randwrite": ("write",),
    "rw": ("read", "write"),
    "readwrite": ("read", "write"),
    "randrw": ("read", "write"),
    "trim": ("trim",),
    "randtrim": ("trim",),
    "trimwrite": ("trim", "write"),
    "randtrimwrite": ("trim", "write"),
}

DROPS = ("1", "3")
"""Values of ``memory.drop_caches`` that empty the page cache."""

TIMES = {1: "once", 2: "twice"}

OFF = '[design] carry-over = "none" turns this off'


def kinds_of(cell: Cell) -> tuple[Kind, ...]:
    """The directions a cell's workload does, from its ``rw``; fio's default is read."""
    return _kinds(cell.option("rw") or cell.option("readwrite"))


def _kinds(rw: str | None) -> tuple[Kind, ...]:
    return KINDS.get((rw or "read").partition(":")[0], ("read",))


def carry_of(experiment: Experiment) -> CarryOver:
    """Return how the experiment handles carry-over: as its design says, else by what its trials leave behind.

    Raises RequestError for superblocks where every trial has a boot of its own.
    """
    asked = experiment.design.carry_over
    if asked == "superblocks" and experiment.boots:
        raise RequestError(
            "superblocks need two trials of a variant in a row, but here every trial has a boot of its own",
            place="[design] carry-over",
            remedy='leave carry-over out, or say carry-over = "tested"',
        )
    if asked:
        return "ignored" if asked == "none" else asked
    if leaves_state(experiment) and not experiment.boots:
        return "superblocks"
    return "tested"


def leaves_state(experiment: Experiment) -> str:
    """Return why a trial may find what the one before it left: the first reason found; empty where none is."""
    for cell in experiment.cells:
        condition = experiment.condition(cell.condition)
        # What a background load leaves, as far as fio's options tell
        options = list(condition.background_fio)
        if condition.background and PurePath(condition.background[0]).name == "fio":
            words = (
                word.lstrip("-").partition("=") for word in condition.background[1:]
            )
            options += [(name, value) for name, _, value in words]
        kinds = chain.from_iterable(
            _kinds(rw) for name, rw in options if name in ("rw", "readwrite")
        )
        written = [kind for kind in kinds if kind != "read"]
        if not written:
            why = ""
        else:
            why = f"its background load {written[0]}s"
        if why:
            return f"{cell.name}: {why}"
        for variant in experiment.variants:
            why = _left_by(cell, condition, variant)
            if why:
                return f"{cell.name}: {why}"
    return ""


def _left_by(cell: Cell, condition: Condition, variant: Variant) -> str:
    """Return what a trial of this workload leaves to the next one; empty for direct reads."""
    if cell.command is not None:
        return "" if cell.command.reset else "what a command leaves behind is not known"
    given = dict((*cell.options, *variant.options))
    done = kinds_of(Cell(cell.name, cell.condition, tuple(given.items())))
    written = [kind for kind in done if kind != "read"]
    if written:
        return f"it {written[0]}s"
    uncached = (
        given.get("direct", "0") in ("1", None)
        or given.get("buffered") == "0"
        or bool(given.get(TOOL))
    )
    if {**condition.knobs, **variant.knobs}.get("memory.drop_caches") in DROPS:
        return ""
    if given.get("ioengine") == "mmap":
        return "it reads through mmap, from the page cache"
    return "" if uncached else "it reads through the page cache"


def explained(experiment: Experiment, carry: CarryOver) -> str:
    """Return what the plan says of carry-over; empty where direct reads are simply tested."""
    if carry == "superblocks":
        before = experiment.design.conditioning
        price = "twice" if before == 1 else f"{before + 1} times"
        often = TIMES.get(before, f"{before} times")
        return f"superblocks, {price} the trials: each variant runs {often} uncounted before its counted trial; {OFF}"
    if carry == "ignored":
        return 'ignored ([design] carry-over = "none"): carry-over from trial to trial is part of the change'
    why = leaves_state(experiment)
    if why and experiment.boots:
        return "tested; no superblocks, as every trial has a boot of its own"
    if not why:
        return ""
    return f'tested only ([design] carry-over = "tested"), although {why}'


ENOUGH = 2.0
"""Hosts are few where a change must be this many times as sure as on one machine."""


def host_of(experiment: Experiment, block: int) -> str:
    """Name of the machine that makes a block; empty for this one.

    Blocks go to hosts in pairs: older plans drew the orders of two blocks at once, and each host was to see both. Every
    block now has a draw of its own, but a folder must continue as it began.
    """
    names = experiment.machines
    if not names:
        return ""
    return names[block // 2 % len(names)]


def reach(experiment: Experiment, rules: Rules, blocks: int) -> Finding | None:
    """None when ``blocks`` over these hosts can give a verdict; else a finding with the reason and what it takes."""
    if len(experiment.machines) < 2:
        return None
    # Imported here: plans for one host do not need it.
    from iodelta.stats.hosts import FEWEST_BLOCKS, smallest_t

    counted = _counted(experiment, blocks, FEWEST_BLOCKS)
    if counted < 2:
        needed = next(
            n for n in range(1, 10**6) if _counted(experiment, n, FEWEST_BLOCKS) > 1
        )
        return Finding(
            "verdict.few-host-blocks",
            "hard",
            "machine",
            f"no verdict is possible: a host counts from its {FEWEST_BLOCKS}th block, and "
            f"{plural(blocks, 'block')} over "
            f"{plural(len(experiment.machines), 'host')} let {counted} of them count; a mean over hosts needs two",
            f"plan for at least {plural(needed, 'block')} per cell: a larger budget, shorter trials or fewer hosts",
        )
    level = rules.spendable / 2
    t, limit = smallest_t(counted, level), smallest_t(10**6, level)
    if t <= ENOUGH * limit:
        return None
    needed = next(n for n in range(2, 1000) if smallest_t(n, level) <= ENOUGH * limit)
    spread = math.log1p(rules.margin) * math.sqrt(blocks) / t
    return Finding(
        "verdict.few-hosts",
        "warning",
        "machine",
        f"{plural(counted, 'host')} hardly ever give a verdict: their mean change must be {t:.0f} "
        "standard errors from 0 (on one "
        f"machine {limit:.1f}), so {plural(blocks, 'block')} settle {100 * rules.margin:g} % only where "
        "they spread by less than "
        f"{100 * spread:.1g} % and all hosts change alike",
        f"name at least {plural(needed, 'host')}, or ask about one host at a time",
    )


def _counted(experiment: Experiment, blocks: int, fewest: int) -> int:
    """Hosts that make at least so many of the first ``blocks`` blocks."""
    made = [host_of(experiment, block) for block in range(blocks)]
    return sum(made.count(name) >= fewest for name in experiment.machines)


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
        return replace(self, rules=replace(self.rules, order="mirrored"))


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
    rules = Rules.for_blocks(
        max(1, min(design.blocks, int(HEADROOM * share))),
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
        # A note in place of a warning: a night is short on purpose, because a history decides over many nights
        blocks = plural(plan.rules.max_blocks, "block")
        findings, never = (
            [
                Finding(
                    "verdict.point-of-history",
                    "note",
                    "rules",
                    f"{blocks} of a cell are a point of a history, too few for a verdict of this run alone",
                    "`iodelta history` compares nights, and measures more blocks where one stands out",
                )
            ],
            [],
        )
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
        yield Finding(
            fact.rule,
            "warning",
            f"{len(names)} of {plural(len(experiment.cells), 'cell')}",
            fact.what,
            facts.spelled(fact.remedy, as_options=True),
        )


def _never_equivalent(plan: Plan) -> Iterator[Finding]:
    """Yield a warning when the budget cannot pay for as many trials of a variant as ``equivalent`` needs."""
    needed = trials_needed(plan.rules.stalls)
    # Counted trials of one variant that blocks and budget allow, all cells together
    needed_blocks = min(plan.rules.max_blocks, max(1, int(plan.budget_rounds)))
    trials = needed_blocks * len(plan.experiment.cells)
    if trials >= needed or not plan.experiment.design.budget:
        return
    needed_blocks = -(-needed // len(plan.experiment.cells))
    allowed = next(
        (
            f"{100 * share:g}%"
            for share in (0.15, 0.2, 0.3, 0.5)
            if trials_needed(share) <= trials
        ),
        "",
    )
    other = f", or --stalls {allowed}" if allowed else ""
    more = f" --blocks {needed_blocks}" if plan.rules.max_blocks < needed_blocks else ""
    yield Finding(
        "plan.stalls",
        "warning",
        "--budget",
        f'too short for "equivalent": it takes {plural(needed, "trial")} per variant, and the plan pays for {trials}',
        f"use --budget {budget_for(plan, needed_blocks)}{more}{other}",
    )


def budget_for(plan: Plan, blocks: int) -> str:
    """Return a budget that pays for so many blocks of every cell, as an option has it."""
    seconds = 1.02 * blocks * plan.per_round * plan.trial_seconds
    return f"{math.ceil(seconds)}s" if seconds < 100 else f"{math.ceil(seconds / 60)}m"


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
