"""Pages of experiments, comparisons and imports: which words stand where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from iodelta.ingest.layouts import Layout
from iodelta.plural import listed
from iodelta.report.formats.charts import Scale, Source, figures, sources
from iodelta.report.formats.charts.model import Charts
from iodelta.report.formats.html import pages
from iodelta.report.formats.html.page import Page, page
from iodelta.report.formats.html.write import report
from iodelta.report.stories import comparison, experiment, shown
from iodelta.report.stories.evidence import sizes, smallest
from iodelta.report.stories.kinds import story_of
from iodelta.report.stories.statements import intervals, recommendation
from iodelta.report.stories.story import PLAIN, Detail, Row, Table
from iodelta.study.comparison import Comparison
from iodelta.study.experiment import Account, headline
from iodelta.study.rows import Shown
from iodelta.study.words import duration, inert, size

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Result

FEW = 4
"""Values of a fact that are named, and rows of a table that is a small one."""

STATES = {
    "complete": "complete",
    "budget": "ended by its budget",
    "interrupted": "interrupted",
    "running": "running",
}


def of_account(account: Account, source: Source, charts: Charts) -> Page:
    """Return an experiment."""
    advice = recommendation(account)
    return page(
        experiment.of_account(account),
        source,
        charts,
        answers=_shared(
            _sentences(headline(account)), account.plan.experiment.baseline
        ),
        recommendation=advice,
        facts=tuple(_facts(account)),
    )


def of_comparison(result: Comparison, source: Source, charts: Charts) -> Page:
    """Results from anywhere, compared."""
    rows = result.compared
    answers = []
    for variant in result.variants:
        of_variant = [row for row in rows if row.variant == variant]
        answers.append(comparison.headline(result, variant, of_variant))
    bases = sorted({row.basis for row in rows})
    runs = {(row.cell, ""): row.runs[0] for row in rows}
    runs |= {(row.cell, row.variant): row.runs[1] for row in rows}
    facts = (
        ("cells", str(len({row.cell for row in rows}))),
        ("runs", str(sum(runs.values()))),
        ("margin", f"{100 * result.margin:g} %"),
        ("based on", ", ".join(bases) or "no number in common"),
    )
    return page(
        comparison.of_comparison(result),
        source,
        charts,
        answers=_shared(answers, result.baseline),
        facts=facts,
    )


def of_shown(results: Shown, charts: Charts) -> Page:
    """Return what results of others hold, nothing compared."""
    made = page(shown.of_shown(results), None, charts)
    names = ", ".join(inert(PurePath(path).name or path) for path in results.paths)
    rows = results.rows
    facts = [("runs", str(results.runs)), ("files", str(results.files))]
    facts += _several("fio", [row.fio_version for row in rows])
    facts += _several("engine", [row.ioengine for row in rows])
    facts += _several("work", [row.rw for row in rows])
    facts += _several("block size", [size(row.bs) if row.bs else None for row in rows])
    title = f"{names}: {made.title}" if names else made.title
    return msgspec.structs.replace(
        made, title=title, facts=tuple(facts), tables=joined(made.tables)
    )


def _several(name: str, values: Iterable[str | None]) -> Iterator[tuple[str, str]]:
    """Yield a fact with its first values, each once; nothing where none is known."""
    known = list(dict.fromkeys(map(inert, filter(None, values))))
    if known:
        yield name, listed(known, FEW)


def joined(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Small tables with the same columns as one, whose rows have the titles in front: dozens of one row each are no
    table that can be read down."""
    small = len(tables) > FEW and all(len(table.rows) <= FEW for table in tables)
    alike = {(table.first, table.heads, table.words) for table in tables}
    if not small or len(alike) != 1:
        return tuple(tables)
    rows: list[Row] = []
    for table in tables:
        rows += [msgspec.structs.replace(row, group=table.title) for row in table.rows]
    return (msgspec.structs.replace(tables[0], title="All runs", rows=tuple(rows)),)


def _shared(answers: Sequence[str], baseline: str) -> tuple[str, ...]:
    """Return the answers, one sentence for all variants with the same answer."""
    groups: dict[str, list[str]] = {}
    middle = f" against {inert(baseline)}: "
    for answer in answers:
        # An answer that is not about a variant has no name before it.
        *name, rest = answer.split(middle, 1)
        groups.setdefault(rest, []).extend(name)
    names_have_commas = "," in "".join(chain.from_iterable(groups.values()))
    between = "; " if names_have_commas else ", "
    return tuple(
        f"{between.join(names)}{middle}{rest}" if names else rest
        for rest, names in groups.items()
    )


def _sentences(text: str) -> tuple[str, ...]:
    """Return one line per variant."""
    # The dots of an interval end no sentence.
    parts = re.split(r"(?<!\.)\. ", text)
    return tuple(part if part.endswith(".") else f"{part}." for part in parts if part)


def _facts(account: Account) -> list[tuple[str, str]]:
    rules, experiment = account.plan.rules, account.plan.experiment
    blocks = account.blocks.values()
    least_and_most = dict.fromkeys(map(str, (min(blocks), max(blocks))))
    seen = [
        bound.size for bound in map(smallest, intervals(account)) if bound is not None
    ]
    facts = [
        ("trials", f"{account.trials:,}"),
        ("blocks of a cell", " to ".join(least_and_most)),
        ("time", duration(account.spent)),
        ("margin", f"{100 * experiment.margin:g} %"),
        ("level", f"{100 * (1 - rules.alpha):g} %"),
    ]
    if seen:
        facts.append(("smallest change it could see", sizes(seen)))
    state = STATES.get(account.state, "ended early")
    return [*facts, ("state", state)]


def html_of(result: Result, charts: Charts, detail: Detail = PLAIN) -> bytes:
    """Return the page of any result. The same contents give the same bytes."""
    return report(page_of(result, charts, detail))


def page_of(result: Result, charts: Charts, detail: Detail = PLAIN) -> Page:
    """Return the page of any result, before it is laid out."""
    if isinstance(result, Account):
        return pages.of_account(result, sources.of_account(result, (), {}), charts)
    if isinstance(result, Comparison):
        return pages.of_comparison(result, sources.verdicts_of(result), charts)
    if isinstance(result, Shown):
        return pages.of_shown(result, charts)
    return page(story_of(result, detail), None, charts)


def charts_of(
    comparison: Comparison,
    layouts: Sequence[Layout],
    paths: Sequence[str],
    baseline: str | None = None,
    scale: Scale = "auto",
) -> Charts:
    """Return the charts of a comparison, drawn from the runs it was made of."""
    source = sources.of_comparison(comparison, layouts, paths, baseline)
    return tuple(figures(msgspec.structs.replace(source, scale=scale)))


def charts_of_runs(layout: Layout, scale: Scale = "auto") -> Charts:
    """Return the charts of results of which nothing is compared."""
    return tuple(
        figures(msgspec.structs.replace(sources.of_layout(layout), scale=scale))
    )
