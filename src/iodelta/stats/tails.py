"""Latency percentiles from fio's bins: their values, how finely each is known, and when one is not known at all."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from iodelta.plural import plural
from iodelta.stats.special import ndtr, stdtrit
from iodelta.trial import BINS, Finding, Histogram, bin_edges

Floats = NDArray[np.float64]

BEYOND = 100
"""Samples that must lie beyond a percentile: with fewer, the sampling error alone exceeds 10 % of the tail's count."""

MIN_BLOCKS = 5
"""Fewest blocks for a bootstrap."""

RESAMPLES = 1999


class Percentile(msgspec.Struct, frozen=True):
    """One percentile in ns, and how finely its counts resolve it.

    ``bin_width``, ``interpolation`` and ``sampling`` are relative to the value: the width of the bin it fell in, how
    far interpolation inside that bin can be off, and the sampling sd ``sqrt(p(1-p)/N) / density``. Latencies follow
    each other closely, so ``sampling`` is a floor: the spread between blocks is the inference.
    """

    p: float
    value: float
    bin_width: float
    interpolation: float
    sampling: float
    samples: int

    @property
    def resolution(self) -> float:
        """The smallest relative difference these counts can tell: interpolation and sampling together."""
        return math.hypot(self.interpolation, self.sampling)


def samples_needed(p: float) -> int:
    """I/Os in one histogram for the ``p`` quantile to be given: 10^4 for p99, 10^5 for p99.9."""
    return math.ceil(round(BEYOND / min(p, 1.0 - p), 6))


def name(p: float) -> str:
    """``p99.9`` for 0.999."""
    return f"p{100 * p:.10g}"


def percentile(
    histogram: Histogram, p: float, *, place: str = ""
) -> Percentile | Finding:
    """Return the ``p`` quantile (0 < p < 1) of one histogram, or the finding that says why it cannot be given."""
    refused = refusal(histogram, p, place=place)
    if refused is not None:
        return refused
    value = histogram.quantile(p)
    width, interpolation = _within_bin(histogram, value)
    # The quantiles one binomial sd to either side: the density is that of the counts between them (Woodruff 1952).
    step = math.sqrt(p * (1.0 - p) / histogram.total)
    below = histogram.quantile(max(p - step, p / 2))
    above = histogram.quantile(min(p + step, (1 + p) / 2))
    sampling = (above - below) / (2 * value) if value else 0.0
    return Percentile(p, value, width, interpolation, sampling, histogram.total)


def refusal(histogram: Histogram, p: float, *, place: str = "") -> Finding | None:
    """Return why ``histogram`` cannot give its ``p`` quantile, or None when it can.

    Fewer than ``BEYOND`` samples beyond it, or a value in fio's last bin, which holds everything longer than 17 s.
    """
    total = histogram.total
    if total < samples_needed(p):
        return Finding(
            "tails.too-few-samples",
            "warning",
            place,
            f"{name(p)} of {total} I/Os has {plural(int(total * min(p, 1 - p)), 'sample')} beyond it; "
            f"{BEYOND} are needed",
            f"run until {samples_needed(p)} I/Os are done, or use the percentile pooled over blocks",
        )
    if histogram.quantile(p) >= bin_edges(BINS - 1)[0]:
        return Finding(
            "tails.cap-bin",
            "warning",
            place,
            f"{name(p)} is in fio's last latency bin, which holds everything longer than 17 s",
            "lower the load until latencies stay under 17 s",
        )
    return None


def tabulate(histograms: Sequence[Histogram]) -> tuple[Floats, Floats, Floats]:
    """Counts of shape (histograms, bins in use), and the lower and upper edges in ns of those bins."""
    used = sorted(set().union(*(histogram.indexes for histogram in histograms)))
    column = {index: at for at, index in enumerate(used)}
    counts = np.zeros((len(histograms), len(used)))
    for row, histogram in enumerate(histograms):
        counts[row, [column[index] for index in histogram.indexes]] = histogram.counts
    edges = np.array([bin_edges(index) for index in used], dtype=float).reshape(-1, 2)
    return counts, edges[:, 0], edges[:, 1]


def quantiles(counts: Floats, low: Floats, high: Floats, p: float) -> Floats:
    """The ``p`` quantile in ns of each row of ``counts``, as ``Histogram.quantile``; nan for an empty row."""
    reached = np.cumsum(counts, axis=1)
    total = reached[:, -1] if reached.shape[1] else np.zeros(len(counts))
    filled = total > 0
    values = np.full(len(counts), np.nan)
    rank = p * total[filled]
    # Sums of whole counts are exact in doubles, but p times a total need not be: half a count cannot matter.
    at = np.minimum(
        (reached[filled] < rank[:, None] - 1e-9 * total[filled, None]).sum(axis=1),
        counts.shape[1] - 1,
    )
    rows = np.flatnonzero(filled)
    inside = counts[rows, at]
    share = np.clip(
        (rank - (reached[rows, at] - inside)) / np.where(inside > 0, inside, 1.0),
        0.0,
        1.0,
    )
    values[filled] = low[at] + (high[at] - low[at]) * share
    return values


def resampling_weights(blocks: int, seed: int, resamples: int = RESAMPLES) -> Floats:
    """Return how often each block is drawn in each bootstrap sample: shape (resamples, blocks)."""
    return (
        np.random.default_rng(seed)
        .multinomial(blocks, np.full(blocks, 1.0 / blocks), resamples)
        .astype(float)
    )


def expanded_interval(drawn: Floats, blocks: int, level: float) -> Floats:
    """Expanded percentile interval of bootstrap values ``drawn`` (resamples, ...): shape (2, ...)."""
    tail = ndtr(
        math.sqrt(blocks / (blocks - 1)) * stdtrit(blocks - 1, (1.0 - level) / 2.0)
    )
    return np.asarray(np.quantile(drawn, [tail, 1.0 - tail], axis=0))


def too_few_blocks(blocks: int, place: str) -> Finding:
    """Return the refusal of everything that resamples blocks and has fewer than ``MIN_BLOCKS``."""
    return Finding(
        "tails.too-few-blocks",
        "warning",
        place,
        f"too few blocks to resample: {blocks}, and {MIN_BLOCKS} are needed",
        f"run at least {MIN_BLOCKS} blocks",
    )


def _within_bin(histogram: Histogram, value: float) -> tuple[float, float]:
    """Relative width of the bin that holds ``value``, and the relative error that interpolation can make inside it.

    A density that is linear over the bin puts an interpolated value wrong by at most 1/16 of the difference of the
    neighbouring counts; a local peak or a discrete clock shows as a second difference. At most half a bin.
    """
    counts = dict(zip(histogram.indexes, histogram.counts, strict=True))
    at = max(
        (index for index in histogram.indexes if bin_edges(index)[0] <= value),
        default=0,
    )
    low, high = bin_edges(at)
    if not value:
        return 0.0, 0.0
    here, before, after = (
        counts.get(at, 0),
        counts.get(at - 1, 0),
        counts.get(at + 1, 0),
    )
    slope, bend = abs(after - before), abs(after - 2 * here + before)
    share = min(0.5, max(slope / 16, bend / 4) / here) if here else 0.5
    width = (high - low) / value
    # Below 128 ns a bin is one nanosecond, fio's own resolution: nothing is interpolated away.
    return width, share * width
