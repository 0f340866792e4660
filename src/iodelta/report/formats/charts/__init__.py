"""Charts: one module for each family, one altair specification for each, the same for SVG, PNG and the HTML report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from iodelta.report.formats.charts import (
    background,
    bars,
    counters,
    curves,
    distribution,
    forest,
    frequency,
    heat,
    knee,
    order,
    percentiles,
    rounds,
    seconds,
    shift,
    spread,
    sweep,
    timeline,
)
from iodelta.report.formats.charts.model import Effect, Figure, Scale, Source

FAMILIES = {
    "Change": forest,
    "Values": bars,
    "Latency: percentiles": percentiles,
    "Depth": sweep,
    "Depth and jobs": curves,
    "Depth by jobs": heat,
    "Latency against IOPS": knee,
    "Latency: distribution": distribution,
    "Latency: shift of each percentile": shift,
    "Run order and drift": order,
    "Second by second": seconds,
    "Over time": timeline,
    "Spread": spread,
    "Cost of an I/O": counters,
    "CPU clock": frequency,
    "Background load": background,
    "Preparation of the disk": rounds,
}
"""In the order in which they are shown."""


def figures(source: Source) -> Iterator[tuple[str, tuple[Figure, ...]]]:
    """Yield every family that has something to show, with its figures."""
    for title, family in FAMILIES.items():
        made = tuple(family.figures(source))
        if made:
            yield title, tuple(_distinct(made))


def _distinct(made: Sequence[Figure]) -> Iterator[Figure]:
    """Figures with titles that differ: who cannot see them finds them by these."""
    counts = Counter(figure.title for figure in made)
    seen: Counter[str] = Counter()
    for figure in made:
        seen[figure.title] += 1
        again = (
            f" ({seen[figure.title]} of {counts[figure.title]})"
            if counts[figure.title] > 1
            else ""
        )
        yield (
            msgspec.structs.replace(figure, title=f"{figure.title}{again}")
            if again
            else figure
        )


__all__ = ["FAMILIES", "Effect", "Figure", "Scale", "Source", "figures"]
