"""Whether the measured window was steady, for one long run and for all runs of a cell together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from iodelta.audit.model import Evidence, Mark, rule

LONG = 20
"""Seconds from which a single run is long enough to judge."""

DRIFT = 0.1
"""Relative change over the window of a single run that is too large for noise of a steady state."""

SURE = 0.01
"""Significance level of the sign test over the slopes of many runs."""


@rule(
    "steady.not-yet",
    "warning",
    says="the run was still changing while it was measured",
    needs="per-second values over 20 s or more",
    remedy="precondition the device or use a longer ramp_time",
)
def not_yet(evidence: Evidence) -> Iterator[Mark]:
    if evidence.arms:
        return
    for index, run in enumerate(evidence.runs):
        for name, series in run.series.items():
            if len(series) < LONG or not name.endswith(".iops"):
                continue
            # Importing it takes as long as reading a file.
            from iodelta.stats.steady import steadiness

            course = steadiness(series, ramp=0, margin=2 * DRIFT)
            if not course.steady:
                yield Mark((index,), f"{name}: {course.why}")
                break


@rule(
    "steady.slope",
    "warning",
    says="the runs of a cell all drift the same way while they are measured",
    needs="per-second values of several runs of one variant",
    remedy="use a longer ramp, the same for all variants: a verdict on the middle of a drift depends on its length",
)
def slope(evidence: Evidence) -> Iterator[Mark]:
    if not evidence.arms or not any(run.series for run in evidence.runs):
        return
    from iodelta.stats.guards import balance
    from iodelta.stats.steady import window_slope

    for (cell, variant), indexes in evidence.of_arm().items():
        slopes = [window_slope(series) for series in _rates(evidence, indexes)]
        if not slopes:
            continue
        rising = sum(value > 0 for value in slopes)
        middle = sorted(slopes)[len(slopes) // 2]
        if (
            balance(rising, len(slopes) - rising) < SURE
            and abs(middle) > evidence.margin
        ):
            share = f"{max(rising, len(slopes) - rising)} of {len(slopes)}"
            yield Mark(
                tuple(indexes),
                f"{share} runs of {variant} ({cell}) drift by about {middle:+.1%} over the window",
            )


def _rates(evidence: Evidence, indexes: Iterable[int]) -> Iterator[Sequence[float]]:
    """The IOPS series of these runs with at least three values, the fewest for a slope."""
    for index in indexes:
        for name, series in evidence.runs[index].series.items():
            if name.endswith(".iops") and len(series) > 2:
                yield series


RULES = (not_yet, slope)
