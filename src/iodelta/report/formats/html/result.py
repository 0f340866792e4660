"""Any result as one HTML file, and the data of its charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from iodelta.ingest.layouts import Layout
from iodelta.report.formats.charts import Scale, figures, sources
from iodelta.report.formats.charts.model import Charts
from iodelta.report.formats.html import pages
from iodelta.report.formats.html.page import Page, page
from iodelta.report.formats.html.write import report
from iodelta.report.stories.kinds import story_of
from iodelta.report.stories.story import PLAIN, Detail
from iodelta.study.comparison import Comparison
from iodelta.study.experiment import Account
from iodelta.study.rows import Shown

if TYPE_CHECKING:
    from iodelta.report.stories.kinds import Result


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
