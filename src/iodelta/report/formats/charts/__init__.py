"""Charts in six families over one source; their specifications are the same for SVG, PNG and the HTML report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from iodelta.report.formats.charts import changes, depths, times, trials
from iodelta.report.formats.charts import values as of_values
from iodelta.report.formats.charts.model import Effect, Figure, Scale, Source

CHAPTERS: dict[str, Callable[[Source], Iterator[Figure]]] = {
    "Change": changes.changes,
    "Values": of_values.bars,
    "Latency: percentiles": of_values.percentiles,
    "Depth and jobs": depths.curves,
    "Depth by jobs": depths.tiles,
    "Latency against IOPS": depths.against_rate,
    "Latency: distribution": of_values.distributions,
    "Latency: shift of each percentile": changes.shifts,
    "Run order and drift": trials.in_order,
    "Second by second": times.runs,
    "Over time": times.logs,
    "Spread": of_values.spread,
    "Cost of an I/O": changes.costs,
    "CPU clock": trials.clocks,
    "Background load": trials.backgrounds,
    "Preparation of the disk": times.rounds,
}
"""In the order in which they are shown."""


def figures(source: Source) -> Iterator[tuple[str, tuple[Figure, ...]]]:
    """Yield every chapter that has something to show, with its figures, whose titles differ: who cannot see them finds
    them by these."""
    for chapter, charts in CHAPTERS.items():
        made = list(charts(source))
        counts = Counter(figure.title for figure in made)
        seen: Counter[str] = Counter()
        for place, figure in enumerate(made):
            seen[figure.title] += 1
            if counts[figure.title] > 1:
                again = f" ({seen[figure.title]} of {counts[figure.title]})"
                title = f"{figure.title}{again}"
                made[place] = msgspec.structs.replace(figure, title=title)
        if made:
            yield chapter, tuple(made)


__all__ = ["CHAPTERS", "Effect", "Figure", "Scale", "Source", "figures"]
