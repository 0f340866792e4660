"""The environment: the machine as it was when it was measured."""

from __future__ import annotations

import msgspec

from iodelta.machine import Machine
from iodelta.probe import host
from iodelta.probe.reader import Reader, Section
from iodelta.probe.topology import Target

SCHEMA = 1


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a machine and a target that may change the cost of an I/O; texts as the kernel prints them."""

    schema: int = SCHEMA
    host: Section = {}
    kernel: Section = {}
    sysctl: Section = {}
    mitigations: Section = {}
    cpu: Section = {}
    numa: Section = {}
    memory: Section = {}
    target: Section = {}
    filesystem: Section = {}
    devices: tuple[Section, ...] = ()
    """The target's own block devices first, then every one below them."""
    fio: Section = {}
    limits: Section = {}
    modules: Section = {}
    """Parameters of the drivers that an I/O may pass through, as they were loaded."""
    now: Section = {}
    """Values of that moment only (boot, load, time): recorded, never compared."""
    absent: Section = {}
    """Dotted name -> why the value is missing."""


def environment(machine: Machine, target: Target | None) -> Environment:
    """Read the environment (some 100 ms, nothing is written). Missing values are in ``absent``, never an exception.

    Without a target there are no sections about host."""
    reader = Reader(machine)
    with machine.together("environment"):
        return _environment(reader, target)


def _environment(reader: Reader, target: Target | None) -> Environment:
    return Environment(
        host=host.host(reader),
        kernel=host.kernel(reader),
        sysctl=host.sysctl(reader),
        mitigations=host.mitigations(reader),
        cpu=host.cpu(reader),
        numa=host.numa(reader),
        memory=host.memory(reader),
        target=host.target_section(target) if target else {},
        filesystem=host.filesystem(reader, target) if target else {},
        devices=host.devices(reader, target) if target else (),
        fio=host.fio(reader),
        limits=host.limits(reader),
        modules=host.modules(reader),
        now=host.now(reader),
        absent=reader.absent,
    )
