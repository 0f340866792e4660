"""Findings about the CPUs that a variant's tasks are bound to and the queues of the disks, before any trial."""

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
    findings_of = {}
    everywhere = numbers(attribute(machine, "/sys/devices/system/cpu/online") or "")
    disks = [queues(machine, disk) for disk in target.disks]
    by_node = nodes(machine)
    for variant in experiment.variants:
        cpus = _cpus(variant.knobs, knobs, by_node)
        if cpus and cpus < everywhere and "irq.affinity" not in variant.knobs:
            of_disks = (
                placement_findings(disk, cpus, by_node, variant.name) for disk in disks
            )
            findings_of[variant.name] = tuple(chain.from_iterable(of_disks))
    return {name: findings for name, findings in findings_of.items() if findings}


def _cpus(
    settings: Mapping[str, str], knobs: Mapping[str, Knob], by_node: dict[int, Cpus]
) -> Cpus:
    """Return the CPUs that a variant's settings leave to its tasks."""
    cpus_knob, node = knobs.get("cpus"), knobs.get("numa")
    cpus: Cpus = frozenset()
    if "numa" in settings and isinstance(node, Binding):
        cpus = frozenset().union(
            *(
                by_node.get(number, frozenset())
                for number in node.named(settings["numa"])
            )
        )
    if "cpus" in settings and isinstance(cpus_knob, Binding):
        # taskset runs after numactl, so its CPUs are the ones that hold.
        cpus = cpus_knob.named(settings["cpus"])
    return cpus
