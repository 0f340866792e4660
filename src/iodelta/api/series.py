"""Series for Python programs, from a stored history or a served one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from iodelta.plural import plural

if TYPE_CHECKING:
    import polars

    from iodelta.history.store import Line


class Series:
    """One metric of one cell and variant on one machine, over its nights."""

    def __init__(self, line: Line) -> None:
        self._line = line

    @property
    def line(self) -> Line:
        """Return the series as the database has it."""
        return self._line

    @property
    def machine(self) -> str:
        return self._line.key.machine

    @property
    def cell(self) -> str:
        return self._line.cell

    @property
    def variant(self) -> str:
        return self._line.variant

    @property
    def metric(self) -> str:
        return self._line.key.metric

    def points(self) -> polars.DataFrame:
        """Return a row for each night, oldest first, with the columns of ``iodelta history export``."""
        from iodelta.history.exchange import frame

        table: polars.DataFrame = frame([self._line])
        return table

    def _repr_html_(self) -> str:
        """Return the page of ``iodelta history show --format html``: nights with intervals, and steps. A series alone
        does not know how its epochs differ."""
        from iodelta.api.results import framed, with_pictures
        from iodelta.history.commits import Order
        from iodelta.history.courses import courses_of
        from iodelta.history.scan import scanned
        from iodelta.report.formats.charts.course import charts_of
        from iodelta.report.formats.html.page import page
        from iodelta.report.formats.html.write import report
        from iodelta.report.stories.course import of_courses

        courses = courses_of([self._line], scanned([self._line], Order()))
        story = of_courses(courses, len(self._line.points))
        return framed(
            with_pictures(report(page(story, None, ())).decode(), charts_of(courses))
        )

    def __repr__(self) -> str:
        nights = plural(len(self._line.points), "night")
        return f"<Series: {self.machine}, {self.cell}, {self.variant}, {self.metric}, {nights}>"


def chosen(lines: Iterable[Line], wanted: Mapping[str, str]) -> list[Series]:
    """Return the series whose machine, cell, variant and metric are these words."""

    def is_wanted(series: Series) -> bool:
        return all(getattr(series, name) == word for name, word in wanted.items())

    return list(filter(is_wanted, map(Series, lines)))
