"""Bind the load to CPUs and memory nodes, by words in front of its command: nothing else on the machine is bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from iodelta.errors import KnobError, MachineError
from iodelta.knob.base import EMPTY, Transient, refuse, whole
from iodelta.knob.shell import NoScript, Output, Script
from iodelta.probe.queues import first_cpus, nodes, numbers, queues, spelled

DEVICE_QUEUES = "device-queues"


class Binding(Transient):
    """Binds the load to a list of numbers (``0-3,8``) through ``program``, which is in ``package``."""

    program: ClassVar[str]
    package: ClassVar[str]
    status_line: ClassVar[str]
    """Name of the line in /proc/PID/status that lists what a process may use."""
    harmless = True
    nothing_to_restore = "only the load was bound, so there is nothing to restore"

    def bound(self, value: str) -> str:
        """Return the list that a process started by the launcher actually gets. Raises KnobError."""
        raise NotImplementedError

    def named(self, value: str) -> frozenset[int]:
        """Return the numbers that a value stands for; empty for an empty value."""
        return numbers(value)

    def available(self) -> str | None:
        try:
            self.machine.run([self.program, "--version"])
        except MachineError:
            return f"needs {self.program} (package {self.package})"
        return None

    def allowed(self) -> str:
        return f"numbers within {self.read()}, as in 0-3,8"

    def read(self) -> str:
        return labelled_value(self.machine.read("/proc/self/status"), self.status_line)

    def check(self, value: str, beside: Mapping[str, str] = EMPTY) -> None:
        wanted = self.named(value)
        if not wanted or not wanted <= numbers(self.read()):
            raise refuse(self.name, value, self.allowed())

    def apply(self, value: str) -> None:
        """Nothing is set on the machine: the launcher binds the load."""

    def verify(self, value: str) -> None:
        bound = self.bound(value)
        if numbers(bound) != self.named(value):
            raise KnobError(
                f"requested {value}, but a process bound this way may use {bound or 'nothing'}",
                place=self.name,
                remedy=f"allowed: {self.allowed()}",
            )

    def _run(self, *words: str) -> str:
        done = self.machine.run(words)
        if done.returncode != 0:
            raise KnobError(
                f"{' '.join(words)} failed: {done.error_text}",
                place=self.name,
                remedy=f"allowed: {self.allowed()}",
            )
        return done.text


class Cpus(Binding):
    """``cpus``, through taskset(1). fio's own ``cpus_allowed`` can bind each job further.

    Other values: ``node:0``, the CPUs of a NUMA node; ``device-queues``, one CPU for each hardware queue of the target.
    """

    names = ("cpus",)
    program = "taskset"
    package = "util-linux"
    status_line = "Cpus_allowed_list"

    def allowed(self) -> str:
        choices = [super().allowed()]
        choices += [f"node:{node}" for node in nodes(self.machine)]
        if self._of_queues():
            choices.append(DEVICE_QUEUES)
        return ", or ".join(choices)

    def named(self, value: str) -> frozenset[int]:
        if value == DEVICE_QUEUES:
            return self._of_queues()
        if value.startswith("node:"):
            # The CPUs of a NUMA node
            number = value[5:]
            if not whole(number):
                return frozenset()
            return nodes(self.machine).get(int(number), frozenset())
        return numbers(value)

    def launcher(self, value: str) -> tuple[str, ...]:
        return ("taskset", "-c", spelled(self.named(value)))

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script | NoScript:
        if DEVICE_QUEUES in values:
            return NoScript(
                "iodelta itself looks up which CPUs feed the queues of a device"
            )
        launchers = {value: ("taskset", "-c", _script_cpus(value)) for value in values}
        return Script(dict.fromkeys(values, ()), launchers=launchers)

    def _of_queues(self) -> frozenset[int]:
        """For each hardware queue of the target, the first CPU that feeds it."""
        cpus: frozenset[int] = frozenset()
        for disk in self.target.disks:
            cpus |= first_cpus(queues(self.machine, disk).feeding)
        return cpus

    def bound(self, value: str) -> str:
        return labelled_value(
            self._run(*self.launcher(value), "cat", "/proc/self/status"),
            self.status_line,
        )


class Numa(Binding):
    """``numa``: CPUs and memory of these nodes, through numactl(8)."""

    names = ("numa",)
    program = "numactl"
    package = "numactl"
    status_line = "Mems_allowed_list"

    def launcher(self, value: str) -> tuple[str, ...]:
        return _numactl(value)

    @classmethod
    def script(cls, name: str, values: Sequence[str]) -> Script:
        return Script(
            dict.fromkeys(values, ()),
            launchers={value: _numactl(value) for value in values},
        )

    def bound(self, value: str) -> str:
        # /proc does not show a memory policy; numactl lists its nodes, separated by blanks.
        shown = self._run(*self.launcher(value), "numactl", "--show")
        return ",".join(labelled_value(shown, "membind").split())


def _numactl(nodes: str) -> tuple[str, ...]:
    return ("numactl", f"--cpunodebind={nodes}", f"--membind={nodes}", "--")


def _script_cpus(value: str) -> str | Output:
    """Return a list of CPUs for taskset; the script looks up those of a memory node when it runs."""
    if value.startswith("node:"):
        return Output(("cat", f"/sys/devices/system/node/node{value[5:]}/cpulist"))
    return value


def labelled_value(text: str, name: str) -> str:
    """Return the value in the first line ``name: value``; empty if there is no such line."""
    for line in text.splitlines():
        if line.startswith(f"{name}:"):
            return line.partition(":")[2].strip()
    return ""
