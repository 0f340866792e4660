"""A known slow-down: the kernel's own throttle on a loop device holds one rate against another."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from .stand import Stand, verdict

pytestmark = pytest.mark.root

EXPERIMENT = """
question = "Is a limit of {rate} reads/s slower than one of 5000?"
baseline = "old"
[target]
path = "{node}"
[workload]
rw = "randread"
bs = "4k"
direct = 1
ioengine = "libaio"
iodepth = 8
[variant.old]
"cgroup.io_max" = "riops=5000"
[variant.new]
"cgroup.io_max" = "riops={rate}"
[design]
trial = "1s"
ramp = "200ms"
budget = "{budget}"
metrics = ["read.iops", "read.lat.mean"]
seed = {seed}
"""


def measure(place: Path, rate: int, seed: int, budget: str) -> tuple[int, dict[str, Any]]:
    """Exit code, and the verdict on IOPS."""
    place.mkdir()
    with Stand(place) as stand:
        text = EXPERIMENT.format(node=stand.loop(), rate=rate, seed=seed, budget=budget)
        (place / "throttle.toml").write_text(text)
        done = stand.start("run", "throttle.toml", "--folder", "folder").wait(600)  # on a busy machine all its budget
        assert done.code in (0, 1, 3), done
        verdicts = verdict(place / "folder")["account"]["judgement"]["verdicts"]
        return done.code, next(one for one in verdicts if one["metric"]["name"] == "read.iops")


def test_two_percent_less_is_called_a_regression_of_two_percent_and_nothing_less_is_not(tmp_path: Path) -> None:
    """Side by side, since a throttled device leaves the CPUs idle: 4900 against 5000, and 5000 against itself.

    At 95 % one A/A comparison in forty is called a regression by one of its metrics, and one interval in twenty misses
    the truth; a machine that others keep busy may not serve 5000 reads a second. None of it three times running.
    """
    with ThreadPoolExecutor() as pool:
        slower = pool.submit(repeated, tmp_path / "slower", 4900, "150s", is_two_percent_slower)
        same = [pool.submit(repeated, tmp_path / f"same{n}", 5000, "40s", is_no_regression) for n in (1, 2, 3)]
        for one in same:
            assert is_no_regression(*one.result()), one.result()
    assert is_two_percent_slower(*slower.result()), slower.result()


def repeated(
    place: Path, rate: int, budget: str, holds: Callable[[int, dict[str, Any]], bool]
) -> tuple[int, dict[str, Any]]:
    """What is measured of a rate: again with other seeds, twice at most, where that does not hold."""
    place.mkdir()
    for seed in (1, 2, 3):
        code, found = measure(place / f"seed{seed}", rate, seed, budget)
        if holds(code, found):
            break
    return code, found


def is_no_regression(code: int, found: dict[str, Any]) -> bool:
    return code in (0, 3) and found["word"] != "regression"


def is_two_percent_slower(code: int, found: dict[str, Any]) -> bool:
    holds: bool = found["change"] is not None and found["change"]["low"] <= -0.02 <= found["change"]["high"]
    return holds and code == 1 and found["word"] == "regression"
