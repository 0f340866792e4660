"""A path experiment as a story: instructions per I/O, what changed them, what this cannot see. No IOPS, no time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise

from iodelta.errors import pasted
from iodelta.path.bill import Bill, Charge
from iodelta.path.judge import PathAccount, Shift
from iodelta.path.tables import FunctionTable
from iodelta.path.tallies import Tally, change
from iodelta.plural import plural
from iodelta.report.stories import sharing
from iodelta.report.stories.anatomy import (
    LIMITS,
    NOUNS,
    about_footprints,
    about_mixed,
    about_trees,
    flames,
    footprint_table,
    tree_tables,
)
from iodelta.report.stories.plan import release
from iodelta.report.stories.sources import system_lines
from iodelta.report.stories.story import PLAIN, Cell, Detail, Row, Story, Table, section
from iodelta.study.again import placed
from iodelta.study.words import inert, wrap
from iodelta.trial import Kind

SHORT = 10
"""Columns from which the name of a side is too long for a heading."""
FUNCTIONS = 15
"""Functions of a cell that a table shows: those that changed most."""

LEAST = 1.0
"""A function is shown if it changed by at least so many instructions per I/O."""


def headline(account: PathAccount) -> str:
    """Return the answer in a sentence or two, no stronger than the counts."""
    if account.self_check == "different":
        return (
            "Refused: the same boot, made twice, did not give the same bytes. Nothing counted here can be believed; "
            "the two outputs are in the folder."
        )
    if account.sharing.shifts:
        return sharing.headline(account)
    if not account.shifts:
        # Why is a part of the answer; all reasons follow in a section of their own.
        why = inert(account.problems[0] if account.problems else account.state)
        missing = account.planned - account.boots
        boots = (
            f" ({missing} of {plural(account.planned, 'boot')} missing)"
            if missing > 0
            else ""
        )
        return f"Nothing could be compared: {why}{boots}."
    return (
        sharing.by_kernel(account, account.shifts, "path", _words)
        or "No step: every kernel's path is as long as that of the one before."
    )


def _words(shifts: Sequence[Shift]) -> Iterator[str]:
    """In how many cells the path of a kernel is longer, shorter, or as long."""
    for word in ("longer", "shorter", "same"):
        alike = [shift for shift in shifts if shift.word == word]
        if alike:
            changes = "" if word == "same" else _range(alike)
            yield f"{word} in {len(alike)} of {plural(len(shifts), 'cell')}{changes}"
    missing = sum(shift.word == "no verdict" for shift in shifts)
    if missing:
        yield f"no verdict in {missing}"


def _range(shifts: Sequence[Shift]) -> str:
    """Return the smallest and the largest change, once where they are the same."""
    changes = sorted(shift.change for shift in shifts if shift.change is not None)
    ends = dict.fromkeys(f"{end:+,.0f}" for end in (changes[:1] + changes[-1:]))
    return f" ({' to '.join(ends)} instructions per I/O)"


def _legend(account: PathAccount) -> Iterator[str]:
    yield "Instructions from submission to completion, medians over I/Os; layouts: between any two address layouts."
    if account.deep:
        yield "With several I/Os in flight this holds the path of those before it in the queue too."


def _heading(table: FunctionTable, account: PathAccount) -> str:
    return (
        f"{inert(table.cell)}: where {inert(table.variant)} differs from {inert(account.baseline)}, "
        "instructions per I/O by kernel function"
    )


def _rows(table: FunctionTable) -> Iterator[tuple[str, str, str, str]]:
    shown = [row for row in table.rows if abs(row.change) >= LEAST][:FUNCTIONS]
    for row in shown:
        yield (
            inert(row.name),
            f"{row.baseline:,.1f}",
            f"{row.value:,.1f}",
            f"{row.change:+,.1f}",
        )
    rest = sum(row.change for row in table.rows) - sum(row.change for row in shown)
    yield "all other kernel functions", "", "", f"{rest:+,.1f}"
    together = {"kernel together": table.kernel, "user space (fio)": table.user}
    for name, (before, after) in together.items():
        yield name, f"{before:,.1f}", f"{after:,.1f}", f"{after - before:+,.1f}"


def of_path(account: PathAccount, detail: Detail = PLAIN) -> Story:
    """Counts of instructions: which paths are longer, what this cannot see, and what it relies on."""
    if account.anatomy == "sharing":
        detail = Detail(lines=detail.lines)  # such a folder has nothing else
    tables = [_shifts(account)] if account.shifts else []
    tables += sharing.tables(account, detail)
    if detail.bill:
        tables += [_bill(bill, account) for bill in account.bills]
    if detail.functions:
        tables += [_costs(table, account) for table in account.functions]
    if detail.footprint:
        tables += [
            footprint_table(footprint, account) for footprint in account.footprints
        ]
    if detail.paths:
        for tree in account.trees:
            tables += tree_tables(tree, account)
    sections = (
        *section("Steps", steps(account) if account.row else (), drawing=True),
        *section("What moves", sharing.sentences(account)),
        *section("What this cannot see", [account.blind]),
        *section("What this relies on", _relies(account), rest=True),
        *system_lines(_system(account)),
        *section("Reads served by each member", _reads(account)),
        *section("Could not be measured", map(inert, account.problems)),
        *section("Bill", _about_bills(account) if detail.bill else []),
        *section("Functions", _about_functions(account) if detail.functions else []),
        *section("Footprint", about_footprints(account) if detail.footprint else []),
        *section("Paths", about_trees(account) if detail.paths else []),
        *section(
            "To do it again",
            (inert(placed(line, account.folder)) for line in account.again),
            commands=True,
        ),
    )
    drawn = tuple(flames(account)) if detail.paths else ()
    answer = headline(account)
    return Story(
        question=inert(account.question),
        answer=answer,
        tables=tuple(tables),
        sections=sections,
        flames=drawn,
        details=f"iodelta report {inert(pasted(account.folder))} --verbose",
    )


def _shifts(account: PathAccount) -> Table:
    heads = (*_sides(account), "change", "%", "over layouts", "path")
    rows = tuple(_shift(shift, account) for shift in account.shifts)
    return Table(
        title="Instructions per I/O (medians)", first="cell", heads=heads, rows=rows
    )


def _shift(shift: Shift, account: PathAccount) -> Row:
    texts = (
        _count(shift.baseline),
        _count(shift.value),
        _count(shift.change, "+"),
        _share(shift),
        _layouts(shift),
        shift.word,
    )
    name, group = _cell(shift, account), ""
    if account.row:
        group, name = name, f"{inert(shift.against)} to {inert(shift.variant)}"
    elif len(account.sides) > 2:
        name += f" [{inert(shift.variant)}]"
    return Row(
        name=name,
        cells=tuple(map(Cell, texts)),
        note=inert(shift.reason),
        group=group,
    )


def _cell(shift: Shift, account: PathAccount) -> str:
    """Return the cell, with the kind of I/O where it does several."""
    kinds = {other.kind for other in account.shifts if other.cell == shift.cell}
    cell = inert(shift.cell)
    return f"{cell} {shift.kind}" if len(kinds) > 1 else cell


def _costs(table: FunctionTable, account: PathAccount) -> Table:
    heads = (inert(account.baseline), inert(table.variant), "change")
    rows = tuple(Row(name, tuple(map(Cell, values))) for name, *values in _rows(table))
    return Table(
        title=_heading(table, account),
        first="function",
        heads=heads,
        rows=rows,
        words=False,
    )


KINDS = {
    "locked": "locked instructions",
    "fence": "fences",
    "rdtsc": "rdtsc",
    "indirect": "indirect calls",
    "string": "string iterations",
}
"""How the report names a class of instructions."""


def _bill(bill: Bill, account: PathAccount) -> Table:
    heads = (inert(account.baseline), inert(bill.variant), "change", "an I/O has")
    title = f"{inert(bill.cell)}: bill of an I/O in the kernel, {inert(bill.variant)} against {inert(account.baseline)}"
    return Table(
        title=title,
        first="executed per I/O",
        heads=heads,
        rows=tuple(map(_charge, bill.charges)),
        words=False,
    )


def _charge(charge: Charge) -> Row:
    functions = ", ".join(
        f"{inert(row.name)} {row.change:+,.2f}" for row in charge.functions
    )
    digits = 0 if charge.exact else 2
    texts = (
        f"{charge.baseline:,.{digits}f}",
        f"{charge.value:,.{digits}f}",
        f"{charge.change:+,.{digits}f}",
        WORDS[charge.word],
    )
    return Row(KINDS[charge.kind], tuple(map(Cell, texts)), functions)


WORDS = {"more": "more", "fewer": "fewer", "same": "as many", "": "-"}
"""How the report says the word of a charge."""


def _about_bills(account: PathAccount) -> list[str]:
    """Return how bills are read, and why some are missing."""
    if not account.functions:
        return [f"No bill: {account.no_functions or 'its boots were not made'}."]
    if not account.bills:
        return [
            "No bill: an iodelta that knew no classes of instructions counted this folder."
        ]
    charges = chain.from_iterable(bill.charges for bill in account.bills)
    exact = any(charge.exact for charge in charges)
    return [
        *([_EXACT, LIMITS] if exact else [_MEANS]),
        "Locked: a LOCK prefix, or an exchange with memory; these boots keep the prefixes that Linux removes on one "
        "CPU (noreplace-smp). Fences: lfence, mfence, sfence. Indirect: calls through a register or memory. A string "
        "instruction counts once for each unit that it copies or fills.",
        *about_mixed(account),
    ]


_MEANS = (
    "Executed instructions, not time: means over I/Os, to which ticks of the timer add some hundredths. More or "
    "fewer: at least half of all I/Os have one more, or one less (ten string iterations); as many: they differ by "
    "less than 0.1; between them there is no word. The functions named are those that changed most."
)
_EXACT = (
    "Executed instructions, not time: medians over I/Os. More or fewer: by more than other address layouts alone change "
    "on either side. The functions named are those whose means changed most."
)


def _reads(account: PathAccount) -> Iterator[str]:
    for count in account.counts:
        if count.reads:
            members = ", ".join(
                f"{inert(name)} {number:,}" for name, number in count.reads.items()
            )
            yield f"{inert(count.cell)}, {inert(count.variant)}: {members}"


def _about_functions(account: PathAccount) -> list[str]:
    if not account.functions:
        return [
            f"No table of functions: {account.no_functions or 'its boots were not made'}."
        ]
    doubts = []
    for table in account.functions:
        doubts += [
            f"{inert(table.cell)}, {inert(table.variant)}: {inert(doubt)}"
            for doubt in table.doubts
        ]
    return doubts


def _relies(account: PathAccount) -> list[str]:
    if account.anatomy == "sharing":
        return list(sharing.rests_on(account))
    return [*_legend(account), *_rests_on(account)]


def _rests_on(account: PathAccount) -> list[str]:
    layouts = max((len(count.layouts) for count in account.counts), default=0)
    return [
        f"{sharing.boots(account)} "
        "A change counts beyond 10 instructions, and beyond what the address layout alone does to either side ("
        f"{plural(layouts, 'more boot')} of each).",
        "Instruction clock (icount shift 0), one CPU, fixed date, no address randomisation.",
    ]


def _system(account: PathAccount) -> list[str]:
    kernels = [
        f"{inert(side.variant)}: {release(side.release, side.package)}"
        for side in account.sides
    ]
    return [
        f"kernels: {'; '.join(kernels)}",
        f"target in the guest: {inert(account.target)}",
        f"emulator: {inert(account.qemu)}",
    ]


def _sides(account: PathAccount) -> tuple[str, str]:
    """Return what heads the two counts: names, where there are but two short ones."""
    variants = [side.variant for side in account.sides]
    variants.sort(key=lambda variant: variant != account.baseline)
    names = list(map(inert, variants))
    if len(names) == 2 and max(map(len, names)) < SHORT:
        return names[0], names[1]
    return "baseline", "variant"


def _count(value: float | None, sign: str = "") -> str:
    """Return a count with a decimal where it is not whole; ``sign`` is ``+`` for a change."""
    if value is None:
        return "-"
    places = 0 if value == int(value) else 1
    return f"{value:{sign},.{places}f}"


def _share(shift: Shift) -> str:
    if shift.share is None:
        return "-"
    return f"{100 * shift.share:+.2f} %"


def _layouts(shift: Shift) -> str:
    if shift.low is None or shift.high is None:
        return "-"
    return f"{shift.low:+,.0f} .. {shift.high:+,.0f}"


STEPS = 32
"""Columns in which a row of kernels is drawn."""

PICTURE = 70
"""Columns of a line of a drawing."""


def steps(account: PathAccount) -> list[str]:
    """Return a row of kernels as steps, oldest first: where each stands between the shortest path and the longest."""
    lines: list[str] = []
    changes = {
        (shift.cell, shift.kind, shift.against, shift.variant): shift
        for shift in account.shifts
    }
    by_cell: dict[tuple[str, Kind], dict[str, float]] = {}
    for count in account.counts:
        medians = by_cell.setdefault((count.cell, count.kind), {})
        medians[count.variant] = count.median
    for (cell, kind), medians in by_cell.items():
        words = {}
        for older, name in _one_after_another(account):
            shift = changes.get((cell, kind, older, name))
            if shift and shift.change is not None and shift.word != "same":
                words[name] = f"{shift.change:+,.0f} {shift.word}"
        title = f"{inert(cell)}, {kind}"
        lines += _drawn(title, "instructions per I/O", medians, words, account)
    return [*lines, *_tallied(account)]


def _one_after_another(account: PathAccount) -> Iterator[tuple[str, str]]:
    return pairwise([side.variant for side in account.sides])


def _tallied(account: PathAccount) -> Iterator[str]:
    """Yield the same of every other metric that some step changes; the rest in a sentence."""
    tallies: dict[tuple[str, str], dict[str, Tally]] = {}
    for tally in account.tallies:
        by_variant = tallies.setdefault((tally.cell, tally.metric), {})
        by_variant[tally.variant] = tally
    level: dict[str, list[str]] = {}
    for (cell, metric), by_variant in tallies.items():
        words = dict(_steps_of(by_variant, account))
        if not words:
            level.setdefault(cell, []).append(NOUNS[metric])
            continue
        medians = {name: tally.value for name, tally in by_variant.items()}
        unit = f"{NOUNS[metric]} per I/O"
        yield from _drawn(inert(cell), unit, medians, words, account)
    for cell, nouns in level.items():
        yield from wrap(f"{inert(cell)}: no step in {', '.join(nouns)}", PICTURE, "  ")


def _steps_of(
    by_variant: Mapping[str, Tally], account: PathAccount
) -> Iterator[tuple[str, str]]:
    for older, name in _one_after_another(account):
        if older not in by_variant or name not in by_variant:
            continue
        before, after = by_variant[older], by_variant[name]
        word = change(before, after)
        if word != "same":
            yield name, f"{after.value - before.value:+,.10g} {word}"


def _drawn(
    title: str,
    unit: str,
    medians: Mapping[str, float],
    words: Mapping[str, str],
    account: PathAccount,
) -> Iterator[str]:
    """Yield a line for each kernel, and what it changes to the one before."""
    least, most = min(medians.values()), max(medians.values())
    yield f"{title}: {least:,.10g} to {most:,.10g} {unit}"
    before: int | None = None
    for name in (side.variant for side in account.sides):
        head = f"  {inert(name):<16.16}"
        if name not in medians:
            yield f"{head} {'-':>9}"
            continue
        column = round((medians[name] - least) / max(most - least, 1.0) * STEPS)
        first, last = sorted((column if before is None else before, column))
        step = "o" if first == last else f"+{'-' * (last - first - 1)}+"
        drawn = f"{' ' * first}{step}"
        line = f"{head} {medians[name]:>9,.10g}  {drawn:<{STEPS + 2}}"
        yield f"{line}{words.get(name, '')}".rstrip()
        before = column
    yield ""
