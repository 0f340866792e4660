"""Which trials count as disturbed, and how often a block may be made again for it."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import PaperMachine
from hypothesis import given
from hypothesis import strategies as st
from knob.rooted import target
from numpy.typing import NDArray

from iodelta.lab.quality import Quality, drift, noise
from iodelta.probe.counters import Counters, Snapshot
from iodelta.trial import Direction, Quantity, Trial

MIB = 1 << 20
LIMITS = Quality()


def trial(
    *, read_mib: float = 100, write_mib: float = 0, counters: dict[str, float] | None = None, series: object = ()
) -> Trial:
    """Five seconds of I/O, and what the machine counted meanwhile."""
    done = []
    if read_mib:
        done.append(_direction("read", read_mib))
    if write_mib:
        done.append(_direction("write", write_mib))
    return Trial(
        number=1,
        cell="c",
        variant="v",
        block=0,
        position=0,
        seed=1,
        started=0.0,
        seconds=6.0,
        directions=tuple(done),
        counters=counters or {},
        series={"read.iops": tuple(np.asarray(series, dtype=float))},
    )


def _direction(kind: str, mib: float) -> Direction:
    rate = Quantity.exact(mib * MIB / 5, "B/s")
    return Direction(kind, ios=1000, bytes=int(mib * MIB), runtime_ms=5000, iops=rate, bandwidth=rate)  # type: ignore[arg-type]


def rules(one: Trial, device: str | None = "sdx") -> list[str]:
    found = noise(one, LIMITS, margin=0.01, device=device, moved=one.counters)
    return [finding.rule for finding in found]


def moved(read: float, write: float = 0.0) -> dict[str, float]:
    return {"disk.sdx.read_bytes": read * MIB, "disk.sdx.write_bytes": write * MIB}


def test_a_device_that_does_what_fio_asks_for_is_quiet() -> None:
    assert rules(trial(counters=moved(100))) == []
    assert rules(trial(counters=moved(100 + 25))) == [], "and a little more is nothing"


def test_somebody_who_reads_half_as_much_beside_fio_is_noticed() -> None:
    assert rules(trial(counters=moved(100 + 50))) == ["noise.other-io"]


@given(
    ramp=st.lists(st.floats(0, 1e4), min_size=1, max_size=12),
    counted=st.lists(st.floats(0, 1e4), min_size=1, max_size=12),
    other=st.lists(st.floats(0, 1e4), min_size=24, max_size=24),
)
def test_no_rate_in_the_ramp_accuses_anybody_and_the_rest_is_no_more_than_what_others_did(
    ramp: list[float], counted: list[float], other: list[float]
) -> None:
    """A second a tick: what is noted first after the ramp bounds what others did since then."""
    rates = [*ramp, *counted]
    counters = Counters(PaperMachine({}), target())
    done = [sum(rates[:n]) + sum(other[:n]) for n in range(len(rates) + 1)]
    counters._notes = [(float(n), {"disk.sdx.read_bytes": value}) for n, value in enumerate(done[:-1])]
    after = Snapshot(float(len(rates)), {"disk.sdx.read_bytes": done[-1]}, {}, ())
    seen = counters.since(len(ramp), after)["disk.sdx.read_bytes"] / 512
    assert seen - sum(counted) <= sum(other[: len(rates)]) + 1e-6
    assert seen == pytest.approx(sum(counted) + sum(other[len(ramp) : len(rates)]), abs=1e-6)
    counters._notes = [(0.0, {"disk.sdx.read_bytes": 0.0})]
    assert counters.since(0.5, after) == {}, "nothing was noted after the ramp"


def test_writes_beside_a_load_that_only_reads_are_noticed() -> None:
    assert rules(trial(counters=moved(100, 40))) == ["noise.other-io"]
    assert rules(trial(counters=moved(100, 0.9))) == [], "the odd superblock is not"


def test_cpu_time_stolen_from_a_busy_guest_is_noticed_and_a_single_tick_is_not() -> None:
    busy = {"cpu.user_ms": 2000.0, "cpu.system_ms": 3000.0, "cpu.idle_ms": 5000.0}
    assert rules(trial(counters={**busy, "cpu.steal_ms": 200.0})) == []
    assert rules(trial(counters={**busy, "cpu.steal_ms": 500.0})) == ["noise.steal"]
    assert rules(trial(counters={"cpu.user_ms": 50.0, "cpu.steal_ms": 10.0})) == [], "one tick of an idle guest"


@pytest.mark.parametrize("seconds", [10, 30, 120])
@pytest.mark.parametrize("spread", [0.005, 0.02, 0.05])
@pytest.mark.parametrize("likeness", [0.0, 0.5])
def test_a_steady_run_is_seldom_taken_for_unsteady_also_when_neighbouring_seconds_resemble_each_other(
    seconds: int, spread: float, likeness: float
) -> None:
    rng = np.random.default_rng(seconds)
    alarms = sum(abs(drift(_noise(seconds, spread, likeness, rng).tolist())) > 0.01 for _ in range(500))
    assert alarms <= 0.04 * 500


@pytest.mark.parametrize("seconds", [10, 30])
def test_a_cache_that_runs_full_in_the_middle_of_a_run_is_noticed(seconds: int) -> None:
    rng = np.random.default_rng(seconds)
    level = np.where(np.arange(seconds) < seconds / 2, 1.0, 0.7)
    assert all(drift((level * _noise(seconds, 0.02, 0.0, rng)).tolist()) < -0.01 for _ in range(100))


@pytest.mark.parametrize("fall", [0.1, 0.6, 0.95, 1.0])
def test_a_change_over_the_window_is_relative_to_its_beginning_and_never_below_all_of_it(fall: float) -> None:
    """It was told against the mean of the window: "moved by -129.3 %"."""
    level = np.where(np.arange(12) < 6, 1000.0, 1000.0 * (1 - fall))
    assert drift(level.tolist()) == pytest.approx(-fall)
    assert drift((level + 1)[::-1].tolist()) > 0


def test_short_windows_are_not_asked_whether_they_were_steady() -> None:
    falling = [100.0, 90.0, 80.0, 70.0, 60.0]
    assert rules(trial(series=falling)) == []
    assert rules(trial(series=np.linspace(100, 60, 12))) == ["noise.unsteady"]


def test_the_level_of_what_was_measured_plays_no_part() -> None:
    counters = {**moved(180), "cpu.user_ms": 1000.0, "cpu.steal_ms": 500.0}
    series = np.linspace(100, 60, 12)
    assert rules(trial(counters=counters, series=series)) == rules(trial(counters=counters, series=1e4 * series))


def _noise(seconds: int, spread: float, likeness: float, rng: np.random.Generator) -> NDArray[np.float64]:
    values = rng.normal(size=seconds + 50)
    for i in range(1, len(values)):
        values[i] = likeness * values[i - 1] + (1 - likeness**2) ** 0.5 * values[i]
    return 1 + spread * values[50:]
