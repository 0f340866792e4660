"""Where a variant's tasks would run is judged before any trial: the machine of the report of 2026-03."""

from __future__ import annotations

import pytest
from fakes import PaperMachine
from knob.rooted import target

from iodelta.experiment import Experiment, parse
from iodelta.knob import knob
from iodelta.lab.setup import placement

FIRST = (24, 36, 72, 84, 96, 108, 120, 132, 144, 156, 168, 180, 48, 60, 0, 12)

MACHINE = PaperMachine(
    {f"/sys/block/ublkb0/mq/{queue}/cpu_list": f"{first}-{first + 11}\n" for queue, first in enumerate(FIRST)}
    | {f"/sys/devices/system/node/node{node}/cpulist": f"{24 * node}-{24 * node + 23}\n" for node in range(8)}
    | {"/sys/devices/system/cpu/online": "0-191\n"}
)


def question(settings: str) -> Experiment:
    return parse(f"[workload]\nrw = 'randread'\n[variant.anywhere]\n[variant.bound]\n{settings}\n")


def rules(settings: str) -> dict[str, list[str]]:
    asked = question(settings)
    knobs = {name: knob(name, MACHINE, target("ublkb0")) for name in asked.knob_names()}
    found = placement(MACHINE, asked, target("ublkb0"), knobs)
    return {variant: [finding.rule for finding in findings] for variant, findings in found.items()}


@pytest.mark.parametrize("settings", ["cpus = '24-47'", "numa = '1'", "cpus = 'node:1'"])
def test_one_node_of_eight_is_named_however_it_is_spelt(settings: str) -> None:
    assert rules(settings) == {"bound": ["placement.few-queues"]}


@pytest.mark.parametrize("settings", ["cpus = 'device-queues'", "cpus = '0-191'", ""])
def test_tasks_that_reach_every_queue_or_may_run_anywhere_are_not_named(settings: str) -> None:
    assert rules(settings) == {}


def test_taskset_has_the_last_word_over_numactl() -> None:
    assert rules("numa = '0'\ncpus = '1-11'") == {"bound": ["placement.few-queues", "placement.disjoint"]}
