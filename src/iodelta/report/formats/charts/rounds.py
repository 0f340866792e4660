"""Rounds: the preparation of a disk round by round, with the window that decides whether it is steady."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from iodelta.report.formats.charts.model import Figure, Source, number
from iodelta.report.stories.preparation import SOURCE, answer, tables
from iodelta.study.preparation import DiskAccount
from iodelta.study.words import inert, quantity

if TYPE_CHECKING:
    import altair as alt


def chart(*, log: bool = False) -> alt.LayerChart:
    """Return a line through the rounds; the window is shaded, its average a line."""
    import altair as alt

    from iodelta.report.formats.charts import build

    at = build.x("round", "round", grid=False, tickMinStep=1, format="d")
    first = build.x("first", "round", grid=False, tickMinStep=1, format="d")
    value = build.y("iops", "IOPS", zero=not log, log=log)
    window = alt.Chart(build.data("window"))
    shade = window.mark_rect(style="margin", opacity=0.16).encode(
        x=first, x2=alt.X2("last")
    )
    level = window.mark_rule(style="trend", strokeWidth=2, strokeDash=[6, 3]).encode(
        x=first,
        x2=alt.X2("last"),
        y=build.y("average", "IOPS", zero=not log, log=log),
    )
    line = alt.Chart().mark_line(style="trend", strokeWidth=1.2).encode(x=at, y=value)
    points = alt.Chart().mark_point(style="trend", filled=True, size=34)
    tips = build.tips(
        "round", "said=IOPS", "range=range of five", "slope", "written=size written"
    )
    return build.layered(
        shade, level, line, points.encode(x=at, y=value, tooltip=tips), height=230
    )


def figures(source: Source) -> Iterator[Figure]:
    """Yield one for each disk that was prepared."""
    for place, disk in enumerate(source.prepared, 1):
        if disk.rounds:
            yield figure(
                disk,
                place,
                log=source.logarithmic(False, [seen.iops for seen in disk.rounds]),
            )


def figure(disk: DiskAccount, place: int = 1, *, log: bool = False) -> Figure:
    """Return the rounds of one disk."""
    (table,) = tables(disk)
    window = disk.window
    rows = [
        {
            "round": seen.round,
            "iops": number(seen.iops) if seen.iops or not log else None,
            "said": quantity(seen.iops, "IOPS"),
            "range": row.cells[1].text,
            "slope": row.cells[2].text,
            "written": row.cells[3].text,
        }
        for seen, row in zip(disk.rounds, table.rows, strict=True)
    ]
    marked = (
        []
        if window is None
        else [(window.first + 0.5, window.last + 1.5, number(window.average))]
    )
    return Figure(
        name=f"rounds-{place}",
        spec="rounds-log" if log else "rounds",
        title=f"Preparation of {inert(disk.path)}, round by round",
        alt=answer(disk),
        about=f"Shaded: the five most recent rounds that were checked; dashed: their average. {SOURCE}",
        rows=rows,
        texts={},
        extra={
            "window": [
                {"first": first, "last": last, "average": level}
                for first, last, level in marked
            ]
        },
        head=("round", *table.heads),
        table=[(row.name, *map(attrgetter("text"), row.cells)) for row in table.rows],
        wide=True,
    )
