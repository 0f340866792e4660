"""The anatomy of an I/O as tables and flame graphs: its tree of calls, and the memory that it touches."""

from __future__ import annotations

from collections.abc import Iterator

from iodelta.path.branches import Branch, CallTree
from iodelta.path.footprint import Footprint, Measured
from iodelta.path.judge import PathAccount
from iodelta.report.stories.story import Box, Cell, Flame, Row, Table
from iodelta.study.words import inert

LIMITS = (
    "Counts of events, not time: no prefetch, no out-of-order execution, no page walks, no NUMA, no device, one of many "
    "interleavings, and the code that a kernel runs on the CPU model qemu64."
)
"""What an anatomy does not see: in every report of one."""

SHOWN, ALWAYS = 0.02, 10.0
"""Share of its root from which on a table has a branch, and the change in instructions from which on it has any."""

ONE_SIDED = 2
"""How much larger a branch that only one side has must be for its callees to be shown: they are all change."""

TICKS = 0.01
"""Share of the kernel's instructions below which interrupts are said in a sentence."""

DRAWN = 0.0015
"""Share of a picture's width below which a box would not be seen."""

NAMES = {
    "instructions": "instructions",
    "loads": "loads",
    "stores": "stores",
    "data_lines": "lines of data",
    "written_lines": "lines written",
    "data_pages": "pages of data",
    "code_lines": "lines of code",
    "code_pages": "pages of code",
}
"""How the report names a measure."""

NOUNS = {
    "bill.locked": "locked instructions",
    "bill.fence": "fences",
    "bill.rdtsc": "rdtsc",
    "bill.indirect": "indirect calls",
    "moved_lines": "moved lines",
    **{f"footprint.{name}": noun for name, noun in NAMES.items()},
}
"""How the report names what a search or a history follows."""

WORDS = {"more": "more", "fewer": "fewer", "same": "the same", "": "-"}


def footprint_table(one: Footprint, account: PathAccount) -> Table:
    """What the kernel touches for an I/O, and all code together."""
    heads = (
        inert(account.baseline),
        inert(one.variant),
        "change",
        "layouts",
        "an I/O has",
    )
    title = (
        f"{inert(one.cell)}: footprint of an I/O, {inert(one.variant)} against "
        f"{inert(account.baseline)} (medians)"
    )
    rows = [_measure(each) for each in one.measures if each.name in NAMES]
    return Table(title=title, first="by an I/O", heads=heads, rows=tuple(rows))


def _measure(one: Measured) -> Row:
    name = NAMES[one.name] if one.scope == "kernel" else f"{NAMES[one.name]}, with fio"
    layouts = "-" if one.bar is None else f"+-{one.bar:,.10g}"
    texts = (
        f"{one.baseline:,.10g}",
        f"{one.value:,.10g}",
        f"{one.change:+,.10g}",
        layouts,
        WORDS[one.word],
    )
    return Row(name, tuple(map(Cell, texts)))


def about_footprints(account: PathAccount) -> list[str]:
    """How its figures are read, and why some are missing."""
    if not account.footprints:
        return [_without(account, "footprint")]
    texts = [
        "Medians over I/Os, from one call of submit_bio to the next; lines are 64 bytes, pages 4 KiB, of virtual "
        "addresses. More or fewer: by more than other address layouts alone change on either side (layouts).",
        LIMITS,
    ]
    for one in account.footprints:
        if not one.by_ios:
            texts.append(
                f"{inert(one.cell)}, {inert(one.variant)}: submit_bio was called {one.each[0]:.2f} and "
                f"{one.each[1]:.2f} times for each I/O; the figures are per call, not per I/O."
            )
    return [*texts, *about_mixed(account)]


def about_mixed(account: PathAccount) -> Iterator[str]:
    """Cells whose I/Os go in more than one direction: what one of them takes is not the other's."""
    kinds: dict[str, list[str]] = {}
    for count in account.counts:
        seen = kinds.setdefault(count.cell, [])
        if count.kind not in seen:
            seen.append(count.kind)
    for cell, names in kinds.items():
        if len(names) > 1:
            yield (
                f"{inert(cell)}: {' and '.join(f'{name}s' for name in names)} are counted together, so a median may belong "
                "to either, or lie between them. Give each direction a cell of its own to see what it takes."
            )


def tree_tables(one: CallTree, account: PathAccount) -> Iterator[Table]:
    """The branches that matter, each below its caller; interrupts apart."""
    heads = (inert(account.baseline), inert(one.variant), "change")
    for root in one.roots:
        rows = tuple(_rows(root, 0, SHOWN * root.width))
        if _is_shown(root, one):
            yield Table(
                title=_title(one, account, root),
                first="calls",
                heads=heads,
                rows=rows,
                words=False,
            )


def _is_shown(root: Branch, one: CallTree) -> bool:
    """Interrupts are not where they are a few ticks of the timer, which fell into one of the runs by chance."""
    return root.width > 0 and root.width >= TICKS * max(
        other.width for other in one.roots
    )


def _title(one: CallTree, account: PathAccount, root: Branch) -> str:
    return (
        f"{inert(one.cell)}: paths of {inert(one.variant)} against {inert(account.baseline)}, {root.name}, "
        "instructions per I/O with all that is called"
    )


def _rows(branch: Branch, depth: int, least: float) -> Iterator[Row]:
    if branch.width < least and abs(branch.change) < ALWAYS:
        return
    texts = (
        f"{branch.baseline:,.1f}",
        f"{branch.value:,.1f}",
        f"{branch.change:+,.1f}",
    )
    yield Row(f"{'.' * depth}{inert(branch.name)}", tuple(map(Cell, texts)))
    if min(branch.baseline, branch.value) <= 0 and branch.width < ONE_SIDED * least:
        return
    for child in branch.children:
        yield from _rows(child, depth + 1, least)


def about_trees(account: PathAccount) -> list[str]:
    """How they are read, and why some are missing."""
    if not account.trees:
        return [_without(account, "tree of calls")]
    texts = [
        f"Means over I/Os. A dot for each call; branches below {100 * SHOWN:g} % of all whose change is below {ALWAYS:g} "
        "instructions are left out. 'old -> new' is taken for one function that was renamed, 'caller + callee' is inlined on one side. Interrupts are "
        "listed apart from the paths that they interrupted.",
        LIMITS,
    ]
    for one in account.trees:
        for root in one.roots:
            if not _is_shown(root, one):
                texts.append(
                    f"{inert(one.cell)}, {inert(one.variant)}: {root.name} take {root.baseline:,.0f} and "
                    f"{root.value:,.0f} instructions per I/O, ticks of the timer; their paths are not shown."
                )
        if one.refused:
            texts.append(
                f"{inert(one.cell)}, {inert(one.variant)}: no tree of calls: {inert(one.refused)}."
            )
    return texts


def _without(account: PathAccount, what: str) -> str:
    if account.anatomy:
        return f"No {what}: its boots were not made."
    return f"No {what}: this experiment counts none (iodelta run --anatomy)."


def flames(account: PathAccount) -> Iterator[Flame]:
    """Every tree as a picture, interrupts apart."""
    for one in account.trees:
        for root in one.roots:
            whole = drawn_width(root)
            if _is_shown(root, one):
                yield Flame(
                    _title(one, account, root),
                    f"{root.baseline:,.0f} and {root.value:,.0f} instructions per I/O; a box is as wide as the larger "
                    "side, its colour is the change, its callees are below it. The table of paths has its figures.",
                    tuple(_boxes(root, 0, 0.0, whole)),
                )


def drawn_width(branch: Branch) -> float:
    """The larger side of a branch's own instructions, and the widths of all that it calls."""
    own = max(branch.own_baseline, branch.own_value)
    return own + sum(map(drawn_width, branch.children))


def _boxes(branch: Branch, depth: int, left: float, whole: float) -> Iterator[Box]:
    width = drawn_width(branch) / whole
    if width < DRAWN:
        return
    figures = f"{branch.baseline:,.1f} to {branch.value:,.1f} ({branch.change:+,.1f})"
    change = branch.change / branch.width if branch.width else 0.0
    yield Box(
        depth=depth,
        left=left,
        width=width,
        name=inert(branch.name),
        figures=figures,
        change=change,
    )
    for child in branch.children:
        yield from _boxes(child, depth + 1, left, whole)
        left += drawn_width(child) / whole
