"""What is odd about where a variant's tasks would run, seen from the queues of the disks: known before any trial."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from iodelta.experiment import Experiment
from iodelta.knob import Knob
from iodelta.knob.affinity import Binding
from iodelta.machine import Machine
from iodelta.probe.queues import Cpus, nodes, numbers, placement_findings, queues
from iodelta.probe.sysfs import attribute
from iodelta.probe.topology import Target
from iodelta.trial import Finding


def placement(
    machine: Machine, experiment: Experiment, target: Target, knobs: Mapping[str, Knob]
) -> dict[str, tuple[Finding, ...]]:
    """Findings of each variant whose tasks are bound to some CPUs only; none for one that may run anywhere.

    Interrupts are taken as they are now: a variant that moves them is judged by where they were.
    """
    found = {}
    everywhere = numbers(attribute(machine, "/sys/devices/system/cpu/online") or "")
    disks = [queues(machine, disk) for disk in target.disks]
    by_node = nodes(machine)
    for variant in experiment.variants:
        cpus = _cpus(variant.knobs, knobs, by_node)
        if cpus and cpus < everywhere and "irq.affinity" not in variant.knobs:
            of_disks = (
                placement_findings(disk, cpus, by_node, variant.name) for disk in disks
            )
            found[variant.name] = tuple(chain.from_iterable(of_disks))
    return {name: findings for name, findings in found.items() if findings}


def _cpus(
    settings: Mapping[str, str], knobs: Mapping[str, Knob], by_node: dict[int, Cpus]
) -> Cpus:
    """The CPUs that a variant's settings leave to its tasks."""
    own, node = knobs.get("cpus"), knobs.get("numa")
    cpus: Cpus = frozenset()
    if "numa" in settings and isinstance(node, Binding):
        cpus = frozenset().union(
            *(
                by_node.get(number, frozenset())
                for number in node.named(settings["numa"])
            )
        )
    if "cpus" in settings and isinstance(own, Binding):
        # taskset is the later word, so it has the last.
        cpus = own.named(settings["cpus"])
    return cpus
