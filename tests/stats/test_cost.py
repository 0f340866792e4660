"""What one I/O costs the CPU."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from iodelta.stats.cost import switches_per_io, system_ns_per_io
from iodelta.trial import Direction, Kind, Quantity, Trial


def trial(**rates: float) -> Trial:
    done = []
    for kind, rate in rates.items():
        iops, ios = Quantity.exact(rate, "IOPS"), int(10 * rate)
        done.append(Direction(_kind(kind), ios, 4096 * ios, 10_000, iops, iops))
    return Trial(7, "c", "a", 0, 0, 1, 0.0, 11.0, tuple(done))


def _kind(name: str) -> Kind:
    return "read" if name == "read" else "write"


def test_the_cost_of_an_io_is_cpu_time_and_switches_over_all_directions() -> None:
    """10 s at 50 % of a CPU is 5 s for a million I/Os: 5 us each."""
    mixed = replace(trial(read=70e3, write=30e3), sys_cpu=50.0, context_switches=250_000)
    assert system_ns_per_io(mixed) == pytest.approx(5000.0)
    assert switches_per_io(mixed) == pytest.approx(0.25)


def test_a_cost_that_was_not_measured_is_no_number() -> None:
    for unknown in (trial(), trial(read=1e5)):
        assert math.isnan(system_ns_per_io(unknown))
        assert math.isnan(switches_per_io(unknown))
