"""A known slow-down: the kernel's own throttle on a loop device holds one rate against another."""

from __future__ import annotations

import pytest

from .stand import Stand, verdict

pytestmark = [pytest.mark.root, pytest.mark.beside]

EXPERIMENT = """
question = "Is a limit of 250 reads/s slower than one of 500?"
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
"cgroup.io_max" = "riops=500"
[variant.new]
"cgroup.io_max" = "riops=250"
[design]
trial = "400ms"
ramp = "200ms"
budget = "10m"
metrics = ["read.iops"]
seed = 1
"""


def test_half_the_rate_is_called_a_regression_of_half(stand: Stand) -> None:
    """So few reads a second that a machine that others keep busy serves them, and a change that nothing else hides."""
    (stand.place / "throttle.toml").write_text(EXPERIMENT.format(node=stand.loop()))
    done = stand.start("run", "throttle.toml", "--folder", "folder").wait(700)
    assert done.code == 1, done
    (found,) = verdict(stand.place / "folder")["account"]["judgement"]["verdicts"]
    assert found["word"] == "regression"
    assert found["change"]["value"] == pytest.approx(-0.5, abs=0.1)
    assert found["change"]["low"] < found["change"]["value"] < found["change"]["high"]
