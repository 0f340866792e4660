"""The plan before anything starts: cells, variants, order, bytes, knobs and time."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console

from iodelta.errors import RefusedError
from iodelta.experiment import Experiment
from iodelta.lab.diskstate import findings as of_disk
from iodelta.lab.plan import Plan, carry_over, smallest_p, trials_of_a_variant, warnings
from iodelta.lab.setup import Survey
from iodelta.lab.superblocks import kinds_of
from iodelta.plural import plural
from iodelta.report.stories.disk_plan import cost_lines
from iodelta.stats.stalls import trials_needed
from iodelta.study.planned import at_most, refusal_text, rounds
from iodelta.study.words import duration, inert, size

SHOWN = 12
WIDTH = 80
INDENT = 10


def show_plan(
    console: Console,
    plan: Plan,
    found: Survey,
    refused: RefusedError | None = None,
    *,
    whole: bool,
    calibrations: Sequence[str] = (),
) -> None:
    """Print the plan; ``whole`` with rules, every cell and the order of the first rounds, else in a few lines.

    ``refused`` is what the guard says of what it would write to.
    """
    known = [f"Known     {sentence}" for sentence in calibrations]
    lines = wrapped_lines([*_lines(plan, found, refused, whole=whole), *known])
    for line in (*lines, *(order_lines(plan) if whole else ())):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def wrapped_lines(lines: list[str]) -> Iterator[str]:
    """Lines of at most 80 columns but for a longer word; what is continued stands below the value, not below its name.

    A path stays whole, so that it can be pasted.
    """
    whole = textwrap.TextWrapper(WIDTH, subsequent_indent=" " * INDENT, break_on_hyphens=False, break_long_words=False)
    for line in lines:
        yield from whole.wrap(line)


def question_lines(plan: Plan) -> list[str]:
    """What is asked, by which rules and for how long: of the plan alone, without a look at its machine."""
    return [*_asked(plan), *_rules(plan), _time(plan)]


def _asked(plan: Plan) -> list[str]:
    experiment = plan.experiment
    return [
        f"Cells     {len(experiment.cells)}: {_some([cell.name for cell in experiment.cells])}",
        f"Variants  {_some([_variant(v.name, experiment.baseline) for v in experiment.variants])}",
    ]


def _rules(plan: Plan) -> list[str]:
    """By which rules it is decided, and what the budget lets them decide."""
    rules = plan.rules
    return [
        f"Metrics   {', '.join(metric.name for metric in rules.metrics)}; margin {100 * rules.margin:g} %, "
        f"level {100 * (1 - rules.alpha):g} %",
        f"Blocks    looks at {', '.join(map(str, rules.looks))}; "
        f"the budget pays for about {rounds(plan)} of every cell",
        f"Reach     p {smallest_p(plan):.2g} at the least; {_stalls(plan)}",
        *([f"Carry     {inert(carry)}"] if (carry := carry_over(plan)) else ()),
    ]


def _time(plan: Plan) -> str:
    each, longest = duration(plan.trial_seconds), duration(at_most(plan))
    return f"Time      {each} a trial, {plural(plan.per_round, 'trial')} a round, at most {longest}"


def _lines(plan: Plan, found: Survey, refused: RefusedError | None, *, whole: bool) -> list[str]:
    return [
        *(f"Machine   {inert(name)}" for name in plan.experiment.machines),
        f"Target    {_target(found)}",
        *(question_lines(plan) if whole else (*_asked(plan), _time(plan))),
        f"Writes    {_writes(found, refused)}",
        *_at_stake(found, refused),
        *_disk(found, plan.experiment),
        *setting_lines(plan.experiment),
        *_against(found),
        *warning_lines(plan),
    ]


def _at_stake(found: Survey, refused: RefusedError | None) -> Iterator[str]:
    """What a write destroys, and what is rebooted."""
    if found.holds:
        only = f"; only --destroy {inert(found.target.path)} lets it be overwritten" if refused else ", which is lost"
        yield f"Holds     {found.holds}{only}"
    if found.reboots:
        yield f"Reboots   for every variant of a block, by {found.reboots}; a boot serves each cell once"


def _disk(found: Survey, experiment: Experiment) -> Iterator[str]:
    """How the disk is prepared, and what is known of its state where it is not."""
    if found.prepare is not None:
        yield from map(inert, cost_lines(found.prepare))
        return
    for one in of_disk(found.disk, experiment.target.path):
        yield f"{one.severity.capitalize():<9} {inert(one.explanation)}; {inert(one.remedy)}"


def setting_lines(experiment: Experiment) -> Iterator[str]:
    """What is set, and which commands run."""
    for name in experiment.knob_names():
        values = [f"{inert(v.name)}: {inert(v.knobs.get(name, 'as it is'))}" for v in experiment.variants]
        yield f"Knob      {name} ({'; '.join(values)}); restored at the end"
    for text in (*experiment.runs_commands(), *experiment.looks_closer()):
        yield f"Command   {inert(text)}"


def _against(found: Survey) -> Iterator[str]:
    """What stands against it on its machine."""
    for against in found.reasons:
        yield f"Against   {inert(against.place)} {inert(against.what)}: {inert(against.remedy)}"
    for name, reason in (*found.unavailable.items(), *found.unmeasurable.items()):
        yield f"Not here  {inert(name)}: {inert(reason)}"
    for odd in (finding for findings in found.placement.values() for finding in findings):
        yield f"{odd.severity.capitalize():<9} {inert(odd.explanation)}; {inert(odd.remedy)}"


def warning_lines(plan: Plan) -> Iterator[str]:
    """What is odd about the plan itself."""
    for note in plan.experiment.notes:
        yield f"Note      {inert(note)}"
    for finding in warnings(plan):
        yield f"{finding.severity.capitalize():<9} {finding.explanation}; {finding.remedy}"


def _stalls(plan: Plan) -> str:
    """What "equivalent" will exclude of stalls."""
    trials, needed = trials_of_a_variant(plan), trials_needed(plan.rules.stalls)
    return f'"equivalent" takes {plural(needed, "trial")} of a variant, the budget pays for about {trials}'


def order_lines(plan: Plan) -> list[str]:
    """Every cell with its options, and the order of the first rounds."""
    lines = ["", "Cells"]
    for cell in plan.experiment.cells:
        options = " ".join(f"--{name}" if value is None else f"--{name}={inert(value)}" for name, value in cell.options)
        lines.append(f"  {inert(cell.name)} ({'+'.join(kinds_of(cell))}): {options}")
    lines += ["", f"Order (seed {plan.seed}), the first rounds of {len(plan.schedule.rounds)}"]
    for number, round_ in enumerate(plan.schedule.rounds[:4], 1):
        for slot in round_[:SHOWN]:
            lines.append(f"  {number}  {inert(slot.cell)}: {', '.join(slot.order)}")
    return lines


def _target(found: Survey) -> str:
    path = inert(found.target.path)
    what = f"a scratch file of {size(found.size or 0)} in {path}" if found.scratch else f"{path} ({found.target.kind})"
    if not found.scratch:
        what += f", {size(found.size or found.target.size_bytes)}"
    return f"{what} on {found.target.device}" if found.target.device and found.target.kind != "block" else what


def _writes(found: Survey, refused: RefusedError | None) -> str:
    if refused is not None:
        return f"refused: {inert(refusal_text(refused))}"
    if not found.writes:
        return "nothing is written" + (" but the scratch file" if found.scratch else "")
    if found.target.kind == "directory" and not found.scratch:
        return f"to the files that iodelta made in {inert(found.target.path)} only"
    if found.scratch:
        return "to the scratch file only"
    return f"YES: {inert(found.target.path)} will be overwritten"


def _variant(name: str, baseline: str) -> str:
    return f"{name} (baseline)" if name == baseline else name


def _some(names: list[str]) -> str:
    shown = ", ".join(map(inert, names[:SHOWN]))
    return shown if len(names) <= SHOWN else f"{shown}, and {len(names) - SHOWN} more"
