"""The anatomy of an I/O as tables and flame graphs: its tree of calls, and the memory that it touches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import filterfalse

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
"""A table has every branch with at least this share of its root, and every branch that changed by so many
instructions."""

ONE_SIDED = 2
"""The callees of a branch that only one side has are all change: they are shown if it is so many times larger."""

TICKS = 0.01
"""Interrupts with a smaller share of the kernel's instructions are a sentence, not a table."""

DRAWN = 0.0015
"""A box with a smaller share of the picture's width is not drawn: nobody would see it."""

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


def footprint_table(footprint: Footprint, account: PathAccount) -> Table:
    """Return what the kernel touches for an I/O, and all code together."""
    variant, baseline = inert(footprint.variant), inert(account.baseline)
    heads = (baseline, variant, "change", "layouts", "an I/O has")
    title = f"{inert(footprint.cell)}: footprint of an I/O, {variant} against {baseline} (medians)"
    rows = [
        _measure(measured) for measured in footprint.measures if measured.name in NAMES
    ]
    return Table(title=title, first="by an I/O", heads=heads, rows=tuple(rows))


def _measure(measured: Measured) -> Row:
    name = NAMES[measured.name]
    if measured.scope != "kernel":
        name += ", with fio"
    texts = (
        f"{measured.baseline:,.10g}",
        f"{measured.value:,.10g}",
        f"{measured.change:+,.10g}",
        "-" if measured.bar is None else f"+-{measured.bar:,.10g}",
        WORDS[measured.word],
    )
    return Row(name, tuple(map(Cell, texts)))


def about_footprints(account: PathAccount) -> list[str]:
    """Return how its figures are read, and why some are missing."""
    if not account.footprints:
        return [_without(account, "footprint")]
    texts = [
        "Medians over I/Os, from one call of submit_bio to the next; lines are 64 bytes, pages 4 KiB, of virtual "
        "addresses. More or fewer: by more than other address layouts alone change on either side (layouts).",
        LIMITS,
    ]
    for footprint in account.footprints:
        if not footprint.by_ios:
            before, after = footprint.each
            texts.append(
                f"{inert(footprint.cell)}, {inert(footprint.variant)}: submit_bio was called {before:.2f} and "
                f"{after:.2f} times for each I/O; the figures are per call, not per I/O."
            )
    return [*texts, *about_mixed(account)]


def about_mixed(account: PathAccount) -> Iterator[str]:
    """Cells with reads and writes: their medians belong to neither direction alone."""
    kinds: dict[str, dict[str, None]] = {}
    for count in account.counts:
        kinds.setdefault(count.cell, {})[count.kind] = None
    for cell, names in kinds.items():
        if len(names) > 1:
            yield (
                f"{inert(cell)}: {' and '.join(f'{name}s' for name in names)} are counted together, so a median may belong "
                "to either, or lie between them. Give each direction a cell of its own to see what it takes."
            )


def tree_tables(tree: CallTree, account: PathAccount) -> Iterator[Table]:
    """Yield the branches that matter, each below its caller; interrupts apart."""
    heads = (inert(account.baseline), inert(tree.variant), "change")
    for root in filter(_shows(tree), tree.roots):
        yield Table(
            title=_title(tree, account, root),
            first="calls",
            heads=heads,
            rows=tuple(_rows(root, 0, SHOWN * root.width)),
            words=False,
        )


def _shows(tree: CallTree) -> Callable[[Branch], bool]:
    """Return whether a root of the tree is shown: interrupts are not where they are a few ticks of the timer, which
    fell into one of the runs by chance."""
    least = TICKS * max((root.width for root in tree.roots), default=0.0)
    return lambda root: root.width > 0 and root.width >= least


def _title(tree: CallTree, account: PathAccount, root: Branch) -> str:
    return (
        f"{inert(tree.cell)}: paths of {inert(tree.variant)} against {inert(account.baseline)}, {root.name}, "
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
    """Return how they are read, and why some are missing."""
    if not account.trees:
        return [_without(account, "tree of calls")]
    texts = [
        f"Means over I/Os. A dot for each call; branches below {100 * SHOWN:g} % of all whose change is below {ALWAYS:g} "
        "instructions are left out. 'old -> new' is taken for one function that was renamed, 'caller + callee' is inlined on one side. Interrupts are "
        "listed apart from the paths that they interrupted.",
        LIMITS,
    ]
    for tree in account.trees:
        place = f"{inert(tree.cell)}, {inert(tree.variant)}"
        for root in filterfalse(_shows(tree), tree.roots):
            texts.append(
                f"{place}: {root.name} take {root.baseline:,.0f} and "
                f"{root.value:,.0f} instructions per I/O, ticks of the timer; their paths are not shown."
            )
        if tree.refused:
            texts.append(f"{place}: no tree of calls: {inert(tree.refused)}.")
    return texts


def _without(account: PathAccount, what: str) -> str:
    if account.anatomy:
        return f"No {what}: its boots were not made."
    return f"No {what}: this experiment counts none (iodelta run --anatomy)."


def flames(account: PathAccount) -> Iterator[Flame]:
    """Yield every tree as a picture, interrupts apart."""
    for tree in account.trees:
        for root in filter(_shows(tree), tree.roots):
            yield Flame(
                _title(tree, account, root),
                f"{root.baseline:,.0f} and {root.value:,.0f} instructions per I/O; a box is as wide as the larger "
                "side, its colour is the change, its callees are below it. The table of paths has its figures.",
                tuple(_boxes(root, 0, 0.0, drawn_width(root))),
            )


def drawn_width(branch: Branch) -> float:
    """Return the larger side of a branch's own instructions, and the widths of all that it calls."""
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
