"""The tables of read policies have a row for every policy, also for one whose trials completed nothing."""

from __future__ import annotations

from iodelta.experiment import parse
from iodelta.parts.scenarios.policy_tables import tables
from iodelta.trial import Direction, Quantity, Trial

TOML = """
question = "Which policy reads faster?"
baseline = "pid"
[target]
path = "/srv/measured"
size = "64MiB"
[variant.pid]
[variant.queue]
"sched" = "none"
[workload.random]
rw = "randread"
bs = "4k"
iodepth = 32
"""


def stalled(number: int, variant: str) -> Trial:
    """A trial in whose time no read was completed: fio prints a rate of 0 and no latency."""
    read = Direction("read", 0, 0, 300, Quantity.exact(0, "IOPS"), Quantity.exact(0, "B/s"))
    return Trial(number, "random", variant, 0, number, 1, 1.7e9, 0.3, (read,))


def test_a_policy_whose_trials_completed_nothing_keeps_its_row() -> None:
    experiment = parse(TOML, "x.toml")
    trials = [stalled(number, name) for number, name in enumerate(("pid", "queue"))]
    rows = [line.split() for line in tables(experiment, trials) if line.split()[-5:] == ["0", "0", "-", "-", "-"]]
    assert [row[-6] for row in rows] == ["pid", "queue"]
