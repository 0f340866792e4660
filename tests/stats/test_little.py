"""Little's law over a trial and over a change, and what one I/O costs the CPU."""

from __future__ import annotations

import math

import numpy as np
import pytest

from iodelta.stats.cost import switches_per_io, system_ns_per_io
from iodelta.stats.little import together
from iodelta.trial import Direction, Kind, Latency, Quantity, Trial


def latency(mean_ns: float, rounding: float = 0.0) -> Latency:
    mean = Quantity(mean_ns, mean_ns - rounding, mean_ns + rounding, "ns")
    nothing = Quantity.exact(0.0, "ns")
    return Latency(1, mean, nothing, nothing, nothing)


def direction(iops: float, mean_ns: float, *, kind: Kind = "read", rounding: float = 0.0) -> Direction:
    rate = Quantity.exact(iops, "IOPS")
    return Direction(kind, int(10 * iops), int(40960 * iops), 10_000, rate, rate, lat=latency(mean_ns, rounding))


def trial(*directions: Direction, sys_cpu: float = math.nan, switches: int = 0) -> Trial:
    return Trial(7, "c", "a", 0, 0, 1, 0.0, 11.0, directions, sys_cpu=sys_cpu, context_switches=switches)


def test_a_few_noisy_blocks_leave_it_open() -> None:
    rng = np.random.default_rng(3)
    found = together(rng.normal(0, 0.05, 8), rng.normal(0, 0.05, 8), margin=0.01)
    assert found.effects == "inconclusive"
    alone = together([0.1], [0.3], margin=0.01)
    assert (alone.effects, alone.low, alone.high) == ("inconclusive", None, None)
    with pytest.raises(ValueError, match="same blocks"):
        together([0.1, 0.2], [0.1], margin=0.01)


def test_the_cost_of_an_io_is_cpu_time_and_switches_over_all_directions() -> None:
    """10 s at 50 % of a CPU is 5 s for a million I/Os: 5 us each."""
    mixed = trial(direction(70e3, 1.0), direction(30e3, 1.0, kind="write"), sys_cpu=50.0, switches=250_000)
    assert system_ns_per_io(mixed) == pytest.approx(5000.0)
    assert switches_per_io(mixed) == pytest.approx(0.25)


def test_a_cost_that_was_not_measured_is_no_number() -> None:
    for unknown in (trial(), trial(direction(1e5, 1.0))):
        assert math.isnan(system_ns_per_io(unknown))
        assert math.isnan(switches_per_io(unknown))
