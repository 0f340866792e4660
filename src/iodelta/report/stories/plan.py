"""Plans before anything starts: of an experiment, of counted boots, of a disk to prepare, of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from iodelta.errors import pasted
from iodelta.experiment import Experiment
from iodelta.experiment.command import commands_of, only_reads, unseen
from iodelta.lab.diskstate import findings
from iodelta.lab.diskstate import findings as of_disk
from iodelta.lab.plan import (
    Plan,
    boot_seconds,
    carry_over,
    kinds_of,
    warnings,
)
from iodelta.lab.preparing import Cost
from iodelta.lab.setup import Survey
from iodelta.path.plan import PathPlan, PathPlanAnswer
from iodelta.plural import listed, plural
from iodelta.report.stories.story import (
    PLAIN,
    Cell,
    Detail,
    Item,
    Row,
    Section,
    Story,
    Table,
    section,
)
from iodelta.study.planned import FromBundle, PlanAnswer, longest, rounds
from iodelta.study.search import SearchPlanAnswer
from iodelta.study.words import duration, inert, options_line, setting, size
from iodelta.trial import Finding

if TYPE_CHECKING:
    from iodelta.study.planned import DiskPlanAnswer

SHOWN = 12
"""Cells and variants that are named, and cells of a round whose order is shown."""

COMMANDS = 6
"""fio command lines that are shown in full."""

FIRST = 4
"""Rounds whose order is shown."""

UNREACHED = frozenset(
    {"plan.stalls", "plan.budget", "verdict.too-few-blocks", "verdict.few-hosts"}
)
"""Rules of findings about a verdict that the plan cannot reach."""

UNTOUCHED = "Nothing was measured or changed."


def of_plan(answer: PlanAnswer, detail: Detail = PLAIN) -> Story:
    """Return what a run would measure, by which rules, in which order."""
    bundle = answer.bundle
    origin = _origin(answer, bundle) if bundle else ()
    commands = _commands(bundle) if bundle else ()
    return Story(
        question=inert(bundle.question if bundle else answer.plan.experiment.question),
        answer=planned(answer.plan),
        tables=(),
        sections=order(answer.plan),
        lead=section("Plan", (*origin, *facts(answer), *commands)),
    )


def facts(answer: PlanAnswer, *, rules: bool = True) -> Iterator[Item]:
    """Yield the plan, and what a look at its machines found; ``rules`` with how it is decided."""
    plan, survey = answer.plan, answer.surveys[0]
    experiment = plan.experiment
    for name in experiment.machines:
        yield fact("Machine", inert(name))
    yield fact("Target", _target(survey))
    yield from asked(plan) if rules else (*_contents(plan), _time(plan))
    yield fact("Writes", _writes(survey, answer.refused, experiment))
    if unseen(experiment):
        yield fact(
            "Unseen",
            "the commands may write anywhere you can; iodelta guards only the target",
        )
    yield from _at_stake(survey, answer.refused)
    yield from _disk(survey, experiment)
    yield from settings(experiment)
    yield from _against(survey)
    yield from warned(plan, answer.findings)
    for sentence in answer.calibrations:
        yield fact("Known", sentence)


def fact(label: str, text: str) -> Item:
    """Return a paragraph behind its label."""
    return Item(text, label=label)


def planned(plan: Plan) -> str:
    """Return how much it is, in a sentence."""
    cells, variants = plan.experiment.cells, plan.experiment.variants
    return (
        f"Plan: {plural(len(cells), 'cell')}, {plural(len(variants), 'variant')}, "
        f"{longest(plan)}. {UNTOUCHED}"
    )


def asked(plan: Plan) -> Iterator[Item]:
    """Yield what is asked, by which rules and for how long: of the plan alone, without a look at its machine."""
    yield from _contents(plan)
    yield from _rules(plan)
    yield _time(plan)


def _contents(plan: Plan) -> Iterator[Item]:
    experiment = plan.experiment
    yield fact(
        "Cells",
        f"{len(experiment.cells)}: {_some([cell.name for cell in experiment.cells])}",
    )
    yield fact(
        "Variants",
        _some([_variant(v.name, experiment.baseline) for v in experiment.variants]),
    )


def _rules(plan: Plan) -> Iterator[Item]:
    """By which rules it is decided, and what the budget lets them decide."""
    rules = plan.rules
    metrics = ", ".join(
        metric.name.removeprefix("command.") for metric in rules.metrics
    )
    yield fact(
        "Metrics",
        f"{metrics}; margin {100 * rules.margin:g} %, intervals of {100 * (1 - rules.alpha):g} %",
    )
    open_ = {finding.rule for finding in warnings(plan)} & UNREACHED
    enough = "" if open_ else "; enough for every verdict"
    yield fact(
        "Blocks",
        f"the budget pays for about {rounds(plan)} of every cell, results from block {rules.looks[0]} on{enough}",
    )
    carry = carry_over(plan)
    if carry:
        yield fact("Carry", inert(carry))


def _time(plan: Plan) -> Item:
    each = duration(plan.trial_seconds)
    first = plan.rules.looks[0] * plan.per_round * plan.trial_seconds
    word = (
        f"first result after about {duration(first)}, "
        if first <= plan.experiment.design.budget
        else ""
    )
    return fact(
        "Time",
        f"{word}{longest(plan)}; {each} a trial{_boot(plan.experiment)}, {plural(plan.per_round, 'trial')} a round",
    )


def _boot(experiment: Experiment) -> str:
    """Return which part of a trial its boot is assumed to take; empty where nothing is booted."""
    seconds = boot_seconds(experiment)
    if not seconds:
        return ""
    booted = "the reboot of its host" if experiment.reboots else "the boot of its guest"
    return f" ({duration(seconds)} of it for {booted}, assumed: the first round measures it)"


def _at_stake(survey: Survey, refused: str) -> Iterator[Item]:
    """Yield what a write destroys, and what is rebooted."""
    if survey.holds:
        yield fact("Holds", holding(survey.holds, survey.target.path, refused))
    if survey.reboots:
        yield fact(
            "Reboots",
            f"for every variant of a block, by {survey.reboots}; a boot serves each cell once",
        )


def _disk(survey: Survey, experiment: Experiment) -> Iterator[Item]:
    """Yield how the disk is prepared, and what is known of its state where it is not."""
    if survey.prepare is not None:
        yield cost_fact(survey.prepare)
        return
    yield from map(_graded, of_disk(survey.disk, experiment.target.path))


def settings(experiment: Experiment) -> Iterator[Item]:
    """Yield what is set, and which commands run."""
    for name in experiment.knob_names():
        values = [
            f"{inert(v.name)}: {inert(setting(name, v.knobs.get(name, 'as it is')))}"
            for v in experiment.variants
        ]
        yield fact("Knob", f"{name} ({'; '.join(values)}); restored at the end")
    for text in commands_of(experiment):
        yield fact("Measures", inert(text))
    of_variants = {variant.knobs.get("command") for variant in experiment.variants}
    for text in dict.fromkeys(experiment.runs_commands()):
        if text not in of_variants:
            yield fact("Command", inert(setting("command", text)))
    for text in experiment.looks_closer():
        yield fact("Command", inert(setting("command", text)))


def _against(survey: Survey) -> Iterator[Item]:
    """Yield why it cannot be measured on its machine, and what that machine lacks."""
    for obstacle in survey.reasons:
        yield fact(
            "Against",
            f"{inert(obstacle.place)} {inert(obstacle.what)}: {inert(obstacle.remedy)}",
        )
    for name, reason in (*survey.unavailable.items(), *survey.unmeasurable.items()):
        yield fact("Not here", f"{inert(name)}: {inert(reason)}")
    yield from map(_graded, chain.from_iterable(survey.placement.values()))


def warned(plan: Plan, found: Iterable[Finding] | None = None) -> Iterator[Item]:
    """Notes and warnings about the plan itself; ``found`` with what was seen of its machine."""
    for note in plan.experiment.notes:
        yield fact("Note", inert(note))
    seen = warnings(plan) if found is None else found
    yield from (
        _graded(finding) for finding in seen if not finding.rule.startswith("disk.")
    )


def _graded(finding: Finding) -> Item:
    return fact(
        finding.severity.capitalize(),
        f"{inert(finding.explanation)}; {inert(finding.remedy)}",
    )


def order(plan: Plan) -> tuple[Section, ...]:
    """Return every cell with its options, and the order of the first rounds."""
    cells = []
    for cell in plan.experiment.cells:
        kinds = "command" if cell.command is not None else "+".join(kinds_of(cell))
        options = options_line(cell.options)
        cells.append(f"{inert(cell.name)} ({kinds}): {options}".removesuffix(": "))
    rounds_ = plan.schedule.rounds
    lines = []
    for number, round_ in enumerate(rounds_[:FIRST], 1):
        lines += [
            f"{number}  {inert(slot.cell)}: {', '.join(map(inert, slot.order))}"
            for slot in round_[:SHOWN]
        ]
    title = f"Order (seed {plan.seed}), the first rounds of {len(rounds_)}"
    return (*section("Cells", cells), *section(title, lines))


def _origin(answer: PlanAnswer, bundle: FromBundle) -> Iterator[Item]:
    """Whose experiment it is, what is not as it was there, and what is dangerous."""
    yield fact(
        "Bundle",
        f"{inert(bundle.name)}, SHA-256 {bundle.digest}, made by iodelta {inert(bundle.made_by)}",
    )
    if not bundle.shown:
        yield fact(
            "Note",
            "nothing was shown there (every interval holds zero): there is nothing to reproduce",
        )
    for note in answer.notes:
        yield fact("Changed", inert(note))
    for danger in answer.dangers:
        yield fact("DANGER", inert(danger))


def _commands(bundle: FromBundle) -> Iterator[Item]:
    """fio's command lines as they would be, and where the results go."""
    for text in bundle.commands[:COMMANDS]:
        yield fact("Runs", inert(text))
    left = len(bundle.commands) - COMMANDS
    if left > 0:
        yield fact(
            "", f"and {left} more that differ from these by their cell's options"
        )
    yield fact("Folder", f"{inert(pasted(bundle.folder))}, new")


def _target(survey: Survey) -> str:
    path = inert(survey.target.path)
    if survey.scratch:
        what = f"a scratch file of {size(survey.size or 0)} in {path}"
    else:
        bytes_used = survey.size or survey.target.size_bytes
        what = f"{path} ({survey.target.kind}), {size(bytes_used)}"
    if survey.target.device and survey.target.kind != "block":
        return f"{what} on {survey.target.device}"
    return what


def _writes(survey: Survey, refused: str, experiment: Experiment) -> str:
    """Return what the run would write to."""
    target = inert(survey.target.path)
    to_own_files = survey.target.kind == "directory" and not survey.scratch
    if refused:
        return f"refused: {inert(refused)}"
    if not survey.writes:
        return _only_scratch(survey, experiment)
    if to_own_files:
        return f"to the files that iodelta made in {target} only"
    if survey.scratch:
        return "to the scratch file only"
    return f"YES: {target} will be overwritten"


def _only_scratch(survey: Survey, experiment: Experiment) -> str:
    """Return what is written where the workload itself writes nothing that iodelta knows of."""
    if not experiment.of_command:
        but = " but the scratch file" if survey.scratch else ""
        return f"nothing is written{but}"
    scratch = "; iodelta itself only the scratch file" if survey.scratch else ""
    if only_reads(experiment):
        return f"nothing, says the file (only_reads){scratch}"
    return f"what the commands write{scratch}"


def _variant(name: str, baseline: str) -> str:
    if name != baseline:
        return name
    return f"{name} (baseline)"


def _some(names: list[str]) -> str:
    return listed(list(map(inert, names)), SHOWN)


def of_path_plan(answer: PathPlanAnswer, detail: Detail = PLAIN) -> Story:
    """Return what would be booted."""
    plan = answer.plan
    boots = plural(len(plan.boots), "boot")
    return Story(
        question=inert(plan.experiment.question),
        answer=f"Plan: {boots}; {_counted(plan)}, no time is measured. Nothing was booted.",
        tables=(),
        sections=(),
        lead=section("Plan", path_facts(plan)),
    )


def path_facts(plan: PathPlan) -> Iterator[Item]:
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


def of_disk_plan(answer: DiskPlanAnswer, detail: Detail = PLAIN) -> Story:
    """Return what a preparation would do."""
    cost = answer.survey.cost
    longest = duration(max(1.0, cost.fill_seconds) + cost.rounds_seconds)
    return Story(
        question="",
        answer=f"Plan: {inert(answer.survey.target.path)} is prepared in about {longest} at most. Nothing was changed.",
        tables=(),
        sections=(),
        lead=section("Plan", disk_facts(answer)),
    )


def disk_facts(answer: DiskPlanAnswer) -> Iterator[Item]:
    """Yield the plan before anything starts."""
    question, survey = answer.plan.question, answer.survey
    path, prepare = inert(survey.target.path), question.prepare
    if question.machine:
        yield Item(inert(question.machine), label="Machine")
    yield Item(
        f"{path} ({survey.target.kind}), {size(survey.size)}: everything on it will be overwritten",
        label="Disk",
    )
    if survey.holds:
        yield Item(
            holding(survey.holds, survey.target.path, answer.refused), label="Holds"
        )
    yield cost_fact(survey.cost)
    if prepare.purge == "none":
        advice = "--purge discard (or nvme-format) makes the disk forget earlier writes, where it can"
        yield Item(f"no purge: {advice}", label="Note")
    for finding in findings(survey.disk, survey.target.path):
        yield Item(inert(finding.explanation), label="State")


def holding(holds: str, path: str, refused: str) -> str:
    """Return what a target contains, as far as it was read, and what lets it be overwritten where that is refused."""
    if refused:
        return f"{inert(holds)}; only --destroy {inert(path)} lets it be overwritten"
    return inert(holds)


def cost_fact(cost: Cost) -> Item:
    """Steps, bytes and time of a preparation."""
    steps = f"rounds until steady, at most {duration(cost.rounds_seconds)}"
    if cost.fill_bytes:
        basis = "at 500 MiB/s, a guess until it was timed"
        if cost.timed:
            basis = "as it took the last time"
        fill = duration(max(1.0, cost.fill_seconds))
        steps = (
            f"{size(cost.fill_bytes)} in sequence, about {fill} {basis}; then {steps}"
        )
    return Item(inert(cost.how), (steps,), label="Prepare")


CANDIDATES = 12
"""Candidates listed; with Detail.whole all of them."""


def of_search_plan(answer: SearchPlanAnswer, detail: Detail = PLAIN) -> Story:
    """Return what a search would be about, before anything is built or measured."""
    names = list(map(inert, answer.titles or answer.items))
    rows = tuple(Row(str(number), (Cell(name),)) for number, name in enumerate(names))
    if len(rows) > CANDIDATES and not detail.whole:
        half = CANDIDATES // 2
        rows = (
            *rows[:half],
            Row("...", (Cell(f"{len(rows) - CANDIDATES} more"),)),
            *rows[-half:],
        )
    first = (
        f"{inert(answer.next)}: {inert(answer.why)}" if answer.next else "nothing to do"
    )
    return Story(
        question="",
        answer=f"Plan: {plural(len(names) - 1, 'candidate')} between {names[0]} and {names[-1]}. Nothing was built.",
        tables=(
            Table(
                title="Items, good first, bad last",
                first="",
                heads=("item",),
                rows=rows,
            ),
        ),
        sections=section("Measured first", (first,)),
    )
