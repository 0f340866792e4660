"""An experiment as a story: verdicts, what stands behind them, the system, the method, how to do it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product

from iodelta import __version__
from iodelta.errors import pasted
from iodelta.experiment import Experiment
from iodelta.lab.folder import EXPERIMENT
from iodelta.lab.instrument import Instruments, Looked
from iodelta.probe.profile import Profile
from iodelta.report.stories.environment import differing
from iodelta.report.stories.evidence import apart, note
from iodelta.report.stories.preparation import answer, pictures, steps, tables
from iodelta.report.stories.sources import findings_or_none, system
from iodelta.report.stories.statements import (
    all_findings,
    beyond,
    held_back,
    method,
    not_measured,
    open_questions,
    recommendation,
)
from iodelta.report.stories.story import (
    PLAIN,
    Cell,
    Detail,
    Row,
    Section,
    Story,
    Table,
    section,
)
from iodelta.study.again import Again, placed
from iodelta.study.experiment import Account, headline
from iodelta.study.words import (
    inert,
    interval,
    measured,
    metric_name,
    percent,
    quantity,
)
from iodelta.verdict import Change, Metric, Verdict

SHORT = 64
"""Characters of a command that stands on a line with its title."""

EVIDENCE = 12
"""Comparisons whose evidence is written out."""

BLOCKS = "n counts blocks: one trial of every variant, next to each other in time, in random order."

RATIOS = "the change is taken from the ratios inside blocks, not from these values"


def of_account(account: Account, detail: Detail = PLAIN) -> Story:
    """Return an experiment: verdicts, what else is known, system, method, findings, how to do it again."""
    sentences = " ".join(filter(None, (headline(account), recommendation(account))))
    more = (*not_measured(account), *beyond(account), *open_questions(account))
    return Story(
        question=inert(account.plan.experiment.question),
        answer=sentences,
        tables=(
            *_account_tables(account),
            *chain.from_iterable(map(tables, account.prepared)),
            *_evidence(account),
        ),
        sections=(
            *section("Further observations", more),
            *section(
                "Under instruments, in runs that are not trials",
                looked(account.instruments, account.plan.experiment),
            ),
            *section("Preparation of the disk", _prepared(account)),
            *chain.from_iterable(map(pictures, account.prepared)),
            *(system(account.system) if account.system else ()),
            *section(
                "The machine changed between the sessions", differing(account.changed)
            ),
            *section(
                "Method", (*method(account), BLOCKS, _version(account.measured_by))
            ),
            *findings_or_none(all_findings(account)),
            *_again(account.again, _in_short(account, detail), account.folder),
        ),
    )


def _prepared(account: Account) -> Iterator[str]:
    """Yield what was done to each disk before the first trial, and whether it was steady then."""
    for disk in account.prepared:
        yield f"{inert(disk.path)}{_on(disk.machine)}: {answer(disk)}"
        yield from steps(disk)


def _on(machine: str) -> str:
    if machine in ("", "local"):
        return ""
    return f" on {inert(machine)}"


def _evidence(account: Account) -> Iterator[Table]:
    """Yield what stands behind each word, a row a comparison, for as many as a reader goes through."""
    verdicts = [verdict for verdict in account.judgement.verdicts if verdict.blocks]
    several = len(account.plan.experiment.variants) > 2
    rows = []
    for verdict in verdicts[:EVIDENCE]:
        cell = inert(verdict.cell) if len(account.plan.experiment.cells) > 1 else ""
        variant = inert(verdict.variant) if several else ""
        names = (cell, variant, metric_name(verdict.metric, with_kind=False))
        stalls, carry = verdict.stalls, verdict.carry
        texts = (
            _sized(verdict.typical),
            _sized(verdict.total),
            _sized(carry.change) if carry else "-",
            f"{len(stalls.variant)} of {stalls.trials}" if stalls else "-",
            f"{verdict.flagged} of {verdict.blocks}",
            f"{verdict.smallest_p:.1g}" if verdict.smallest_p is not None else "-",
        )
        rows.append(Row(", ".join(filter(None, names)), tuple(map(Cell, texts))))
    if rows:
        heads = ("typical", "total", "carry-over", "stalls", "flagged", "least p")
        more = (
            f" ({len(verdicts) - EVIDENCE} more in --format json)"
            if len(verdicts) > EVIDENCE
            else ""
        )
        yield Table(
            title=f"Evidence{more}",
            first="comparison",
            heads=heads,
            rows=tuple(rows),
            words=False,
        )


def _sized(change: Change | None) -> str:
    """Return a change with its interval, as short as it goes."""
    if change is None:
        return "-"
    if change.low is None or change.high is None:
        return percent(change.value)
    return f"{measured(change.value, change.low, change.high)} ({interval(change.low, change.high)})"


def _version(measured_by: str) -> str:
    if measured_by in ("", __version__):
        return f"iodelta {__version__}."
    return f"iodelta {__version__}; measured by {inert(measured_by)}."


def _account_tables(account: Account) -> Iterator[Table]:
    experiment = account.plan.experiment
    others = [
        variant.name
        for variant in experiment.variants
        if variant.name != experiment.baseline
    ]
    verdicts: dict[tuple[str, str, str], Verdict] = {}
    metrics: dict[str, Metric] = {}
    for verdict in account.judgement.verdicts:
        verdicts[verdict.metric.name, verdict.cell, verdict.variant] = verdict
        metrics[verdict.metric.name] = verdict.metric
    cells = [cell.name for cell in experiment.cells]
    several = len({metric.kind for metric in metrics.values()} - {"cpu"}) > 1
    for name, metric in metrics.items():
        title = f"{metric_name(metric, with_kind=several)} ({metric.better} is better)"
        best = {
            entry.cell: entry.variants for entry in account.best if entry.metric == name
        }
        if len(others) > 1:
            yield _values(
                title, name, cells, [experiment.baseline, *others], verdicts, best
            )
        of_metric = [
            verdicts[name, *arm]
            for arm in product(cells, others)
            if (name, *arm) in verdicts
        ]
        yield _changes(title, account, of_metric, best, alone=len(others) == 1)


def _values(
    title: str,
    name: str,
    cells: Sequence[str],
    variants: Sequence[str],
    verdicts: dict[tuple[str, str, str], Verdict],
    best: dict[str, tuple[str, ...]],
) -> Table:
    """Return the medians of all variants, side by side."""
    rows = []
    for cell in cells:
        of_cell = {
            variant: verdicts[name, cell, variant]
            for variant in variants
            if (name, cell, variant) in verdicts
        }
        if not of_cell:
            continue
        first = next(iter(of_cell.values()))
        baseline, unit = first.baseline_value, first.metric.unit
        medians = dict.fromkeys(variants, baseline)
        medians |= {each.variant: each.variant_value for each in of_cell.values()}
        marked = best.get(cell, ())
        cells_of_row = tuple(
            Cell(quantity(median, unit), variant in marked)
            for variant, median in medians.items()
        )
        differ = [each for each in of_cell.values() if apart(each)]
        rows.append(Row(inert(cell), cells_of_row, RATIOS * bool(differ)))
    return Table(
        title=f"{title}: {first.central}s of all variants as measured",
        first="cell",
        heads=tuple(map(inert, variants)),
        rows=tuple(rows),
        words=False,
    )


def _changes(
    title: str,
    account: Account,
    verdicts: Sequence[Verdict],
    best: dict[str, tuple[str, ...]],
    *,
    alone: bool,
) -> Table:
    """Return every variant against the baseline: change, interval, verdict; values too where they are not shown
    already.
    """
    baseline = account.plan.experiment.baseline
    heads: tuple[str, ...] = ("variant", "n")
    if alone and verdicts:
        heads = ("n", inert(baseline), inert(verdicts[0].variant))
    else:
        title += f": change against {inert(baseline)}"
    rows = []
    for verdict in verdicts:
        blocks = Cell(str(verdict.blocks))
        cells: tuple[Cell, ...] = (Cell(inert(verdict.variant)), blocks)
        if alone:
            marked, unit = best.get(verdict.cell, ()), verdict.metric.unit
            cells = (
                blocks,
                Cell(quantity(verdict.baseline_value, unit), baseline in marked),
                Cell(quantity(verdict.variant_value, unit), verdict.variant in marked),
            )
        rows.append(
            Row(
                inert(verdict.cell),
                (*cells, *_change(verdict.change), Cell(verdict.word)),
                held_back(verdict, account) or note(verdict, account.judgement.rules),
            )
        )
    return Table(
        title=title,
        first="cell",
        heads=(*heads, "change", level_of(account), "verdict"),
        rows=tuple(rows),
    )


def level_of(account: Account) -> str:
    """Return what the intervals of an experiment hold: ``95 %, all looks``."""
    return f"{100 * (1 - account.judgement.rules.alpha):g} %, all looks"


def _change(change: Change | None) -> tuple[Cell, Cell]:
    if change is None:
        return Cell("-"), Cell("-")
    size = measured(change.value, change.low, change.high)
    return Cell(size), Cell(interval(change.low, change.high))


def _in_short(account: Account, detail: Detail) -> str:
    """Return the command that repeats all of it, by the file in the folder where it would be long."""
    if detail.again or account.again is None:
        return inert(detail.again)
    line = inert(account.again.run)
    # A scenario makes its target again: its file alone would not.
    plain = line.startswith("iodelta run ")
    by_folder = plain and ("FOLDER" in line or len(line) > SHORT)
    if not by_folder:
        return line
    return f"iodelta run {detail.folder}/{EXPERIMENT} --seed {account.plan.seed}"


def _again(again: Again | None, short: str, folder: str) -> tuple[Section, ...]:
    if again is None:
        return ()
    lines = [placed(again.run, folder)]
    if again.tool == "fio":
        lines.append("# the same trials in the same order with fio alone, as a script")
        lines.append(f"iodelta report {pasted(folder)} --reproducer")
    lines.append(
        "# one trial by hand"
        + (", with one of the lines below in place of PART" if again.parts else "")
    )
    lines.append(f"{again.fio} PART".strip() if again.parts else again.fio)
    lines += [f"#   {inert(name)}: {inert(part)}" for name, part in again.parts[:PARTS]]
    if len(again.parts) > PARTS:
        lines.append(f"#   and {len(again.parts) - PARTS} more, which the script holds")
    lines += [f"# {inert(name)} sets {inert(value)}" for name, value in again.settings]
    lines += [
        f"# {inert(name)} runs {inert(value)}" for name, value in again.backgrounds
    ]
    return section("To do it again", map(inert, lines), commands=True, brief=short)


PARTS = 24
"""Cells whose own options are written out."""


SHOWN = 8
"""Symbols of one comparison, those that differ most."""


def looked(instruments: Instruments | None, experiment: Experiment) -> Iterator[str]:
    """Yield every variant against the baseline, cell by cell; then what could not be seen, and why. One run each: no
    verdict is drawn from it."""
    if instruments is None:
        return
    by_arm = {(seen.cell, seen.variant): seen for seen in instruments.looked}
    for cell, variant in product(experiment.cells, experiment.variants):
        base = by_arm.get((cell.name, experiment.baseline))
        other = by_arm.get((cell.name, variant.name))
        if base and other and variant.name != experiment.baseline:
            yield from _compared(base, other)
    for name, reason in instruments.missing.items():
        yield f"{inert(name)} saw nothing: {inert(reason)}"


def _compared(base: Looked, other: Looked) -> Iterator[str]:
    """Yield what the instruments saw of a variant against the baseline, in one cell."""
    head = f"{inert(base.cell)}, {inert(base.variant)} -> {inert(other.variant)}"
    yield from _counts(head, base, other)
    if base.profile is not None and other.profile is not None:
        yield _profiles(head, base.profile, other.profile)
    stages = {stage.name: stage for stage in base.stages}
    for stage in other.stages:
        before = stages.get(stage.name)
        mean = quantity(stage.mean, "ns")
        if before is None:
            yield f"{head}, {stage.name}: only under {inert(other.variant)}, mean {mean}."
            continue
        yield (
            f"{head}, {stage.name}: mean {quantity(before.mean, 'ns')} -> {mean}, "
            f"p99 {quantity(before.p99, 'ns')} -> {quantity(stage.p99, 'ns')}."
        )


def _counts(head: str, base: Looked, other: Looked) -> Iterator[str]:
    """Counters for one I/O, and which of them this machine does not have."""
    counted, uncounted = [], []
    for name, count in other.counts.items():
        before = base.counts.get(name)
        if count is None:
            uncounted.append(inert(name))
        elif before is not None:
            counted.append(f"{inert(name)} {_number(before)} -> {_number(count)}")
    without = ""
    if uncounted:
        without = f" (not counted by this machine: {', '.join(uncounted)})"
    if counted:
        yield f"{head}, for one I/O: {', '.join(counted)}{without}."


def _profiles(head: str, base: Profile, other: Profile) -> str:
    """Kernel time of one I/O, and the functions whose share changed most."""
    before, after = base.symbols, other.symbols
    grown = {
        name: after.get(name, 0.0) - before.get(name, 0.0)
        for name in {**before, **after}
    }
    largest = sorted(grown.items(), key=lambda item: -abs(item[1]))[:SHOWN]
    parts = [
        f"{inert(name)} {change:+,.0f}" for name, change in largest if round(change)
    ]
    totals = f"{base.total:,.0f} -> {other.total:,.0f}"
    return (
        f"{head}, {inert(other.unit)} in the kernel for one I/O: {totals}; "
        f"by function: {', '.join(parts) or 'no difference'}."
    )


def _number(count: float) -> str:
    """Three significant digits; from 1,000 on all digits."""
    return f"{count:,.3g}" if count < 1000 else f"{count:,.0f}"
