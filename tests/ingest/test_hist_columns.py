"""A histogram log over time holds every I/O of the log, in columns and bands, whatever its length."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iodelta.ingest import Refusal, hist_columns
from iodelta.ingest.hist_logs import summarise
from iodelta.ingest.model import Heat
from iodelta.trial import bin_index

Row = tuple[int, dict[int, int]]

rows = st.lists(
    st.tuples(st.integers(1, 3000), st.dictionaries(st.integers(0, 20 * 10**9), st.integers(1, 10**5), max_size=4)),
    min_size=1,
    max_size=40,
)


def heat_of(text: str) -> tuple[Heat, ...]:
    found = summarise("x_clat_hist.1.log", text.encode(), io.BytesIO())
    assert not isinstance(found, Refusal), found
    return found.heats


def text_of(spoken: list[Row], coarse: int = 0, kind: int = 0) -> str:
    lines = []
    for time, latencies in spoken:
        counts = [0] * (1856 >> coarse)
        for latency, count in latencies.items():
            counts[bin_index(latency) >> coarse] += count
        lines.append(", ".join(map(str, [time, kind, 4096, *counts])) + "\n")
    return "".join(lines)


def arrays(heat: Heat) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    ends, edges = np.frombuffer(heat.ends, dtype=np.int64), np.frombuffer(heat.edges)
    return ends, edges, np.frombuffer(heat.counts).reshape(len(ends), -1), np.frombuffer(heat.quantiles).reshape(2, -1)


@given(rows, st.integers(1, 30), st.integers(0, 6))
def test_every_io_is_in_the_column_and_band_of_its_time_and_latency(steps: list[Row], most: int, coarse: int) -> None:
    times = np.cumsum([step for step, _ in steps]).tolist()
    spoken = [(time, latencies) for time, (_, latencies) in zip(times, steps, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hist_columns, "COLUMNS", most)
        (heat,) = heat_of(text_of(spoken, coarse))
    ends, edges, counts, quantiles = arrays(heat)
    assert len(ends) <= most
    assert ends[-1] == times[-1]
    assert counts.sum() == sum(count for _, latencies in spoken for count in latencies.values())
    for time, latencies in spoken:
        column = int(np.searchsorted(ends, time))
        for latency in latencies:
            band = min(int(np.searchsorted(edges, latency, side="right")) - 1, counts.shape[1] - 1)
            assert counts[column, band] > 0
    for column in range(len(ends)):
        begin = ends[column - 1] if column else 0
        own = [(t, n) for time, each in spoken if begin < time <= ends[column] for t, n in each.items()]
        assert counts[column].sum() == sum(n for _, n in own)
        assert np.isnan(quantiles[0, column]) == (not own)
        if own:
            all_of_it = np.sort(np.repeat([t for t, _ in own], [n for _, n in own]))
            median = all_of_it[(len(all_of_it) - 1) // 2]
            if median < 17 * 10**9 and coarse == 0:  # the last bin takes all that is longer
                assert quantiles[0, column] == pytest.approx(median, rel=1 / 64, abs=1.0)


def test_two_directions_are_two_maps() -> None:
    text = text_of([(1000, {100: 5})]) + text_of([(1000, {9000: 7})], kind=1)
    assert [(heat.kind, arrays(heat)[2].sum()) for heat in heat_of(text)] == [("read", 5), ("write", 7)]


def test_jobs_that_share_a_histogram_log_are_not_drawn() -> None:
    job = text_of([(1000, {100: 5}), (2000, {100: 5})])
    assert heat_of(job + job) == ()
