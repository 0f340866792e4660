"""A row of kernels, oldest first: where each stands by every count, and what it changes to the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from iodelta.path.judge import PathAccount
from iodelta.path.tallies import Tally, change
from iodelta.report.stories.anatomy import NOUNS
from iodelta.study.words import inert, wrap
from iodelta.trial import Kind

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
